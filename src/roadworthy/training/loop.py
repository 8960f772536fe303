"""Training: collect a segment, learn from it, and so on; checkpoints, figures and a trace along the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.network import Policy
from roadworthy.scenario.pack import Pack
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import layout
from roadworthy.training.config import Compile, TrainConfig
from roadworthy.training.ppo import Learner
from roadworthy.training.processes import Processes
from roadworthy.training.resume import restore, save
from roadworthy.training.rollout import Collector, put
from roadworthy.training.schedule import env_config, learning_rate, trials_at
from roadworthy.training.trace import Trace

_ALL_THREADS = torch.get_num_threads()  # before anybody has set them


@dataclass(frozen=True)
class Progress:
    """Where a training run stands, after an update."""

    epoch: int  # updates made
    step: int  # agent-steps learned from
    steps: int  # ... to be learned from
    seconds: float  # since the run, or its resumption, began
    steps_per_s: float  # agent-steps, over the last updates
    trials: int  # in an episode
    rate: float  # of learning
    losses: dict[str, float]  # see ppo.Losses, and explained_variance
    figures: dict[str, float | None]  # the last report, see DriveEnv.report; empty before the first
    memory_bytes: int  # peak on the GPU; 0 on a CPU
    is_reported: bool = True  # figures were reported in this update; else they are those of an earlier one


class Trainer:
    """A training run: everything that changes in it."""

    def __init__(
        self,
        config: TrainConfig,
        pack: Pack | Path,
        folder: Path,
        trace: Path | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Get ready to train, or to go on by `resume`; `warn` is told of what training goes on without."""
        threads = config.threads or _ALL_THREADS
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest" if config.device == "cpu" else "high")
        self.config, self.folder = config, folder
        self.pack = pack if isinstance(pack, Pack) else Pack(pack)
        self.processes = Processes(config.device)
        wish = config.ppo.compile
        self._compiles = wish is Compile.ON or (wish is Compile.AUTO and config.device != "cpu")
        self.coplayers = CoplayerNetworks(config.coplayers.checkpoints, self._compiled)
        shards = self._shards()
        env = self._make_env(trials_at(config, 0.0))
        self._require_rows(env.rows_per_world, shards)
        self.policy = Policy(config.policy, layout(config.env), env.action_choices, config.seed)
        self.policy.to(self.processes.device)
        self.learner = Learner(self.policy, config.ppo, config.seed, self.processes, shards)
        self.learner.loss = self._compiled(self.learner.loss)
        self.learner.estimate = self._compiled(self.learner.estimate)
        self.epoch = self.step = 0
        self.saved: tuple[int, Path] | None = None  # the epoch of the last checkpoint, and where that is
        self._warn = warn
        self._trace = Trace(trace, self.processes.rank, env.row_count) if trace else None
        self.last_report: dict[str, float | None] = {}
        self._take_env(env)
        # Numba, which shares OpenMP with torch, has set this anew when it started its own threads.
        torch.set_num_threads(threads)

    def run(
        self,
        report: Callable[[Progress], None],
        should_stop: Callable[[], bool] = lambda: False,
        after: Callable[[Trainer], None] = lambda _: None,
    ) -> Path:
        """Train to the end, or until told to stop; the last checkpoint's folder. `after` follows each update."""
        config, clock = self.config, _Clock()
        while self.step < config.steps and not self.processes.any(should_stop()):
            self._enter_stage()
            cut = self.collector.collect()
            if self._trace:
                self._trace.write(cut, self.epoch)
            rate = learning_rate(config.ppo, self.step / config.steps)
            losses = {name: float(value) for name, value in self.learner.update(cut, self.epoch, rate).items()}
            self._require_numbers(losses)
            learned = int(self.processes.sum(cut.segment.learns.sum()))
            self.epoch += 1
            self.step += learned
            report(self._progress(clock, learned, rate, losses))
            if self.epoch % config.checkpoint_interval == 0:
                self.save()
            if self.epoch % config.coplayers.reread_interval == 0 and self.coplayers.reread():
                self._exchange_coplayers()
            after(self)
        return self.save()

    def _take_report(self) -> bool:
        """Take the figures that were reported while the last segment was collected, or at the end; say if any were.

        They are reported every `env.log.report_interval` steps of the worlds, and once more when training ends.
        """
        report = self.collector.take_report()
        if not report and self.step >= self.config.steps:
            report = self.env.figures()
        self.last_report = report or self.last_report
        return bool(report)

    def save(self) -> Path:
        """Write a checkpoint, from which training can go on; where the last one is of this update, that stays."""
        if self.saved is None or self.saved[0] != self.epoch or not self.saved[1].exists():
            self.saved = self.epoch, save(self)
        return self.saved[1]

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint of a run with the same config: to the bit on a CPU."""
        restore(self, checkpoint)

    def take_stage(self, trials: int) -> None:
        """Let episodes have so many trials from here on; no episode and no draw is made twice."""
        before, env = self.collector, self._make_env(trials)
        self.last_report = {}
        env.skip_episodes(self.env.drawn_episodes)
        self._take_env(env)
        self.collector.clock.copy_(before.clock)
        self.collector.begun.copy_(before.clock)
        self.collector.episode_counts.copy_(before.episode_counts + 1)

    def _enter_stage(self) -> None:
        trials = trials_at(self.config, self.step / self.config.steps)
        if trials != self.env.config.episode.trials:
            self.take_stage(trials)

    def _require_numbers(self, losses: dict[str, float]) -> None:
        """Raise an error if what was learned is no longer a number: the weights are not either, and are not saved."""
        broken = ", ".join(name for name, value in losses.items() if not math.isfinite(value))
        if broken:
            last = f"the last checkpoint, {self.saved[1]}, is from before" if self.saved else "there is no checkpoint"
            raise RoadworthyError(
                f"update {self.epoch + 1}: no finite number any more: {broken}. The weights are lost; {last}. A lower "
                "ppo.learning_rate or ppo.max_gradient may help"
            )

    def _exchange_coplayers(self) -> None:
        """Let partners whose files were replaced take over, where they can drive in this env."""
        try:
            self.collector.exchange_coplayers()
        except RoadworthyError as error:
            self._warn(f"{error}; it was replaced while training ran, and the partners from before stay")

    def _shards(self) -> int:
        """Shards of this process's rows; all processes have equally many."""
        config, count = self.config, self.processes.count
        shards = max(config.ppo.shards, count)
        if shards % count or config.worlds % shards:
            raise ConfigError(
                f"worlds is {config.worlds} and ppo.shards {config.ppo.shards}, with {count} processes; expected "
                "worlds that the shards, and shards that the processes can share equally"
            )
        return shards // count

    def _require_rows(self, rows_per_world: int, shards: int) -> None:
        """Raise an error if a shard has no row for every minibatch."""
        minibatches, total = self.config.ppo.minibatches, shards * self.processes.count
        rows = self.config.worlds * rows_per_world // total
        if rows < minibatches:
            raise ConfigError(
                f"ppo.minibatches is {minibatches}, but there are {rows} rows to deal into them"
                f"{f' in each of {total} shards' if total > 1 else ''}; lower it, or raise worlds"
            )

    def _make_env(self, trials: int) -> DriveEnv:
        config, processes = self.config, self.processes
        worlds = config.worlds // processes.count
        return DriveEnv(
            self.pack,
            worlds,
            env_config(config, trials),
            seed=config.seed,
            device=processes.device,
            threads=config.threads or None,
            first_world=processes.rank * worlds,
            world_total=config.worlds,
        )

    def _take_env(self, env: DriveEnv) -> None:
        self.env = env
        first_row = self.processes.rank * env.row_count
        self.collector = Collector(env, self.policy, self.config.ppo, self.coplayers, self.config.seed, first_row)
        self.collector.act = self._compiled(self.policy.step)
        self.collector.put = self._compiled(put)
        self.collector.start()

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function as it is called: compiled, if that is wished."""
        return torch.compile(function, fullgraph=True, dynamic=False) if self._compiles else function

    def _progress(self, clock: _Clock, learned: int, rate: float, losses: dict[str, float]) -> Progress:
        seconds, per_s = clock.tick(learned)
        is_reported = self._take_report()
        return Progress(
            epoch=self.epoch,
            step=self.step,
            steps=self.config.steps,
            seconds=seconds,
            steps_per_s=per_s,
            trials=self.env.config.episode.trials,
            rate=rate,
            losses=losses,
            figures=self.last_report,
            memory_bytes=torch.cuda.max_memory_allocated() if self.config.device != "cpu" else 0,
            is_reported=is_reported,
        )


class _Clock:
    """Seconds since the start, and steps per second over the last few updates."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._recent: list[tuple[float, int]] = [(self._started, 0)]

    def tick(self, steps: int) -> tuple[float, float]:
        now = time.perf_counter()
        self._recent = [*self._recent[-10:], (now, steps)]
        passed = now - self._recent[0][0]
        return now - self._started, sum(n for _, n in self._recent[1:]) / passed
