"""The policy network: encoder, memory core and heads; steps in rollouts, sequences in training."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.policy.config import PolicyConfig
from roadworthy.policy.cores import Memory, make_core
from roadworthy.policy.encoder import Encoder
from roadworthy.policy.heads import make_head
from roadworthy.sim.layout import ObservationLayout


class Output(NamedTuple):
    """The parameters of action distributions (see heads.py), and values."""

    logits: Tensor  # (..., numbers) float32
    values: Tensor  # (...) float32


class PolicyNetwork(nn.Module):
    """A policy and value network. R rows, T steps, S numbers per observation, C coefficients of conditioning."""

    def __init__(
        self, config: PolicyConfig, layout: ObservationLayout, choices: tuple[int, int] | None, seed: int = 0
    ) -> None:
        """Make a network for an env's `observation_layout` and `action_choices`; the seed decides its first weights."""
        super().__init__()
        self.config, self.layout, self.choices = config, layout, choices
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = Encoder(config, layout)
            self.core = make_core(config)
            self.head = make_head(config.hidden, choices, config.actions)
            self.value = nn.Linear(config.hidden, 1)
            nn.init.orthogonal_(self.value.weight, 1.0)
            nn.init.zeros_(self.value.bias)

    def memory(self, rows: int, dtype: torch.dtype | None = None) -> Memory:
        """Return the memory of rows at the start of their episodes."""
        like = self.value.weight.detach()
        return self.core.start(rows, like if dtype is None else like.to(dtype))

    def step(self, observations: Tensor, active: Tensor, memory: Memory, conditioning: Tensor | None = None) -> Output:
        """Run one step of R rows: (R, S), (R,) and (R, C). The memory is updated in place."""
        x = self.encoder(observations, active, conditioning)
        return self._output(self.core.step(x, active, memory))

    def sequence(
        self, observations: Tensor, active: Tensor, ended: Tensor, memory: Memory, conditioning: Tensor | None = None
    ) -> Output:
        """Run T steps of R rows, (R, T, S), (R, T), (R, T) and (R, T, C), from a memory that stays unchanged."""
        x = self.encoder(observations, active, conditioning)
        return self._output(self.core.sequence(x, active, ended, memory))

    def reset(self, memory: Memory, mask: Tensor) -> None:
        """Clear these rows of a memory, since their episodes have ended."""
        self.core.reset(memory, mask)

    def _output(self, x: Tensor) -> Output:
        return Output(self.head(x), self.value(x).float().squeeze(-1))
