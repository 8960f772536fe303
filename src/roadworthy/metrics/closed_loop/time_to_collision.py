"""Time to collision: 1 if it is above 0.95 s at every frame, else 0.

At each frame the ego and the tracks keep their speed and heading, in steps of 0.1 s up to (not including) 3.0 s. The
time to collision is the first step at which the ego's box touches a track's; infinite without any.

Tracks that count: those less than 30 degrees from the ego's heading, seen from its rear axle to their middle. Where the
ego's corners are not within one common or connected lanes, or its rear axle is in a junction, all tracks count that are
not behind (at most 150 degrees). A track that the ego has touched no longer counts, from the frame of first contact on.
The frame of an at-fault collision has 0 s. An ego at 0.005 m/s or less has an infinite time.

As in the published code, speeds are magnitudes: a vehicle in reverse is projected along its heading.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.metrics.closed_loop.boxes import contact_interval
from roadworthy.metrics.closed_loop.collisions import Collisions
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import Array, EgoTrial, Flags

LEAST_S = 0.95
STEP_S = 0.1
HORIZON_S = 3.0
STOPPED_MPS = 0.005
_AHEAD_COS, _BEHIND_COS = np.cos(np.deg2rad(30.0)), np.cos(np.deg2rad(150.0))
_LAST_STEP = len(np.arange(STEP_S, HORIZON_S, STEP_S))


@dataclass(frozen=True, eq=False)
class TimeToCollision:
    """The time to collision of each frame."""

    seconds: Array  # (F,) infinite for none
    decided_by_lanes: Flags  # (F,) frames at which being within lanes or not makes the part 1 or 0

    @property
    def within_bound(self) -> float:
        """Return the part: 1.0 if every frame is above the bound."""
        return float((self.seconds > LEAST_S).all())


def time_to_collision(trial: EgoTrial, places: LanePlaces, found: Collisions) -> TimeToCollision:
    """Compute the time to collision at each frame of a trial."""
    first_step = _first_steps(trial)
    first_step[found.has_touched | ~trial.others.present] = np.inf
    first_step[np.abs(trial.ego.speed) <= STOPPED_MPS] = np.inf
    is_ahead, is_behind = _bearings(trial)
    looks_aside = ~places.is_within_lanes | places.is_in_junction
    ahead, aside = _least(first_step, is_ahead), _least(first_step, ~is_behind)
    seconds = np.where(looks_aside, np.minimum(ahead, aside), ahead)
    seconds[found.at_fault_frames] = 0.0
    return TimeToCollision(seconds, _decisive_frames(ahead <= LEAST_S, aside <= LEAST_S, places, found))


def _decisive_frames(ahead: Flags, aside: Flags, places: LanePlaces, found: Collisions) -> Flags:
    """Return the frames at which being within lanes or not makes the part 1 or 0, (F,), where it does.

    ahead, aside: (F,) whether tracks ahead, or those not behind, are too near in time.
    """
    is_settled = bool(found.at_fault_frames or ahead.any() or (aside & places.is_in_junction).any())
    return aside & ~places.is_in_junction & (not is_settled)


def _first_steps(trial: EgoTrial) -> Array:
    """Return the first step in s at which boxes would touch, (F, A); infinite for none up to the horizon."""
    begin, end = contact_interval(trial.ego, trial.others)
    with np.errstate(invalid="ignore"):
        step = np.maximum(np.ceil(begin / STEP_S - 1e-9), 1.0)
        return np.where((step <= _LAST_STEP) & (step * STEP_S <= end + 1e-9), step * STEP_S, np.inf)


def _bearings(trial: EgoTrial) -> tuple[Flags, Flags]:
    """Return which tracks are ahead, and which are behind, seen from the rear axle, (F, A) each."""
    ego, axle = trial.ego, trial.ego.rear_axle
    dx, dy = trial.others.x - axle[:, :1], trial.others.y - axle[:, 1:]
    along, distance = dx * ego.cos[:, None] + dy * ego.sin[:, None], np.hypot(dx, dy)
    return along > _AHEAD_COS * distance, along < _BEHIND_COS * distance


def _least(steps: Array, counts: Flags) -> Array:
    """Return the least of the steps that count at each frame, (F,); infinite for none."""
    return np.where(counts, steps, np.inf).min(axis=1, initial=np.inf)
