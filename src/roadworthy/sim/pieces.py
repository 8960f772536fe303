"""Road pieces and partners as an agent sees them, written eight at a time on the CPU.

An observation stores the entries of a block feature by feature, while the numbers of one entry are used together. LLVM
leaves a loop over numbered entries scalar, since for all it knows a store to the row could change the table. So eight
entries are loaded here as vectors, moved into the agent's frame and stored. Best is a table that lies entry by entry in
memory (`piece_major`), whose entries are loaded whole and transposed in registers. `write_one` is the same for a
single entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from roadworthy.compile import inlined
from roadworthy.scenario.schema import Floats
from roadworthy.sim.layout import CLIP, EDGE, LANE, PARTNER, Feature
from roadworthy.sim.state import COS, LENGTH, SIN, SPEED, WIDTH, X, Y

EIGHT = 8
_NUMBER_BYTES, _PIECE_BYTES = 4, 4 * EIGHT
# The lines of a table that hold x, y, cos, sin and the further features of a block.
_LANE_LINES = tuple(range(len(LANE)))
_EDGE_LINES = tuple(range(len(EDGE)))
_PARTNER_LINES = (X, Y, COS, SIN, SPEED, LENGTH, WIDTH)  # of agents; a partner's kind is none of them

_HIGH, _LOW = np.float32(CLIP), np.float32(-CLIP)
_LANE_SCALES = tuple(np.float32(1.0 / f.scale) for f in LANE)
_EDGE_SCALES = tuple(np.float32(1.0 / f.scale) for f in EDGE)
_PARTNER_SCALES = tuple(np.float32(1.0 / f.scale) for f in PARTNER)

Numbers = NDArray[Any]  # whole numbers
# A float32, and an integer of any width, Python's or NumPy's: no type of either's takes both.
Real = Any
Whole = Any


def piece_major(shape: tuple[int, int, int]) -> Floats:
    """Zeros of shape (tables, lines, entries), at most eight lines; the numbers of an entry lie side by side."""
    tables, lines, entries = shape
    return np.zeros((tables, entries, EIGHT), np.float32)[:, :, :lines].transpose(0, 2, 1)


@inlined
def is_piece_major(table: Floats) -> bool:
    """Whether a table (lines, entries) lies entry by entry in memory, with room for eight numbers each."""
    return table.strides[0] == _NUMBER_BYTES and table.strides[1] == _PIECE_BYTES


@inlined
def clipped(value: Real) -> Any:
    """The value within -CLIP and CLIP; NaN becomes -CLIP."""
    value = value if value > _LOW else _LOW
    return value if value < _HIGH else _HIGH


@inlined
def write_one(
    table: Floats,
    number: Whole,
    lines: tuple[int, ...],
    scales: tuple[Real, ...],
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    row: Floats,
    at: Whole,
    n: Whole,
) -> None:
    """One entry, seen from an agent at x, y with this heading: feature f goes to row[at + f * n].

    The first four of the lines of the table are x, y, cos and sin; scales are what features are multiplied by.
    """
    dx, dy = table[lines[0], number] - x, table[lines[1], number] - y
    entry_cos, entry_sin = table[lines[2], number], table[lines[3], number]
    row[at] = clipped((dx * cos + dy * sin) * scales[0])
    row[at + n] = clipped((dy * cos - dx * sin) * scales[1])
    row[at + 2 * n] = clipped(entry_cos * cos + entry_sin * sin)
    row[at + 3 * n] = clipped(entry_sin * cos - entry_cos * sin)
    for f in range(4, len(lines)):
        row[at + f * n] = clipped(table[lines[f], number] * scales[f])


def _write_eight(features: Sequence[Feature], lines: Sequence[int], loads_whole: bool) -> Callable[..., None]:
    """`write_one` for the eight entries numbers[k : k + 8] of a table.

    write(table, numbers, k, x, y, cos, sin, row, at, n). loads_whole: of a piece-major table, its first lines.
    """
    scales = [1.0 / feature.scale for feature in features[: len(lines)]]

    @intrinsic
    def write(typing_context, table, numbers, k, x, y, cos, sin, row, at, n):
        pose = [types.float32] * 4
        signature = types.void(table, numbers, types.intp, *pose, row, types.intp, types.intp)

        def generate(context, builder, signature, args):
            table, numbers, row = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 7))
            entries = []
            for entry in range(EIGHT):
                place = builder.gep(numbers.data, [builder.add(args[2], _long(entry))])
                entries.append(builder.zext(builder.load(place), _LONG))
            if loads_whole:
                loaded = _loaded_whole(builder, table.data, entries)
            else:
                loaded = _loaded_singly(builder, table.data, _strides(builder, table), entries, lines)
            seen = _in_frame(builder, loaded, [_all(builder, value) for value in args[3:7]], scales)
            for f, line in enumerate(seen):
                place = builder.add(args[8], builder.mul(args[9], _long(f)))
                target = builder.bitcast(builder.gep(row.data, [place]), _VECTOR.as_pointer())
                builder.store(line, target, align=_NUMBER_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return write


_LONG, _FLOAT = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, EIGHT)


def _long(value: int) -> ir.Constant:
    return ir.Constant(_LONG, value)


def _vector(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [float(np.float32(value))] * EIGHT)


def _strides(builder: ir.IRBuilder, table: Any) -> list[Any]:
    return [builder.extract_value(table.strides, i) for i in range(2)]


def _loaded_whole(builder: ir.IRBuilder, data: Any, entries: list[Any]) -> list[Any]:
    """The lines of eight entries, each of which is a vector in memory."""
    rows = []
    for entry in entries:
        place = builder.gep(data, [builder.mul(entry, _long(EIGHT))])
        rows.append(builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=_NUMBER_BYTES))
    return _transposed(builder, rows)


def _loaded_singly(
    builder: ir.IRBuilder, data: Any, strides: list[Any], entries: list[Any], lines: Sequence[int]
) -> list[Any]:
    """The lines of eight entries of any table, number by number."""
    start = builder.ptrtoint(data, _LONG)
    offsets = [builder.mul(entry, strides[1]) for entry in entries]
    loaded = []
    for line in lines:
        line_start = builder.add(start, builder.mul(strides[0], _long(line)))
        vector = ir.Constant(_VECTOR, ir.Undefined)
        for k, offset in enumerate(offsets):
            place = builder.inttoptr(builder.add(line_start, offset), _FLOAT.as_pointer())
            vector = builder.insert_element(vector, builder.load(place), ir.Constant(ir.IntType(32), k))
        loaded.append(vector)
    return loaded


def _shuffled(builder: ir.IRBuilder, a: Any, b: Any, places: Sequence[int]) -> Any:
    """A vector of the numbers at these places of a (0 to 7) and b (8 to 15)."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), list(places)))


