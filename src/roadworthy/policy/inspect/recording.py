"""A policy that records what happens inside a network for some of its agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from roadworthy.errors import UsageError
from roadworthy.policy.cores.transformer import TransformerMemory
from roadworthy.policy.heads import ContinuousHead, MultiDiscreteHead
from roadworthy.policy.inspect.attention import attend, without_mask
from roadworthy.policy.inspect.record import Inspection, StepRecord
from roadworthy.policy.network import Output, PolicyNetwork
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.per_world import require_drive_env
from roadworthy.policy.protocol import Array, Batch, PolicyInfo
from roadworthy.sim.state import EGO


class RecordingPolicy(NeuralPolicy):
    """Acts in one world exactly as a NeuralPolicy, and records."""

    def __init__(
        self,
        policy: PolicyNetwork,
        name: str = "policy",
        *,
        agents: Sequence[int] | None = None,
        steps: int | None = None,
        is_greedy: bool = False,
    ) -> None:
        """Wrap a network.

        agents: Numbers of egos in the world; the first one by default.
        steps: Number of steps to record; all by default.
        """
        super().__init__(policy, name, is_greedy=is_greedy)
        self._requested = None if agents is None else tuple(agents)
        self._max_steps = steps
        self._recorded_agents: tuple[int, ...] = ()
        self._records: dict[int, list[StepRecord]] = {}
        self._attempts = np.zeros(0, np.int64)
        self._current: list[StepRecord] = []  # of the current step

    def start(self, info: PolicyInfo) -> None:
        env = require_drive_env(self.name, info)
        if env.world_count != 1:
            raise UsageError(f"inspection needs one world, but the env has {env.world_count}")
        super().start(info)
        self._env = env
        self._records = {}
        self._attempts = np.zeros(env.row_count, np.int64)

    @property
    def inspections(self) -> dict[int, Inspection]:
        """The records by agent."""
        return {agent: Inspection.of(agent, records) for agent, records in self._records.items()}

    def act(self, batch: Batch) -> Array:
        self._current = []
        actions = super().act(batch)
        for record in self._current:
            record.action = actions[record.agent].copy()
            self._records.setdefault(record.agent, []).append(record)
        return actions

    def reset(self, rows: NDArray[np.bool_]) -> None:
        super().reset(rows)
        if self._records:  # memory that is cleared before the first step belongs to no attempt
            self._attempts += rows

    def _step(self, block: int, seen: Tensor, active: Tensor, conditioning: Tensor | None) -> Output:
        if not self._records:
            self._recorded_agents = self._choose()
        is_recorded = self._max_steps is None or all(
            len(records) < self._max_steps for records in self._records.values()
        )
        memory = self._memories[block]
        rows = torch.tensor(self._recorded_agents)
        before = type(memory)(*(tensor[rows] for tensor in memory))
        output = super()._step(block, seen, active, conditioning)
        if is_recorded:
            places = None if conditioning is None else conditioning[rows]
            self._record(seen[rows], active[rows], before, places, Output(*(part[rows] for part in output)))
        return output

    def _record(self, seen: Tensor, active: Tensor, memory: Any, conditioning: Tensor | None, output: Output) -> None:
        """Record the step, with and without the mask. Both run on the same rows, so that only the mask differs."""
        masked = attend(self.policy, seen, active, memory, conditioning)
        free = masked
        if isinstance(memory, TransformerMemory):
            free = attend(self.policy, seen, active, without_mask(memory), conditioning)
        entropy = self.policy.head.entropy(output.logits)
        kl = divergence(self.policy.head, masked.output.logits, free.output.logits)
        trial = int(self._env.trials[0])
        for k, agent in enumerate(self._recorded_agents):
            self._current.append(
                StepRecord(
                    agent=agent,
                    trial=trial,
                    attempt=int(self._attempts[agent]),
                    is_active=bool(active[k]),
                    observation=seen[k].numpy().copy(),
                    scores=output.logits[k].numpy(),
                    entropy=float(entropy[k]),
                    value=float(output.values[k]),
                    cache_length=int(memory.length[k]),
                    sees=masked.sees[k].numpy(),
                    weights=masked.weights[k].numpy(),
                    free_sees=free.sees[k].numpy(),
                    free_weights=free.weights[k].numpy(),
                    free_value_change=float(free.output.values[k] - masked.output.values[k]),
                    free_divergence=float(kl[k]),
                )
            )

    def _choose(self) -> tuple[int, ...]:
        """Return the agents to record, which must be egos of the current scenario."""
        egos = np.flatnonzero(self._env.roles == EGO).tolist()
        wanted = self._requested if self._requested is not None else tuple(egos[:1])
        wrong = [agent for agent in wanted if agent not in egos]
        if wrong or not wanted:
            given = f"agent {wrong[0]} is not an ego" if wrong else "no agent is given"
            raise UsageError(f"{given}; the egos of this world are {', '.join(map(str, egos))}")
        return wanted


def divergence(head: nn.Module, logits: Tensor, others: Tensor) -> Tensor:
    """Return (R,) the Kullback-Leibler divergence of action distributions from others, in nats."""
    if isinstance(head, ContinuousHead):
        # Standard deviations are equal.
        z = (logits - others).chunk(2, -1)[0] * (-logits.chunk(2, -1)[1]).exp()
        return 0.5 * (z * z).sum(-1)
    sizes = head.choices if isinstance(head, MultiDiscreteHead) else (logits.shape[-1],)
    parts = zip(logits.split(sizes, -1), others.split(sizes, -1), strict=True)
    logs = [(one.log_softmax(-1), other.log_softmax(-1)) for one, other in parts]
    return torch.stack([(one.exp() * (one - other)).sum(-1) for one, other in logs]).sum(0).clamp(min=0.0)
