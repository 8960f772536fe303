"""Compile the kernels of a simulation on the CPU before its first step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from roadworthy.kernels.compiling import ensure_compiled
from roadworthy.sim.config import SimConfig
from roadworthy.sim.extensions import without_extensions

FUNCTIONS = 300  # about how many functions are compiled


def ensure_simulator_compiled(pack: Path, config: SimConfig | None = None) -> None:
    """Compile the simulator's kernels, unless they are in the cache.

    Args:
        pack: Some scenarios to run.
        config: A simulation that can run them.
    """
    ensure_compiled("sim", FUNCTIONS, _drive, str(pack), without_extensions(config or SimConfig()))


def _drive(pack: str, config: SimConfig) -> None:
    from roadworthy.sim.env import DriveEnv

    env = DriveEnv(pack, 1, config, threads=1)
    env.reset()
    env.step(np.zeros((env.row_count, 2), np.float32))
    env.begin([0])
