"""Speed limit of the closed-loop score."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.route import driven_lanes
from roadworthy.metrics.closed_loop.speed_limit import limits, speed_limit
from roadworthy.scenario.schema import RoadMap
from tests.metrics.closed_loop.roads import DT, Drive, body, crossing, straight


def score(drive: Drive, road: RoadMap, frames: int) -> float:
    ego, lane_map = body(drive, frames), LaneMap.of(road)
    return speed_limit(ego, driven_lanes(LanePlaces.of(lane_map, ego)), lane_map, DT)


def test_the_loss_is_overspeed_times_time_over_the_duration() -> None:
    """21 frames last 2 s; 5 frames at 2 m/s too fast: 1 - 5 * 2 * 0.1 / (2.23 * 2)."""
    speed = np.where(np.arange(21) < 5, 12.0, 9.0)
    assert score(Drive(100.0, speed=speed), straight(limit=10.0), 21) == pytest.approx(1.0 - 1.0 / 4.46)


def test_being_slower_elsewhere_makes_up_for_nothing_and_the_score_ends_at_zero() -> None:
    assert score(Drive(100.0, speed=10.0), straight(limit=10.0), 21) == 1.0
    assert score(Drive(100.0, speed=40.0), straight(limit=10.0), 21) == 0.0


def test_without_a_limit_or_a_lane_no_speed_is_too_high() -> None:
    assert score(Drive(100.0, speed=40.0), straight(limit=math.nan), 21) == 1.0
    assert score(Drive(100.0, y=50.0, speed=40.0), straight(limit=10.0), 21) == 1.0


def test_in_a_junction_the_highest_limit_of_the_lanes_around_counts() -> None:
    """Straight over: 14 m/s before and 11 m/s after."""
    lane_map = LaneMap.of(crossing())
    assert lane_map.is_junction.tolist() == [False, False, False, True, True, False, False, False]
    assert lane_map.speed_limit[[3, 4]].tolist() == [14.0, 14.0]
    ego = body(Drive(np.array([60.0, 115.0, 200.0]), y=3.5), 3)
    assert limits(driven_lanes(LanePlaces.of(lane_map, ego)), lane_map).tolist() == [14.0, 14.0, 11.0]
