"""The policy of a network, which computes in blocks of rows whose size never changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.errors import UsageError
from roadworthy.policy import draws
from roadworthy.policy.fit import Fitting
from roadworthy.policy.network import Output, PolicyNetwork
from roadworthy.policy.per_world import require_drive_env
from roadworthy.policy.protocol import Array, Batch, PolicyInfo

BLOCK = 256  # rows of a batch on a GPU


class NeuralPolicy:
    """Drives with a network.

    It computes in blocks of one size, because the rounding of a matrix product depends on its shape and on a row's
    place in it. On a CPU a block is a world: an agent's place in its world does not depend on what else runs. A GPU
    needs larger blocks to be efficient.
    """

    needs_drive_env = True

    def __init__(
        self,
        policy: PolicyNetwork,
        name: str = "policy",
        *,
        is_greedy: bool = False,
        device: str = "cpu",
        conditioning: Mapping[str, float] | None = None,
    ) -> None:
        """Choose the network.

        name: for errors.
        is_greedy: take the most likely action instead of drawing one.
        conditioning: values of conditioning (see policy/config.py); others are drawn for each agent and episode.
        """
        self.name, self.device, self._is_greedy = name, torch.device(device), is_greedy
        self.policy = policy.to(self.device).eval()
        self._conditioning = policy.config.conditioning.places(conditioning or {})

    def start(self, info: PolicyInfo) -> None:
        env = require_drive_env(self.name, info)
        if env.action_choices != self.policy.choices:
            raise UsageError(
                f"policy {self.name!r} has the action choices {self.policy.choices}, but the env has "
                f"{env.action_choices} (None: continuous); set env.model and env.actions to what it was trained with"
            )
        self._fit = Fitting(env.observation_layout, self.policy.layout, self.device)
        self._rows = env.row_count
        self._block = env.rows_per_world if self.device.type == "cpu" else BLOCK
        self._memories = [self.policy.memory(self._block) for _ in range(0, self._rows, self._block)]
        self._agents = torch.arange(env.row_count, device=self.device) % env.rows_per_world

    @torch.no_grad()
    def act(self, batch: Batch) -> Array:
        seen = self._fit(torch.as_tensor(batch.observations, device=self.device))
        is_active = torch.as_tensor(batch.active, device=self.device).bool()
        seeds = torch.from_numpy(np.ascontiguousarray(batch.seeds).view(np.int64)).to(self.device)
        steps = torch.as_tensor(batch.steps, device=self.device)
        keys = draws.keys_of(seeds, self._agents)
        uniform = draws.uniform(keys, steps, draws.ACTION)
        conditioning = self._told(keys)
        actions = torch.zeros(self._rows, 2, device=self.device)
        head = self.policy.head
        for k, rows in enumerate(self._slices()):
            if self._is_at_rest(k, is_active[rows]):
                continue
            given = None if conditioning is None else self._padded(conditioning[rows])
            logits = self._step(k, self._padded(seen[rows]), self._padded(is_active[rows]), given).logits
            chosen = head.greedy(logits) if self._is_greedy else head.sample(logits, self._padded(uniform[rows]))
            actions[rows] = head.to_env(chosen)[: rows.stop - rows.start]
        return actions.numpy() if self.device.type == "cpu" else actions

    def reset(self, rows: NDArray[np.bool_]) -> None:
        ended = torch.as_tensor(rows, device=self.device).bool()
        for memory, block in zip(self._memories, self._slices(), strict=True):
            self.policy.reset(memory, self._padded(ended[block]))

    def _slices(self) -> list[slice]:
        """Return the rows of each block."""
        starts = range(0, self._rows, self._block)
        return [slice(start, min(start + self._block, self._rows)) for start in starts]

    def _is_at_rest(self, block: int, active: Tensor) -> bool:
        """Return whether no row is active and the memory is empty, so that a step changes nothing; never on a GPU."""
        return self.device.type == "cpu" and not active.any() and not self._memories[block].length.any()

    def _step(self, block: int, seen: Tensor, active: Tensor, conditioning: Tensor | None) -> Output:
        """Return the output of one step of a block, and update its memory."""
        return self.policy.step(seen, active, self._memories[block], conditioning)

    def _padded(self, rows: Tensor) -> Tensor:
        """Return the rows of a block, padded with zeros to its size, as a new tensor.

        Rounding also depends on the memory alignment of a matrix.
        """
        whole = rows.new_zeros(self._block, *rows.shape[1:])
        whole[: len(rows)] = rows
        return whole

    def _told(self, keys: Tensor) -> Tensor | None:
        """(rows, conditioning) places in the ranges, drawn once for each agent and episode."""
        if not self._conditioning:
            return None
        drawn = draws.uniform(keys, 0, draws.CONDITIONING, len(self._conditioning))
        given = [float("nan") if place is None else place for place in self._conditioning]
        fixed = torch.tensor(given, device=keys.device)
        return torch.where(fixed.isnan(), drawn, fixed)
