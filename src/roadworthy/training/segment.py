"""Segments: what all rows observed, did and received over a number of steps, as tensors for the learner."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from roadworthy.policy.cores import Memory


class Segment(NamedTuple):
    """R rows, T steps. Observations, values and actions are from before a step, the other signals from after it."""

    observations: Tensor  # (R, T, S)
    conditioning: Tensor  # (R, T, C) places in the ranges of conditioning, 0 to 1
    actions: Tensor  # (R, T, parts)
    log_probs: Tensor  # (R, T) of the actions, under the policy that drew them
    values: Tensor  # (R, T) of the observations
    rewards: Tensor  # (R, T)
    active: Tensor  # (R, T) bool, the agent was active when it acted
    loss_mask: Tensor  # (R, T) bool, the agent was active and an ego, so the step counts
    ended: Tensor  # (R, T) bool, the episode ended with the step and memory was cleared
    trial_ended: Tensor  # (R, T) bool, the trial ended with the step and memory was kept
    not_done: Tensor  # (R, T) bool, the next observation belongs to the same value chain
    final_values: Tensor  # (R, T) value of the future where a chain ends: 0, or bootstrapped
    ratios: Tensor  # (R, T) importance ratios of the current policy; 1 before the first gradient step
    last_values: Tensor  # (R,) of the observation after the last step


class RolloutBatch(NamedTuple):
    """A segment, and the memory at its start."""

    segment: Segment
    memory: Memory
    was_reset: Tensor  # (R,) bool, rows whose episode was cut off before the segment; their memory was cleared


def make_segment(
    steps: int, rows: int, size: int, parts: int, conditioning: int, device: torch.device, dtype: torch.dtype
) -> Segment:
    """Allocate a segment; dtype is that of the observations."""

    def floats(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(rows, steps, *shape, dtype=dtype, device=device)

    def flags() -> Tensor:
        return torch.zeros(rows, steps, dtype=torch.bool, device=device)

    return Segment(
        observations=floats(size, dtype=dtype),
        conditioning=floats(conditioning),
        actions=floats(parts),
        log_probs=floats(),
        values=floats(),
        rewards=floats(),
        active=flags(),
        loss_mask=flags(),
        ended=flags(),
        trial_ended=flags(),
        not_done=flags(),
        final_values=floats(),
        ratios=floats(),
        last_values=torch.zeros(rows, device=device),
    )
