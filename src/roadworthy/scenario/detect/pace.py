"""Detect patterns of the car's speed: hard_stop, stop_and_go, highway_straight."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.detect.junctions import drives_on_ring, turns
from roadworthy.scenario.detect.lanes import entries_ahead
from roadworthy.scenario.detect.tracks import PASSED_M, Tracks
from roadworthy.scenario.schema import Bools, Floats

HARD_BRAKING_MPS2 = 4.5
HARD_BRAKING_S = 0.5
BRAKING_MPS2 = 1.0  # braking lasts while it is at least this strong
HARD_STOP_LOSS_MPS = 5.0
HARD_STOP_END_MPS = 2.0

STANDING_MPS = 0.7
MOVING_MPS = 1.5
JAM_TOP_SPEED_MPS = 9.0
JAM_GAP_M = 20.0
JAM_SHARE = 0.7  # of the steps have a leader within that gap
JAM_STANDS = 2  # stop, go, stop: three phases
LIGHT_QUEUE_M = 40.0  # a red light this near ahead explains standing, also through the cars before it
CONTROL_M = 12.0  # a stop line or a crosswalk this near ahead explains standing

HIGHWAY_LOWEST_MPS = 15.0
HIGHWAY_MEAN_MPS = 20.0
HIGHWAY_TURN_RAD = 0.5
HIGHWAY_BRAKING_MPS2 = 2.5
HIGHWAY_ENTRY_M = 40.0


def hard_stop(tracks: Tracks) -> bool:
    """The car brakes hard to a standstill, or nearly.

    It decelerates at HARD_BRAKING_MPS2 or more for HARD_BRAKING_S without interruption; the braking around that (while
    it is above BRAKING_MPS2) reduces the speed by HARD_STOP_LOSS_MPS or more and ends below HARD_STOP_END_MPS. A car in
    stop-and-go traffic does not make a hard stop.
    """
    speed, acceleration = tracks.speed[tracks.sdc], tracks.acceleration[tracks.sdc]
    for first, end in hard_brakings(tracks):
        while first > 0 and acceleration[first - 1] <= -BRAKING_MPS2:
            first -= 1
        while end < len(speed) and acceleration[end] <= -BRAKING_MPS2:
            end += 1
        # Accelerations are central differences, so the speeds just outside the interval belong to it.
        before, after = speed[max(first - 1, 0)], speed[min(end, len(speed) - 1)]
        if before - after >= HARD_STOP_LOSS_MPS and after < HARD_STOP_END_MPS:
            return not stop_and_go(tracks)
    return False


def hard_brakings(tracks: Tracks) -> list[tuple[int, int]]:
    """Return first step and end of every interval of HARD_BRAKING_MPS2 or more that lasts HARD_BRAKING_S."""
    least = tracks.steps_of(HARD_BRAKING_S)
    return [s for s in _stretches(tracks.acceleration[tracks.sdc] <= -HARD_BRAKING_MPS2) if s[1] - s[0] >= least]


def stop_and_go(tracks: Tracks) -> bool:
    """The car stops and goes in a queue, because the car ahead does.

    It stands (below STANDING_MPS) at least JAM_STANDS times and moves (above MOVING_MPS) in between, never faster than
    JAM_TOP_SPEED_MPS, with a leader in its lane within JAM_GAP_M for JAM_SHARE of the time. A stop counts if the leader
    is that near and nothing else explains it: no red light within LIGHT_QUEUE_M ahead, no stop line or crosswalk within
    CONTROL_M ahead and before the leader. Turns and roundabouts are separate classes.
    """
    speed = tracks.speed[tracks.sdc]
    if speed.max() > JAM_TOP_SPEED_MPS or speed.min() >= STANDING_MPS:
        return False
    near = tracks.leader_gap <= JAM_GAP_M
    if near.mean() < JAM_SHARE or drives_on_ring(tracks) or turns(tracks):
        return False
    stands = 0
    for first, end in _stands(speed):
        if near[first:end].mean() > JAM_SHARE and not _is_held(tracks, (first + end) // 2):
            stands += 1
    return stands >= JAM_STANDS


def highway_straight(tracks: Tracks) -> bool:
    """The car drives along a freeway, undisturbed.

    On lanes of type FREEWAY throughout, always faster than HIGHWAY_LOWEST_MPS and faster than HIGHWAY_MEAN_MPS on
    average, without any lane change, turning by at most HIGHWAY_TURN_RAD, never braking above HIGHWAY_BRAKING_MPS2, and
    with nobody entering its lane (from an adjacent lane or a ramp) within HIGHWAY_ENTRY_M ahead of it.
    """
    sdc = tracks.sdc
    speed, lane = tracks.speed[sdc], tracks.lane[sdc]
    if speed.min() < HIGHWAY_LOWEST_MPS or speed.mean() < HIGHWAY_MEAN_MPS:
        return False
    if (lane < 0).any() or not tracks.network.is_freeway[lane].all() or tracks.network.is_ending[lane].any():
        return False
    heading = np.unwrap(tracks.heading[sdc])
    if np.ptp(heading) > HIGHWAY_TURN_RAD or tracks.acceleration[sdc].min() < -HIGHWAY_BRAKING_MPS2:
        return False
    return not tracks.lane_changes(sdc) and not any(e.gap_m <= HIGHWAY_ENTRY_M for e in entries_ahead(tracks))


def _stretches(flags: Bools) -> list[tuple[int, int]]:
    """Return first step and end of every unbroken run of flags."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _stands(speed: Floats) -> list[tuple[int, int]]:
    """Return intervals of standing, joined where the car hardly moved in between."""
    stands: list[tuple[int, int]] = []
    for first, end in _stretches(speed < STANDING_MPS):
        if stands and speed[stands[-1][1] : first].max() <= MOVING_MPS:
            stands[-1] = (stands[-1][0], end)
        else:
            stands.append((first, end))
    return stands


def _is_held(tracks: Tracks, step: int) -> bool:
    """Return whether a light, a stop line or a crosswalk explains that the car stands."""
    front = tracks.front[step]
    if np.isnan(front) or tracks.red_light_within(LIGHT_QUEUE_M, step):
        return True
    lanes = tracks.map.stop_line_lanes
    ahead = tracks.path.base[lanes] + tracks.network.length[lanes] - front
    ahead = np.append(ahead, [entry - front for entry, _ in tracks.crosswalks.values()])
    with np.errstate(invalid="ignore"):
        return bool(((ahead >= -PASSED_M) & (ahead <= min(CONTROL_M, tracks.leader_gap[step]))).any())
