"""Driving direction of the closed-loop score: movement against the lane within a second."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.metrics.closed_loop.driving_direction import driving_direction, movements
from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.route import driven_lanes
from roadworthy.scenario.schema import RoadMap
from tests.metrics.closed_loop.roads import DT, Drive, body, crossing, straight, two_lanes


def measured(drive: Drive, road: RoadMap, frames: int):
    ego, lane_map = body(drive, frames), LaneMap.of(road)
    route = driven_lanes(LanePlaces.of(lane_map, ego))
    return driving_direction(ego, route, lane_map, DT), movements(ego, route, lane_map, DT)


@pytest.mark.parametrize(("per_frame", "value"), [(0.17, 1.0), (0.19, 0.5), (0.53, 0.5), (0.56, 0.0)])
def test_backward_movement_is_summed_over_eleven_frames(per_frame: float, value: float) -> None:
    """At d meters a frame the sum is 11 d: below 2 m up to d = 0.181, below 6 m up to d = 0.545."""
    score, moved = measured(Drive(200.0 - per_frame * np.arange(40), heading=np.pi), straight(), 40)
    assert moved.min() == pytest.approx(-11 * per_frame)
    assert score == value


def test_driving_along_the_lane_is_not_backward_for_any_heading() -> None:
    score, moved = measured(Drive(20.0 + 1.5 * np.arange(40), heading=np.pi), straight(), 40)
    assert score == 1.0
    assert moved[0] == 0.0
    assert moved[20] == pytest.approx(11 * 1.5)


def test_on_no_lane_there_is_no_direction() -> None:
    assert measured(Drive(200.0 - np.arange(40), y=30.0), straight(), 40)[0] == 1.0


def test_the_first_two_frames_on_a_new_lane_have_no_progress() -> None:
    """Backward at 1 m per frame; the change from one lane to the other comes after frame 4."""
    y = np.where(np.arange(12) < 5, 0.0, 3.5)
    _, moved = measured(Drive(200.0 - np.arange(12), y=y), two_lanes(), 12)
    # Frames 1 to 4 count 4 m, 5 and 6 nothing, 7 to 10 another 4 m; frame 11 loses frame 0, which had none.
    assert moved.tolist() == pytest.approx([0, -1, -2, -3, -4, -4, -4, -5, -6, -7, -8, -9])


def test_a_turn_at_a_junction_follows_its_own_lane() -> None:
    """Along the arc to the left of the crossing, from the middle of its approach."""
    arc = np.linspace(0.0, 0.5 * np.pi, 30)
    x = np.concatenate([70.0 + 1.5 * np.arange(20), 100.0 + 30.0 * np.sin(arc)])
    y = np.concatenate([np.full(20, 3.5), 33.5 - 30.0 * np.cos(arc)])
    heading = np.concatenate([np.zeros(20), arc])
    score, moved = measured(Drive(x, y, heading), crossing(), 50)
    assert score == 1.0
    assert moved.min() == 0.0
    back = measured(Drive(x[::-1], y[::-1], heading[::-1] + np.pi), crossing(), 50)
    assert back[0] == 0.0
