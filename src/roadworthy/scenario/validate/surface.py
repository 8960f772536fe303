"""The rule that vehicles and cyclists stay on the drivable surface: crossing numbers over all closed road edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.scenario.schema import AgentType, FeatureKind, Ints, RoadMap, Scenario
from roadworthy.scenario.validate.finding import Finding
from roadworthy.scenario.validate.limits import Limits

ROW_M = 2.0


@dataclass(frozen=True, eq=False)
class Surface:
    """The segments of all road edges, listed by the rows (strips from west to east) that they touch."""

    segments: NDArray[np.float64]  # (S, 4) x and y of both ends
    south: float
    row_starts: Ints  # (rows + 1,)
    row_segments: Ints

    @staticmethod
    def of(road_map: RoadMap) -> Surface | None:
        """Return the surface, or None if the map's edges do not enclose one."""
        return _surface(road_map)

    def outside_by(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n,) the distance of points from the surface, 0 for those on it."""
        return _outside(self.segments, self.south, self.row_starts, self.row_segments, x, y)


@lru_cache(maxsize=8)
def _surface(road_map: RoadMap) -> Surface | None:
    lines = [road_map.polyline(f)[:, :2].astype(np.float64) for f in road_map.features(FeatureKind.ROAD_EDGE)]
    # With an open edge, as in maps cut out of a larger one, inside and outside are undefined.
    if not lines or any(len(line) < 4 or (line[0] != line[-1]).any() for line in lines):
        return None
    segments = np.concatenate([np.hstack([line[:-1], line[1:]]) for line in lines])
    south, north = segments[:, 1].min(), segments[:, 1].max()
    return Surface(segments, float(south), *_rows(segments, south, int((north - south) / ROW_M) + 1))


@kernel
def _rows(segments, south, rows):
    starts = np.zeros(rows + 1, np.int32)
    listed = np.zeros(0, np.int32)
    for filling in range(2):
        for i in range(len(segments)):
            low, high = min(segments[i, 1], segments[i, 3]) - south, max(segments[i, 1], segments[i, 3]) - south
            for row in range(int(low / ROW_M), min(int(high / ROW_M), rows - 1) + 1):
                if filling:
                    starts[row] -= 1
                    listed[starts[row]] = i
                else:
                    starts[row] += 1
        if not filling:
            starts = np.cumsum(starts).astype(np.int32)
            listed = np.zeros(starts[-1], np.int32)
    return starts, listed


def off_road_faults(scenario: Scenario, limits: Limits) -> Iterator[Finding]:
    """Yield at most one finding per vehicle or cyclist."""
    surface = Surface.of(scenario.map)
    if surface is None:
        return
    drives = np.isin(scenario.agent_types, (AgentType.VEHICLE, AgentType.CYCLIST))
    count, worst, step = _off_road(
        surface.segments,
        surface.south,
        surface.row_starts,
        surface.row_segments,
        scenario.positions,
        scenario.headings,
        scenario.sizes,
        scenario.valid,
        drives,
        limits.off_road_m,
    )
    for agent in np.flatnonzero(count):
        what = f"a corner of agent {agent} is {worst[agent]:.2f} m off the road"
        yield Finding("off_road", int(agent), int(step[agent]), what, int(count[agent]))


@kernel
def _off_road(segments, south, row_starts, row_segments, positions, headings, sizes, valid, drives, allowed):
    agents, steps = valid.shape
    count, step_of_worst = np.zeros(agents, np.int32), np.zeros(agents, np.int32)
    worst, x, y = np.zeros(agents), np.zeros(4), np.zeros(4)
    for agent in range(agents):
        if not drives[agent]:
            continue
        last = -1
        outside = 0.0
        for k in range(steps):
            if not valid[agent, k]:
                continue
            stands = (
                last >= 0
                and positions[agent, k, 0] == positions[agent, last, 0]
                and positions[agent, k, 1] == positions[agent, last, 1]
                and headings[agent, k] == headings[agent, last]
            )
            last = k
            if not stands:
                cosine, sine = np.cos(float(headings[agent, k])), np.sin(float(headings[agent, k]))
                for corner in range(4):
                    along = 0.5 * sizes[agent, 0] * (1.0 if corner < 2 else -1.0)
                    beside = 0.5 * sizes[agent, 1] * (1.0 if corner % 2 else -1.0)
                    x[corner] = positions[agent, k, 0] + along * cosine - beside * sine
                    y[corner] = positions[agent, k, 1] + along * sine + beside * cosine
                outside = _outside(segments, south, row_starts, row_segments, x, y).max()
            if outside > allowed:
                count[agent] += 1
                if outside > worst[agent]:
                    worst[agent], step_of_worst[agent] = outside, k
    return count, worst, step_of_worst


@kernel
def _outside(segments, south, row_starts, row_segments, x, y):
    outside = np.zeros(len(x))
    for i in range(len(x)):
        is_inside = False
        row = (y[i] - south) / ROW_M
        if 0.0 <= row < len(row_starts) - 1:
            for j in range(row_starts[int(row)], row_starts[int(row) + 1]):
                s = row_segments[j]
                y0, y1 = segments[s, 1], segments[s, 3]
                if (y0 > y[i]) != (y1 > y[i]):
                    x0, x1 = segments[s, 0], segments[s, 2]
                    if x0 + (y[i] - y0) / (y1 - y0) * (x1 - x0) > x[i]:
                        is_inside = not is_inside
        if not is_inside:
            nearest = np.inf
            for s in range(len(segments)):
                dx, dy = segments[s, 2] - segments[s, 0], segments[s, 3] - segments[s, 1]
                ax, ay = x[i] - segments[s, 0], y[i] - segments[s, 1]
                square = dx * dx + dy * dy
                t = min(max((ax * dx + ay * dy) / square, 0.0), 1.0) if square > 0.0 else 0.0
                nearest = min(nearest, (ax - t * dx) ** 2 + (ay - t * dy) ** 2)
            outside[i] = np.sqrt(nearest)
    return outside
