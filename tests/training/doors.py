"""Doors: an artificial env whose second trial can only be solved by remembering the first.

Each episode hides which of two doors is the right one. A trial: at its first step the agent chooses a door, and gets 1
for the right one; at its second it is told which that was; then it is away until the trial ends.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from roadworthy.policy import draws
from roadworthy.policy.config import PolicyConfig
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.network import PolicyNetwork
from roadworthy.sim.config import EpisodeConfig, ObserveConfig, SimConfig
from roadworthy.sim.layout import layout
from roadworthy.sim.state import CLOCK_COLUMNS, EGO, FLAG_LINES, ROLE
from roadworthy.training.config import PpoConfig
from roadworthy.training.ppo import Learner
from roadworthy.training.processes import Processes
from roadworthy.training.rollout import Collector

CHOICES = (2, 1)
LAYOUT = layout(SimConfig(observe=ObserveConfig(partners=0, lanes=0, edges=0, lights=0)))
_CHOOSES, _TOLD = LAYOUT["ego"].column("speed"), LAYOUT["ego"].column("acceleration")


class Doors:
    """One agent in each world, with the interface that a Collector needs."""

    rows_per_world, action_choices = 1, CHOICES

    def __init__(self, worlds: int, trial_steps: int, trials: int = 2, seed: int = 0) -> None:
        self.config = SimConfig(episode=EpisodeConfig(trials, trial_steps))
        self.world_count = self.row_count = worlds
        self.observation_layout = LAYOUT
        self.observations = np.zeros((worlds, LAYOUT.size), np.float32)
        self.rewards = np.zeros(worlds, np.float32)
        flags = {name: np.zeros(worlds, bool) for name in ("active", "trial_ended", "episode_ended", "timed_out")}
        self.signals = SimpleNamespace(**flags)
        self.clocks = np.zeros((worlds, CLOCK_COLUMNS), np.int32)
        self.agent_flags = np.zeros((worlds, FLAG_LINES, 1), np.int32)
        self.agent_flags[:, ROLE] = EGO
        self.won: list[tuple[int, bool]] = []  # every choice: the number of its trial, and whether it was right
        self._generator = np.random.default_rng(seed)
        self._right, self._step, self._trial = (np.zeros(worlds, np.int64) for _ in range(3))

    def reset(self) -> None:
        self.begin(range(self.world_count))

    def begin(self, worlds: Any) -> None:
        """Restart the episodes of these worlds."""
        chosen = np.asarray(list(worlds))
        self._right[chosen] = self._generator.integers(0, 2, len(chosen))
        self._step[chosen] = self._trial[chosen] = 0
        self._show()

    def step(self, actions: Any) -> None:
        chooses = self._step == 0
        is_right = np.asarray(actions)[:, 0] == self._right
        self.rewards[:] = chooses & is_right
        chosen = zip(self._trial[chooses].tolist(), is_right[chooses].tolist(), strict=True)
        self.won.extend(chosen)
        self._step += 1
        is_over = self._step == self.config.episode.trial_steps
        has_ended = is_over & (self._trial + 1 == self.config.episode.trials)
        self.signals.trial_ended[:], self.signals.episode_ended[:] = is_over, has_ended
        self._step[is_over] = 0
        self._trial += is_over
        if has_ended.any():
            self.begin(np.flatnonzero(has_ended))
        self._show()

    def report(self) -> dict[str, float | None]:
        return {}

    def _show(self) -> None:
        self.observations[:] = 0.0
        self.observations[:, _CHOOSES] = self._step == 0
        self.observations[:, _TOLD] = np.where(self._step == 1, 2.0 * self._right - 1.0, 0.0)
        self.signals.active[:] = self._step < 2


def learned(policy: PolicyConfig, ppo: PpoConfig, updates: int, *, trial_steps: int, rows: int = 256) -> PolicyNetwork:
    """Train a policy on the doors, with the real collector and learner."""
    made = PolicyNetwork(policy, LAYOUT, CHOICES, seed=1)
    env: Any = Doors(rows, trial_steps)
    collector = Collector(env, made, ppo, CoplayerNetworks(()), seed=1)
    learner = Learner(made, ppo, 1, Processes())
    collector.start()
    for update in range(updates):
        learner.update(collector.collect(), update, ppo.learning_rate)
    return made


@torch.no_grad()
def won(policy: PolicyNetwork, *, trial_steps: int, forgets: bool = False, rows: int = 400) -> list[float]:
    """Return the share of right choices in each trial of new episodes; forgets: memory is cleared after each trial."""
    env = Doors(rows, trial_steps, seed=1_000)
    env.reset()
    memory, keys = policy.memory(rows), draws.keys_of(1_000, torch.arange(rows))
    episode = env.config.episode
    for t in range(episode.trials * trial_steps):
        seen, active = torch.from_numpy(env.observations), torch.from_numpy(env.signals.active)
        logits = policy.step(seen, active, memory).logits
        env.step(policy.head.to_env(policy.head.sample(logits, draws.uniform(keys, t, draws.ACTION))))
        if forgets:
            policy.reset(memory, torch.from_numpy(env.signals.trial_ended))
    return [float(np.mean([right for trial, right in env.won if trial == k])) for k in range(episode.trials)]
