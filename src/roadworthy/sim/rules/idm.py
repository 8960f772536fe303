"""Reactive traffic: the intelligent driver model on the lanes of a route, with lights, bends and right of way.

`wanted_acceleration` is the judgement: what an agent on its route should do about its speed. Reactive agents (role idm)
act on it on rails, by `plan` and `move`; anybody else who has a route may ask for it after `place_on_route`.
The model: Treiber, Hennecke and Helbing (2000), as the lesser of the free and the following acceleration.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules.lights import passes_stop_sign
from roadworthy.sim.rules.right_of_way import conflict_range, give_way, route_box
from roadworthy.sim.rules.route_geometry import FAR, Box, Real, Road, are_close, first_contact, point_at, route_pose
from roadworthy.sim.rules.routes import advance_place
from roadworthy.sim.rules.stop_ahead import stop_ahead
from roadworthy.sim.state import (
    ACCELERATION,
    AGENT_COUNT,
    ALONG,
    COS,
    HASTE,
    HEADING,
    IDM,
    IS_PRESENT,
    JERK,
    LANE,
    LANE_SUCCESSOR_START,
    LATERAL,
    LENGTH,
    MAP,
    PATH_ARC,
    PATH_OFFSET,
    POINT_ARC,
    POINT_COS,
    POINT_LIMIT,
    POINT_SIN,
    PREVIOUS_X,
    PREVIOUS_Y,
    RADIUS,
    ROLE,
    ROUTE,
    ROUTE_LENGTH,
    ROUTE_PLACE,
    SIN,
    SPEED,
    WIDTH,
    Maps,
    Params,
    Scenarios,
    Worlds,
    X,
    Y,
)

ACCELERATION_MPS2 = np.float32(1.6)  # the most that is asked for
BRAKING_MPS2 = np.float32(2.2)  # comfortable
HARDEST_MPS2 = np.float32(8.0)  # in an emergency
HEADWAY_S = np.float32(1.2)
STANDING_GAP_M = np.float32(2.0)
LATERAL_MPS2 = np.float32(2.5)  # in bends
UNKNOWN_LIMIT_MPS = np.float32(11.2)  # where the map names no limit
NO_BOX = (FAR, -FAR, FAR, -FAR)  # of who has no route: nobody is near it

_LINE_GAP_M = np.float32(0.7)  # from the front to a line, when standing
_URGENT = np.float32(3.0)  # m/s2 needed, from which the model's own braking is not relied on
_REACH_M, _LONGEST_REACH_M = np.float32(12.0), np.float32(150.0)
_SIDE_M = np.float32(0.2)  # kept free beside the own box
_BEND_M = np.float32(3.0)  # over which a bend is measured, since single pieces are noisy
_LEAST_CURVATURE = np.float32(1.0e-4)
_BEND_BRAKING = np.float32(1.6)  # m/s2 before bends and lower limits
_SETTLING_S = np.float32(0.8)
_LOOK_S = np.float32(2.5)  # for which who is on no route is expected to go straight on
_ON_ROUTE_M, _ON_ROUTE_COS = np.float32(1.0), np.float32(0.9)
_CROSSING_SIN = np.float32(0.5)
_AFTER_S = np.float32(0.5)
_LEAST_MPS = np.float32(0.5)
_SLOW_MPS = np.float32(2.0)
_RETURN_PER_M = np.float32(0.12)  # share of its offset that an agent on rails loses per metre
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
_TENTH = np.float32(0.1)


@rule
def idm_acceleration(speed: Real, gap: Real, their_speed: Real, headway: Real, standing_gap: Real) -> Real:
    """The model's acceleration behind something at a gap ahead; harder where that alone would not avoid it."""
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
    """m/s2 that suits agent a, whose place on its route is up to date, from where everybody is."""
    wanted, reach, stop, box = plan_alone(worlds, maps, scenarios, w, a, p)
    for b in range(worlds.clocks[w, AGENT_COUNT]):
        if may_interact(worlds.agents[w], worlds.agent_flags[w], a, b, box):
            wanted = min(wanted, reaction(worlds, maps, scenarios, w, a, b, reach, stop, box, p))
    return max(wanted, -HARDEST_MPS2)


@rule
def plan_alone(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params
) -> tuple[Real, Real, Real, Box]:
    """What suits agent a while nobody else is there, in m/s2; its reach, its `stop_ahead` and the way that it minds."""
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, MAP]
    if flags[ROUTE_LENGTH, a] == 0:
        return -BRAKING_MPS2, _ZERO, FAR, NO_BOX
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    haste = max(worlds.hidden[w, HASTE], _TENTH)
    reach = braking_range(agents, a, haste)
    stop = stop_ahead(worlds, maps, scenarios, w, a, reach, p)
    wanted = solo_acceleration(road, agents, flags, a, reach, stop, haste)
    return wanted, reach, stop, route_box(road, agents, flags, a, max(reach, conflict_range(agents, a)))


