"""Policies that need the simulator, in `drive:` environments of Gymnasium: a policy for each environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy import protocol
from roadworthy.policy.protocol import Batch, Policy, PolicyInfo

if TYPE_CHECKING:
    from roadworthy.sim.env import DriveEnv


class PolicyPerWorld:
    """Makes a policy for each environment, and a new one when the simulator behind the environment changes."""

    def __init__(self, make_policy: Callable[[], Policy], drive_env: Callable[[int], DriveEnv]) -> None:
        self._make, self._drive_env = make_policy, drive_env
        self._policies: dict[int, tuple[DriveEnv, Policy]] = {}

    def act(self, batch: Batch) -> list[Any]:
        """Return one action per environment, in the type of its action space."""
        actions = []
        for k, row in enumerate(batch.rows.tolist()):
            env, policy = self._policies[row]
            own = Batch(
                np.asarray(batch.observations)[k : k + 1],
                env.signals.active,
                np.zeros(1, np.int64),
                batch.seeds[k : k + 1],
                batch.steps[k : k + 1],
            )
            chosen = np.asarray(policy.act(own))[0]
            actions.append(chosen.astype(np.float32 if env.action_choices is None else np.int64))
        return actions

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Clear the memory of these environments."""
        for row in np.flatnonzero(rows).tolist():
            env = self._drive_env(row)
            if row in self._policies and self._policies[row][0] is env:
                protocol.reset(self._policies[row][1], np.ones(1, np.bool_))
            else:
                policy = self._make()
                protocol.start(policy, PolicyInfo.of_drive_env(env))
                self._policies[row] = env, policy


def require_drive_env(name: str, info: PolicyInfo) -> DriveEnv:
    """Return the simulator, or raise UsageError where the policy would have to act without one."""
    if info.env is None:
        raise UsageError(f"policy {name!r} drives cars: it needs an environment such as drive:town")
    return info.env


def start_in_gymnasium(make_policy: Callable[[], Policy], info: PolicyInfo) -> Policy:
    """Return a started policy for Gymnasium environments."""
    policy = make_policy()
    if info.drive_env is not None and getattr(policy, "needs_drive_env", False):
        return PolicyPerWorld(make_policy, info.drive_env)
    protocol.start(policy, info)
    return policy
