"""Import of whole files: order, damage, ids, processes, and use of the pack."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.scenario import processes as spreading
from roadworthy.scenario.importers import import_scenarios
from roadworthy.scenario.importers.womd import read_scenario
from roadworthy.scenario.pack import Pack, inspect
from roadworthy.scenario.prepare import TABLE_ARRAYS, prepare
from roadworthy.scenario.validate import faults
from roadworthy.sim.config import Control, ControlConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import X, Y
from tests.scenario.example import differences, example_scenario
from tests.scenario.importers.encoder import frame, womd_message

HEADER_BYTES = 12
import_womd = partial(import_scenarios, format="womd")


def encoded(name: str) -> bytes:
    """Return the example with something that a scenario does not hold: the difficulty of a prediction."""
    message = womd_message(example_scenario(name))
    message.tracks_to_predict[0].difficulty = 1
    return message.SerializeToString()


def write(path: Path, *names: str) -> Path:
    path.write_bytes(b"".join(frame(encoded(name)) for name in names))
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "womd.pack"


def test_files_become_a_pack_in_their_order(tmp_path: Path, output: Path) -> None:
    second = tmp_path / "b.tfrecord.gz"
    second.write_bytes(gzip.compress(frame(encoded("three"))))
    report = import_womd([write(tmp_path / "a", "two", "one"), second], output, processes=1)
    assert (report.scenario_count, report.damages) == (3, ())
    with Pack(output) as pack:
        assert list(pack.ids) == ["two", "one", "three"]
        assert pack.map_count == 1
        expected = read_scenario(encoded("one"), Counter())
        assert not differences(expected, pack.scenario("one"))
    assert not inspect(output)


def test_omitted_data_are_added_up_over_all_records(tmp_path: Path, output: Path) -> None:
    once = import_womd([write(tmp_path / "a", "one")], output, processes=1).omitted
    twice = import_womd([write(tmp_path / "b", "one", "two")], output, processes=1).omitted
    assert once
    assert twice == {what: 2 * count for what, count in once.items()}


def damaged(tmp_path: Path) -> tuple[Path, int]:
    """Write four records, the second and third damaged (checksum, message), and return the third one's offset."""
    parts = [frame(encoded("one")), bytearray(frame(encoded("two"))), frame(encoded("three")[:-5])]
    parts[1][HEADER_BYTES + 20] ^= 4
    parts.append(frame(encoded("four")))
    path = tmp_path / "damaged"
    path.write_bytes(b"".join(parts))
    return path, len(parts[0]) + len(parts[1])


def test_a_damaged_record_is_an_error_that_names_it_and_nothing_is_written(tmp_path: Path, output: Path) -> None:
    output.write_bytes(b"what was there before")
    path, _ = damaged(tmp_path)
    with pytest.raises(ScenarioError, match=r"damaged, record 1 at byte \d+: the checksum .*--skip-damaged"):
        import_womd([path], output, processes=1)
    assert output.read_bytes() == b"what was there before"
    assert {file.name for file in tmp_path.iterdir()} == {"damaged", "womd.pack"}


def test_damaged_records_are_skipped_on_request_and_listed(tmp_path: Path, output: Path) -> None:
    path, third = damaged(tmp_path)
    report = import_womd([path], output, skip_damaged=True, processes=1)
    assert [damage.location.number for damage in report.damages] == [1, 2]
    assert report.damages[1].location.offset == third
    assert "Scenario.tracks_to_predict: it is longer than the rest of the enclosing message" in report.damages[1].reason
    with Pack(output) as pack:
        assert list(pack.ids) == ["one", "four"]


def test_a_repeated_id_is_damage(tmp_path: Path, output: Path) -> None:
    paths = [write(tmp_path / "a", "one"), write(tmp_path / "b", "two", "one")]
    with pytest.raises(ScenarioError, match=r"b, record 1 .*'one' is also that of .*a, record 0"):
        import_womd(paths, output, processes=1)
    report = import_womd(paths, output, skip_damaged=True, processes=1)
    assert (report.scenario_count, len(report.damages)) == (2, 1)


def test_no_scenario_at_all_is_an_error(tmp_path: Path, output: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ScenarioError, match="no scenario was found: 0 damaged records in 1 files"):
        import_womd([tmp_path / "empty"], output)
    assert not output.exists()


def test_a_missing_file_is_named_before_anything_is_read(tmp_path: Path, output: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        import_womd([write(tmp_path / "a", "one"), tmp_path / "nowhere"], output)


def test_progress_goes_up_to_all_megabytes(tmp_path: Path, output: Path) -> None:
    seen: list[tuple[int, int]] = []
    import_womd(
        [write(tmp_path / "a", "one", "two", "three")], output, processes=1, progress=lambda *now: seen.append(now)
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_a_pack_has_the_same_bytes_whatever_the_number_of_processes(
    tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "FIRST_ITEMS", 1)
    path = write(tmp_path / "a", "one", "two", "three", "four")
    import_womd([path], output, processes=1)
    import_womd([path], tmp_path / "other.pack", processes=2)
    assert (tmp_path / "other.pack").read_bytes() == output.read_bytes()


@pytest.mark.row("SCEN-6")
def test_an_imported_map_is_prepared(tmp_path: Path, output: Path) -> None:
    import_womd([write(tmp_path / "a", "one")], output, processes=1)
    with Pack(output) as pack:
        tables, expected = pack.tables(0), prepare(pack[0].map)
    for name in TABLE_ARRAYS:
        np.testing.assert_array_equal(getattr(tables, name), getattr(expected, name))


def test_an_imported_recording_passes_validation_as_its_source_does(tmp_path: Path, output: Path) -> None:
    import_womd([write(tmp_path / "a", "one")], output, processes=1)
    with Pack(output) as pack:
        assert [fault.rule for fault in faults(pack[0])] == [fault.rule for fault in faults(example_scenario("one"))]


def test_an_imported_recording_replays_in_the_simulator(tmp_path: Path, output: Path) -> None:
    import_womd([write(tmp_path / "a", "one")], output, processes=1)
    with Pack(output) as pack:
        env = DriveEnv(pack, 1, SimConfig(control=ControlConfig(who=Control.SDC)))
        env.reset()
        scenario = pack[0]
        walker = 2
        for step in range(1, 20):
            env.step(np.zeros((env.row_count, 2)))
            now = env.agents[0][[X, Y]]
            place = scenario.positions[walker, scenario.current_step + step, :2]
            assert (np.abs(now - place[:, None]) < 1e-3).all(axis=0).any()
