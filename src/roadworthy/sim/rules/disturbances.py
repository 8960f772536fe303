"""Disturbances of actions and observations: noise, phantom braking, blindness."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.dynamics import decode
from roadworthy.sim.state import ACCELERATION, ACROSS, ALONG, TYPE, Params, Real

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@rule(inline=True)
def apply_action(
    agents: Floats, flags: Ints, a: int, action: Floats, seed: int, step: int, dt: float, p: Params
) -> None:
    """Write what an action (two numbers) requests from agent a to ALONG and ACROSS, with disturbances."""
    first, second = action[0], action[1]
    if p.action_noise > _ZERO:
        first = noisy(first, p.choices_along, seed, a, step, draws.NOISE_ALONG, p)
        second = noisy(second, p.choices_across, seed, a, step, draws.NOISE_ACROSS, p)
    agents[ALONG, a], agents[ACROSS, a] = decode(first, second, flags[TYPE, a], p)
    if p.phantom_rate > _ZERO and is_phantom_braking(seed, a, step, dt, p):
        agents[ALONG, a] = phantom_braking(agents, a, dt, p)


@rule
def noisy(value: float, choices: int, seed: int, a: int, step: int, purpose: int, p: Params) -> float:
    """Return one part of an action with noise, still an integer choice or within -1 to 1."""
    noise = p.action_noise * draws.normal(seed, a, step, purpose)
    if p.is_continuous:
        return min(max(value + noise, -_ONE), _ONE)
    last = np.float32(choices - 1)
    return np.floor(min(max(value + noise * _HALF * last, _ZERO), last) + _HALF)


@rule
def is_phantom_braking(seed: int, a: int, step: int, dt: float, p: Params) -> bool:
    """Return whether the car brakes by itself. This may begin at any step and lasts for phantom_s."""
    steps = max(int(p.phantom_s / dt + _HALF), 1)
    chance = p.phantom_rate * dt
    for before in range(min(steps, step + 1)):
        if draws.uniform(seed, a, step - before, draws.PHANTOM) < chance:
            return True
    return False


@rule
def phantom_braking(agents: Floats, a: int, dt: float, p: Params) -> float:
    """Return the braking that replaces the request: m/s2, or the jerk that leads there in one step."""
    return (-p.phantom_mps2 - agents[ACCELERATION, a]) / dt if p.is_jerk else -p.phantom_mps2


@rule(inline=True)
def is_blind(seed: int, a: int, step: int, dt: Real, rate: Real, seconds: Real) -> bool:
    """Return whether the agent observes no partners. This may begin at any step, at a rate per second."""
    steps = max(int(seconds / dt + _HALF), 1)
    chance = rate * dt
    for before in range(min(steps, step + 1)):
        if draws.uniform(seed, a, step - before, draws.BLIND) < chance:
            return True
    return False
