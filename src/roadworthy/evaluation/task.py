"""A task: what a process needs to carry out the episodes of a run. It can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roadworthy.metrics.trace_figures import TraceFigures
from roadworthy.scenario.processes import available_cores
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv

if TYPE_CHECKING:
    from roadworthy.policy.protocol import Policy

WORLDS_PER_THREAD = 8  # of fewer, threads would wait for each other more than they help


@dataclass(frozen=True)
class Task:
    """Whose episodes they are, in which worlds, and who drives."""

    evaluator: str
    pack: Path
    # The run's own pack: the ledger's numbers are of its scenarios.
    env: SimConfig
    make_policy: Callable[[], Policy]
    worlds: int = 32
    # Side by side, in each process.
    device: str = "cpu"
    forgets_trials: bool = False
    # Memory is cleared after each trial.
    keeps_traces: bool = True
    trace_figures: tuple[TraceFigures, ...] = ()
    # Figures that are computed from the trace of each episode; without traces there are none.

    def make_env(self, most: int | None = None, threads: int | None = None) -> DriveEnv:
        """Worlds that rest, at most so many; what a step needs is compiled, so that no episode's time holds that."""
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
