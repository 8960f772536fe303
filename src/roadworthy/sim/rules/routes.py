"""Routes: the lanes that an agent will follow, drawn at forks or traced along a recording.

A route has room for ROUTE_LANES lanes. As its agent advances, passed lanes make room for new ones, so a route ends only
at a dead end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.grid import cell_along
from roadworthy.scenario.schema import AgentType, Ints, LaneType
from roadworthy.sim import state
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.route_geometry import FAR, Real, Road, nearest_place, seek
from roadworthy.sim.state import Maps, Scenarios, Worlds

# A route with fewer lanes than this ahead is extended; the lane behind the current one is kept.
_LANES_AHEAD = 12
_KEPT_BEHIND = 1
_LANES_FIRST = 2
_WAYS, _PATIENCE = 12, 3  # tries to find a way without a dead end, and how many of them at one fork
_BIKE_LANE, _PEDESTRIAN, _CYCLIST = int(LaneType.BIKE_LANE), int(AgentType.PEDESTRIAN), int(AgentType.CYCLIST)
# How far from a lane and from its direction an agent may start that is to follow it.
_STANDING_OFF_M = np.float32(1.2)  # an agent that never moves and is farther off is parked
_MOVING_OFF_M = np.float32(3.0)
_MOVED_M = np.float32(2.0)
_LEAST_COS = np.float32(0.7)
_DIRECTION_M2 = np.float32(8.0)  # weight of 1 - cos in the choice of the first lane, in square meters
_FITTING_M2 = np.float32(16.0)  # mean squared distance between a recording and a lane above which the recording left it
_FRAME_STRIDE = 4
_BEYOND_ENDS_M = np.float32(1.0)
# An agent searches its place on the route within this range behind and ahead of the last one.
_BEHIND_M, _AHEAD_M = np.float32(-12.0), np.float32(25.0)
_LOST_M = np.float32(12.0)
_NEAR_LANE_M = np.float32(6.0)  # a lane farther away may belong to another road
_AGAINST_M2 = np.float32(60.0)  # weight of 1 - cos against square meters, for a lane to continue on
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@rule(inline=True)
def is_lane_for(maps: Maps, m: int, lane: int, kind: int) -> bool:
    """Return whether an agent of a type may use a lane: bicycle lanes are for cyclists; lanes need points."""
    lanes = maps.lanes[m]
    if lanes[state.LANE_POINT_START, lane + 1] <= lanes[state.LANE_POINT_START, lane]:
        return False
    return lanes[state.LANE_TYPE, lane] != _BIKE_LANE or kind == _CYCLIST


@rule(inline=True)
def _lanes_onward(maps: Maps, m: int, lane: int, kind: int) -> Any:
    """Return how many lanes can follow a lane, up to 2: a junction's lane leads to a road, which may leave the map."""
    lanes, successors = maps.lanes[m], maps.successors[m]
    onward = 0
    for i in range(lanes[state.LANE_SUCCESSOR_START, lane], lanes[state.LANE_SUCCESSOR_START, lane + 1]):
        if is_lane_for(maps, m, successors[i], kind):
            onward = 1
            after = successors[i]
            for k in range(lanes[state.LANE_SUCCESSOR_START, after], lanes[state.LANE_SUCCESSOR_START, after + 1]):
                if is_lane_for(maps, m, successors[k], kind):
                    return 2
    return onward


@rule(inline=True)
def _draw_next(maps: Maps, m: int, lane: int, kind: int, key: int, a: int, step: int, number: int) -> Any:
    """Return a following lane, drawn among those that lead on farthest; -1 at a dead end."""
    lanes, successors = maps.lanes[m], maps.successors[m]
    first, last = lanes[state.LANE_SUCCESSOR_START, lane], lanes[state.LANE_SUCCESSOR_START, lane + 1]
    if last - first == 1:  # the most common case
        return np.int64(successors[first]) if is_lane_for(maps, m, successors[first], kind) else np.int64(-1)
    furthest, count = -1, 0
    for i in range(first, last):
        if is_lane_for(maps, m, successors[i], kind):
            onward = _lanes_onward(maps, m, successors[i], kind)
            if onward > furthest:
                furthest, count = onward, 0
            count += onward == furthest
    if count == 0:
        return np.int64(-1)
    chosen = draws.choose(key, a, step, draws.ROUTE + draws.PURPOSES * number, count)
    if count == last - first:
        return np.int64(successors[first + chosen])
    for i in range(first, last):
        if is_lane_for(maps, m, successors[i], kind) and _lanes_onward(maps, m, successors[i], kind) == furthest:
            if chosen == 0:
                return np.int64(successors[i])
            chosen -= 1
    return np.int64(-1)


