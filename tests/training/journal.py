"""A journal: copies of the observations, actions and signals of a trainer's env."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from roadworthy.sim.state import EGO
from roadworthy.training.loop import Trainer


class Step(NamedTuple):
    """One step of R rows: first the state before it, then its results."""

    observations: Tensor  # (R, S)
    active: Tensor  # (R,)
    is_ego: Tensor
    partner: Tensor
    actions: Tensor  # (R, 2)
    rewards: Tensor
    trial_ended: Tensor
    episode_ended: Tensor
    timed_out: Tensor
    active_after: Tensor
    final_observation: Tensor  # (R, S)


class Journal:
    """Wraps the env of a collector."""

    def __init__(self, made: Trainer) -> None:
        self.steps: list[Step] = []
        self.begun_before: dict[int, Tensor] = {}  # rows whose worlds were reset before a step, by its number
        self._env, self._step, self._begin = made.env, made.env.step, made.env.begin
        made.env.step, made.env.begin = self._stepped, self._begun  # type: ignore[method-assign]

    def _stepped(self, actions: Any) -> Any:
        env = self._env
        partner = torch.tensor(env.hidden["partner"]).repeat_interleave(env.rows_per_world)
        before = (env.observations, env.signals.active, env.roles == EGO)
        shown = [*map(torch.tensor, before), partner, torch.tensor(actions)]
        told = self._step(actions)
        s = env.signals
        after = (env.rewards, s.trial_ended, s.episode_ended, s.timed_out, s.active, env.final_observation)
        self.steps.append(Step(*shown, *map(torch.tensor, after)))
        return told

    def _begun(self, worlds: Any) -> Any:
        is_begun = torch.isin(torch.tensor(self._env.world_of_row), torch.tensor(worlds))
        self.begun_before[len(self.steps)] = is_begun
        return self._begin(worlds)
