"""Convert a complete network to the map of a scenario."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.network import Network, Points
from roadworthy.scenario.generate.surface import drivable_surface, road_edges
from roadworthy.scenario.schema import FeatureKind, Ints, RoadMap, read_only

TOLERANCE_M = 0.02  # largest distance of a simplified polyline from the samples
LONGEST_SEGMENT_M = 4.0


def assemble(network: Network) -> RoadMap:
    """Return the map, with features in the order of their kinds and simplified polylines."""
    features: list[tuple[FeatureKind, int, Points]] = [
        (
            FeatureKind.LANE,
            lane.type,
            _thin(np.column_stack([lane.path.x, lane.path.y]), TOLERANCE_M, LONGEST_SEGMENT_M),
        )
        for lane in network.lanes
    ]
    features += [(FeatureKind.ROAD_LINE, kind, _thin(points, TOLERANCE_M, 8.0)) for kind, points in network.lines]
    features += [(FeatureKind.ROAD_EDGE, kind, points) for kind, points in road_edges(drivable_surface(network))]
    features += [(FeatureKind.CROSSWALK, 0, crosswalk.polygon) for crosswalk in network.crosswalks]
    first_sign = len(features)
    features += [(FeatureKind.STOP_SIGN, 0, place[None]) for place, _ in network.stop_signs]
    counts = [len(points) for _, _, points in features]
    flat = np.concatenate([points for _, _, points in features])
    road_map = RoadMap(
        origin=np.zeros(3),
        points=np.column_stack([flat, np.zeros(len(flat))]).astype(np.float32),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        kinds=np.array([kind for kind, _, _ in features], np.uint8),
        types=np.array([type for _, type, _ in features], np.uint8),
        ids=np.arange(len(features), dtype=np.int64),
        speed_limits=np.array([lane.speed_limit for lane in network.lanes], np.float32),
        lane_widths=np.array([lane.width for lane in network.lanes], np.float32),
        successors=_pairs((i, j) for i, lane in enumerate(network.lanes) for j in lane.successors),
        left_neighbors=_pairs((i, lane.left) for i, lane in enumerate(network.lanes) if lane.left >= 0),
        right_neighbors=_pairs((i, lane.right) for i, lane in enumerate(network.lanes) if lane.right >= 0),
        yields=_pairs(sorted(network.yields)),
        stop_signs=_pairs((first_sign + i, lane) for i, (_, lanes) in enumerate(network.stop_signs) for lane in lanes),
        stop_lines=np.array([line for _, line in network.stop_lines], np.float32).reshape(-1, 2, 2),
        stop_line_lanes=np.array([lane for lane, _ in network.stop_lines], np.int32),
    )
    return read_only(road_map)


def _pairs(pairs: Iterable[tuple[int, int]]) -> Ints:
    return np.array(list(pairs), np.int32).reshape(-1, 2)


@kernel
def _thin(points, tolerance, longest):
    """Keep as few points as possible, with dropped ones within the tolerance of their chord, and no long chords."""
    n = len(points)
    keep = np.zeros(n, np.bool_)
    keep[0] = True
    keep[n - 1] = True
    anchor = 0
    for i in range(2, n):
        dx, dy = points[i, 0] - points[anchor, 0], points[i, 1] - points[anchor, 1]
        chord = np.hypot(dx, dy)
        strays = chord > longest
        for j in range(anchor + 1, i):
            ex, ey = points[j, 0] - points[anchor, 0], points[j, 1] - points[anchor, 1]
            if abs(ex * dy - ey * dx) > tolerance * chord:
                strays = True
        if strays:
            anchor = i - 1
            keep[anchor] = True
    return points[keep]
