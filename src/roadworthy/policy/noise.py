"""The policy's random draws: hashes of (key, agent, step, purpose), as in sim/draws.py, on tensors of either device."""

from __future__ import annotations

import torch
from torch import Tensor

from roadworthy.sim.rules.draws import PURPOSES

# Purposes, beside those of sim/draws.py.
ACTION, TRAIT = PURPOSES - 2, PURPOSES - 1


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


_STRIDE = _signed(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)
_UNIT = 2.0**-24


def keys_of(seed: int | Tensor, agents: Tensor) -> Tensor:
    """(rows,) a key per row, of a seed (uint64, or int64 of the same bits for each row) and its agent's number."""
    base = torch.tensor(_signed(seed), device=agents.device) if isinstance(seed, int) else seed
    return _mix(base, agents.long())


def uniform(keys: Tensor, step: int | Tensor, purpose: int, parts: int = 2) -> Tensor:
    """(rows, parts) float32 from 0 up to, and without, 1."""
    stepped = _mix(keys, step)
    drawn = [_mix(stepped, purpose + PURPOSES * k) for k in range(parts)]
    return (_shifted(torch.stack(drawn, -1), 40)).float() * _UNIT


def _mix(key: Tensor, number: int | Tensor) -> Tensor:
    """SplitMix64's finaliser, in int64 that wraps around."""
    stride = (number + 1) * _STRIDE
    z = key + (_signed(stride % (1 << 64)) if isinstance(stride, int) else stride)
    z = (z ^ _shifted(z, 30)) * _MIX_1
    z = (z ^ _shifted(z, 27)) * _MIX_2
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, bits: int) -> Tensor:
    """Shifted to the right as if it had no sign."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
