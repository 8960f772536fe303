"""The training loop: collect a rollout, update the policy, report, save checkpoints.

An update goes through rollout.py > segment.py > advantage.py > ppo.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.network import PolicyNetwork
from roadworthy.scenario.pack import Pack
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import layout
from roadworthy.training.config import Compile, TrainConfig
from roadworthy.training.ppo import Learner
from roadworthy.training.processes import Processes
from roadworthy.training.progress import Clock, Progress
from roadworthy.training.resume import restore, save
from roadworthy.training.rollout import Collector, put
from roadworthy.training.schedule import env_config, learning_rate, trials_at
from roadworthy.training.trace import Trace

_ALL_THREADS = torch.get_num_threads()  # before a run changes it


class Trainer:
    """A training run and everything that changes in it."""

    def __init__(
        self,
        config: TrainConfig,
        pack: Pack | Path,
        folder: Path,
        trace: Path | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make the env, the policy and the learner; `warn` gets problems that training survives."""
        threads = config.threads or _ALL_THREADS
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest" if config.device == "cpu" else "high")
        self.config, self.folder = config, folder
        self.pack = pack if isinstance(pack, Pack) else Pack(pack)
        self.processes = Processes(config.device)
        compile_networks = config.ppo.compile
        self._compiles = compile_networks is Compile.ON or (compile_networks is Compile.AUTO and config.device != "cpu")
        self.coplayers = CoplayerNetworks(config.coplayers.checkpoints, self._compiled)
        shards = self._shards()
        env = self._make_env(trials_at(config, 0.0))
        self._require_rows(env.rows_per_world, shards)
        self.policy = PolicyNetwork(config.policy, layout(config.env), env.action_choices, config.seed)
        self.policy.to(self.processes.device)
        self.learner = Learner(self.policy, config.ppo, config.seed, self.processes, shards)
        self.learner.loss = self._compiled(self.learner.loss)
        self.learner.estimate = self._compiled(self.learner.estimate)
        self.updates = self.step = 0
        self.saved: tuple[int, Path] | None = None  # the number of updates of the last checkpoint, and its folder
        self._warn = warn
        self._trace = Trace(trace, self.processes.rank, env.row_count) if trace else None
        self.last_report: dict[str, float | None] = {}
        self._use_env(env)
        # Numba shares OpenMP with torch, and has changed the number when it started its own threads.
        torch.set_num_threads(threads)

    def run(
        self,
        report: Callable[[Progress], None],
        should_stop: Callable[[], bool] = lambda: False,
        after_update: Callable[[Trainer], None] = lambda _: None,
    ) -> Path:
        """Train until the last step or until `should_stop`; return the folder of the last checkpoint."""
        config, clock = self.config, Clock()
        while self.step < config.steps and not self.processes.any(should_stop()):
            self._enter_stage()
            batch = self.collector.collect()
            if self._trace:
                self._trace.write(batch, self.updates)
            rate = learning_rate(config.ppo, self.step / config.steps)
            losses = {name: float(value) for name, value in self.learner.update(batch, self.updates, rate).items()}
            self._require_finite(losses)
            steps = int(self.processes.sum(batch.segment.loss_mask.sum()))
            self.updates += 1
            self.step += steps
            report(self._progress(clock, steps, rate, losses))
            if self.updates % config.checkpoint_interval == 0:
                self.save()
            if self.updates % config.coplayers.reread_interval == 0 and self.coplayers.reread():
                self._exchange_coplayers()
            after_update(self)
        return self.save()

    def save(self) -> Path:
        """Write a checkpoint to resume from, unless the last one is of this update; return its folder."""
        if self.saved is None or self.saved[0] != self.updates or not self.saved[1].exists():
            self.saved = self.updates, save(self)
        return self.saved[1]

    def resume(self, checkpoint: Path) -> None:
        """Restore a checkpoint of a run with the same config; on a CPU, training continues bit for bit."""
        restore(self, checkpoint)

    def take_stage(self, trials: int) -> None:
        """Give episodes this many trials from now on; no episode and no random draw is repeated."""
        before, env = self.collector, self._make_env(trials)
        self.last_report = {}
        env.skip_episodes(self.env.drawn_episodes)
        self._use_env(env)
        self.collector.clock.copy_(before.clock)
        self.collector.begun.copy_(before.clock)
        self.collector.episode_counts.copy_(before.episode_counts + 1)

    def _enter_stage(self) -> None:
        trials = trials_at(self.config, self.step / self.config.steps)
        if trials != self.env.config.episode.trials:
            self.take_stage(trials)

    def _take_report(self) -> bool:
        """Take the figures that were reported during the last segment; return whether there were any.

        They are reported every `env.log.report_interval` steps of the worlds, and when training ends.
        """
        report = self.collector.take_report()
        if not report and self.step >= self.config.steps:
            report = self.env.figures()
        self.last_report = report or self.last_report
        return bool(report)

    def _require_finite(self, losses: dict[str, float]) -> None:
        """Raise an error if a loss is not finite: the weights are not finite either, and must not be saved."""
        broken = ", ".join(name for name, value in losses.items() if not math.isfinite(value))
        if broken:
            last = f"the last checkpoint, {self.saved[1]}, is from before" if self.saved else "there is no checkpoint"
            raise RoadworthyError(
                f"update {self.updates + 1}: not finite: {broken}. The weights are lost; {last}. Try a lower "
                "ppo.learning_rate or ppo.max_grad_norm"
            )

    def _exchange_coplayers(self) -> None:
        """Switch to co-players whose files were replaced, unless they do not fit this env."""
        try:
            self.collector.exchange_coplayers()
        except RoadworthyError as error:
            self._warn(f"{error}; the file was replaced during training, which continues with the previous co-players")

    def _shards(self) -> int:
        """Return the number of shards of this process; all processes have the same number."""
        config, count = self.config, self.processes.count
        shards = max(config.ppo.shards, count)
        if shards % count or config.worlds % shards:
            raise ConfigError(
                f"worlds is {config.worlds} and ppo.shards is {config.ppo.shards}, with {count} processes; worlds must "
                "be a multiple of the shards, and shards a multiple of the processes"
            )
        return shards // count

    def _require_rows(self, rows_per_world: int, shards: int) -> None:
        """Raise an error if a shard has fewer rows than there are minibatches."""
        minibatches, total = self.config.ppo.num_minibatches, shards * self.processes.count
        rows = self.config.worlds * rows_per_world // total
        if rows < minibatches:
            raise ConfigError(
                f"ppo.num_minibatches is {minibatches}, but there are only {rows} rows"
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

    def _use_env(self, env: DriveEnv) -> None:
        self.env = env
        first_row = self.processes.rank * env.row_count
        self.collector = Collector(env, self.policy, self.config.ppo, self.coplayers, self.config.seed, first_row)
        self.collector.act = self._compiled(self.policy.step)
        self.collector.put = self._compiled(put)
        self.collector.start()

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, compiled if the config says so."""
        return torch.compile(function, fullgraph=True, dynamic=False) if self._compiles else function

    def _progress(self, clock: Clock, steps: int, rate: float, losses: dict[str, float]) -> Progress:
        seconds, per_s = clock.tick(steps)
        is_reported = self._take_report()
        return Progress(
            update=self.updates,
            step=self.step,
            steps=self.config.steps,
            seconds=seconds,
            steps_per_s=per_s,
            trials=self.env.config.episode.trials,
            learning_rate=rate,
            losses=losses,
            figures=self.last_report,
            memory_bytes=torch.cuda.max_memory_allocated() if self.config.device != "cpu" else 0,
            is_reported=is_reported,
        )
