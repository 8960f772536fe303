"""Advantages: generalized advantage estimation (Schulman et al. 2016) with V-trace ratios (Espeholt et al. 2018).

With importance ratios of 1, as before the first gradient step of an update, the result is plain GAE.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from roadworthy.training.config import PpoConfig


def estimate_advantages(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    final_values: Tensor,
    not_done: Tensor,
    ratios: Tensor,
    gamma: Tensor | float,
    config: PpoConfig,
) -> Tensor:
    """Return (R, T) advantages for tensors of (R, T); last_values is (R,).

    Where a chain is done, final_values stand for the future; they are 0 for true ends. Results for steps of inactive
    rows have no meaning and must not be used.
    """
    next_values = torch.cat([values[:, 1:], last_values[:, None]], 1)
    future = torch.where(not_done, next_values, final_values)
    advantages = ratios.clamp(max=config.vtrace_rho_clip) * (rewards + gamma * future - values)
    decay = gamma * config.gae_lambda * ratios.clamp(max=config.vtrace_c_clip) * not_done
    # A sum over later steps in log2(T) passes, each of which doubles its reach. A loop over T steps would be T launches
    # on a GPU, and long to compile.
    reach = 1
    while reach < advantages.shape[1]:
        later = pad(advantages[:, reach:], (0, reach))
        advantages = advantages + decay * later
        decay = decay * pad(decay[:, reach:], (0, reach))
        reach *= 2
    return advantages
