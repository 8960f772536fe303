"""Behavior classes as exams: which recordings qualify, where they start, and what passing requires.

A class is what a recording shows (scenario/detect). An exam requires it of a driver: it starts before the critical
event and ends with the recording, long after it. A recording qualifies if the event is critical, judged from the
recording only, and if the recorded car itself meets the conditions. Conditions are about the maneuver, never about
being at the recorded place at the recorded time. docs/behaviors.md lists both.
"""

from __future__ import annotations

from roadworthy.scenario.exams.boxes import Motion
from roadworthy.scenario.exams.encounters import ENCOUNTER_EXAMS
from roadworthy.scenario.exams.exam import Exam, common_conditions
from roadworthy.scenario.exams.junctions import JUNCTION_EXAMS
from roadworthy.scenario.exams.lanes import LANE_EXAMS
from roadworthy.scenario.exams.pace import PACE_EXAMS
from roadworthy.scenario.exams.situation import Attempt, Situation
from roadworthy.scenario.schema import AgentType, Scenario

__all__ = ["EXAMS", "Attempt", "Exam", "Motion", "Situation", "conditions", "disqualification", "situation_of"]

EXAMS: dict[str, Exam] = PACE_EXAMS | LANE_EXAMS | JUNCTION_EXAMS | ENCOUNTER_EXAMS


def situation_of(scenario: Scenario, start: int) -> Situation | None:
    """Return a recording from a step on; None unless the self-driving car is a vehicle that is present throughout."""
    if scenario.sdc < 0 or scenario.agent_types[scenario.sdc] != AgentType.VEHICLE:
        return None
    situation = Situation(scenario, start)
    there = scenario.valid[scenario.sdc, situation.steps]
    return situation if len(there) > 1 and there.all() else None


def conditions(name: str, attempt: Attempt) -> dict[str, bool]:
    """Return the requirements of a class's exam by name, and whether an attempt meets each."""
    return {**EXAMS[name].conditions(attempt), **common_conditions(attempt)}


def disqualification(name: str, situation: Situation | None) -> str | None:
    """Return why a recording does not qualify for the exam of a class; None if it does."""
    if situation is None:
        return "the self-driving car is not present throughout"
    if not situation.has_room:
        return "the road ends soon after the recording does"
    if not EXAMS[name].is_critical(situation):
        return "the event is not critical, or comes too early"
    failed = [part for part, is_met in conditions(name, situation.recorded).items() if not is_met]
    return f"the recorded car itself fails: {', '.join(failed)}" if failed else None
