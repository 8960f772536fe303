"""From an action to what the car does: as asked, or disturbed in training by noise, or by brakes of their own will."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.dynamics import decode
from roadworthy.sim.state import ACCELERATION, ACROSS, ALONG, TYPE, Params

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@rule(inline=True)
def apply_action(
    agents: Floats, flags: Ints, a: int, action: Floats, seed: int, step: int, dt: float, p: Params
) -> None:
    """Write what an action (two numbers) makes agent a do: ALONG and ACROSS."""
    first, second = action[0], action[1]
    if p.action_noise > _ZERO:
        first = noisy(first, p.choices_along, seed, a, step, draws.NOISE_ALONG, p)
        second = noisy(second, p.choices_across, seed, a, step, draws.NOISE_ACROSS, p)
    agents[ALONG, a], agents[ACROSS, a] = decode(first, second, flags[TYPE, a], p)
    if p.phantom_rate > _ZERO and is_phantom_braking(seed, a, step, dt, p):
        agents[ALONG, a] = phantom_braking(agents, a, dt, p)


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
