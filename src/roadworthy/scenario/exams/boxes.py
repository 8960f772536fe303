"""Boxes of road users: contacts, and the time between two road users at one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.at_fault import CollisionType, collision_type
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

    def grown(self, margin: float) -> Motion:
        """Return the same motion with a box that is larger on every side."""
        sizes = (self.length + 2.0 * margin, self.width + 2.0 * margin)
        return Motion(self.x, self.y, self.heading, self.speed, self.present, *sizes)


def touch(one: Motion, other: Motion, i: NDArray[np.int64], k: NDArray[np.int64]) -> Bools:
    """Return whether the box of `one` at frames i touches that of `other` at frames k; i and k have the same shape."""
    dx, dy = other.x[k] - one.x[i], other.y[k] - one.y[i]
    turn = other.heading[k] - one.heading[i]
    cos, sin = np.cos(one.heading[i]), np.sin(one.heading[i])
    along, across = dx * cos + dy * sin, dy * cos - dx * sin
    turn_cos, turn_sin = np.cos(turn), np.sin(turn)
    their_along, their_across = along * turn_cos + across * turn_sin, across * turn_cos - along * turn_sin
    wide_cos, wide_sin = np.abs(turn_cos), np.abs(turn_sin)
    half = 0.5 * np.array([one.length, one.width, other.length, other.width])
    found: Bools = (
        (np.abs(along) <= half[0] + half[2] * wide_cos + half[3] * wide_sin)
        & (np.abs(across) <= half[1] + half[2] * wide_sin + half[3] * wide_cos)
        & (np.abs(their_along) <= half[2] + half[0] * wide_cos + half[1] * wide_sin)
        & (np.abs(their_across) <= half[3] + half[0] * wide_sin + half[1] * wide_cos)
    )
    return found & one.present[i] & other.present[k]


def first_contact(one: Motion, other: Motion) -> int | None:
    """Return the first frame at which the two touch, None if they never do."""
    frames = np.arange(len(one))
    contacts = np.flatnonzero(touch(one, other, frames, frames))
    return int(contacts[0]) if len(contacts) else None


def type_of_contact(one: Motion, other: Motion, frame: int) -> CollisionType:
    """Return the type of a contact for the ego `one`; see `roadworthy.at_fault`."""
    return CollisionType(
        collision_type(
            x=one.x[frame],
            y=one.y[frame],
            cos=np.cos(one.heading[frame]),
            sin=np.sin(one.heading[frame]),
            length=np.float64(one.length),
            width=np.float64(one.width),
            speed=one.speed[frame],
            track_x=other.x[frame],
            track_y=other.y[frame],
            track_cos=np.cos(other.heading[frame]),
            track_sin=np.sin(other.heading[frame]),
            track_length=np.float64(other.length),
            track_width=np.float64(other.width),
            track_speed=other.speed[frame],
            is_static=False,
        )
    )


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
