"""Random draws that depend on what they are for and on nothing else.

A draw is a hash of (episode seed, agent, step, purpose): no generator has a state, so it does not matter in which
order, slot, thread or device a draw is made. The world's draws count steps within the trial, so that trials are equal.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import entry
from roadworthy.sim.rules.angles import sine_cosine

# Purposes. A further draw for one purpose adds a multiple of PURPOSES to it.
(
    SCENARIO,
    SPAWN,
    ROUTE,
    SIZE,
    WEIGHT,
    HIDDEN,
    BLIND,
    PHANTOM,
    DROPOUT,
    NOISE_ALONG,
    NOISE_ACROSS,
    TRAFFIC,
    LIGHTS,
    EGO,
) = range(14)
PURPOSES = 16
WORLD = 1 << 20  # in place of the agent, for draws of a whole world

_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_30, _27, _31, _40 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(40)
_UNIT = np.float32(2.0**-24)
_TINY = np.float32(2.0**-25)
_PI, _TWO_PI = np.float32(np.pi), np.float32(2.0 * np.pi)
_MINUS_TWO = np.float32(-2.0)


@entry
def mix(key: int, number: int) -> int:
    """A new key, from a key (uint64) and a number: the finaliser of SplitMix64, which passes BigCrush."""
    z = np.uint64(key) + (np.uint64(number) + _ONE) * _STRIDE
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@entry
def draw(seed: int, agent: int, step: int, purpose: int) -> int:
    """64 random bits."""
    return mix(mix(mix(seed, agent), step), purpose)


@entry
def uniform(seed: int, agent: int, step: int, purpose: int) -> float:
    """A float32 from 0 up to, and without, 1."""
    return np.float32(draw(seed, agent, step, purpose) >> _40) * _UNIT


@entry
def normal(seed: int, agent: int, step: int, purpose: int) -> float:
    """A float32 of mean 0 and deviation 1 (Box and Muller)."""
    bits = draw(seed, agent, step, purpose)
    first = np.float32(bits >> _40) * _UNIT + _TINY
    second = np.float32(mix(bits, purpose) >> _40) * _UNIT
    _, cosine = sine_cosine(_TWO_PI * second - _PI)
    return np.sqrt(_MINUS_TWO * np.log(first)) * cosine


@entry
def choose(seed: int, agent: int, step: int, purpose: int, count: int) -> int:
    """A whole number from 0 up to, and without, count (int64)."""
    return np.int64(draw(seed, agent, step, purpose) % np.uint64(count))
