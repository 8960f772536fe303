"""Exams about movements across a junction: roundabout, unprotected_left, unprotected_right, protected_left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.exams.boxes import Motion, lags
from roadworthy.scenario.exams.exam import BEFORE_S, Exam
from roadworthy.scenario.exams.lanes import lanes_from
from roadworthy.scenario.exams.situation import Attempt, Situation
from roadworthy.scenario.schema import AgentType

# The same values as in the detectors (scenario/detect/junctions.py); a test compares them.
SMALLEST_TURN_RAD = np.radians(45.0)
LARGEST_TURN_RAD = np.radians(135.0)
RING_DRIVE_M = 12.0
RING_DRIVE_RAD = 0.6
YIELDED_BEFORE_S = 6.0  # largest time between a road user who goes first and the car
OTHER_APPROACH_RAD = np.radians(30.0)

EXIT_M = 5.0  # beyond the junction, the ways of cars that leave it together have joined
APPROACH_M = 10.0  # from the front of the car to the junction
CLOSE_S = 1.0  # post-encroachment times below this are critical (A. Varhelyi, 1998)
LEAST_MPS = 1.0


@dataclass(frozen=True)
class Turn:
    """The recorded car's movement across a junction."""

    lane: int
    first: int  # frame, the first one on the lane
    end: int  # frame, the first one beyond it
    exit: int  # the lane that follows


def recorded_turn(situation: Situation, sign: float) -> Turn | None:
    """Return the first complete left (sign 1) or right (-1) turn of the recording, None if there is none."""
    network, lane = situation.network, situation.recorded.places.lane
    starts = np.flatnonzero(np.diff(lane, prepend=-2))
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        here = int(lane[first])
        if here < 0 or not network.is_junction[here] or network.is_ring[here] or network.touches_ring[here]:
            continue
        is_turn = SMALLEST_TURN_RAD <= sign * network.turn[here] <= LARGEST_TURN_RAD
        if is_turn and first >= situation.steps_of(BEFORE_S) and lane[end] in network.following(here):
            return Turn(here, first, end, int(lane[end]))
    return None


def yielded_to(situation: Situation, turn: Turn) -> list[int]:
    """Return the vehicles and cyclists from other approaches to whom the recorded car yields.

    They are at a point of its turn at most YIELDED_BEFORE_S before it is.
    """
    recorded = situation.recorded
    passed = recorded.station - recorded.station[turn.end]
    beyond = np.flatnonzero(passed > EXIT_M)
    swept = np.arange(len(recorded.car)) < (int(beyond[0]) if len(beyond) else len(recorded.car))
    swept &= np.arange(len(recorded.car)) >= turn.first
    car = recorded.car
    crossing = Motion(car.x, car.y, car.heading, car.speed, car.present & swept, car.length, car.width)
    approach = float(situation.network.start_heading[turn.lane])
    found = []
    for agent, other in enumerate(recorded.others):
        kind = situation.scenario.agent_types[agent]
        if kind not in (AgentType.VEHICLE, AgentType.CYCLIST) or not other.present.any():
            continue
        if other.speed[other.present].max() < LEAST_MPS:
            continue
        if 0.0 < lags(crossing, other, situation.dt)[1] <= YIELDED_BEFORE_S:
            entry = other.heading[int(np.argmax(other.present))]
            if abs((entry - approach + np.pi) % (2.0 * np.pi) - np.pi) > OTHER_APPROACH_RAD:
                found.append(agent)
    return found


def gives_way(attempt: Attempt, agents: list[int], margin_m: float = 0.0) -> bool:
    """Return whether none of these agents reaches a place less than CLOSE_S after the car was there."""
    dt = attempt.situation.dt
    return all(lags(attempt.car, attempt.others[n].grown(margin_m), dt)[0] >= CLOSE_S for n in agents)


def _unprotected_is_critical(situation: Situation, sign: float) -> bool:
    """Return whether the car starts APPROACH_M or more before the junction and yields, and no free ghost would."""
    turn = recorded_turn(situation, sign)
    if turn is None or not _is_on_approach(situation, turn):
        return False
    agents = yielded_to(situation, turn)
    return bool(agents) and all(not gives_way(ghost, agents) for ghost in situation.free_ghosts)


def _protected_is_critical(situation: Situation, sign: float) -> bool:
    """Return whether the car starts APPROACH_M or more before the junction, and turns."""
    turn = recorded_turn(situation, sign)
    return turn is not None and _is_on_approach(situation, turn)


def _is_on_approach(situation: Situation, turn: Turn) -> bool:
    recorded = situation.recorded
    way = recorded.station[turn.first] - recorded.station[0] - 0.5 * recorded.car.length
    return bool(way >= APPROACH_M)


def _turn_conditions(attempt: Attempt, sign: float) -> dict[str, bool]:
    """Require that the car ends on the recorded exit lane, or on one of its successors."""
    turn = recorded_turn(attempt.situation, sign)
    lanes = lanes_from(attempt.situation, turn.exit) if turn else set()
    return {"completes_turn": int(attempt.places.lane[-1]) in lanes}


def _unprotected(attempt: Attempt, sign: float) -> dict[str, bool]:
    """Require that the car completes the turn and yields to those to whom the recorded car yields."""
    turn = recorded_turn(attempt.situation, sign)
    yields = turn is not None and gives_way(attempt, yielded_to(attempt.situation, turn))
    return {**_turn_conditions(attempt, sign), "yields": yields}


def _ring_frames(attempt: Attempt) -> tuple[int, int] | None:
    """Return the first frame on a roundabout's ring and the first one after it; None unless it enters and leaves."""
    lane = attempt.places.lane
    on_ring = np.flatnonzero((lane >= 0) & attempt.situation.network.is_ring[lane])
    if not len(on_ring) or on_ring[0] == 0 or on_ring[-1] == len(lane) - 1:
        return None
    return int(on_ring[0]), int(on_ring[-1]) + 1


def _roundabout_is_critical(situation: Situation) -> bool:
    """Return whether the recorded car enters BEFORE_S after the start or later, drives around, and leaves."""
    frames = _ring_frames(situation.recorded)
    if frames is None or frames[0] < situation.steps_of(BEFORE_S):
        return False
    car, (first, end) = situation.recorded.car, frames
    turned = abs(float(np.unwrap(car.heading)[end - 1] - np.unwrap(car.heading)[first]))
    return bool(car.speed[first:end].sum() * situation.dt >= RING_DRIVE_M and turned >= RING_DRIVE_RAD)


def _roundabout(attempt: Attempt) -> dict[str, bool]:
    """Require that the car drives on the ring, and ends beyond it on the recorded exit."""
    recorded, network = attempt.situation.recorded, attempt.situation.network
    frames = _ring_frames(recorded)
    exits = lanes_from(attempt.situation, int(recorded.places.lane[frames[1]])) if frames else set()
    lane = attempt.places.lane
    enters = bool(((lane >= 0) & network.is_ring[lane]).any())
    return {"enters": enters, "leaves_by_exit": int(lane[-1]) in exits and not network.is_ring[lane[-1]]}


JUNCTION_EXAMS = {
    "roundabout": Exam(_roundabout_is_critical, _roundabout),
    "unprotected_left": Exam(lambda s: _unprotected_is_critical(s, 1.0), lambda a: _unprotected(a, 1.0)),
    "unprotected_right": Exam(lambda s: _unprotected_is_critical(s, -1.0), lambda a: _unprotected(a, -1.0)),
    "protected_left": Exam(lambda s: _protected_is_critical(s, 1.0), lambda a: _turn_conditions(a, 1.0)),
}
