"""Compile the kernel of networks on the CPU before their first step."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels.compiling import ensure_compiled

FUNCTIONS = 1


def ensure_network_compiled() -> None:
    """Compile what a network calls on the CPU, unless it is in the cache."""
    ensure_compiled("policy", FUNCTIONS, _pool)


def _pool() -> None:
    import torch

    from roadworthy.policy.pointmax import linear_max

    weight = torch.nn.Parameter(torch.zeros(4, 2))
    with torch.inference_mode():
        linear_max(torch.from_numpy(np.zeros((1, 6), np.float32)), weight, torch.zeros(4), 0, 3, torch.ones(1).int())
