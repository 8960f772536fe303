"""Time to collision of the closed-loop score: which tracks count, and times computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roadworthy.metrics.closed_loop.collisions import collisions
from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import EgoTrial
from roadworthy.metrics.closed_loop.time_to_collision import TimeToCollision, time_to_collision
from roadworthy.scenario.schema import RoadMap
from tests.metrics.closed_loop.roads import Drive, crossing, straight, trial, two_lanes


def approach(one: EgoTrial, road: RoadMap | None = None) -> TimeToCollision:
    places = LanePlaces.of(LaneMap.of(road or straight()), one.ego)
    return time_to_collision(one, places, collisions(one, places))


@pytest.mark.parametrize(
    ("gap", "seconds"),
    [(0.5, 0.1), (9.0, 0.9), (9.4, 1.0), (9.6, 1.0), (28.9, 2.9), (29.1, math.inf)],
)
def test_the_time_is_the_first_tenth_of_a_second_at_which_boxes_touch(gap: float, seconds: float) -> None:
    """At 10 m/s towards a standing car, a gap of g meters is closed after g / 10 s; 3.0 s is beyond the horizon."""
    one = trial(Drive(0.0, speed=10.0), [Drive(5.0 + gap)], frames=1)
    found = approach(one)
    assert found.seconds.tolist() == pytest.approx([seconds])
    assert found.within_bound == float(seconds > 0.95)


def test_only_the_difference_of_speeds_counts() -> None:
    one = trial(Drive(0.0, speed=15.0), [Drive(13.0, speed=11.0)], frames=1)  # 8 m at 4 m/s
    assert approach(one).seconds.tolist() == pytest.approx([2.0])


def test_a_track_that_only_passes_between_two_steps_is_not_hit() -> None:
    """A narrow thing that crosses at 100 m/s is in the way for 0.03 s, from 0.03 to 0.06 s, and gone at 0.1 s."""
    crossing_fast = Drive(3.0, y=-4.5, heading=0.5 * np.pi, speed=100.0, length=1.0, width=0.2)
    assert approach(trial(Drive(0.0, speed=6.0), [crossing_fast], frames=1), two_lanes()).seconds.tolist() == [math.inf]


@pytest.mark.parametrize(("y", "counts"), [(0.0, False), (1.75, True)])
def test_a_car_closing_in_from_the_side_counts_only_while_the_ego_is_between_lanes(y: float, counts: bool) -> None:
    """It is about 60 degrees to the left, neither ahead nor behind: from its front, 2.5 m from its middle, it is 1.5 m
    to the ego's flank, at 5 m/s.
    """
    side = Drive(51.5, y + 5.0, -0.5 * np.pi, 5.0)
    found = approach(trial(Drive(50.0, y=y, speed=1.0), [side], frames=1), two_lanes())
    assert found.seconds.tolist() == pytest.approx([0.3 if counts else math.inf])
    assert found.decided_by_lanes.tolist() == [True]


def test_a_car_from_the_side_counts_while_the_rear_axle_is_in_a_junction() -> None:
    one = trial(Drive(115.0, 3.5, speed=1.0), [Drive(116.5, 8.5, -0.5 * np.pi, 5.0)], frames=1)
    assert approach(one, crossing()).seconds.tolist() == pytest.approx([0.3])
    before = trial(Drive(65.0, 3.5, speed=1.0), [Drive(66.5, 8.5, -0.5 * np.pi, 5.0)], frames=1)
    assert approach(before, crossing()).seconds.tolist() == [math.inf]


@pytest.mark.parametrize(("degrees", "counts"), [(29.0, True), (31.0, False)])
def test_ahead_is_less_than_thirty_degrees_from_the_rear_axle(degrees: float, counts: bool) -> None:
    """The rear axle is 1.5 m behind the middle. The track comes straight at the ego's middle."""
    angle = math.radians(degrees)
    x, y = 50.0 - 1.5 + 12.0 * math.cos(angle), 12.0 * math.sin(angle)
    heading = math.atan2(0.0 - y, 50.0 - x)
    one = trial(Drive(50.0, speed=0.1), [Drive(x, y, heading, 10.0)], frames=1)
    assert np.isfinite(approach(one).seconds).tolist() == [counts]


def test_what_follows_behind_never_counts() -> None:
    one = trial(Drive(50.0, y=1.75, speed=5.0), [Drive(42.0, y=1.75, speed=20.0)], frames=1)
    assert approach(one, two_lanes()).seconds.tolist() == [math.inf]


def test_a_standing_ego_has_all_the_time() -> None:
    ahead = Drive(8.0, heading=np.pi, speed=10.0)
    assert approach(trial(Drive(0.0, speed=0.005), [ahead], frames=1)).seconds.tolist() == [math.inf]
    assert approach(trial(Drive(0.0, speed=0.006), [ahead], frames=1)).seconds.tolist() == pytest.approx([0.3])


def test_an_at_fault_collision_leaves_no_time_in_its_frame_and_its_track_counts_no_longer() -> None:
    """The gap of 1.5 m is closed at 1 m per frame: 0.2 s, then 0.1 s, then they touch."""
    one = trial(Drive(np.arange(5.0), speed=10.0), [Drive(6.5)], frames=5)
    assert approach(one).seconds.tolist() == pytest.approx([0.2, 0.1, 0.0, math.inf, math.inf])


def test_a_collision_that_is_not_the_egos_fault_only_drops_the_track() -> None:
    one = trial(Drive(20.0 + 0.1 * np.arange(4), speed=1.0), [Drive(14.0 + np.arange(4), speed=10.0)], frames=4)
    assert approach(one).seconds.tolist() == [math.inf] * 4


def test_absent_tracks_do_not_count() -> None:
    there = Drive(6.0, present=np.array([True, False]))
    assert approach(trial(Drive(0.0, speed=10.0), [there], frames=2)).seconds.tolist() == pytest.approx([0.1, math.inf])
