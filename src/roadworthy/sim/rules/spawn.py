"""Spawning in open worlds: free places on the road network, and goals along routes from there.

All draws depend on the episode's seed, the agent and the number of its spawns: the same seed gives the same places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.grid import CELL_M
from roadworthy.scenario.schema import AgentType, Floats, Ints, LaneType
from roadworthy.sim import state
from roadworthy.sim.rules import draws, routes
from roadworthy.sim.rules.collision import box_of, boxes_touch
from roadworthy.sim.rules.goals import goal_line
from roadworthy.sim.rules.route_geometry import FAR, Real, Road, nearest_place, point_at, route_pose
from roadworthy.sim.rules.spawn_in_traffic import join_traffic
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

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
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    key = routes.route_key(worlds.seeds[w], flags[state.SPAWNS, a])
    flags[state.SPAWNS, a] += 1
    flags[state.IS_PRESENT, a] = 0
    _draw_size(agents, flags, a, key)
    stop_motion(agents, a)
    agents[state.ALONG, a] = agents[state.ACROSS, a] = agents[state.SLOWEST, a] = agents[state.PATH_OFFSET, a] = _ZERO
    flags[state.SIGN_AHEAD, a] = -1
    if not _find_place(worlds, maps, scenarios, w, a, key, p):
        flags[state.ROUTE_LENGTH, a] = flags[state.ROUTE_PLACE, a] = 0
        return False
    agents[state.HEADING, a] = np.arctan2(agents[state.SIN, a], agents[state.COS, a])
    agents[state.PREVIOUS_X, a], agents[state.PREVIOUS_Y, a] = agents[state.X, a], agents[state.Y, a]
    _set_goals(agents, flags, a, road, p)
    _describe_lane(agents, flags, a, road)
    flags[state.IS_PRESENT, a] = 1
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
    size = _BICYCLE if flags[state.TYPE, a] == _CYCLIST else _CAR
    length = size[0] + size[1] * draws.uniform(key, a, 0, draws.SIZE)
    width = size[2] + size[3] * draws.uniform(key, a, 1, draws.SIZE)
    agents[state.LENGTH, a], agents[state.WIDTH, a] = length, width
    agents[state.RADIUS, a] = _HALF * np.sqrt(length * length + width * width)


@rule
def stop_motion(agents: Floats, a: int) -> None:
    """Stop an agent where it is."""
    agents[state.SPEED, a] = agents[state.ACCELERATION, a] = agents[state.LATERAL, a] = _ZERO
    agents[state.JERK, a] = agents[state.STEERING, a] = _ZERO


@rule
def _try_place(worlds: Worlds, maps: Maps, w: int, a: int, key: int, attempt: int, least: int, p: Params) -> Any:
    """Put agent a on the place of an attempt, with the first lanes of a route; return 1, or 0 if it is in a junction.

    Return -1 if the place is unusable or will score less than `least`.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m, nothing = clock[state.MAP], np.int64(-1)
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    points, count = road.points, maps.sizes[m, state.LANE_POINT_COUNT]
    if count == 0:
        return nothing
    point = draws.choose(key, a, attempt, draws.SPAWN, count)
    half = points[state.POINT_HALF, point]
    lane = maps.lane_point_lanes[m, point]
    # Lane points are shorter in curves: accept long ones more often, so that every meter of road is equally likely.
    if draws.uniform(key, a, attempt, draws.SPAWN + draws.PURPOSES) * _LONGEST_HALF_M > half:
        return nothing
    if not routes.is_lane_for(maps, m, lane, flags[state.TYPE, a]):
        return nothing
    share = _TWO * draws.uniform(key, a, attempt, draws.SPAWN + 2 * draws.PURPOSES) - _ONE
    arc = points[state.POINT_ARC, point] + half * share
    agents[state.PATH_ARC, a] = arc
    # The following lane gives the direction at the end of this one, and shows whether it is a junction. The rest of the
    # route is drawn only if these do not rule out the place.
    routes.draw_route(maps, m, flags, a, lane, key, clock[state.STEP], 2)
    agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a] = route_pose(
        road, flags, a, 0, arc, _ZERO
    )
    if _is_crowded(agents, flags, a, clock[state.AGENT_COUNT], p.spawn_gap):
        return nothing
    x, y, _, _ = route_pose(road, flags, a, 0, arc, _HALF * agents[state.LENGTH, a] + _ONE)
    is_clear = not (
        _is_in_junction(maps, m, flags, a, agents[state.X, a], agents[state.Y, a])
        or _is_in_junction(maps, m, flags, a, x, y)
    )
    return np.int64(is_clear) if 1 + 2 * p.goal_count + is_clear >= least else nothing