@rule
def may_interact(agents: Floats, flags: Ints, a: int, b: int, box: Box) -> bool:
    """Whether agent b is there, and its surroundings, as far as it looks ahead, are not beside all of agent a's way."""
    west, east, south, north = box
    x, y, around = agents[X, b], agents[Y, b], conflict_range(agents, b) + agents[RADIUS, b]
    is_near = (x > west - around) & (x < east + around) & (y > south - around) & (y < north + around)
    return is_near and b != a and flags[IS_PRESENT, b] != 0


@rule
def solo_acceleration(road: Road, agents: Floats, flags: Ints, a: int, reach: Real, stop: Real, haste: Real) -> Real:
    """m/s2 that suits agent a while nobody else is there. `stop`: its `stop_ahead`."""
    wanted = _free_acceleration(road, agents, flags, a, reach, haste)
    if stop < FAR:
        speed = max(agents[SPEED, a], _ZERO)
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
    """m/s2 that suits agent a because of agent b alone, FAR if b does not matter.

    stop, way: a's own `stop_ahead`, and its `route_box` as far as its reach and its outlook.
    """
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    haste = max(worlds.hidden[w, HASTE], _TENTH)
    headway, standing_gap = HEADWAY_S / haste, STANDING_GAP_M / haste
    x, y, gap, their_speed = agents[X, b], agents[Y, b], FAR, _ZERO
    if are_close((x, x, y, y), box, agents[RADIUS, a] + agents[RADIUS, b]):
        gap, their_speed = _leader_gap(road, agents, flags, a, b, reach)
    if gap >= FAR:
        if is_on_route(road, agents, flags, b):
            gap, their_speed = give_way(worlds, maps, scenarios, w, a, b, stop, p)
        else:
            gap, their_speed = _crossing_gap(road, agents, flags, a, b, reach), _ZERO
        if gap >= FAR:
            return FAR
        if their_speed <= _ZERO:
            standing_gap = _LINE_GAP_M  # a place where to wait, with room to spare before it
    return idm_acceleration(max(agents[SPEED, a], _ZERO), gap, their_speed, headway, standing_gap)


@rule
def braking_range(agents: Floats, a: int, haste: Real) -> Real:
    """Metres ahead of its middle that matter to an agent: enough to stop in comfort."""
    speed = max(agents[SPEED, a], _ZERO)
    reach = _HALF * agents[LENGTH, a] + _REACH_M + speed * HEADWAY_S / haste + speed * speed / (_TWO * BRAKING_MPS2)
    return min(reach, _LONGEST_REACH_M)


@rule
def _free_acceleration(road: Road, agents: Floats, flags: Ints, a: int, reach: Real, haste: Real) -> Real:
    """On an empty road: towards the limit, and down in time for bends and lower limits ahead."""
    points = road.points
    speed, half = max(agents[SPEED, a], _ZERO), _HALF * agents[LENGTH, a]
    limit_here = UNKNOWN_LIMIT_MPS
    allowed, slowing = FAR * FAR, _ZERO  # the square of the speed, and the braking that goes with it
    is_first = True
    bend_cos, bend_sin, bend_at = _ONE, _ZERO, _ZERO
    start = -agents[PATH_ARC, a]
    for k in range(flags[ROUTE_PLACE, a], flags[ROUTE_LENGTH, a]):
        if start > reach:
            break
        lane = flags[ROUTE + k, a]
        first = point_at(road, lane, -start)
        if first >= 0:
            limit = points[POINT_LIMIT, first]
            limit = haste * (limit if limit > _ZERO else UNKNOWN_LIMIT_MPS)
            ahead = max(start - half, _ZERO)
            if is_first:
                limit_here = limit
                bend_cos, bend_sin = points[POINT_COS, first], points[POINT_SIN, first]
                bend_at, is_first = start + points[POINT_ARC, first], False
            square = limit * limit + _TWO * _BEND_BRAKING * ahead
            if square < allowed:
                allowed, slowing = square, _BEND_BRAKING if ahead > _ZERO else _ZERO
            for i in range(first, point_at(road, lane, reach - start) + 1):
                at = start + points[POINT_ARC, i]
                if at - bend_at >= _BEND_M:
                    cos = points[POINT_COS, i] * bend_cos + points[POINT_SIN, i] * bend_sin
                    # The chord between two directions is as good as the angle, in what cars can turn over this length.
                    turn = np.sqrt(max(_TWO - _TWO * cos, _ZERO))
                    curvature = max(turn / (at - bend_at), _LEAST_CURVATURE)
                    ahead = max(bend_at, _ZERO)
                    square = haste * LATERAL_MPS2 / curvature + _TWO * _BEND_BRAKING * ahead
                    if square < allowed:
                        allowed, slowing = square, _BEND_BRAKING if ahead > _ZERO else _ZERO
                    bend_cos, bend_sin, bend_at = points[POINT_COS, i], points[POINT_SIN, i], at
        start += road.lengths[lane]
    ratio = speed / limit_here
    ratio *= ratio
    towards = ACCELERATION_MPS2 * (_ONE - ratio * ratio)
    down = (np.sqrt(allowed) - speed) / _SETTLING_S - slowing
    return max(min(towards, down), -BRAKING_MPS2 - BRAKING_MPS2)


