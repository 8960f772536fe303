"""Advantages: how much better an action turned out than the value of where it was taken.

The generalised estimate (Schulman et al. 2016) with V-trace's truncated importance ratios (Espeholt et al. 2018): with
ratios of 1, as they are before the first update, it is the former.
"""

from __future__ import annotations

import torch
from torch import Tensor

from roadworthy.train.config import PpoConfig


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
    out, carried = [], torch.zeros_like(last_values)
    for error, kept in zip(reversed(errors.unbind(1)), reversed(decay.unbind(1)), strict=True):
        carried = error + kept * carried
        out.append(carried)
    return torch.stack(out[::-1], 1)
