"""Spawning in open worlds: free places on the road network, and goals along routes from there.

All draws depend on the episode's seed, the agent and the number of its spawns: the same seed gives the same places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.grid import CELL_M
from roadworthy.scenario.schema import AgentType, Floats, Ints, LaneType
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.collision import boxes_touch
from roadworthy.sim.rules.goals import goal_line
from roadworthy.sim.rules.route_geometry import FAR, Real, Road, nearest_place, point_at, route_pose
from roadworthy.sim.rules.routes import (
    draw_route,
    extend_route,
    is_lane_for,
    lane_list,
    length_ahead,
    nearest_lane,
    place_on_route,
    route_key,
)
from roadworthy.sim.rules.spawn_in_traffic import join_traffic
from roadworthy.sim.state import (
    ACCELERATION,
    ACROSS,
    AGENT_COUNT,
    ALONG,
    COS,
    GOAL,
    GOAL_COUNT,
    GOAL_DISTANCE,
    GOALS,
    GOALS_REQUIRED,
    HEADING,
    IS_PRESENT,
    JERK,
    LANE,
    LANE_COS,
    LANE_LIMIT,
    LANE_OFFSET,
    LANE_POINT_COUNT,
    LANE_SIN,
    LANE_TYPE,
    LATERAL,
    LENGTH,
    MAP,
    PATH_ARC,
    PATH_OFFSET,
    POINT_ARC,
    POINT_COS,
    POINT_HALF,
    POINT_LIMIT,
    POINT_SIN,
    POINT_X,
    POINT_Y,
    PREVIOUS_X,
    PREVIOUS_Y,
    RADIUS,
    ROUTE,
    ROUTE_LANES,
    ROUTE_LENGTH,
    ROUTE_PLACE,
    SIGN_AHEAD,
    SIN,
    SLOWEST,
    SPAWNS,
    SPEED,
    STEERING,
    STEP,
    TYPE,
    WIDTH,
    Maps,
    Params,
    Scenarios,
    Worlds,
    X,
    Y,
)

ATTEMPTS = 96
# Minimum length and range of lengths, minimum width and range of widths, in m.
_CAR = (np.float32(4.2), np.float32(1.0), np.float32(1.8), np.float32(0.3))
_BICYCLE = (np.float32(1.6), np.float32(0.3), np.float32(0.5), np.float32(0.2))
_CYCLIST, _BIKE_LANE = int(AgentType.CYCLIST), int(LaneType.BIKE_LANE)
_LONGEST_HALF_M = np.float32(2.0)  # of a lane point
_APART_M = np.float32(2.0)  # a place this close to another lane is in a junction
_SHORTEST_ROUTE_M = np.float32(12.0)
_BEFORE_END_M = np.float32(1.0)  # at least, from the front of an agent standing on a goal to the end of its route
_SLOWEST_PACE = np.float32(0.75)
_GOAL_BACK_M, _GOAL_FORTH_M = np.float32(-30.0), np.float32(1500.0)
_GOAL_OFF_M = np.float32(15.0)
_SLACK_M = np.float32(0.01)
_CELL_DIAGONAL_M = np.float32(CELL_M * 2**0.5)
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


@rule
def spawn(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> bool:
    """Give agent a a place on the road, a size, a speed, a route and goals; return False if no free place was found.

    It takes the best of the places tried: with room for all goals on the route, and outside junctions. The boxes of
    others are at least p.spawn_gap away, and nobody has to brake hard because of the new agent.
    """
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    key = route_key(worlds.seeds[w], flags[SPAWNS, a])
    flags[SPAWNS, a] += 1
    flags[IS_PRESENT, a] = 0
    _draw_size(agents, flags, a, key)
    _clear_motion(agents, flags, a)
    if not _find_place(worlds, maps, scenarios, w, a, key, p):
        flags[ROUTE_LENGTH, a] = flags[ROUTE_PLACE, a] = 0
        return False
    agents[HEADING, a] = np.arctan2(agents[SIN, a], agents[COS, a])
    agents[PREVIOUS_X, a], agents[PREVIOUS_Y, a] = agents[X, a], agents[Y, a]
    _set_goals(agents, flags, a, road, p)
    _describe_lane(agents, flags, a, road)
    flags[IS_PRESENT, a] = 1
    return True


@rule
def _find_place(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, key: int, p: Params) -> bool:
    """Put agent a on the first of the best places that are tried; return False if none is usable.

    Checking a place against traffic costs far more than its score, so only places that would be taken are checked:
    first perfect ones, which most agents find soon, then any that beats those before.

    On a GPU, threads of several worlds run this together: all search for a candidate, then all rate theirs, and so on.
    Each rule is called in one place only, because the compiler inlines it there.
    """
    perfect = int(2 + 2 * p.goal_count)
    best, best_attempt, turn, end = 0, -1, 0, 2 * ATTEMPTS
    while True:
        attempt, least, is_clear = 0, 0, np.int64(-1)
        while turn <= end and is_clear < 0:
            attempt = turn % ATTEMPTS if turn < end else best_attempt
            least = perfect if turn < ATTEMPTS else best + (turn < end)
            if attempt >= 0:
                is_clear = _try_place(worlds, maps, w, a, key, attempt, least, p)
            turn += 1
        if is_clear < 0:
            return False
        score = _rate_place(worlds, maps, w, a, key, is_clear, p)
        is_first_pass, is_last = turn <= ATTEMPTS, turn > end
        if score >= least and (is_first_pass or is_last or score < perfect):
            if join_traffic(worlds, maps, scenarios, w, a, _draw_pace(key, a, attempt), p):
                if is_first_pass or is_last:
                    return True
                best, best_attempt = score, attempt


@rule
def _draw_pace(key: int, a: int, attempt: int) -> Real:
    """Return the share of the speed limit at which agent a drives where its way is free."""
    return _SLOWEST_PACE + (_ONE - _SLOWEST_PACE) * draws.uniform(key, a, attempt, draws.SPAWN + 3 * draws.PURPOSES)


@rule
def _draw_size(agents: Floats, flags: Ints, a: int, key: int) -> None:
    size = _BICYCLE if flags[TYPE, a] == _CYCLIST else _CAR
    length = size[0] + size[1] * draws.uniform(key, a, 0, draws.SIZE)
    width = size[2] + size[3] * draws.uniform(key, a, 1, draws.SIZE)
    agents[LENGTH, a], agents[WIDTH, a] = length, width
    agents[RADIUS, a] = _HALF * np.sqrt(length * length + width * width)


@rule
def _clear_motion(agents: Floats, flags: Ints, a: int) -> None:
    agents[SPEED, a] = agents[ACCELERATION, a] = agents[LATERAL, a] = agents[JERK, a] = agents[STEERING, a] = _ZERO
    agents[ALONG, a] = agents[ACROSS, a] = agents[SLOWEST, a] = agents[PATH_OFFSET, a] = _ZERO
    flags[SIGN_AHEAD, a] = -1


@rule
def _try_place(worlds: Worlds, maps: Maps, w: int, a: int, key: int, attempt: int, least: int, p: Params) -> Any:
    """Put agent a on the place of an attempt, with the first lanes of a route; return 1, or 0 if it is in a junction.

    Return -1 if the place is unusable or will score less than `least`.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m, nothing = clock[MAP], np.int64(-1)
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    points, count = road.points, maps.sizes[m, LANE_POINT_COUNT]
    if count == 0:
        return nothing
    point = draws.choose(key, a, attempt, draws.SPAWN, count)
    half = points[POINT_HALF, point]
    lane = maps.lane_point_lanes[m, point]
    # Lane points are shorter in curves: accept long ones more often, so that every meter of road is equally likely.
    if draws.uniform(key, a, attempt, draws.SPAWN + draws.PURPOSES) * _LONGEST_HALF_M > half:
        return nothing
    if not is_lane_for(maps, m, lane, flags[TYPE, a]):
        return nothing
    share = _TWO * draws.uniform(key, a, attempt, draws.SPAWN + 2 * draws.PURPOSES) - _ONE
    arc = points[POINT_ARC, point] + half * share
    agents[PATH_ARC, a] = arc
    # The following lane gives the direction at the end of this one, and shows whether it is a junction. The rest of the
    # route is drawn only if these do not rule out the place.
    draw_route(maps, m, flags, a, lane, key, clock[STEP], 2)
    agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a] = route_pose(road, flags, a, 0, arc, _ZERO)
    if _is_crowded(agents, flags, a, clock[AGENT_COUNT], p.spawn_gap):
        return nothing
    x, y, _, _ = route_pose(road, flags, a, 0, arc, _HALF * agents[LENGTH, a] + _ONE)
    is_clear = not (
        _is_in_junction(maps, m, flags, a, agents[X, a], agents[Y, a]) or _is_in_junction(maps, m, flags, a, x, y)
    )
    return np.int64(is_clear) if 1 + 2 * p.goal_count + is_clear >= least else nothing


