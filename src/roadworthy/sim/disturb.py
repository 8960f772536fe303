"""Disturbances of actions in training: noise, and a car that brakes by itself."""

from __future__ import annotations

import numpy as np

from roadworthy.compile import rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim import draws
from roadworthy.sim.state import ACCELERATION, Params

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@rule
def noisy(value: float, choices: int, seed: int, a: int, step: int, purpose: int, p: Params) -> float:
    """One part of an action with noise, which is a share of its range: still a whole choice, or within -1 to 1."""
    noise = p.action_noise * draws.normal(seed, a, step, purpose)
    if p.is_continuous:
        return min(max(value + noise, -_ONE), _ONE)
    last = np.float32(choices - 1)
    return np.floor(min(max(value + noise * _HALF * last, _ZERO), last) + _HALF)


@rule
def is_phantom_braking(seed: int, a: int, step: int, dt: float, p: Params) -> bool:
    """Whether the car brakes by itself: such a fit may begin at any step, and lasts for phantom_s."""
    steps = max(int(p.phantom_s / dt + _HALF), 1)
    chance = p.phantom_rate * dt
    for before in range(min(steps, step + 1)):
        if draws.uniform(seed, a, step - before, draws.PHANTOM) < chance:
            return True
    return False


@rule
def phantom_braking(agents: Floats, a: int, dt: float, p: Params) -> float:
    """What the car does by itself in place of what was asked along: m/s2, or the jerk that leads there in a step."""
    return (-p.phantom_mps2 - agents[ACCELERATION, a]) / dt if p.is_jerk else -p.phantom_mps2
