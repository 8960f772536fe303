"""The policy under test drives the egos; the co-player policy that an episode has drawn drives its co-players."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.policy import protocol
from roadworthy.policy.per_world import require_drive_env
from roadworthy.policy.protocol import Array, Batch, Policy, PolicyInfo
from roadworthy.sim.state import COPLAYER


class CoplayerPolicy:
    """Combines policies of one simulator: each sees all rows, and its actions are used in its own rows."""

    needs_drive_env = True

    def __init__(self, make_ego: Callable[[], Policy], make_coplayers: Sequence[Callable[[], Policy]]) -> None:
        self._policies = [make_ego(), *(make() for make in make_coplayers)]

    def start(self, info: PolicyInfo) -> None:
        self._env = require_drive_env("co-players", info)
        for policy in self._policies:
            protocol.start(policy, info)

    def act(self, batch: Batch) -> Array:
        # Every policy is called in every step, because its memory follows all rows.
        actions, *others = [on_host(policy.act(batch)) for policy in self._policies]
        actions, is_coplayer = np.array(actions), self._env.roles == COPLAYER
        drawn = np.repeat(self._env.hidden["partner"], self._env.rows_per_world)
        for number, other in enumerate(others):
            rows = is_coplayer & (drawn == number)
            actions[rows] = other[rows]
        return actions

    def reset(self, rows: NDArray[np.bool_]) -> None:
        for policy in self._policies:
            protocol.reset(policy, rows)

    def close(self) -> None:
        for policy in self._policies:
            protocol.close(policy)


def on_host(array: Any) -> NDArray[Any]:
    """Return an array of NumPy or a tensor of any device as NumPy's."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
