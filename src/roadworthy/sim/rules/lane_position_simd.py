"""The best lane point among eight: the vectorized part of lane_position.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule, vectors
from roadworthy.kernels.vectors import EIGHT, eight_of, intrinsic, ir, spread_each, types
from roadworthy.scenario.schema import Floats
from roadworthy.sim.state import Pose, Real, Whole

_ZERO, _ONE, _INFINITE = np.float32(0.0), np.float32(1.0), np.float32(np.inf)
Numbers = NDArray[Any]  # integers


@intrinsic
def _nearest_of_eight(typing_context, table, numbers, k, pose, own, costs):
    cost_and_place: Any = types.Tuple
    signature = cost_and_place([types.float32, types.intp])(table, numbers, types.intp, pose, own, costs)

    def generate(context, builder, signature, args):
        table, numbers = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1))
        place = builder.gep(numbers.data, [args[2]])
        several = ir.VectorType(numbers.data.type.pointee, EIGHT)
        listed = builder.load(builder.bitcast(place, several.as_pointer()), align=several.element.width // EIGHT)
        listed = builder.zext(listed, vectors.WHOLES)
        entries = [
            builder.zext(builder.extract_element(listed, vectors.whole_number(i)), vectors.LONG) for i in range(EIGHT)
        ]
        px, py, pcos, psin, half = vectors.load_entries(builder, table.data, entries)[:5]
        x, y, cos, sin, own, own_count, most, angle, stay = spread_each(builder, *args[3:])
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
            other = vectors.shuffled(builder, least, least, places)
            least = builder.select(builder.fcmp_ordered("<", least, other), least, other)
        bits = builder.bitcast(builder.fcmp_ordered("==", cost, least), ir.IntType(EIGHT))
        first = builder.cttz(builder.zext(bits, vectors.LONG), ir.Constant(ir.IntType(1), 0))
        found = [builder.extract_element(least, vectors.whole_number(0)), first]
        return context.make_tuple(builder, signature.return_type, found)

    return signature, generate


def _nearest_one_by_one(
    table: Floats, numbers: Numbers, k: Whole, pose: Pose, own: tuple[Whole, Whole], costs: tuple[Real, Real, Real]
) -> Any:
    (x, y, cos, sin), (own_start, own_count), (most, angle, stay) = pose, own, costs
    least, found = _INFINITE, 0
    for place in range(EIGHT):
        number = np.uint32(numbers[k + place])
        dx, dy, point_cos, point_sin = x - table[0, number], y - table[1, number], table[2, number], table[3, number]
        beyond = max(abs(dx * point_cos + dy * point_sin) - table[4, number], _ZERO)
        across = dy * point_cos - dx * point_sin
        square = beyond * beyond + across * across
        # Below own_start, the difference wraps around.
        stays = _ZERO if np.uint32(number - own_start) < own_count else stay
        cost = square + angle * (_ONE - cos * point_cos - sin * point_sin) + stays
        if square <= most and cost < least:
            least, found = cost, place
    return least, found


@rule(inline=True, cuda=_nearest_one_by_one)
def nearest_of_eight(
    table: Floats, numbers: Numbers, k: Whole, pose: Pose, own: tuple[Whole, Whole], costs: tuple[Real, Real, Real]
) -> Any:
    """Return the lowest cost (see `locate_on_lane`) among the lane points numbers[k : k + 8], and its place there.

    table: entry-major. own: the first point of the current lane, which costs nothing to stay on, and how many it has.
    costs: the largest squared distance, beyond which points cost infinity, and the costs of an angle and of a change.
    """
    return _nearest_of_eight(table, numbers, k, pose, own, costs)
