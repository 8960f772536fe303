"""Motion that resembles a behavior: the thresholds of each detector, and what separates it from others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.scenario.detect import detect
from roadworthy.scenario.schema import AgentType, LaneType, LightState, Scenario
from tests.scenario.synthetic import (
    ARROW,
    GREEN,
    PERMITTED,
    RED,
    WIDTH,
    Agent,
    Doubles,
    Roads,
    crossing,
    freeway_with_ramp,
    make_scenario,
    profile,
    ring,
    sideways,
    straight,
    two_lane_road,
)

pytestmark = pytest.mark.row("SCEN-4")

WALKER = (0.6, 0.6, 1.75)


def on_the_right(speed: Doubles | float, offset: Doubles | float = 0.0, start: float = 20.0) -> Scenario:
    roads = two_lane_road()
    return make_scenario(roads, Agent(roads.line("right 0", "right 1"), start, speed, offset))


# hard_stop


def test_braking_just_too_softly_is_not_a_hard_stop() -> None:
    assert detect(on_the_right(profile((0, 12), (2, 12), (2 + 12 / 4.4, 0)))) == ()
    assert detect(on_the_right(profile((0, 12), (2, 12), (2 + 12 / 4.7, 0)))) == ("hard_stop",)


def test_hard_braking_that_ends_in_motion_is_not_a_hard_stop() -> None:
    assert detect(on_the_right(profile((0, 14), (2, 14), (4, 3), (9, 3)))) == ()


def test_hard_braking_for_too_short_a_time_is_not_a_hard_stop() -> None:
    assert detect(on_the_right(profile((0, 8), (2, 8), (2.3, 6), (6, 0)))) == ()


def test_braking_hard_from_low_speed_is_not_a_hard_stop() -> None:
    assert detect(on_the_right(profile((0, 4.8), (2, 4.8), (3, 0)))) == ()


# stop_and_go


def queue(own: Doubles, roads: Roads | None = None, ahead: float = 10.0, **others: object) -> Scenario:
    roads = roads or two_lane_road()
    lane = roads.line("right 0", "right 1")
    return make_scenario(roads, Agent(lane, 20, own), Agent(lane, 20 + ahead, own), **others)  # type: ignore[arg-type]


WAVES = profile((0, 0), (1, 0), (3, 3), (4.5, 0), (5.5, 0), (7.5, 3), (9, 0))


def test_one_stop_is_not_stop_and_go() -> None:
    assert detect(queue(WAVES)) == ("stop_and_go",)
    assert detect(queue(profile((0, 3), (3, 0), (5, 0), (8, 3)))) == ()


def test_slowing_without_standing_is_not_stop_and_go() -> None:
    assert detect(queue(np.maximum(WAVES, 0.8))) == ()


def test_creeping_between_two_stands_is_not_stop_and_go() -> None:
    assert detect(queue(0.45 * WAVES)) == ()


def test_stopping_and_going_without_a_leader_is_not_stop_and_go() -> None:
    assert detect(on_the_right(WAVES)) == ()
    assert detect(queue(WAVES, ahead=40)) == ()


def test_a_queue_at_a_red_light_is_not_stop_and_go() -> None:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    agents = [Agent(lane, 110, WAVES), Agent(lane, 120, WAVES)]
    assert detect(make_scenario(roads, *agents, lights={"right 1": GREEN})) == ("stop_and_go",)
    assert detect(make_scenario(roads, *agents, lights={"right 1": RED})) == ()


def test_stops_at_a_stop_line_or_crosswalk_before_the_leader_are_not_stop_and_go() -> None:
    roads = two_lane_road()
    roads.crosswalks = [[(28, -6), (31, -6), (31, 6), (28, 6)]]
    assert detect(queue(WAVES, roads, ahead=15.0)) == ()
    roads = two_lane_road()
    roads.stop_lines = ["right 0"]
    lane = roads.line("right 0", "right 1")
    assert detect(make_scenario(roads, Agent(lane, 143, WAVES), Agent(lane, 160, WAVES))) == ()


# highway_straight


def on_the_freeway(speed: Doubles | float, kind: LaneType = LaneType.FREEWAY, *others: Agent) -> Scenario:
    roads = freeway_with_ramp()
    roads.types = dict.fromkeys(roads.lanes, kind)
    return make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, speed), *others)


def test_driving_too_slowly_on_a_freeway_is_not_highway_straight() -> None:
    assert detect(on_the_freeway(20.5)) == ("highway_straight",)
    assert detect(on_the_freeway(19.5)) == ()
    assert detect(on_the_freeway(profile((0, 27), (9, 14.5)))) == ()


def test_driving_fast_on_a_street_is_not_highway_straight() -> None:
    assert detect(on_the_freeway(25.0, LaneType.SURFACE_STREET)) == ()


def test_braking_on_a_freeway_is_not_highway_straight() -> None:
    assert detect(on_the_freeway(profile((0, 30), (3, 30), (5, 24), (9, 24)))) == ()


def test_a_car_that_merges_ahead_disturbs_highway_straight_without_being_a_cut_in() -> None:
    roads = freeway_with_ramp()
    ramp = roads.line("ramp", "acceleration")
    assert detect(on_the_freeway(25.0, LaneType.FREEWAY, Agent(ramp, 50, 24.0, sideways((3, 7, WIDTH))))) == ()


# lane_change, merge


def test_an_aborted_lane_change_does_not_count() -> None:
    assert detect(on_the_right(12.0, sideways((1, 4, 1.6), (5, 8, -1.6)))) == ()
    assert detect(on_the_right(12.0, sideways((1, 4, 2.2), (5, 8, -2.2)))) == ()


def test_a_lane_change_without_its_end_does_not_count() -> None:
    assert detect(on_the_right(12.0, sideways((6, 11, WIDTH)))) == ()


def test_a_lane_change_that_began_before_the_recording_does_not_count() -> None:
    assert detect(on_the_right(12.0, 0.9 + sideways((0, 3, WIDTH - 0.9)))) == ()


def test_a_lane_change_across_the_joint_of_two_lanes_counts() -> None:
    assert detect(on_the_right(12.0, sideways((2, 6, WIDTH)), start=102.0)) == ("lane_change",)


def test_going_back_to_the_right_is_a_lane_change_too() -> None:
    roads = two_lane_road()
    scenario = make_scenario(roads, Agent(roads.line("left 0", "left 1"), 20, 12.0, sideways((2, 6, -WIDTH))))
    assert detect(scenario) == ("lane_change",)


def test_leaving_an_acceleration_lane_is_a_merge_and_not_a_lane_change() -> None:
    roads = freeway_with_ramp()
    mainline = roads.line("right 0", "right 1")
    to_the_left = make_scenario(roads, Agent(mainline, 60, 22.0, sideways((3, 7, WIDTH))))
    assert detect(to_the_left) == ("lane_change",)
    stays = make_scenario(roads, Agent(roads.line("ramp", "acceleration"), 80, 18.0))
    assert detect(stays) == ()


def test_lanes_that_all_end_at_the_border_of_the_map_are_not_ending_lanes() -> None:
    roads = two_lane_road()
    scenario = make_scenario(roads, Agent(roads.line("right 0", "right 1"), 160, 12.0, sideways((2, 6, WIDTH))))
    assert detect(scenario) == ("lane_change",)


# cut_in


def beside(gap: float, speed: float = 12.0, move: float = -WIDTH, other_speed: float | None = None) -> Scenario:
    """Another car on the left lane, `gap` ahead from bumper to bumper, moves over to the car's lane."""
    roads = two_lane_road()
    right, left = roads.line("right 0", "right 1"), roads.line("left 0", "left 1")
    other = Agent(left, 24.6 + gap, other_speed or speed, sideways((2, 6, move)))
    return make_scenario(roads, Agent(right, 20, speed), other)


