"""The LSTM core; its state does not change while the agent is inactive."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.policy.config import PolicyConfig


class LstmMemory(NamedTuple):
    """The state of an LSTM."""

    length: Tensor  # (rows,) int32, active steps of the episode
    hidden: Tensor  # (rows, H)
    cell: Tensor  # (rows, H)


class LstmCore(nn.Module):
    """An LSTM with a residual connection."""

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.size = config.hidden
        self.cell = nn.LSTMCell(self.size, self.size)
        for name, parameter in self.cell.named_parameters():
            if "weight" in name:
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)

    def start(self, rows: int, like: Tensor) -> LstmMemory:
        zeros = torch.zeros(rows, self.size, dtype=like.dtype, device=like.device)
        return LstmMemory(torch.zeros(rows, dtype=torch.int32, device=like.device), zeros, zeros.clone())

    def step(self, x: Tensor, active: Tensor, memory: LstmMemory) -> Tensor:
        hidden, cell = self.cell(x, (memory.hidden.to(x.dtype), memory.cell.to(x.dtype)))
        memory.hidden.copy_(torch.where(active[:, None], hidden, memory.hidden))
        memory.cell.copy_(torch.where(active[:, None], cell, memory.cell))
        memory.length.add_(active)
        return x + hidden

    def sequence(self, x: Tensor, active: Tensor, ended: Tensor, memory: LstmMemory) -> Tensor:
        hidden, cell = memory.hidden.to(x.dtype), memory.cell.to(x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            next_hidden, next_cell = self.cell(x[:, t], (hidden, cell))
            outputs.append(x[:, t] + next_hidden)
            keeps, clears = active[:, t, None], ended[:, t, None]
            hidden = torch.where(keeps, next_hidden, hidden).masked_fill(clears, 0.0)
            cell = torch.where(keeps, next_cell, cell).masked_fill(clears, 0.0)
        return torch.stack(outputs, 1)

    def reset(self, memory: LstmMemory, mask: Tensor) -> None:
        memory.length.masked_fill_(mask, 0)
        memory.hidden.masked_fill_(mask[:, None], 0.0)
        memory.cell.masked_fill_(mask[:, None], 0.0)