@rule
def _rate_place(worlds: Worlds, maps: Maps, w: int, a: int, key: int, is_clear: Any, p: Params) -> Any:
    """Draw the rest of the route of agent a, which is on a candidate place, and return the place's score.

    The score is 1, plus 2 for each goal that the route has room for, plus 1 outside junctions; 0 if the route is too
    short.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m = clock[MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    extend_route(maps, m, flags, a, key, clock[STEP], ROUTE_LANES)
    room = _room_for_goals(road, agents, flags, a, flags[ROUTE_PLACE, a], agents[PATH_ARC, a])
    if not room > _SHORTEST_ROUTE_M:
        return np.int64(0)
    return 1 + 2 * min(np.int64(room / p.goal_spacing), np.int64(p.goal_count)) + is_clear


@rule
def _is_crowded(agents: Floats, flags: Ints, a: int, count: int, gap: Real) -> bool:
    """Return whether any box overlaps agent a's box widened by the gap on all sides."""
    x, y, radius = agents[X, a], agents[Y, a], agents[RADIUS, a] + _TWO * gap
    for b in range(count):
        dx, dy, reach = agents[X, b] - x, agents[Y, b] - y, agents[RADIUS, b] + radius
        if b != a and flags[IS_PRESENT, b] != 0 and dx * dx + dy * dy <= reach * reach:
            if boxes_touch(
                x,
                y,
                agents[COS, a],
                agents[SIN, a],
                agents[LENGTH, a] + _TWO * gap,
                agents[WIDTH, a] + _TWO * gap,
                agents[X, b],
                agents[Y, b],
                agents[COS, b],
                agents[SIN, b],
                agents[LENGTH, b],
                agents[WIDTH, b],
            ):
                return True
    return False


