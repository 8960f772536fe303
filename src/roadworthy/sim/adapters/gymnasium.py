"""DriveEnv for Gymnasium: one agent as an Env, many as a VectorEnv, and both as `roadworthy/Drive-v0`.

Signals become Gymnasium's here: terminated is episode_ended without timed_out, truncated is both. An episode is all of
its trials; only info reports the end of a trial. With `goal.at_goal = "continue"` an agent that has reached its goals
is terminated, not truncated, when the time is up, because its task is complete.

Every info has `active` (whether the observation is valid; if not, it is 0 and the action has no effect), `trial` (the
number of the observation's trial), `trial_ended` and `timed_out` (of the step), `scenario` (its number in the pack) and
`episode_seed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Floats
from roadworthy.sim.adapters import one_world
from roadworthy.sim.adapters.one_world import OneWorld
from roadworthy.sim.config import Control, ControlConfig, SimConfig
from roadworthy.sim.env import DriveEnv

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise UsageError(f"Gymnasium 1.1 or later can't be imported ({error}); pip install 'roadworthy[gym]'") from error

ENV_ID = "roadworthy/Drive-v0"


class DriveGymEnv(gymnasium.Env[Floats, NDArray[Any]]):
    """One agent in one world.

    The step that ends an episode returns the last observation; then call `reset`. With `goal.at_goal = "respawn"` the
    next episode continues in the same world if its agent finds a free place.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        pack: Pack | str | Path,
        config: SimConfig | None = None,
        *,
        seed: int | None = None,
        scenarios: Sequence[int] | None = None,
        first_world: int = 0,
        world_total: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Make the world.

        config: by default only the self-driving car is driven.
        seed: of the run, until `reset` gets one; by default a random one, as usual in Gymnasium.
        scenarios: numbers of the pack's scenarios to draw from; all by default.
        first_world, world_total: which world of a run this is, if several envs share the run.
        """
        if render_mode is not None:
            raise UsageError(f"render_mode is {render_mode!r}, but this env does not render; leave it as None")
        config = config or one_ego()
        self._world = OneWorld(
            pack, config, seed=seed, scenarios=scenarios, first_world=first_world, world_total=world_total
        )
        self.drive = self._world.drive
        if self.drive.row_count != 1:
            raise UsageError(
                f"this config drives up to {self.drive.row_count} agents of a world, but DriveGymEnv only one; set "
                "control.who = 'sdc', control.rows = 1 or (open worlds) open.agents = 1, "
                "or use DriveVectorEnv or DriveParallelEnv"
            )
        self.render_mode = None
        self.observation_space = observation_space(self.drive)
        self.action_space = action_space(self.drive)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start the next episode. A seed restarts the run.

        options: `scenario` (number in the pack) and `episode_seed` (0 by default) choose the episode.
        """
        super().reset(seed=seed)
        one_world.require_known_options(options)
        observations, (info,) = self._world.reset(seed, options)
        return observations[0], info

    def step(self, action: NDArray[Any]) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Make a step of the world."""
        outcome = self._world.step(np.asarray(action)[None])
        return (
            outcome.observations[0],
            float(outcome.rewards[0]),
            bool(outcome.terminated[0]),
            bool(outcome.truncated[0]),
            outcome.infos[0],
        )

    def close(self) -> None:
        """Release the memory."""
        self._world.close()


class DriveVectorEnv(gymnasium.vector.VectorEnv[Floats, NDArray[Any], NDArray[Any]]):
    """Every row of a DriveEnv as a sub-env: one per world if each drives one agent, else one per agent slot.

    A sub-env whose episode ended starts the next one in the same step; `final_obs` and `final_info` describe the end.
    If several agents share a world, an agent whose episode ended waits for the next episode of the world, and so does a
    slot without an agent: such a sub-env is inactive, with observation 0 and reward 0, and nothing ends for it.
    Learners should leave out steps that `info["active"]` marks as inactive. `drive.roles` says which agents
    are egos and which are co-players.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        pack: Pack | str | Path,
        worlds: int = 64,
        config: SimConfig | None = None,
        *,
        seed: int | None = None,
        threads: int | None = None,
        scenarios: Sequence[int] | None = None,
        first_world: int = 0,
        world_total: int | None = None,
    ) -> None:
        """Make the worlds. Arguments are those of DriveEnv; the default seed is random."""
        self.drive = DriveEnv(
            pack,
            worlds,
            one_world.with_final_observations(config or SimConfig()),
            seed=one_world.any_seed() if seed is None else seed,
            threads=threads,
            scenarios=scenarios,
            first_world=first_world,
            world_total=world_total,
        )
        self.num_envs = self.drive.row_count
        self.single_observation_space = observation_space(self.drive)
        self.single_action_space = action_space(self.drive)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start a new episode in every world. A seed, one for all worlds, restarts the run.

        options: `scenario` and `episode_seed`, with one number per world, choose the episodes.
        """
        if seed is not None and not isinstance(seed, int | np.integer):
            raise UsageError(f"the seed is {seed!r}, expected one whole number: all worlds share a run's seed")
        super().reset(seed=seed)
        one_world.require_known_options(options)
        self._assign(options or {})
        observations = self.drive.reset(seed).copy()
        return observations, self._with_masks(self._info() | self._flags(np.zeros(self.num_envs, np.bool_)))

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make a step of every world."""
        before = self._info()
        observations, rewards, signals = self.drive.step(actions)
        ended = signals.episode_ended.copy()
        info: dict[str, Any] = self._with_masks(self._info() | self._flags(~ended))
        if ended.any():
            final = np.full(self.num_envs, None, object)
            for row in np.flatnonzero(ended).tolist():
                # A row that waited for its trial to end has no last observation.
                last = self.drive.final_observation[row]
                final[row] = last.copy() if before["active"][row] else np.zeros_like(last)
            of_ended = {name: np.where(ended, values, 0).astype(values.dtype) for name, values in before.items()}
            info |= {
                "final_obs": final,
                "_final_obs": ended.copy(),
                "final_info": self._with_masks(of_ended | self._flags(ended), ended),
                "_final_info": ended.copy(),
            }
        timed_out = signals.timed_out
        return observations.copy(), rewards.astype(np.float64), ended & ~timed_out, ended & timed_out, info

    def close_extras(self, **kwargs: Any) -> None:
        """Release the memory."""
        self.drive.close()

    def _assign(self, options: Mapping[str, Any]) -> None:
        if not options:
            return
        count = self.drive.world_count
        given = {name: np.asarray(values) for name, values in options.items()}
        scenarios = given.get("scenario")
        seeds = given.get("episode_seed", np.zeros(count, np.uint64))
        if scenarios is None:
            raise UsageError("options name episode_seed but no scenario; name the scenarios too")
        for name, values in (("scenario", scenarios), ("episode_seed", seeds)):
            if values.shape != (count,) or values.dtype.kind not in "iu":
                raise UsageError(f"option {name!r} is {options[name]!r}, expected {count} whole numbers, one per world")
        for world, (scenario, episode_seed) in enumerate(zip(scenarios.tolist(), seeds.tolist(), strict=True)):
            self.drive.assign(world, scenario, episode_seed)

    def _info(self) -> dict[str, NDArray[Any]]:
        """Return the info of each row's observation."""
        drive = self.drive
        episodes = [episode for episode in drive.episodes if episode is not None]  # the env samples, so none is missing
        worlds = drive.world_of_row
        return {
            "active": drive.signals.active.copy(),
            "trial": drive.trials.astype(np.int64)[worlds],
            "scenario": np.array([episode.scenario for episode in episodes], np.int64)[worlds],
            "episode_seed": np.array([episode.seed for episode in episodes], np.uint64)[worlds],
        }

    def _flags(self, rows: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """Return the signals of the step for some rows."""
        signals = self.drive.signals
        return {"trial_ended": signals.trial_ended & rows, "timed_out": signals.timed_out & rows}

    def _with_masks(
        self, info: dict[str, NDArray[Any]], rows: NDArray[np.bool_] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Add the masks that say which rows have each entry, as Gymnasium does."""
        has_value = np.ones(self.num_envs, np.bool_) if rows is None else rows
        return info | {f"_{name}": has_value.copy() for name in info}


def one_ego() -> SimConfig:
    """Return the default config of an env: only the self-driving car is driven."""
    return SimConfig(control=ControlConfig(who=Control.SDC))


def observation_space(drive: DriveEnv) -> spaces.Space[Any]:
    """Return the space of one row's observations."""
    bounds = one_world.observation_bounds(drive)
    return spaces.Box(-bounds, bounds, dtype=np.float32)


def action_space(drive: DriveEnv) -> spaces.Space[Any]:
    """Return the space of one row's actions."""
    choices = drive.action_choices
    return spaces.Box(-1.0, 1.0, (2,), np.float32) if choices is None else spaces.MultiDiscrete(list(choices))


def make_vector(num_envs: int, pack: Pack | str | Path, config: SimConfig | None = None, **rest: Any) -> DriveVectorEnv:
    """Make one sub-env per world, for gymnasium.make_vec."""
    envs = DriveVectorEnv(pack, num_envs, config or one_ego(), **rest)
    if envs.num_envs != num_envs:
        raise UsageError(
            f"{ENV_ID} is one agent per world, but this config drives up to {envs.drive.rows_per_world}; "
            "make a DriveVectorEnv instead"
        )
    return envs


if ENV_ID not in gymnasium.registry:
    gymnasium.register(ENV_ID, entry_point=f"{__name__}:DriveGymEnv", vector_entry_point=f"{__name__}:make_vector")
