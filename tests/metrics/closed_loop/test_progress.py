"""Progress of the closed-loop score along the recorded route."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.progress import Progress, progress
from roadworthy.scenario.schema import RoadMap
from tests.metrics.closed_loop.roads import Drive, Lane, body, crossing, road_map, straight, two_lanes

T = np.arange(51)
ARC = np.linspace(0.0, 0.5 * np.pi, 30)


def compared(ego: Drive, expert: Drive, road: RoadMap, frames: int = 51) -> Progress:
    own, lane_map = body(ego, frames), LaneMap.of(road)
    return progress(own, body(expert, frames), LanePlaces.of(lane_map, own))


def test_half_the_way_is_a_ratio_of_a_half() -> None:
    found = compared(Drive(20.0 + 0.5 * T), Drive(20.0 + 1.0 * T), straight())
    assert (found.ego_m, found.expert_m, found.ratio) == pytest.approx((25.0, 50.0, 0.5))


@pytest.mark.parametrize(
    ("ego_m", "expert_m", "ratio"),
    [
        (0.0, 0.0, 1.0),
        (0.0, 1.9, 1.0),
        (0.0, 20.0, 0.1),
        (-1.9, 20.0, 0.1),
        (-2.1, 0.0, 0.0),
        (30.0, 20.0, 1.0),
        (3, 20, 0.15),
    ],
)
def test_small_ways_count_as_two_meters_and_backward_ones_end_it(ego_m: float, expert_m: float, ratio: float) -> None:
    found = compared(Drive(100.0 + ego_m * T / 50.0), Drive(100.0 + expert_m * T / 50.0), straight())
    assert (found.ego_m, found.expert_m) == pytest.approx((ego_m, expert_m), abs=1e-4)
    assert found.ratio == pytest.approx(ratio, abs=1e-4)
    assert found.is_enough == float(ratio >= 0.2)


def test_a_recorded_car_on_no_lane_leaves_nothing_to_compare() -> None:
    found = compared(Drive(20.0), Drive(20.0 + 1.0 * T, y=40.0), straight())
    assert (found.has_route, found.ratio, found.is_enough) == (False, 1.0, 1.0)


def test_the_lane_beside_counts_and_off_the_road_does_not() -> None:
    expert = Drive(20.0 + 1.0 * T)
    assert compared(Drive(20.0 + 1.0 * T, y=3.5), expert, two_lanes()).ratio == pytest.approx(1.0)
    assert compared(Drive(20.0 + 1.0 * T, y=np.where(T == 0, 0.0, 20.0)), expert, two_lanes()).ego_m == 0.0


def test_returning_to_the_route_counts_the_distance_in_between() -> None:
    y = np.where((T > 10) & (T < 30), 20.0, 0.0)
    assert compared(Drive(20.0 + 1.0 * T, y=y), Drive(20.0 + 1.0 * T), straight()).ego_m == pytest.approx(50.0)


def _left() -> Drive:
    """50 m along, then the arc of 47.12 m, then 20 m north."""
    x = np.concatenate([50.0 + 2.5 * np.arange(20), 100.0 + 30.0 * np.sin(ARC), np.full(10, 130.0)])
    y = np.concatenate([np.full(20, 3.5), 33.5 - 30.0 * np.cos(ARC), 33.5 + 2.0 * np.arange(1, 11)])
    return Drive(x, y)


def test_a_route_around_a_corner_has_the_length_of_its_lanes() -> None:
    """Center lines of 30 pieces are shorter than the arc by 0.1 per mille."""
    found = compared(_left(), _left(), crossing(), 60)
    assert found.expert_m == pytest.approx(50.0 + 15.0 * np.pi + 20.0, abs=0.1)
    assert found.ratio == 1.0


def test_going_straight_where_the_route_turns_makes_progress_up_to_the_turn_only() -> None:
    straight_on = Drive(50.0 + 2.5 * np.arange(60), y=3.5)
    found = compared(straight_on, _left(), crossing(), 60)
    # The turn's lane leaves the straight one slowly: for some meters both hold the ego.
    assert 50.0 <= found.ego_m < 70.0


def test_a_block_that_is_skipped_between_two_frames_counts_in_full() -> None:
    """From lane 0 at x = 90 right to x = 140 beyond the junction: 50 m."""
    x = np.concatenate([np.linspace(60.0, 90.0, 20), np.linspace(140.0, 200.0, 20)])
    road = road_map(
        [
            Lane([(0.0, 0.0), (100.0, 0.0)], successors=[1]),
            Lane([(100.0, 0.0), (130.0, 0.0)], successors=[2]),
            Lane([(130.0, 0.0), (300.0, 0.0)]),
        ]
    )
    expert = Drive(np.linspace(60.0, 200.0, 40))
    assert compared(Drive(x), expert, road, 40).ego_m == pytest.approx(140.0)


def test_a_lane_beside_that_runs_further_carries_the_route_on() -> None:
    """Lane 0 ends at 60 m beside a lane of 200 m, to which the recorded car changes."""
    road = road_map(
        [Lane([(0.0, 0.0), (60.0, 0.0)], left=[1]), Lane([(0.0, 3.5), (200.0, 3.5)], right=[0])],
    )
    expert = Drive(20.0 + 2.0 * T, y=np.minimum(0.25 * T, 3.5))
    found = compared(expert, expert, road)
    assert found.expert_m == pytest.approx(100.0, abs=0.01)


def test_changing_lanes_to_and_fro_neither_adds_nor_loses_way() -> None:
    y = np.where((T > 10) & (T < 30), 3.5, 0.0)
    found = compared(Drive(20.0 + 1.0 * T), Drive(20.0 + 1.0 * T, y=y), two_lanes())
    assert (found.ego_m, found.expert_m) == pytest.approx((50.0, 50.0))
