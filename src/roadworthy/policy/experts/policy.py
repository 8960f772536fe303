"""Experts as policies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.policy.experts.drive import DriveExpert
from roadworthy.policy.experts.lane_follower import LaneFollower
from roadworthy.policy.experts.log import LogExpert
from roadworthy.policy.per_world import require_drive_env
from roadworthy.policy.protocol import Array, Batch, PolicyInfo

Expert = DriveExpert | LaneFollower | LogExpert


class ExpertPolicy:
    """Drives with an expert, which reads the state of the simulator instead of observations."""

    needs_drive_env = True

    def __init__(self, name: str, expert: type[Expert], **options: Any) -> None:
        """Choose the expert.

        name: the spec, for errors.
        options: arguments of the expert besides the env.
        """
        self._name, self._expert, self._options = name, expert, options

    def start(self, info: PolicyInfo) -> None:
        self._driver = self._expert(require_drive_env(self._name, info), **self._options)

    def act(self, batch: Batch) -> Array:
        return self._driver.act()

    def reset(self, rows: NDArray[np.bool_]) -> None:
        self._driver.reset(rows)
