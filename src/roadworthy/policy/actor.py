"""Actors: whoever chooses the actions of an env's rows, step by step: networks, experts, anybody's class.

An actor's memory and draws belong to the episodes of the rows, never to their place in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.errors import UsageError
from roadworthy.policy import noise
from roadworthy.policy.checkpoint import load_policy
from roadworthy.policy.experts import DriveExpert, LogExpert
from roadworthy.policy.fit import Fitting
from roadworthy.policy.network import Output, Policy
from roadworthy.sim.env import DriveEnv

BASELINES = Path(__file__).parents[1] / "baselines"
BLOCK = 256  # rows that a network handles at once on a GPU


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


class NeuralActor:
    """Lets a network drive.

    It handles rows in blocks of one size. On a CPU a block is a world: how a matrix product rounds depends on a row's
    place in it (with some shapes, on several cores with nearly all), and an agent's place in its world is the only one
    that does not depend on what else runs. A GPU needs larger blocks to be of use.
    """

    def __init__(
        self,
        policy: Policy,
        name: str = "policy",
        *,
        is_greedy: bool = False,
        device: str = "cpu",
        traits: Mapping[str, float] | None = None,
    ) -> None:
        """Drive with a policy.

        is_greedy: take the likeliest action instead of drawing one.
        traits: values of traits (see policy/config.py); those that are not given are drawn for each agent and episode.
        """
        self.name, self.device, self._is_greedy = name, torch.device(device), is_greedy
        self.policy = policy.to(self.device).eval()
        self._traits = _trait_places(policy, traits or {})

    def start(self, env: DriveEnv) -> None:
        if env.action_choices != self.policy.choices:
            raise UsageError(
                f"policy {self.name!r} chooses among {self.policy.choices}, the env among {env.action_choices} "
                "(None: continuous); set env.model and env.actions to what it was trained with"
            )
        self._fit = Fitting(env.observation_layout, self.policy.layout, self.device)
        self._rows = env.row_count
        self._block = env.rows_per_world if self.device.type == "cpu" else BLOCK
        self._memories = [self.policy.memory(self._block) for _ in range(0, self._rows, self._block)]
        self._agents = torch.arange(env.row_count, device=self.device) % env.rows_per_world

    @torch.no_grad()
    def act(
        self, observations: Any, active: Any, episode_seeds: NDArray[np.uint64], episode_steps: NDArray[np.int64]
    ) -> Any:
        seen = self._fit(torch.as_tensor(observations, device=self.device))
        is_active = torch.as_tensor(active, device=self.device).bool()
        seeds = torch.from_numpy(np.ascontiguousarray(episode_seeds).view(np.int64)).to(self.device)
        steps = torch.as_tensor(episode_steps, device=self.device)
        keys = noise.keys_of(seeds, self._agents)
        uniform = noise.uniform(keys, steps, noise.ACTION)
        traits = self._told(keys)
        actions = torch.zeros(self._rows, 2, device=self.device)
        head = self.policy.head
        for k, rows in enumerate(self._slices()):
            if self._is_at_rest(k, is_active[rows]):
                continue
            told = None if traits is None else self._padded(traits[rows])
            scores = self._step(k, self._padded(seen[rows]), self._padded(is_active[rows]), told).scores
            chosen = head.greedy(scores) if self._is_greedy else head.sample(scores, self._padded(uniform[rows]))
            actions[rows] = head.to_env(chosen)[: rows.stop - rows.start]
        return actions.numpy() if self.device.type == "cpu" else actions

    def reset(self, mask: NDArray[np.bool_]) -> None:
        ended = torch.as_tensor(mask, device=self.device).bool()
        for memory, rows in zip(self._memories, self._slices(), strict=True):
            self.policy.reset(memory, self._padded(ended[rows]))

    def _slices(self) -> list[slice]:
        """The rows of each block."""
        starts = range(0, self._rows, self._block)
        return [slice(start, min(start + self._block, self._rows)) for start in starts]

    def _is_at_rest(self, block: int, active: Tensor) -> bool:
        """Whether nobody is there and nothing is remembered: then a step changes nothing. A GPU is not asked."""
        return self.device.type == "cpu" and not active.any() and not self._memories[block].length.any()

    def _step(self, block: int, seen: Tensor, active: Tensor, traits: Tensor | None) -> Output:
        """One step of a block of rows, which its memory keeps."""
        return self.policy.step(seen, active, self._memories[block], traits)

    def _padded(self, rows: Tensor) -> Tensor:
        """Rows of a block, filled up with zeros to its size: a tensor of their own, for rounding depends on where in
        memory a matrix begins too."""
        whole = rows.new_zeros(self._block, *rows.shape[1:])
        whole[: len(rows)] = rows
        return whole

    def _told(self, keys: Tensor) -> Tensor | None:
        """(rows, traits) the traits of each row, as places in their ranges; drawn once for each agent and episode."""
        if not self._traits:
            return None
        drawn = noise.uniform(keys, 0, noise.TRAIT, len(self._traits))
        given = [float("nan") if place is None else place for place in self._traits]
        fixed = torch.tensor(given, device=keys.device)
        return torch.where(fixed.isnan(), drawn, fixed)


class ScriptedActor:
    """Lets one of the experts drive."""

    def __init__(self, name: str, expert: type[DriveExpert] | type[LogExpert], **options: Any) -> None:
        self.name, self._expert, self._options = name, expert, options

    def start(self, env: DriveEnv) -> None:
        self._driver = self._expert(env, **self._options)

    def act(self, observations: Any, active: Any, episode_seeds: Any, episode_steps: Any) -> Any:
        return self._driver.act()

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Experts see for themselves when an episode ended."""


