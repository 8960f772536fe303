"""Snapshot: everything that determines what an env does next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.sim.episodes import Episode


@dataclass(frozen=True)
class Snapshot:
    """The state that `DriveEnv.restore` continues from, on either device."""

    arrays: dict[str, NDArray[Any]]  # of state.py, by tuple and field
    running: tuple[Episode | None, ...]
    waiting: tuple[tuple[Episode, ...], ...]
    rounds: NDArray[np.int64]
    seed: int
    steps: int
