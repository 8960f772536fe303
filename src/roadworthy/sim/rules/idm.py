"""Reactive traffic: the intelligent driver model (IDM) on a route, with lights, curves and right of way.

`wanted_acceleration` is the model: the acceleration for an agent on its route. Reactive agents (role idm) apply it on
rails, by `plan` and `move`; other agents with a route can ask for it after `place_on_route`. The model is that of
Treiber, Hennecke and Helbing (2000), as the lesser of the free and the following acceleration.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.right_of_way import conflict_range, give_way, route_box
from roadworthy.sim.rules.route_geometry import FAR, Box, Real, Road, are_close, first_contact, point_at, route_pose
from roadworthy.sim.rules.routes import advance_place
from roadworthy.sim.rules.stop_ahead import stop_ahead
from roadworthy.sim.rules.stop_sign import passes_stop_sign
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

ACCELERATION_MPS2 = np.float32(1.6)  # the maximum request
BRAKING_MPS2 = np.float32(2.2)  # comfortable
HARDEST_MPS2 = np.float32(8.0)  # in an emergency
HEADWAY_S = np.float32(1.2)
STANDING_GAP_M = np.float32(2.0)
LATERAL_MPS2 = np.float32(2.5)  # in curves
UNKNOWN_LIMIT_MPS = np.float32(11.2)  # where the map has no limit
NO_BOX = (FAR, -FAR, FAR, -FAR)  # of an agent without a route: nobody is near it

_LINE_GAP_M = np.float32(0.7)  # from the front to a line, when standing
_URGENT = np.float32(3.0)  # m/s2; if more is needed, the model's own braking is not relied on
_REACH_M, _LONGEST_REACH_M = np.float32(12.0), np.float32(150.0)
_SIDE_M = np.float32(0.2)  # kept free beside the own box
_BEND_M = np.float32(3.0)  # over which a curve is measured, since single lane points are noisy
_LEAST_CURVATURE = np.float32(1.0e-4)
_BEND_BRAKING = np.float32(1.6)  # m/s2 before curves and lower limits
_SETTLING_S = np.float32(0.8)
_LOOK_S = np.float32(2.5)  # for which an agent off its route is expected to go straight ahead
_ON_ROUTE_M, _ON_ROUTE_COS = np.float32(1.0), np.float32(0.9)
_CROSSING_SIN = np.float32(0.5)
_AFTER_S = np.float32(0.5)
_LEAST_MPS = np.float32(0.5)
_SLOW_MPS = np.float32(2.0)
_RETURN_PER_M = np.float32(0.12)  # share of its offset that an agent on rails loses per meter
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
_TENTH = np.float32(0.1)


@rule
def idm_acceleration(speed: Real, gap: Real, their_speed: Real, headway: Real, standing_gap: Real) -> Real:
    """Return the model's acceleration behind something at a gap ahead, or more braking where necessary."""
    gap = max(gap, _TENTH)
    approach = speed * (speed - their_speed) / (_TWO * np.sqrt(ACCELERATION_MPS2 * BRAKING_MPS2))
    ratio = (standing_gap + max(speed * headway + approach, _ZERO)) / gap
    wanted = ACCELERATION_MPS2 * (_ONE - ratio * ratio)
    theirs = max(their_speed, _ZERO)
    room = gap - _HALF * standing_gap + theirs * theirs / (_TWO * HARDEST_MPS2)
    needed = speed * speed / (_TWO * max(room, _TENTH))
    if needed > _URGENT:
        wanted = min(wanted, -needed)
    return wanted


