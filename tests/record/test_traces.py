"""Traces: bit-exact, small, with clear errors for unreadable files."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import RecordError, UsageError
from roadworthy.record import Trace, read_trace, write_trace
from roadworthy.record.traces import decode_trace, encode_trace
from tests.record.made_up import trace


def assert_same(one: Trace, other: Trace) -> None:
    for f in fields(Trace):
        for a, b in zip(_arrays(one, f.name), _arrays(other, f.name), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), f.name
            assert a.tobytes() == b.tobytes(), f.name


def _arrays(given: Trace, name: str) -> list[np.ndarray[Any, Any]]:
    value = getattr(given, name)
    values = [*value, *value.values()] if name == "extra" else [value]
    return [np.asarray(value) for value in values]


@given(
    seed=st.integers(0, 1000),
    frames=st.integers(2, 40),
    agents=st.integers(0, 9),
    is_discrete=st.booleans(),
)
def test_a_trace_comes_back_bit_for_bit(seed: int, frames: int, agents: int, is_discrete: bool) -> None:
    before = trace("town-1-r0", seed, frames, agents, is_discrete)
    assert_same(decode_trace(encode_trace(before)), before)


def test_equal_traces_give_equal_bytes_and_a_file_holds_them(tmp_path: Path) -> None:
    before = trace("town-1-r0")
    size = write_trace(tmp_path / "a.trace", before)
    assert (tmp_path / "a.trace").read_bytes() == encode_trace(trace("town-1-r0"))
    assert size == (tmp_path / "a.trace").stat().st_size
    assert_same(read_trace(tmp_path / "a.trace"), before)
    assert [path.name for path in tmp_path.iterdir()] == ["a.trace"]


def test_trials_are_slices_of_the_frames() -> None:
    given = trace("town-1-r0", frames=9)
    assert (given.trial_count, given.trial(0), given.trial(1)) == (2, slice(0, 4), slice(4, 9))


def test_motion_that_changes_smoothly_takes_less_than_half_of_its_bytes() -> None:
    steps = np.cumsum(np.random.default_rng(0).normal(1.0, 0.05, (91, 32)), axis=0).astype(np.float32)
    flags = np.ones(steps.shape, np.bool_)
    smooth = replace(
        trace("town-1-r0", frames=91, agents=32),
        **dict.fromkeys(("x", "y", "heading", "speed"), steps),
        present=flags,
        active=flags,
        events=np.zeros(steps.shape, np.uint16),
        actions=np.zeros((*steps.shape, 2), np.int8),
        extra={},
    )
    assert len(encode_trace(smooth)) < 0.5 * 4 * steps.nbytes


@pytest.mark.row("REC-1")
def test_a_truncated_trace_is_refused() -> None:
    block = encode_trace(trace("town-1-r0"))
    for size in range(0, len(block), 7):
        with pytest.raises(RecordError, match=r"truncated|damaged|bad magic bytes"):
            decode_trace(block[:size])


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    block = bytearray(encode_trace(trace("town-1-r0")))
    block[-20] ^= 4
    (tmp_path / "a.trace").write_bytes(block)
    with pytest.raises(RecordError, match=r"a\.trace: the trace is truncated or damaged"):
        read_trace(tmp_path / "a.trace")


@pytest.mark.row("REC-1")
def test_a_newer_major_version_is_refused_by_its_number() -> None:
    block = bytearray(encode_trace(trace("town-1-r0")))
    struct.pack_into("<I", block, 8, 2 << 16 | 3)
    with pytest.raises(RecordError, match=r"version 2\.3, but this Roadworthy reads up to 1\.x"):
        decode_trace(bytes(block))


def test_a_column_of_a_later_minor_version_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    from roadworthy.record import traces

    before = trace("town-1-r0")
    monkeypatch.setattr(traces, "_EXTRA", "later.")
    block = encode_trace(before)
    monkeypatch.undo()
    assert_same(decode_trace(block), replace(before, extra={}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.zeros((9, 3))}, "x is float64, expected float32"),
        ({"speed": np.zeros((8, 3), np.float32)}, r"speed has shape \(8, 3\), expected \(9, 3\)"),
        ({"trial_starts": np.array([0, 4, 8], np.int32)}, "expected frames that increase from 0 to 9"),
        ({"trial_starts": np.array([0, 4, 4, 9], np.int32)}, "expected frames that increase"),
        ({"goals": np.zeros((3, 2), np.float32)}, "goals has shape"),
        ({"extra": {"jerk": np.zeros((9, 2), np.float32)}}, "extra.jerk has shape"),
    ],
)
def test_an_inconsistent_trace_is_not_written(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"episode 'town-1-r0' can't be written: .*{words}"):
        write_trace(tmp_path / "a.trace", replace(trace("town-1-r0"), **change))
    assert not list(tmp_path.iterdir())


@pytest.mark.row("CL-1")
def test_a_trace_of_version_1_0_has_no_fault() -> None:
    before = trace("town-1-r0")
    block = encode_trace(before)
    assert decode_trace(block).judges_fault
    _, length, _ = struct.unpack_from("<III", block, 8)
    directory = json.loads(block[20 : 20 + length])
    assert directory["values"].pop("judges_fault") is True
    words = json.dumps(directory).encode()
    body = words + block[20 + length :]
    old = decode_trace(block[:8] + struct.pack("<III", 1 << 16, len(words), zlib.crc32(body)) + body)
    assert not old.judges_fault
    assert_same(replace(old, judges_fault=True), before)
    assert not decode_trace(encode_trace(old)).judges_fault, "nor does a copy"
