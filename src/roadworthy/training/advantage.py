"""Advantages: how much better an action turned out than the value of where it was taken.

The generalised estimate (Schulman et al. 2016) with V-trace's truncated importance ratios (Espeholt et al. 2018): with
ratios of 1, as they are before the first update, it is the former.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from roadworthy.training.config import PpoConfig


def advantages(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    final_values: Tensor,
    goes_on: Tensor,
    ratios: Tensor,
    discount: Tensor | float,
    config: PpoConfig,
) -> Tensor:
    """(R, T) of (R, T) each; last_values is (R,).

    A chain that does not go on ends with final_values, which are 0 for true ends. Steps in which a row was inactive get
    whatever they get: nobody may use them.
    """
    following = torch.cat([values[:, 1:], last_values[:, None]], 1)
    future = torch.where(goes_on, following, final_values)
    errors = ratios.clamp(max=config.ratio_clip) * (rewards + discount * future - values)
    decay = discount * config.trace_decay * ratios.clamp(max=config.trace_clip) * goes_on
    # Each step's sum takes in that of the steps behind what it has already: 1, 2, 4, ... steps, instead of one after
    # another, which for long segments is much for a GPU to launch, or for torch to compile.
    reach = 1
    while reach < errors.shape[1]:
        behind = pad(errors[:, reach:], (0, reach))
        errors = errors + decay * behind
        decay = decay * pad(decay[:, reach:], (0, reach))
        reach *= 2
    return errors
