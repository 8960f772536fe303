"""Traces: the motion of all agents in one episode, exact to the bit, in a small compressed file.

    8 bytes     b"RWTRACE" and a zero
    uint32 x 3  version (major * 65536 + minor), bytes of the directory, CRC-32 of all that follows
    directory   JSON: {"values": {...}, "columns": [[name, dtype, shape, coding], ...]}
    columns     one after another, compressed together (zstd)

The coding of a column is `plain`, or has its frames agent by agent, so that equal and smoothly changing numbers stand
side by side: `bits` stores eight flags in a byte; `bytes` puts the first bytes of all numbers first, then all second
ones, and so on; `steps` before that replaces the bits of each number by their difference, as whole numbers, from those
a frame before. All of it is exact, for NaN as well. A reader takes the columns that it knows by name; others may be
there.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
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
_LEVEL = -3  # of zstd: 1 takes half as long again and saves 5 to 12%, higher ones are worse
_EXTRA = "extra."
_DIRECTORY = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

_F4, _I4, _I1, _U2, _FLAG = (np.dtype(text) for text in ("<f4", "<i4", "|i1", "<u2", "|b1"))
_STEPS = "steps bytes"
_SMOOTH = ("x", "y", "heading", "speed")  # and all extra ones, float32: what changes little from frame to frame
# The other columns: the dtypes that they may have, and their coding. Plain ones are of agents, the rest of every frame.
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


@dataclass(frozen=True)
class Trace:
    """One episode: F frames of all its trials one after another, A agents of its world.

    Frame 0 of a trial is its start state, the last one the state in which it ended.
    """

    episode_id: str
    scenario_id: str
    dt: float  # s
    trial_starts: NDArray[np.int32]  # (trials + 1,) trial k has the frames trial_starts[k]:trial_starts[k + 1]
    x: Floats  # (F, A) m
    y: Floats
    heading: Floats  # rad
    speed: Floats  # m/s
    present: NDArray[np.bool_]  # (F, A) in the world
    active: NDArray[np.bool_]  # (F, A) driven by a policy at that moment
    events: NDArray[np.uint16]  # (F, A) sim.state EVENT_ bits of the step that led to the frame; 0 if not active
    actions: NDArray[Any]  # (F, A, 2) float32 or int8, of the step that led to the frame; 0 in a trial's frame 0
    length: Floats  # (A,) m
    width: Floats  # (A,) m
    kinds: NDArray[np.int8]  # (A,) AgentType
    roles: NDArray[np.int8]  # (A,) sim.state ROLES
    sources: NDArray[np.int32]  # (A,) number in the scenario's recording, -1 for none
    goals: Floats  # (A, goals, 2) m
    goal_counts: NDArray[np.int32]  # (A,) how many of them are meant
    extra: Mapping[str, Floats] = field(default_factory=dict)  # (F, A) further state that re-scoring needs
    judges_fault: bool = True  # whether events say who was at fault for collisions; traces before 1.1 do not

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
        """The frames of a trial."""
        return slice(int(self.trial_starts[number]), int(self.trial_starts[number + 1]))

    def columns(self) -> list[tuple[str, NDArray[Any], tuple[np.dtype[Any], ...], str]]:
        """All columns: names in a file, arrays, dtypes that they may have, codings."""
        smooth = [(name, getattr(self, name)) for name in _SMOOTH]
        smooth += [(f"{_EXTRA}{name}", array) for name, array in self.extra.items()]
        others = [(name, getattr(self, name), *form) for name, form in _OTHERS.items()]
        return [(name, array, (_F4,), _STEPS) for name, array in smooth] + others

    def fault(self) -> str | None:
        """What does not fit together, if anything."""
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
            return f"trial_starts is {starts}, expected frames that rise from 0 to {frames}"
        return None


def write_trace(path: str | Path, trace: Trace) -> int:
    """Write a trace; returns the bytes of its file. A kill may leave half a file, which no line names yet."""
    block = encode_trace(trace)
    write_unannounced(Path(path), block)
    return len(block)


def read_trace(path: str | Path) -> Trace:
    """Read a trace; a file that is damaged, foreign or of a newer version is an error that names it."""
    path = Path(path)
    try:
        return decode_trace(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: can't be read: {error.strerror}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def encode_trace(trace: Trace) -> bytes:
    """A trace as the bytes of its file; equal traces give equal bytes."""
    fault = trace.fault()
    if fault:
        raise UsageError(f"the trace of episode {trace.episode_id!r} can't be written: {fault}")
    columns = trace.columns()
    smooth = np.stack([array for _, array, _, coding in columns if coding == _STEPS])  # all of them in one pass
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
    """The trace that the bytes of a file hold; whatever doesn't fit is an error."""
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
    fault = trace.fault()
    if fault:
        raise RecordError(f"the trace is damaged: {fault}")
    return trace


def _columns(block: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The values and the columns of a file."""
    begin = len(_MAGIC) + _START.size
    if not block.startswith(_MAGIC):
        raise RecordError("this is no trace of Roadworthy (it begins otherwise)")
    if len(block) < begin:
        raise RecordError(f"the trace is cut off: {len(block)} bytes are there")
    version, length, crc = _START.unpack_from(block, len(_MAGIC))
    if version >> 16 > _MAJOR:
        raise RecordError(
            f"the trace is of version {version >> 16}.{version & 0xFFFF}; this Roadworthy reads up to {_MAJOR}.x: "
            "update it"
        )
    if zlib.crc32(memoryview(block)[begin:]) != crc:
        raise RecordError("the trace is cut off or damaged (its checksum is wrong)")
    directory = json.loads(block[begin : begin + length])
    (size,) = struct.unpack_from("<Q", block, begin + length)
    plain = _codec().decompress(block[begin + length + 8 :], decompressed_size=size, asbytes=True)
    columns: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, dtype, shape, coding in directory["columns"]:
        array, offset = _decode(plain, offset, np.dtype(dtype), tuple(shape), coding)
        columns[name] = array
    return directory["values"], columns


def _encode(array: NDArray[Any], coding: str) -> bytes:
    """The bytes of a column; one that is not plain has frames, (frames, agents, ...)."""
    if coding == "plain":
        return array.tobytes()
    by_agent = array.transpose(*range(1, array.ndim), 0)
    if coding == "bits":
        return np.packbits(np.ascontiguousarray(by_agent)).tobytes()
    single = np.ascontiguousarray(by_agent)[..., None].view(np.uint8)
    return single.transpose(-1, *range(single.ndim - 1)).tobytes()


def _encode_smooth(columns: Floats) -> bytes:
    """The bytes of columns one after another, (columns, frames, agents), which are overwritten."""
    whole = columns.view("<u4")
    whole[:, 1:] -= whole[:, :-1].copy()
    return whole[..., None].view(np.uint8).transpose(0, 3, 2, 1).tobytes()


def _decode(
    plain: bytes, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], coding: str
) -> tuple[NDArray[Any], int]:
    """A column, and where the next one begins."""
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
        raise RecordError(f"a column of the trace is coded as {coding!r}, which is unknown; update Roadworthy")
    return np.ascontiguousarray(array.transpose(-1, *range(array.ndim - 1))), offset + size


@cache
def _codec() -> Any:
    return pa.Codec("zstd", compression_level=_LEVEL)