@pytest.mark.parametrize(
    ("gap", "speed", "is_cut_in"), [(17, 12, True), (18.5, 12, False), (19, 20, True), (21, 20, False)]
)
def test_a_cut_in_is_near_in_meters_and_in_seconds(gap: float, speed: float, is_cut_in: bool) -> None:
    assert detect(beside(gap, speed)) == (("cut_in",) if is_cut_in else ())


def test_a_car_that_moves_in_behind_is_not_a_cut_in() -> None:
    assert detect(beside(-30.0)) == ()


def test_a_car_that_returns_at_the_line_is_not_a_cut_in() -> None:
    roads = two_lane_road()
    right, left = roads.line("right 0", "right 1"), roads.line("left 0", "left 1")
    swerves = Agent(left, 36, 12.0, sideways((2, 4, -2.2), (4, 5, 2.2)))
    assert detect(make_scenario(roads, Agent(right, 20, 12.0), swerves)) == ()


def test_a_car_that_moves_in_before_another_leader_is_not_a_cut_in() -> None:
    roads = two_lane_road()
    right, left = roads.line("right 0", "right 1"), roads.line("left 0", "left 1")
    between = Agent(right, 29, 12.0)
    scenario = make_scenario(roads, Agent(right, 20, 12.0), Agent(left, 38, 12.0, sideways((2, 6, -WIDTH))), between)
    assert detect(scenario) == ()