@rule
def _is_in_junction(maps: Maps, m: int, flags: Ints, a: int, x: Real, y: Real) -> bool:
    """Return whether a lane other than that of agent a's route and its next one is close to a position."""
    points = maps.lane_points[m]
    lane, following_lane = flags[ROUTE, a], flags[ROUTE + 1, a] if flags[ROUTE_LENGTH, a] > 1 else np.int32(-1)
    entries, reach = maps.lane_lists[m, lane_list(maps, m, x, y)], _APART_M + _LONGEST_HALF_M + _SLACK_M
    for e in range(len(entries)):
        i = np.int64(entries[e])
        if i >= maps.sizes[m, LANE_POINT_COUNT]:
            break
        dx, dy = x - points[POINT_X, i], y - points[POINT_Y, i]
        if dx * dx + dy * dy > reach * reach:
            # Entries are sorted by their distance from the middle of the cell, which is within its diagonal.
            if dx * dx + dy * dy > (reach + _CELL_DIAGONAL_M) * (reach + _CELL_DIAGONAL_M):
                break
            continue
        other = maps.lane_point_lanes[m, i]
        if other in (lane, following_lane) or maps.lanes[m, LANE_TYPE, other] == _BIKE_LANE:
            continue
        cos, sin = points[POINT_COS, i], points[POINT_SIN, i]
        over = max(abs(dx * cos + dy * sin) - points[POINT_HALF, i], _ZERO)
        across = dy * cos - dx * sin
        if over * over + across * across < _APART_M * _APART_M:
            return True
    return False


