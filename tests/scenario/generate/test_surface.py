"""The drivable surface and its edges: closed, with the road on their left, around every lane, line and crosswalk."""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray

from roadworthy.scenario.generate.curves import Parallel, Pose, line
from roadworthy.scenario.generate.network import Lane, Network
from roadworthy.scenario.generate.surface import drivable_surface, road_edges
from roadworthy.scenario.schema import EdgeType, FeatureKind, LaneType
from tests.scenario.generate.sites import Site, surface_between

STRAY_M = 0.03  # edges are simplified to within 2 cm
BESIDE_M = 0.02


def beside(edge: NDArray[np.float64], left: float) -> NDArray[np.float64]:
    """Return (n, 2) a point beside the middle of every segment of an edge."""
    steps = np.diff(edge, axis=0)
    lengths = np.hypot(*steps.T)
    kept = lengths > 5 * BESIDE_M  # beside shorter ones, the rounding of stored points decides
    normals = np.column_stack([-steps[:, 1], steps[:, 0]])[kept] / lengths[kept, None]
    return (edge[:-1] + edge[1:])[kept] / 2 + left * normals


def test_edges_are_closed_and_simple(sites: list[Site]) -> None:
    for site in sites:
        for number, edge in enumerate(site.edges):
            where = f"{site.name}: edge {number}"
            assert np.array_equal(edge[0], edge[-1]), where
            assert shapely.LinearRing(edge).is_simple, where


def test_the_road_is_on_the_left_of_every_edge(sites: list[Site]) -> None:
    for site in sites:
        shapely.prepare(site.surface)
        for number, edge in enumerate(site.edges):
            where = f"{site.name}: edge {number}"
            assert shapely.contains_xy(site.surface, beside(edge, BESIDE_M)).all(), where
            assert not shapely.contains_xy(site.surface, beside(edge, -BESIDE_M)).any(), where


def test_outer_edges_run_counterclockwise_and_holes_clockwise(sites: list[Site]) -> None:
    for site in sites:
        rings = [shapely.Polygon(edge) for edge in site.edges]
        for number, edge in enumerate(site.edges):
            within = sum(other.contains_properly(rings[number]) for other in rings)
            is_hole = within % 2 == 1
            assert shapely.is_ccw(shapely.LinearRing(edge)) != is_hole, f"{site.name}: edge {number}"


def test_islands_are_medians_and_everything_else_is_a_boundary(sites: list[Site]) -> None:
    for site in sites:
        features = site.road_map.features(FeatureKind.ROAD_EDGE)
        for edge, feature in zip(site.edges, features, strict=True):
            is_hole = not shapely.is_ccw(shapely.LinearRing(edge))
            if site.road_map.types[feature] == EdgeType.MEDIAN:
                assert is_hole, f"{site.name}: feature {feature}"
            else:
                assert site.road_map.types[feature] == EdgeType.BOUNDARY
                assert not is_hole or shapely.Polygon(edge).area > 500, f"{site.name}: feature {feature}"


def strays(site: Site, lane: Lane) -> float:
    """Return how far the sides of a lane are outside of the surface, in m."""
    path, half = lane.path, lane.width / 2
    left = np.column_stack([-np.sin(path.heading), np.cos(path.heading)])
    middle = np.column_stack([path.x, path.y])
    sides = shapely.points(np.concatenate([middle - half * left, middle, middle + half * left]))
    return float(shapely.distance(site.surface, sides).max())


def test_every_driving_lane_lies_on_the_surface_in_its_whole_width(sites: list[Site]) -> None:
    for site in sites:
        shapely.prepare(site.surface)
        for number, lane in enumerate(site.lanes):
            if lane.type != LaneType.BIKE_LANE:
                assert strays(site, lane) < STRAY_M, f"{site.name}: lane {number}"


def test_every_bicycle_lane_lies_on_the_surface_in_its_whole_width(sites: list[Site]) -> None:
    for site in sites:
        shapely.prepare(site.surface)
        for number, lane in enumerate(site.lanes):
            if lane.type == LaneType.BIKE_LANE:
                assert strays(site, lane) < STRAY_M, f"{site.name}: lane {number}, {lane.turn.name}"


def test_paint_and_crosswalks_lie_on_the_surface(sites: list[Site]) -> None:
    for site in sites:
        paved = site.surface.buffer(2 * STRAY_M)
        shapely.prepare(paved)
        for feature in site.road_map.features(FeatureKind.ROAD_LINE):
            assert paved.covers(shapely.LineString(site.polyline(feature))), f"{site.name}: line {feature}"
        for feature in site.road_map.features(FeatureKind.CROSSWALK):
            crosswalk = shapely.Polygon(site.polyline(feature))
            # From curb to curb: its corners may be slightly outside where the road bends.
            assert crosswalk.difference(paved).area < 0.05 * crosswalk.area, f"{site.name}: crosswalk {feature}"


def strip_along(path: Parallel, width: float) -> shapely.Polygon:
    """Return a network along a path, with a small margin on either side."""
    return shapely.LineString(np.column_stack([path.x, path.y])).buffer(width / 2 - 0.05, cap_style="flat")


def test_parking_strips_lie_on_the_surface_and_off_the_lanes(sites: list[Site]) -> None:
    for site in sites:
        paved = site.surface.buffer(STRAY_M)
        tree = shapely.STRtree([strip_along(lane.path, lane.width) for lane in site.lanes])
        for strip in site.network.parking:
            room = strip_along(strip.curve.parallel(strip.offset, 1.0, strip.first, strip.last), strip.width)
            assert paved.covers(room), f"{site.name}: strip beside lane {strip.lane}"
            assert len(tree.query(room, predicate="intersects")) == 0, f"{site.name}: strip beside lane {strip.lane}"


def test_a_ring_of_roads_has_an_outer_edge_and_a_hole() -> None:
    network = Network()
    corners = [Pose(0, 0, 0), Pose(100, 0, np.pi / 2), Pose(100, 100, np.pi), Pose(0, 100, -np.pi / 2)]
    for corner in corners:
        network.add_band(line(corner.shifted(ahead=-4.0), 108.0), 4.0, -4.0)
    edges = road_edges(drivable_surface(network))
    assert [(kind, shapely.is_ccw(shapely.LinearRing(points))) for kind, points in edges] == [
        (EdgeType.BOUNDARY, True),
        (EdgeType.BOUNDARY, False),
    ]
    assert np.isclose(surface_between([points for _, points in edges]).area, 108**2 - 92**2, rtol=1e-3)


def test_an_island_is_cut_out_and_a_gap_between_lanes_is_paved_over() -> None:
    def square(x: float, y: float, half: float) -> NDArray[np.float64]:
        return np.array([[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half]])

    network = Network(surfaces=[square(0, 0, 30)], islands=[square(-10, 0, 4), square(10, 0, 1)])
    kinds = [kind for kind, _ in road_edges(drivable_surface(network))]
    assert kinds == [EdgeType.BOUNDARY, EdgeType.MEDIAN]
