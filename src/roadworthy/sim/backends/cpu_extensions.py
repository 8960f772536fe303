"""Reward terms and observation blocks of users on a CPU: kernels of their own, between the stages of a step.

The kernels of the built-in rules stay as they are, so their cache and their results do not depend on extensions. The
kernels here take a second or two to compile, once per process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule
from roadworthy.kernels.threads import prange
from roadworthy.kernels.user_code import user_entry
from roadworthy.scenario.schema import Floats
from roadworthy.sim import state
from roadworthy.sim.config import SimConfig
from roadworthy.sim.extensions import WorldView, load_blocks, load_terms
from roadworthy.sim.layout import BLOCKS, layout
from roadworthy.sim.params import weight_range
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.observation import clipped, has_valid_pose
from roadworthy.sim.state import Real, Rows, Scenarios, Whole, Worlds

Function = Callable[..., Any]
_ZERO, _TERMS = np.float32(0.0), len(state.REWARD_TERMS)


class CpuExtensions:
    """The reward terms and observation blocks that a config names, compiled at their first use."""

    def __init__(self, config: SimConfig, rows: Rows) -> None:
        terms, blocks = load_terms(config), load_blocks(config)
        extra = layout(config).blocks[len(BLOCKS) :]
        ranges = [weight_range(weight) for weight in config.reward.terms.values()]
        self.has_terms, self.has_blocks = bool(terms), bool(extra)
        self._low = np.array([low for low, _ in ranges], np.float32)
        self._high = np.array([high for _, high in ranges], np.float32)
        self._start = extra[0].start if extra else 0
        features = [feature for block in blocks for feature in block.features]
        self._scales = np.array([1.0 / feature.scale for feature in features], np.float32)
        self._rows = rows
        self._rewards = np.zeros(len(rows.rewards), np.float32)
        if terms:
            self._sum_terms = _terms_kernel(tuple(terms.values()), _named("reward term", terms))
        if extra:
            writers = tuple((block.write, len(block.features)) for block in blocks)
            self._write_blocks = _blocks_kernel(writers, _named("observation block", config.observe.blocks))

    def evaluate_terms(self, worlds: Worlds, scenarios: Scenarios) -> None:
        """Add the terms of users to the returns of agents, before the rewards of this step are written."""
        self._sum_terms(worlds, scenarios, self._low, self._high, self._rewards)

    def add_rewards(self) -> None:
        """Add the terms of users to the rewards of this step."""
        np.add(self._rows.rewards, self._rewards, out=self._rows.rewards)

    def observe(
        self, numbers: NDArray[np.int64], worlds: Worlds, rows: Rows, scenarios: Scenarios, is_final: bool
    ) -> None:
        """Write the blocks of users and the weights of their terms, in the rows of these worlds."""
        at, ranges = np.int64(self._start), (self._low, self._high)
        self._write_blocks(numbers, worlds, rows, scenarios, is_final, at, *ranges, self._scales)


def _named(what: str, names: Any) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}"


@rule(inline=True)
def _view(worlds: Worlds, scenarios: Scenarios, w: Whole) -> Any:
    """Return what functions of users see of world w."""
    clock = worlds.clocks[w]
    return WorldView(
        worlds.agents[w],
        worlds.agent_flags[w],
        clock[state.AGENT_COUNT],
        clock[state.STEP],
        scenarios.dt[clock[state.SCENARIO]],
    )


@rule(inline=True)
def _weight(seed: Whole, a: Whole, k: Whole, low: Floats, high: Floats) -> Real:
    """Return the agent's own weight of term k, drawn as those of the built-in terms."""
    return low[k] + (high[k] - low[k]) * draws.uniform(seed, a, _TERMS + k, draws.WEIGHT)