def test_a_queue_that_closes_up_is_not_a_cut_in() -> None:
    assert detect(beside(6.0, 4.5)) == ()
    assert detect(beside(6.0, 5.5)) == ("cut_in",)


def test_a_cyclist_who_moves_over_is_not_a_cut_in() -> None:
    scenario = beside(10.0)
    types = np.array([AgentType.VEHICLE, AgentType.CYCLIST], np.uint8)
    assert detect(replace(scenario, agent_types=types)) == ()


# roundabout


def test_entering_a_roundabout_only_is_not_a_roundabout() -> None:
    roads = ring()
    way = roads.line("in", "entry", "ring 0", "ring 1", "exit", "out")
    assert detect(make_scenario(roads, Agent(way, 3, 8.0))) == ()
    assert detect(make_scenario(roads, Agent(way, 30, 8.0))) == ("roundabout",)


def test_a_loop_of_streets_is_not_a_roundabout() -> None:
    roads, corner = Roads(), 10.0
    for k in range(4):
        street = np.array([[-corner, -30.0], [corner, -30.0]])
        bend = (
            np.array([0.0, -30.0])
            + np.array([[corner, 0.0]])
            + 20 * np.column_stack([np.sin(np.linspace(0, np.pi / 2, 30)), 1 - np.cos(np.linspace(0, np.pi / 2, 30))])
        )
        angle = k * np.pi / 2
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        roads.lanes[f"street {k}"], roads.lanes[f"bend {k}"] = street @ turn, bend @ turn
        roads.follows += [(f"street {k}", f"bend {k}"), (f"bend {k}", f"street {(k + 1) % 4}")]
    assert detect(make_scenario(roads, Agent(roads.line("street 0", "bend 0", "street 1", "bend 1"), 5, 8.0))) == ()


# unprotected_left, unprotected_right, protected_left

LEFT, RIGHT = ("in 0", "left 0", "out 1"), ("in 0", "right 0", "out 3")
ONCOMING, FROM_THE_LEFT, FROM_THE_RIGHT = (
    ("in 2", "ahead 2", "out 2"),
    ("in 3", "ahead 3", "out 3"),
    ("in 1", "ahead 1", "out 1"),
)


def turn(way: tuple[str, ...], other: Agent | None = None, lights: dict[str, int] | None = None) -> Scenario:
    roads = crossing()
    own = Agent(roads.line(*way), 60, profile((0, 8), (3, 3), (9, 7)))
    return make_scenario(roads, *([own, other] if other else [own]), lights=lights)


def somebody(way: tuple[str, ...], start: float, speed: float = 12.0, kind: AgentType = AgentType.VEHICLE) -> Agent:
    return Agent(crossing().line(*way), start, speed, kind=kind)


def test_a_turn_without_other_traffic_is_of_no_class() -> None:
    assert detect(turn(LEFT)) == ()
    assert detect(turn(RIGHT)) == ()


def test_a_turn_with_traffic_from_the_same_approach_is_not_unprotected() -> None:
    assert detect(turn(LEFT, somebody(("in 0", "ahead 0", "out 0"), 74, 9))) == ()
    assert detect(turn(LEFT, somebody(LEFT, 74, 7))) == ()


def test_traffic_that_stays_out_of_the_way_is_not_a_conflict() -> None:
    assert detect(turn(RIGHT, somebody(ONCOMING, 40))) == ()
    assert detect(turn(LEFT, somebody(("in 2", "right 2", "out 1"), 60, 8.0))) == ("unprotected_left",)
    assert detect(turn(RIGHT, somebody(FROM_THE_RIGHT, 50))) == ()


