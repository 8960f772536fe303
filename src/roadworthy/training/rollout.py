"""Collector: lets the policy drive and writes down what the learner needs, without a copy to the host on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from roadworthy.policy import noise
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.network import Policy
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import EGO, PARTNER, ROLE
from roadworthy.training.config import PpoConfig, Precision
from roadworthy.training.repeated import Repeated
from roadworthy.training.segment import Cut, make_segment


class Collector:
    """Collects segments of one env, one after another. Memory is cleared where an episode ends, and nowhere else."""

    def __init__(
        self,
        env: DriveEnv,
        policy: Policy,
        config: PpoConfig,
        coplayers: CoplayerNetworks,
        seed: int,
        first_row: int = 0,
    ) -> None:
        """Get ready to drive an env.

        first_row: the number of this env's first row among those of all processes.
        """
        self.env, self.policy, self.coplayers = env, policy, coplayers
        self._config, self.device = config, policy.value.weight.device
        is_half = config.precision is Precision.BFLOAT16
        self._number = torch.bfloat16 if is_half else torch.float32
        self.memory, self._before = (policy.memory(env.row_count, self._number) for _ in range(2))
        self._first_row = first_row
        rows = torch.arange(first_row, first_row + env.row_count, device=self.device)
        self._keys = noise.keys_of(seed, rows)
        self.clock = torch.zeros(1, dtype=torch.int64, device=self.device)  # steps made so far
        self.begun = torch.zeros_like(self.clock)  # the clock when this env's first episodes began
        self.episode_counts = torch.zeros(env.row_count, dtype=torch.int64, device=self.device)
        self.has_begun_anew = False  # all worlds did, since the last segment
        self._report: dict[str, float | None] = {}  # the env's last one that was not taken yet
        parts = 1 if policy.choices is not None and policy.config.actions.value == "joint" else 2
        self._segment = make_segment(
            config.horizon,
            env.row_count,
            policy.layout.size,
            parts,
            len(policy.config.traits.names),
            self.device,
            # A network computes with the rounded numbers anyway.
            self._number if self.device.type == "cuda" else torch.float32,
        )
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)
        # May be replaced by their compiled forms.
        self.act: Callable[..., Any] = policy.step
        self.put: Callable[..., None] = put
        # From the second segment on, policy, draws and simulator are one graph on a GPU.
        self._advance = Repeated(self._step, self.device, config.horizon)

    def start(self) -> None:
        """Begin anew: all episodes of the env, with no memory of any."""
        self.has_begun_anew = True
        self.env.reset()
        self.policy.reset(self.memory, torch.ones(self.env.row_count, dtype=torch.bool, device=self.device))
        self.coplayers.start(self.env, self.device)
        self._advance.forget()

    def exchange_coplayers(self) -> None:
        """Let co-players whose files were replaced take over; the others remember what they did."""
        self.coplayers.exchange(self.env, self.device)
        self._advance.forget()

    @torch.no_grad()
    def collect(self) -> Cut:
        """The next segment; the one before is overwritten."""
        begun_anew = self._spread_out()
        if self.has_begun_anew and int(self.clock) > 0:
            begun_anew.fill_(True)
        self.has_begun_anew = False
        for kept, tensor in zip(self._before, self.memory, strict=True):
            kept.copy_(tensor)
        self._place.zero_()
        made = int(self.clock)
        for step in range(1, self._config.horizon + 1):
            self._advance()
            self.env.step_count = made + step  # a captured step of a GPU does not count itself
            self._report = self.env.report() or self._report
        with self._arithmetic():
            last = self._look_ahead(self._seen(), self._active(), self._traits())
        self._segment.last_values.copy_(last)
        self._segment.ratios.fill_(1.0)
        return Cut(self._segment, self._before, begun_anew)

    def take_report(self) -> dict[str, float | None]:
        """Return the env's last report since the last call, and empty it; see DriveEnv.report."""
        report, self._report = self._report, {}
        return report

    def _spread_out(self) -> Tensor:
        """Before each of the first segments, begin the episodes of some worlds anew; (R,) which rows those are.

        Worlds that begin together would end together for good, and what is learned from would swing with them.
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
            self._forget(rows)
        return rows

    def _forget(self, ended: Tensor) -> None:
        """Clear what is remembered of rows whose episodes have ended."""
        self.policy.reset(self.memory, ended)
        self.coplayers.reset(ended)
        self.episode_counts.add_(ended)

    def _step(self) -> None:
        env, head = self.env, self.policy.head
        observations, active, traits = self._seen(), self._active().clone(), self._traits()
        is_ego = self._marks()[ROLE] == EGO
        with self._arithmetic():
            output = self.act(observations, active, self.memory, traits)
        drawn = noise.uniform(self._keys, self.clock, noise.ACTION)
        actions = head.sample(output.scores, drawn)
        self._write(
            observations=observations,
            **({} if traits is None else {"traits": traits}),
            actions=actions,
            log_probs=head.log_prob(output.scores, actions),
            values=output.values,
            active=active,
            learns=active & is_ego,
        )
        driven = head.to_env(actions)
        if self.coplayers:
            partner = self._clocks()[:, PARTNER].repeat_interleave(env.rows_per_world)
            told = noise.uniform(self._keys, self.episode_counts, noise.TRAIT)
            with self._arithmetic():
                driven = self.coplayers.act(driven, observations, active & ~is_ego, partner, drawn, told)
        env.step(driven.numpy() if self.device.type == "cpu" else driven)
        signals = env.signals
        ended, trial_ended, timed_out, active_now = (
            torch.as_tensor(x) for x in (signals.episode_ended, signals.trial_ended, signals.timed_out, signals.active)
        )
        self._write(
            rewards=torch.as_tensor(env.rewards),
            ended=ended,
            trial_ended=trial_ended,
            goes_on=active_now & ~ended & ~trial_ended,
            final_values=self._final_values(timed_out, traits),
        )
        self._forget(ended)
        self.clock.add_(1)
        self._place.add_(1)

    def _final_values(self, timed_out: Tensor, traits: Tensor | None) -> Tensor:
        """(R,) what the last observation was worth, where the time was up and that is to count; else 0."""
        if not self._config.bootstrap_timeouts:
            return torch.zeros_like(timed_out, dtype=torch.float32)
        seen = torch.as_tensor(self.env.final_observation)
        with self._arithmetic():
            return torch.where(timed_out, self._look_ahead(seen, timed_out, traits), 0.0)

    def _look_ahead(self, seen: Tensor, active: Tensor, traits: Tensor | None) -> Tensor:
        """(R,) values of what is seen next, of which memory keeps nothing."""
        ended, told = torch.zeros_like(active), None if traits is None else traits[:, None]
        output = self.policy.sequence(seen[:, None], active[:, None], ended[:, None], self.memory, told)
        return output.values[:, 0]

    def _arithmetic(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._config.precision is Precision.BFLOAT16)

    def _write(self, **columns: Tensor) -> None:
        self.put([getattr(self._segment, name) for name in columns], list(columns.values()), self._place)

    def _seen(self) -> Tensor:
        return torch.as_tensor(self.env.observations)

    def _active(self) -> Tensor:
        return torch.as_tensor(self.env.signals.active)

    def _traits(self) -> Tensor | None:
        """(R, traits) drawn once for each row's episode, as places in their ranges."""
        count = len(self.policy.config.traits.names)
        if not count:
            return None
        return noise.uniform(self._keys, self.episode_counts, noise.TRAIT, count)

    def _marks(self) -> Tensor:
        """(lines, R) of state.Worlds.marks."""
        marks = torch.as_tensor(self.env.batch.worlds.marks)[:, :, : self.env.rows_per_world]
        return marks.transpose(0, 1).reshape(marks.shape[1], -1)

    def _clocks(self) -> Tensor:
        return torch.as_tensor(self.env.batch.worlds.clocks)


def put(targets: Sequence[Tensor], columns: Sequence[Tensor], place: Tensor) -> None:
    """Write columns, (R, ...), into tensors of a segment, (R, T, ...), at one place of T, (1,)."""
    for target, column in zip(targets, columns, strict=True):
        target.index_copy_(1, place, column[:, None].to(target.dtype))