@cache
def _terms_kernel(terms: tuple[Function, ...], what: str) -> Function:
    """Return a kernel that writes the weighted sum of terms of every row, and adds it to the agent's return."""
    total = _sum_of(terms, 0)

    @rule
    def evaluate(worlds: Worlds, scenarios: Scenarios, w: Whole, low: Floats, high: Floats, sums_out: Floats) -> None:
        agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
        world, seed = _view(worlds, scenarios, w), worlds.seeds[w]
        for a in range(clock[state.DRIVEN_COUNT]):
            if flags[state.IS_DRIVING, a]:
                value = total(world, a, seed, low, high)
                agents[state.RETURN, a] += value
                sums_out[a] = value

    @user_entry(what)
    def kernel(worlds: Worlds, scenarios: Scenarios, low: Floats, high: Floats, sums_out: Floats) -> None:
        rows_per_world = len(sums_out) // len(worlds.clocks)
        for number in prange(len(worlds.clocks)):
            w = np.int64(number)
            sums = sums_out[w * rows_per_world : (w + 1) * rows_per_world]
            for a in range(rows_per_world):
                sums[a] = _ZERO
            if worlds.clocks[w, state.SCENARIO] >= 0:
                evaluate(worlds, scenarios, w, low, high, sums)

    return kernel


def _sum_of(terms: tuple[Function, ...], k: int) -> Any:
    """Return a rule that adds up terms from the k-th on."""
    term, rest = rule(terms[k]), _sum_of(terms, k + 1) if k + 1 < len(terms) else _nothing

    @rule
    def total(world: WorldView, a: Whole, seed: Whole, low: Floats, high: Floats) -> Real:
        value = _weight(seed, a, k, low, high) * np.float32(term(world, a))
        return value + rest(world, a, seed, low, high)

    return total


@rule
def _nothing(world: WorldView, a: Whole, seed: Whole, low: Floats, high: Floats) -> Real:
    return _ZERO


@cache
def _blocks_kernel(writers: tuple[tuple[Function, int], ...], what: str) -> Function:
    """Return a kernel that writes the weights of terms and these blocks to the rows of some worlds."""
    write = _writer_of(writers, 0) if writers else _write_nothing

    @rule
    def observe(
        worlds: Worlds,
        rows: Rows,
        scenarios: Scenarios,
        w: Whole,
        is_final: bool,
        at: Whole,
        low: Floats,
        high: Floats,
        scales: Floats,
    ) -> None:
        agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
        world, seed = _view(worlds, scenarios, w), worlds.seeds[w]
        first = w * (len(rows.active) // len(worlds.clocks))
        rows_out = rows.final_observations if is_final else rows.observations
        for a in range(clock[state.DRIVEN_COUNT]):
            is_asked = rows.trial_ended[first + a] if is_final else rows.active[first + a]
            if is_asked and flags[state.IS_DRIVING, a] and has_valid_pose(agents, a):
                row_out = rows_out[first + a]
                for k in range(len(low)):
                    row_out[at + k] = _weight(seed, a, k, low, high)
                write(world, a, row_out, at + len(low), scales, 0)

    @user_entry(what)
    def kernel(
        numbers: NDArray[np.int64],
        worlds: Worlds,
        rows: Rows,
        scenarios: Scenarios,
        is_final: bool,
        at: Whole,
        low: Floats,
        high: Floats,
        scales: Floats,
    ) -> None:
        for k in prange(len(numbers)):
            w = np.int64(numbers[k])
            if worlds.clocks[w, state.SCENARIO] >= 0:
                observe(worlds, rows, scenarios, w, is_final, at, low, high, scales)

    return kernel


def _writer_of(writers: tuple[tuple[Function, int], ...], n: int) -> Any:
    """Return a rule that writes blocks from the n-th on, each after the other."""
    function, size = writers[n]
    write, rest = rule(function), _writer_of(writers, n + 1) if n + 1 < len(writers) else _write_nothing

    @rule
    def write_blocks(world: WorldView, a: Whole, row_out: Floats, at: Whole, scales: Floats, first: Whole) -> None:
        out = row_out[at : at + size]
        for k in range(size):
            out[k] = _ZERO
        write(world, a, out)
        for k in range(size):
            out[k] = clipped(out[k] * scales[first + k])
        rest(world, a, row_out, at + size, scales, first + size)

    return write_blocks


@rule
def _write_nothing(world: WorldView, a: Whole, row_out: Floats, at: Whole, scales: Floats, first: Whole) -> None:
    pass
