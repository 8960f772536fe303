"""Gymnasium environment `corridor`: walk right to the end of a corridor whose length is a factor."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Corridor(gymnasium.Env[Any, Any]):
    """Actions: 0 walks left, 1 walks right. The observation is the share of the corridor that is left."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 5) -> None:
        self._length, self._place = int(length), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Stand at the left end."""
        super().reset(seed=seed)
        self._place = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Walk one place."""
        self._place = max(self._place + (1 if action == 1 else -1), 0)
        is_there = self._place >= self._length
        return self._seen(), float(is_there), is_there, False, {"success": is_there}

    def _seen(self) -> Any:
        return np.array([1.0 - self._place / self._length], np.float32)
