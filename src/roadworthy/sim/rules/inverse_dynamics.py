"""Inverse dynamics: the action that leads to a pose, to turn a recording back into actions.

On the way to the pose the acceleration changes linearly in time and the curvature linearly in distance, such that
position, heading and speed match at its end. The action requests their means over the coming step. Aiming at the very
next pose would follow speed and heading but ignore the position. Aiming a few steps ahead, again in each step, corrects
the position without overshooting.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules.angles import sine_cosine, wrap
from roadworthy.sim.rules.dynamics import PEDESTRIAN, encode, row_of, wheelbase_of
from roadworthy.sim.state import ACCELERATION, HEADING, LATERAL, LENGTH, SPEED, TYPE, Params, Real, X, Y

Aim = tuple[Real, Real, Real, Real]  # x and y (m), heading (rad), speed (m/s)

# How far ahead to aim, in seconds: bicycle; jerk, continuous; jerk, discrete (its choices are few and coarse).
_AHEAD_BICYCLE, _AHEAD_JERK, _AHEAD_JERK_CHOICES = np.float32(0.3), np.float32(0.5), np.float32(1.0)
# Below this distance, in meters, the direction of a displacement counts little, because recordings jitter.
_BLUR = np.float32(0.03)
_0, _HALF, _1, _6 = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(6.0)


@rule
def lookahead_s(p: Params) -> np.float32:
    """Return how many seconds ahead of now the target pose should be; fewer where a recording ends earlier."""
    if p.is_jerk:
        return _AHEAD_JERK if p.is_continuous else _AHEAD_JERK_CHOICES
    return _AHEAD_BICYCLE


@rule
def pursue(
    agents: Floats, flags: Ints, a: int, aim: Aim, ahead: np.float32, dt: np.float32, p: Params
) -> tuple[np.float32, np.float32]:
    """Return what to request, along and across, to reach a pose and a speed in `ahead` seconds, dt or more."""
    aim_x, aim_y, aim_heading, aim_speed = aim
    turn = wrap(aim_heading - agents[HEADING, a])
    half = _HALF * turn
    half_sin, _ = sine_cosine(half)
    sin, cos = sine_cosine(wrap(agents[HEADING, a] + half))
    dx, dy = aim_x - agents[X, a], aim_y - agents[Y, a]
    # In the direction halfway through the turn a circular arc leads straight ahead, and is longer than its chord.
    distance = (dx * cos + dy * sin) * (_1 if half == _0 else half / half_sin)
    aside = dy * cos - dx * sin
    speed, aim_speed = max(agents[SPEED, a], _0), max(aim_speed, _0)
    behind = distance - _HALF * (speed + aim_speed) * ahead
    correction = _6 * (_1 - dt / ahead)
    acceleration = (aim_speed - speed) / ahead + correction * behind / (ahead * ahead)
    distance = max(distance, _0)
    per_meter = distance / (distance * distance + _BLUR * _BLUR)
    turn += correction * aside * per_meter
    if row_of(flags[TYPE, a]) == PEDESTRIAN:
        return acceleration, turn / ahead
    curvature = turn * per_meter
    if p.is_jerk:
        mean = max(speed + _HALF * acceleration * dt, _HALF * speed)
        return (acceleration - agents[ACCELERATION, a]) / dt, (curvature * mean * mean - agents[LATERAL, a]) / dt
    return acceleration, np.arctan(curvature * wheelbase_of(agents[LENGTH, a]))


@rule
def infer_action(
    agents: Floats, flags: Ints, a: int, aim: Aim, ahead: np.float32, dt: np.float32, p: Params
) -> tuple[np.float32, np.float32]:
    """Return the action nearest to what `pursue` returns: numbers of choices, or -1 to 1."""
    along, across = pursue(agents, flags, a, aim, ahead, dt, p)
    return encode(along, across, flags[TYPE, a], p)
