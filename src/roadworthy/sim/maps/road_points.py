"""Road pieces and partners as an agent sees them, written eight at a time on the CPU.

An observation stores the entries of a block feature by feature, while the numbers of one entry are used together. LLVM
leaves a loop over numbered entries scalar, since for all it knows a store to the row could change the table. So tables
lie entry by entry in memory (`entry_major`), and eight entries are loaded here as vectors, transposed in registers,
moved into the agent's frame and stored. `write_one` is the same for a single entry, of a table of any layout.
`nearest_of_eight` and `eight_contacts` ask the questions of roads.py in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import (
    EIGHT,
    FLOATS,
    LONG,
    LONGS,
    NUMBER_BYTES,
    WHOLES,
    eight_of,
    intrinsic,
    ir,
    load_entries,
    long_number,
    shuffled,
    spread,
    types,
    whole_number,
)
from roadworthy.scenario.schema import Floats
from roadworthy.sim.layout import CLIP, EDGE, LANE, PARTNER, Feature

_ENTRY_BYTES = NUMBER_BYTES * EIGHT
_ZERO, _ONE, _INFINITE = np.float32(0.0), np.float32(1.0), np.float32(np.inf)
_HIGH, _LOW = np.float32(CLIP), np.float32(-CLIP)
LANE_SCALES = tuple(np.float32(1.0 / f.scale) for f in LANE)
EDGE_SCALES = tuple(np.float32(1.0 / f.scale) for f in EDGE)
PARTNER_SCALES = tuple(np.float32(1.0 / f.scale) for f in PARTNER)

Numbers = NDArray[Any]  # whole numbers
# A float32, and an integer of any width, Python's or NumPy's: no type of either's takes both.
Real = Any
Whole = Any


def entry_major(shape: tuple[int, int, int]) -> Floats:
    """Zeros of shape (tables, lines, entries), at most eight lines; the numbers of an entry lie side by side."""
    tables, lines, entries = shape
    return np.zeros((tables, entries, EIGHT), np.float32)[:, :, :lines].transpose(0, 2, 1)


def _always(table: Floats) -> bool:
    return True


@rule(inline=True, cuda=_always)
def is_entry_major(table: Floats) -> bool:
    """Whether a table (lines, entries) lies entry by entry in memory, with room for eight numbers each."""
    return table.strides[0] == NUMBER_BYTES and table.strides[1] == _ENTRY_BYTES


@rule(inline=True)
def clipped(value: Real) -> Any:
    """The value within -CLIP and CLIP; NaN becomes -CLIP."""
    value = value if value > _LOW else _LOW
    return value if value < _HIGH else _HIGH


@rule(inline=True)
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
    write_entry(load_entry(table, number), scales, x, y, cos, sin, row, at, n)


@rule(inline=True)
def write_entry(
    entry: tuple[Real, ...],
    scales: tuple[Real, ...],
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    row: Floats,
    at: Whole,
    n: Whole,
) -> None:
    """`write_one`, for who has loaded the entry."""
    dx, dy = entry[0] - x, entry[1] - y
    row[at] = clipped((dx * cos + dy * sin) * scales[0])
    row[at + n] = clipped((dy * cos - dx * sin) * scales[1])
    row[at + 2 * n] = clipped(entry[2] * cos + entry[3] * sin)
    row[at + 3 * n] = clipped(entry[3] * cos - entry[2] * sin)
    for f in range(4, len(scales)):
        row[at + f * n] = clipped(entry[f] * scales[f])


@rule(inline=True)
def load_entry(table: Floats, number: Whole) -> Any:
    """The numbers of an entry; lines that the table does not have are 0."""
    lines = table.shape[0]
    return (
        table[0, number],
        table[1, number],
        table[2, number],
        table[3, number],
        table[4, number],
        table[5, number] if lines > 5 else _ZERO,
        table[6, number] if lines > 6 else _ZERO,
        table[7, number] if lines > 7 else _ZERO,
    )


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
def _nearest_of_eight(typing_context, table, numbers, k, x, y, cos, sin, own, own_count, most, angle, stay):
    cost_and_place: Any = types.Tuple
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


def _nearest_one_by_one(
    table: Floats,
    numbers: Numbers,
    k: Whole,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    own: Whole,
    own_count: Whole,
    most: Real,
    angle: Real,
    stay: Real,
) -> Any:
    least, found = _INFINITE, 0
    for place in range(EIGHT):
        number = np.uint32(numbers[k + place])
        dx, dy, point_cos, point_sin = x - table[0, number], y - table[1, number], table[2, number], table[3, number]
        beyond = max(abs(dx * point_cos + dy * point_sin) - table[4, number], _ZERO)
        across = dy * point_cos - dx * point_sin
        square = beyond * beyond + across * across
        # Below own, the difference wraps around.
        stays = _ZERO if np.uint32(number - own) < own_count else stay
        cost = square + angle * (_ONE - cos * point_cos - sin * point_sin) + stays
        if square <= most and cost < least:
            least, found = cost, place
    return least, found


@rule(inline=True, cuda=_nearest_one_by_one)
def nearest_of_eight(
    table: Floats,
    numbers: Numbers,
    k: Whole,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    own: Whole,
    own_count: Whole,
    most: Real,
    angle: Real,
    stay: Real,
) -> Any:
    """The least cost of a lane to be on (see `roads.locate`) among the pieces numbers[k : k + 8], and its place there.

    table: piece-major. own, own_count: which pieces cost nothing to stay on; most: the largest square of a distance;
    angle, stay: costs. Pieces further away cost infinitely much.
    """
    return _nearest_of_eight(table, numbers, k, x, y, cos, sin, own, own_count, most, angle, stay)


_eight_lanes, _eight_edges, _eight_partners = _write_eight(LANE), _write_eight(EDGE), _write_eight(PARTNER)


@rule(inline=True)
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
    if count < EIGHT or not is_entry_major(table):
        for k in range(count):
            write_one(table, numbers[k], LANE_SCALES, x, y, cos, sin, row, at + k, n)
        return
    for k in range(0, count, EIGHT):
        first = min(k, count - EIGHT)
        _eight_lanes(table, numbers, first, EIGHT, x, y, cos, sin, row, at + first, n)


@rule(inline=True)
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
    if count < EIGHT or not is_entry_major(table):
        for k in range(count):
            write_one(table, numbers[k], EDGE_SCALES, x, y, cos, sin, row, at + k, n)
        return
    for k in range(0, count, EIGHT):
        first = min(k, count - EIGHT)
        _eight_edges(table, numbers, first, EIGHT, x, y, cos, sin, row, at + first, n)


@rule(inline=True)
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
    if n < EIGHT or not is_entry_major(table):
        for k in range(count):
            write_one(table, numbers[k], PARTNER_SCALES, x, y, cos, sin, row, at + k, n)
        return
    for k in range(0, count, EIGHT):
        first = min(k, n - EIGHT)
        _eight_partners(table, numbers, first, count - first, x, y, cos, sin, row, at + first, n)
