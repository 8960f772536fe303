"""Right of way where two routes meet: which agent goes first, and how the other one yields.

Every function takes a pair in a fixed order (the lower number first), so that both agents come to the same answer from
the same numbers. Priority has, in this order: the agent inside the conflict zone; the agent that cannot stop before it;
a moving agent before a standing one; among moving agents the one that arrives first, with a delay for turning; among
standing agents the one that a draw names, which changes every few seconds so that no deadlock lasts. An agent that a
light, a sign or a queue holds up does not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints, LaneType
from roadworthy.sim import state
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.route_geometry import (
    FAR,
    Box,
    Real,
    Road,
    bounds,
    is_any_near,
    point_at,
    route_bounds,
    route_pose,
)
from roadworthy.sim.rules.stop_ahead import stop_ahead
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

# How far ahead conflicts are searched: across a junction, and for some seconds.
_JUNCTION_M, _OUTLOOK_M, _OUTLOOK_S = np.float32(27.0), np.float32(9.0), np.float32(3.5)
_SPACING_M, _STRIDE_M = np.float32(2.0), np.float32(4.0)  # of the points of a route that are compared
_MARGIN_M = np.float32(0.4)  # between the sides of two agents that pass each other
_FREEWAY = int(LaneType.FREEWAY)
_PARALLEL = np.float32(0.8)  # cosine of the angle between routes that merge rather than cross
_STANDING_MPS = np.float32(0.3)
_QUEUE_M = np.float32(6.0)  # an agent that stands farther than this from its lane's end is held up by something else
_COMMITTED_BRAKING = np.float32(4.0)  # m/s2; an agent that would have to brake harder cannot stop
_TURN_S = np.float32(4.0)  # added for turning agents, times 1 - cosine of the angle
_TURN_STEPS = 40  # for which a draw among standing agents holds
_STARTING, _SPEEDING = np.float32(1.5), np.float32(0.8)  # m/s2 at which others are expected to accelerate
_PACE_MPS = np.float32(6.0)  # minimum speed at which an agent crosses a junction, once moving
_AFTER_S, _BEFORE_S = np.float32(0.5), np.float32(1.0)  # kept behind and before another agent
_STOP_SHORT_M = np.float32(1.0)
_SLACK_M = np.float32(1.0e-3)  # for the rounding of lengths
_LEAST_SQUARE = np.float32(1.0e-6)
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)

# How firmly an agent is committed to using a conflict zone.
_HELD_UP, _STANDING, _MOVING, _COMMITTED, _INSIDE = range(5)


@rule
def conflict_range(agents: Floats, a: int) -> Real:
    """Return how far ahead of its center an agent's route matters to others, in m."""
    return _HALF * agents[state.LENGTH, a] + max(_OUTLOOK_M + _OUTLOOK_S * agents[state.SPEED, a], _JUNCTION_M)


@rule
def route_box(road: Road, agents: Floats, flags: Ints, a: int, end: Real) -> Box:
    """Return the bounding box of agent a's route from its rear to `end` meters ahead of its center."""
    return route_bounds(
        road, flags, a, flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], -_HALF * agents[state.LENGTH, a], end
    )


@rule
def travel_time(distance: Real, speed: Real, acceleration: Real, top: Real) -> Real:
    """Return the seconds to cover a distance while accelerating to a top speed; 0 for no distance."""
    if distance <= _ZERO:
        return _ZERO
    top = max(top, speed)
    ramp = (top * top - speed * speed) / (_TWO * acceleration)
    if distance <= ramp:
        return (np.sqrt(speed * speed + _TWO * acceleration * distance) - speed) / acceleration
    return (top - speed) / acceleration + (distance - ramp) / top


