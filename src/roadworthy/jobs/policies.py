"""Policies of jobs by name: built-in ones, anybody's class, driving checkpoints, and servers elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium import Space, spaces

from roadworthy import plugins
from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.jobs.batch import EnvBatch, SingleEnvs, Traits
from roadworthy.policy.spec import BASELINE, BLIND, EXPERT, REMOTE, is_reserved

GROUP = "roadworthy.policies"
DRIVING = (EXPERT, BASELINE)


class Policy(Protocol):
    """Chooses actions in envs that run side by side. A class may leave out everything but `act`."""

    def act(self, envs: Sequence[int], observations: Sequence[Any]) -> Sequence[Any]:
        """An action for each of these envs; observations are in the same order."""

    def start(self, traits: Traits, count: int) -> None:
        """Get ready for so many envs of this kind."""

    def reset(self, env: int, seed: int, instruction: str | None) -> None:
        """An episode begins in this env: forget the one before it. All draws in it come from its seed."""

    def close(self) -> None:
        """Let go of everything."""


class PolicyTimeout(RoadworthyError):
    """A policy did not answer in time, or lost its memory: episodes under way fail, and the job goes on."""

    def __init__(self, message: str, envs: Collection[int] | None = None) -> None:
        super().__init__(message)
        self.envs = envs  # whose episodes fail; None: all that waited for an answer


class RandomPolicy:
    """Draws from the action space."""

    def start(self, traits: Traits, count: int) -> None:
        self._space = traits.action_space
        self._spaces: dict[int, Space[Any]] = {}

    def reset(self, env: int, seed: int, instruction: str | None) -> None:
        self._spaces[env] = deepcopy(self._space)
        self._spaces[env].seed(seed)

    def act(self, envs: Sequence[int], observations: Sequence[Any]) -> list[Any]:
        return [self._spaces[env].sample() for env in envs]


class ZeroPolicy:
    """Does nothing: zeros, or the middle of a range that has none."""

    def start(self, traits: Traits, count: int) -> None:
        self._action = nothing(traits.action_space)

    def act(self, envs: Sequence[int], observations: Sequence[Any]) -> list[Any]:
        return [self._action for _ in envs]


def nothing(space: Space[Any]) -> Any:
    """The action that is nearest to none."""
    if isinstance(space, spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.Dict):
        return {name: nothing(part) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(nothing(part) for part in space.spaces)
    if isinstance(space, spaces.Discrete):
        return space.start
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return np.zeros(space.shape, space.dtype)
    raise UsageError(f"the policy 'zero' knows no zero of the action space {space}; take another policy")


class DrivingPolicy:
    """A driving checkpoint or expert in `drive:` environments, with an actor of its own for each env."""

    def __init__(self, spec: str, batch: SingleEnvs, **options: Any) -> None:
        self._spec, self._batch, self._options = spec, batch, options
        self._actors: dict[int, tuple[Any, Any]] = {}  # the env that it was started with, and the actor
        self._seeds: dict[int, int] = {}
        self._steps: dict[int, int] = {}

    def reset(self, env: int, seed: int, instruction: str | None) -> None:
        from roadworthy.policy.actor import load_actor

        drive = self._batch.env(env).unwrapped.drive  # type: ignore[attr-defined]
        if env not in self._actors or self._actors[env][0] is not drive:
            actor = load_actor(self._spec, **self._options)
            actor.start(drive)
            self._actors[env] = drive, actor
        else:
            self._actors[env][1].reset(np.ones(1, np.bool_))
        self._seeds[env], self._steps[env] = seed, 0

    def act(self, envs: Sequence[int], observations: Sequence[Any]) -> list[Any]:
        actions = []
        for env, observation in zip(envs, observations, strict=True):
            drive, actor = self._actors[env]
            seeds, steps = np.array([self._seeds[env]], np.uint64), np.array([self._steps[env]], np.int64)
            chosen = np.asarray(actor.act(np.asarray(observation)[None], drive.signals.active, seeds, steps))[0]
            actions.append(chosen.astype(np.float32 if drive.action_choices is None else np.int64))
            self._steps[env] += 1
        return actions


def load_policy(name: str, config: Mapping[str, Any], batch: EnvBatch | None = None) -> Any:
    """The policy that a spec names, not started; one that drives needs the envs themselves.

    Reserved words and declared policies come before folders of the same name, which are given as ./NAME.
    """
    if name in BLIND:
        _refuse_config(name, config)
        return RandomPolicy() if name == "random" else ZeroPolicy()
    if name.startswith(REMOTE):
        from roadworthy.policy.remote.client import RemotePolicy

        return RemotePolicy(name, **config)
    if name in plugins.known(GROUP):
        return plugins.load(GROUP, name, "policy")(**config)
    if name.startswith(DRIVING) or checkpoint_of(name) is not None:
        if not isinstance(batch, SingleEnvs) or not hasattr(batch.env(0).unwrapped, "drive"):
            raise UsageError(f"policy {name!r} drives cars: it needs an environment such as drive:town")
        return DrivingPolicy(name, batch, **config)
    return imported(name, "policy", GROUP)(**config)


def checkpoint_of(name: str) -> Path | None:
    """The folder of the checkpoint that a spec names by its path; None for other policies."""
    if is_reserved(name) or name in plugins.known(GROUP):
        return None
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else None


def imported(name: str, what: str, group: str | None = None) -> Any:
    """What `module:name` or `module.name` stands for; group: where other names are declared, for errors."""
    module, separator, part = name.partition(":") if ":" in name else name.rpartition(".")
    if not separator or not module or not part:
        known = f"declared ones: {', '.join(plugins.known(group)) or 'none'}; or give one as" if group else "expected"
        raise UsageError(f"{what} {name!r} is unknown; {known} module:name")
    try:
        found: Any = import_module(module)
        for step in part.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{what} {name!r} can't be imported: {error}; expected module:name") from error
    return found


def _refuse_config(name: str, config: Mapping[str, Any]) -> None:
    if config:
        raise UsageError(f"policy {name!r} takes no settings, but policy_config has {', '.join(config)}")
