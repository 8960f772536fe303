"""Tables of traffic lights: where they stop traffic, and which of them are green together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.scenario.pack.outline import ARRAY_PLACES, PackedScenario
from roadworthy.scenario.schema import Floats
from roadworthy.sim import state
from roadworthy.sim.maps.agent_selection import array_bytes, array_floats, array_ints
from roadworthy.sim.state import Maps, Scenarios

# Lights belong to one junction if they are this close to each other and their lanes begin or end at one place, or
# cross. Other lights nearby may belong to the next junction.
JUNCTION_M = np.float32(60.0)
SAME_PLACE_M = np.float32(2.0)
# Directions of travel, modulo half a turn, that differ by less than this belong to one street.
STREET_RAD = 0.5

_LANES, _STOPS, _STATES = (ARRAY_PLACES[name] for name in ("light_lanes", "light_stops", "light_states"))
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_HALF_TURN = np.pi


@kernel
def fill_lights(
    scenario: PackedScenario, first: int, maps: Maps, half_widths: Floats, m: int, scenarios: Scenarios, s: int
) -> bool:
    """Copy lights to slot s: their lines and, from the first frame on, states. Return False for an unknown lane."""
    count, steps = scenario.lights, scenario.steps
    lanes = array_ints(scenario, _LANES, count)
    stops = array_floats(scenario, _STOPS, count * 3).reshape(count, 3)
    states = array_bytes(scenario, _STATES, count * steps).reshape(count, steps)
    for light in range(count):
        if lanes[light] < 0 or lanes[light] >= maps.sizes[m, state.LANE_COUNT]:
            return False
    scenarios.counts[s, state.LIGHT_COUNT] = count
    points, starts, lines = maps.lane_points[m], maps.lanes[m, state.LANE_POINT_START], scenarios.lights[s]
    for light in range(count):
        lane = lanes[light]
        x, y = stops[light, 0], stops[light, 1]
        cos, sin, nearest = _ONE, _ZERO, np.float32(np.inf)
        for i in range(starts[lane], starts[lane + 1]):
            dx, dy = x - points[state.POINT_X, i], y - points[state.POINT_Y, i]
            along = dx * points[state.POINT_COS, i] + dy * points[state.POINT_SIN, i]
            beyond = max(abs(along) - points[state.POINT_HALF, i], _ZERO)
            aside = dy * points[state.POINT_COS, i] - dx * points[state.POINT_SIN, i]
            away = beyond * beyond + aside * aside
            if away < nearest:
                cos, sin, nearest = points[state.POINT_COS, i], points[state.POINT_SIN, i], away
        lines[state.LINE_X, light], lines[state.LINE_Y, light] = x, y
        lines[state.LINE_COS, light], lines[state.LINE_SIN, light] = cos, sin
        lines[state.LINE_HALF, light] = half_widths[m, lane]
        scenarios.light_lanes[s, light] = lane
        scenarios.light_phases[s, light] = scenarios.light_junctions[s, light] = 0
        for f in range(first, steps):
            scenarios.light_states[s, f - first, light] = states[light, f]
    return True


@kernel
def plan_lights(maps: Maps, m: int, scenarios: Scenarios, s: int) -> None:
    """Group the lights into junctions, and those of each junction into two phases by the direction of their streets.

    Opposite directions share a phase, in which left turns have to yield. Crossing directions never share one.
    """
    count = scenarios.counts[s, state.LIGHT_COUNT]
    lines, junctions, phases = scenarios.lights[s], scenarios.light_junctions[s], scenarios.light_phases[s]
    ends = np.empty((count, 4), np.float32)  # where the lane of each light begins and ends
    for light in range(count):
        _ends_of_lane(
            maps,
            m,
            scenarios.light_lanes[s, light],
            lines[state.LINE_X, light],
            lines[state.LINE_Y, light],
            ends[light],
        )
        junctions[light] = light
    for light in range(count):
        for other in range(light):
            if _meet(ends[light], ends[other]):
                one, two = junctions[light], junctions[other]
                low, high = min(one, two), max(one, two)
                for k in range(light + 1):
                    if junctions[k] == high:
                        junctions[k] = low
    angles = np.empty(count, np.float64)
    for junction in range(count):
        members = 0
        for light in range(count):
            if junctions[light] == junction:
                angles[members] = np.arctan2(lines[state.LINE_SIN, light], lines[state.LINE_COS, light]) % _HALF_TURN
                members += 1
        if members:
            begin, end = _street(np.sort(angles[:members]))
            for light in range(count):
                if junctions[light] == junction:
                    angle = np.arctan2(lines[state.LINE_SIN, light], lines[state.LINE_COS, light]) % _HALF_TURN
                    phases[light] = 0 if begin <= angle <= end else 1


@kernel
def _ends_of_lane(maps: Maps, m: int, lane: int, x: float, y: float, ends_out: Floats) -> None:
    points = maps.lane_points[m]
    begin, end = maps.lanes[m, state.LANE_POINT_START, lane], maps.lanes[m, state.LANE_POINT_START, lane + 1] - 1
    ends_out[0] = ends_out[2] = x
    ends_out[1] = ends_out[3] = y
    if begin <= end:
        ends_out[0] = points[state.POINT_X, begin] - points[state.POINT_HALF, begin] * points[state.POINT_COS, begin]
        ends_out[1] = points[state.POINT_Y, begin] - points[state.POINT_HALF, begin] * points[state.POINT_SIN, begin]
        ends_out[2] = points[state.POINT_X, end] + points[state.POINT_HALF, end] * points[state.POINT_COS, end]
        ends_out[3] = points[state.POINT_Y, end] + points[state.POINT_HALF, end] * points[state.POINT_SIN, end]


@kernel
def _meet(one: Floats, two: Floats) -> bool:
    """Return whether two straight lanes of a junction begin or end at one place, or cross."""
    dx, dy = one[0] - two[0], one[1] - two[1]
    apart = dx * dx + dy * dy
    if apart > JUNCTION_M * JUNCTION_M:
        return False
    if apart < SAME_PLACE_M * SAME_PLACE_M:
        return True
    dx, dy = one[2] - two[2], one[3] - two[3]
    if dx * dx + dy * dy < SAME_PLACE_M * SAME_PLACE_M:
        return True
    return _side(one, two[0], two[1]) != _side(one, two[2], two[3]) and _side(two, one[0], one[1]) != _side(
        two, one[2], one[3]
    )


@kernel
def _side(line: Floats, x: float, y: float) -> bool:
    """Return whether a position is to the left of a line."""
    return (line[2] - line[0]) * (y - line[1]) - (line[3] - line[1]) * (x - line[0]) > _ZERO


@kernel
def _street(angles: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of sorted directions from 0 to pi that belong to one of two streets.

    On the circle of directions modulo half a turn, the two widest gaps separate the streets.
    """
    count = len(angles)
    widest = second = -1
    for k in range(count):
        if widest < 0 or _gap(angles, k) > _gap(angles, widest):
            widest, second = k, widest
        elif second < 0 or _gap(angles, k) > _gap(angles, second):
            second = k
    if second < 0 or _gap(angles, second) < STREET_RAD:
        return 0.0, np.pi
    low, high = min(widest, second), max(widest, second)
    return angles[low + 1], angles[high]


@kernel
def _gap(angles: NDArray[np.float64], k: int) -> float:
    """Return the angle from one direction to the next, around the circle."""
    if k + 1 < len(angles):
        return angles[k + 1] - angles[k]
    return angles[0] + np.pi - angles[k]
