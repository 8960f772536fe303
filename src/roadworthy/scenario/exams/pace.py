"""Exams about speed: hard_stop, stop_and_go, highway_straight."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.exams.boxes import first_contact
from roadworthy.scenario.exams.exam import BEFORE_S, Exam
from roadworthy.scenario.exams.situation import Attempt, Situation
from roadworthy.scenario.lanes.guide import is_beside
from roadworthy.scenario.lanes.network import Doubles

# The same values as in the detectors (scenario/detect/pace.py); a test compares them.
HARD_BRAKING_MPS2 = 4.5
HARD_STOP_END_MPS = 2.0
JAM_GAP_M = 20.0
JAM_SHARE = 0.7
HIGHWAY_LOWEST_MPS = 15.0
HIGHWAY_MEAN_MPS = 20.0


def acceleration(speed: Doubles, dt: float) -> Doubles:
    """Return the acceleration (F,) in m/s2, by central differences."""
    return np.gradient(speed, dt)


def braking_leader(situation: Situation) -> int:
    """Return the road user ahead when the car starts to brake hard, -1 if there is none."""
    attempt = situation.recorded
    hard = np.flatnonzero(acceleration(attempt.car.speed, situation.dt) <= -HARD_BRAKING_MPS2)
    return int(attempt.leader[hard[0]]) if len(hard) else -1


def _hard_stop_is_critical(situation: Situation) -> bool:
    """Return whether the leader brakes hard, nearly to a standstill, and all ghosts would hit it.

    The braking starts BEFORE_S after the start or later.
    """
    agent = braking_leader(situation)
    if agent < 0:
        return False
    leader = situation.recorded.others[agent]
    hard = np.flatnonzero(acceleration(leader.speed, situation.dt) <= -HARD_BRAKING_MPS2)
    begins_later = len(hard) > 0 and hard[0] >= situation.steps_of(BEFORE_S)
    stops = leader.speed[leader.present].min() < HARD_STOP_END_MPS
    return bool(begins_later and stops and all(ghost.is_hit(agent) for ghost in situation.ghosts))


def _hard_stop(attempt: Attempt) -> dict[str, bool]:
    """Require that the car never touches the braking vehicle, and that it drives up to it.

    It gets within JAM_GAP_M of the place where the recorded car came to a standstill, or beyond.
    """
    agent = braking_leader(attempt.situation)
    if agent < 0:
        return {"avoids_leader": False, "drives_up": False}
    leader, station = attempt.situation.recorded.others[agent], attempt.situation.recorded.beside(agent)[0]
    stop = int(np.argmax(leader.present & (leader.speed < HARD_STOP_END_MPS)))
    to_go = station[stop] - 0.5 * (leader.length + attempt.car.length) - attempt.station[-1]
    touches = first_contact(attempt.car, attempt.others[agent]) is not None
    return {"avoids_leader": not touches, "drives_up": bool(to_go <= JAM_GAP_M)}


def _queue_gap(attempt: Attempt) -> Doubles:
    """Return the gap (F,) to the queue: to the nearest of the vehicles that the recorded car follows.

    Other vehicles ahead do not count: recorded traffic from behind drives through a car that stands in its way.
    """
    leaders = set(attempt.situation.recorded.leader.tolist()) - {-1}
    return np.min([attempt.gap_to(agent) for agent in leaders], axis=0)


def _stop_and_go_is_critical(situation: Situation) -> bool:
    """Return whether neither standing nor holding the first speed nor driving freely keeps a car in the queue.

    A standing car ends more than JAM_GAP_M behind. A car at its first speed does so too, or hits the vehicle ahead. A
    car at the road's speed hits it.
    """
    recorded = situation.recorded
    agent = int(recorded.leader[0])
    if agent < 0:
        return False
    advance = recorded.station[-1] + recorded.leader_gap[-1] - recorded.station[0]
    holds = situation.steady_ghost
    is_lost = holds.is_hit(agent) or bool(_queue_gap(holds)[-1] > JAM_GAP_M)
    return bool(advance > JAM_GAP_M) and is_lost and all(ghost.is_hit(agent) for ghost in situation.free_ghosts)


def _stop_and_go(attempt: Attempt) -> dict[str, bool]:
    """Require that the car follows the queue: within JAM_GAP_M for JAM_SHARE of the time, and at the end."""
    near = _queue_gap(attempt) <= JAM_GAP_M
    return {"follows": bool(near.mean() >= JAM_SHARE and near[-1])}


def _highway_straight_is_critical(situation: Situation) -> bool:
    """Return whether the road bends: a car that held its first direction and speed would leave its lane."""
    ghost = situation.straight_on
    return not is_beside(situation.guide, ghost.station, ghost.offset).all()


def _highway_straight(attempt: Attempt) -> dict[str, bool]:
    """Require that the car keeps its lane and a freeway speed.

    The speed is always above HIGHWAY_LOWEST_MPS, and above HIGHWAY_MEAN_MPS on average.
    """
    speed = attempt.car.speed
    return {
        "keeps_lane": bool(is_beside(attempt.situation.guide, attempt.station, attempt.offset).all()),
        "keeps_speed": bool(speed.min() >= HIGHWAY_LOWEST_MPS and speed.mean() >= HIGHWAY_MEAN_MPS),
    }


PACE_EXAMS = {
    "hard_stop": Exam(_hard_stop_is_critical, _hard_stop),
    "stop_and_go": Exam(_stop_and_go_is_critical, _stop_and_go),
    "highway_straight": Exam(_highway_straight_is_critical, _highway_straight),
}
