"""Training: collect a segment, learn from it, and so on; checkpoints, figures and a trace along the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from roadworthy.errors import ConfigError
from roadworthy.policy.coplayers import Coplayers
from roadworthy.policy.network import Policy
from roadworthy.scenario.pack import Pack
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import layout
from roadworthy.train.config import Compile, TrainConfig
from roadworthy.train.ppo import Learner
from roadworthy.train.processes import Processes
from roadworthy.train.resume import restore, save
from roadworthy.train.rollout import Collector, put
from roadworthy.train.schedule import env_config, learning_rate, trials_at
from roadworthy.train.trace import Trace


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
    figures: dict[str, float | None]  # see DriveEnv.figures, not older than a second
    memory_bytes: int  # peak on the GPU; 0 on a CPU


class Trainer:
    """A training run: everything that changes in it."""

    def __init__(self, config: TrainConfig, pack: Pack | Path, folder: Path, trace: Path | None = None) -> None:
        threads = config.threads or torch.get_num_threads()
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest" if config.device == "cpu" else "high")
        self.config, self.folder = config, folder
        self.pack = pack if isinstance(pack, Pack) else Pack(pack)
        self.processes = Processes(config.device)
        wish = config.ppo.compile
        self._compiles = wish is Compile.ON or (wish is Compile.AUTO and config.device != "cpu")
        self.coplayers = Coplayers(config.coplayers.checkpoints, self._compiled)
        env = self._make_env(trials_at(config, 0.0))
        self.policy = Policy(config.policy, layout(config.env), env.action_choices, config.seed)
        self.policy.to(self.processes.device)
        self.learner = Learner(self.policy, config.ppo, config.seed, self.processes, self._shards(env))
        self.learner.loss = self._compiled(self.learner.loss)
        self.learner.estimate = self._compiled(self.learner.estimate)
        self.epoch = self.step = 0
        self._trace = Trace(trace, self.processes.rank, env.row_count) if trace else None
        self._figures_due = 0.0
        self._last_figures: dict[str, float | None] = {}
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
            losses = self.learner.update(cut, self.epoch, rate)
            learned = int(self.processes.sum(cut.segment.learns.sum()))
            self.epoch += 1
            self.step += learned
            report(self._progress(clock, learned, rate, losses))
            if self.epoch % config.checkpoint_interval == 0:
                self.save()
            if self.epoch % config.coplayers.reread_interval == 0 and self.coplayers.reread():
                self.collector.exchange_coplayers()
            after(self)
        return self.save()

    def _figures(self, seconds: float) -> dict[str, float | None]:
        """The env's figures, at most once a second: on a GPU they are a copy to the host."""
        if seconds >= self._figures_due or self.step >= self.config.steps:
            self._figures_due = seconds + 1.0
            self._last_figures = self.env.figures()
        return self._last_figures

    def save(self) -> Path:
        """Write a checkpoint, from which training can go on."""
        return save(self)

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint of a run with the same config: to the bit on a CPU."""
        restore(self, checkpoint)

    def take_stage(self, trials: int) -> None:
        """Let episodes have so many trials from here on."""
        clock = self.collector.clock
        self._take_env(self._make_env(trials))
        self.collector.clock.copy_(clock)  # no draw is made twice
        self.collector.begun.copy_(clock)

    def _enter_stage(self) -> None:
        trials = trials_at(self.config, self.step / self.config.steps)
        if trials != self.env.config.episode.trials:
            self.take_stage(trials)

    def _shards(self, env: DriveEnv) -> int:
        """Shards of this process's rows; all processes have equally many, and each shard a row for every minibatch."""
        config, count = self.config, self.processes.count
        shards = max(config.ppo.shards, count)
        if shards % count or config.worlds % shards:
            raise ConfigError(
                f"worlds is {config.worlds} and ppo.shards {config.ppo.shards}, with {count} processes; expected "
                "worlds that the shards, and shards that the processes can share equally"
            )
        rows = config.worlds * env.rows_per_world // shards
        if rows < config.ppo.minibatches:
            raise ConfigError(
                f"ppo.minibatches is {config.ppo.minibatches}, but there are {rows} rows to deal into them"
                f"{f' in each of {shards} shards' if shards > 1 else ''}; lower it, or raise worlds"
            )
        return shards // count

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

    def _progress(self, clock: _Clock, learned: int, rate: float, losses: dict[str, Any]) -> Progress:
        told = {name: float(value) for name, value in losses.items()}
        seconds, per_s = clock.tick(learned)
        return Progress(
            epoch=self.epoch,
            step=self.step,
            steps=self.config.steps,
            seconds=seconds,
            steps_per_s=per_s,
            trials=self.env.config.episode.trials,
            rate=rate,
            losses=told,
            figures=self._figures(seconds),
            memory_bytes=torch.cuda.max_memory_allocated() if self.config.device != "cpu" else 0,
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