def test_cyclists_count_as_conflicting_traffic_and_parked_cars_do_not() -> None:
    assert detect(turn(LEFT, somebody(ONCOMING, 60, 6.0, AgentType.CYCLIST))) == ("unprotected_left",)
    assert detect(turn(LEFT, somebody(ONCOMING, 95, 0.0))) == ()


def test_traffic_long_before_the_turn_is_not_a_conflict() -> None:
    roads = crossing()
    late = Agent(roads.line(*LEFT), 75, profile((0, 0), (6, 0), (9, 8)))
    early = Agent(roads.line(*ONCOMING), 86, 14.0)
    assert detect(make_scenario(roads, late, early)) == ()


@pytest.mark.parametrize(
    ("state", "behaviors"),
    [
        (PERMITTED, ("unprotected_left",)),
        (ARROW, ("protected_left",)),
        (GREEN, ()),
        (LightState.CAUTION, ()),
    ],
)
def test_the_light_decides_which_left_turn_it_is(state: LightState, behaviors: tuple[str, ...]) -> None:
    assert detect(turn(LEFT, somebody(ONCOMING, 40), {"left 0": state})) == behaviors


def test_the_light_counts_as_the_front_crosses_the_line_and_not_later() -> None:
    scenario = turn(LEFT, somebody(ONCOMING, 40), {"left 0": ARROW})
    states = scenario.light_states.copy()
    front_crosses = int(np.argmax(scenario.positions[0, :, 0] + 2.3 > -12.0))
    states[0, front_crosses + 1 :] = LightState.STOP
    assert detect(replace(scenario, light_states=states)) == ("protected_left",)
    states[0, front_crosses] = LightState.ARROW_CAUTION
    assert detect(replace(scenario, light_states=states)) == ()


def test_the_light_of_another_movement_does_not_protect() -> None:
    assert detect(turn(LEFT, somebody(ONCOMING, 40), {"ahead 0": ARROW})) == ("unprotected_left",)


def test_a_right_turn_on_green_is_not_unprotected() -> None:
    assert detect(turn(RIGHT, somebody(FROM_THE_LEFT, 50))) == ("unprotected_right",)
    assert detect(turn(RIGHT, somebody(FROM_THE_LEFT, 50), {"right 0": GREEN})) == ()


def test_an_incomplete_turn_does_not_count() -> None:
    roads = crossing()
    begun = Agent(roads.line(*LEFT), 60, profile((0, 7), (4, 3), (8, 0)))
    assert detect(make_scenario(roads, begun, Agent(roads.line(*ONCOMING), 40, 12.0))) == ()


def test_a_bend_in_the_road_is_not_a_turn() -> None:
    roads = crossing()
    roads.follows = [("in 0", "left 0"), ("left 0", "out 1")]
    scenario = make_scenario(roads, Agent(roads.line(*LEFT), 60, 7.0), Agent(roads.line(*ONCOMING), 40, 12.0))
    assert detect(scenario) == ()


# pedestrian_crossing

GIVES_WAY = profile((0, 10), (1, 10), (5, 0.5), (6, 0.5), (9, 6))


def at_the_crosswalk(
    own: Doubles,
    walker_speed: float = 1.4,
    walker_start: float = 0.0,
    start: float = 35.0,
    roads: Roads | None = None,
    others: tuple[Agent, ...] = (),
    lights: dict[str, int] | None = None,
) -> Scenario:
    roads = roads or two_lane_road()
    roads.crosswalks = roads.crosswalks or [[(80, -6), (84, -6), (84, 6), (80, 6)]]
    walker = Agent(straight(82, -6, 82, 12), walker_start, walker_speed, kind=AgentType.PEDESTRIAN, size=WALKER)
    return make_scenario(roads, Agent(roads.line("right 0", "right 1"), start, own), walker, *others, lights=lights)


def test_driving_past_a_pedestrian_who_waits_is_not_a_pedestrian_crossing() -> None:
    assert detect(at_the_crosswalk(GIVES_WAY)) == ("pedestrian_crossing",)
    assert detect(at_the_crosswalk(GIVES_WAY, walker_speed=0.0)) == ()


def test_not_slowing_down_for_a_pedestrian_is_not_a_pedestrian_crossing() -> None:
    assert detect(at_the_crosswalk(profile((0, 6), (9, 6)), start=20, walker_start=2)) == ()