@rule
def route_key(seed: int, spawns: int) -> Any:
    """Return the key of a route's draws: an agent that is spawned again gets another route."""
    return draws.mix(seed, spawns)


@rule
def extend_route(maps: Maps, m: int, flags: Ints, a: int, key: int, step: int, most: int) -> None:
    """Draw lanes after the last one until the route has `most` lanes (up to ROUTE_LANES) or the road ends.

    If the road ends earlier, draw again from the last fork, a few times, and then from the fork before it, so that
    routes leave the map only where hardly any way continues. The first lanes stay, because a spawn checks only them.
    """
    if flags[state.ROUTE_LENGTH, a] == 0:
        return
    _draw_lanes(maps, m, flags, a, key, step, min(most, _LANES_FIRST), 0)
    starts = maps.lanes[m, state.LANE_SUCCESSOR_START]
    first, longest, failures = np.int64(flags[state.ROUTE_LENGTH, a]), np.int64(0), 0
    fork = first
    for way in range(_WAYS):
        _draw_lanes(maps, m, flags, a, key, step, most, way)
        length = np.int64(flags[state.ROUTE_LENGTH, a])
        if length >= most or way == _WAYS - 1:
            return
        if length > longest:
            longest, fork, failures = length, length - 1, 0
        else:
            failures += 1
            fork -= failures % _PATIENCE == 0
        while (
            fork >= first
            and starts[flags[state.ROUTE + fork - 1, a] + 1] - starts[flags[state.ROUTE + fork - 1, a]] == 1
        ):
            fork -= 1
        if fork < first:
            return
        flags[state.ROUTE_LENGTH, a] = fork


@rule
def _draw_lanes(maps: Maps, m: int, flags: Ints, a: int, key: int, step: int, most: int, way: int) -> None:
    """Draw lanes after the last one of agent a's route. way: number of the try, a key of the draws."""
    length = flags[state.ROUTE_LENGTH, a]
    while length < most:
        number = length + state.ROUTE_LANES * way
        lane = _draw_next(maps, m, flags[state.ROUTE + length - 1, a], flags[state.TYPE, a], key, a, step, number)
        if lane < 0:
            break
        flags[state.ROUTE + length, a] = lane
        length += 1
    flags[state.ROUTE_LENGTH, a] = length


@rule
def draw_route(maps: Maps, m: int, flags: Ints, a: int, lane: int, key: int, step: int, most: int) -> None:
    """Start a route of at most `most` lanes at a lane. `key` is that of `route_key`, `step` the world's.

    `extend_route` with the same key and step makes it longer: the result is the same in one call or in several.
    """
    flags[state.ROUTE, a] = lane
    flags[state.ROUTE_LENGTH, a] = 1
    flags[state.ROUTE_PLACE, a] = 0
    extend_route(maps, m, flags, a, key, step, most)


@rule
def _refill_route(maps: Maps, m: int, flags: Ints, a: int, key: int, step: int) -> None:
    """Drop passed lanes and draw new ones if few lanes are left ahead."""
    length, passed = flags[state.ROUTE_LENGTH, a], flags[state.ROUTE_PLACE, a] - _KEPT_BEHIND
    if length - flags[state.ROUTE_PLACE, a] > _LANES_AHEAD or passed <= 0:
        return
    for k in range(length - passed):
        flags[state.ROUTE + k, a] = flags[state.ROUTE + k + passed, a]
    flags[state.ROUTE_LENGTH, a] = length - passed
    flags[state.ROUTE_PLACE, a] -= passed
    extend_route(maps, m, flags, a, key, step, state.ROUTE_LANES)


@rule
def advance_place(worlds: Worlds, maps: Maps, w: int, a: int, distance: Real) -> bool:
    """Advance agent a's place on its route; return False if that is past the route's end."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m = clock[state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    place, arc = seek(road, flags, a, flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a] + distance)
    is_on_it = arc <= maps.lane_lengths[m, flags[state.ROUTE + place, a]]
    agents[state.PATH_ARC, a] = arc
    if place != flags[state.ROUTE_PLACE, a]:
        flags[state.ROUTE_PLACE, a] = place
        _refill_route(maps, m, flags, a, route_key(worlds.seeds[w], flags[state.SPAWNS, a]), clock[state.STEP])
    return is_on_it


@rule
def place_on_route(worlds: Worlds, maps: Maps, w: int, a: int) -> Real:
    """Find the place of a freely driving agent on its route, near its last one, and return its distance from the route.

    Update ROUTE_PLACE, PATH_ARC and PATH_OFFSET, and draw further lanes as needed. An agent that is too far off keeps
    its place.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m = clock[state.MAP]
    if flags[state.ROUTE_LENGTH, a] == 0:
        return FAR
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    place, arc, x, y = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], agents[state.X, a], agents[state.Y, a]
    place, arc, offset, distance = nearest_place(road, flags, a, place, arc, _BEHIND_M, _AHEAD_M, x, y)
    if not distance < _LOST_M:
        return distance
    agents[state.PATH_ARC, a], agents[state.PATH_OFFSET, a] = arc, offset
    flags[state.ROUTE_PLACE, a] = place
    _refill_route(maps, m, flags, a, route_key(worlds.seeds[w], flags[state.SPAWNS, a]), clock[state.STEP])
    return distance