@rule
def _leader_gap(road: Road, agents: Floats, flags: Ints, a: int, b: int, reach: Real) -> tuple[Real, Real]:
    """The gap from agent a's front to agent b's box, if it is in a's corridor, and its speed along it; FAR if not.

    Somebody who crosses and will be gone in time is not in the way.
    """
    place, arc, half = flags[ROUTE_PLACE, a], agents[PATH_ARC, a], _HALF * agents[LENGTH, a]
    side = _HALF * agents[WIDTH, a] + _SIDE_M
    x, y, cos, sin = agents[X, b], agents[Y, b], agents[COS, b], agents[SIN, b]
    their_half, their_side = _HALF * agents[LENGTH, b], _HALF * agents[WIDTH, b]
    begin = _HALF * half
    contact = first_contact(road, flags, a, place, arc, begin, reach, side, x, y, cos, sin, their_half, their_side)
    if contact >= FAR:
        return FAR, _ZERO
    gap = contact - half
    path_x, path_y, path_cos, path_sin = route_pose(road, flags, a, place, arc, contact)
    along = cos * path_cos + sin * path_sin
    across = sin * path_cos - cos * path_sin
    speed, their_speed = agents[SPEED, a], agents[SPEED, b]
    if abs(across) > _CROSSING_SIN and their_speed > _LEAST_MPS and gap > _ZERO:
        # How far its rear has to go until it is beside the corridor.
        offset = (y - path_y) * path_cos - (x - path_x) * path_sin
        to_go = side + their_half * abs(across) + their_side * abs(along)
        to_go = to_go - offset if across > _ZERO else to_go + offset
        clearance = to_go / (their_speed * abs(across)) + _AFTER_S
        if gap > clearance * speed and gap > speed * speed / (_TWO * HARDEST_MPS2):
            return FAR, _ZERO
    return min(gap, _gap_before_full_junction(road, agents, flags, a, gap, their_speed)), their_speed * along


@rule
def _gap_before_full_junction(road: Road, agents: Floats, flags: Ints, a: int, gap: Real, their_speed: Real) -> Real:
    """Where to wait for somebody slow behind a junction: before it, if there is no room to leave it; FAR otherwise."""
    place, lanes, lengths = flags[ROUTE_PLACE, a], road.lanes, road.lengths
    if their_speed > _SLOW_MPS or place + 1 >= flags[ROUTE_LENGTH, a]:
        return FAR
    lane, across = flags[ROUTE + place, a], flags[ROUTE + place + 1, a]
    is_fork = lanes[LANE_SUCCESSOR_START, lane + 1] - lanes[LANE_SUCCESSOR_START, lane] > 1
    to_end = lengths[lane] - agents[PATH_ARC, a] - _HALF * agents[LENGTH, a]
    beyond = gap - to_end - lengths[across]
    speed = agents[SPEED, a]
    can_stop = to_end > _ZERO and speed * speed <= _TWO * _URGENT * to_end
    if is_fork and can_stop and gap > to_end and beyond < agents[LENGTH, a] + STANDING_GAP_M:
        return max(to_end + STANDING_GAP_M - _LINE_GAP_M, _ZERO)
    return FAR


@rule
def is_on_route(road: Road, agents: Floats, flags: Ints, b: int) -> bool:
    """Whether an agent follows its route, so that the route tells where it goes."""
    if flags[ROUTE_LENGTH, b] == 0:
        return False
    if flags[ROLE, b] == IDM:
        return True
    x, y, cos, sin = route_pose(road, flags, b, flags[ROUTE_PLACE, b], agents[PATH_ARC, b], _ZERO)
    dx, dy = agents[X, b] - x, agents[Y, b] - y
    is_near = dx * dx + dy * dy < _ON_ROUTE_M * _ON_ROUTE_M
    return is_near and cos * agents[COS, b] + sin * agents[SIN, b] > _ON_ROUTE_COS


