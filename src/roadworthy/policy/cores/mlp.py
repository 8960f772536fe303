"""The core without memory: one hidden layer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.policy.config import PolicyConfig


class MlpMemory(NamedTuple):
    """The number of active steps of the episode, which every memory has."""

    length: Tensor  # (rows,) int32


class MlpCore(nn.Module):
    """A hidden layer."""

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.layer = nn.Linear(config.hidden, config.hidden)
        nn.init.orthogonal_(self.layer.weight, 2.0**0.5)
        nn.init.zeros_(self.layer.bias)

    def start(self, rows: int, like: Tensor) -> MlpMemory:
        return MlpMemory(torch.zeros(rows, dtype=torch.int32, device=like.device))

    def step(self, x: Tensor, active: Tensor, memory: MlpMemory) -> Tensor:
        memory.length.add_(active)
        return torch.relu(self.layer(x))

    def sequence(self, x: Tensor, active: Tensor, ended: Tensor, memory: MlpMemory) -> Tensor:
        return torch.relu(self.layer(x))

    def reset(self, memory: MlpMemory, mask: Tensor) -> None:
        memory.length.masked_fill_(mask, 0)