@rule
def length_ahead(road: Road, flags: Ints, a: int, place: int, arc: Real) -> Real:
    """Return the distance from a place to the end of agent a's route, in m."""
    total = -arc
    for k in range(place, flags[state.ROUTE_LENGTH, a]):
        total += road.lengths[flags[state.ROUTE + k, a]]
    return total


@rule
def lane_list(maps: Maps, m: int, x: Any, y: Any) -> Any:
    """Return the list (of maps.lane_lists) with the lane points nearest to the cell of a position."""
    column = cell_along(x, maps.origins[m, 0], maps.sizes[m, state.COLUMNS])
    row = cell_along(y, maps.origins[m, 1], maps.sizes[m, state.ROWS])
    return np.int64(maps.cell_lists[m, row * maps.sizes[m, state.COLUMNS] + column])


@rule
def nearest_lane(
    maps: Maps, m: int, x: Real, y: Real, cos: Real, sin: Real, kind: int, least: Real
) -> tuple[Any, Real]:
    """Return a lane near a position in about its direction with enough length left, and the place on it, or -1."""
    points = maps.lane_points[m]
    entries = maps.lane_lists[m, lane_list(maps, m, x, y)]
    best, best_lane, best_arc = _NEAR_LANE_M * _NEAR_LANE_M, np.int64(-1), _ZERO
    for e in range(len(entries)):
        i = np.int64(entries[e])
        if i >= maps.sizes[m, state.LANE_POINT_COUNT]:
            break
        lane = maps.lane_point_lanes[m, i]
        dx, dy, half = x - points[state.POINT_X, i], y - points[state.POINT_Y, i], points[state.POINT_HALF, i]
        along = dx * points[state.POINT_COS, i] + dy * points[state.POINT_SIN, i]
        across = dy * points[state.POINT_COS, i] - dx * points[state.POINT_SIN, i]
        alike = cos * points[state.POINT_COS, i] + sin * points[state.POINT_SIN, i]
        past = min(max(along, -half), half)
        arc = points[state.POINT_ARC, i] + past
        cost = (along - past) * (along - past) + across * across + _AGAINST_M2 * (_ONE - alike)
        if cost < best and alike > _LEAST_COS and is_lane_for(maps, m, lane, kind):
            if maps.lane_lengths[m, lane] - arc >= least or _lanes_onward(maps, m, lane, kind) == 2:
                best, best_lane, best_arc = cost, np.int64(lane), arc
    return best_lane, best_arc


@rule
def _misfit(maps: Maps, m: int, scenarios: Scenarios, s: int, a: int, lane: int) -> Real:
    """Return the mean squared distance of recorded positions to a lane; FAR without any.

    The positions are those from the first one within _NEAR_LANE_M, as long as they lie beside the lane. Later ones may
    lie beside it on another road, such as the far side of a roundabout.
    """
    lanes, points, motion = maps.lanes[m], maps.lane_points[m], scenarios.motion[s]
    first, last = lanes[state.LANE_POINT_START, lane], lanes[state.LANE_POINT_START, lane + 1]
    length = maps.lane_lengths[m, lane]
    total, count = _ZERO, _ZERO
    for frame in range(0, scenarios.counts[s, state.FRAME_COUNT], _FRAME_STRIDE):
        if scenarios.valid[s, frame, a] == 0:
            continue
        x, y = motion[state.MOTION_X, frame, a], motion[state.MOTION_Y, frame, a]
        nearest, at = FAR, _ZERO
        for i in range(first, last):
            dx, dy, half = x - points[state.POINT_X, i], y - points[state.POINT_Y, i], points[state.POINT_HALF, i]
            cos, sin = points[state.POINT_COS, i], points[state.POINT_SIN, i]
            along, across = dx * cos + dy * sin, dy * cos - dx * sin
            over = max(abs(along) - half, _ZERO)
            distance = over * over + across * across
            if distance < nearest:
                nearest, at = distance, points[state.POINT_ARC, i] + along
        is_beside = at > -_BEYOND_ENDS_M and at < length + _BEYOND_ENDS_M
        if is_beside and (count > _ZERO or nearest < _NEAR_LANE_M * _NEAR_LANE_M):
            total += nearest
            count += _ONE
        elif count > _ZERO:
            break
    return total / count if count > _ZERO else FAR