@rule
def wanted_acceleration(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> Real:
    """Return the acceleration (m/s2) for agent a, whose place on its route is up to date."""
    wanted, reach, stop, box = plan_alone(worlds, maps, scenarios, w, a, p)
    for b in range(worlds.clocks[w, state.AGENT_COUNT]):
        if may_interact(worlds.agents[w], worlds.agent_flags[w], a, b, box):
            wanted = min(wanted, reaction(worlds, maps, scenarios, w, a, b, reach, stop, box, p))
    return max(wanted, -HARDEST_MPS2)


@rule
def plan_alone(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params
) -> tuple[Real, Real, Real, Box]:
    """Return agent a's acceleration without other agents, its braking range, `stop_ahead` and `route_box`."""
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP]
    if flags[state.ROUTE_LENGTH, a] == 0:
        return -BRAKING_MPS2, _ZERO, FAR, NO_BOX
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    haste = max(worlds.hidden[w, state.HASTE], _TENTH)
    reach = braking_range(agents, a, haste)
    stop = stop_ahead(worlds, maps, scenarios, w, a, reach, p)
    wanted = solo_acceleration(road, agents, flags, a, reach, stop, haste)
    return wanted, reach, stop, route_box(road, agents, flags, a, max(reach, conflict_range(agents, a)))


@rule
def may_interact(agents: Floats, flags: Ints, a: int, b: int, box: Box) -> bool:
    """Return whether agent b is present and its surroundings overlap the box of agent a's route."""
    west, east, south, north = box
    x, y, around = agents[state.X, b], agents[state.Y, b], conflict_range(agents, b) + agents[state.RADIUS, b]
    is_near = (x > west - around) & (x < east + around) & (y > south - around) & (y < north + around)
    return is_near and b != a and flags[state.IS_PRESENT, b] != 0


@rule
def solo_acceleration(road: Road, agents: Floats, flags: Ints, a: int, reach: Real, stop: Real, haste: Real) -> Real:
    """Return the acceleration (m/s2) for agent a without other agents. `stop`: its `stop_ahead`."""
    wanted = _free_acceleration(road, agents, flags, a, reach, haste)
    if stop < FAR:
        speed = max(agents[state.SPEED, a], _ZERO)
        wanted = min(wanted, idm_acceleration(speed, stop, _ZERO, HEADWAY_S / haste, _LINE_GAP_M))
    return wanted


@rule
def reaction(
    worlds: Worlds,
    maps: Maps,
    scenarios: Scenarios,
    w: int,
    a: int,
    b: int,
    reach: Real,
    stop: Real,
    box: Box,
    p: Params,
) -> Real:
    """Return the acceleration (m/s2) for agent a because of agent b only, FAR if b does not matter.

    stop, box: a's own `stop_ahead`, and its `route_box` over its braking range and conflict range.
    """
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    haste = max(worlds.hidden[w, state.HASTE], _TENTH)
    headway, standing_gap = HEADWAY_S / haste, STANDING_GAP_M / haste
    x, y, gap, their_speed = agents[state.X, b], agents[state.Y, b], FAR, _ZERO
    if are_close((x, x, y, y), box, agents[state.RADIUS, a] + agents[state.RADIUS, b]):
        gap, their_speed = _leader_gap(road, agents, flags, a, b, reach)
    if gap >= FAR:
        if is_on_route(road, agents, flags, b):
            gap, their_speed = give_way(worlds, maps, scenarios, w, a, b, stop, p)
        else:
            gap, their_speed = _crossing_gap(road, agents, flags, a, b, reach), _ZERO
        if gap >= FAR:
            return FAR
        if their_speed <= _ZERO:
            standing_gap = _LINE_GAP_M  # a waiting place, with room to spare before it
    return idm_acceleration(max(agents[state.SPEED, a], _ZERO), gap, their_speed, headway, standing_gap)


@rule
def braking_range(agents: Floats, a: int, haste: Real) -> Real:
    """Return how far ahead of its center an agent reacts, in m: far enough to stop in comfort."""
    speed = max(agents[state.SPEED, a], _ZERO)
    reach = (
        _HALF * agents[state.LENGTH, a] + _REACH_M + speed * HEADWAY_S / haste + speed * speed / (_TWO * BRAKING_MPS2)
    )
    return min(reach, _LONGEST_REACH_M)


