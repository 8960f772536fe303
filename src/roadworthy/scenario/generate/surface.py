"""The drivable surface of a network, and the road edges around it."""

from __future__ import annotations

import numpy as np
import shapely
from shapely.geometry import MultiPolygon, Polygon

from roadworthy.scenario.generate.network import Network, Points
from roadworthy.scenario.schema import EdgeType

TOLERANCE_M = 0.02  # largest error of a simplified edge
GRAIN_M = 1e-4  # the union is computed on this grid, so that seams close
SMALLEST_HOLE_M2 = 25.0  # gaps between the lanes of a junction are paved over below this size
LARGEST_ISLAND_M2 = 2000.0  # a hole up to this size is a median, a larger one a block of houses


def drivable_surface(network: Network) -> Polygon | MultiPolygon:
    """Return the union of all pavement, without islands."""
    pieces = shapely.simplify([Polygon(p) for p in network.surfaces], TOLERANCE_M / 4)
    surface = shapely.union_all(pieces, grid_size=GRAIN_M)
    if network.islands:
        islands = shapely.union_all([Polygon(p) for p in network.islands], grid_size=GRAIN_M)
        surface = shapely.difference(surface, islands, grid_size=GRAIN_M)
    # Growing and shrinking again closes the notches where bands meet at small angles.
    return surface.buffer(0.3, join_style="mitre").buffer(-0.3, join_style="mitre")


def road_edges(surface: Polygon | MultiPolygon) -> list[tuple[EdgeType, Points]]:
    """Return closed edges with the road on their left: outer rings counterclockwise, holes clockwise."""
    edges = []
    for polygon in sorted(shapely.get_parts(surface), key=lambda p: p.bounds):
        edges.append((EdgeType.BOUNDARY, _ring(polygon.exterior, counter_clockwise=True)))
        for hole in sorted(polygon.interiors, key=lambda ring: ring.bounds):
            area = Polygon(hole).area
            if area >= SMALLEST_HOLE_M2:
                kind = EdgeType.MEDIAN if area < LARGEST_ISLAND_M2 else EdgeType.BOUNDARY
                edges.append((kind, _ring(hole, counter_clockwise=False)))
    return edges


def _ring(ring: shapely.LinearRing, *, counter_clockwise: bool) -> Points:
    points = np.asarray(ring.simplify(TOLERANCE_M).coords)
    return points if shapely.is_ccw(ring) == counter_clockwise else points[::-1].copy()