def test_slowing_down_far_away_is_not_a_pedestrian_crossing() -> None:
    assert detect(at_the_crosswalk(GIVES_WAY, start=15)) == ()


def test_a_pedestrian_without_a_crosswalk_is_not_a_pedestrian_crossing() -> None:
    roads = two_lane_road()
    roads.crosswalks = [[(180, -6), (184, -6), (184, 6), (180, 6)]]
    assert detect(at_the_crosswalk(GIVES_WAY, roads=roads)) == ()


def test_a_pedestrian_who_crosses_behind_the_car_does_not_count() -> None:
    assert detect(at_the_crosswalk(GIVES_WAY, start=66)) == ()


def test_waiting_behind_another_car_is_not_a_pedestrian_crossing() -> None:
    leader = Agent(two_lane_road().line("right 0", "right 1"), 76, profile((0, 0), (6, 0), (9, 6)))
    assert detect(at_the_crosswalk(profile((0, 8), (4, 0.2), (6, 0.2), (9, 4)), others=(leader,), start=50)) == ()


def test_waiting_at_a_red_light_is_not_a_pedestrian_crossing() -> None:
    roads = two_lane_road()
    roads.lanes = {
        name: straight(*((0, y, 78, y) if name.endswith("0") else (78, y, 300, y)))
        for name, y in (("right 0", 0.0), ("right 1", 0.0), ("left 0", WIDTH), ("left 1", WIDTH))
    }
    assert detect(at_the_crosswalk(GIVES_WAY, roads=roads, lights={"right 1": GREEN})) == ("pedestrian_crossing",)
    assert detect(at_the_crosswalk(GIVES_WAY, roads=roads, lights={"right 1": RED})) == ()
    roads.stop_signs = ["right 0"]
    assert detect(at_the_crosswalk(GIVES_WAY, roads=roads)) == ()


def test_an_emergency_stop_for_a_pedestrian_is_a_hard_stop() -> None:
    brakes_late = profile((0, 13), (3, 13), (5.3, 0), (8, 0))
    assert detect(at_the_crosswalk(brakes_late, start=18)) == ("hard_stop",)


def test_a_turn_that_yields_to_a_pedestrian_is_a_turn() -> None:
    roads = crossing()
    roads.crosswalks = [[(-6, -17), (6, -17), (6, -14), (-6, -14)]]
    own = Agent(roads.line(*RIGHT), 83, profile((0, 8), (4, 0.3), (6, 0.3), (9, 5)))
    walker = Agent(straight(-8, -15.5, 9, -15.5), 0, 1.4, kind=AgentType.PEDESTRIAN, size=WALKER)
    other = Agent(roads.line(*FROM_THE_LEFT), 100, 12.0)
    assert detect(make_scenario(roads, own, walker)) == ()
    assert detect(make_scenario(roads, own, walker, other)) == ("unprotected_right",)


# nudge_parked


def past_a_parked_car(shift: float, parked_offset: float = -1.9, moves: float = 0.0, until: float = 10.0) -> Scenario:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    own = Agent(lane, 20, until, sideways((2, 4, shift), (6, 8, -shift)))
    return make_scenario(roads, own, Agent(lane, 72, moves, parked_offset))


def test_a_shift_just_too_small_is_not_a_nudge() -> None:
    assert detect(past_a_parked_car(0.4)) == ("nudge_parked",)
    assert detect(past_a_parked_car(0.3)) == ()


def test_a_shift_towards_the_parked_car_is_not_a_nudge() -> None:
    assert detect(past_a_parked_car(-0.4, -2.4)) == ()


def test_a_parked_car_outside_the_lane_is_not_nudged() -> None:
    assert detect(past_a_parked_car(0.6, -2.6)) == ()


def test_a_car_that_creeps_is_not_parked() -> None:
    assert detect(past_a_parked_car(0.6, moves=0.5)) == ()


def test_a_parked_car_that_is_not_yet_passed_is_not_nudged() -> None:
    assert detect(past_a_parked_car(0.6, until=5.0)) == ()


def test_passing_a_parked_car_on_the_other_lane_is_a_lane_change() -> None:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    scenario = make_scenario(roads, Agent(lane, 20, 10.0, sideways((1, 4.5, WIDTH))), Agent(lane, 80, 0.0, -1.0))
    assert detect(scenario) == ("lane_change",)