@rule
def _free_acceleration(road: Road, agents: Floats, flags: Ints, a: int, reach: Real, haste: Real) -> Real:
    """Return the acceleration on an empty road: up to the limit, and down in time for curves and lower limits."""
    points = road.points
    speed, half = max(agents[state.SPEED, a], _ZERO), _HALF * agents[state.LENGTH, a]
    limit_here = UNKNOWN_LIMIT_MPS
    allowed, slowing = FAR * FAR, _ZERO  # the squared speed, and the braking that goes with it
    is_first = True
    bend_cos, bend_sin, bend_at = _ONE, _ZERO, _ZERO
    start = -agents[state.PATH_ARC, a]
    for k in range(flags[state.ROUTE_PLACE, a], flags[state.ROUTE_LENGTH, a]):
        if start > reach:
            break
        lane = flags[state.ROUTE + k, a]
        first = point_at(road, lane, -start)
        if first >= 0:
            limit = points[state.POINT_LIMIT, first]
            limit = haste * (limit if limit > _ZERO else UNKNOWN_LIMIT_MPS)
            ahead = max(start - half, _ZERO)
            if is_first:
                limit_here = limit
                bend_cos, bend_sin = points[state.POINT_COS, first], points[state.POINT_SIN, first]
                bend_at, is_first = start + points[state.POINT_ARC, first], False
            square = limit * limit + _TWO * _BEND_BRAKING * ahead
            if square < allowed:
                allowed, slowing = square, _BEND_BRAKING if ahead > _ZERO else _ZERO
            for i in range(first, point_at(road, lane, reach - start) + 1):
                at = start + points[state.POINT_ARC, i]
                if at - bend_at >= _BEND_M:
                    cos = points[state.POINT_COS, i] * bend_cos + points[state.POINT_SIN, i] * bend_sin
                    # The chord between two directions replaces the angle: they are close for what cars can turn over
                    # this length.
                    turn = np.sqrt(max(_TWO - _TWO * cos, _ZERO))
                    curvature = max(turn / (at - bend_at), _LEAST_CURVATURE)
                    ahead = max(bend_at, _ZERO)
                    square = haste * LATERAL_MPS2 / curvature + _TWO * _BEND_BRAKING * ahead
                    if square < allowed:
                        allowed, slowing = square, _BEND_BRAKING if ahead > _ZERO else _ZERO
                    bend_cos, bend_sin, bend_at = points[state.POINT_COS, i], points[state.POINT_SIN, i], at
        start += road.lengths[lane]
    ratio = speed / limit_here
    ratio *= ratio
    towards = ACCELERATION_MPS2 * (_ONE - ratio * ratio)
    down = (np.sqrt(allowed) - speed) / _SETTLING_S - slowing
    return max(min(towards, down), -BRAKING_MPS2 - BRAKING_MPS2)


@rule
def _leader_gap(road: Road, agents: Floats, flags: Ints, a: int, b: int, reach: Real) -> tuple[Real, Real]:
    """Return the gap from agent a's front to agent b's box in a's corridor and b's speed along it; FAR if outside.

    An agent that crosses and will be gone in time does not count.
    """
    place, arc, half = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], _HALF * agents[state.LENGTH, a]
    side = _HALF * agents[state.WIDTH, a] + _SIDE_M
    x, y, cos, sin = agents[state.X, b], agents[state.Y, b], agents[state.COS, b], agents[state.SIN, b]
    their_half, their_side = _HALF * agents[state.LENGTH, b], _HALF * agents[state.WIDTH, b]
    begin = _HALF * half
    box = x, y, cos, sin, their_half, their_side
    contact = first_contact(road, flags, a, place, arc, begin, reach, side, box)
    if contact >= FAR:
        return FAR, _ZERO
    gap = contact - half
    path_x, path_y, path_cos, path_sin = route_pose(road, flags, a, place, arc, contact)
    along = cos * path_cos + sin * path_sin
    across = sin * path_cos - cos * path_sin
    speed, their_speed = agents[state.SPEED, a], agents[state.SPEED, b]
    if abs(across) > _CROSSING_SIN and their_speed > _LEAST_MPS and gap > _ZERO:
        # How far its rear has to move until it has left the corridor.
        offset = (y - path_y) * path_cos - (x - path_x) * path_sin
        to_go = side + their_half * abs(across) + their_side * abs(along)
        to_go = to_go - offset if across > _ZERO else to_go + offset
        clearance = to_go / (their_speed * abs(across)) + _AFTER_S
        if gap > clearance * speed and gap > speed * speed / (_TWO * HARDEST_MPS2):
            return FAR, _ZERO
    return min(gap, _gap_before_full_junction(road, agents, flags, a, gap, their_speed)), their_speed * along