class BlindActor:
    """Acts without looking: at random, or by the choices that do nothing."""

    def __init__(self, name: str, *, is_random: bool) -> None:
        self.name, self._is_random = name, is_random

    def start(self, env: DriveEnv) -> None:
        self._choices = env.action_choices
        self._agents = torch.arange(env.row_count) % env.rows_per_world

    def act(self, observations: Any, active: Any, episode_seeds: Any, episode_steps: Any) -> Any:
        if not self._is_random:
            middle = [0.0, 0.0] if self._choices is None else [(n - 1) // 2 for n in self._choices]
            return np.tile(np.asarray(middle, np.float32), (len(self._agents), 1))
        seeds = torch.from_numpy(np.ascontiguousarray(episode_seeds).view(np.int64))
        keys = noise.keys_of(seeds, self._agents)
        drawn = noise.uniform(keys, torch.as_tensor(episode_steps), noise.ACTION).numpy()
        return 2.0 * drawn - 1.0 if self._choices is None else np.floor(drawn * np.asarray(self._choices))

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """There is nothing to forget."""


def load_actor(
    spec: str, *, is_greedy: bool = False, device: str = "cpu", traits: Mapping[str, float] | None = None
) -> Actor:
    """The actor that a word names.

    spec: a checkpoint's folder, "baseline:NAME", "random", "zero", "expert:drive", "expert:log", or "module:Class".
    """
    scripted: dict[str, Callable[[], Actor]] = {
        "random": lambda: BlindActor("random", is_random=True),
        "zero": lambda: BlindActor("zero", is_random=False),
        "expert:drive": lambda: ScriptedActor("expert-drive", DriveExpert),
        "expert:oracle": lambda: ScriptedActor("expert-oracle", DriveExpert, knows_gains=True),
        "expert:log": lambda: ScriptedActor("expert-log", LogExpert),
    }
    if spec in scripted:
        return scripted[spec]()
    if spec.startswith("baseline:"):
        names = sorted(path.name for path in BASELINES.glob("*/"))
        if spec.partition(":")[2] not in names:
            raise UsageError(f"there is no {spec!r}; known baselines: {', '.join(names) or 'none'}")
        spec = str(BASELINES / spec.partition(":")[2])
    elif ":" in spec and not spec.startswith("expert:") and not Path(spec).expanduser().exists():
        return _made_by(spec)
    elif not Path(spec).expanduser().exists():
        raise UsageError(
            f"policy {spec!r} is no checkpoint; expected a checkpoint's folder, baseline:NAME, "
            f"{', '.join(scripted)}, or module:Class"
        )
    checkpoint = load_policy(spec)
    return NeuralActor(checkpoint.policy, checkpoint.path.name, is_greedy=is_greedy, device=device, traits=traits)


def _made_by(spec: str) -> Actor:
    """An actor of somebody's own: `module:Class`, called without arguments."""
    module, _, name = spec.partition(":")
    try:
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"policy {spec!r} can't be imported: {error}; expected module:Class") from error


def _trait_places(policy: Policy, given: Mapping[str, float]) -> list[float | None]:
    """Where in its range each trait lies, from 0 to 1; None for one that is drawn."""
    names = policy.config.traits.names
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise UsageError(f"trait {unknown[0]!r} is unknown to this policy; it has: {', '.join(names) or 'none'}")
    places: list[float | None] = []
    for name in names:
        low, high = getattr(policy.config.traits, name)
        if name in given and not low <= given[name] <= high:
            raise UsageError(f"trait {name} is {given[name]}, expected {low} to {high}, as it was trained")
        places.append((given[name] - low) / (high - low) if name in given else None)
    return places
