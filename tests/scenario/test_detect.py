"""The plainest case of each behavior is detected by its own detector only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from roadworthy.errors import ScenarioError
from roadworthy.scenario.detect import BEHAVIORS, DETECTORS, Tracks, detect
from roadworthy.scenario.schema import AgentType, Scenario
from tests.scenario.synthetic import (
    ARROW,
    PERMITTED,
    WIDTH,
    Agent,
    crossing,
    freeway_with_ramp,
    profile,
    ring,
    sideways,
    straight,
    two_lane_road,
)
from tests.scenario.synthetic import make_scenario as play_out

WALKER = (0.6, 0.6, 1.75)


def hard_stop() -> Scenario:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    return play_out(roads, Agent(lane, 20, profile((0, 14), (3, 14), (5.5, 1), (6, 0))))


def stop_and_go() -> Scenario:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    waves = profile((0, 0), (1, 0), (3, 3), (4.5, 0), (5.5, 0), (7.5, 3), (9, 0))
    return play_out(roads, Agent(lane, 20, waves), Agent(lane, 30, np.roll(waves, -4)), Agent(lane, 42, waves))


def highway_straight() -> Scenario:
    roads = freeway_with_ramp()
    lane = roads.line("right 0", "right 1")
    return play_out(roads, Agent(lane, 20, 27.0), Agent(lane, 70, 27.0))


def lane_change() -> Scenario:
    roads = two_lane_road()
    return play_out(roads, Agent(roads.line("right 0", "right 1"), 20, 12.0, sideways((2, 6, WIDTH))))


def cut_in() -> Scenario:
    roads = two_lane_road()
    right, left = roads.line("right 0", "right 1"), roads.line("left 0", "left 1")
    return play_out(roads, Agent(right, 20, 12.0), Agent(left, 36, 12.0, sideways((2, 6, -WIDTH))))


def merge() -> Scenario:
    roads = freeway_with_ramp()
    return play_out(roads, Agent(roads.line("ramp", "acceleration"), 80, 22.0, sideways((3, 7, WIDTH))))


def roundabout() -> Scenario:
    roads = ring()
    return play_out(roads, Agent(roads.line("in", "entry", "ring 0", "ring 1", "exit", "out"), 30, 8.0))


def unprotected_left() -> Scenario:
    roads = crossing()
    turning, oncoming = roads.line("in 0", "left 0", "out 1"), roads.line("in 2", "ahead 2", "out 2")
    return play_out(
        roads,
        Agent(turning, 60, profile((0, 8), (3, 3), (9, 7))),
        Agent(oncoming, 40, 12.0),
        lights={"left 0": PERMITTED},
    )


def unprotected_right() -> Scenario:
    roads = crossing()
    turning, crossing_traffic = roads.line("in 0", "right 0", "out 3"), roads.line("in 3", "ahead 3", "out 3")
    return play_out(roads, Agent(turning, 60, profile((0, 8), (3, 3), (9, 7))), Agent(crossing_traffic, 50, 12.0))


def protected_left() -> Scenario:
    roads = crossing()
    return play_out(roads, Agent(roads.line("in 0", "left 0", "out 1"), 60, 7.0), lights={"left 0": ARROW})


def pedestrian_crossing() -> Scenario:
    roads = two_lane_road()
    roads.crosswalks = [[(80, -6), (84, -6), (84, 6), (80, 6)]]
    return play_out(
        roads,
        Agent(roads.line("right 0", "right 1"), 35, profile((0, 10), (1, 10), (5, 0.5), (6, 0.5), (9, 6))),
        Agent(straight(82, -6, 82, 9), 0, 1.4, kind=AgentType.PEDESTRIAN, size=WALKER),
    )


def nudge_parked() -> Scenario:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    return play_out(roads, Agent(lane, 20, 10.0, sideways((2, 4, 0.7), (6, 8, -0.7))), Agent(lane, 72, 0.0, -1.9))


SCENES: dict[str, Callable[[], Scenario]] = {
    scene.__name__: scene
    for scene in (
        hard_stop,
        stop_and_go,
        highway_straight,
        lane_change,
        cut_in,
        merge,
        roundabout,
        unprotected_left,
        unprotected_right,
        protected_left,
        pedestrian_crossing,
        nudge_parked,
    )
}


def test_there_are_twelve_behaviors_in_their_order() -> None:
    assert tuple(SCENES) == BEHAVIORS == tuple(DETECTORS)


@pytest.mark.row("SCEN-4")
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_a_plain_case_is_detected_only_by_its_own_detector(behavior: str) -> None:
    assert detect(SCENES[behavior]()) == (behavior,)


@pytest.mark.row("SCEN-4")
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_tags_ids_and_source_change_nothing(behavior: str) -> None:
    told = replace(SCENES[behavior](), id="roundabout", source="merge", tags=("hard_stop", "cut_in"))
    assert detect(told) == (behavior,)


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_turning_and_moving_the_world_changes_nothing(behavior: str) -> None:
    scenario = SCENES[behavior]()
    angle, place = 2.5, np.array([1500.0, -900.0], np.float32)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]], np.float32)
    points, positions = scenario.map.points.copy(), scenario.positions.copy()
    points[:, :2], positions[..., :2] = points[:, :2] @ turn + place, positions[..., :2] @ turn + place
    headings = np.angle(np.exp(1j * (scenario.headings + angle))).astype(np.float32)
    moved = replace(
        scenario,
        map=replace(scenario.map, points=points),
        positions=positions,
        headings=headings,
        velocities=scenario.velocities @ turn,
    )
    assert detect(moved) == (behavior,)


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_a_window_of_a_recording_shows_the_same_as_the_part(behavior: str) -> None:
    scenario = SCENES[behavior]()
    whole = Tracks.of(scenario)
    for first, end in ((0, 50), (20, 91), (40, 91)):
        part = replace(
            scenario,
            current_step=0,
            **{
                name: getattr(scenario, name)[:, first:end]
                for name in ("positions", "headings", "velocities", "valid", "light_states")
            },
        )
        window = whole.window(first, end)
        assert tuple(name for name in BEHAVIORS if DETECTORS[name](window)) == detect(part)


def test_without_a_self_driving_car_there_is_not_a_behavior() -> None:
    assert detect(replace(lane_change(), sdc=-1)) == ()


def test_only_the_self_driving_car_counts() -> None:
    assert detect(replace(cut_in(), sdc=1)) == ("lane_change",)


def test_a_pedestrian_as_self_driving_car_shows_no_behavior() -> None:
    scenario = lane_change()
    assert detect(replace(scenario, agent_types=np.array([AgentType.PEDESTRIAN], np.uint8))) == ()


def test_steps_without_the_self_driving_car_are_left_out() -> None:
    scenario = lane_change()
    valid = scenario.valid.copy()
    valid[0, :12] = valid[0, 75:] = False
    assert detect(replace(scenario, valid=valid)) == ("lane_change",)
    valid[0, 30:] = False
    assert detect(replace(scenario, valid=valid)) == ()


@pytest.mark.parametrize(("first", "end"), [(-1, 5), (5, 5), (0, 92)])
def test_a_window_outside_the_recording_names_the_steps(first: int, end: int) -> None:
    with pytest.raises(ScenarioError, match="the steps are 0 to 90"):
        Tracks.of(lane_change()).window(first, end)
