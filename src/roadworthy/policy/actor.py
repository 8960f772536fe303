"""Actors: whoever chooses the actions of an env's rows, step by step: networks, experts, anybody's class.

An actor's memory and draws belong to the episodes of the rows, never to their place in the batch. Importing this module
does not import torch, which takes seconds: only who drives with it waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy.experts import DriveExpert, LaneFollower, LogExpert
from roadworthy.policy.spec import BASELINE, BASELINES, checkpoint_folder, is_reserved
from roadworthy.sim.env import DriveEnv


class Actor(Protocol):
    """Drives the rows of one env."""

    name: str

    def start(self, env: DriveEnv) -> None:
        """Get ready to drive an env; called before its first step."""

    def act(
        self, observations: Any, active: Any, episode_seeds: NDArray[np.uint64], episode_steps: NDArray[np.int64]
    ) -> Any:
        """(rows, 2) an action for every row.

        episode_seeds, episode_steps: (rows,) the seed of the episode of the row's world, and the steps made in it.
        """

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget all about these rows: their episodes have ended."""


class ScriptedActor:
    """Lets one of the experts drive."""

    def __init__(self, name: str, expert: type[DriveExpert | LaneFollower | LogExpert], **options: Any) -> None:
        self.name, self._expert, self._options = name, expert, options

    def start(self, env: DriveEnv) -> None:
        self._driver = self._expert(env, **self._options)

    def act(self, observations: Any, active: Any, episode_seeds: Any, episode_steps: Any) -> Any:
        return self._driver.act()

    def reset(self, mask: NDArray[np.bool_]) -> None:
        self._driver.reset(mask)


class BlindActor:
    """Acts without looking: at random, or by the choices that do nothing."""

    def __init__(self, name: str, *, is_random: bool) -> None:
        self.name, self._is_random = name, is_random

    def start(self, env: DriveEnv) -> None:
        self._choices, self._idle = env.action_choices, np.asarray(env.idle_action, np.float32)
        self._agents = np.arange(env.row_count) % env.rows_per_world

    def act(self, observations: Any, active: Any, episode_seeds: Any, episode_steps: Any) -> Any:
        if not self._is_random:
            return np.tile(self._idle, (len(self._agents), 1))
        drawn = _drawn(episode_seeds, self._agents, episode_steps)
        return 2.0 * drawn - 1.0 if self._choices is None else np.floor(drawn * np.asarray(self._choices))

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """There is nothing to forget."""


def _drawn(seeds: NDArray[np.uint64], agents: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """(rows, 2) the draws that a network would choose its actions by."""
    import torch

    from roadworthy.policy import noise

    keys = noise.keys_of(torch.from_numpy(np.ascontiguousarray(seeds).view(np.int64)), torch.from_numpy(agents))
    drawn: NDArray[np.float32] = noise.uniform(keys, torch.as_tensor(steps), noise.ACTION).numpy()
    return drawn


def load_actor(
    spec: str, *, is_greedy: bool = False, device: str = "cpu", conditioning: Mapping[str, float] | None = None
) -> Actor:
    """The actor that a spec names.

    spec: a checkpoint's folder, "baseline:NAME", "random", "zero", "expert:drive", "expert:lane_follower",
        "expert:lane_keeper", "expert:log", or "module:Class". Reserved words come before folders of the same name; see
        policy.spec.
    """
    scripted: dict[str, Callable[[], Actor]] = {
        "random": lambda: BlindActor("random", is_random=True),
        "zero": lambda: BlindActor("zero", is_random=False),
        "expert:drive": lambda: ScriptedActor("expert-drive", DriveExpert),
        "expert:oracle": lambda: ScriptedActor("expert-oracle", DriveExpert, knows_gains=True),
        "expert:lane_follower": lambda: ScriptedActor("expert-lane-follower", LaneFollower),
        "expert:lane_keeper": lambda: ScriptedActor("expert-lane-keeper", LaneFollower, keeps_lane=True),
        "expert:log": lambda: ScriptedActor("expert-log", LogExpert),
    }
    if spec in scripted:
        return scripted[spec]()
    folder = checkpoint_folder(spec)
    if spec.startswith(BASELINE):
        names = sorted(path.name for path in BASELINES.glob("*/"))
        if spec.partition(":")[2] not in names:
            raise UsageError(f"there is no {spec!r}; known baselines: {', '.join(names) or 'none'}")
    elif ":" in spec and not is_reserved(spec) and not Path(spec).expanduser().exists():
        return _made_by(spec)
    elif folder is None or not folder.exists():
        raise UsageError(
            f"policy {spec!r} is no checkpoint; expected a checkpoint's folder, baseline:NAME, "
            f"{', '.join(scripted)}, or module:Class"
        )
    from roadworthy.policy.checkpoint import load_policy
    from roadworthy.policy.neural import NeuralActor

    assert folder is not None
    checkpoint = load_policy(folder)
    return NeuralActor(
        checkpoint.policy, checkpoint.path.name, is_greedy=is_greedy, device=device, conditioning=conditioning
    )


def _made_by(spec: str) -> Actor:
    """An actor of somebody's own: `module:Class`, called without arguments."""
    module, _, name = spec.partition(":")
    try:
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"policy {spec!r} can't be imported: {error}; expected module:Class") from error