@rule
def conflict_zone(
    road: Road, agents: Floats, flags: Ints, first: int, second: int, end: Real, their_end: Real
) -> tuple[Real, Real, Real, Real]:
    """Return where the routes of two agents conflict: from and to, ahead of the first and of the second agent.

    Distances count from the centers of their boxes and are searched from their rears to the given ends. FAR if the
    routes do not conflict.
    """
    points = road.points
    margin = _HALF * (agents[state.WIDTH, first] + agents[state.WIDTH, second]) + _MARGIN_M
    begin, their_begin = -_HALF * agents[state.LENGTH, first], -_HALF * agents[state.LENGTH, second]
    own_from, own_to, their_from, their_to = FAR, -FAR, FAR, -FAR
    their_start = -agents[state.PATH_ARC, second]
    for j in range(flags[state.ROUTE_PLACE, second], flags[state.ROUTE_LENGTH, second]):
        if their_start > their_end:
            break
        their_lane = flags[state.ROUTE + j, second]
        point = point_at(road, their_lane, their_begin - their_start)
        last = point_at(road, their_lane, their_end - their_start)
        # Compare the points of the first route, one after another, with this lane of the second route.
        ahead, start = begin, -agents[state.PATH_ARC, first]
        for k in range(flags[state.ROUTE_PLACE, first], flags[state.ROUTE_LENGTH, first]):
            if start > end:
                break
            lane = flags[state.ROUTE + k, first]
            ahead = max(ahead, start)
            own_point, own_last = point_at(road, lane, ahead - start), point_at(road, lane, end - start)
            if point >= 0 and own_point >= 0 and not _are_apart(points, own_point, own_last, point, last, margin):
                west, east, south, north = bounds(points, point, last)
                west, east, south, north = west - margin, east + margin, south - margin, north + margin
                for i in range(own_point, own_last + 1):
                    middle = start + points[state.POINT_ARC, i]
                    while ahead <= min(middle + points[state.POINT_HALF, i], end):
                        x = points[state.POINT_X, i] + (ahead - middle) * points[state.POINT_COS, i]
                        y = points[state.POINT_Y, i] + (ahead - middle) * points[state.POINT_SIN, i]
                        # Points nearer to this one than it is to the whole lane can be skipped.
                        idle = max(max(west - x, x - east), max(south - y, y - north))
                        if idle <= _ZERO:
                            if is_any_near(points, point, last, x, y, margin + _STRIDE_M):
                                low, high = _near_point(
                                    points, point, last, their_start, their_begin, their_end, x, y, margin
                                )
                                if low < FAR:
                                    own_from, own_to = min(own_from, ahead), max(own_to, ahead)
                                    their_from, their_to = min(their_from, low), max(their_to, high)
                            else:
                                idle = _STRIDE_M
                        ahead += _SPACING_M * (_ONE + np.floor(max(idle, _ZERO) / _SPACING_M))
            start += road.lengths[lane]
        their_start += road.lengths[their_lane]
    return own_from - _HALF * _SPACING_M, own_to + _HALF * _SPACING_M, their_from, their_to


@rule(inline=True)
def _are_apart(points: Floats, first: int, last: int, their_first: int, their_last: int, margin: Real) -> bool:
    """Return whether two sequences of lane points are surely farther apart than a margin, which rules out most lanes.

    A curve of length l between two points at a distance c stays within sqrt(l * l - c * c) / 2 of the straight line
    between them (an ellipse). So it is enough that these lines are far apart.
    """
    x, y, way_x, way_y, off = _chord(points, first, last)
    their_x, their_y, their_way_x, their_way_y, their_off = _chord(points, their_first, their_last)
    least = margin + off + their_off
    dx, dy = their_x - x, their_y - y
    # The lines cross if the ends of each are on different sides of the other.
    side = way_x * dy - way_y * dx
    other_side = way_x * (dy + their_way_y) - way_y * (dx + their_way_x)
    their_side = their_way_y * dx - their_way_x * dy
    their_other_side = their_way_x * (way_y - dy) - their_way_y * (way_x - dx)
    if (side > _ZERO) != (other_side > _ZERO) and (their_side > _ZERO) != (their_other_side > _ZERO):
        return False
    square = min(
        min(_square_to(dx, dy, way_x, way_y), _square_to(dx + their_way_x, dy + their_way_y, way_x, way_y)),
        min(
            _square_to(-dx, -dy, their_way_x, their_way_y), _square_to(way_x - dx, way_y - dy, their_way_x, their_way_y)
        ),
    )
    return bool(square > least * least)


