"""Signed distance to the nearest other agent, between boxes with rounded corners.

A box is a core rectangle and everything within a radius of it. The distance of two boxes is that of their cores less
both radii; the distance of two cores is that of the origin from their Minkowski difference, a polygon of eight corners.
Every operation is float32, in the order in which the reference has it: corners some kilometers from the origin are
rounded to fractions of a millimeter, and two orders of the same sum don't round alike.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.metrics.realism.scene import Motion, Scene
from roadworthy.scenario.schema import Floats

NOBODY = np.float32(1e10)  # the distance if no other agent is present
_ROUNDING = np.float32(0.7)  # share of the half of the shorter side that becomes the radius

_HALF = np.float32(0.5)
_TWO = np.float32(2.0)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_INFINITY = np.float32(np.inf)
_NAN = np.float32(np.nan)

# Rounding moves a distance by some units in the last place of a coordinate. A pair is left out of the exact
# computation only if it is farther than another by more than that, whatever the exact result.
_SLACK_M = np.float32(0.01)
_SLACK_SHARE = np.float32(1e-5)


def distance_to_nearest_object(scene: Scene, motion: Motion) -> Floats:
    """Return the distance in m, (R, E, S), negative for overlaps; NaN if a present agent has no position."""
    radius = np.minimum(scene.length, scene.width) * _ROUNDING * _HALF
    core = np.stack([scene.length, scene.width]) - _TWO * radius
    rollouts, _, steps = motion.x.shape
    found = np.full((rollouts, scene.evaluated, steps - scene.first), np.nan, np.float32)
    _nearest(motion, core, radius, scene.first, found)
    return found


@kernel
def _nearest(motion: Motion, core: Floats, radius: Floats, first: int, found: Floats) -> None:
    rollouts, agents, steps = motion.x.shape
    corners = np.empty((agents, 4, 2), np.float32)
    reach = np.empty(agents, np.float32)
    bounds = np.empty(agents, np.float32)
    for agent in range(agents):
        reach[agent] = (
            np.sqrt(core[0, agent] * core[0, agent] + core[1, agent] * core[1, agent]) * _HALF + radius[agent]
        )
    for rollout in range(rollouts):
        for step in range(first, steps):
            for agent in range(agents):
                _set_corners(corners[agent], motion, (rollout, agent, step), core[0, agent], core[1, agent])
            for agent in range(found.shape[1]):
                nearest = _of_one(motion, (rollout, agent, step), corners, radius, reach, bounds)
                found[rollout, agent, step - first] = nearest


@kernel
def _of_one(
    motion: Motion, place: tuple[int, int, int], corners: Floats, radius: Floats, reach: Floats, bounds: Floats
) -> np.float32:
    """Check the pair with the smallest lower bound first, then pairs that could be nearer."""
    (rollout, agent, step), x, y, valid = place, motion.x, motion.y, motion.valid
    if not valid[agent, step]:
        return NOBODY
    here_x, here_y = x[rollout, agent, step], y[rollout, agent, step]
    slack = _SLACK_M + _SLACK_SHARE * (abs(here_x) + abs(here_y))
    lowest = -1
    for other in range(x.shape[1]):
        if other == agent or not valid[other, step]:
            continue
        away_x, away_y = x[rollout, other, step] - here_x, y[rollout, other, step] - here_y
        away = np.sqrt(away_x * away_x + away_y * away_y)
        bounds[other] = away * (_ONE - _SLACK_SHARE) - reach[agent] - reach[other] - slack
        if lowest < 0 or not bounds[other] >= bounds[lowest]:
            lowest = other
    if lowest < 0:
        return NOBODY
    best = _distance(corners[agent], corners[lowest]) - radius[agent] - radius[lowest]
    for other in range(x.shape[1]):
        if np.isnan(best):
            break
        if other != agent and other != lowest and valid[other, step] and not bounds[other] > best:
            distance = _distance(corners[agent], corners[other]) - radius[agent] - radius[other]
            if not distance >= best:
                best = distance
    return best


@kernel
def _set_corners(
    corners: Floats, motion: Motion, place: tuple[int, int, int], length: np.float32, width: np.float32
) -> None:
    """Counter-clockwise from the front left."""
    x, y, cos, sin = motion.x[place], motion.y[place], motion.cos[place], motion.sin[place]
    for corner in range(4):
        ahead = length * _HALF if corner == 0 or corner == 3 else -length * _HALF
        left = width * _HALF if corner < 2 else -width * _HALF
        corners[corner, 0] = cos * ahead - sin * left + x
        corners[corner, 1] = sin * ahead + cos * left + y


@kernel
def _distance(one: Floats, other: Floats) -> np.float32:
    """Of two core rectangles. Corner by corner round the difference polygon, edges of one and of the other by turns.

    So far away that corners round to the same float32, an edge has no length. It has no distance and no inside then.
    """
    one_first, other_first = 0, 0
    for corner in range(1, 4):
        if one[corner, 1] < one[one_first, 1]:
            one_first = corner
        if -other[corner, 1] < -other[other_first, 1]:
            other_first = corner
    one_x, one_y = _direction(one, one_first, _ONE)
    other_x, other_y = _direction(other, other_first, -_ONE)
    one_leads = 1 if one_x * other_y - one_y * other_x >= _ZERO else 0
    nearest = _INFINITY
    is_inside = True
    a, b = one_first, other_first
    x, y = one[a, 0] - other[b, 0], one[a, 1] - other[b, 1]
    for edge in range(8):
        if (edge & 1) ^ one_leads:
            a = (a + 1) & 3
        else:
            b = (b + 1) & 3
        next_x, next_y = one[a, 0] - other[b, 0], one[a, 1] - other[b, 1]
        along_x, along_y = next_x - x, next_y - y
        length = np.sqrt(along_x * along_x + along_y * along_y)
        to_corner = np.sqrt(x * x + y * y)
        if not to_corner >= nearest:
            nearest = to_corner
        if length > _ZERO:
            along_x, along_y = along_x / length, along_y / length
            outward = along_x * y - along_y * x
            is_inside = is_inside and outward <= _ZERO
            share = -(along_x * x + along_y * y) / length
            if share >= _ZERO and share <= _ONE and abs(outward) < nearest:
                nearest = abs(outward)
        else:
            is_inside = False
        x, y = next_x, next_y
    return -nearest if is_inside else nearest


@kernel
def _direction(corners: Floats, corner: int, sign: np.float32) -> tuple[np.float32, np.float32]:
    """Return the unit vector along the edge that starts at a corner; NaN if the edge has no length."""
    after = (corner + 1) & 3
    x = sign * corners[after, 0] - sign * corners[corner, 0]
    y = sign * corners[after, 1] - sign * corners[corner, 1]
    length = np.sqrt(x * x + y * y)
    return (x / length, y / length) if length > _ZERO else (_NAN, _NAN)
