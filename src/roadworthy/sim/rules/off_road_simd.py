"""Contacts of a box and a move with road edges, eight segments at a time on the CPU: part of off_road.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule, vectors
from roadworthy.kernels.vectors import EIGHT, bits_of, intrinsic, ir, size_of, spread, spread_each, types
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import Pose, Real, Whole

Numbers = tuple[Real, ...]


@rule(inline=True)
def one_contact(edges: Floats, number: Whole, pose: Pose, half: Numbers, move: Numbers) -> tuple[Any, Any]:
    """Return 1 or 0 for whether a segment touches a box, and for whether a move may cross it.

    half: half of the box's length and width. move: the sum of its start and end, and its size, rounded up; x, y each.
    """
    (x, y, cos, sin), (length, width), (twice_x, twice_y, span_x, span_y) = pose, half, move
    x0, y0, x1, y1 = edges[0, number], edges[1, number], edges[2, number], edges[3, number]
    dx, dy = x1 - x0, y1 - y0
    # In the box's own frame: the segment's start and extent, along (u) and across (v) the box.
    u, v = (x0 - x) * cos + (y0 - y) * sin, (y0 - y) * cos - (x0 - x) * sin
    du, dv = dx * cos + dy * sin, dy * cos - dx * sin
    touches = (
        (abs(u + u + du) <= length + length + abs(du))
        & (abs(v + v + dv) <= width + width + abs(dv))
        & (abs(u * dv - v * du) <= length * abs(dv) + width * abs(du))
    )
    is_near = (abs(x0 + x1 - twice_x) <= abs(dx) + span_x) & (abs(y0 + y1 - twice_y) <= abs(dy) + span_y)
    return np.int64(touches), np.int64(is_near)


def _contacts_one_by_one(
    edges: Floats, numbers: Ints, k: Whole, start: Whole, stop: Whole, pose: Pose, half: Numbers, move: Numbers
) -> Any:
    touches, near = np.int64(0), np.int64(0)
    for place in range(max(k, start), min(k + EIGHT, stop)):
        touching, is_near = one_contact(edges, numbers[place], pose, half, move)
        touches |= touching
        near |= is_near << (place - k)
    return touches, near


@intrinsic
def _eight_contacts(typing_context, edges, numbers, k, start, stop, pose, half, move):
    contact_and_near: Any = types.UniTuple(types.int64, 2)
    signature = contact_and_near(edges, numbers, types.intp, types.intp, types.intp, pose, half, move)

    def generate(context, builder, signature, args):
        edges, numbers = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1))
        places = builder.add(spread(builder, args[2]), ir.Constant(vectors.LONGS, list(range(EIGHT))))
        is_meant = builder.icmp_signed(">=", places, spread(builder, args[3]))
        is_meant = builder.and_(is_meant, builder.icmp_signed("<", places, spread(builder, args[4])))
        several = ir.VectorType(numbers.data.type.pointee, EIGHT)
        place = builder.bitcast(builder.gep(numbers.data, [args[2]]), several.as_pointer())
        listed = builder.load(place, align=vectors.NUMBER_BYTES)
        # Lanes of the vector without a segment repeat the first one, so that they do not load anything else.
        one = spread(builder, builder.load(builder.gep(numbers.data, [args[3]])))
        listed = builder.select(is_meant, listed, one)
        entries = [
            builder.zext(builder.extract_element(listed, vectors.whole_number(i)), vectors.LONG) for i in range(EIGHT)
        ]
        x0, y0, x1, y1 = vectors.load_entries(builder, edges.data, entries)[:4]
        x, y, cos, sin, length, width, twice_x, twice_y, span_x, span_y = spread_each(builder, *args[5:])
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
        any_touches = builder.zext(builder.icmp_unsigned("!=", touching, vectors.long_number(0)), vectors.LONG)
        return context.make_tuple(builder, signature.return_type, [any_touches, near])

    return signature, generate


@rule(inline=True, cuda=_contacts_one_by_one)
def eight_contacts(
    edges: Floats, numbers: Ints, k: Whole, start: Whole, stop: Whole, pose: Pose, half: Numbers, move: Numbers
) -> Any:
    """Test the segments numbers[k : k + 8] at places from start to stop - 1, as `one_contact` does.

    edges: entry-major. Return 1 if any touches, and bit i for a move that may cross the segment at place k + i.
    """
    return _eight_contacts(edges, numbers, k, start, stop, pose, half, move)
