"""Random draws of policies: hashes of (key, agent, step, purpose) as in the simulator, on tensors of any device."""

from __future__ import annotations

import torch
from torch import Tensor

from roadworthy.sim.rules.draws import PURPOSES

# Purposes in addition to those of the simulator.
ACTION, CONDITIONING = PURPOSES - 2, PURPOSES - 1


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


_STRIDE = _signed(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)
_UNIT = 2.0**-24


def keys_of(seed: int | Tensor, agents: Tensor) -> Tensor:
    """Return (rows,) keys from a seed, uint64 or an int64 tensor of the same bits, and numbers of agents."""
    base = torch.tensor(_signed(seed), device=agents.device) if isinstance(seed, int) else seed
    return _mix(base, agents.long())


def uniform(keys: Tensor, step: int | Tensor, purpose: int, parts: int = 2) -> Tensor:
    """Return (rows, parts) float32 in [0, 1)."""
    stepped = _mix(keys, step)
    drawn = [_mix(stepped, purpose + PURPOSES * k) for k in range(parts)]
    return (_shifted(torch.stack(drawn, -1), 40)).float() * _UNIT


def _mix(key: Tensor, number: int | Tensor) -> Tensor:
    """Apply the finalizer of SplitMix64, in int64 with overflow."""
    stride = (number + 1) * _STRIDE
    z = key + (_signed(stride % (1 << 64)) if isinstance(stride, int) else stride)
    z = (z ^ _shifted(z, 30)) * _MIX_1
    z = (z ^ _shifted(z, 27)) * _MIX_2
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, bits: int) -> Tensor:
    """Shift to the right without sign extension."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
