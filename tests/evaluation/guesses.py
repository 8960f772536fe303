"""An environment of one step whose difficulty is drawn from the seed, and policies of known skill, for gates."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from roadworthy.policy.protocol import Batch, PolicyInfo

CRASHES_BETWEEN = (0.7, 0.8)  # difficulties that Skilled masters


class Guess(gymnasium.Env[Any, Any]):
    """Succeeds if the action is above a number from 0 to 1 that the seed draws, so the action is the success rate."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Box(0.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._difficulty = float(self.np_random.random())
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        success = float(np.asarray(action).reshape(-1)[0]) > self._difficulty
        outcomes = {"success": success, "difficulty": self._difficulty}
        return self._seen(), float(success), True, False, {"outcomes": outcomes}

    def _seen(self) -> Any:
        return np.array([self._difficulty], np.float32)


class Skilled:
    """Succeeds in 80% of the episodes."""

    skill = 0.8

    def start(self, info: PolicyInfo) -> None:
        pass

    def reset(self, rows: Any) -> None:
        pass

    def act(self, batch: Batch) -> Any:
        return np.full((len(batch.steps), 1), self.skill, np.float32)


class Equal(Skilled):
    """The same under another name."""


class Worse(Skilled):
    """Succeeds in 60%."""

    skill = 0.6


class Slow(Skilled):
    """The same as Skilled, with time to kill it."""

    def act(self, batch: Batch) -> Any:
        time.sleep(0.02)
        return super().act(batch)


class Crashing(Skilled):
    """Crashes in one episode of ten, which it would solve otherwise."""

    def act(self, batch: Batch) -> Any:
        low, high = CRASHES_BETWEEN
        seen = batch.observations[np.asarray(batch.active)]
        if ((seen > low) & (seen < high)).any():
            raise ValueError("too difficult")
        return super().act(batch)
