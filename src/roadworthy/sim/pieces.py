"""Road pieces and partners as an agent sees them, written eight at a time on the CPU.

An observation stores the entries of a block feature by feature, while the numbers of one entry are used together. LLVM
leaves a loop over numbered entries scalar, since for all it knows a store to the row could change the table. So tables
lie entry by entry in memory (`piece_major`), and eight entries are loaded here as vectors, transposed in registers,
moved into the agent's frame and stored. `write_one` is the same for a single entry, of a table of any layout.
`nearest_of_eight` and `eight_contacts` ask the questions of roads.py in the same way.
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
from roadworthy.sim.vectors import (
    EIGHT,
    FLOATS,
    LONG,
    LONGS,
    NUMBER_BYTES,
    WHOLES,
    bits_of,
    eight_of,
    load_entries,
    long_number,
    shuffled,
    size_of,
    spread,
    whole_number,
)

_PIECE_BYTES = NUMBER_BYTES * EIGHT
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
    return table.strides[0] == NUMBER_BYTES and table.strides[1] == _PIECE_BYTES


@inlined
def clipped(value: Real) -> Any:
    """The value within -CLIP and CLIP; NaN becomes -CLIP."""
    value = value if value > _LOW else _LOW
    return value if value < _HIGH else _HIGH


@inlined
def write_one(
    table: Floats,
    number: Whole,
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

    The first lines of the table are x, y, cos, sin and the further features; scales are what they are multiplied by.
    """
    dx, dy = table[0, number] - x, table[1, number] - y
    entry_cos, entry_sin = table[2, number], table[3, number]
    row[at] = clipped((dx * cos + dy * sin) * scales[0])
    row[at + n] = clipped((dy * cos - dx * sin) * scales[1])
    row[at + 2 * n] = clipped(entry_cos * cos + entry_sin * sin)
    row[at + 3 * n] = clipped(entry_sin * cos - entry_cos * sin)
    for f in range(4, len(scales)):
        row[at + f * n] = clipped(table[f, number] * scales[f])


