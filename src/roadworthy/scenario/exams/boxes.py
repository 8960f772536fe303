"""Boxes of road users: contacts, and the time between two road users at one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.at_fault import CollisionType
from roadworthy.boxes import Boxes, contact_type, touching
from roadworthy.scenario.lanes.network import Doubles
from roadworthy.scenario.schema import Bools


@dataclass(frozen=True, eq=False)
class Motion:
    """The motion of one road user over F frames."""

    x: Doubles  # (F,) m, center of the box
    y: Doubles  # (F,)
    heading: Doubles  # (F,) rad
    speed: Doubles  # (F,) m/s
    present: Bools  # (F,)
    length: float
    width: float

    def __len__(self) -> int:
        return len(self.x)

    def boxes(self, frames: int | NDArray[np.int64]) -> Boxes:
        """Return the boxes at some frames."""
        heading = self.heading[frames]
        length, width = np.asarray(self.length), np.asarray(self.width)
        return Boxes(
            self.x[frames], self.y[frames], np.cos(heading), np.sin(heading), length, width, self.speed[frames]
        )

    def grown(self, margin: float) -> Motion:
        """Return the same motion with a box that is larger on every side."""
        sizes = (self.length + 2.0 * margin, self.width + 2.0 * margin)
        return Motion(self.x, self.y, self.heading, self.speed, self.present, *sizes)


def touch(one: Motion, other: Motion, i: NDArray[np.int64], k: NDArray[np.int64]) -> Bools:
    """Return whether one's box at frames i touches the other's at frames k; i and k have the same shape."""
    found: Bools = touching(one.boxes(i), other.boxes(k)) & one.present[i] & other.present[k]
    return found


def first_contact(one: Motion, other: Motion) -> int | None:
    """Return the first frame at which the two touch, None if they never do."""
    frames = np.arange(len(one))
    contacts = np.flatnonzero(touch(one, other, frames, frames))
    return int(contacts[0]) if len(contacts) else None


def type_of_contact(one: Motion, other: Motion, frame: int) -> CollisionType:
    """Return the type of a contact as the ego `one` has it; see `roadworthy.at_fault`."""
    return contact_type(one.boxes(frame), other.boxes(frame))


def lags(one: Motion, other: Motion, dt: float) -> tuple[float, float]:
    """Return how soon each reaches a place where the other was, in seconds; infinite if their ways never meet.

    The first number is for places where `one` was first, the second for those where `other` was. Both are 0 in a
    contact. At one place this is the post-encroachment time (B. L. Allen et al., 1978).
    """
    here, there = np.flatnonzero(one.present), np.flatnonzero(other.present)
    reach = 0.5 * (np.hypot(one.length, one.width) + np.hypot(other.length, other.width))
    near = np.hypot(one.x[here, None] - other.x[there], one.y[here, None] - other.y[there]) <= reach
    i, k = (part[index] for part, index in zip((here, there), np.nonzero(near), strict=True))
    met = touch(one, other, i, k)
    later = (k - i)[met] * dt
    first, second = later[later >= 0.0], -later[later <= 0.0]
    return float(first.min(initial=np.inf)), float(second.min(initial=np.inf))
