"""Detect encounters with road users in the car's way other than traffic: pedestrian_crossing, nudge_parked."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.detect.junctions import drives_on_ring, turns
from roadworthy.scenario.detect.pace import hard_brakings
from roadworthy.scenario.detect.tracks import PASSED_M, Tracks
from roadworthy.scenario.schema import AgentType, Bools

GIVE_WAY_M = 25.0  # the car yields at most this far before the crosswalk
GIVE_WAY_MPS = 2.0
GIVE_WAY_LOSS_MPS = 4.0
DRIVES_MPS = 3.0  # a car that never drives faster yields to nobody
ARRIVES_WITHIN_M = 10.0  # a pedestrian this near to the car's path will cross next
LEAVES_WITHIN_M = 2.5  # beyond the lane's edge, the pedestrian is no longer in the way
CROSSWALK_MARGIN_M = 0.5
WALKING_MPS = 0.3
RED_LIGHT_M = 30.0

INTRUSION_M = 0.2
SHIFT_M = 0.35
CLEARANCE_M = 1.5
NEARBY_M = 8.0
BASELINE_S = 0.5
BASELINE_AHEAD_M = (10.0, 60.0)  # range of the car's offset in the lane before the maneuver


def pedestrian_crossing(tracks: Tracks) -> bool:
    """The car, driving straight ahead in its lane, yields to a pedestrian on a crosswalk.

    The pedestrian crosses the car's path on the crosswalk before the car gets there. While the pedestrian is in the way
    (at most ARRIVES_WITHIN_M before the path, or less than LEAVES_WITHIN_M beyond the lane), the car is within
    GIVE_WAY_M of the crosswalk with nobody in between, and slows below GIVE_WAY_MPS or by GIVE_WAY_LOSS_MPS. A red
    light within RED_LIGHT_M or a stop sign would also explain that, so it does not count then. Turns, roundabouts, lane
    changes and hard braking are separate classes, with or without pedestrians.
    """
    sdc = tracks.sdc
    if not tracks.crosswalks or tracks.speed[sdc].max() < DRIVES_MPS or tracks.lane_changes(sdc):
        return False
    if turns(tracks) or drives_on_ring(tracks) or hard_brakings(tracks):
        return False
    is_walker = (tracks.types == AgentType.PEDESTRIAN) & ((tracks.speed * tracks.valid).max(axis=1) > WALKING_MPS)
    for walker in np.flatnonzero(is_walker):
        station, offset = tracks.path.project(tracks.x[walker], tracks.y[walker])
        for entry, end in tracks.crosswalks.values():
            on_crosswalk = (station > entry - CROSSWALK_MARGIN_M) & (station < end + CROSSWALK_MARGIN_M)
            on_crosswalk &= tracks.valid[walker]
            crossings = np.flatnonzero(on_crosswalk[1:] & on_crosswalk[:-1] & (offset[1:] * offset[:-1] <= 0)) + 1
            clear_m = tracks.path.half_width_at(entry) + LEAVES_WITHIN_M
            for step in crossings:
                near = np.abs(offset) <= np.where(np.arange(tracks.steps) < step, ARRIVES_WITHIN_M, clear_m)
                if _gives_way(tracks, int(step), near & tracks.valid[walker], entry):
                    return True
    return False


def _gives_way(tracks: Tracks, crossing_step: int, in_the_way: Bools, entry: float) -> bool:
    """Return whether the car slows down before the crosswalk while somebody is in the way, for no other reason."""
    speed, ahead = tracks.speed[tracks.sdc], entry - tracks.front
    if not ahead[crossing_step] >= -CROSSWALK_MARGIN_M:
        return False
    with np.errstate(invalid="ignore"):
        steps = np.flatnonzero(in_the_way & (ahead >= -CROSSWALK_MARGIN_M) & (ahead <= GIVE_WAY_M))
    if not len(steps):
        return False
    slowest = int(steps[np.argmin(speed[steps])])
    lost = float(speed[steps[steps <= slowest]].max() - speed[slowest])
    if speed[slowest] >= GIVE_WAY_MPS and lost < GIVE_WAY_LOSS_MPS:
        return False
    if tracks.leader_gap[slowest] < ahead[slowest] or tracks.red_light_within(RED_LIGHT_M, slowest):
        return False
    stopped_lanes = tracks.map.stop_signs[:, 1]
    to_sign = tracks.path.base[stopped_lanes] + tracks.network.length[stopped_lanes] - tracks.front[slowest]
    return not ((to_sign >= -PASSED_M) & (to_sign <= GIVE_WAY_M)).any()


def nudge_parked(tracks: Tracks) -> bool:
    """The car shifts sideways within its lane to pass a parked vehicle that protrudes into the lane.

    The parked vehicle never moves and protrudes INTRUSION_M or more over the edge of the car's lane. The car comes from
    behind it, shifts by SHIFT_M or more away from it relative to its earlier offset in the lane, passes with less than
    CLEARANCE_M between the two, and gets past it without changing lanes.
    """
    sdc = tracks.sdc
    parked = tracks.never_moves.copy()
    parked[sdc] = False
    if not parked.any() or (tracks.lane[sdc] < 0).any() or tracks.lane_changes(sdc):
        return False
    for agent in np.flatnonzero(parked):
        step = int(np.argmax(tracks.valid[agent]))
        x, y = float(tracks.x[agent, step]), float(tracks.y[agent, step])
        if np.hypot(tracks.x[sdc] - x, tracks.y[sdc] - y).min() < NEARBY_M:
            corners_x, corners_y = _corners(x, y, float(tracks.heading[agent, step]), tracks.sizes[agent])
            if _is_nudged(tracks, *tracks.path.project(corners_x, corners_y)):
                return True
    return False


def _corners(x: float, y: float, heading: float, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    along = 0.5 * float(size[0]) * np.array([1.0, 1.0, -1.0, -1.0])
    beside = 0.5 * float(size[1]) * np.array([1.0, -1.0, -1.0, 1.0])
    cosine, sine = np.cos(heading), np.sin(heading)
    return x + along * cosine - beside * sine, y + along * sine + beside * cosine


def _is_nudged(tracks: Tracks, stations: np.ndarray, offsets: np.ndarray) -> bool:
    """Return whether the car passes around a box, given its corners relative to the path."""
    sdc = tracks.sdc
    side = 1.0 if offsets.mean() >= 0.0 else -1.0
    inner = float((side * offsets).min())  # distance from the lane's center to the box
    if inner > tracks.path.half_width_at(float(stations.mean())) - INTRUSION_M:
        return False
    half_length, half_width = 0.5 * float(tracks.sizes[sdc, 0]), 0.5 * float(tracks.sizes[sdc, 1])
    own_station, own_offset = tracks.station[sdc], side * tracks.offset[sdc]
    ahead = stations.min() - own_station - half_length
    before = np.flatnonzero((ahead >= BASELINE_AHEAD_M[0]) & (ahead <= BASELINE_AHEAD_M[1]))
    if not len(before) or own_station[-1] < stations.max():
        return False
    baseline = float(np.median(own_offset[before[: tracks.steps_of(BASELINE_S)]]))
    alongside = (ahead <= 0.0) & (own_station - half_length <= stations.max())
    if not alongside.any():
        return False
    shift = baseline - float(own_offset[alongside].min())
    clearance = inner - half_width - float(own_offset[alongside].max())
    return shift >= SHIFT_M and clearance < CLEARANCE_M