def _write_eight(features: Sequence[Feature]) -> Callable[..., None]:
    """`write_one` for the eight entries numbers[k : k + 8] of a piece-major table, zeros from the valid-th on.

    write(table, numbers, k, valid, x, y, cos, sin, row, at, n).
    """
    scales = [1.0 / feature.scale for feature in features]

    @intrinsic
    def write(typing_context, table, numbers, k, valid, x, y, cos, sin, row, at, n):
        pose = [types.float32] * 4
        signature = types.void(table, numbers, types.intp, types.intp, *pose, row, types.intp, types.intp)

        def generate(context, builder, signature, args):
            table, numbers, row = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 8))
            entries = []
            for entry in range(EIGHT):
                place = builder.gep(numbers.data, [builder.add(args[2], long_number(entry))])
                entries.append(builder.zext(builder.load(place), LONG))
            loaded = load_entries(builder, table.data, entries)
            seen = _in_frame(builder, loaded, [spread(builder, value) for value in args[4:8]], scales)
            is_valid = builder.icmp_signed("<", ir.Constant(LONGS, list(range(EIGHT))), spread(builder, args[3]))
            for f, line in enumerate(seen):
                place = builder.add(args[9], builder.mul(args[10], long_number(f)))
                target = builder.bitcast(builder.gep(row.data, [place]), FLOATS.as_pointer())
                builder.store(builder.select(is_valid, line, eight_of(0.0)), target, align=NUMBER_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return write


def _in_frame(builder: ir.IRBuilder, lines: list[Any], pose: list[Any], scales: list[float]) -> list[Any]:
    """The lines of eight pieces as `write_one` writes them."""
    x, y, cos, sin = pose

    def turned(u: Any, v: Any) -> tuple[Any, Any]:
        ahead = builder.fadd(builder.fmul(u, cos), builder.fmul(v, sin))
        return ahead, builder.fsub(builder.fmul(v, cos), builder.fmul(u, sin))

    places = turned(builder.fsub(lines[0], x), builder.fsub(lines[1], y))
    seen = [*places, *turned(lines[2], lines[3]), *lines[4 : len(scales)]]
    high, low = eight_of(CLIP), eight_of(-CLIP)
    clipped_lines = []
    for line, scale in zip(seen, scales, strict=True):
        value = line if scale == 1.0 else builder.fmul(line, eight_of(scale))
        value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
        clipped_lines.append(builder.select(builder.fcmp_ordered("<", value, high), value, high))
    return clipped_lines


@intrinsic
def nearest_of_eight(typing_context, table, numbers, k, x, y, cos, sin, own, own_count, most, angle, stay):
    """The least cost of a lane to be on (see `roads.locate`) among the pieces numbers[k : k + 8], and its place there.

    table: piece-major. own, own_count: which pieces cost nothing to stay on; most: the largest square of a distance;
    angle, stay: costs. Pieces further away cost infinitely much.
    """
    cost_and_place: Any = types.Tuple  # type: ignore[attr-defined]
    signature = cost_and_place([types.float32, types.intp])(
        table, numbers, types.intp, *[types.float32] * 4, types.uint32, types.uint32, *[types.float32] * 3
    )

    def generate(context, builder, signature, args):
        table, numbers = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1))
        place = builder.gep(numbers.data, [args[2]])
        several = ir.VectorType(numbers.data.type.pointee, EIGHT)
        listed = builder.load(builder.bitcast(place, several.as_pointer()), align=several.element.width // EIGHT)
        listed = builder.zext(listed, WHOLES)
        entries = [builder.zext(builder.extract_element(listed, whole_number(i)), LONG) for i in range(EIGHT)]
        px, py, pcos, psin, half = load_entries(builder, table.data, entries)[:5]
        x, y, cos, sin, own, own_count, most, angle, stay = (spread(builder, value) for value in args[3:])
        mul, add, sub = builder.fmul, builder.fadd, builder.fsub
        dx, dy, zero = sub(x, px), sub(y, py), eight_of(0.0)
        along = add(mul(dx, pcos), mul(dy, psin))
        along = builder.select(builder.fcmp_ordered("<", along, zero), sub(zero, along), along)
        beyond, across = sub(along, half), sub(mul(dy, pcos), mul(dx, psin))
        beyond = builder.select(builder.fcmp_ordered(">", beyond, zero), beyond, zero)
        square = add(mul(beyond, beyond), mul(across, across))
        cost = add(square, mul(angle, sub(sub(eight_of(1.0), mul(cos, pcos)), mul(sin, psin))))
        is_own = builder.icmp_unsigned("<", builder.sub(listed, own), own_count)
        cost = add(cost, builder.select(is_own, zero, stay))
        cost = builder.select(builder.fcmp_ordered("<=", square, most), cost, eight_of(float("inf")))
        least = cost
        for places in ((4, 5, 6, 7, 0, 1, 2, 3), (2, 3, 0, 1, 6, 7, 4, 5), (1, 0, 3, 2, 5, 4, 7, 6)):
            other = shuffled(builder, least, least, places)
            least = builder.select(builder.fcmp_ordered("<", least, other), least, other)
        bits = builder.bitcast(builder.fcmp_ordered("==", cost, least), ir.IntType(EIGHT))
        first = builder.cttz(builder.zext(bits, LONG), ir.Constant(ir.IntType(1), 0))
        found = [builder.extract_element(least, whole_number(0)), first]
        return context.make_tuple(builder, signature.return_type, found)

    return signature, generate


@intrinsic
def eight_contacts(
    typing_context, edges, numbers, k, start, stop, x, y, cos, sin, length, width, twice_x, twice_y, span_x, span_y
):
    """`roads.one_contact` for the segments numbers[k : k + 8], of those at places from start up to stop.

    edges: piece-major. Returns 1 if any touches, and bit i for a move that may cross the segment at place k + i.
    """
    contact_and_near: Any = types.Tuple  # type: ignore[attr-defined]
    signature = contact_and_near([types.int64, types.int64])(
        edges, numbers, types.intp, types.intp, types.intp, *[types.float32] * 10
    )

    def generate(context, builder, signature, args):
        edges, numbers = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1))
        places = builder.add(spread(builder, args[2]), ir.Constant(LONGS, list(range(EIGHT))))
        is_meant = builder.icmp_signed(">=", places, spread(builder, args[3]))
        is_meant = builder.and_(is_meant, builder.icmp_signed("<", places, spread(builder, args[4])))
        several = ir.VectorType(numbers.data.type.pointee, EIGHT)
        place = builder.bitcast(builder.gep(numbers.data, [args[2]]), several.as_pointer())
        listed = builder.load(place, align=NUMBER_BYTES)
        # Nobody waits for segments that are not meant.
        one = spread(builder, builder.load(builder.gep(numbers.data, [args[3]])))
        listed = builder.select(is_meant, listed, one)
        entries = [builder.zext(builder.extract_element(listed, whole_number(i)), LONG) for i in range(EIGHT)]
        x0, y0, x1, y1 = load_entries(builder, edges.data, entries)[:4]
        x, y, cos, sin, length, width, twice_x, twice_y, span_x, span_y = (spread(builder, v) for v in args[5:])
        mul, add, sub = builder.fmul, builder.fadd, builder.fsub

        def turned(a: Any, b: Any) -> tuple[Any, Any]:
            return add(mul(a, cos), mul(b, sin)), sub(mul(b, cos), mul(a, sin))

        def at_most(a: Any, b: Any) -> Any:
            return builder.fcmp_ordered("<=", size_of(builder, a), b)

        dx, dy = sub(x1, x0), sub(y1, y0)
        (u, v), (du, dv) = turned(sub(x0, x), sub(y0, y)), turned(dx, dy)
        touches = at_most(add(add(u, u), du), add(add(length, length), size_of(builder, du)))
        touches = builder.and_(touches, at_most(add(add(v, v), dv), add(add(width, width), size_of(builder, dv))))
        most = add(mul(length, size_of(builder, dv)), mul(width, size_of(builder, du)))
        touches = builder.and_(touches, at_most(sub(mul(u, dv), mul(v, du)), most))
        is_near = at_most(sub(add(x0, x1), twice_x), add(size_of(builder, dx), span_x))
        is_near = builder.and_(is_near, at_most(sub(add(y0, y1), twice_y), add(size_of(builder, dy), span_y)))
        touching, near = (bits_of(builder, builder.and_(flags, is_meant)) for flags in (touches, is_near))
        any_touches = builder.zext(builder.icmp_unsigned("!=", touching, long_number(0)), LONG)
        return context.make_tuple(builder, signature.return_type, [any_touches, near])

    return signature, generate


