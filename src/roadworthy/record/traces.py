"""Traces: the motion of all agents in one episode, bit-exact, in a small compressed file.

    8 bytes     b"RWTRACE" and a zero
    uint32 x 3  version (major * 65536 + minor), bytes of the directory, CRC-32 of the rest of the file
    directory   JSON: {"values": {...}, "columns": [[name, dtype, shape, coding], ...]}
    columns     one after another, compressed together (zstd)

The coding of a column is `plain`, or stores the frames agent by agent, so that equal and smoothly changing numbers are
adjacent: `bits` stores eight flags in a byte; `bytes` stores the first bytes of all numbers, then all second bytes, and
so on; `steps bytes` first replaces the bits of each number, as a whole number, by the difference from the previous
frame. All codings are exact, for NaN too. Readers take the columns that they know by name and ignore others.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roadworthy.errors import RecordError, UsageError
from roadworthy.record.files import write_unannounced

Floats = NDArray[np.float32]

_MAGIC = b"RWTRACE\0"
_START = struct.Struct("<III")
_MAJOR, _MINOR = 1, 1
_LEVEL = -3  # of zstd: level 1 takes 50% longer and saves 5 to 12%, higher levels are worse
_EXTRA = "extra."
_DIRECTORY = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

_F4, _I4, _I1, _U2, _FLAG = (np.dtype(text) for text in ("<f4", "<i4", "|i1", "<u2", "|b1"))
_STEPS = "steps bytes"
_SMOOTH = ("x", "y", "heading", "speed")  # and all extra columns, float32: these change little between frames
# The other columns with their allowed dtypes and their coding. Plain columns have no frames.
_OTHERS = {
    "present": ((_FLAG,), "bits"),
    "active": ((_FLAG,), "bits"),
    "events": ((_U2,), "bytes"),
    "actions": ((_F4, _I1), "bytes"),
    "trial_starts": ((_I4,), "plain"),
    "length": ((_F4,), "plain"),
    "width": ((_F4,), "plain"),
    "kinds": ((_I1,), "plain"),
    "roles": ((_I1,), "plain"),
    "sources": ((_I4,), "plain"),
    "goals": ((_F4,), "plain"),
    "goal_counts": ((_I4,), "plain"),
}


ROLES = ("ego", "coplayer", "replay", "idm", "static")  # the codes of Trace.roles


class TraceEvent(IntFlag):
    """The bits of Trace.events."""

    GOAL = 1
    COLLISION = 2
    OFF_ROAD = 4
    RED_LIGHT = 8
    STOP_SIGN = 16
    UNCOMFORTABLE = 32
    ON_LANE = 64
    ALIGNED = 128
    CENTERED = 256
    WRONG_WAY = 512
    AT_FAULT = 1024  # for its first contact with another agent, see at_fault.py


@dataclass(frozen=True)
class Trace:
    """One episode: F frames of all its trials in a row, and A agents of its world.

    The first frame of a trial is its start state, the last frame the state in which it ended.
    """

    episode_id: str
    scenario_id: str
    dt: float  # s
    trial_starts: NDArray[np.int32]  # (trials + 1,) the frames of trial k are trial_starts[k]:trial_starts[k + 1]
    x: Floats  # (F, A) m
    y: Floats
    heading: Floats  # rad
    speed: Floats  # m/s
    present: NDArray[np.bool_]  # (F, A) whether the agent is in the world
    active: NDArray[np.bool_]  # (F, A) whether a policy drives the agent
    events: NDArray[np.uint16]  # (F, A) TraceEvent bits of the step that led to the frame; 0 if not active
    actions: NDArray[Any]  # (F, A, 2) float32 or int8, of the step that led to the frame; 0 in a trial's first frame
    length: Floats  # (A,) m
    width: Floats  # (A,) m
    kinds: NDArray[np.int8]  # (A,) AgentType
    roles: NDArray[np.int8]  # (A,) index into ROLES
    sources: NDArray[np.int32]  # (A,) index of the agent in the scenario's recording, -1 for none
    goals: Floats  # (A, goals, 2) m
    goal_counts: NDArray[np.int32]  # (A,) how many of the goals are used
    extra: Mapping[str, Floats] = field(default_factory=dict)  # name: (F, A) further state that re-scoring needs
    judges_fault: bool = True  # whether events hold AT_FAULT; traces before version 1.1 do not

    @property
    def frame_count(self) -> int:
        return len(self.x)

    @property
    def agent_count(self) -> int:
        return self.x.shape[1]

    @property
    def trial_count(self) -> int:
        return len(self.trial_starts) - 1

    def trial(self, number: int) -> slice:
        """Return the frames of a trial."""
        return slice(int(self.trial_starts[number]), int(self.trial_starts[number + 1]))

    def columns(self) -> list[tuple[str, NDArray[Any], tuple[np.dtype[Any], ...], str]]:
        """Return all columns: names in a file, arrays, allowed dtypes, codings."""
        smooth = [(name, getattr(self, name)) for name in _SMOOTH]
        smooth += [(f"{_EXTRA}{name}", array) for name, array in self.extra.items()]
        others = [(name, getattr(self, name), *form) for name, form in _OTHERS.items()]
        return [(name, array, (_F4,), _STEPS) for name, array in smooth] + others

    def inconsistency(self) -> str | None:
        """Return a description of the first inconsistency, None if there is none."""
        moving = self.x.shape
        if len(moving) != 2:
            return f"x has shape {moving}, expected (frames, agents)"
        frames, agents = moving
        shapes = {"trial_starts": None, "actions": (frames, agents, 2), "goals": None}
        for name, array, dtypes, coding in self.columns():
            if array.dtype not in dtypes:
                return f"{name} is {array.dtype}, expected {' or '.join(map(str, dtypes))}"
            shape = shapes.get(name, (agents,) if coding == "plain" else moving)
            if shape is not None and array.shape != shape:
                return f"{name} has shape {array.shape}, expected {shape}"
        if self.goals.ndim != 3 or self.goals.shape[::2] != (agents, 2):
            return f"goals has shape {self.goals.shape}, expected ({agents}, goals, 2)"
        starts = self.trial_starts.tolist()  # few of them
        is_row = self.trial_starts.ndim == 1 and len(starts) > 1
        if not is_row or (starts[0], starts[-1]) != (0, frames) or any(b <= a for a, b in pairwise(starts)):
            return f"trial_starts is {starts}, expected frames that increase from 0 to {frames}"
        return None


def write_trace(path: str | Path, trace: Trace) -> int:
    """Write a trace and return the size of its file. A kill may leave an incomplete file, which no row names yet."""
    block = encode_trace(trace)
    write_unannounced(Path(path), block)
    return len(block)


def read_trace(path: str | Path) -> Trace:
    """Read a trace; raise RecordError, with the file's name, if it is damaged, not a trace, or of a newer version."""
    path = Path(path)
    try:
        return decode_trace(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: can't be read: {error.strerror}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def encode_trace(trace: Trace) -> bytes:
    """Return the bytes of a trace's file; equal traces give equal bytes."""
    if problem := trace.inconsistency():
        raise UsageError(f"the trace of episode {trace.episode_id!r} can't be written: {problem}")
    columns = trace.columns()
    smooth = np.stack([array for _, array, _, coding in columns if coding == _STEPS])  # to encode them in one pass
    others = [_encode(array, coding) for _, array, _, coding in columns if coding != _STEPS]
    plain = b"".join([_encode_smooth(smooth), *others])
    entries = [[name, array.dtype.str, array.shape, coding] for name, array, _, coding in columns]
    values = {
        "episode_id": trace.episode_id,
        "scenario_id": trace.scenario_id,
        "dt": trace.dt,
        "judges_fault": trace.judges_fault,
    }
    directory = _DIRECTORY.encode({"values": values, "columns": entries}).encode()
    body = directory + struct.pack("<Q", len(plain)) + _codec().compress(plain, asbytes=True)
    return _MAGIC + _START.pack(_MAJOR << 16 | _MINOR, len(directory), zlib.crc32(body)) + body


def decode_trace(block: bytes) -> Trace:
    """Return the trace in the bytes of a file; raise RecordError if they are damaged."""
    values, columns = _columns(block)
    missing = [name for name in (*_SMOOTH, *_OTHERS) if name not in columns]
    if missing:
        raise RecordError(f"the trace is damaged: {missing[0]} is missing")
    extra = {name.removeprefix(_EXTRA): array for name, array in columns.items() if name.startswith(_EXTRA)}
    try:
        known: dict[str, Any] = {name: columns[name] for name in (*_SMOOTH, *_OTHERS)}
        known |= {"extra": extra, "judges_fault": values.get("judges_fault") is True}
        trace = Trace(values["episode_id"], values["scenario_id"], float(values["dt"]), **known)
    except (KeyError, TypeError, ValueError):
        raise RecordError("the trace is damaged: its directory lacks the ids or dt") from None
    if problem := trace.inconsistency():
        raise RecordError(f"the trace is damaged: {problem}")
    return trace


def _columns(block: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the values and the columns of a file."""
    start = len(_MAGIC) + _START.size
    if not block.startswith(_MAGIC):
        raise RecordError("this is not a trace of Roadworthy (bad magic bytes)")
    if len(block) < start:
        raise RecordError(f"the trace is truncated after {len(block)} bytes")
    version, length, crc = _START.unpack_from(block, len(_MAGIC))
    if version >> 16 > _MAJOR:
        raise RecordError(
            f"the trace has version {version >> 16}.{version & 0xFFFF}, but this Roadworthy reads up to {_MAJOR}.x; "
            "update Roadworthy"
        )
    if zlib.crc32(memoryview(block)[start:]) != crc:
        raise RecordError("the trace is truncated or damaged (wrong checksum)")
    directory = json.loads(block[start : start + length])
    (size,) = struct.unpack_from("<Q", block, start + length)
    plain = _codec().decompress(block[start + length + 8 :], decompressed_size=size, asbytes=True)
    columns: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, dtype, shape, coding in directory["columns"]:
        array, offset = _decode(plain, offset, np.dtype(dtype), tuple(shape), coding)
        columns[name] = array
    return directory["values"], columns


def _encode(array: NDArray[Any], coding: str) -> bytes:
    """Return the bytes of a column; columns that are not plain have the shape (frames, agents, ...)."""
    if coding == "plain":
        return array.tobytes()
    by_agent = array.transpose(*range(1, array.ndim), 0)
    if coding == "bits":
        return np.packbits(np.ascontiguousarray(by_agent)).tobytes()
    single = np.ascontiguousarray(by_agent)[..., None].view(np.uint8)
    return single.transpose(-1, *range(single.ndim - 1)).tobytes()


def _encode_smooth(columns: Floats) -> bytes:
    """Return the bytes of consecutive columns, (columns, frames, agents), which are overwritten."""
    whole = columns.view("<u4")
    whole[:, 1:] -= whole[:, :-1].copy()
    return whole[..., None].view(np.uint8).transpose(0, 3, 2, 1).tobytes()


def _decode(
    plain: bytes, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], coding: str
) -> tuple[NDArray[Any], int]:
    """Return a column, and the offset of the next one."""
    count, by_agent = prod(shape), (*shape[1:], shape[0])
    size = -(-count // 8) if coding == "bits" else count * dtype.itemsize
    if coding == "plain":
        return np.frombuffer(plain, dtype, count, offset).reshape(shape), offset + size
    stored = np.frombuffer(plain, np.uint8, size, offset)
    if coding == "bits":
        array = np.unpackbits(stored, count=count).view(np.bool_).reshape(by_agent)
    elif coding in ("bytes", _STEPS):
        whole = np.ascontiguousarray(stored.reshape(dtype.itemsize, count).T).view(f"<u{dtype.itemsize}")
        if coding == _STEPS:
            whole = np.cumsum(whole.reshape(by_agent), axis=-1, dtype=whole.dtype)
        array = whole.view(dtype).reshape(by_agent)
    else:
        raise RecordError(f"a column of the trace has the unknown coding {coding!r}; update Roadworthy")
    return np.ascontiguousarray(array.transpose(-1, *range(array.ndim - 1))), offset + size


@cache
def _codec() -> Any:
    return pa.Codec("zstd", compression_level=_LEVEL)
