"""Segment: what a policy saw, did and got in so many steps of all rows, for the learner."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from roadworthy.policy.cores import Memory


class Segment(NamedTuple):
    """R rows, T steps. Signals are of the step; what it was made from was seen before it."""

    observations: Tensor  # (R, T, S)
    traits: Tensor  # (R, T, traits) places in their ranges
    actions: Tensor  # (R, T, parts)
    log_probs: Tensor  # (R, T) of the actions, when they were drawn
    values: Tensor  # (R, T) of the observations
    rewards: Tensor  # (R, T)
    active: Tensor  # (R, T) bool, the agent was active when it acted
    learns: Tensor  # (R, T) bool, ... and an ego: the step counts
    ended: Tensor  # (R, T) bool, its episode ended with the step: memory was cleared
    trial_ended: Tensor  # (R, T) bool, its trial did: memory was kept
    goes_on: Tensor  # (R, T) bool, the value of the next observation belongs to the same chain
    final_values: Tensor  # (R, T) what stands for the future where the chain ends: 0, or a bootstrapped value
    ratios: Tensor  # (R, T) importance ratios of the policy as it is, 1 before the first update
    last_values: Tensor  # (R,) of the observation after the last step


class Cut(NamedTuple):
    """A segment and the memory that it began with."""

    segment: Segment
    memory: Memory
    begun_anew: Tensor  # (R,) bool, rows whose episode was cut short before the segment: memory was cleared


def make_segment(
    steps: int, rows: int, size: int, parts: int, traits: int, device: torch.device, seen: torch.dtype
) -> Segment:
    """Room for a segment.

    seen: the number type of observations.
    """

    def floats(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(rows, steps, *shape, dtype=dtype, device=device)

    def flags() -> Tensor:
        return torch.zeros(rows, steps, dtype=torch.bool, device=device)

    return Segment(
        observations=floats(size, dtype=seen),
        traits=floats(traits),
        actions=floats(parts),
        log_probs=floats(),
        values=floats(),
        rewards=floats(),
        active=flags(),
        learns=flags(),
        ended=flags(),
        trial_ended=flags(),
        goes_on=flags(),
        final_values=floats(),
        ratios=floats(),
        last_values=torch.zeros(rows, device=device),
    )
