"""Exams on hand-made roads: which recordings qualify, and which ways of driving pass.

The recorded car passes, and so does a driver with different timing. A driver with the typical failure of the class
fails by the condition for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.scenario.exams import EXAMS, Attempt, Motion, Situation, conditions, disqualification, situation_of
from roadworthy.scenario.schema import AgentType, Scenario
from tests.scenario.synthetic import (
    PERMITTED,
    WIDTH,
    Agent,
    Doubles,
    crossing,
    freeway_with_ramp,
    make_scenario,
    profile,
    ring,
    sideways,
    straight,
    two_lane_road,
)

pytestmark = pytest.mark.row("CL-3")

START = 10
WALKER = (0.6, 0.6, 1.75)


def situation(scenario: Scenario) -> Situation:
    found = situation_of(scenario, START)
    assert found is not None
    return found


def attempt(scenario: Scenario, agent: Agent) -> Attempt:
    """Return an attempt of another driver in place of the recorded car."""
    place, heading, velocity = agent.motion()
    x, y = place[START:].T
    there = np.ones(len(x), np.bool_)
    car = Motion(x, y, heading[START:], np.hypot(*velocity[START:].T), there, *agent.size[:2])
    return replace(situation(scenario).recorded, car=car)


def failed(name: str, scenario: Scenario, agent: Agent) -> set[str]:
    """Return the conditions that an attempt does not meet."""
    return {part for part, is_met in conditions(name, attempt(scenario, agent)).items() if not is_met}


def qualifies(name: str, scenario: Scenario) -> bool:
    return disqualification(name, situation(scenario)) is None


# hard_stop: the car ahead brakes at 6 m/s2 from 3 s on.

BRAKES = profile((0, 12), (3, 12), (5, 0))


def hard_stop(own: Doubles | float, leader: Doubles | None = BRAKES, ahead: float = 25.0) -> Scenario:
    lane = two_lane_road().line("right 0", "right 1")
    others = () if leader is None else (Agent(lane, 20 + ahead, leader),)
    return make_scenario(two_lane_road(), Agent(lane, 20, own), *others)


OWN_STOP = profile((0, 12), (3.3, 12), (5.5, 0))


def on_the_right(speed: Doubles | float, offset: Doubles | float = 0.0) -> Agent:
    return Agent(two_lane_road().line("right 0", "right 1"), 20, speed, offset)


def test_a_hard_stop_behind_a_braking_car_qualifies() -> None:
    assert qualifies("hard_stop", hard_stop(OWN_STOP))


def test_a_hard_stop_without_a_cause_ahead_is_not_an_exam() -> None:
    assert not qualifies("hard_stop", hard_stop(OWN_STOP, leader=None))


def test_a_hard_stop_that_requires_no_reaction_is_not_an_exam() -> None:
    assert EXAMS["hard_stop"].is_critical(situation(hard_stop(OWN_STOP)))
    assert not EXAMS["hard_stop"].is_critical(situation(hard_stop(OWN_STOP, ahead=70.0)))


def test_a_car_ahead_that_brakes_right_at_the_start_is_not_an_exam() -> None:
    early = profile((0, 12), (1.2, 12), (3.2, 0))
    own = profile((0, 12), (1.5, 12), (3.7, 0))
    assert not qualifies("hard_stop", hard_stop(own, leader=early))


@pytest.mark.parametrize(
    ("way", "speed", "offset", "fails"),
    [
        ("brakes earlier and more gently", profile((0, 12), (2, 12), (6.5, 0)), 0.0, set()),
        ("goes around on the left", 12.0, sideways((1.5, 4.5, WIDTH)), set()),
        ("drives on", 12.0, 0.0, {"avoids_leader"}),
        ("stops at once and stays", profile((0, 12), (1, 12), (2.5, 0)), 0.0, {"drives_up", "drives_on"}),
        ("stops across the lane line", OWN_STOP, sideways((2, 5, WIDTH / 2)), {"in_lane"}),
    ],
)
def test_hard_stop(way: str, speed: Doubles | float, offset: Doubles | float, fails: set[str]) -> None:
    assert failed("hard_stop", hard_stop(OWN_STOP), on_the_right(speed, offset)) == fails


def test_a_car_that_stands_at_an_angle_is_not_in_its_lane_however_small_it_is() -> None:
    parked = attempt(hard_stop(OWN_STOP), on_the_right(OWN_STOP))
    small = replace(parked.car, length=2.0, width=1.0)
    turned = replace(small, heading=np.where(np.arange(len(small)) == len(small) - 1, 0.7, small.heading))
    assert replace(parked, car=small).ends_in_lane
    assert not replace(parked, car=turned).ends_in_lane


def test_without_a_self_driving_car_throughout_there_is_not_an_exam() -> None:
    scenario = hard_stop(OWN_STOP)
    valid = scenario.valid.copy()
    valid[0, 60] = False
    assert situation_of(replace(scenario, valid=valid), START) is None
    assert situation_of(replace(scenario, sdc=-1), START) is None
    assert situation_of(scenario, scenario.steps - 1) is None
    assert disqualification("hard_stop", None) is not None


# stop_and_go

WAVES = profile((0, 0), (1, 0), (3, 3), (4.5, 0), (5.5, 0), (7.5, 5), (9, 5))


def stop_and_go() -> Scenario:
    lane = two_lane_road().line("right 0", "right 1")
    return make_scenario(
        two_lane_road(), Agent(lane, 20, WAVES), Agent(lane, 32, np.roll(WAVES, -3)), Agent(lane, 300, 0.0)
    )


@pytest.mark.parametrize(
    ("way", "speed", "fails"),
    [
        ("creeps on evenly", profile((0, 0), (1, 0), (2, 1.8), (7, 1.8), (9, 4)), set()),
        ("drives as if the road were free", profile((0, 0), (1, 0), (9, 12)), {"follows"}),
        ("stays", 0.0, {"progress", "follows", "drives_on"}),
    ],
)
def test_stop_and_go(way: str, speed: Doubles | float, fails: set[str]) -> None:
    scenario = stop_and_go()
    assert qualifies("stop_and_go", scenario)
    assert failed("stop_and_go", scenario, on_the_right(speed)) == fails


def test_traffic_that_comes_from_behind_and_drives_through_a_standing_car_is_not_its_queue() -> None:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    ahead, behind = Agent(lane, 32, np.roll(WAVES, -3)), Agent(lane, 8, profile((0, 0), (1, 0), (4, 4), (9, 4)))
    scenario = make_scenario(roads, Agent(lane, 20, WAVES), ahead, Agent(lane, 300, 0.0), behind)
    assert "follows" in failed("stop_and_go", scenario, on_the_right(0.0))


# highway_straight, lane_change, merge


def bend(radius: float, length: float) -> Doubles:
    angles = np.linspace(0.0, length / radius, int(length))
    return np.column_stack([radius * np.sin(angles), radius * (1.0 - np.cos(angles))])


def test_highway_straight() -> None:
    roads = freeway_with_ramp()
    roads.lanes, roads.follows, roads.beside = {"right 0": bend(900.0, 500.0)}, [], []
    lane = roads.lanes["right 0"]
    scenario = make_scenario(roads, Agent(lane, 20, 27.0))
    assert qualifies("highway_straight", scenario)
    assert failed("highway_straight", scenario, Agent(lane, 20, 24.0)) == set()
    assert failed("highway_straight", scenario, Agent(lane, 20, profile((0, 27), (5, 14)))) == {"keeps_speed"}
    drifts = failed("highway_straight", scenario, Agent(lane, 20, 27.0, sideways((3, 6, -2.0))))
    assert drifts == {"keeps_lane", "in_lane"}


def test_a_straight_freeway_requires_nothing_of_a_driver() -> None:
    roads = freeway_with_ramp()
    assert not qualifies("highway_straight", make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, 27.0)))


def lane_change(offset: Doubles) -> Scenario:
    return make_scenario(two_lane_road(), on_the_right(12.0, offset))


@pytest.mark.parametrize(
    ("way", "offset", "fails"),
    [
        ("changes later", sideways((4, 7.5, WIDTH)), set()),
        ("keeps its lane", 0.0, {"reaches_lane"}),
        ("is under way in the end", sideways((6, 9.5, WIDTH)), {"reaches_lane"}),
        ("goes there and back", sideways((2, 4.5, WIDTH), (5, 8, -WIDTH)), {"reaches_lane"}),
    ],
)
def test_lane_change(way: str, offset: Doubles | float, fails: set[str]) -> None:
    scenario = lane_change(sideways((2, 6, WIDTH)))
    assert qualifies("lane_change", scenario)
    assert failed("lane_change", scenario, on_the_right(12.0, offset)) == fails


def test_a_recording_that_ends_where_the_road_does_is_not_an_exam() -> None:
    roads = two_lane_road()
    own = Agent(roads.line("right 0", "right 1"), 185, 12.0, sideways((2, 6, WIDTH)))
    assert (
        disqualification("lane_change", situation(make_scenario(roads, own)))
        == "the road ends soon after the recording does"
    )


def test_a_lane_change_that_has_begun_is_not_an_exam() -> None:
    assert not qualifies("lane_change", lane_change(sideways((0, 3, WIDTH))))


def merge(traffic: float) -> Scenario:
    """A car joins the freeway behind another one that drives at a speed."""
    roads = freeway_with_ramp()
    own = Agent(roads.line("ramp", "acceleration"), 80, profile((0, 22), (4, traffic)), sideways((3, 7, WIDTH)))
    return make_scenario(roads, own, Agent(roads.line("right 0", "right 1"), 128, traffic))


def test_merge() -> None:
    roads, scenario = freeway_with_ramp(), merge(7.0)
    ramp = roads.line("ramp", "acceleration")
    assert qualifies("merge", scenario)
    own_time = Agent(ramp, 80, profile((0, 22), (4, 6)), sideways((4, 8, WIDTH)))
    assert failed("merge", scenario, own_time) == set()
    assert "joins" in failed("merge", scenario, Agent(ramp, 80, profile((0, 22), (4, 7))))


def test_a_merge_into_free_road_is_not_an_exam() -> None:
    assert not qualifies("merge", merge(30.0))


# cut_in: a slower car moves over from the left.


def cut_in(speed: float, own: Doubles | float) -> Scenario:
    roads = two_lane_road()
    left = roads.line("left 0", "left 1")
    return make_scenario(roads, on_the_right(own), Agent(left, 50, speed, sideways((1.5, 4.5, -WIDTH))))


FALLS_BACK = profile((0, 12), (2, 12), (5, 6.5), (9, 7))


@pytest.mark.parametrize(
    ("way", "speed", "offset", "fails"),
    [
        ("brakes sooner", profile((0, 12), (1.5, 12), (4, 6.5), (9, 7)), 0.0, set()),
        ("goes around on the left", 12.0, sideways((2.5, 5.5, WIDTH)), set()),
        ("stays close", profile((0, 12), (4.3, 12), (5.2, 7), (9, 7)), 0.0, {"safe_gap"}),
        ("stops for good", profile((0, 12), (2, 12), (4.5, 0)), 0.0, {"drives_on"}),
    ],
)
def test_cut_in(way: str, speed: Doubles | float, offset: Doubles | float, fails: set[str]) -> None:
    scenario = cut_in(7.0, FALLS_BACK)
    assert qualifies("cut_in", scenario)
    assert failed("cut_in", scenario, on_the_right(speed, offset)) == fails


def test_a_cut_in_by_a_faster_car_is_not_an_exam() -> None:
    assert not qualifies("cut_in", cut_in(14.0, 12.0))


# Junctions


def left_turn(own: Doubles, oncoming_start: float = 40.0) -> Scenario:
    roads = crossing()
    turning, oncoming = roads.line("in 0", "left 0", "out 1"), roads.line("in 2", "ahead 2", "out 2")
    lights = {"left 0": PERMITTED}
    return make_scenario(roads, Agent(turning, 67, own), Agent(oncoming, oncoming_start, 12.0), lights=lights)


WAITS = profile((0, 8), (1.5, 8), (3.7, 0.5), (5.5, 0.5), (6.5, 9), (9, 9))


def turning(speed: Doubles | float) -> Agent:
    return Agent(crossing().line("in 0", "left 0", "out 1"), 67, speed)


@pytest.mark.parametrize(
    ("way", "speed", "fails"),
    [
        ("waits a little longer", profile((0, 8), (1.5, 8), (3.7, 0.5), (6, 0.5), (7, 9), (9, 9)), set()),
        ("waits and never goes", profile((0, 8), (1.5, 8), (3.7, 0.5), (5.5, 0)), {"completes_turn"}),
    ],
)
def test_unprotected_left(way: str, speed: Doubles, fails: set[str]) -> None:
    scenario = left_turn(WAITS)
    assert qualifies("unprotected_left", scenario)
    assert failed("unprotected_left", scenario, turning(speed)) >= fails


def test_a_turn_close_in_front_of_oncoming_traffic_does_not_yield() -> None:
    assert "yields" in failed("unprotected_left", left_turn(WAITS), turning(5.5))


def test_a_turn_with_nobody_in_the_way_is_not_an_exam() -> None:
    assert not qualifies("unprotected_left", left_turn(WAITS, oncoming_start=86.0))


def test_roundabout() -> None:
    roads = ring()
    way = roads.line("in", "entry", "ring 0", "ring 1", "exit", "out")
    scenario = make_scenario(roads, Agent(way, 40, 11.0))
    assert qualifies("roundabout", scenario)
    assert failed("roundabout", scenario, Agent(way, 40, 10.5)) == set()
    around = roads.line("in", "entry", "ring 0", "ring 1", "ring 2", "ring 3")
    assert "leaves_by_exit" in failed("roundabout", scenario, Agent(around, 40, 11.0))
    assert failed("roundabout", scenario, Agent(way, 40, profile((0, 11), (5, 0)))) >= {"enters", "leaves_by_exit"}


# Encounters


def crossing_pedestrian(own: Doubles | float, begins: float = 6.0) -> Scenario:
    roads = two_lane_road()
    roads.crosswalks = [[(80, -8), (84, -8), (84, 6), (80, 6)]]
    walker = Agent(straight(82, -begins, 82, 12), 0, 1.4, kind=AgentType.PEDESTRIAN, size=WALKER)
    return make_scenario(roads, on_the_right(own), walker)


GIVES_WAY = profile((0, 12), (1.5, 12), (5, 2.5), (5.7, 2.5), (8, 10), (9, 10))


@pytest.mark.parametrize(
    ("way", "speed", "fails"),
    [
        ("stops and goes again", profile((0, 12), (2, 12), (5, 0.5), (5.6, 0.5), (8, 11), (9, 11)), set()),
        ("passes in front", 16.0, {"yields"}),
        ("never goes again", profile((0, 12), (2, 12), (6, 0)), {"gets_across", "drives_on"}),
    ],
)
def test_pedestrian_crossing(way: str, speed: Doubles | float, fails: set[str]) -> None:
    scenario = crossing_pedestrian(GIVES_WAY)
    assert qualifies("pedestrian_crossing", scenario)
    assert failed("pedestrian_crossing", scenario, on_the_right(speed)) == fails


def test_a_pedestrian_who_is_long_gone_is_not_an_exam() -> None:
    assert not qualifies("pedestrian_crossing", crossing_pedestrian(GIVES_WAY, begins=2.0))


def nudge(offset: float) -> Scenario:
    own = on_the_right(10.0, sideways((2, 4, 0.9), (6, 8, -0.9)))
    lane = two_lane_road().line("right 0", "right 1")
    return make_scenario(two_lane_road(), own, Agent(lane, 72, 0.0, offset))


def test_nudge_parked() -> None:
    scenario = nudge(-1.6)
    assert qualifies("nudge_parked", scenario)
    wide = on_the_right(9.0, sideways((1.5, 4.5, 1.5), (7, 9, -1.5)))
    assert failed("nudge_parked", scenario, wide) == set()
    waits = on_the_right(profile((0, 10), (2, 10), (5.5, 0)))
    assert failed("nudge_parked", scenario, waits) == {"passes"}


def test_a_parked_car_that_leaves_room_enough_is_not_an_exam() -> None:
    assert not qualifies("nudge_parked", nudge(-2.4))
