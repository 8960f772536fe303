"""Environments side by side: how episodes start in them and how they are stepped.

There are two kinds. Where each environment can be reset by itself, any of them takes the next episode, with the seed of
that episode: the rows do not depend on the number of environments. Where environments reset themselves, each has a
fixed share of the episodes, and all of them run to their end: otherwise short episodes would count more often.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import Env
from numpy.typing import NDArray

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.watch import Watch
from roadworthy.policy.protocol import PolicyInfo

if TYPE_CHECKING:
    from roadworthy.sim.env import DriveEnv

Picture = NDArray[np.uint8]
MakeEnv = Callable[[Mapping[str, Any]], "Env[Any, Any]"]  # of factors that reset does not take


@dataclass(frozen=True)
class Begun:
    """The start of an episode."""

    observation: Any
    info: Mapping[str, Any]


@dataclass(frozen=True)
class Moved:
    """A step of an episode; the observation is the one after it, also where the episode ended."""

    observation: Any
    reward: float
    is_terminated: bool
    is_truncated: bool
    info: Mapping[str, Any]


@dataclass(frozen=True)
class Broken:
    """An env raised an error."""

    error: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Broken:
        return cls(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class Change:
    """The effect of one step on one env: a move, the start of another episode, or an error."""

    moved: Moved | None = None
    begun: Begun | None = None
    broken: Broken | None = None


class EnvBatch(Protocol):
    """Envs side by side."""

    count: int
    info: PolicyInfo  # for policies
    resets_itself: bool  # each episode starts where the last one ended, and `begin` can't choose when
    shows_last_state: bool  # render() shows the state in which an episode ended
    watch: Watch  # measures every call of an env

    def begin(self, episodes: Mapping[int, EpisodeSpec]) -> dict[int, Begun | Broken]:
        """Start episodes in these envs; where envs reset themselves, once and in all of them."""

    def step(self, actions: Mapping[int, Any]) -> dict[int, Change]:
        """Step these envs."""

    def render(self, envs: list[int]) -> dict[int, Picture]:
        """Return what render() shows of these envs; nothing where they don't draw."""

    def close(self) -> None:
        """Release the envs."""


class SingleEnvs:
    """Separate envs, each with its own episode; an env that raises an error is replaced and does not affect others."""

    resets_itself = False
    shows_last_state = True

    def __init__(self, make: MakeEnv, count: int) -> None:
        self.count = count
        self.watch = Watch(count)
        self._make = make
        self._envs: dict[int, Env[Any, Any]] = {0: make({})}
        self._built_with: dict[int, Mapping[str, Any]] = {0: {}}
        first = self._envs[0]
        drive_env = self._drive_env if hasattr(first.unwrapped, "drive") else None
        self.info = PolicyInfo.of_gymnasium(
            count, first.observation_space, first.action_space, first.metadata, drive_env
        )

    def _drive_env(self, number: int) -> DriveEnv:
        """Return the simulator behind a `drive:` environment."""
        return self._envs[number].unwrapped.drive  # type: ignore[attr-defined]

    def begin(self, episodes: Mapping[int, EpisodeSpec]) -> dict[int, Begun | Broken]:
        begun: dict[int, Begun | Broken] = {}
        for number, spec in episodes.items():
            try:
                with self.watch.call(number):
                    begun[number] = self._begin(number, spec)
            except Exception as error:  # of any type
                begun[number] = self._broken(number, error)
        return begun

    def step(self, actions: Mapping[int, Any]) -> dict[int, Change]:
        changes = {}
        for number, action in actions.items():
            try:
                with self.watch.call(number, steps=1):
                    seen, reward, terminated, truncated, info = self._envs[number].step(action)
                changes[number] = Change(Moved(seen, float(reward), bool(terminated), bool(truncated), info))
            except Exception as error:
                changes[number] = Change(broken=self._broken(number, error))
        return changes

    def render(self, envs: list[int]) -> dict[int, Picture]:
        drawn: dict[int, Any] = {}
        for number in envs:
            if number in self._envs:
                with self.watch.call(number), self.watch.rendering():
                    drawn[number] = self._envs[number].render()
        return {number: np.asarray(picture) for number, picture in drawn.items() if picture is not None}

    def close(self) -> None:
        for env in self._envs.values():
            env.close()
        self._envs = {}

    def _begin(self, number: int, spec: EpisodeSpec) -> Begun:
        at_reset, at_build = split_factors(spec.factors, self.info.metadata)
        if number not in self._envs or self._built_with[number] != at_build:
            if number in self._envs:
                self._envs.pop(number).close()
            self._envs[number] = self._make(at_build)
            self._built_with[number] = at_build
        options = {"factors": dict(at_reset)} if at_reset else None
        observation, info = self._envs[number].reset(seed=spec.seed, options=options)
        return Begun(observation, info)

    def _broken(self, number: int, error: Exception) -> Broken:
        """Drop an env that raised an error: its state is unknown, so the next episode gets another env."""
        env = self._envs.pop(number, None)
        if env is not None:
            try:
                env.close()
            except Exception as closing:
                error.add_note(f"closing the env failed as well: {type(closing).__name__}: {closing}")
        return Broken.of(error)


def split_factors(factors: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the factors that reset takes, which the metadata of the env list, and those that it is built with."""
    names = metadata.get("factors", ())
    at_reset = {name: value for name, value in factors.items() if name in names}
    return at_reset, {name: value for name, value in factors.items() if name not in names}