def _all(builder: ir.IRBuilder, value: Any) -> Any:
    """A vector of one number."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, first, first, [0] * EIGHT)


def _transposed(builder: ir.IRBuilder, rows: list[Any]) -> list[Any]:
    """Line f of the result holds number f of each row: three rounds, each of one AVX instruction per vector."""
    pairs = []
    for i in range(0, EIGHT, 2):
        for places in ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)):
            pairs.append(_shuffled(builder, rows[i], rows[i + 1], places))
    fours = []
    for i in (0, 1, 4, 5):
        for places in ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)):
            fours.append(_shuffled(builder, pairs[i], pairs[i + 2], places))
    return [
        _shuffled(builder, fours[i], fours[i + 4], places)
        for places in ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
        for i in range(4)
    ]


def _in_frame(builder: ir.IRBuilder, lines: list[Any], pose: list[Any], scales: list[float]) -> list[Any]:
    """The lines of eight pieces as `write_one` writes them."""
    x, y, cos, sin = pose

    def turned(u: Any, v: Any) -> tuple[Any, Any]:
        ahead = builder.fadd(builder.fmul(u, cos), builder.fmul(v, sin))
        return ahead, builder.fsub(builder.fmul(v, cos), builder.fmul(u, sin))

    places = turned(builder.fsub(lines[0], x), builder.fsub(lines[1], y))
    seen = [*places, *turned(lines[2], lines[3]), *lines[4 : len(scales)]]
    high, low = _vector(CLIP), _vector(-CLIP)
    clipped_lines = []
    for line, scale in zip(seen, scales, strict=True):
        value = line if scale == 1.0 else builder.fmul(line, _vector(scale))
        value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
        clipped_lines.append(builder.select(builder.fcmp_ordered("<", value, high), value, high))
    return clipped_lines


_eight_whole_lanes = _write_eight(LANE, _LANE_LINES, loads_whole=True)
_eight_lanes = _write_eight(LANE, _LANE_LINES, loads_whole=False)
_eight_whole_edges = _write_eight(EDGE, _EDGE_LINES, loads_whole=True)
_eight_edges = _write_eight(EDGE, _EDGE_LINES, loads_whole=False)
_eight_partners = _write_eight(PARTNER, _PARTNER_LINES, loads_whole=False)


@inlined
def write_lanes(
    table: Floats,
    numbers: Numbers,
    count: Whole,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    row: Floats,
    at: Whole,
    n: Whole,
) -> None:
    """The first count of the numbered lane pieces, into a block of n that starts at row[at]."""
    if count < EIGHT:
        for k in range(count):
            write_one(table, numbers[k], _LANE_LINES, _LANE_SCALES, x, y, cos, sin, row, at + k, n)
    elif is_piece_major(table):
        for k in range(0, count, EIGHT):
            first = min(k, count - EIGHT)
            _eight_whole_lanes(table, numbers, first, x, y, cos, sin, row, at + first, n)
    else:
        for k in range(0, count, EIGHT):
            first = min(k, count - EIGHT)
            _eight_lanes(table, numbers, first, x, y, cos, sin, row, at + first, n)


@inlined
def write_edges(
    table: Floats,
    numbers: Numbers,
    count: Whole,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    row: Floats,
    at: Whole,
    n: Whole,
) -> None:
    """The first count of the numbered edge pieces, into a block of n that starts at row[at]."""
    if count < EIGHT:
        for k in range(count):
            write_one(table, numbers[k], _EDGE_LINES, _EDGE_SCALES, x, y, cos, sin, row, at + k, n)
    elif is_piece_major(table):
        for k in range(0, count, EIGHT):
            first = min(k, count - EIGHT)
            _eight_whole_edges(table, numbers, first, x, y, cos, sin, row, at + first, n)
    else:
        for k in range(0, count, EIGHT):
            first = min(k, count - EIGHT)
            _eight_edges(table, numbers, first, x, y, cos, sin, row, at + first, n)


@inlined
def write_partners(
    table: Floats,
    numbers: Numbers,
    count: Whole,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    row: Floats,
    at: Whole,
    n: Whole,
) -> None:
    """The first count of the numbered agents, but for their kind, into a block of n that starts at row[at]."""
    if count < EIGHT:
        for k in range(count):
            write_one(table, numbers[k], _PARTNER_LINES, _PARTNER_SCALES, x, y, cos, sin, row, at + k, n)
    else:
        for k in range(0, count, EIGHT):
            first = min(k, count - EIGHT)
            _eight_partners(table, numbers, first, x, y, cos, sin, row, at + first, n)
