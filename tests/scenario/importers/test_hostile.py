"""Hostile records: for any bytes, the outcome is a scenario or damage with its location, never a crash."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers import Damage, Location, Record, import_scenarios, wire
from roadworthy.scenario.importers.run import Converted, convert
from roadworthy.scenario.importers.womd_schema import SCENARIO_READER
from roadworthy.scenario.pack import Pack
from tests.scenario.example import example_scenario
from tests.scenario.importers.encoder import WOMD, frame, womd_message

GOOD = womd_message(example_scenario()).SerializeToString()
LOCATION = Location(Path("some.tfrecord"), 3, 99)

positions = st.integers(0, len(GOOD) - 1)
pieces = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"\xff" * 9 + b"\x01", b"\x80" * 12, b"\xff\xff\xff\xff\x07", b"\x00" * 8, b"\x0b", b"\x0c"]),
    st.sampled_from([np.float64(value).tobytes() for value in (np.nan, np.inf, -np.inf, 1e300, 1e-300)]),
)
edits = st.one_of(
    st.tuples(st.just("put"), positions, pieces),
    st.tuples(st.just("insert"), positions, pieces),
    st.tuples(st.just("cut"), positions, st.integers(1, 60)),
    st.tuples(st.just("copy"), positions, st.integers(1, 3000)),
    st.tuples(st.just("end"), positions, st.just(0)),
)


def edited(data: bytes, changes: list[tuple[str, int, bytes | int]]) -> bytes:
    found = bytearray(data)
    for what, at, value in changes:
        if isinstance(value, bytes):
            end = at + len(value) if what == "put" else at
            found[at:end] = value
        elif what == "cut":
            del found[at : at + value]
        elif what == "copy":
            found[at:at] = found[at : at + value]
        else:
            del found[at:]
    return bytes(found)


@settings(max_examples=300)
@given(st.lists(edits, min_size=1, max_size=6))
def test_edited_bytes_are_read_or_refused(changes: list[tuple[str, int, bytes | int]]) -> None:
    outcome = convert(("womd", Record(LOCATION, edited(GOOD, changes))))
    if isinstance(outcome, Damage):
        assert outcome.location == LOCATION
        assert len(outcome.reason) > 10
    else:
        assert isinstance(outcome, Converted)


def with_field(change: Callable[[object], None]) -> bytes:
    message = WOMD["Scenario"].FromString(GOOD)
    change(message)
    data: bytes = message.SerializeToString()
    return data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (GOOD[:-7], "byte [0-9]+, Scenario"),
        (b"", "no scenario_id"),
        (b"\x0a\xff\xff\xff\xff\x0f", "longer than the rest of the enclosing message"),
        (GOOD + b"\x11\x00", "ends in the middle of a value"),
        (GOOD + b"\x10\x05", "the wire type is not that of the field's kind"),
        (with_field(lambda m: m.tracks[0].states.add()), "track 0 has 92 states, but there are 91 time stamps"),
        (with_field(lambda m: setattr(m, "sdc_track_index", 10**9)), "self-driving car is agent 1000000000"),
        (with_field(lambda m: m.tracks_to_predict.add(track_index=-5)), "predict names agents outside"),
        (with_field(lambda m: setattr(m, "current_time_index", -1)), "current_time_index is -1"),
        (with_field(lambda m: setattr(m.map_features[0].lane.polyline[0], "x", 1e12)), "points .* m apart"),
        (with_field(lambda m: setattr(m.tracks[0].states[3], "center_x", 1e300)), "NaN or infinity"),
    ],
)
def test_the_error_names_file_record_and_problem_and_nothing_is_written(
    data: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.tfrecord"
    path.write_bytes(frame(GOOD) + frame(data))
    where = rf"{re.escape(str(path))}, record 1 at byte {len(GOOD) + 16}: .*{problem}"
    with pytest.raises(ScenarioError, match=where):
        import_scenarios([path], tmp_path / "x.pack", format="womd", processes=1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["hostile.tfrecord"]
    report = import_scenarios([path], tmp_path / "x.pack", format="womd", processes=1, skip_damaged=True)
    assert (report.scenario_count, len(report.damages)) == (1, 1)
    with Pack(tmp_path / "x.pack") as pack:
        assert len(pack) == 1


def test_a_record_of_empty_messages_takes_no_more_memory_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    tracks = b"\x12\x00" * 50_000  # two bytes each, and a row of several columns when read
    assert len(SCENARIO_READER.read(tracks).child("tracks")) == 50_000
    monkeypatch.setattr(wire, "MAX_TABLE_BYTES", 1_000_000)
    with pytest.raises(ScenarioError, match=r"reading its 100000 bytes takes .* GB of memory, allowed: 0\.0 GB"):
        SCENARIO_READER.read(tracks)
