"""Speeds and accelerations, linear and angular, as central differences of positions and headings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roadworthy.metrics.realism.scene import STEP_S, Motion, Scene
from roadworthy.scenario.schema import Bools, Floats

_HALF = np.float32(0.5)
_TWO = np.float32(2.0)
_PI = np.float32(np.pi)
_FULL_TURN = np.float32(2.0 * np.pi)


class Kinematics(NamedTuple):
    """(R, E, S) each, NaN where a difference reaches beyond the first or the last step."""

    linear_speed: Floats  # m/s, in 3-D
    linear_acceleration: Floats  # m/s²
    angular_speed: Floats  # rad/s
    angular_acceleration: Floats  # rad/s²


def kinematics(scene: Scene, motion: Motion) -> Kinematics:
    """Compute the kinematics of the evaluated agents at the scored steps."""
    x, y, z, heading = (values[:, : scene.evaluated] for values in (motion.x, motion.y, motion.z, motion.heading))
    dt = np.float32(STEP_S)
    speed = _norm(*map(central_difference, (x, y, z))) / dt
    turn = _wrapped(central_difference(heading))
    acceleration = central_difference(speed) / dt
    angular_acceleration = _wrapped(central_difference(turn)) / np.float32(STEP_S**2)
    return Kinematics(
        *(values[..., scene.first :] for values in (speed, acceleration, turn / dt, angular_acceleration))
    )


def central_difference(values: Floats) -> Floats:
    """Return central differences; NaN at both ends."""
    result = np.full_like(values, np.nan)
    np.multiply(values[..., 2:] - values[..., :-2], _HALF, out=result[..., 1:-1])
    return result


def with_both_neighbors(valid: Bools) -> Bools:
    """Return where both values of a central difference are valid; never at the ends."""
    result = np.zeros_like(valid)
    np.logical_and(valid[..., 2:], valid[..., :-2], out=result[..., 1:-1])
    return result


def _norm(x: Floats, y: Floats, z: Floats) -> Floats:
    return np.sqrt(x * x + y * y + z * z)


def _wrapped(half_turn: Floats) -> Floats:
    """The difference over two steps, of which half is given, brought within half a turn, and halved again."""
    return (np.mod(half_turn * _TWO + _PI, _FULL_TURN) - _PI) * _HALF
