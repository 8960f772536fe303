"""Whether an ego passed the exam of its behavior class, and which conditions of the exam it met.

scenario/exams judges the maneuver from the motion in the trace. This module adds the conditions of every class: no
at-fault collision, no departure from the road, no red light or stop sign run, and less than 6 m against a lane's
direction within a second (the bound at which nuPlan's driving direction becomes 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from roadworthy.metrics.closed_loop.collisions import collisions
from roadworthy.metrics.closed_loop.driving_direction import driving_direction
from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import EgoTrial, ego_trial, start_step
from roadworthy.metrics.closed_loop.route import driven_lanes
from roadworthy.metrics.extensions import TraceMetrics
from roadworthy.metrics.metric import Kind, Metric
from roadworthy.record.traces import Trace, TraceEvent
from roadworthy.scenario.exams import EXAMS, Attempt, Motion, Situation, conditions, disqualification, situation_of
from roadworthy.scenario.schema import Scenario

PASSED = "passed"
PREFIX = "exam_"
EVENTS = {
    "stays_on_road": TraceEvent.OFF_ROAD,
    "no_red_light": TraceEvent.RED_LIGHT,
    "no_stop_sign": TraceEvent.STOP_SIGN,
}

CONDITIONS = {
    "no_at_fault_collision": "no collision that is the ego's fault",
    "stays_on_road": "never left the road",
    "no_red_light": "ran no red light",
    "no_stop_sign": "passed no stop sign without stopping",
    "right_direction": "never drove 6 m against a lane's direction within a second",
    "progress": "made at least 20% of the recorded car's progress",
    "in_lane": "was within a lane and aligned with it at the end",
    "drives_on": "did not stand still at the end, unless a road user or a junction was within 20 m ahead",
    "avoids_leader": "hard_stop: never touched the car ahead that brakes hard",
    "drives_up": "hard_stop: came within 20 m of the place where the car ahead stopped, or passed it",
    "follows": "stop_and_go: a car was within 20 m ahead for 70% of the time, and at the end",
    "keeps_lane": "highway_straight: the middle of the car never left its lane",
    "keeps_speed": "highway_straight: above 15 m/s always, 20 m/s on average",
    "reaches_lane": "lane_change, merge: was settled on the new lane at the end",
    "joins": "merge: changed lanes before its own lane ended",
    "safe_gap": "cut_in: kept a gap of 0.9 s or more to the vehicle that cut in, at the end",
    "completes_turn": "turns: was on the recorded exit lane, or beyond it, at the end",
    "yields": "never passed less than 1 s in front of a road user with the right of way",
    "enters": "roundabout: drove on the ring",
    "leaves_by_exit": "roundabout: was beyond the ring on the recorded exit at the end",
    "gets_across": "pedestrian_crossing: was beyond the pedestrians' path at the end",
    "passes": "nudge_parked: was beyond the parked vehicle at the end",
}
EXAM_METRICS = (
    Metric(
        PASSED,
        Kind.RATE,
        PASSED,
        "share",
        "trial",
        "met every condition of its behavior class's exam",
        version=2,
        better="higher",
        failed=0.0,
    ),
    *(
        Metric(f"{PREFIX}{name}", Kind.RATE, f"{PREFIX}{name}", "share", "trial", what, better="higher")
        for name, what in CONDITIONS.items()
    ),
)


def exam_figures(
    trace: Trace, scenario: Scenario, agent: int, trial: int, behavior: str | None = None
) -> Mapping[str, float]:
    """Return whether an ego passed its exam in a trial, and each condition of it: 1, 0, or NaN for no data.

    Args:
        trace: the motion of all agents
        scenario: the recording that the episode started from
        agent: the ego's column in the trace
        trial: number of the trial
        behavior: the class; None: the scenario's own, if it has exactly one

    Returns:
        `passed` and the class's conditions as `exam_...`. All are NaN where the ego is not the recording's self-driving
        car, where the recording does not qualify for the exam from the trial's start on, and where the trial was cut
        short before the exam's end although nothing had gone wrong.
    """
    classes = [tag for tag in scenario.tags if tag in EXAMS] if behavior is None else [behavior]
    if len(classes) != 1:
        return {PASSED: math.nan}
    motion = ego_trial(trace, scenario, agent, trial)
    if motion is None or int(trace.sources[agent]) != scenario.sdc:
        return {PASSED: math.nan}
    situation = situation_of(scenario, start_step(trace, scenario, trace.trial(trial).start))
    if situation is None or disqualification(classes[0], situation) is not None:
        return {PASSED: math.nan}
    found = _conduct(trace, scenario, agent, trial, motion)
    frames = len(situation.recorded.car)
    if motion.frames >= frames:
        found |= conditions(classes[0], _attempt(trace, situation, agent, trial, frames))
        passed = float(all(found.values()))
    else:  # cut short: failed conditions still count
        passed = math.nan if all(found.values()) else 0.0
    return {PASSED: passed, **{f"{PREFIX}{name}": float(is_met) for name, is_met in found.items()}}


def _conduct(trace: Trace, scenario: Scenario, agent: int, trial: int, motion: EgoTrial) -> dict[str, bool]:
    """Return the conditions of every exam."""
    lane_map = LaneMap.of(scenario.map)
    places = LanePlaces.of(lane_map, motion.ego)
    events = np.bitwise_or.reduce(trace.events[trace.trial(trial), agent])
    direction = driving_direction(motion.ego, driven_lanes(places), lane_map, motion.dt)
    return {
        "no_at_fault_collision": not collisions(motion, places).at_fault_frames,
        **{name: not events & bit for name, bit in EVENTS.items()},
        "right_direction": direction > 0.0,
    }


def _attempt(trace: Trace, situation: Situation, agent: int, trial: int, frames: int) -> Attempt:
    """Return the traced motion as an attempt at the exam."""
    first = trace.trial(trial).start
    span = slice(first, first + frames)
    columns = {int(source): column for column, source in enumerate(trace.sources) if source >= 0}
    nowhere = np.zeros(frames)
    absent = Motion(nowhere, nowhere, nowhere, nowhere, np.zeros(frames, np.bool_), 1.0, 1.0)
    others = [
        _motion(trace, columns[n], span) if n in columns and n != situation.scenario.sdc else absent
        for n in range(situation.scenario.agent_count)
    ]
    return Attempt(situation, _motion(trace, agent, span), tuple(others))


def _motion(trace: Trace, column: int, span: slice) -> Motion:
    x, y, heading, speed = (
        getattr(trace, name)[span, column].astype(np.float64) for name in ("x", "y", "heading", "speed")
    )
    present = trace.present[span, column]
    return Motion(x, y, heading, speed, present, float(trace.length[column]), float(trace.width[column]))


EXAM = TraceMetrics(EXAM_METRICS, exam_figures)
