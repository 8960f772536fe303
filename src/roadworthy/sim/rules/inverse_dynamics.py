"""Which action leads to a pose: how a recording is turned back into actions.

The way to the pose has an acceleration that changes linearly in time and a curvature that changes linearly along it.
These meet position, heading and speed at its end; what is asked for is their mean over the coming step. Aimed at the
very next pose that would follow speed and heading alone, without regard to the position. Aimed a few steps ahead, and
anew in each step, it makes up for what is lost in position, without overshooting.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules.angles import sine_cosine, wrap
from roadworthy.sim.rules.dynamics import PEDESTRIAN, encode, row_of, wheelbase_of
from roadworthy.sim.state import ACCELERATION, HEADING, LATERAL, LENGTH, SPEED, TYPE, Params, X, Y

# How far ahead to aim, in seconds: bicycle; jerk by numbers; jerk by choices, which are few and coarse.
_AHEAD_BICYCLE, _AHEAD_JERK, _AHEAD_JERK_CHOICES = np.float32(0.3), np.float32(0.5), np.float32(1.0)
# Below this distance, in metres, the direction of a displacement counts for little: recordings tremble.
_BLUR = np.float32(0.03)
_0, _HALF, _1, _6 = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(6.0)


@rule
def lookahead_s(p: Params) -> np.float32:
    """How many seconds ahead the pose to aim at should be; less where a recording ends before."""
    if p.is_jerk:
        return _AHEAD_JERK if p.is_continuous else _AHEAD_JERK_CHOICES
    return _AHEAD_BICYCLE


@rule
def pursue(
    agents: Floats,
    flags: Ints,
    a: int,
    aim_x: np.float32,
    aim_y: np.float32,
    aim_heading: np.float32,
    aim_speed: np.float32,
    ahead: np.float32,
    dt: np.float32,
    p: Params,
) -> tuple[np.float32, np.float32]:
    """What to ask for, along and across, to be in a pose and at a speed in `ahead` seconds, dt or more."""
    turn = wrap(aim_heading - agents[HEADING, a])
    half = _HALF * turn
    half_sin, _ = sine_cosine(half)
    sin, cos = sine_cosine(wrap(agents[HEADING, a] + half))
    dx, dy = aim_x - agents[X, a], aim_y - agents[Y, a]
    # Seen in the direction half way round the turn an even arc leads straight ahead, and is longer than its chord.
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
    agents: Floats,
    flags: Ints,
    a: int,
    aim_x: np.float32,
    aim_y: np.float32,
    aim_heading: np.float32,
    aim_speed: np.float32,
    ahead: np.float32,
    dt: np.float32,
    p: Params,
) -> tuple[np.float32, np.float32]:
    """The action that comes nearest to what `pursue` asks for: choices as whole numbers, or -1 to 1."""
    along, across = pursue(agents, flags, a, aim_x, aim_y, aim_heading, aim_speed, ahead, dt, p)
    return encode(along, across, flags[TYPE, a], p)
