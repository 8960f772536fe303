"""Drivable area of the closed-loop score."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roadworthy.metrics.closed_loop.drivable_area import drivable_area, signed_distances
from roadworthy.metrics.closed_loop.lane_map import LaneMap, Segments
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.scenario.schema import RoadMap
from tests.metrics.closed_loop.roads import Drive, Lane, body, crossing, road_map, straight


def area(drive: Drive, road: RoadMap, frames: int = 3) -> float:
    ego = body(drive, frames)
    return drivable_area(ego, LanePlaces.of(LaneMap.of(road), ego))


@pytest.mark.parametrize(
    ("y", "value"), [(0.0, 1.0), (0.75, 1.0), (1.04, 1.0), (1.06, 0.0), (-1.04, 1.0), (-1.06, 0.0)]
)
def test_a_corner_may_be_out_by_less_than_thirty_centimeters(y: float, value: float) -> None:
    """The ego is 2 m wide, the road ends 1.75 m from the lane's center: at y = 1.05 a flank is out by 0.3 m."""
    assert area(Drive(np.array([40.0, 50.0, 60.0]), y=np.array([0.0, y, 0.0])), straight()) == value


def test_far_off_the_road_is_outside_too() -> None:
    assert area(Drive(50.0, y=200.0), straight()) == 0.0


def test_the_middle_of_a_wide_junction_is_inside_though_no_lane_is_there() -> None:
    """(113, 7) is 3 m from the nearest lane of the crossing's straight lanes, between them and the turn."""
    outline = [[(0.0, -60.0), (120.0, -60.0), (120.0, 60.0), (0.0, 60.0), (0.0, -60.0)]]
    road = road_map([Lane([(0.0, 0.0), (120.0, 0.0)])], outline)
    assert area(Drive(60.0, y=30.0), road) == 1.0
    assert area(Drive(60.0, y=59.5), road) == 0.0


def test_an_island_in_the_road_is_outside() -> None:
    """Edges have the road on their left: the outline runs counterclockwise, the island clockwise."""
    outline = [(0.0, -60.0), (120.0, -60.0), (120.0, 60.0), (0.0, 60.0), (0.0, -60.0)]
    island = [(50.0, 20.0), (50.0, 40.0), (70.0, 40.0), (70.0, 20.0), (50.0, 20.0)]
    road = road_map([Lane([(0.0, 0.0), (120.0, 0.0)])], [outline, island])
    assert area(Drive(60.0, y=30.0), road) == 0.0
    assert area(Drive(60.0, y=15.0), road) == 1.0


def test_a_lane_of_known_width_counts_beyond_the_edges_and_one_of_unknown_width_does_not() -> None:
    """The edge cuts off the outer 0.75 m of the lane."""
    edges = [[(100.0, 1.0), (0.0, 1.0)], [(0.0, -3.0), (100.0, -3.0)]]
    known, unknown = (road_map([Lane([(0.0, 0.0), (100.0, 0.0)], width=width)], edges) for width in (3.5, math.nan))
    assert area(Drive(50.0, y=0.7), known) == 1.0
    assert area(Drive(50.0, y=0.7), unknown) == 0.0


def test_without_edges_the_lanes_decide_and_without_either_there_is_no_value() -> None:
    lanes = road_map([Lane([(0.0, 0.0), (100.0, 0.0)], width=math.nan)])  # 3.5 m, the default
    assert area(Drive(50.0, y=1.04), lanes) == 1.0
    assert area(Drive(50.0, y=1.06), lanes) == 0.0
    crosswalk_only = road_map([], [[(0.0, 0.0), (1.0, 0.0)]])
    assert area(Drive(50.0, y=0.0), crosswalk_only) in (0.0, 1.0)


@pytest.mark.parametrize(
    ("point", "distance"),
    [
        ((5.0, 1.0), -1.0),  # left of the first piece
        ((5.0, -1.0), 1.0),
        ((13.0, -4.0), 5.0),  # beyond the corner, nearest to it, outside
        ((9.0, 1.0), -1.0),  # inside the corner, as near to one piece as to the other
        ((-3.0, 4.0), -5.0),  # behind the start: by the side of the line along the first piece
        ((-3.0, -4.0), 5.0),
    ],
)
def test_the_side_of_an_edge_is_right_at_corners_and_beyond_ends(point: tuple[float, float], distance: float) -> None:
    """An edge from (0, 0) to (10, 0) to (10, 10): the road is on the left, inside the corner."""
    edges = Segments.of([np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]])], [0])
    assert signed_distances(edges, np.array([point]), np.arange(2)).tolist() == pytest.approx([distance])


def test_a_corner_that_bends_away_has_its_outside_on_the_left() -> None:
    """An edge from (0, 0) to (10, 0) to (10, -10): around its corner the road is outside."""
    edges = Segments.of([np.array([[0.0, 0.0], [10.0, 0.0], [10.0, -10.0]])], [0])
    points = np.array([[13.0, 4.0], [9.0, -1.0]])
    assert signed_distances(edges, points, np.arange(2)).tolist() == pytest.approx([-5.0, 1.0])


def test_the_crossing_is_driven_inside() -> None:
    assert area(Drive(np.linspace(10.0, 250.0, 60)), crossing(), 60) == 1.0
