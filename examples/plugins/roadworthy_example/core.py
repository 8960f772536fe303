"""Core `gru`: a gated recurrent unit; its state does not change while the agent is inactive."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.policy.config import PolicyConfig


class GruMemory(NamedTuple):
    """The state of a GRU."""

    length: Tensor  # (rows,) int32, active steps of the episode
    hidden: Tensor  # (rows, H)


class GruCore(nn.Module):
    """A GRU with a residual connection."""

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.cell = nn.GRUCell(config.hidden, config.hidden)

    def start(self, rows: int, like: Tensor) -> GruMemory:
        """Return an empty memory."""
        hidden = torch.zeros(rows, self.cell.hidden_size, dtype=like.dtype, device=like.device)
        return GruMemory(torch.zeros(rows, dtype=torch.int32, device=like.device), hidden)

    def step(self, x: Tensor, active: Tensor, memory: GruMemory) -> Tensor:
        """Return the output of one step, and add it to the memory."""
        hidden = self.cell(x, memory.hidden.to(x.dtype))
        memory.hidden.copy_(torch.where(active[:, None], hidden, memory.hidden))
        memory.length.add_(active)
        return x + hidden

    def sequence(self, x: Tensor, active: Tensor, ended: Tensor, memory: GruMemory) -> Tensor:
        """Return the outputs of a sequence that starts from the memory."""
        state, outputs = memory.hidden.to(x.dtype), []
        for t in range(x.shape[1]):
            hidden = self.cell(x[:, t], state)
            outputs.append(x[:, t] + hidden)
            state = torch.where(active[:, t, None], hidden, state).masked_fill(ended[:, t, None], 0.0)
        return torch.stack(outputs, 1)

    def reset(self, memory: GruMemory, mask: Tensor) -> None:
        """Clear the memory of the rows in mask."""
        memory.length.masked_fill_(mask, 0)
        memory.hidden.masked_fill_(mask[:, None], 0.0)