@rule
def _start_lane(maps: Maps, m: int, scenarios: Scenarios, s: int, worlds: Worlds, w: int, a: int) -> Any:
    """Return the lane on which agent a's recording begins, -1 for none.

    Among the lanes beside the agent it is the one with the lowest cost: squared distance, weighted direction, and
    misfit of the rest of the recording, which distinguishes lanes that overlap.
    """
    agents, flags, points, motion = worlds.agents[w], worlds.agent_flags[w], maps.lane_points[m], scenarios.motion[s]
    x, y, cos, sin = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    off = _STANDING_OFF_M
    for frame in range(0, scenarios.counts[s, state.FRAME_COUNT], _FRAME_STRIDE):
        if scenarios.valid[s, frame, a] != 0:
            dx, dy = motion[state.MOTION_X, frame, a] - x, motion[state.MOTION_Y, frame, a] - y
            if dx * dx + dy * dy > _MOVED_M * _MOVED_M:
                off = _MOVING_OFF_M
    entries = maps.lane_lists[m, lane_list(maps, m, x, y)]
    best, best_lane = FAR, -1
    for e in range(len(entries)):
        i = np.int64(entries[e])
        if i >= maps.sizes[m, state.LANE_POINT_COUNT]:
            break
        lane = maps.lane_point_lanes[m, i]
        dx, dy = x - points[state.POINT_X, i], y - points[state.POINT_Y, i]
        along = dx * points[state.POINT_COS, i] + dy * points[state.POINT_SIN, i]
        across = dy * points[state.POINT_COS, i] - dx * points[state.POINT_SIN, i]
        alike = cos * points[state.POINT_COS, i] + sin * points[state.POINT_SIN, i]
        is_beside = abs(along) <= points[state.POINT_HALF, i] + _BEYOND_ENDS_M and abs(across) <= off
        if is_beside and alike >= _LEAST_COS and is_lane_for(maps, m, lane, flags[state.TYPE, a]):
            misfit = min(_misfit(maps, m, scenarios, s, a, lane), _FITTING_M2)
            cost = across * across + _DIRECTION_M2 * (_ONE - alike) + misfit
            if cost < best:
                best, best_lane = cost, lane
    return np.int64(best_lane)


@rule
def trace_route(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int) -> None:
    """Trace the route of agent a's recording, and draw further lanes after its end.

    At each fork take the lane nearest to the recorded future. Agents on no lane (pedestrians, parked cars, absent
    agents) get no route.
    """
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m, s, kind = clock[state.MAP], clock[state.SCENARIO], flags[state.TYPE, a]
    lanes, successors = maps.lanes[m], maps.successors[m]
    flags[state.ROUTE_LENGTH, a] = flags[state.ROUTE_PLACE, a] = 0
    agents[state.PATH_ARC, a] = agents[state.PATH_OFFSET, a] = _ZERO
    if flags[state.IS_PRESENT, a] == 0 or kind == _PEDESTRIAN:
        return
    lane = _start_lane(maps, m, scenarios, s, worlds, w, a)
    if lane < 0:
        return
    flags[state.ROUTE, a] = lane
    length = 1
    while length < state.ROUTE_LANES:
        best, onward = _FITTING_M2, np.int64(-1)
        for i in range(lanes[state.LANE_SUCCESSOR_START, lane], lanes[state.LANE_SUCCESSOR_START, lane + 1]):
            if is_lane_for(maps, m, successors[i], kind):
                misfit = _misfit(maps, m, scenarios, s, a, successors[i])
                if misfit < best:
                    best, onward = misfit, np.int64(successors[i])
        if onward < 0:
            break
        lane = onward
        flags[state.ROUTE + length, a] = lane
        length += 1
    flags[state.ROUTE_LENGTH, a] = length
    extend_route(
        maps, m, flags, a, route_key(worlds.seeds[w], flags[state.SPAWNS, a]), clock[state.STEP], state.ROUTE_LANES
    )
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    end = road.lengths[flags[state.ROUTE, a]]
    x, y = agents[state.X, a], agents[state.Y, a]
    place, arc, offset, _ = nearest_place(road, flags, a, 0, _ZERO, _ZERO, end, x, y)
    flags[state.ROUTE_PLACE, a] = place
    agents[state.PATH_ARC, a], agents[state.PATH_OFFSET, a] = arc, offset
