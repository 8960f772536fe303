"""Collisions: which boxes touch, by an exact test of oriented boxes after a rough test of distances."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import COS, IS_PRESENT, LENGTH, RADIUS, SIN, WIDTH, Real, X, Y

Box = tuple[Real, Real, Real, Real, Real, Real]  # x, y, cosine and sine of the heading, length, width

_HALF = np.float32(0.5)
# Added to the sum of two radii, so that rounding never excludes a pair from the exact test.
_SLACK_M = np.float32(0.01)
_NONE, _ONE = np.int32(0), np.int32(1)  # as wide as a float32, so that vectorized code can count in the same registers


@rule(inline=True)
def box_of(agents: Floats, a: int) -> Box:
    """Return the box of agent a."""
    return agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a], agents[LENGTH, a], agents[WIDTH, a]


@rule(inline=True)
def boxes_touch(a: Box, b: Box) -> bool:
    """Return whether two boxes share a point: no side of either separates them. NaN touches nothing.

    Boxes that just touch share a point. The test is exact up to rounding in float32: boxes within some micrometers of
    touching may be judged either way.
    """
    (ax, ay, acos, asin, alength, awidth), (bx, by, bcos, bsin, blength, bwidth) = a, b
    dx, dy = bx - ax, by - ay
    # The angle between the boxes; its signs do not matter because boxes are symmetric.
    cos = abs(acos * bcos + asin * bsin)
    sin = abs(acos * bsin - asin * bcos)
    a_long, a_wide, b_long, b_wide = _HALF * alength, _HALF * awidth, _HALF * blength, _HALF * bwidth
    return bool(
        (abs(dx * acos + dy * asin) <= a_long + b_long * cos + b_wide * sin)
        & (abs(dy * acos - dx * asin) <= a_wide + b_long * sin + b_wide * cos)
        & (abs(dx * bcos + dy * bsin) <= b_long + a_long * cos + a_wide * sin)
        & (abs(dy * bcos - dx * bsin) <= b_wide + a_long * sin + a_wide * cos)
    )


@rule(inline=True)
def is_near_others(agents: Floats, flags: Ints, a: int, count: int) -> bool:
    """Return whether agent a, if present, might touch any other present agent among the first `count`."""
    x, y, radius = agents[X, a], agents[Y, a], agents[RADIUS, a] + _SLACK_M
    xs, ys, radii, is_present = agents[X], agents[Y], agents[RADIUS], flags[IS_PRESENT]
    # Without a branch the compiler vectorizes this loop, and it is all that most agents need.
    near = _NONE
    for b in range(count):
        dx, dy, reach = xs[b] - x, ys[b] - y, radii[b] + radius
        is_near = (dx * dx + dy * dy <= reach * reach) & (is_present[b] != _NONE)
        near = np.int32(near + (_ONE if is_near else _NONE))
    return bool(near > _ONE and is_present[a] != _NONE)  # an agent that is present is near itself


@rule(inline=True)
def touches(agents: Floats, flags: Ints, a: int, b: int) -> bool:
    """Return whether the box of agent a, which is present, touches that of another present agent b."""
    dx, dy, reach = agents[X, b] - agents[X, a], agents[Y, b] - agents[Y, a], agents[RADIUS, b] + agents[RADIUS, a]
    reach += _SLACK_M
    if not dx * dx + dy * dy <= reach * reach or flags[IS_PRESENT, b] == _NONE or a == b:
        return False
    # The lower number comes first, so that rounding is the same for both: contact is always mutual.
    return boxes_touch(box_of(agents, min(a, b)), box_of(agents, max(a, b)))


@rule(inline=True)
def collides(agents: Floats, flags: Ints, a: int, count: int) -> bool:
    """Return whether agent a's box touches that of any other present agent among the first `count`."""
    if not is_near_others(agents, flags, a, count):
        return False
    for b in range(count):
        if touches(agents, flags, a, b):
            return True
    return False
