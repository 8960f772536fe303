"""Lane changes: durations and counts."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.detect.tracks import LaneChange
from roadworthy.scenario.schema import AgentType
from roadworthy.scenario.statistics.sample import Doubles

# A change lasts while the car moves sideways at least at this speed; drifting within the lane is slower.
SIDEWAYS_MPS = 0.12
SMOOTHING_S = 0.3


def lane_changes(tracks: Tracks) -> dict[str, Doubles]:
    """Return the durations of complete changes that the recording shows in full, and the number of all changes by road.

    Leaving a lane that ends is a merge, which is not a choice. Lanes within a junction or a ring do not count.
    """
    network = tracks.network
    durations, counts = [], {"freeway_lane_changes": 0.0, "street_lane_changes": 0.0}
    movers = (tracks.shift != 0).any(axis=1) & (tracks.types == AgentType.VEHICLE)
    for agent in np.flatnonzero(movers):
        for change in tracks.lane_changes(int(agent)):
            lanes = [change.origin, change.target]
            if network.is_ending[lanes].any() or network.is_ring[lanes].any() or network.is_junction[lanes].all():
                continue
            counts["freeway_lane_changes" if network.is_freeway[change.target] else "street_lane_changes"] += 1.0
            seconds = _duration(tracks, int(agent), change)
            if seconds is not None and tracks.is_complete(int(agent), change):
                durations.append(seconds)
    return {"lane_change_duration": np.array(durations)} | {name: np.array([n]) for name, n in counts.items()}


def _duration(tracks: Tracks, agent: int, change: LaneChange) -> float | None:
    """Return the seconds of sideways motion around a change, None if the recording does not show all of it."""
    sideways = np.diff(tracks.offset[agent].astype(np.float64)) / tracks.dt
    # Offsets refer to the lane of their step, so their difference across the change is meaningless: interpolate.
    k = change.step - 1
    if not 0 < k < len(sideways) - 1:
        return None
    sideways[k] = 0.5 * (sideways[k - 1] + sideways[k + 1])
    window = tracks.steps_of(SMOOTHING_S)
    toward = np.convolve(sideways, np.full(window, 1.0 / window), "same") * tracks.shift[agent, change.step]
    usable = (tracks.lane[agent, 1:] >= 0) & tracks.valid[agent, 1:] & tracks.valid[agent, :-1]
    moves = (toward >= SIDEWAYS_MPS) & usable
    if not moves[k]:
        return None
    first, end = k, k + 1
    while first > 0 and moves[first - 1]:
        first -= 1
    while end < len(moves) and moves[end]:
        end += 1
    if first == 0 or end == len(moves) or not usable[first - 1] or not usable[end]:
        return None
    return float(end - first) * tracks.dt
