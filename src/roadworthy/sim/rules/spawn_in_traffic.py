"""Spawning in traffic: the speed of a new agent, and whether others would have to brake for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.idm import UNKNOWN_LIMIT_MPS, braking_range, is_on_route, reaction, solo_acceleration
from roadworthy.sim.rules.right_of_way import conflict_range, route_box
from roadworthy.sim.rules.route_geometry import Real, Road, are_close, point_at
from roadworthy.sim.rules.routes import place_on_route
from roadworthy.sim.rules.stop_ahead import stop_ahead
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

_EASY_BRAKING = np.float32(1.5)  # m/s2 that the new agent may need at once
_THEIR_BRAKING = np.float32(2.5)  # m/s2 that it may require of others
_SLOWER, _SPEEDS = np.float32(0.75), 10
_AROUND_M = np.float32(200.0)  # more than the range of two agents together
_BESIDE_M = np.float32(1.0)  # more than is kept free between the sides of two agents
_LEAST_HASTE = np.float32(0.1)
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


@rule
def join_traffic(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, share: Real, p: Params) -> bool:
    """Choose the speed of agent a, which is on its route; return False if another agent would have to brake firmly.

    The speed is a share of the limit, or lower if easy braking would not be enough for what is ahead.
    """
    agents, flags, m = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    haste = max(worlds.hidden[w, state.HASTE], _LEAST_HASTE)
    point = point_at(road, flags[state.ROUTE + flags[state.ROUTE_PLACE, a], a], agents[state.PATH_ARC, a])
    limit = road.points[state.POINT_LIMIT, point]
    agents[state.SPEED, a] = share * (limit if limit > _ZERO else UNKNOWN_LIMIT_MPS)
    _find_driven(worlds, maps, w, a)
    count = list_neighbors(road, agents, flags, a, worlds.clocks[w, state.AGENT_COUNT], haste, worlds.order[w])
    _slow_down(worlds, maps, scenarios, w, a, count, haste, p)
    return not _disturbs(worlds, maps, scenarios, w, a, count, haste, p)


@rule
def _find_driven(worlds: Worlds, maps: Maps, w: int, a: int) -> None:
    """Update the places on their routes of policy-driven agents around agent a, which are not updated in every step."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    if clock[state.STEP] == 0:
        return  # they are where they were spawned
    for b in range(clock[state.DRIVEN_COUNT]):
        if b != a and flags[state.IS_PRESENT, b] != 0:
            dx, dy = agents[state.X, b] - agents[state.X, a], agents[state.Y, b] - agents[state.Y, a]
            if dx * dx + dy * dy < _AROUND_M * _AROUND_M:
                place_on_route(worlds, maps, w, b)


@rule
def list_neighbors(road: Road, agents: Floats, flags: Ints, a: int, count: int, haste: Real, order_out: Ints) -> Any:
    """List the present agents that may interact with agent a, and return how many. None that matters is left out."""
    x, y, range_a = agents[state.X, a], agents[state.Y, a], conflict_range(agents, a)
    view = route_box(road, agents, flags, a, range_a)
    box = route_box(road, agents, flags, a, max(braking_range(agents, a, haste), range_a))
    found = 0
    for b in range(count):
        if b == a or flags[state.IS_PRESENT, b] == 0:
            continue
        x_b, y_b = agents[state.X, b], agents[state.Y, b]
        range_b, reach_b = conflict_range(agents, b), braking_range(agents, b, haste)
        margin = agents[state.RADIUS, a] + agents[state.RADIUS, b] + _BESIDE_M
        here = (x_b, x_b, y_b, y_b)
        is_neighbor = are_close(here, box, margin)
        # Bounding how far a route can lead is faster than following it.
        if not is_neighbor and are_close(here, view, margin + range_b):
            is_neighbor = are_close(route_box(road, agents, flags, b, range_b), view, margin)
        if not is_neighbor and are_close(here, (x, x, y, y), margin + reach_b):
            is_neighbor = are_close(route_box(road, agents, flags, b, reach_b), (x, x, y, y), margin)
        if not is_neighbor and are_close(here, box, margin + range_b) and not is_on_route(road, agents, flags, b):
            x_ahead, y_ahead = x_b + range_b * agents[state.COS, b], y_b + range_b * agents[state.SIN, b]
            ahead = (min(x_b, x_ahead), max(x_b, x_ahead), min(y_b, y_ahead), max(y_b, y_ahead))
            is_neighbor = are_close(ahead, box, margin)
        if is_neighbor:
            order_out[found] = b
            found += 1
    return found


@rule
def _slow_down(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, count: int, haste: Real, p: Params
) -> None:
    """Lower agent a's speed until easy braking is enough for what is ahead."""
    agents, flags, m, neighbors = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP], worlds.order[w]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    # At a standstill every line with a red light or a sign counts, also one that is too close at a higher speed.
    speed, agents[state.SPEED, a] = agents[state.SPEED, a], _ZERO
    room = stop_ahead(worlds, maps, scenarios, w, a, _ONE + speed * speed / (_TWO * _EASY_BRAKING), p)
    speed = min(speed, np.sqrt(_TWO * _EASY_BRAKING * max(room - _ONE, _ZERO)))
    for _ in range(_SPEEDS):
        agents[state.SPEED, a] = speed
        reach = braking_range(agents, a, haste)
        stop = stop_ahead(worlds, maps, scenarios, w, a, reach, p)
        is_slow_enough = solo_acceleration(road, agents, flags, a, reach, stop, haste) >= -_EASY_BRAKING
        box, k = route_box(road, agents, flags, a, max(reach, conflict_range(agents, a))), 0
        while is_slow_enough and k < count:
            b = neighbors[k]
            is_slow_enough = reaction(worlds, maps, scenarios, w, a, b, reach, stop, box, p) >= -_EASY_BRAKING
            if not is_slow_enough:  # test the agent that was in the way first at the next speed
                neighbors[0], neighbors[k] = b, neighbors[0]
            k += 1
        if is_slow_enough:
            return
        speed *= _SLOWER
    agents[state.SPEED, a] = _ZERO


@rule
def _disturbs(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, count: int, haste: Real, p: Params
) -> bool:
    """Return whether one of the listed neighbors would have to brake firmly because of agent a."""
    agents, flags, m, neighbors = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w, state.MAP], worlds.order[w]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    for k in range(count):
        b = neighbors[k]
        if flags[state.ROUTE_LENGTH, b] > 0:
            reach = braking_range(agents, b, haste)
            stop = stop_ahead(worlds, maps, scenarios, w, b, reach, p)
            box = route_box(road, agents, flags, b, max(reach, conflict_range(agents, b)))
            if reaction(worlds, maps, scenarios, w, b, a, reach, stop, box, p) < -_THEIR_BRAKING:
                return True
    return False
