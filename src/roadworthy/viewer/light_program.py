"""The program of the lights of an open world: which lights share a junction, when each is green, and what each shows.

The simulator computes the same from its own tables (sim/maps/light_tables.py), which readers of records do not load. A
test compares the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import LightState, Scenario

_JUNCTION_M, _SAME_PLACE_M, _STREET_RAD = 60.0, 2.0, 0.5
_HALF_TURN = np.pi
# As in sim/rules/traffic_lights.py: a phase is 12 s green, 3 s amber and 2 s red to all.
_GREEN_S, _AMBER_UNTIL_S, _PHASE_S = np.float32(12.0), np.float32(15.0), np.float32(17.0)
_CYCLE_S = np.float32(2 * _PHASE_S)
_LIGHTS, _WORLD = 12, 1 << 20  # the keys of the draw, as in sim/rules/draws.py
Doubles = NDArray[np.float64]


def program_states(scenario: Scenario, seed: int, steps: int) -> NDArray[np.uint8]:
    """Return what the lights of an open world show in the first steps of a trial, (L, steps) LightState."""
    junctions, phases = junctions_and_phases(scenario)
    begin = np.array([_uniform(seed, _WORLD + junction) for junction in junctions.tolist()], np.float32)
    cycles = np.arange(steps, dtype=np.float32) * np.float32(scenario.dt) / _CYCLE_S + begin[:, None]
    time = (cycles - np.floor(cycles)) * _CYCLE_S
    is_second = time >= _PHASE_S
    time = np.where(is_second, time - _PHASE_S, time)
    states = np.where(time < _GREEN_S, LightState.GO, LightState.CAUTION)
    is_red = (is_second != (phases[:, None] == 1)) | (time >= _AMBER_UNTIL_S)
    return np.where(is_red, LightState.STOP, states).astype(np.uint8)


def _uniform(seed: int, key: int) -> float:
    """Return the draw of a junction in [0, 1): a hash (SplitMix64) of the seed of the episode and the junction."""
    bits, whole = seed, (1 << 64) - 1
    for number in (key, 0, _LIGHTS):
        z = (bits + (number + 1) * 0x9E3779B97F4A7C15) & whole
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & whole
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & whole
        bits = z ^ (z >> 31)
    return float((bits >> 40) * 2.0**-24)


def junctions_and_phases(scenario: Scenario) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the junction (the number of its first light) and the phase (0 or 1) of each light, (L,) and (L,).

    Lights share a junction if they are near each other and their lanes begin or end at one place, or cross. In a
    junction, opposite directions share a phase; crossing directions never do.
    """
    count = len(scenario.light_lanes)
    ends, angles = np.zeros((count, 2, 2)), np.zeros(count)
    for light, lane in enumerate(scenario.light_lanes.tolist()):
        line = scenario.map.polyline(lane)[:, :2].astype(np.float64)
        ends[light] = line[0], line[-1]
        angles[light] = _heading_at(line, scenario.light_stops[light, :2]) % _HALF_TURN
    junctions = np.arange(count, dtype=np.int32)
    for light in range(count):
        for other in range(light):
            if _meet(ends[light], ends[other]):
                low, high = sorted((int(junctions[light]), int(junctions[other])))
                junctions[: light + 1][junctions[: light + 1] == high] = low
    phases = np.zeros(count, np.int32)
    for junction in np.unique(junctions):
        members = junctions == junction
        begin, end = _street(np.sort(angles[members]))
        phases[members] = np.where((begin <= angles[members]) & (angles[members] <= end), 0, 1)
    return junctions, phases


def _heading_at(line: Doubles, stop: NDArray[np.float32]) -> float:
    """Return the heading of the piece of a line that is nearest to a point."""
    along = np.diff(line, axis=0)
    lengths = np.hypot(along[:, 0], along[:, 1])
    line, along, lengths = line[:-1][lengths > 0], along[lengths > 0], lengths[lengths > 0]
    if not len(lengths):
        return 0.0
    share = np.clip(((stop - line) * along).sum(1) / lengths**2, 0.0, 1.0)
    away = stop - (line + share[:, None] * along)
    nearest = int(np.argmin((away**2).sum(1)))
    return float(np.arctan2(along[nearest, 1], along[nearest, 0]))


def _meet(one: Doubles, two: Doubles) -> bool:
    """Return whether two lanes of a junction, given by their ends, begin or end at one place, or cross."""
    begin, end = np.hypot(*(one[0] - two[0])), np.hypot(*(one[1] - two[1]))
    if begin > _JUNCTION_M:
        return False
    if begin < _SAME_PLACE_M or end < _SAME_PLACE_M:
        return True
    return _is_left(one, two[0]) != _is_left(one, two[1]) and _is_left(two, one[0]) != _is_left(two, one[1])


def _is_left(line: Doubles, point: Doubles) -> bool:
    (x, y), (dx, dy) = line[0], line[1] - line[0]
    return bool(dx * (point[1] - y) - dy * (point[0] - x) > 0.0)


def _street(angles: Doubles) -> tuple[float, float]:
    """Return the range of directions of the first of two streets; the two widest gaps separate them."""
    gaps = np.diff(np.append(angles, angles[0] + _HALF_TURN))
    order = np.argsort(-gaps, kind="stable")
    if len(order) < 2 or gaps[order[1]] < _STREET_RAD:
        return 0.0, _HALF_TURN
    low, high = sorted(order[:2].tolist())
    return float(angles[low + 1]), float(angles[high])
