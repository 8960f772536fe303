"""Allocation of an env's arrays, in their state before the first episode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.sim import state
from roadworthy.sim.config import SimConfig
from roadworthy.sim.layout import layout
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES, figure_names
from roadworthy.sim.state import Logs, Rows, Starts, Worlds


def make_worlds(worlds: int, goals: int, room: int) -> tuple[Worlds, Starts]:
    """Return idle worlds, with room for `room` agents with `goals` goals each."""
    agents = np.zeros((worlds, state.GOALS + 2 * goals, room), np.float32)
    flags = np.zeros((worlds, state.FLAG_LINES, room), np.int32)
    clocks = np.zeros((worlds, state.CLOCK_COLUMNS), np.int32)
    clocks[:, state.SCENARIO] = -1
    moving = Worlds(
        agents=agents,
        agent_flags=flags,
        clocks=clocks,
        seeds=np.zeros(worlds, np.uint64),
        hidden=np.ones((worlds, len(state.HIDDEN_FACTORS)), np.float32),
        order=np.zeros((worlds, rounded_up(room)), np.int32),
        appearance=np.zeros((worlds, rounded_up(room), state.SEEN_COLUMNS), np.float32),
    )
    return moving, Starts(np.zeros_like(agents), np.zeros_like(flags))


def make_logs(worlds: int, rows_per_world: int, trials: int) -> Logs:
    """Return empty logs."""
    shape, figures = (worlds, rows_per_world), len(figure_names(trials))
    return Logs(
        trials=np.full((*shape, trials, len(TRIAL_FIGURES)), np.nan, np.float32),
        episodes=np.full((*shape, figures), np.nan, np.float32),
        averages=np.full((*shape, figures), np.nan, np.float32),
        episode_counts=np.zeros(shape, np.int32),
    )


def make_rows(rows: int, config: SimConfig, width: int | None = None) -> Rows:
    """Return inactive rows. Observations may be wider than the layout needs."""
    width = width or layout(config).size
    return Rows(
        observations=np.zeros((rows, width), np.float32),
        final_observations=np.zeros((rows if config.observe.final else 0, width), np.float32),
        actions=np.zeros((rows, 2), np.float32),
        rewards=np.zeros(rows, np.float32),
        active=np.zeros(rows, np.bool_),
        trial_ended=np.zeros(rows, np.bool_),
        episode_ended=np.zeros(rows, np.bool_),
        timed_out=np.zeros(rows, np.bool_),
    )


def rounded_up(count: int) -> int:
    """Return the next multiple of 32: for whole vectors of scratch space and for warps of GPU threads."""
    return -(-count // 32) * 32


def bytes_of(arrays: Iterable[NDArray[Any]]) -> int:
    """Return the bytes of some arrays."""
    return sum(array.nbytes for array in arrays)
