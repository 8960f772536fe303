"""One world of a DriveEnv that is reset by hand: the common part of the single-env adapters.

A DriveEnv starts the next episode of a world in the step that ends the last one. Here that step returns the last
observation, and `reset` returns the start that is already made.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Floats
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.extensions import TERM_WEIGHTS
from roadworthy.sim.layout import CLIP
from roadworthy.sim.state import REWARD_TERMS

RESET_OPTIONS = ("scenario", "episode_seed")
_ATTEMPTS = 100  # consecutive episodes that start without an agent to drive, before giving up


@dataclass(frozen=True)
class Outcome:
    """The result of a step, by row, as copies."""

    observations: Floats  # (rows, size) the last one if the row's episode ended; 0 for inactive rows
    rewards: Floats  # (rows,)
    terminated: NDArray[np.bool_]  # (rows,) the episode ended, but not because the time was up
    truncated: NDArray[np.bool_]  # (rows,) the episode ended because the time was up
    infos: list[dict[str, Any]]


class OneWorld:
    """A DriveEnv of one world. A row leaves when its episode has ended, and `reset` starts another episode."""

    def __init__(
        self,
        pack: Pack | str | Path,
        config: SimConfig,
        *,
        seed: int | None,
        scenarios: Sequence[int] | None = None,
        first_world: int = 0,
        world_total: int | None = None,
    ) -> None:
        self.drive = DriveEnv(
            pack,
            1,
            with_final_observations(config),
            seed=any_seed() if seed is None else seed,
            threads=1,
            scenarios=scenarios,
            first_world=first_world,
            world_total=world_total,
        )
        self.is_left = np.zeros(self.drive.row_count, np.bool_)  # rows whose episode has not ended
        self._is_next_made = False

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[Floats, list[dict[str, Any]]]:
        """Start an episode: the run's next one, or the one that the options choose. A seed restarts the run."""
        drive, options = self.drive, options or {}
        is_named = "scenario" in options
        self.is_left[:] = False  # no episode is in progress if what follows fails
        if is_named:
            scenario, episode_seed = options["scenario"], options.get("episode_seed", 0)
            drive.assign(0, _whole("scenario", scenario), _whole("episode_seed", episode_seed))
        elif "episode_seed" in options:
            raise UsageError("options name an episode_seed but no scenario; name the scenario too")
        if is_named or seed is not None or not self._is_next_made:
            drive.reset(seed)
        for _ in range(_ATTEMPTS):
            if drive.signals.active.any():
                break
            if is_named:
                raise ScenarioError(f"scenario {options['scenario']} has no agent to drive at its start; name another")
            drive.reset()
        else:
            raise ScenarioError(f"{_ATTEMPTS} episodes in a row have no agent to drive at their start")
        self.is_left = drive.signals.active.copy()
        self._is_next_made = False
        infos = [info | {"trial_ended": False, "timed_out": False} for info in self._infos()]
        return drive.observations.copy(), infos

    def step(self, actions: ArrayLike) -> Outcome:
        """Make a step; the outcome belongs to the episode of the actions."""
        if not self.is_left.any():
            raise UsageError("the episode has ended, or none has begun; call reset()")
        drive, was_active, infos = self.drive, self.drive.signals.active.copy(), self._infos()
        observations, rewards, signals = drive.step(actions)
        observations = observations.copy()
        ended = signals.episode_ended
        # A row that waited for its trial to end has no last observation.
        observations[ended] = np.where(was_active[ended, None], drive.final_observation[ended], 0)
        self.is_left &= ~ended
        has_world_ended = not self.is_left.any()
        if not has_world_ended:
            infos = [infos[r] if ended[r] else info for r, info in enumerate(self._infos())]
        for r, info in enumerate(infos):
            info |= {"trial_ended": bool(signals.trial_ended[r]), "timed_out": bool(signals.timed_out[r])}
        self._is_next_made = has_world_ended and bool(signals.active.any())
        return Outcome(observations, rewards.copy(), ended & ~signals.timed_out, ended & signals.timed_out, infos)

    def close(self) -> None:
        """Release the memory. The start of the next episode is lost."""
        self.drive.close()
        self._is_next_made = False

    def _infos(self) -> list[dict[str, Any]]:
        """Return the info of each row's observation."""
        (episode,), (trial,) = self.drive.episodes, self.drive.trials.tolist()
        assert episode is not None  # the env samples
        return [
            {"active": is_active, "trial": trial, "scenario": episode.scenario, "episode_seed": np.uint64(episode.seed)}
            for is_active in self.drive.signals.active.tolist()
        ]


def with_final_observations(config: SimConfig) -> SimConfig:
    """Return the config with observe.final set."""
    return replace(config, observe=replace(config.observe, final=True))


def any_seed() -> int:
    """Return a random seed."""
    return secrets.randbits(63)


def observation_bounds(drive: DriveEnv) -> Floats:
    """Return the largest absolute value that each number of an observation can have, (size,)."""
    bounds = np.full(drive.observation_layout.size, CLIP, np.float32)
    reward = drive.config.reward
    weights = {"conditioning": [getattr(reward, term) for term in REWARD_TERMS], TERM_WEIGHTS: [*reward.terms.values()]}
    for block in drive.observation_layout.blocks:
        for feature, weight in zip(block.features, weights.get(block.name, ()), strict=False):
            most = float(np.abs(weight).max()) / feature.scale
            # Weights are drawn in float32, so rounding may exceed their range.
            bounds[block.column(feature.name)] = max(CLIP, most * (1 + 1e-6))
    return bounds


def require_known_options(options: Mapping[str, Any] | None) -> None:
    """Refuse unknown options of `reset`."""
    for name in options or {}:
        if name not in RESET_OPTIONS:
            near = get_close_matches(name, RESET_OPTIONS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"option {name!r} of reset is unknown; known: {', '.join(RESET_OPTIONS)}{hint}")


def _whole(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise UsageError(f"option {name!r} is {value!r}, expected a whole number") from None
