"""Exams about lane changes of the car and of others: lane_change, cut_in, merge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.exams.exam import BEFORE_S, Exam
from roadworthy.scenario.exams.situation import EXAM_S, Attempt, Situation
from roadworthy.scenario.lanes.guide import UNKNOWN_LIMIT_MPS, is_beside

# The same values as in the detectors (scenario/detect/lanes.py, tracks.py); a test compares them.
SETTLED_M = 0.5
CUT_IN_GAP_M = 20.0
CUT_IN_TIME_GAP_S = 1.5
CUT_IN_LEAST_SPEED_MPS = 5.0

SETTLED_S = 1.0  # how long a car must be near its new lane's center at the end
SAFE_GAP_S = 0.9  # less is an offense above 80 km/h in Germany (BKatV: 5/10 of half the speedometer's reading, in m)
FASTER = 1.3  # ratio of the highest possible speed to the speed limit, for lanes that a car can reach


@dataclass(frozen=True)
class Change:
    """The recorded car's transition from a lane to the adjacent one."""

    frame: int
    origin: int
    target: int


def recorded_change(situation: Situation, *, leaves_ending: bool) -> Change | None:
    """Return the recording's first lane change, away from a lane that ends or from one that continues."""
    places, is_ending = situation.recorded.places, situation.network.is_ending
    for frame in np.flatnonzero(places.shift).tolist():
        change = Change(frame, int(places.lane[frame - 1]), int(places.lane[frame]))
        if is_ending[change.origin] == leaves_ending and not is_ending[change.target]:
            return change
    return None


def lanes_from(situation: Situation, lane: int) -> set[int]:
    """Return a lane and those that can be reached from it within an exam without changing lanes.

    The reach is limited because, around a block, every lane leads back to where it came from.
    """
    limit = float(situation.scenario.map.speed_limits[lane])
    reach = EXAM_S * FASTER * (limit if limit > 0.0 else UNKNOWN_LIMIT_MPS)
    network, meters, waiting = situation.network, {lane: 0.0}, [lane]
    while waiting:
        before = waiting.pop()
        start = meters[before] + float(network.length[before])
        for after in map(int, network.following(before)):
            if start < min(reach, meters.get(after, np.inf)):
                meters[after] = start
                waiting.append(after)
    return set(meters)


def _target_lanes(situation: Situation, change: Change) -> set[int]:
    """Return the target lane of the change, its parts beside the way before the change, and the lanes that follow."""
    network = situation.network
    origins = set(situation.recorded.places.lane[: change.frame].tolist())
    lanes, row = lanes_from(situation, change.target), {change.target}
    while row:
        row = {
            lane
            for lane in range(len(network.length))
            if lane not in lanes | origins and any(int(n) in row for n in network.following(lane))
        }
        row = {lane for lane in row if not network.is_junction[lane] and not network.is_ending[lane]}
        lanes |= row
    return lanes - origins


def _lane_change_is_critical(situation: Situation) -> bool:
    """Return whether the change comes BEFORE_S after the start or later, and needs steering.

    The lane that the car leaves continues, and neither it nor the car's first direction leads to the new lane.
    """
    change = recorded_change(situation, leaves_ending=False)
    if change is None or change.frame < situation.steps_of(BEFORE_S):
        return False
    lanes = _target_lanes(situation, change)
    places = situation.recorded.places
    is_before = int(places.lane[0]) not in lanes and abs(places.offset[0]) <= SETTLED_M
    drifts = situation.straight_on.is_settled_on(lanes, SETTLED_M, SETTLED_S)
    return bool(is_before) and not drifts and not lanes & lanes_from(situation, change.origin)


def _lane_change(attempt: Attempt) -> dict[str, bool]:
    """Require that the car ends settled on the new lane: within SETTLED_M of its center for SETTLED_S."""
    change = recorded_change(attempt.situation, leaves_ending=False)
    lanes = _target_lanes(attempt.situation, change) if change else set()
    return {"reaches_lane": attempt.is_settled_on(lanes, SETTLED_M, SETTLED_S)}


def _merge_is_critical(situation: Situation) -> bool:
    """Return whether the change comes BEFORE_S after the start or later, and free ghosts would hit somebody there."""
    change = recorded_change(situation, leaves_ending=True)
    if change is None or change.frame < situation.steps_of(BEFORE_S):
        return False
    return all(any(ghost.is_hit(n) for n in range(len(ghost.others))) for ghost in situation.free_ghosts)


def _merge(attempt: Attempt) -> dict[str, bool]:
    """Require that the car changes from the lane that ends to the adjacent one, and ends settled there."""
    change = recorded_change(attempt.situation, leaves_ending=True)
    network, places = attempt.situation.network, attempt.places
    joins = any(
        network.is_ending[places.lane[frame - 1]] and not network.is_ending[places.lane[frame]]
        for frame in np.flatnonzero(places.shift).tolist()
    )
    lanes = lanes_from(attempt.situation, change.target) if change else set()
    return {"joins": joins, "reaches_lane": attempt.is_settled_on(lanes, SETTLED_M, SETTLED_S)}


def cutting_in(situation: Situation) -> tuple[int, int]:
    """Return the vehicle that cuts in, and the frame at which it crosses the line; -1 and -1 if there is none.

    It comes from outside the guide's lane, and as its center crosses the line it is the next ahead: at most
    CUT_IN_GAP_M from bumper to bumper, and at most CUT_IN_TIME_GAP_S at the car's speed, both faster than
    CUT_IN_LEAST_SPEED_MPS.
    """
    attempt = situation.recorded
    leader, gap, speed = attempt.leader, attempt.leader_gap, attempt.car.speed
    for frame in (np.flatnonzero(np.diff(leader)) + 1).tolist():
        agent = int(leader[frame])
        if agent < 0 or gap[frame] > min(CUT_IN_GAP_M, CUT_IN_TIME_GAP_S * speed[frame]):
            continue
        other = attempt.others[agent]
        station, offset = attempt.beside(agent)
        comes_from_beside = other.present[frame - 1] and not is_beside(situation.guide, station, offset)[frame - 1]
        settles = (np.abs(offset[frame:]) <= SETTLED_M).any()
        if comes_from_beside and settles and min(speed[frame], other.speed[frame]) >= CUT_IN_LEAST_SPEED_MPS:
            return agent, frame
    return -1, -1


def _cut_in_is_critical(situation: Situation) -> bool:
    """Return whether the vehicle crosses the line BEFORE_S after the start or later, and all ghosts would hit it."""
    agent, frame = cutting_in(situation)
    if agent < 0 or frame < situation.steps_of(BEFORE_S):
        return False
    return all(ghost.is_hit(agent) for ghost in situation.ghosts)


def _cut_in(attempt: Attempt) -> dict[str, bool]:
    """Require a safe gap to the vehicle at the end: SAFE_GAP_S if it is ahead in the car's lane."""
    agent, _ = cutting_in(attempt.situation)
    gap = float(attempt.gap_to(agent)[-1]) if agent >= 0 else -np.inf
    return {"safe_gap": gap >= SAFE_GAP_S * float(attempt.car.speed[-1])}


LANE_EXAMS = {
    "lane_change": Exam(_lane_change_is_critical, _lane_change),
    "cut_in": Exam(_cut_in_is_critical, _cut_in),
    "merge": Exam(_merge_is_critical, _merge),
}
