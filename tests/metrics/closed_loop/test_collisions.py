"""Collisions of the closed-loop score: counting, fault, and the multiplier."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.at_fault import CollisionType
from roadworthy.metrics.closed_loop.collisions import collisions
from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import EgoTrial
from roadworthy.scenario.schema import AgentType, RoadMap
from tests.metrics.closed_loop.roads import Drive, straight, trial, two_lanes

T = np.arange(31)


def found(one: EgoTrial, road: RoadMap | None = None):
    return collisions(one, LanePlaces.of(LaneMap.of(road or straight()), one.ego))


def test_running_into_a_slower_car_ahead_is_a_front_collision_at_the_first_frame_of_contact() -> None:
    """1 m per frame at 10 m/s; bumpers are 5 m from the middles, so boxes touch when the middles are 5 m apart."""
    one = trial(Drive(T * 1.0, speed=10.0), [Drive(10.0 + T * 0.5, speed=5.0)], frames=31)
    hits = found(one)
    assert [(h.frame, h.track, h.kind, h.at_fault) for h in hits.found] == [(10, 0, CollisionType.FRONT, True)]
    assert hits.multiplier(one.others) == 0.0
    assert hits.has_touched[:, 0].tolist() == [False] * 10 + [True] * 21


def test_a_car_that_hits_a_stopped_ego_is_not_the_egos_fault() -> None:
    one = trial(Drive(50.0), [Drive(40.0 + T, speed=10.0)], frames=31)
    hits = found(one)
    assert [(h.kind, h.at_fault) for h in hits.found] == [(CollisionType.STOPPED_EGO, False)]
    assert hits.multiplier(one.others) == 1.0


def test_being_hit_from_behind_is_not_the_egos_fault() -> None:
    one = trial(Drive(20.0 + 0.5 * T, speed=5.0), [Drive(10.0 + 1.0 * T, speed=10.0)], frames=31)
    assert [(h.kind, h.at_fault) for h in found(one).found] == [(CollisionType.REAR, False)]


def test_a_contact_that_is_there_at_the_start_does_not_count_even_if_it_ends_and_comes_back() -> None:
    there = np.where((T > 5) & (T < 10), 20.0, 4.0)
    one = trial(Drive(0.0, speed=1.0), [Drive(there, speed=1.0)], frames=31)
    hits = found(one)
    assert hits.found == ()
    assert hits.has_touched[7, 0]


@pytest.mark.parametrize(
    ("types", "value"),
    [
        ([AgentType.OTHER], 0.5),
        ([AgentType.OTHER, AgentType.OTHER], 0.0),
        ([AgentType.PEDESTRIAN], 0.0),
        ([AgentType.CYCLIST], 0.0),
        ([AgentType.VEHICLE], 0.0),
        ([AgentType.OTHER, AgentType.VEHICLE], 0.0),
    ],
)
def test_one_object_halves_the_multiplier_and_everything_else_ends_it(types: list[AgentType], value: float) -> None:
    tracks = [Drive(10.0 + 8.0 * k, type=kind) for k, kind in enumerate(types)]
    one = trial(Drive(T * 1.0, speed=10.0), tracks, frames=31)
    hits = found(one)
    assert {h.kind for h in hits.found} == {CollisionType.STOPPED_TRACK}
    assert hits.multiplier(one.others) == value


def test_a_lateral_collision_is_the_egos_fault_only_where_it_is_not_within_one_lane() -> None:
    """A car beside it, 1 m back, comes over into the ego's lane; the ego keeps its lane, or is between the two."""
    closing = Drive(T * 1.0 - 1.0, y=3.5 - 0.1 * T, speed=10.0)
    kept = trial(Drive(T * 1.0, y=0.0, speed=10.0), [closing], frames=31)
    between = trial(Drive(T * 1.0, y=1.0, speed=10.0), [closing], frames=31)
    for one, at_fault in ((kept, False), (between, True)):
        assert [(h.kind, h.at_fault) for h in found(one, two_lanes()).found] == [(CollisionType.LATERAL, at_fault)]


def test_boxes_that_share_only_a_corner_touch() -> None:
    """The ego's front left corner is at (2.5, 1), and so is the rear right one of a box around (5, 2)."""
    touching = trial(Drive(0.0, speed=1.0), [Drive([9.0, 5.0], y=[2.1, 2.0], speed=1.0)], frames=2)
    assert len(found(touching).found) == 1
    apart = trial(Drive(0.0, speed=1.0), [Drive([9.0, 5.0], y=[2.1, 2.001], speed=1.0)], frames=2)
    assert len(found(apart).found) == 0
