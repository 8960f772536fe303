"""Exams judged from traces: the recording passes, faults fail, and other trials have no value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from roadworthy.metrics.exams import CONDITIONS, EVENTS, EXAM_METRICS, PASSED, PREFIX, exam_figures
from roadworthy.record.traces import Trace, TraceEvent
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.exams import EXAMS, conditions, situation_of
from roadworthy.scenario.schema import Scenario
from roadworthy.sim import state
from tests.scenario.synthetic import Agent, Doubles, make_scenario, profile, two_lane_road

pytestmark = pytest.mark.row("CL-3")

START = 10
OWN_STOP = profile((0, 12), (3.3, 12), (5.5, 0))


def hard_stop(*, ahead: float = 25.0) -> Scenario:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    leader = Agent(lane, 20 + ahead, profile((0, 12), (3, 12), (5, 0)))
    return replace(make_scenario(roads, Agent(lane, 20, OWN_STOP), leader), tags=("hard_stop",))


def traced(scenario: Scenario, own: Doubles | None = None, **changes: Any) -> Trace:
    """The trace of a recording from its current step on; own: another speed of the car, on the same way."""
    frames = slice(START, None)
    count = scenario.agent_count
    place = scenario.positions[:, frames, :2].transpose(1, 0, 2).copy()
    speed = np.hypot(*scenario.velocities[:, frames].transpose(2, 1, 0)).astype(np.float32)
    if own is not None:
        line = two_lane_road().line("right 0", "right 1")
        motion, _, velocity = Agent(line, 20, own).motion()
        place[:, 0], speed[:, 0] = motion[START:], np.hypot(*velocity[START:].T)
    length = len(place)
    values: dict[str, Any] = {
        "episode_id": "e",
        "scenario_id": scenario.id,
        "dt": scenario.dt,
        "trial_starts": np.array([0, length], np.int32),
        "x": np.ascontiguousarray(place[..., 0]),
        "y": np.ascontiguousarray(place[..., 1]),
        "heading": np.ascontiguousarray(scenario.headings[:, frames].T),
        "speed": np.ascontiguousarray(speed),
        "present": np.ascontiguousarray(scenario.valid[:, frames].T),
        "active": np.arange(count)[None, :].repeat(length, 0) == 0,
        "events": np.zeros((length, count), np.uint16),
        "actions": np.zeros((length, count, 2), np.float32),
        "length": scenario.sizes[:, 0].copy(),
        "width": scenario.sizes[:, 1].copy(),
        "kinds": scenario.agent_types.astype(np.int8),
        "roles": np.array([state.EGO] + [state.REPLAYED] * (count - 1), np.int8),
        "sources": np.arange(count, dtype=np.int32),
        "goals": np.zeros((count, 1, 2), np.float32),
        "goal_counts": np.ones(count, np.int32),
    }
    trace = Trace(**(values | changes))
    assert trace.inconsistency() is None
    return trace


def test_the_recording_passes_and_meets_every_condition() -> None:
    scenario = hard_stop()
    figures = exam_figures(traced(scenario), scenario, 0, 0)
    assert figures[PASSED] == 1.0
    assert set(figures.values()) == {1.0}


def test_a_car_that_drives_on_fails_for_the_collision_and_for_the_leader() -> None:
    scenario = hard_stop()
    figures = exam_figures(traced(scenario, profile((0, 12))), scenario, 0, 0)
    failed = {name for name, value in figures.items() if value == 0.0}
    assert failed == {PASSED, "exam_no_at_fault_collision", "exam_avoids_leader"}


@pytest.mark.parametrize(("condition", "bit"), EVENTS.items())
def test_an_event_of_the_simulator_fails_the_exam(condition: str, bit: int) -> None:
    scenario = hard_stop()
    trace = traced(scenario)
    trace.events[30, 0] = bit
    figures = exam_figures(trace, scenario, 0, 0)
    assert {name for name, value in figures.items() if value == 0.0} == {PASSED, PREFIX + condition}


def test_the_events_of_others_are_not_the_ego_s() -> None:
    scenario = hard_stop()
    trace = traced(scenario)
    trace.events[30, 1] = 4 | 8 | 16
    assert exam_figures(trace, scenario, 0, 0)[PASSED] == 1.0


def test_event_bits_are_those_of_the_simulator() -> None:
    bits = {name.removeprefix("EVENT_"): bit for name, bit in vars(state).items() if name.startswith("EVENT_")}
    bits["CENTERED"] = bits.pop("CENTRED", bits.get("CENTERED"))
    assert {event.name: event.value for event in TraceEvent} == bits


def test_events_decide_the_conditions_that_are_named_after_them() -> None:
    assert EVENTS == {"stays_on_road": 4, "no_red_light": 8, "no_stop_sign": 16}


def cut_short(trace: Trace, frames: int) -> Trace:
    names = ("x", "y", "heading", "speed", "present", "active", "events", "actions")
    parts: dict[str, Any] = {name: getattr(trace, name)[:frames] for name in names}
    return replace(trace, trial_starts=np.array([0, frames], np.int32), **parts)


def test_an_episode_that_is_cut_short_has_no_value_unless_something_went_wrong() -> None:
    scenario = hard_stop()
    whole = traced(scenario)
    assert math.isnan(exam_figures(cut_short(whole, 60), scenario, 0, 0)[PASSED])
    whole.events[30, 0] = state.EVENT_OFF_ROAD
    assert exam_figures(cut_short(whole, 60), scenario, 0, 0)[PASSED] == 0.0


@pytest.mark.parametrize(
    "other",
    [
        {"tags": ()},
        {"tags": ("hard_stop", "merge")},
        {"tags": ("interactive",)},
        {"sdc": 1},
    ],
)
def test_without_an_exam_there_is_no_value(other: dict[str, Any]) -> None:
    scenario = hard_stop()
    assert math.isnan(exam_figures(traced(scenario), replace(scenario, **other), 0, 0)[PASSED])


def test_a_recording_that_does_not_qualify_has_no_value() -> None:
    scenario = hard_stop(ahead=125.0)
    assert math.isnan(exam_figures(traced(scenario), scenario, 0, 0)[PASSED])


def test_an_agent_without_a_recording_has_no_value() -> None:
    scenario = hard_stop()
    trace = traced(scenario, sources=np.array([-1, 1], np.int32))
    assert math.isnan(exam_figures(trace, scenario, 0, 0)[PASSED])


def test_every_class_is_an_exam_and_every_condition_is_declared() -> None:
    assert set(EXAMS) == set(BEHAVIORS)
    situation = situation_of(hard_stop(), START)
    assert situation is not None
    named = {name for behavior in EXAMS for name in conditions(behavior, situation.recorded)}
    conduct = {"no_at_fault_collision", "right_direction", *EVENTS}
    assert named | conduct == set(CONDITIONS)
    assert {metric.name for metric in EXAM_METRICS} == {PASSED, *(PREFIX + name for name in CONDITIONS)}