@rule
def _set_goals(agents: Floats, flags: Ints, a: int, road: Road, p: Params) -> None:
    """Set as many goals along the route as fit before its end; one at its end if none fits."""
    place, arc = flags[ROUTE_PLACE, a], agents[PATH_ARC, a]
    room = _room_for_goals(road, agents, flags, a, place, arc)
    count, ahead = 0, _ZERO
    for g in range(p.goal_count):
        ahead += p.goal_spacing
        if ahead <= room or g == 0:
            x, y, _, _ = route_pose(road, flags, a, place, arc, min(ahead, room))
            agents[GOALS + 2 * g, a], agents[GOALS + 2 * g + 1, a] = x, y
            count += 1
        else:
            agents[GOALS + 2 * g, a] = agents[GOALS + 2 * g + 1, a] = _ZERO
    flags[GOAL, a], flags[GOAL_COUNT, a], flags[GOALS_REQUIRED, a] = 0, count, count
    dx, dy = agents[GOALS, a] - agents[X, a], agents[GOALS + 1, a] - agents[Y, a]
    agents[GOAL_DISTANCE, a] = np.sqrt(dx * dx + dy * dy)


@rule
def _room_for_goals(road: Road, agents: Floats, flags: Ints, a: int, place: int, arc: Real) -> Real:
    """Return the distance from a place to the last one on agent a's route where its box is clear of the route's end.

    A route ends where the road leaves the map, and a road edge crosses it there.
    """
    return length_ahead(road, flags, a, place, arc) - _HALF * agents[LENGTH, a] - _BEFORE_END_M


@rule
def _describe_lane(agents: Floats, flags: Ints, a: int, road: Road) -> None:
    flags[LANE, a] = flags[ROUTE + flags[ROUTE_PLACE, a], a]
    agents[LANE_OFFSET, a], agents[LANE_COS, a], agents[LANE_SIN, a] = _ZERO, _ONE, _ZERO
    point = point_at(road, flags[LANE, a], agents[PATH_ARC, a])
    agents[LANE_LIMIT, a] = road.points[POINT_LIMIT, point]


@rule
def new_goal(worlds: Worlds, maps: Maps, w: int, a: int, p: Params) -> bool:
    """Add a goal for agent a, p.goal_spacing past its last one along its route; return False if the road ends.

    An agent without a route, or far from it, gets one from a lane near its last goal in about its direction.
    """
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    last = goal_line(flags[GOAL_COUNT, a] + p.goal_count - 1, p)
    x, y = agents[last, a], agents[last + 1, a]
    place, arc, distance = flags[ROUTE_PLACE, a], _ZERO, FAR
    if flags[ROUTE_LENGTH, a] > 0:
        place_on_route(worlds, maps, w, a)
        place, arc, _, distance = nearest_place(
            road,
            flags,
            a,
            flags[ROUTE_PLACE, a],
            agents[PATH_ARC, a],
            _GOAL_BACK_M,
            _GOAL_FORTH_M,
            x,
            y,
        )
    if distance > _GOAL_OFF_M or _room_for_goals(road, agents, flags, a, place, arc) < p.goal_spacing:
        if not _go_on_from(worlds, maps, w, a, x, y, p.goal_spacing):
            return False
        place, arc = flags[ROUTE_PLACE, a], agents[PATH_ARC, a]
        if _room_for_goals(road, agents, flags, a, place, arc) < p.goal_spacing:
            return False
    goal = goal_line(flags[GOAL_COUNT, a], p)
    agents[goal, a], agents[goal + 1, a], _, _ = route_pose(road, flags, a, place, arc, p.goal_spacing)
    flags[GOAL_COUNT, a] += 1
    return True


@rule
def _go_on_from(worlds: Worlds, maps: Maps, w: int, a: int, x: Real, y: Real, spacing: Real) -> bool:
    """Give agent a a route that starts on a lane near a position; return False if no lane there leads on."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m, key = clock[MAP], route_key(worlds.seeds[w], flags[SPAWNS, a])
    lane, arc = nearest_lane(maps, m, x, y, agents[COS, a], agents[SIN, a], flags[TYPE, a], spacing)
    if lane < 0:
        return False
    draw_route(maps, m, flags, a, lane, key, clock[STEP], ROUTE_LANES)
    agents[PATH_ARC, a] = arc
    return True
