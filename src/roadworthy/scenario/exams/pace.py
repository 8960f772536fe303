"""Exams about speed: hard_stop, stop_and_go, highway_straight."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.exams.boxes import first_contact
from roadworthy.scenario.exams.exam import BEFORE_S, Exam
from roadworthy.scenario.exams.situation import Attempt, Situation
from roadworthy.scenario.lanes.guide import is_beside
from roadworthy.scenario.lanes.network import Doubles

# As in the detectors (scenario/detect/pace.py), which a test compares.
HARD_BRAKING_MPS2 = 4.5
HARD_STOP_END_MPS = 2.0
JAM_GAP_M = 20.0
JAM_SHARE = 0.7
HIGHWAY_LOWEST_MPS = 15.0
HIGHWAY_MEAN_MPS = 20.0


def acceleration(speed: Doubles, dt: float) -> Doubles:
    """Return the change of speed (F,) in m/s2, by central differences."""
    return np.gradient(speed, dt)


def braking_leader(situation: Situation) -> int:
    """Return the road user ahead of the car as that begins to brake hard, -1 for none."""
    attempt = situation.recorded
    hard = np.flatnonzero(acceleration(attempt.car.speed, situation.dt) <= -HARD_BRAKING_MPS2)
    return int(attempt.leader[hard[0]]) if len(hard) else -1


def _hard_stop_is_critical(situation: Situation) -> bool:
    """The car ahead brakes hard, nearly to a stand, BEFORE_S after the start or later, and whoever follows the lane
    without heeding it drives into it, at the first speed as well as at the speed that suits the road."""
    agent = braking_leader(situation)
    if agent < 0:
        return False
    leader = situation.recorded.others[agent]
    hard = np.flatnonzero(acceleration(leader.speed, situation.dt) <= -HARD_BRAKING_MPS2)
    begins_later = len(hard) > 0 and hard[0] >= situation.steps_of(BEFORE_S)
    stops = leader.speed[leader.there].min() < HARD_STOP_END_MPS
    return bool(begins_later and stops and all(ghost.is_hit(agent) for ghost in situation.ghosts))


def _hard_stop(attempt: Attempt) -> dict[str, bool]:
    """Stops behind the braking car, or avoids it: the two never touch.

    And drives up to it: gets as far as JAM_GAP_M before the place where it came to its stand, or beyond.
    """
    agent = braking_leader(attempt.situation)
    if agent < 0:
        return {"avoids_leader": False, "drives_up": False}
    leader, station = attempt.situation.recorded.others[agent], attempt.situation.recorded.beside(agent)[0]
    stop = int(np.argmax(leader.there & (leader.speed < HARD_STOP_END_MPS)))
    to_go = station[stop] - 0.5 * (leader.length + attempt.car.length) - attempt.station[-1]
    touches = first_contact(attempt.car, attempt.others[agent]) is not None
    return {"avoids_leader": not touches, "drives_up": bool(to_go <= JAM_GAP_M)}


def _queue_gap(attempt: Attempt) -> Doubles:
    """The gap (F,) to the queue: to the nearest of those whom the recorded car follows.

    Not to whoever is ahead: recorded traffic that comes from behind drives through a car that stands in its way.
    """
    leaders = set(attempt.situation.recorded.leader.tolist()) - {-1}
    return np.min([attempt.gap_to(agent) for agent in leaders], axis=0)


def _stop_and_go_is_critical(situation: Situation) -> bool:
    """Neither staying nor holding the first speed nor driving as fast as suits the road keeps a car in the queue.

    Staying, it falls back by more than JAM_GAP_M in the end. At its first speed it does, too, or drives into the car
    ahead. At the road's speed it drives into it.
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
    """Follows the queue: it is within JAM_GAP_M ahead for JAM_SHARE of the time, and in the end."""
    near = _queue_gap(attempt) <= JAM_GAP_M
    return {"follows": bool(near.mean() >= JAM_SHARE and near[-1])}


def _highway_straight_is_critical(situation: Situation) -> bool:
    """The road bends: a car that held its first direction and speed would leave its lane."""
    ghost = situation.straight_on
    return not is_beside(situation.guide, ghost.station, ghost.offset).all()


def _highway_straight(attempt: Attempt) -> dict[str, bool]:
    """Keeps its lane, and the speed of a freeway: above HIGHWAY_LOWEST_MPS always, HIGHWAY_MEAN_MPS on average."""
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
