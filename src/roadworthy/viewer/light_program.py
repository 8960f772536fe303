"""The program of the lights of an open world: which lights share a junction, and in which phase each is green.

The simulator computes the same from its own tables (sim/maps/light_tables.py), which readers of records do not load. A
test compares the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Scenario

_JUNCTION_M, _SAME_PLACE_M, _STREET_RAD = 60.0, 2.0, 0.5
_HALF_TURN = np.pi
Doubles = NDArray[np.float64]


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
