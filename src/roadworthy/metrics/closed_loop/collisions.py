"""Collisions: 1 without at-fault collisions; lower with them.

The multiplier is the product, over the groups of tracks, of max(0, 1 - n / (allowed + 1)), where n counts the ego's
at-fault collisions with tracks of the group. Allowed are 0 with pedestrians and cyclists, 0 with vehicles and 1 with
objects, so that one object gives 0.5. `roadworthy.at_fault` states what a collision is, its types, and when the ego is
at fault. Each track counts once, at first contact; contacts at the start of the trial do not count.

Substitute: objects are agents of type `other`. nuPlan lists cones, barriers and the like as static objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.at_fault import CollisionType, is_at_fault
from roadworthy.boxes import Boxes, contact_type
from roadworthy.metrics.closed_loop.boxes import touches
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import EgoTrial, Flags, Others
from roadworthy.scenario.schema import AgentType

# The types of tracks in each group, and how many at-fault collisions with the group are allowed.
GROUPS = (((AgentType.PEDESTRIAN, AgentType.CYCLIST), 0), ((AgentType.VEHICLE,), 0), ((AgentType.OTHER,), 1))


@dataclass(frozen=True)
class Collision:
    """The first contact of the ego with a track."""

    frame: int
    track: int
    kind: CollisionType
    at_fault: bool


@dataclass(frozen=True, eq=False)
class Collisions:
    """All collisions of a trial."""

    found: tuple[Collision, ...]
    has_touched: Flags  # (F, A) the ego touches the track at this frame, or did before

    @property
    def at_fault_frames(self) -> list[int]:
        """Return the frames of at-fault collisions."""
        return [collision.frame for collision in self.found if collision.at_fault]

    def multiplier(self, others: Others) -> float:
        """Return the part: 1.0 without at-fault collisions."""
        types = [int(others.types[collision.track]) for collision in self.found if collision.at_fault]
        value = 1.0
        for group, allowed in GROUPS:
            value *= max(0.0, 1.0 - sum(kind in group for kind in types) / (allowed + 1))
        return value


def collisions(trial: EgoTrial, places: LanePlaces) -> Collisions:
    """Find and attribute the collisions of a trial."""
    ego, others = trial.ego, trial.others
    touching = touches(ego, others)
    has_touched = np.logical_or.accumulate(touching, axis=0)
    tracks = np.flatnonzero(has_touched[-1] & ~touching[0])
    found = []
    for frame, track in sorted((int(np.argmax(touching[:, track])), int(track)) for track in tracks):
        kind = contact_type(_at(ego.boxes, frame), _at(others.boxes, frame, track), is_static=others.is_static[track])
        within = kind == CollisionType.LATERAL and bool(places.is_within_lanes[frame])
        found.append(Collision(frame, track, kind, is_at_fault(kind, within)))
    return Collisions(tuple(found), has_touched)


def _at(boxes: Boxes, *place: int) -> Boxes:
    """Return the box at a frame, and of one track where there are several."""
    return Boxes(*(values[place[-values.ndim :]] if values.ndim else values for values in boxes))