@rule
def _crossing_gap(road: Road, agents: Floats, flags: Ints, a: int, b: int, reach: Real) -> Real:
    """The gap to where agent b, going straight on, will be in agent a's way at about the same time; FAR for none."""
    their_speed = agents[SPEED, b]
    if not their_speed > _LEAST_MPS:
        return FAR
    place, arc, half = flags[ROUTE_PLACE, a], agents[PATH_ARC, a], _HALF * agents[LENGTH, a]
    side = _HALF * agents[WIDTH, a] + _SIDE_M
    cos, sin = agents[COS, b], agents[SIN, b]
    sweep = _HALF * their_speed * _LOOK_S
    x, y = agents[X, b] + sweep * cos, agents[Y, b] + sweep * sin
    their_half, their_side = _HALF * agents[LENGTH, b], _HALF * agents[WIDTH, b]
    contact = first_contact(
        road, flags, a, place, arc, half, reach, side, x, y, cos, sin, their_half + sweep, their_side
    )
    if contact >= FAR:
        return FAR
    path_x, path_y, path_cos, path_sin = route_pose(road, flags, a, place, arc, contact)
    across = sin * path_cos - cos * path_sin
    if abs(across) <= _CROSSING_SIN:
        return FAR
    gap = contact - half
    speed = max(agents[SPEED, a], _LEAST_MPS)
    offset = (agents[Y, b] - path_y) * path_cos - (agents[X, b] - path_x) * path_sin
    offset = -offset if across > _ZERO else offset  # to go to the middle of the corridor
    wide = side + their_half * abs(across)
    their_in = (offset - wide) / (their_speed * abs(across))
    their_out = (offset + wide) / (their_speed * abs(across))
    passes = (gap + _TWO * half + _TWO * their_side) / speed
    if their_out + _AFTER_S < gap / speed or their_in > passes + _AFTER_S:
        return FAR
    if speed * speed > _TWO * HARDEST_MPS2 * gap:  # too late: the sooner past the better
        return FAR
    return gap


@rule
def plan(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Write what reactive agent a wants to do to ALONG; nothing else changes."""
    worlds.agents[w, ALONG, a] = wanted_acceleration(worlds, maps, scenarios, w, a, p)


@rule
def move(worlds: Worlds, maps: Maps, w: int, a: int, dt: Real, p: Params) -> None:
    """Move reactive agent a along its route. At a dead end it leaves; without a route it stands."""
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, MAP]
    agents[PREVIOUS_X, a], agents[PREVIOUS_Y, a] = agents[X, a], agents[Y, a]
    if flags[ROUTE_LENGTH, a] == 0:
        agents[SPEED, a] = agents[ACCELERATION, a] = agents[LATERAL, a] = agents[JERK, a] = _ZERO
        return
    before = max(agents[SPEED, a], _ZERO)
    speed = max(before + agents[ALONG, a] * dt, _ZERO)
    distance = _HALF * (before + speed) * dt
    if speed <= _ZERO and agents[ALONG, a] < _ZERO:
        distance = before * before / (-_TWO * agents[ALONG, a])
    if not advance_place(worlds, maps, w, a, distance):
        flags[IS_PRESENT, a] = 0
        return
    place = flags[ROUTE_PLACE, a]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    x, y, cos, sin = route_pose(road, flags, a, place, agents[PATH_ARC, a], _ZERO)
    offset = agents[PATH_OFFSET, a]
    slope = -_RETURN_PER_M * offset  # at which it goes back to the route
    offset += slope * min(distance, _ONE / _RETURN_PER_M)
    agents[PATH_OFFSET, a] = offset
    agents[X, a], agents[Y, a] = x - offset * sin, y + offset * cos
    norm = _ONE / np.sqrt(_ONE + slope * slope)
    cos, sin = (cos - slope * sin) * norm, (sin + slope * cos) * norm
    turn_cos = cos * agents[COS, a] + sin * agents[SIN, a]
    turn_sin = sin * agents[COS, a] - cos * agents[SIN, a]
    agents[LATERAL, a] = speed * np.arctan2(turn_sin, turn_cos) / dt
    agents[COS, a], agents[SIN, a] = cos, sin
    agents[HEADING, a] = np.arctan2(sin, cos)
    acceleration = (speed - before) / dt
    agents[JERK, a] = (acceleration - agents[ACCELERATION, a]) / dt
    agents[ACCELERATION, a] = acceleration
    agents[SPEED, a] = speed
    flags[LANE, a] = flags[ROUTE + place, a]
    passes_stop_sign(agents, flags, a, maps, m)