@rule
def _gap_before_full_junction(road: Road, agents: Floats, flags: Ints, a: int, gap: Real, their_speed: Real) -> Real:
    """Return the gap to a waiting place before a junction that a slow agent behind it blocks; FAR if there is none."""
    place, lanes, lengths = flags[state.ROUTE_PLACE, a], road.lanes, road.lengths
    if their_speed > _SLOW_MPS or place + 1 >= flags[state.ROUTE_LENGTH, a]:
        return FAR
    lane, across = flags[state.ROUTE + place, a], flags[state.ROUTE + place + 1, a]
    is_fork = lanes[state.LANE_SUCCESSOR_START, lane + 1] - lanes[state.LANE_SUCCESSOR_START, lane] > 1
    to_end = lengths[lane] - agents[state.PATH_ARC, a] - _HALF * agents[state.LENGTH, a]
    beyond = gap - to_end - lengths[across]
    speed = agents[state.SPEED, a]
    can_stop = to_end > _ZERO and speed * speed <= _TWO * _URGENT * to_end
    if is_fork and can_stop and gap > to_end and beyond < agents[state.LENGTH, a] + STANDING_GAP_M:
        return max(to_end + STANDING_GAP_M - _LINE_GAP_M, _ZERO)
    return FAR


@rule
def is_on_route(road: Road, agents: Floats, flags: Ints, b: int) -> bool:
    """Return whether an agent follows its route, so that the route predicts where it goes."""
    if flags[state.ROUTE_LENGTH, b] == 0:
        return False
    if flags[state.ROLE, b] == state.IDM:
        return True
    x, y, cos, sin = route_pose(road, flags, b, flags[state.ROUTE_PLACE, b], agents[state.PATH_ARC, b], _ZERO)
    dx, dy = agents[state.X, b] - x, agents[state.Y, b] - y
    is_near = dx * dx + dy * dy < _ON_ROUTE_M * _ON_ROUTE_M
    return is_near and cos * agents[state.COS, b] + sin * agents[state.SIN, b] > _ON_ROUTE_COS


