"""Lane position: which lane an agent is on, and its offset, angle and speed limit there."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT
from roadworthy.scenario.grid import CELL_M, cell_along
from roadworthy.scenario.prepare import PIECE_M
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.maps.road_points import is_entry_major
from roadworthy.sim.rules.lane_position_simd import nearest_of_eight
from roadworthy.sim.state import Maps

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# An agent farther than this from every lane is on none.
ON_LANE_M = np.float32(8.0)
_ON_LANE_SQUARE = np.float32(ON_LANE_M * ON_LANE_M)
# The cost of driving at an angle to a lane, in square meters: a lane at a right angle costs as much as one 1.4 m away,
# an opposite lane as much as one 2 m away. Where two opposite lanes are 3.5 m apart, an agent within 1.2 m of the
# center of the wrong one is on the wrong one.
_ANGLE_SQUARE = np.float32(2.0)
# The cost of changing lanes, in square meters: an agent does not alternate between lanes that overlap at a fork.
_STAY_SQUARE = np.float32(0.04)
_COSTS = (_ON_LANE_SQUARE, _ANGLE_SQUARE, _STAY_SQUARE)
_NO_COST = np.float32(1e9)
_CELL = np.float32(CELL_M)
_LONGEST_HALF_M = np.float32(PIECE_M / 2 + 0.01)  # of a lane point, rounded up


@rule(inline=True)
def locate_on_lane(maps: Maps, m: int, agents: Floats, flags: Ints, a: int) -> None:
    """Write the lane that agent a is on and its position there: LANE and the lines LANE_...

    It is the lane of the point with the lowest cost, among those in the list of the agent's cell within ON_LANE_M. The
    cost is the squared distance to the point, plus 2 m2 * (1 - cosine of the angle between the heading and the lane),
    less 0.04 m2 if the agent was on this lane before. A cell far from roads uses the list of another cell, so the lane
    that is found there may not be the nearest.
    """
    x, y, cos, sin = pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    columns, rows = maps.sizes[m, state.COLUMNS], maps.sizes[m, state.ROWS]
    west, south = maps.origins[m, 0], maps.origins[m, 1]
    column, row = cell_along(x, west, columns), cell_along(y, south, rows)
    entries = maps.lane_lists[m, maps.cell_lists[m, row * columns + column]]
    points, was_on = maps.lane_points[m], flags[state.LANE, a]
    # The points of the lane that it was on have consecutive numbers.
    own, own_count = np.uint32(0), np.uint32(0)
    if was_on >= 0 and was_on < maps.sizes[m, state.LANE_COUNT]:
        own = np.uint32(maps.lanes[m, state.LANE_POINT_START, was_on])
        own_count = np.uint32(maps.lanes[m, state.LANE_POINT_START, was_on + 1] - own)
    px, py, phalf = points[state.POINT_X], points[state.POINT_Y], points[state.POINT_HALF]
    pcos, psin = points[state.POINT_COS], points[state.POINT_SIN]
    count = min(len(entries), maps.sizes[m, state.LANE_POINT_COUNT])
    middle_x = west + (np.float32(column) + _HALF) * _CELL
    middle_y = south + (np.float32(row) + _HALF) * _CELL
    off_middle = np.sqrt((x - middle_x) * (x - middle_x) + (y - middle_y) * (y - middle_y))

    # Compare eight entries before asking whether more are needed; for 95% of agents they are not.
    takes_eight = count >= EIGHT and is_entry_major(points)
    least, found = _NO_COST, -1
    for first in range(0, count, EIGHT):
        last = min(first + EIGHT, count)
        if takes_eight:
            begin = last - EIGHT
            cost, place = nearest_of_eight(points, entries, begin, pose, (own, own_count), _COSTS)
            if cost < least:
                least, found = cost, begin + place
        else:
            for place in range(first, last):
                k = np.uint32(entries[place])
                dx, dy, c, s = x - px[k], y - py[k], pcos[k], psin[k]
                beyond = max(abs(dx * c + dy * s) - phalf[k], _ZERO)
                across = dy * c - dx * s
                square = beyond * beyond + across * across
                # Below own, the difference wraps around.
                stays = _ZERO if np.uint32(k - own) < own_count else _STAY_SQUARE
                cost = square + _ANGLE_SQUARE * (_ONE - cos * c - sin * s) + stays
                if (square <= _ON_LANE_SQUARE) & (cost < least):
                    least, found = cost, place
        # Entries are sorted by their distance to the middle of the cell, so the rest is at least this far away.
        k = entries[last - 1]
        dx, dy = px[k] - middle_x, py[k] - middle_y
        away = np.sqrt(dx * dx + dy * dy) - off_middle - _LONGEST_HALF_M
        if away > _ZERO and away * away > least:
            break
    if found < 0:
        flags[state.LANE, a] = -1
        agents[state.LANE_OFFSET, a], agents[state.LANE_COS, a], agents[state.LANE_SIN, a] = _ZERO, _ONE, _ZERO
        agents[state.LANE_LIMIT, a] = _ZERO
        return
    k = entries[found]
    c, s = pcos[k], psin[k]
    # Most agents stay on their lane, and looking up the lane of the point would stall.
    if not np.uint32(np.uint32(k) - own) < own_count:
        flags[state.LANE, a] = maps.lane_point_lanes[m, k]
    agents[state.LANE_OFFSET, a] = (y - py[k]) * c - (x - px[k]) * s
    agents[state.LANE_COS, a] = cos * c + sin * s
    agents[state.LANE_SIN, a] = sin * c - cos * s
    agents[state.LANE_LIMIT, a] = points[state.POINT_LIMIT, k]
