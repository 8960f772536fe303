"""Policy `keep_speed`: drives straight ahead at a speed. It works with discrete bicycle actions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy.protocol import Batch, PolicyInfo

STRAIGHT = 6  # the middle of 13 steering angles
BRAKE, HOLD, ACCELERATE = 2, 3, 4  # of 7 accelerations


class KeepSpeed:
    """Accelerates below a speed and brakes above it."""

    def __init__(self, speed_mps: float = 8.0) -> None:
        self._speed_mps = speed_mps

    def start(self, info: PolicyInfo) -> None:
        """Find the column of the speed in observations."""
        if info.env is None or info.env.action_choices != (7, 13):
            raise UsageError("keep_speed drives with discrete bicycle actions; set env.actions and env.model so")
        ego = info.env.observation_layout["ego"]
        self._column = ego.column("speed")
        self._scale = next(feature.scale for feature in ego.features if feature.name == "speed")

    def act(self, batch: Batch) -> NDArray[np.float32]:
        """Return a choice along and one across for each row."""
        missing = self._speed_mps - np.asarray(batch.observations)[:, self._column] * self._scale
        along = np.where(missing > 0.5, ACCELERATE, np.where(missing < -0.5, BRAKE, HOLD))
        return np.stack([along, np.full(len(batch), STRAIGHT)], 1).astype(np.float32)
