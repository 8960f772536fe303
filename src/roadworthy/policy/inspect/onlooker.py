"""Onlooker: an actor that drives as the policy does, and keeps what went on in it for some of its agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from roadworthy.errors import UsageError
from roadworthy.policy.cores.transformer import TransformerMemory
from roadworthy.policy.heads import ContinuousHead, PartsHead
from roadworthy.policy.inspect.attention import look, without_mask
from roadworthy.policy.inspect.record import Inspection, StepRecord
from roadworthy.policy.network import Output, Policy
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.per_world import require_drive_env
from roadworthy.policy.protocol import Array, Batch, PolicyInfo
from roadworthy.sim.state import EGO


class Onlooker(NeuralPolicy):
    """Drives one world. Its network steps exactly as that of a NeuralPolicy; looking on changes nothing."""

    def __init__(
        self,
        policy: Policy,
        name: str = "policy",
        *,
        agents: Sequence[int] | None = None,
        steps: int | None = None,
        is_greedy: bool = False,
    ) -> None:
        """Drive, and look on.

        agents: numbers of egos in the world; the first one by default.
        steps: how many are kept; all by default.
        """
        super().__init__(policy, name, is_greedy=is_greedy)
        self._wanted = None if agents is None else tuple(agents)
        self._most = steps
        self._agents_looked_at: tuple[int, ...] = ()
        self._records: dict[int, list[StepRecord]] = {}
        self._attempts = np.zeros(0, np.int64)
        self._made: list[StepRecord] = []  # of the step that is under way

    def start(self, info: PolicyInfo) -> None:
        env = require_drive_env(self.name, info)
        if env.world_count != 1:
            raise UsageError(f"an onlooker drives one world, and was given {env.world_count}")
        super().start(info)
        self._env = env
        self._records = {}
        self._attempts = np.zeros(env.row_count, np.int64)

    @property
    def inspections(self) -> dict[int, Inspection]:
        """What went on, by agent."""
        return {agent: Inspection.of(agent, records) for agent, records in self._records.items()}

    def act(self, batch: Batch) -> Array:
        self._made = []
        actions = super().act(batch)
        for record in self._made:
            record.action = actions[record.agent].copy()
            self._records.setdefault(record.agent, []).append(record)
        return actions

    def reset(self, rows: NDArray[np.bool_]) -> None:
        super().reset(rows)
        if self._records:  # what is cleared before the first step was nobody's
            self._attempts += rows

    def _step(self, block: int, seen: Tensor, active: Tensor, traits: Tensor | None) -> Output:
        if not self._records:
            self._agents_looked_at = self._choose()
        is_kept = self._most is None or all(len(records) < self._most for records in self._records.values())
        memory = self._memories[block]
        rows = torch.tensor(self._agents_looked_at)
        before = type(memory)(*(tensor[rows] for tensor in memory))
        output = super()._step(block, seen, active, traits)
        if is_kept:
            told = None if traits is None else traits[rows]
            self._keep(seen[rows], active[rows], before, told, Output(*(part[rows] for part in output)))
        return output

    def _keep(self, seen: Tensor, active: Tensor, memory: Any, traits: Tensor | None, output: Output) -> None:
        """Note the step; both looks are of the same few rows, so that their difference is the mask's alone."""
        masked = look(self.policy, seen, active, memory, traits)
        free = masked
        if isinstance(memory, TransformerMemory):
            free = look(self.policy, seen, active, without_mask(memory), traits)
        entropy = self.policy.head.entropy(output.scores)
        apart = divergence(self.policy.head, masked.output.scores, free.output.scores)
        trial = int(self._env.trials[0])
        for k, agent in enumerate(self._agents_looked_at):
            self._made.append(
                StepRecord(
                    agent=agent,
                    trial=trial,
                    attempt=int(self._attempts[agent]),
                    is_active=bool(active[k]),
                    observation=seen[k].numpy().copy(),
                    scores=output.scores[k].numpy(),
                    entropy=float(entropy[k]),
                    value=float(output.values[k]),
                    cache_length=int(memory.length[k]),
                    sees=masked.sees[k].numpy(),
                    weights=masked.weights[k].numpy(),
                    free_sees=free.sees[k].numpy(),
                    free_weights=free.weights[k].numpy(),
                    free_value_change=float(free.output.values[k] - masked.output.values[k]),
                    free_divergence=float(apart[k]),
                )
            )

    def _choose(self) -> tuple[int, ...]:
        """The agents to look at, which must be egos of the scenario that runs."""
        egos = np.flatnonzero(self._env.roles == EGO).tolist()
        wanted = self._wanted if self._wanted is not None else tuple(egos[:1])
        wrong = [agent for agent in wanted if agent not in egos]
        if wrong or not wanted:
            given = f"agent {wrong[0]} was asked for" if wrong else "no agent was asked for"
            raise UsageError(f"{given}; the egos of this world are {', '.join(map(str, egos))}")
        return wanted


def divergence(head: nn.Module, scores: Tensor, others: Tensor) -> Tensor:
    """(R,) the Kullback-Leibler divergence of a head's distributions of actions from others, in nats."""
    if isinstance(head, ContinuousHead):
        # Deviations are the same for all.
        apart = (scores - others).chunk(2, -1)[0] * (-scores.chunk(2, -1)[1]).exp()
        return 0.5 * (apart * apart).sum(-1)
    sizes = head.choices if isinstance(head, PartsHead) else (scores.shape[-1],)
    parts = zip(scores.split(sizes, -1), others.split(sizes, -1), strict=True)
    logs = [(one.log_softmax(-1), other.log_softmax(-1)) for one, other in parts]
    return torch.stack([(one.exp() * (one - other)).sum(-1) for one, other in logs]).sum(0).clamp(min=0.0)
