"""What a process needs to run the driving episodes of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import failed_result
from roadworthy.evaluation.watch import Watch, Whereabouts
from roadworthy.metrics.trace_figures import TraceFigures
from roadworthy.record.episodes import EpisodeResult
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.processes import available_cores
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv

if TYPE_CHECKING:
    from roadworthy.evaluation.runners.driving.runner import DrivingRunner
    from roadworthy.policy.protocol import Policy

WORLDS_PER_THREAD = 8  # with fewer, threads would wait for each other more than they help


@dataclass(frozen=True)
class DrivingSpec:
    """The worlds of a run, and the policy that drives in them."""

    evaluator: str
    pack: Path
    # The run's own pack: `EpisodeSpec.scenario` counts its scenarios.
    env: SimConfig
    make_policy: Callable[[], Policy]
    worlds: int = 32
    # Worlds that each process steps together.
    device: str = "cpu"
    forgets_trials: bool = False
    # Whether the memory of the policy is cleared after each trial.
    keeps_traces: bool = True
    trace_figures: tuple[TraceFigures, ...] = ()
    # Figures that are computed from the trace of each episode; without traces there are none.
    watched: int = 0
    # All worlds step together, so episodes are timed from their start.

    def make_env(self, most: int | None = None, threads: int | None = None) -> DriveEnv:
        """Return resting worlds, at most `most`; one step is compiled, so that the time of no episode holds that."""
        worlds = min(self.worlds, most or self.worlds)
        if self.device != "cpu":
            threads = None
        elif threads is None:
            threads = min(max(worlds // WORLDS_PER_THREAD, 1), available_cores())
        env = DriveEnv(self.pack, worlds, self.env, device=self.device, threads=threads, sampling=False)
        env.reset()
        if self.device == "cpu":
            env.step(np.zeros((env.row_count, 2), np.float32))
        return env

    def open(
        self, watch: Watch, *, process: int = 0, most: int | None = None, threads: int | None = None
    ) -> DrivingRunner:
        """Return a runner with worlds of its own; see `RunnerSpec.open`."""
        from roadworthy.evaluation.runners.driving.runner import DrivingRunner

        return DrivingRunner(self, self.make_env(most, threads), process)

    def probe(self) -> tuple[str, ...]:
        """Return what is wrong with the policy; see probe.py."""
        from roadworthy.evaluation.runners.driving.probe import probe

        return probe(self)

    def failed(self, episode: EpisodeSpec, reason: str, at: Whereabouts | None = None) -> EpisodeResult:
        """Return the result of an episode that can't be run."""
        with Pack(self.pack) as pack:
            return failed_result(episode, self.evaluator, reason, tags=pack.tags(episode.scenario))

    def without_renderer(self, reason: str) -> None:
        """Return None: worlds do not draw."""
