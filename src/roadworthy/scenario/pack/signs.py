"""Stop lines of stop signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.prepare import MapTables
from roadworthy.scenario.schema import Floats, Ints, RoadMap

DEFAULT_WIDTH_M = 3.6

Doubles = NDArray[np.float64]


def sign_lines(road_map: RoadMap, tables: MapTables) -> tuple[Floats, Ints]:
    """Return (5, signs) midpoint x and y, driving direction cosine and sine, half width in m, and (signs,) lanes.

    A sign's line is the stop line at the end of the lane that it applies to, or of the lanes that lead into that lane.
    If the map has no such line, it crosses the lane beside the sign. A line that several signs or lanes share occurs
    once.
    """
    line_of_lane = {int(lane): number for number, lane in enumerate(road_map.stop_line_lanes)}
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    for sign, lane in road_map.stop_signs.tolist():
        leading = tables.predecessors[tables.predecessor_starts[lane] : tables.predecessor_starts[lane + 1]]
        ends = [own for own in (lane, *leading.tolist()) if own in line_of_lane]
        if lane in line_of_lane:
            ends = [lane]
        for own in ends:
            found[own, -1] = _painted(road_map.stop_lines[line_of_lane[own]].astype(np.float64))
        if not ends:
            found[lane, sign] = _beside(road_map, lane, road_map.polyline(sign)[0, :2].astype(np.float64))
    lines = np.array(list(found.values()), np.float32).reshape(-1, 5).T
    return np.ascontiguousarray(lines), np.array([lane for lane, _ in found], np.int32)


def _painted(ends: Doubles) -> tuple[float, ...]:
    """Return a stop line, given its left and right ends."""
    (x, y), (to_left_x, to_left_y) = ends.mean(axis=0), ends[0] - ends[1]
    length = np.hypot(to_left_x, to_left_y)
    if length == 0:
        return x, y, 1.0, 0.0, 0.0
    return x, y, to_left_y / length, -to_left_x / length, length / 2


def _beside(road_map: RoadMap, lane: int, sign: Doubles) -> tuple[float, ...]:
    """Return a line across a lane at the point nearest to a sign."""
    points = road_map.polyline(lane)[:, :2].astype(np.float64)
    width = float(road_map.lane_widths[lane])
    half = (width if width > 0 else DEFAULT_WIDTH_M) / 2
    begin, along = points[:-1], np.diff(points, axis=0)
    lengths = np.hypot(along[:, 0], along[:, 1])
    if not (lengths > 0).any():
        return points[0, 0], points[0, 1], 1.0, 0.0, half
    begin, along, lengths = begin[lengths > 0], along[lengths > 0], lengths[lengths > 0]
    share = np.clip(((sign - begin) * along).sum(axis=1) / lengths**2, 0.0, 1.0)
    feet = begin + share[:, None] * along
    nearest = int(np.argmin(np.hypot(*(feet - sign).T)))
    cos, sin = along[nearest] / lengths[nearest]
    return feet[nearest, 0], feet[nearest, 1], cos, sin, half
