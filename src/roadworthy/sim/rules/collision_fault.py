"""Contacts with other agents, and whether the agent is at fault for them.

roadworthy/at_fault.py defines the rule; here it is compiled for CPU and GPU and applied to the world's arrays. TOUCHED
has a bit for every agent that was touched before, so that each counts once per trial. Almost always nobody is near, and
then all of this costs one comparison.
"""

from __future__ import annotations

import numpy as np

from roadworthy import at_fault
from roadworthy.kernels import rule
from roadworthy.scenario.prepare import PIECE_M
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.collision import is_near_others, touches
from roadworthy.sim.state import Maps

collision_type = rule(at_fault.collision_type)
is_at_fault = rule(at_fault.is_at_fault)

_LATERAL = int(at_fault.CollisionType.LATERAL)
# Corners of a box, as bits.
FRONT_LEFT, FRONT_RIGHT, REAR_LEFT, REAR_RIGHT = 1, 2, 4, 8
_FRONT, _REAR = FRONT_LEFT | FRONT_RIGHT, REAR_LEFT | REAR_RIGHT
_ZERO, _HALF = np.float32(0.0), np.float32(0.5)
_BIT = np.int32(1)
_BITS = 32  # bits in a line of TOUCHED
_LONGEST_POINT_M = np.float32(PIECE_M + 0.02)  # the longest lane point, rounded up


@rule(inline=True)
def record_contacts(agents: Floats, flags: Ints, a: int, count: int, maps: Maps, m: int) -> tuple[bool, int]:
    """Return whether agent a touches another, and for how many first contacts of this step it is at fault."""
    if not is_near_others(agents, flags, a, count):
        return False, 0
    return _record_contacts(agents, flags, a, count, maps, m)


@rule
def _record_contacts(agents: Floats, flags: Ints, a: int, count: int, maps: Maps, m: int) -> tuple[bool, int]:
    is_touching, faults = False, 0
    for b in range(count):
        if touches(agents, flags, a, b):
            is_touching = True
            if _is_first(flags, a, b) and _is_at_fault(agents, flags, a, b, maps, m):
                faults += 1
    return is_touching, faults


@rule
def start_contacts(agents: Floats, flags: Ints, a: int, count: int) -> bool:
    """Reset the record of touched agents to those touched at the start, and return whether there are any."""
    for line in range(state.TOUCHED, state.TOUCHED + state.TOUCHED_LINES):
        flags[line, a] = 0
    is_touching = False
    if is_near_others(agents, flags, a, count):
        for b in range(count):
            if touches(agents, flags, a, b):
                is_touching = True
                _is_first(flags, a, b)
    return is_touching


@rule(inline=True)
def _is_first(flags: Ints, a: int, b: int) -> bool:
    """Record that agent a touches agent b, and return whether it is the first time."""
    line, bit = state.TOUCHED + b // _BITS, _BIT << np.int32(b % _BITS)
    before = flags[line, a]
    flags[line, a] = before | bit
    return bool(before & bit == 0)


@rule
def _is_at_fault(agents: Floats, flags: Ints, a: int, b: int, maps: Maps, m: int) -> bool:
    """Return whether agent a is at fault for touching agent b."""
    kind = collision_type(
        agents[state.X, a],
        agents[state.Y, a],
        agents[state.COS, a],
        agents[state.SIN, a],
        agents[state.LENGTH, a],
        agents[state.WIDTH, a],
        agents[state.SPEED, a],
        agents[state.X, b],
        agents[state.Y, b],
        agents[state.COS, b],
        agents[state.SIN, b],
        agents[state.LENGTH, b],
        agents[state.WIDTH, b],
        agents[state.SPEED, b],
        flags[state.ROLE, b] == state.STATIC,
    )
    return is_at_fault(kind, kind == _LATERAL and is_within_lanes(agents, a, maps, m))


@rule
def is_within_lanes(agents: Floats, a: int, maps: Maps, m: int) -> bool:
    """Return whether agent a's four corners are within one lane or connected lanes, as at_fault.py defines it."""
    successors, starts = maps.successors[m], maps.lanes[m, state.LANE_SUCCESSOR_START]
    for first in range(maps.sizes[m, state.LANE_COUNT]):
        held = corners_in_lane(agents, a, maps, m, first)
        if held & _REAR == 0:
            continue
        # The first lane holds a rear corner. It, or a lane that follows it, is the lane that connects all corners.
        for k in range(starts[first] - 1, starts[first + 1]):
            lane = first
            if k >= starts[first]:
                lane = successors[k]
            own = corners_in_lane(agents, a, maps, m, lane)
            if (held | own) & _REAR != _REAR:
                continue
            front = own & _FRONT
            for further in range(starts[lane], starts[lane + 1]):
                front |= corners_in_lane(agents, a, maps, m, successors[further]) & _FRONT
            if front == _FRONT:
                return True
    return False


@rule
def corners_in_lane(agents: Floats, a: int, maps: Maps, m: int, lane: int) -> int:
    """Return the corners of agent a's box that are within half a lane's width of its center line, as bits."""
    boxes, points, starts = maps.lane_boxes[m], maps.lane_points[m], maps.lanes[m, state.LANE_POINT_START]
    x, y, radius = agents[state.X, a], agents[state.Y, a], agents[state.RADIUS, a]
    if x + radius < boxes[state.BOX_WEST, lane] or x - radius > boxes[state.BOX_EAST, lane]:
        return 0
    if y + radius < boxes[state.BOX_SOUTH, lane] or y - radius > boxes[state.BOX_NORTH, lane]:
        return 0
    cos, sin, half_width = agents[state.COS, a], agents[state.SIN, a], boxes[state.BOX_HALF_WIDTH, lane]
    half_long, half_wide = _HALF * agents[state.LENGTH, a], _HALF * agents[state.WIDTH, a]
    reach = radius + half_width + _HALF * _LONGEST_POINT_M
    held, i, end = 0, starts[lane], starts[lane + 1]
    while i < end:
        off_x, off_y = x - points[state.POINT_X, i], y - points[state.POINT_Y, i]
        away = np.sqrt(off_x * off_x + off_y * off_y) - reach
        if away > _ZERO:  # no lane point within that distance along the lane is near
            i += max(int(away / _LONGEST_POINT_M), 1)
            continue
        point_cos, point_sin, half = points[state.POINT_COS, i], points[state.POINT_SIN, i], points[state.POINT_HALF, i]
        for corner in range(4):
            ahead = half_long if corner < 2 else -half_long
            left = half_wide if corner % 2 == 0 else -half_wide
            dx, dy = off_x + ahead * cos - left * sin, off_y + ahead * sin + left * cos
            beyond = max(abs(dx * point_cos + dy * point_sin) - half, _ZERO)
            across = dy * point_cos - dx * point_sin
            if beyond * beyond + across * across <= half_width * half_width:
                held |= 1 << corner
        i += 1
    return held
