"""Boxes of road users as NumPy arrays: whether two share a point, and the type of their first contact.

Exams and the closed-loop metrics share these functions. The simulator has rules of its own, compiled for CPU and GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.at_fault import CollisionType, collision_type

Doubles = NDArray[np.float64]
Sides = tuple[Doubles, Doubles, Doubles, Doubles]  # along and across one box, along and across the other


class Boxes(NamedTuple):
    """Rectangles with a heading and a speed; all arrays are float64 and broadcast against each other."""

    x: Doubles  # m, the middle
    y: Doubles  # m
    cos: Doubles  # of the heading
    sin: Doubles
    length: Doubles  # m
    width: Doubles  # m
    speed: Doubles  # m/s


def separation(one: Boxes, other: Boxes) -> tuple[Sides, Sides]:
    """Return how far boxes are apart along the two sides of each, and the largest gaps at which they touch, in m."""
    turn_cos = np.abs(one.cos * other.cos + one.sin * other.sin)
    turn_sin = np.abs(one.cos * other.sin - one.sin * other.cos)
    long, wide, other_long, other_wide = (0.5 * size for size in (one.length, one.width, other.length, other.width))
    reaches = (
        long + other_long * turn_cos + other_wide * turn_sin,
        wide + other_long * turn_sin + other_wide * turn_cos,
        other_long + long * turn_cos + wide * turn_sin,
        other_wide + long * turn_sin + wide * turn_cos,
    )
    return _along_sides(one, other, other.x - one.x, other.y - one.y), reaches


def gap_rates(one: Boxes, other: Boxes) -> Sides:
    """Return how fast the gaps of `separation` grow at constant velocities, in m/s; speeds are magnitudes."""
    own_speed, other_speed = np.abs(one.speed), np.abs(other.speed)
    vx, vy = other_speed * other.cos - own_speed * one.cos, other_speed * other.sin - own_speed * one.sin
    return _along_sides(one, other, vx, vy)


def touching(one: Boxes, other: Boxes) -> NDArray[np.bool_]:
    """Return where boxes share a point."""
    return np.logical_and.reduce([np.abs(gap) <= reach for gap, reach in zip(*separation(one, other), strict=True)])


def contact_type(ego: Boxes, track: Boxes, *, is_static: bool = False) -> CollisionType:
    """Return the type of the first contact of an ego with a track, both scalar boxes; see `roadworthy.at_fault`."""
    arguments: list[Any] = [*(np.float64(value) for value in (*ego, *track)), is_static]
    return CollisionType(collision_type(*arguments))


def _along_sides(one: Boxes, other: Boxes, x: Doubles, y: Doubles) -> Sides:
    """Return the components of vectors along the sides of both boxes."""
    return (
        x * one.cos + y * one.sin,
        y * one.cos - x * one.sin,
        x * other.cos + y * other.sin,
        y * other.cos - x * other.sin,
    )
