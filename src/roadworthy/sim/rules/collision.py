"""Which agents' boxes touch: exact oriented boxes of true size, after a look at the distances of all others."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import COS, IS_PRESENT, LENGTH, RADIUS, SIN, WIDTH, X, Y

_HALF = np.float32(0.5)
# Added to the sum of two radii, so that rounding never keeps a pair from the exact test.
_SLACK_M = np.float32(0.01)
_NONE, _ONE = np.int32(0), np.int32(1)  # as wide as a float32, so that counting stays in the same vectors


@rule(inline=True)
def boxes_touch(
    ax: float,
    ay: float,
    acos: float,
    asin: float,
    alength: float,
    awidth: float,
    bx: float,
    by: float,
    bcos: float,
    bsin: float,
    blength: float,
    bwidth: float,
) -> bool:
    """Whether two boxes share a point: no side of either separates them. Boxes that just touch do; NaN touches nothing.

    Exact but for the rounding of float32: boxes within some micrometres of touching may be judged either way.
    """
    dx, dy = bx - ax, by - ay
    # The angle between the boxes; its signs don't matter, boxes being symmetric.
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
def _pair_touches(first: Floats, f: int, second: Floats, s: int) -> bool:
    """Whether the boxes in two columns touch."""
    return boxes_touch(
        first[X, f],
        first[Y, f],
        first[COS, f],
        first[SIN, f],
        first[LENGTH, f],
        first[WIDTH, f],
        second[X, s],
        second[Y, s],
        second[COS, s],
        second[SIN, s],
        second[LENGTH, s],
        second[WIDTH, s],
    )


@rule(inline=True)
def is_near_others(agents: Floats, flags: Ints, a: int, count: int) -> bool:
    """Whether agent a, if it is present, might touch any other agent among 0..count-1 that is."""
    x, y, radius = agents[X, a], agents[Y, a], agents[RADIUS, a] + _SLACK_M
    xs, ys, radii, is_present = agents[X], agents[Y], agents[RADIUS], flags[IS_PRESENT]
    # No branch in here: the compiler makes it a few vector instructions, and for most agents this is all.
    near = _NONE
    for b in range(count):
        dx, dy, reach = xs[b] - x, ys[b] - y, radii[b] + radius
        is_near = (dx * dx + dy * dy <= reach * reach) & (is_present[b] != _NONE)
        near = np.int32(near + (_ONE if is_near else _NONE))
    return bool(near > _ONE and is_present[a] != _NONE)  # an agent that is present is near itself


@rule(inline=True)
def touches(agents: Floats, flags: Ints, a: int, b: int) -> bool:
    """Whether the box of agent a, which is present, touches that of another agent b, if that is."""
    dx, dy, reach = agents[X, b] - agents[X, a], agents[Y, b] - agents[Y, a], agents[RADIUS, b] + agents[RADIUS, a]
    reach += _SLACK_M
    if not dx * dx + dy * dy <= reach * reach or flags[IS_PRESENT, b] == _NONE or a == b:
        return False
    # The lower number comes first, so that rounding is the same for both: contact is always mutual.
    return _pair_touches(agents, min(a, b), agents, max(a, b))


@rule(inline=True)
def collides(agents: Floats, flags: Ints, a: int, count: int) -> bool:
    """Whether agent a's box touches that of any other agent among 0..count-1; only agents that are present count."""
    if not is_near_others(agents, flags, a, count):
        return False
    for b in range(count):
        if touches(agents, flags, a, b):
            return True
    return False


@rule(inline=True)
def is_free(agents: Floats, flags: Ints, a: int, places: Floats, count: int) -> bool:
    """Whether agent a's box, at its place in `places` (lines as of agents), touches none of the others present."""
    for b in range(count):
        if b != a and flags[IS_PRESENT, b] and _pair_touches(places, a, agents, b):
            return False
    return True