@rule
def _rate_place(worlds: Worlds, maps: Maps, w: int, a: int, key: int, is_clear: Any, p: Params) -> Any:
    """Draw the rest of the route of agent a, which is on a candidate place, and return the place's score.

    The score is 1, plus 2 for each goal that the route has room for, plus 1 outside junctions; 0 if the route is too
    short.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m = clock[state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    routes.extend_route(maps, m, flags, a, key, clock[state.STEP], state.ROUTE_LANES)
    room = _room_for_goals(road, agents, flags, a, flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a])
    if not room > _SHORTEST_ROUTE_M:
        return np.int64(0)
    return 1 + 2 * min(np.int64(room / p.goal_spacing), np.int64(p.goal_count)) + is_clear


@rule
def _is_crowded(agents: Floats, flags: Ints, a: int, count: int, gap: Real) -> bool:
    """Return whether any box overlaps agent a's box widened by the gap on all sides."""
    x, y, cos, sin, length, width = box_of(agents, a)
    radius = agents[state.RADIUS, a] + _TWO * gap
    for b in range(count):
        dx, dy, reach = agents[state.X, b] - x, agents[state.Y, b] - y, agents[state.RADIUS, b] + radius
        if b != a and flags[state.IS_PRESENT, b] != 0 and dx * dx + dy * dy <= reach * reach:
            widened = x, y, cos, sin, length + _TWO * gap, width + _TWO * gap
            if boxes_touch(widened, box_of(agents, b)):
                return True
    return False


@rule
def _is_in_junction(maps: Maps, m: int, flags: Ints, a: int, x: Real, y: Real) -> bool:
    """Return whether a lane other than that of agent a's route and its next one is close to a position."""
    points = maps.lane_points[m]
    lane = flags[state.ROUTE, a]
    following_lane = flags[state.ROUTE + 1, a] if flags[state.ROUTE_LENGTH, a] > 1 else np.int32(-1)
    entries, reach = maps.lane_lists[m, routes.lane_list(maps, m, x, y)], _APART_M + _LONGEST_HALF_M + _SLACK_M
    for e in range(len(entries)):
        i = np.int64(entries[e])
        if i >= maps.sizes[m, state.LANE_POINT_COUNT]:
            break
        dx, dy = x - points[state.POINT_X, i], y - points[state.POINT_Y, i]
        if dx * dx + dy * dy > reach * reach:
            # Entries are sorted by their distance from the middle of the cell, which is within its diagonal.
            if dx * dx + dy * dy > (reach + _CELL_DIAGONAL_M) * (reach + _CELL_DIAGONAL_M):
                break
            continue
        other = maps.lane_point_lanes[m, i]
        if other in (lane, following_lane) or maps.lanes[m, state.LANE_TYPE, other] == _BIKE_LANE:
            continue
        cos, sin = points[state.POINT_COS, i], points[state.POINT_SIN, i]
        over = max(abs(dx * cos + dy * sin) - points[state.POINT_HALF, i], _ZERO)
        across = dy * cos - dx * sin
        if over * over + across * across < _APART_M * _APART_M:
            return True
    return False