_eight_lanes, _eight_edges, _eight_partners = _write_eight(LANE), _write_eight(EDGE), _write_eight(PARTNER)


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
    if count < EIGHT or not is_piece_major(table):
        for k in range(count):
            write_one(table, numbers[k], _LANE_SCALES, x, y, cos, sin, row, at + k, n)
        return
    for k in range(0, count, EIGHT):
        first = min(k, count - EIGHT)
        _eight_lanes(table, numbers, first, EIGHT, x, y, cos, sin, row, at + first, n)


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
    if count < EIGHT or not is_piece_major(table):
        for k in range(count):
            write_one(table, numbers[k], _EDGE_SCALES, x, y, cos, sin, row, at + k, n)
        return
    for k in range(0, count, EIGHT):
        first = min(k, count - EIGHT)
        _eight_edges(table, numbers, first, EIGHT, x, y, cos, sin, row, at + first, n)


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
    """The first count of the numbered agents, into a block of n that starts at row[at].

    numbers: count of them, filled up to a multiple of eight with any agents'; they leave zeros in the block.
    """
    if n < EIGHT or not is_piece_major(table):
        for k in range(count):
            write_one(table, numbers[k], _PARTNER_SCALES, x, y, cos, sin, row, at + k, n)
        return
    for k in range(0, count, EIGHT):
        first = min(k, n - EIGHT)
        _eight_partners(table, numbers, first, count - first, x, y, cos, sin, row, at + first, n)