@rule(inline=True)
def _chord(points: Floats, first: int, last: int) -> tuple[Real, Real, Real, Real, Real]:
    """Return the start of a sequence of lane points, the vector to its end, and how far it may deviate from that."""
    half, last_half = points[state.POINT_HALF, first], points[state.POINT_HALF, last]
    x = points[state.POINT_X, first] - half * points[state.POINT_COS, first]
    y = points[state.POINT_Y, first] - half * points[state.POINT_SIN, first]
    way_x = points[state.POINT_X, last] + last_half * points[state.POINT_COS, last] - x
    way_y = points[state.POINT_Y, last] + last_half * points[state.POINT_SIN, last] - y
    length = points[state.POINT_ARC, last] + last_half - points[state.POINT_ARC, first] + half + _SLACK_M
    return x, y, way_x, way_y, _HALF * np.sqrt(max(length * length - way_x * way_x - way_y * way_y, _ZERO))


@rule(inline=True)
def _square_to(dx: Real, dy: Real, way_x: Real, way_y: Real) -> Real:
    """Return the squared distance from a point to a line segment that starts at the origin."""
    share = (dx * way_x + dy * way_y) / max(way_x * way_x + way_y * way_y, _LEAST_SQUARE)
    share = min(max(share, _ZERO), _ONE)
    dx, dy = dx - share * way_x, dy - share * way_y
    return dx * dx + dy * dy


@rule(inline=True)
def _near_point(
    points: Floats, first: int, last: int, start: Real, begin: Real, end: Real, x: Real, y: Real, margin: Real
) -> tuple[Real, Real]:
    """Return from and to where points of a lane that begins at `start` are within a margin of a point; FAR if none.

    Only the part between `begin` and `end` counts.
    """
    low, high = FAR, -FAR
    if is_any_near(points, first, last, x, y, margin):
        for i in range(first, last + 1):
            dx, dy = x - points[state.POINT_X, i], y - points[state.POINT_Y, i]
            cos, sin, half = points[state.POINT_COS, i], points[state.POINT_SIN, i], points[state.POINT_HALF, i]
            along, across = dx * cos + dy * sin, dy * cos - dx * sin
            if abs(across) < margin and abs(along) < half + margin:
                chord = np.sqrt(margin * margin - across * across)
                middle = points[state.POINT_ARC, i] + start
                near, far = middle + max(along - chord, -half), middle + min(along + chord, half)
                if near <= far and far >= begin and near <= end:
                    low, high = min(low, max(near, begin)), max(high, min(far, end))
    return low, high


@rule
def _share_a_lane(road: Road, agents: Floats, flags: Ints, a: int, b: int) -> bool:
    """Return whether a lane is on the routes of both agents within their conflict ranges."""
    start, end = -agents[state.PATH_ARC, a], conflict_range(agents, a)
    for k in range(flags[state.ROUTE_PLACE, a], flags[state.ROUTE_LENGTH, a]):
        if start > end:
            break
        lane = flags[state.ROUTE + k, a]
        their_start, their_end = -agents[state.PATH_ARC, b], conflict_range(agents, b)
        for j in range(flags[state.ROUTE_PLACE, b], flags[state.ROUTE_LENGTH, b]):
            if their_start > their_end:
                break
            if flags[state.ROUTE + j, b] == lane:
                return True
            their_start += road.lengths[flags[state.ROUTE + j, b]]
        start += road.lengths[lane]
    return False


@rule
def _commitment(agents: Floats, a: int, to_zone: Real, to_end: Real) -> Any:
    """Return how firmly an agent is committed to a conflict zone this far ahead. to_end: to its lane's end."""
    speed = agents[state.SPEED, a]
    if to_zone <= _ZERO:
        return _INSIDE
    if speed < _STANDING_MPS and min(to_zone, to_end) > _QUEUE_M:
        return _HELD_UP
    if not _can_stop(speed, to_zone):
        return _COMMITTED
    return _MOVING if speed >= _STANDING_MPS else _STANDING


@rule
def _can_stop(speed: Real, room: Real) -> Any:
    return speed * speed <= _TWO * _COMMITTED_BRAKING * room


