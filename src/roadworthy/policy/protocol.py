"""The policy protocol: one class drives in the simulator and acts in Gymnasium environments.

    class Mine:
        def act(self, batch):
            return ...  # one action per row of the batch

A policy subclasses nothing and needs no other method. `start`, `reset` and `close` are optional.

Results must not depend on how many episodes run side by side. A policy therefore uses what it is given for a row for
that row alone, keeps a memory per row, and derives every random draw from the row's seed and step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import RoadworthyError

if TYPE_CHECKING:
    from gymnasium import Space

    from roadworthy.sim.env import DriveEnv

Array = Any  # of NumPy, or a torch tensor on a GPU


@dataclass(frozen=True)
class Batch:
    """The rows that need an action.

    In the simulator a row is an agent of a world, and a batch has all rows. In Gymnasium a row is an environment, and a
    batch has the environments that are in an episode.
    """

    observations: Any
    # Batched as Gymnasium's vector environments do: an array (rows, ...), a dict of arrays, or a tuple with one entry
    # per row where a space can't be stacked. Torch tensors on a GPU. They belong to the environment: copy to change.
    active: Array
    # (rows,) bool; where it is false, the observation means nothing and the action has no effect.
    rows: NDArray[np.int64]
    # (rows,) the number of each row, below PolicyInfo.row_count; the index of its memory.
    seeds: NDArray[np.uint64]
    # (rows,) the seed of the row's episode. The agents of a world share it.
    steps: NDArray[np.int64]
    # (rows,) the steps already made in the row's episode.
    instructions: Sequence[str | None] | None = None
    # What the policy is asked to do in each row; None where no row has an instruction.

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PolicyInfo:
    """What `start` is given: the environments in which the policy will act."""

    row_count: int
    # Rows that may act, in all batches.
    rows_per_world: int
    # Rows of a world, which come one after another. In Gymnasium it is 1.
    make_spaces: Callable[[], tuple[Space[Any], Space[Any]]]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # Of the Gymnasium environment.
    env: DriveEnv | None = None
    # The simulator; None in Gymnasium.
    drive_env: Callable[[int], DriveEnv] | None = None
    # For `drive:` environments of Gymnasium: returns the simulator behind a row, which may change with each episode.

    @cached_property
    def observation_space(self) -> Space[Any]:
        """The Gymnasium space of one row's observations."""
        return self.make_spaces()[0]

    @cached_property
    def action_space(self) -> Space[Any]:
        """The Gymnasium space of one row's actions."""
        return self.make_spaces()[1]

    @classmethod
    def of_drive_env(cls, env: DriveEnv) -> PolicyInfo:
        """Describe worlds of the simulator. Gymnasium is imported only when a space is asked for."""

        def make_spaces() -> tuple[Space[Any], Space[Any]]:
            from roadworthy.sim.adapters.gymnasium import action_space, observation_space

            return observation_space(env), action_space(env)

        return cls(env.row_count, env.rows_per_world, make_spaces, env=env)

    @classmethod
    def of_gymnasium(
        cls,
        count: int,
        observation_space: Space[Any],
        action_space: Space[Any],
        metadata: Mapping[str, Any] | None = None,
        drive_env: Callable[[int], DriveEnv] | None = None,
    ) -> PolicyInfo:
        """Describe Gymnasium environments, each of which has these spaces."""
        return cls(count, 1, lambda: (observation_space, action_space), dict(metadata or {}), None, drive_env)


class Policy(Protocol):
    """Chooses actions."""

    def act(self, batch: Batch) -> Array:
        """Return one action per row of the batch, as an array (rows, ...) or a list."""

    # Optional methods:
    #
    # def start(self, info: PolicyInfo) -> None:
    #     """Prepare for these environments. Called before the first `act`, and again for other environments."""
    #
    # def reset(self, rows: NDArray[np.bool_]) -> None:
    #     """Clear the memory of rows whose episode has ended or starts; rows: (PolicyInfo.row_count,) a mask."""
    #
    # def close(self) -> None:
    #     """Release resources."""


class PolicyTimeout(RoadworthyError):
    """A policy did not answer in time, or lost its memory: the affected episodes fail and the others continue."""

    def __init__(self, message: str, rows: Collection[int] | None = None) -> None:
        super().__init__(message)
        self.rows = rows  # whose episodes fail; None: all rows of the batch


def start(policy: Policy, info: PolicyInfo) -> None:
    """Call the policy's `start`, if it has one."""
    if hasattr(policy, "start"):
        policy.start(info)


def reset(policy: Policy, rows: NDArray[np.bool_]) -> None:
    """Call the policy's `reset`, if it has one."""
    if hasattr(policy, "reset"):
        policy.reset(rows)


def close(policy: Policy) -> None:
    """Call the policy's `close`, if it has one."""
    if hasattr(policy, "close"):
        policy.close()


def drive_batch(env: DriveEnv, seeds: NDArray[np.uint64], steps: NDArray[np.int64]) -> Batch:
    """Return the batch of all rows of the simulator; seeds and steps: (rows,) of the rows' episodes."""
    return Batch(env.observations, env.signals.active, np.arange(env.row_count), seeds, steps)


def stack(space: Space[Any], observations: Sequence[Any]) -> Any:
    """Return the observations of several Gymnasium environments as one, as `Batch.observations` describes."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {name: stack(part, [seen[name] for seen in observations]) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stack(part, [seen[k] for seen in observations]) for k, part in enumerate(space.spaces))
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return np.stack([np.asarray(seen) for seen in observations])
    return tuple(observations)
