"""Time until an agent would reach the one in front of it if both kept their speeds."""

from __future__ import annotations

import math

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.metrics.realism.kinematics import central_difference
from roadworthy.metrics.realism.scene import STEP_S, Motion, Scene
from roadworthy.scenario.schema import Floats

_LONGEST_S = np.float32(5.0)
_MAX_YAW = np.float32(math.radians(75.0))  # at a larger angle, the other agent crosses instead of leading
_MAX_YAW_AT_THE_EDGE = np.float32(math.radians(10.0))  # for a small overlap
_SMALL_OVERLAP_M = np.float32(-0.5)

_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)


def time_to_collision(scene: Scene, motion: Motion) -> Floats:
    """Return the time in s, at most 5, (R, E, S); 5 without an agent in front, a closing gap or a known speed."""
    dx, dy = central_difference(motion.x), central_difference(motion.y)
    speed = np.divide(np.sqrt(dx * dx + dy * dy), np.float32(STEP_S), dtype=np.float32)
    rollouts, _, steps = motion.x.shape
    found = np.full((rollouts, scene.evaluated, steps - scene.first), np.nan, np.float32)
    _times(motion, speed, scene.length * _HALF, scene.width * _HALF, scene.first, found)
    return found


@kernel
def _times(motion: Motion, speed: Floats, half_length: Floats, half_width: Floats, first: int, found: Floats) -> None:
    """Half sizes bound what a turned box takes up, whatever its angle, so most pairs need no angle at all."""
    x, y, heading, cos, sin, valid = motion.x, motion.y, motion.heading, motion.cos, motion.sin, motion.valid
    rollouts, agents, steps = x.shape
    for rollout in range(rollouts):
        for agent in range(found.shape[1]):
            for step in range(first, steps):
                at = (rollout, agent, step)
                gap, leader = np.float32(np.inf), -1
                for other in range(agents):
                    to = (rollout, other, step)
                    away_x, away_y = x[to] - x[at], y[to] - y[at]
                    ahead = cos[at] * away_x + sin[at] * away_y - half_length[agent]
                    if not (ahead > _ZERO and valid[other, step]):
                        continue
                    aside = abs(cos[at] * away_y - sin[at] * away_x) - half_width[agent]
                    if aside - (half_length[other] + half_width[other]) >= _ZERO:
                        continue
                    # Not wrapped: two agents that head the same way on both sides of pi don't follow each other.
                    yaw = abs(heading[to] - heading[at])
                    if not yaw <= _MAX_YAW:
                        continue
                    angle = np.float64(yaw)
                    along, across = np.float32(math.cos(angle)), np.float32(math.sin(angle))
                    clear = ahead - (half_length[other] * along + half_width[other] * across)
                    overlap = aside - (half_length[other] * across + half_width[other] * along)
                    is_leading = overlap < _SMALL_OVERLAP_M or (overlap < _ZERO and yaw <= _MAX_YAW_AT_THE_EDGE)
                    if clear > _ZERO and clear < gap and is_leading:
                        gap, leader = clear, other
                time = _LONGEST_S
                if leader >= 0:
                    closing = speed[at] - speed[rollout, leader, step]
                    if closing > _ZERO:
                        time = min(gap / closing, _LONGEST_S)
                found[rollout, agent, step - first] = time
