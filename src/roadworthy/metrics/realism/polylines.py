"""Polylines of a map as the reference lays them out: side by side, each filled up with zeros to the longest.

The filling is part of the result. Behind the last point of a shorter polyline lies a segment to the origin of the
source's frame. It is never the nearest segment of a road edge, but may be the nearest piece of a lane. A closed road
edge that is shorter than the longest one ends at its closing vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.schema import Bools, FeatureKind, Floats, Ints, RoadMap
from roadworthy.scenario.source_values import source_points


@dataclass(frozen=True, eq=False)
class Polylines:
    """P polylines with at least two points each, the points of all one after another."""

    features: Ints  # (P,) the number of each in the map
    points: Floats  # (n, 3) in the source's frame
    starts: Ints  # (P + 1,) polyline p owns points[starts[p]:starts[p + 1]]

    def __len__(self) -> int:
        return len(self.features)

    @property
    def counts(self) -> Ints:
        """(P,) points of each."""
        return np.diff(self.starts)

    @property
    def is_filled(self) -> Bools:
        """(P,) whether it is shorter than the longest."""
        counts = self.counts
        return counts < counts.max(initial=0)


def polylines(road_map: RoadMap, kind: FeatureKind, type: int | None = None) -> Polylines:
    """Return all features of a kind, and optionally of a type, with at least two points."""
    chosen = [
        feature
        for feature in road_map.features(kind)
        if road_map.starts[feature + 1] - road_map.starts[feature] >= 2
        and (type is None or road_map.types[feature] == type)
    ]
    points, starts = source_points(road_map), road_map.starts
    lines = [points[starts[feature] : starts[feature + 1]] for feature in chosen]
    return Polylines(
        features=np.array(chosen, np.int32),
        points=np.concatenate([*lines, np.zeros((0, 3), np.float32)]),
        starts=np.cumsum([0, *map(len, lines)], dtype=np.int32),
    )
