"""Exams about road users in the car's way other than traffic: pedestrian_crossing, nudge_parked."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.exams.boxes import lags
from roadworthy.scenario.exams.exam import BEFORE_S, Exam
from roadworthy.scenario.exams.junctions import gives_way
from roadworthy.scenario.exams.situation import Attempt, Situation
from roadworthy.scenario.schema import AgentType

YIELDED_BEFORE_S = 6.0  # largest time between a pedestrian who goes first and the car
WALKER_MARGIN_M = 0.5  # kept free around a pedestrian
MOVES_M = 0.3
SWAY_M = 0.2  # typical offset from the center of a car in its lane in recorded traffic


def crossing_pedestrians(situation: Situation) -> list[int]:
    """Return pedestrians to whom the recorded car yields and who enter its lane BEFORE_S after the start or later."""
    recorded, found = situation.recorded, []
    for agent in np.flatnonzero(situation.scenario.agent_types == AgentType.PEDESTRIAN).tolist():
        walker = recorded.others[agent]
        if not walker.present.any():
            continue
        second = lags(recorded.car, walker, situation.dt)[1]
        if 0.0 < second <= YIELDED_BEFORE_S and _enters(situation, agent) >= situation.steps_of(BEFORE_S):
            found.append(agent)
    return found


def _enters(situation: Situation, agent: int) -> int:
    """Return the first frame at which a pedestrian is in the guide's lane, -1 if it never is."""
    station, offset = situation.recorded.beside(agent)
    guide = situation.guide
    with np.errstate(invalid="ignore"):
        inside = np.flatnonzero(np.abs(offset) <= np.interp(station, guide.station, guide.half_width))
    return int(inside[0]) if len(inside) else -1


def _pedestrian_crossing_is_critical(situation: Situation) -> bool:
    """Return whether a car on the guide that ignores others would hit pedestrians or pass closely before them."""
    agents = crossing_pedestrians(situation)
    return bool(agents) and all(not gives_way(ghost, agents, WALKER_MARGIN_M) for ghost in situation.ghosts)


def _pedestrian_crossing(attempt: Attempt) -> dict[str, bool]:
    """Require that the car yields to the pedestrians to whom the recorded car yields, and ends beyond their way."""
    situation = attempt.situation
    agents = crossing_pedestrians(situation)
    ways = [float(situation.recorded.beside(n)[0][_enters(situation, n)]) for n in agents]
    beyond = attempt.station[-1] - 0.5 * attempt.car.length
    return {
        "yields": bool(agents) and gives_way(attempt, agents, WALKER_MARGIN_M),
        "gets_across": bool(agents) and bool(beyond > max(ways)),
    }


def parked_in_the_way(situation: Situation) -> list[int]:
    """Return the vehicles that never move and that a car at the center of the guide's lane would touch.

    A car that is SWAY_M narrower on both sides would also touch them, so that swaying a little does not suffice.
    """
    found = []
    for agent in np.flatnonzero(situation.scenario.agent_types == AgentType.VEHICLE).tolist():
        other = situation.recorded.others[agent]
        if not other.present.all() or np.hypot(np.ptp(other.x), np.ptp(other.y)) > MOVES_M:
            continue
        if all(ghost.narrowed(SWAY_M).is_hit(agent) for ghost in situation.ghosts):
            found.append(agent)
    return found


def _nudge_parked(attempt: Attempt) -> dict[str, bool]:
    """Require that the car ends beyond the parked vehicle."""
    situation = attempt.situation
    agents = parked_in_the_way(situation)
    ends = [situation.recorded.beside(n)[0][0] + 0.5 * situation.recorded.others[n].length for n in agents]
    beyond = attempt.station[-1] - 0.5 * attempt.car.length
    return {"passes": bool(agents) and bool(beyond > max(ends))}


ENCOUNTER_EXAMS = {
    "pedestrian_crossing": Exam(_pedestrian_crossing_is_critical, _pedestrian_crossing),
    "nudge_parked": Exam(lambda situation: bool(parked_in_the_way(situation)), _nudge_parked),
}
