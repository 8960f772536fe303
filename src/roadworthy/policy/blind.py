"""Policies that ignore their observations: `random` and `zero`."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy.protocol import Array, Batch, PolicyInfo

if TYPE_CHECKING:
    from gymnasium import Space


class RandomPolicy:
    """Draws actions uniformly, from the seed of each row's episode."""

    def start(self, info: PolicyInfo) -> None:
        self._info = info
        self._spaces: dict[int, Space[Any]] = {}

    def act(self, batch: Batch) -> Array:
        return self._drive(batch) if self._info.env is not None else [self._sample(batch, k) for k in range(len(batch))]

    def _drive(self, batch: Batch) -> Array:
        """Draw as a network does, by (seed, agent, step)."""
        assert self._info.env is not None
        choices = self._info.env.action_choices
        drawn = _uniform(batch.seeds, batch.rows % self._info.rows_per_world, batch.steps)
        return 2.0 * drawn - 1.0 if choices is None else np.floor(drawn * np.asarray(choices))

    def _sample(self, batch: Batch, k: int) -> Any:
        """Sample the action space, which is seeded at the start of each episode."""
        row = int(batch.rows[k])
        if batch.steps[k] == 0:
            self._spaces[row] = deepcopy(self._info.action_space)
            self._spaces[row].seed(int(batch.seeds[k]))
        return self._spaces[row].sample()


class ZeroPolicy:
    """Does nothing: coasts in the simulator; in Gymnasium returns zeros, or the nearest action to zero."""

    def start(self, info: PolicyInfo) -> None:
        self._action = (
            zero_action(info.action_space) if info.env is None else np.array(info.env.idle_action, np.float32)
        )
        self._is_driving = info.env is not None

    def act(self, batch: Batch) -> Array:
        return np.tile(self._action, (len(batch), 1)) if self._is_driving else [self._action] * len(batch)


def zero_action(space: Space[Any]) -> Any:
    """Return the action of a space that is nearest to zero."""
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.Dict):
        return {name: zero_action(part) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(zero_action(part) for part in space.spaces)
    if isinstance(space, spaces.Discrete):
        return space.start
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return np.zeros(space.shape, space.dtype)
    raise UsageError(f"the action space {space} has no zero, which the policy 'zero' needs; choose another policy")


def _uniform(seeds: NDArray[np.uint64], agents: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return (rows, 2) draws in [0, 1)."""
    import torch  # takes seconds to import

    from roadworthy.policy import draws

    keys = draws.keys_of(torch.from_numpy(np.ascontiguousarray(seeds).view(np.int64)), torch.from_numpy(agents))
    drawn: NDArray[np.float32] = draws.uniform(keys, torch.as_tensor(steps), draws.ACTION).numpy()
    return drawn