@rule
def _crossing_gap(road: Road, agents: Floats, flags: Ints, a: int, b: int, reach: Real) -> Real:
    """Return the gap to where agent b, going straight ahead, crosses agent a's way at about its time; FAR if none."""
    their_speed = agents[state.SPEED, b]
    if not their_speed > _LEAST_MPS:
        return FAR
    place, arc, half = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], _HALF * agents[state.LENGTH, a]
    side = _HALF * agents[state.WIDTH, a] + _SIDE_M
    cos, sin = agents[state.COS, b], agents[state.SIN, b]
    sweep = _HALF * their_speed * _LOOK_S
    x, y = agents[state.X, b] + sweep * cos, agents[state.Y, b] + sweep * sin
    their_half, their_side = _HALF * agents[state.LENGTH, b], _HALF * agents[state.WIDTH, b]
    swept = x, y, cos, sin, their_half + sweep, their_side
    contact = first_contact(road, flags, a, place, arc, half, reach, side, swept)
    if contact >= FAR:
        return FAR
    path_x, path_y, path_cos, path_sin = route_pose(road, flags, a, place, arc, contact)
    across = sin * path_cos - cos * path_sin
    if abs(across) <= _CROSSING_SIN:
        return FAR
    gap = contact - half
    speed = max(agents[state.SPEED, a], _LEAST_MPS)
    offset = (agents[state.Y, b] - path_y) * path_cos - (agents[state.X, b] - path_x) * path_sin
    offset = -offset if across > _ZERO else offset  # to the middle of the corridor
    wide = side + their_half * abs(across)
    their_in = (offset - wide) / (their_speed * abs(across))
    their_out = (offset + wide) / (their_speed * abs(across))
    passes = (gap + _TWO * half + _TWO * their_side) / speed
    if their_out + _AFTER_S < gap / speed or their_in > passes + _AFTER_S:
        return FAR
    if speed * speed > _TWO * HARDEST_MPS2 * gap:  # too late to stop, so it is better to pass quickly
        return FAR
    return gap


@rule
def plan(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Write the acceleration of reactive agent a to ALONG."""
    worlds.agents[w, state.ALONG, a] = wanted_acceleration(worlds, maps, scenarios, w, a, p)


@rule
def move(worlds: Worlds, maps: Maps, w: int, a: int, dt: Real, p: Params) -> None:
    """Move reactive agent a along its route. It leaves the world at a dead end and stands still without a route."""
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP]
    agents[state.PREVIOUS_X, a], agents[state.PREVIOUS_Y, a] = agents[state.X, a], agents[state.Y, a]
    if flags[state.ROUTE_LENGTH, a] == 0:
        agents[state.SPEED, a] = agents[state.ACCELERATION, a] = _ZERO
        agents[state.LATERAL, a] = agents[state.JERK, a] = _ZERO
        return
    before = max(agents[state.SPEED, a], _ZERO)
    speed = max(before + agents[state.ALONG, a] * dt, _ZERO)
    distance = _HALF * (before + speed) * dt
    if speed <= _ZERO and agents[state.ALONG, a] < _ZERO:
        distance = before * before / (-_TWO * agents[state.ALONG, a])
    if not advance_place(worlds, maps, w, a, distance):
        flags[state.IS_PRESENT, a] = 0
        return
    place = flags[state.ROUTE_PLACE, a]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    x, y, cos, sin = route_pose(road, flags, a, place, agents[state.PATH_ARC, a], _ZERO)
    offset = agents[state.PATH_OFFSET, a]
    slope = -_RETURN_PER_M * offset  # of the way back to the route
    offset += slope * min(distance, _ONE / _RETURN_PER_M)
    agents[state.PATH_OFFSET, a] = offset
    agents[state.X, a], agents[state.Y, a] = x - offset * sin, y + offset * cos
    norm = _ONE / np.sqrt(_ONE + slope * slope)
    cos, sin = (cos - slope * sin) * norm, (sin + slope * cos) * norm
    turn_cos = cos * agents[state.COS, a] + sin * agents[state.SIN, a]
    turn_sin = sin * agents[state.COS, a] - cos * agents[state.SIN, a]
    agents[state.LATERAL, a] = speed * np.arctan2(turn_sin, turn_cos) / dt
    agents[state.COS, a], agents[state.SIN, a] = cos, sin
    agents[state.HEADING, a] = np.arctan2(sin, cos)
    acceleration = (speed - before) / dt
    agents[state.JERK, a] = (acceleration - agents[state.ACCELERATION, a]) / dt
    agents[state.ACCELERATION, a] = acceleration
    agents[state.SPEED, a] = speed
    flags[state.LANE, a] = flags[state.ROUTE + place, a]
    passes_stop_sign(agents, flags, a, maps, m)
