"""The path of the self-driving car through the lanes: one line with stations that continues beyond the recording."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.lanes.network import Doubles, LaneNetwork
from roadworthy.scenario.schema import Floats, Ints

AHEAD_M = 60.0  # how far the path continues beyond the last step


@dataclass(frozen=True, eq=False)
class Path:
    """Lanes in driving order. A station is the distance in m from the start of the first lane."""

    network: LaneNetwork
    lanes: tuple[int, ...]
    base: Doubles  # (lanes of the map,) the station at which each lane starts, NaN for lanes off the path
    end: float  # station

    @staticmethod
    def of(network: LaneNetwork, lane: Ints, arc: Floats, x: Floats, y: Floats) -> Path:
        """Return the path of an agent from its lanes and positions, all (T,)."""
        # One entry more than there are lanes, so that lane -1 ("none") reads NaN.
        base = np.full(len(network.length) + 1, np.nan)
        on_lane = np.flatnonzero(lane >= 0)
        if not len(on_lane):
            return Path(network, (), base, 0.0)
        starts = on_lane[np.flatnonzero(np.diff(lane[on_lane], prepend=-1))]
        lanes = [int(lane[starts[0]])]
        base[lanes[0]] = 0.0
        for step in starts[1:]:
            before, after = lanes[-1], int(lane[step])
            if after in network.following(before):
                place = base[before] + network.length[before]
            else:
                last = on_lane[np.searchsorted(on_lane, step) - 1]
                traveled = np.hypot(x[step] - x[last], y[step] - y[last])
                place = base[before] + arc[last] + traveled - arc[step]
            if after not in lanes:
                base[after] = place
            lanes.append(after)
        end = float(base[lanes[-1]] + network.length[lanes[-1]])
        goal = float(base[lanes[-1]] + arc[on_lane[-1]] + AHEAD_M)
        while end < goal:
            following = [int(n) for n in network.following(lanes[-1]) if n not in lanes]
            if not following:
                break
            straightest = min(following, key=lambda n: (abs(network.turn[n]), n))
            base[straightest] = end
            lanes.append(straightest)
            end += float(network.length[straightest])
        return Path(network, tuple(lanes), base, end)

    @cached_property
    def line(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return x, y and station of the path's points."""
        if not self.lanes:
            return np.zeros(0), np.zeros(0), np.zeros(0)
        pieces = [self.network.center(lane) for lane in dict.fromkeys(self.lanes)]
        stations = [arc + self.base[lane] for (_, _, arc), lane in zip(pieces, dict.fromkeys(self.lanes), strict=True)]
        return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces]), np.concatenate(stations)

    def project(self, x: Floats | Doubles, y: Floats | Doubles) -> tuple[Doubles, Doubles]:
        """Return station and offset to the left of points, each (n,), at the nearest point of the path."""
        return _project(*self.line, x.astype(np.float64), y.astype(np.float64))

    def crossing(self, polygon: Floats) -> tuple[float, float] | None:
        """Return the stations between which the path crosses a polygon of (n, 2 or 3) points, None if it does not."""
        entry, exit_ = _crossing(*self.line, polygon[:, 0].astype(np.float64), polygon[:, 1].astype(np.float64))
        return (entry, exit_) if entry < exit_ else None

    def half_width_at(self, station: float) -> float:
        """Return half the width of the lane at a station."""
        for lane in self.lanes:
            if self.base[lane] <= station <= self.base[lane] + self.network.length[lane]:
                return float(self.network.half_width[lane])
        return float(self.network.half_width[self.lanes[-1]])


@kernel
def _project(line_x, line_y, line_station, x, y):
    stations, offsets = np.full(len(x), np.nan), np.full(len(x), np.nan)
    for i in range(len(x)):
        nearest = np.inf
        for p in range(len(line_x) - 1):
            dx, dy = line_x[p + 1] - line_x[p], line_y[p + 1] - line_y[p]
            square = dx * dx + dy * dy
            if square == 0.0:
                continue
            ax, ay = x[i] - line_x[p], y[i] - line_y[p]
            t = min(max((dx * ax + dy * ay) / square, 0.0), 1.0)
            distance = np.hypot(ax - t * dx, ay - t * dy)
            if distance < nearest:
                nearest = distance
                side = dx * ay - dy * ax
                stations[i] = line_station[p] + t * (line_station[p + 1] - line_station[p])
                offsets[i] = distance if side >= 0.0 else -distance
    return stations, offsets


@kernel
def _crossing(line_x, line_y, line_station, polygon_x, polygon_y):
    """Return the first and the last station at which a line meets the outline of a polygon."""
    entry, exit_ = np.inf, -np.inf
    west, east, south, north = polygon_x.min(), polygon_x.max(), polygon_y.min(), polygon_y.max()
    n = len(polygon_x)
    for p in range(len(line_x) - 1):
        ax, ay, bx, by = line_x[p], line_y[p], line_x[p + 1], line_y[p + 1]
        if max(ax, bx) < west or min(ax, bx) > east or max(ay, by) < south or min(ay, by) > north:
            continue
        for i in range(n):
            cx, cy, dx, dy = polygon_x[i], polygon_y[i], polygon_x[(i + 1) % n], polygon_y[(i + 1) % n]
            determinant = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
            if determinant == 0.0:
                continue
            t = ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / determinant
            u = ((cx - ax) * (by - ay) - (cy - ay) * (bx - ax)) / determinant
            if 0.0 <= t <= 1.0 and 0.0 <= u <= 1.0:
                station = line_station[p] + t * (line_station[p + 1] - line_station[p])
                entry, exit_ = min(entry, station), max(exit_, station)
    return entry, exit_
