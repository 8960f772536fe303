"""Rollout: run the policy in the env and record segments for the learner; on a GPU nothing is copied to the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from roadworthy.policy import draws
from roadworthy.policy.config import ActionDistribution
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.network import PolicyNetwork
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import COPLAYER_POLICY, EGO, ROLE
from roadworthy.training.config import PpoConfig, Precision
from roadworthy.training.cuda_graph import CudaGraphRunner
from roadworthy.training.segment import RolloutBatch, make_segment


class Collector:
    """Collects one segment after another from an env. Memory is cleared where an episode ends, and nowhere else."""

    def __init__(
        self,
        env: DriveEnv,
        policy: PolicyNetwork,
        config: PpoConfig,
        coplayers: CoplayerNetworks,
        seed: int,
        first_row: int = 0,
    ) -> None:
        """Prepare rollouts; `first_row` is the number of this env's first row among those of all processes."""
        self.env, self.policy, self.coplayers = env, policy, coplayers
        self._config, self.device = config, policy.value.weight.device
        is_half = config.precision is Precision.BFLOAT16
        self._dtype = torch.bfloat16 if is_half else torch.float32
        self.memory, self._memory_before = (policy.memory(env.row_count, self._dtype) for _ in range(2))
        self._first_row = first_row
        rows = torch.arange(first_row, first_row + env.row_count, device=self.device)
        self._keys = draws.keys_of(seed, rows)
        self.clock = torch.zeros(1, dtype=torch.int64, device=self.device)  # steps of this env
        self.begun = torch.zeros_like(self.clock)  # the clock when the env's first episodes started
        self.episode_counts = torch.zeros(env.row_count, dtype=torch.int64, device=self.device)
        self.all_were_reset = False  # all worlds were reset since the last segment
        self._report: dict[str, float | None] = {}  # the env's latest report, until it is taken
        is_joint = policy.choices is not None and policy.config.actions is ActionDistribution.JOINT
        self._segment = make_segment(
            config.horizon,
            env.row_count,
            policy.layout.size,
            1 if is_joint else 2,
            len(policy.config.conditioning.names),
            self.device,
            # On a GPU the network rounds observations to this dtype anyway.
            self._dtype if self.device.type == "cuda" else torch.float32,
        )
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)
        # The trainer may replace these functions by their compiled forms.
        self.act: Callable[..., Any] = policy.step
        self.put: Callable[..., None] = put
        # From the second segment on, policy, draws and simulator are one CUDA graph.
        self._advance = CudaGraphRunner(self._step, self.device, config.horizon)

    def start(self) -> None:
        """Start all episodes of the env, with empty memories."""
        self.all_were_reset = True
        self.env.reset()
        self.policy.reset(self.memory, torch.ones(self.env.row_count, dtype=torch.bool, device=self.device))
        self.coplayers.start(self.env, self.device)
        self._advance.reset()

    def exchange_coplayers(self) -> None:
        """Switch to co-players whose files were replaced; the others keep their memory."""
        self.coplayers.exchange(self.env, self.device)
        self._advance.reset()

    @torch.no_grad()
    def collect(self) -> RolloutBatch:
        """Return the next segment, which overwrites the previous one."""
        was_reset = self._stagger_resets()
        if self.all_were_reset and int(self.clock) > 0:
            was_reset.fill_(True)
        self.all_were_reset = False
        for before, tensor in zip(self._memory_before, self.memory, strict=True):
            before.copy_(tensor)
        self._place.zero_()
        steps_before = int(self.clock)
        for step in range(1, self._config.horizon + 1):
            self._advance()
            self.env.step_count = steps_before + step  # a replayed CUDA graph does not count its steps
            self._report = self.env.report() or self._report
        with self._autocast():
            last_values = self._next_values(self._observations(), self._active(), self._conditioning())
        self._segment.last_values.copy_(last_values)
        self._segment.ratios.fill_(1.0)
        return RolloutBatch(self._segment, self._memory_before, was_reset)

    def take_report(self) -> dict[str, float | None]:
        """Return the env's latest report since the last call, and empty it; see DriveEnv.report."""
        report, self._report = self._report, {}
        return report

    def _stagger_resets(self) -> Tensor:
        """Reset some worlds before each of the first segments; return which rows those are, (R,).

        Worlds that start together would end together for the whole run, and losses would oscillate with them.
        """
        env, episode, horizon = self.env, self.env.config.episode, self._config.horizon
        segments = int(self.clock - self.begun) // horizon
        groups = (episode.trials * episode.trial_steps + horizon // 2) // horizon
        chosen = torch.zeros(env.world_count, dtype=torch.bool)
        if 0 < segments < groups:
            first_world = self._first_row // env.rows_per_world
            chosen = (first_world + torch.arange(env.world_count)) % groups == segments
        rows = chosen.repeat_interleave(env.rows_per_world).to(self.device)
        if chosen.any():
            env.begin(chosen.nonzero().flatten().tolist())
            self._clear_memory(rows)
        return rows

    def _clear_memory(self, ended: Tensor) -> None:
        """Clear the memory of rows whose episodes have ended."""
        self.policy.reset(self.memory, ended)
        self.coplayers.reset(ended)
        self.episode_counts.add_(ended)

    def _step(self) -> None:
        """Act, step the env, and record both at the current place of the segment."""
        env, head = self.env, self.policy.head
        observations, active, conditioning = self._observations(), self._active().clone(), self._conditioning()
        is_ego = self._flags()[ROLE] == EGO
        with self._autocast():
            output = self.act(observations, active, self.memory, conditioning)
        uniform = draws.uniform(self._keys, self.clock, draws.ACTION)
        actions = head.sample(output.logits, uniform)
        self._record(
            observations=observations,
            **({} if conditioning is None else {"conditioning": conditioning}),
            actions=actions,
            log_probs=head.log_prob(output.logits, actions),
            values=output.values,
            active=active,
            loss_mask=active & is_ego,
        )
        env_actions = head.to_env(actions)
        if self.coplayers:
            partner = self._clocks()[:, COPLAYER_POLICY].repeat_interleave(env.rows_per_world)
            theirs = draws.uniform(self._keys, self.episode_counts, draws.CONDITIONING)
            with self._autocast():
                env_actions = self.coplayers.act(env_actions, observations, active & ~is_ego, partner, uniform, theirs)
        env.step(env_actions.numpy() if self.device.type == "cpu" else env_actions)
        signals = env.signals
        ended, trial_ended, timed_out, active_now = (
            torch.as_tensor(x) for x in (signals.episode_ended, signals.trial_ended, signals.timed_out, signals.active)
        )
        self._record(
            rewards=torch.as_tensor(env.rewards),
            ended=ended,
            trial_ended=trial_ended,
            not_done=active_now & ~ended & ~trial_ended,
            final_values=self._final_values(timed_out, conditioning),
        )
        self._clear_memory(ended)
        self.clock.add_(1)
        self._place.add_(1)

    def _final_values(self, timed_out: Tensor, conditioning: Tensor | None) -> Tensor:
        """Return (R,) the value of the last observation where a timeout is bootstrapped, else 0."""
        if not self._config.bootstrap_timeouts:
            return torch.zeros_like(timed_out, dtype=torch.float32)
        last = torch.as_tensor(self.env.final_observation)
        with self._autocast():
            return torch.where(timed_out, self._next_values(last, timed_out, conditioning), 0.0)

    def _next_values(self, observations: Tensor, active: Tensor, conditioning: Tensor | None) -> Tensor:
        """Return (R,) values of the next observations, and leave the memory unchanged."""
        ended, repeated = torch.zeros_like(active), None if conditioning is None else conditioning[:, None]
        output = self.policy.sequence(observations[:, None], active[:, None], ended[:, None], self.memory, repeated)
        return output.values[:, 0]

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._config.precision is Precision.BFLOAT16)

    def _record(self, **columns: Tensor) -> None:
        self.put([getattr(self._segment, name) for name in columns], list(columns.values()), self._place)

    def _observations(self) -> Tensor:
        return torch.as_tensor(self.env.observations)

    def _active(self) -> Tensor:
        return torch.as_tensor(self.env.signals.active)

    def _conditioning(self) -> Tensor | None:
        """Return (R, C) places in the ranges of conditioning, drawn once for each row's episode."""
        count = len(self.policy.config.conditioning.names)
        if not count:
            return None
        return draws.uniform(self._keys, self.episode_counts, draws.CONDITIONING, count)

    def _flags(self) -> Tensor:
        """Return (lines, R) the flags of each row's agent; see `state.Worlds`."""
        flags = torch.as_tensor(self.env.agent_flags)[:, :, : self.env.rows_per_world]
        return flags.transpose(0, 1).reshape(flags.shape[1], -1)

    def _clocks(self) -> Tensor:
        return torch.as_tensor(self.env.clocks)


def put(targets: Sequence[Tensor], columns: Sequence[Tensor], place: Tensor) -> None:
    """Write columns, (R, ...), into tensors of a segment, (R, T, ...), at one place of T, (1,)."""
    for target, column in zip(targets, columns, strict=True):
        target.index_copy_(1, place, column[:, None].to(target.dtype))