@rule
def _set_goals(agents: Floats, flags: Ints, a: int, road: Road, p: Params) -> None:
    """Set as many goals along the route as fit before its end; one at its end if none fits."""
    place, arc = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a]
    room = _room_for_goals(road, agents, flags, a, place, arc)
    count, ahead = 0, _ZERO
    for g in range(p.goal_count):
        ahead += p.goal_spacing
        if ahead <= room or g == 0:
            x, y, _, _ = route_pose(road, flags, a, place, arc, min(ahead, room))
            agents[state.GOALS + 2 * g, a], agents[state.GOALS + 2 * g + 1, a] = x, y
            count += 1
        else:
            agents[state.GOALS + 2 * g, a] = agents[state.GOALS + 2 * g + 1, a] = _ZERO
    flags[state.GOAL, a], flags[state.GOAL_COUNT, a], flags[state.GOALS_REQUIRED, a] = 0, count, count
    dx, dy = agents[state.GOALS, a] - agents[state.X, a], agents[state.GOALS + 1, a] - agents[state.Y, a]
    agents[state.GOAL_DISTANCE, a] = np.sqrt(dx * dx + dy * dy)


@rule
def _room_for_goals(road: Road, agents: Floats, flags: Ints, a: int, place: int, arc: Real) -> Real:
    """Return the distance from a place to the last one on agent a's route where its box is clear of the route's end.

    A route ends where the road leaves the map, and a road edge crosses it there.
    """
    return routes.length_ahead(road, flags, a, place, arc) - _HALF * agents[state.LENGTH, a] - _BEFORE_END_M


@rule
def _describe_lane(agents: Floats, flags: Ints, a: int, road: Road) -> None:
    flags[state.LANE, a] = flags[state.ROUTE + flags[state.ROUTE_PLACE, a], a]
    agents[state.LANE_OFFSET, a], agents[state.LANE_COS, a], agents[state.LANE_SIN, a] = _ZERO, _ONE, _ZERO
    point = point_at(road, flags[state.LANE, a], agents[state.PATH_ARC, a])
    agents[state.LANE_LIMIT, a] = road.points[state.POINT_LIMIT, point]


@rule
def new_goal(worlds: Worlds, maps: Maps, w: int, a: int, p: Params) -> bool:
    """Add a goal for agent a, p.goal_spacing past its last one along its route; return False if the road ends.

    An agent without a route, or far from it, gets one from a lane near its last goal in about its direction.
    """
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    last = goal_line(flags[state.GOAL_COUNT, a] + p.goal_count - 1, p)
    x, y = agents[last, a], agents[last + 1, a]
    place, arc, distance = flags[state.ROUTE_PLACE, a], _ZERO, FAR
    if flags[state.ROUTE_LENGTH, a] > 0:
        routes.place_on_route(worlds, maps, w, a)
        arc = agents[state.PATH_ARC, a]
        place, arc, _, distance = nearest_place(
            road, flags, a, flags[state.ROUTE_PLACE, a], arc, _GOAL_BACK_M, _GOAL_FORTH_M, x, y
        )
    if distance > _GOAL_OFF_M or _room_for_goals(road, agents, flags, a, place, arc) < p.goal_spacing:
        if not _go_on_from(worlds, maps, w, a, x, y, p.goal_spacing):
            return False
        place, arc = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a]
        if _room_for_goals(road, agents, flags, a, place, arc) < p.goal_spacing:
            return False
    goal = goal_line(flags[state.GOAL_COUNT, a], p)
    agents[goal, a], agents[goal + 1, a], _, _ = route_pose(road, flags, a, place, arc, p.goal_spacing)
    flags[state.GOAL_COUNT, a] += 1
    return True


@rule
def _go_on_from(worlds: Worlds, maps: Maps, w: int, a: int, x: Real, y: Real, spacing: Real) -> bool:
    """Give agent a a route that starts on a lane near a position; return False if no lane there leads on."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m, key = clock[state.MAP], routes.route_key(worlds.seeds[w], flags[state.SPAWNS, a])
    lane, arc = routes.nearest_lane(
        maps, m, x, y, agents[state.COS, a], agents[state.SIN, a], flags[state.TYPE, a], spacing
    )
    if lane < 0:
        return False
    routes.draw_route(maps, m, flags, a, lane, key, clock[state.STEP], state.ROUTE_LANES)
    agents[state.PATH_ARC, a] = arc
    return True
