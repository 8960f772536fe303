"""Policy: encoder, memory core and heads, one step at a time in rollout and over sequences in training."""

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
    """What a policy says about rows: numbers of its action distribution (see heads.py), and values."""

    scores: Tensor  # (..., numbers) float32
    values: Tensor  # (...) float32


class Policy(nn.Module):
    """A network that drives. R rows, T steps, S numbers observed."""

    def __init__(
        self, config: PolicyConfig, layout: ObservationLayout, choices: tuple[int, int] | None, seed: int = 0
    ) -> None:
        """Make a policy for an env's `observation_layout` and `action_choices`; the seed draws its first weights."""
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
        """Memory of so many rows, each at the start of an episode."""
        like = self.value.weight.detach()
        return self.core.start(rows, like if dtype is None else like.to(dtype))

    def step(self, observations: Tensor, active: Tensor, memory: Memory, traits: Tensor | None = None) -> Output:
        """One step of R rows: (R, S) and (R,). The memory, which keeps the step, is changed in place."""
        x = self.encoder(observations, active, traits)
        return self._output(self.core.step(x, active, memory))

    def sequence(
        self, observations: Tensor, active: Tensor, ended: Tensor, memory: Memory, traits: Tensor | None = None
    ) -> Output:
        """T steps of R rows at once, (R, T, S), (R, T) and (R, T), going on from a memory that stays as it is."""
        x = self.encoder(observations, active, traits)
        return self._output(self.core.sequence(x, active, ended, memory))

    def reset(self, memory: Memory, mask: Tensor) -> None:
        """Clear exactly these rows of a memory: their episodes have ended."""
        self.core.reset(memory, mask)

    def _output(self, x: Tensor) -> Output:
        return Output(self.head(x), self.value(x).float().squeeze(-1))
