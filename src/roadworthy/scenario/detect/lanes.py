"""Detect lane changes of the car and of others: lane_change, merge, cut_in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.detect.tracks import LaneChange, Tracks
from roadworthy.scenario.schema import AgentType

CUT_IN_GAP_M = 20.0
CUT_IN_TIME_GAP_S = 1.5
CUT_IN_LEAST_SPEED_MPS = 5.0  # a slower vehicle joins a queue


@dataclass(frozen=True)
class Entry:
    """Another vehicle that enters the car's lane ahead of it from the adjacent lane."""

    agent: int
    change: LaneChange
    gap_m: float  # from bumper to bumper as it crosses the line


def lane_change(tracks: Tracks) -> bool:
    """The car changes to the adjacent lane, and both lanes continue.

    The change is complete: the car was near the center of the old lane (SETTLED_M) before it and is near that of the
    new one after it. Leaving a lane that ends is a merge. Lanes within a junction or a roundabout's ring do not count.
    """
    network = tracks.network
    for change in tracks.lane_changes(tracks.sdc):
        lanes = [change.origin, change.target]
        within_junction = network.is_junction[lanes].all() or network.is_ring[lanes].any()
        if not network.is_ending[lanes].any() and not within_junction and tracks.is_complete(tracks.sdc, change):
            return True
    return False


def merge(tracks: Tracks) -> bool:
    """The car moves from a lane that ends (an acceleration lane) into the adjacent lane, completely."""
    network = tracks.network
    return any(
        network.is_ending[c.origin] and not network.is_ending[c.target] and tracks.is_complete(tracks.sdc, c)
        for c in tracks.lane_changes(tracks.sdc)
    )


def cut_in(tracks: Tracks) -> bool:
    """Another vehicle moves in closely ahead of the car, which keeps its lane.

    The vehicle comes from an adjacent lane that does not end, and as its center crosses the line it is the next ahead
    of the car: at most CUT_IN_GAP_M from bumper to bumper, and at most CUT_IN_TIME_GAP_S at the car's speed. Both drive
    faster than CUT_IN_LEAST_SPEED_MPS. Its lane change is complete, as in `lane_change`.
    """
    network, sdc = tracks.network, tracks.sdc
    if tracks.lane_changes(sdc):
        return False
    for entry in entries_ahead(tracks):
        k, agent = entry.change.step, entry.agent
        speed = float(tracks.speed[sdc, k])
        if entry.gap_m > min(CUT_IN_GAP_M, CUT_IN_TIME_GAP_S * speed) or tracks.leader[k] != agent:
            continue
        if min(speed, float(tracks.speed[agent, k])) < CUT_IN_LEAST_SPEED_MPS:
            continue
        if network.is_ending[entry.change.origin] or network.is_ring[entry.change.target]:
            continue
        if tracks.is_complete(agent, entry.change):
            return True
    return False


def entries_ahead(tracks: Tracks) -> list[Entry]:
    """Return every vehicle that enters the car's path ahead of it from an adjacent lane."""
    entries = []
    movers = (tracks.shift[:, 1:] != 0).any(axis=1) & (tracks.types == AgentType.VEHICLE)
    movers[tracks.sdc] = False
    for agent in np.flatnonzero(movers):
        for change in tracks.lane_changes(int(agent)):
            gap = float(tracks.gap[agent, change.step])
            comes_from_beside = np.isnan(tracks.path.base[change.origin])
            if comes_from_beside and 0.0 <= gap < np.inf:
                entries.append(Entry(int(agent), change, gap))
    return entries
