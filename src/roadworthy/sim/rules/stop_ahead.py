"""Stops ahead: where an agent has to stop on its route, at red or amber lights and at stop signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Ints, LightState
from roadworthy.sim import state
from roadworthy.sim.rules.route_geometry import FAR, Real
from roadworthy.sim.rules.traffic_lights import light_state
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

_ARROW_STOP, _STOP, _FLASHING_STOP = int(LightState.ARROW_STOP), int(LightState.STOP), int(LightState.FLASHING_STOP)
_ARROW_CAUTION, _CAUTION = int(LightState.ARROW_CAUTION), int(LightState.CAUTION)
# An agent that would have to brake harder than this does not stop.
_RED_BRAKING = np.float32(6.5)  # m/s2
_AMBER_BRAKING = np.float32(3.0)
_STOPPED_MPS = np.float32(0.5)
# At a flashing red light it is enough to approach the line this slowly.
_CREEPING_MPS, _AT_LINE_M = np.float32(2.0), np.float32(2.5)
_NONE, _SOME = np.int32(0), np.int32(1)
_ZERO, _HALF, _TWO = np.float32(0.0), np.float32(0.5), np.float32(2.0)


@rule
def stop_ahead(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, reach: Real, p: Params) -> Real:
    """Return the distance from agent a's front to the nearest line on its route where it has to stop; FAR if none."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    m, s = clock[state.MAP], clock[state.SCENARIO]
    speed = max(agents[state.SPEED, a], _ZERO)
    start = -agents[state.PATH_ARC, a] - _HALF * agents[state.LENGTH, a]  # of the lane, relative to the front
    sign_lanes, light_lanes = maps.sign_lanes[m], scenarios.light_lanes[s]
    light_count, sign_count = scenarios.counts[s, state.LIGHT_COUNT], maps.sizes[m, state.SIGN_COUNT]
    nearest = FAR
    for k in range(flags[state.ROUTE_PLACE, a], flags[state.ROUTE_LENGTH, a]):
        if start > reach:
            break
        lane = flags[state.ROUTE + k, a]
        for light in range(light_count if _is_listed(light_lanes, light_count, lane) else 0):
            if light_lanes[light] == lane:
                room = start + _line_on_lane(maps, m, scenarios, s, light, lane)
                if room >= _ZERO and room < nearest:
                    shown = light_state(scenarios, s, light, clock[state.STEP], worlds.seeds[w], p)
                    if _light_stops(shown, room, speed):
                        nearest = room
        start += maps.lane_lengths[m, lane]
        if start >= _ZERO and start < nearest:
            for sign in range(sign_count if _is_listed(sign_lanes, sign_count, lane) else 0):
                if sign_lanes[sign] == lane and not _has_stopped(agents[state.SLOWEST, a], flags, a, sign):
                    if speed * speed <= _TWO * _RED_BRAKING * start:
                        nearest = start
    return nearest if nearest <= reach else FAR


@rule(inline=True)
def _is_listed(lanes: Ints, count: int, lane: int) -> Any:
    """Return whether a lane is among the first `count`, without a branch so that the compiler vectorizes the loop."""
    found = _NONE
    for k in range(count):
        found += _SOME if lanes[k] == lane else _NONE
    return found != _NONE


@rule
def _light_stops(shown: int, room: Real, speed: Real) -> Any:
    needed = speed * speed  # in units of twice the room
    if shown in (_STOP, _ARROW_STOP):
        return needed <= _TWO * _RED_BRAKING * room
    if shown in (_CAUTION, _ARROW_CAUTION):
        return needed <= _TWO * _AMBER_BRAKING * room
    return shown == _FLASHING_STOP and (room > _AT_LINE_M or speed > _CREEPING_MPS)


@rule
def _has_stopped(slowest: Real, flags: Ints, a: int, sign: int) -> Any:
    return flags[state.SIGN_AHEAD, a] == sign and slowest < _STOPPED_MPS


@rule
def _line_on_lane(maps: Maps, m: int, scenarios: Scenarios, s: int, light: int, lane: int) -> Real:
    """Return the distance from the start of the lane that a light controls to its stop line; it may be negative."""
    points, i = maps.lane_points[m], maps.lanes[m, state.LANE_POINT_START, lane]
    if i >= maps.lanes[m, state.LANE_POINT_START, lane + 1]:
        return _ZERO
    dx = scenarios.lights[s, state.LINE_X, light] - points[state.POINT_X, i]
    dy = scenarios.lights[s, state.LINE_Y, light] - points[state.POINT_Y, i]
    return dx * points[state.POINT_COS, i] + dy * points[state.POINT_SIN, i] + points[state.POINT_HALF, i]