@rule
def give_way(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, b: int, stop: Real, p: Params
) -> tuple[Real, Real]:
    """Return how agent a yields to agent b: the gap ahead of its front, and the speed of what is behind the gap.

    Both are on their routes. `stop` is a's own `stop_ahead`. The gap is FAR if a need not yield.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m = clock[state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    lanes = road.lanes
    lane = flags[state.ROUTE + flags[state.ROUTE_PLACE, a], a]
    their_lane = flags[state.ROUTE + flags[state.ROUTE_PLACE, b], b]
    if lane == their_lane:
        return FAR, _ZERO  # one follows the other
    if lanes[state.LANE_TYPE, lane] == _FREEWAY and lanes[state.LANE_TYPE, their_lane] == _FREEWAY:
        if not _share_a_lane(road, agents, flags, a, b):
            return FAR, _ZERO  # lanes of a freeway merge but do not cross
    half, their_half = _HALF * agents[state.LENGTH, a], _HALF * agents[state.LENGTH, b]
    # A route ends at a line where its agent has to stop.
    their_stop = stop_ahead(worlds, maps, scenarios, w, b, conflict_range(agents, b), p)
    end = min(conflict_range(agents, a), half + stop)
    their_end = min(conflict_range(agents, b), their_half + their_stop)
    first, second, first_end, second_end = (a, b, end, their_end) if a < b else (b, a, their_end, end)
    from_1, to_1, from_2, to_2 = conflict_zone(road, agents, flags, first, second, first_end, second_end)
    if to_1 < from_1:
        return FAR, _ZERO
    own_from, own_to, their_from, their_to = from_1, to_1, from_2, to_2
    if a > b:
        own_from, own_to, their_from, their_to = from_2, to_2, from_1, to_1
    own_in, their_in = own_from - half, their_from - their_half
    to_end = road.lengths[lane] - agents[state.PATH_ARC, a] - half
    their_to_end = road.lengths[their_lane] - agents[state.PATH_ARC, b] - their_half
    own_commitment = _commitment(agents, a, own_in, to_end)
    their_commitment = _commitment(agents, b, their_in, their_to_end)
    if their_commitment == _HELD_UP:
        return FAR, _ZERO

    _, _, cos, sin = route_pose(road, flags, a, flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], own_to)
    _, _, their_cos, their_sin = route_pose(
        road, flags, b, flags[state.ROUTE_PLACE, b], agents[state.PATH_ARC, b], their_to
    )
    speed, their_speed = max(agents[state.SPEED, a], _ZERO), max(agents[state.SPEED, b], _ZERO)
    arrival = travel_time(own_in, speed, _STARTING, max(speed, _PACE_MPS))
    their_arrival = travel_time(their_in, their_speed, _STARTING, max(their_speed, _PACE_MPS))
    if own_commitment == their_commitment:
        if own_commitment == _STANDING:
            turn = clock[state.STEP] // _TURN_STEPS
            mine = draws.draw(worlds.seeds[w], a, turn, draws.TRAFFIC)
            has_priority = mine < draws.draw(worlds.seeds[w], b, turn, draws.TRAFFIC)
        elif own_commitment == _INSIDE:
            has_priority = own_in < their_in or (own_in == their_in and a < b)
        else:
            delay = _TURN_S * (_ONE - cos * agents[state.COS, a] - sin * agents[state.SIN, a])
            their_delay = _TURN_S * (_ONE - their_cos * agents[state.COS, b] - their_sin * agents[state.SIN, b])
            mine, theirs = arrival + delay, their_arrival + their_delay
            has_priority = mine < theirs or (mine == theirs and a < b)
    else:
        has_priority = own_commitment > their_commitment
    if has_priority:
        return FAR, _ZERO

    alike = cos * their_cos + sin * their_sin
    if alike > _PARALLEL:
        # They merge: keep behind the other one as if it were ahead already; while it is alongside, let it pass.
        gap = own_in - their_in - _TWO * their_half
        if gap > _ZERO:
            return gap, their_speed * alike
        return max(own_in - _STOP_SHORT_M, _ZERO), _HALF * their_speed
    departure = travel_time(own_to + half, speed, _STARTING, max(speed, _PACE_MPS))
    their_departure = travel_time(their_to + their_half, their_speed, _SPEEDING, max(their_speed, _PACE_MPS))
    if arrival > their_departure + _AFTER_S or departure + _BEFORE_S < their_arrival:
        return FAR, _ZERO
    # An agent that has not entered the junction waits before it, where nobody else has to pass.
    room = min(own_in, to_end) if to_end > _ZERO and _can_stop(speed, to_end) else own_in
    return max(room - _STOP_SHORT_M, _ZERO), _ZERO
