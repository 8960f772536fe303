"""Networks of co-players in training, with one batched forward pass per distinct checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.policy.checkpoint import Checkpoint, load_checkpoint
from roadworthy.policy.checkpoint_files import ABOUT, WEIGHTS
from roadworthy.policy.cores import Memory
from roadworthy.policy.fit import Fitting
from roadworthy.policy.spec import require_checkpoint
from roadworthy.sim.env import DriveEnv


class CoplayerNetworks:
    """Co-player policies by number; checkpoints with equal contents share a network. False if there are none."""

    def __init__(self, checkpoints: Sequence[str | Path], prepared: Callable[[Any], Any] = lambda step: step) -> None:
        """Load the checkpoints. prepared: Turns the step of a network into the function to call, e.g. compiles it."""
        self._paths = tuple(require_checkpoint(checkpoint, "a partner") for checkpoint in checkpoints)
        self._prepared = prepared
        self._digests: tuple[str, ...] = ()
        self._refused: tuple[str, ...] = ()  # contents that do not fit the env
        self._loaded: dict[str, Checkpoint] = {}
        self._drivers: dict[str, _Driver] = {}
        self._before: tuple[dict[str, Checkpoint], tuple[str, ...]] = {}, ()
        self.reread()

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def distinct(self) -> int:
        """Return the number of distinct checkpoints."""
        return len(set(self._digests))

    def reread(self) -> bool:
        """Load checkpoints that were replaced; return whether any was. Equal contents are loaded once.

        If a file can't be read, for example while it is being replaced, the loaded networks stay.
        """
        before = self._loaded, self._digests
        try:
            digests = tuple(map(_digest, self._paths))
            if digests in (self._digests, self._refused):
                return False
            files = dict(zip(digests, self._paths, strict=True))
            self._loaded = {d: self._loaded.get(d) or load_checkpoint(path) for d, path in files.items()}
        except RoadworthyError:
            if self._loaded:
                return False
            raise
        self._digests, self._before = digests, before
        return True

    def start(self, env: DriveEnv, device: torch.device) -> None:
        """Prepare for the rows of an env, with empty memories."""
        self._drivers = {}
        self.exchange(env, device)

    def exchange(self, env: DriveEnv, device: torch.device) -> None:
        """Use the networks that were loaded again; the others keep their memory.

        If a network does not fit the env, this raises an error and changes nothing.
        """
        try:
            drivers = {digest: self._driver(digest, env, device) for digest in self._loaded}
        except RoadworthyError:
            self._refused = self._digests
            self._loaded, self._digests = self._before
            raise
        for digest, driver in drivers.items():
            numbers = [k for k, other in enumerate(self._digests) if other == digest]
            driver.numbers = torch.tensor(numbers, device=device)
        self._drivers = drivers

    def _driver(self, digest: str, env: DriveEnv, device: torch.device) -> _Driver:
        """Return the driver for a content: the previous one, or a new one."""
        checkpoint = self._loaded[digest]
        if checkpoint.policy.choices != env.action_choices:
            raise UsageError(
                f"partner {checkpoint.path} has the action choices {checkpoint.policy.choices}, but the env has "
                f"{env.action_choices} (None: continuous)"
            )
        return self._drivers.get(digest) or _Driver(checkpoint, env, device, self._prepared)

    def act(
        self, driven: Tensor, observations: Tensor, mine: Tensor, partner: Tensor, noise: Tensor, conditioning: Tensor
    ) -> Tensor:
        """Return (R, 2) actions, with those of co-players replaced.

        driven: (R, 2) actions so far.
        mine: (R,) active rows of co-players.
        partner: (R,) the number of the co-player policy of each row.
        noise: (R, 2) uniform, to draw from.
        conditioning: (R, 2) uniform, constant in a row's episode: places in the ranges of conditioning.
        """
        for driver in self._drivers.values():
            driven = driver.act(driven, observations, mine & torch.isin(partner, driver.numbers), noise, conditioning)
        return driven

    def reset(self, mask: Tensor) -> None:
        """Clear the memory of rows whose episodes have ended."""
        for driver in self._drivers.values():
            driver.policy.reset(driver.memory, mask)

    @property
    def memories(self) -> dict[str, Memory]:
        """The memory of each network, by the hash of its checkpoint."""
        return {digest: driver.memory for digest, driver in self._drivers.items()}


class _Driver:
    """A distinct network and its memory of all rows."""

    numbers: Tensor  # of the co-player policies that use it

    def __init__(
        self, checkpoint: Checkpoint, env: DriveEnv, device: torch.device, prepared: Callable[[Any], Any]
    ) -> None:
        self.policy = checkpoint.policy.to(device)
        self._step = prepared(self.policy.step)
        self.memory = self.policy.memory(env.row_count)
        self._fit = Fitting(env.observation_layout, self.policy.layout, device)
        self._conditioning_count = len(self.policy.config.conditioning.names)

    def act(self, driven: Tensor, observations: Tensor, mine: Tensor, noise: Tensor, conditioning: Tensor) -> Tensor:
        theirs = conditioning[:, : self._conditioning_count] if self._conditioning_count else None
        output = self._step(self._fit(observations), mine, self.memory, theirs)
        actions = self.policy.head.to_env(self.policy.head.sample(output.logits, noise))
        return torch.where(mine[:, None], actions, driven)


def _digest(path: Path) -> str:
    folder = path.parent if path.name in (WEIGHTS, ABOUT) else path
    digest = hashlib.sha256()
    for name in (WEIGHTS, ABOUT):
        try:
            digest.update((folder / name).read_bytes())
        except OSError as error:
            raise UsageError(f"partner {path} can't be read: {error.strerror}; expected a checkpoint") from error
    return digest.hexdigest()
