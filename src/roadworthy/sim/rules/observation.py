"""Helpers of the observation blocks.

A block's count is the number of filled entries. An entry that dropout hides keeps its place and counts, and all its
features are 0. No true entry looks like that: the cosine and sine of a direction are never both 0, and a stop line has
a light or a sign. A blind agent observes no partners, and their count is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.grid import cell_along
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.layout import CLIP
from roadworthy.sim.rules import draws
from roadworthy.sim.state import COLUMNS, COS, ROWS, SIN, Real, Whole, X, Y

_ZERO = np.float32(0.0)
_HIGH, _LOW = np.float32(CLIP), np.float32(-CLIP)
_FARTHEST_M = np.float32(1e7)  # an agent farther from the origin observes only zeros
_NO_DIRECTION = np.float32(2.0)


@rule(inline=True)
def has_valid_pose(agents: Floats, a: Whole) -> bool:
    """Return whether the agent's position and heading are finite and not absurdly large."""
    is_placed = abs(agents[X, a]) < _FARTHEST_M and abs(agents[Y, a]) < _FARTHEST_M
    return is_placed and abs(agents[COS, a]) < _NO_DIRECTION and abs(agents[SIN, a]) < _NO_DIRECTION


@rule(inline=True)
def clipped(value: Real) -> Any:
    """Clip a value to -CLIP to CLIP; NaN becomes -CLIP."""
    value = value if value > _LOW else _LOW
    return value if value < _HIGH else _HIGH


@rule(inline=True)
def map_cell(sizes: Ints, origin: Floats, x: Real, y: Real) -> Any:
    """Return the grid cell that contains a position, or the nearest one."""
    return cell_along(y, origin[1], sizes[ROWS]) * sizes[COLUMNS] + cell_along(x, origin[0], sizes[COLUMNS])


@rule(inline=True)
def share(count: Whole, most: Whole) -> Any:
    """Return a count as a share of its maximum."""
    return np.float32(count) / np.float32(max(most, 1))


@rule(inline=True)
def zero(row_out: Floats, start: Whole, stop: Whole) -> None:
    """Zero a contiguous part of the row, which is faster than zeroing the rest of each feature."""
    for k in range(start, stop):
        row_out[k] = _ZERO


@rule(inline=True)
def clear(row_out: Floats, at: Whole, features: Whole, count: Whole, n: Whole) -> None:
    """Zero the entries from `count` on in a block of n."""
    if count < n:
        for f in range(features):
            for k in range(at + f * n + count, at + f * n + n):
                row_out[k] = _ZERO


@rule(inline=True)
def drop(
    key: Whole, block: Whole, chance: Real, row_out: Floats, at: Whole, features: Whole, count: Whole, n: Whole
) -> None:
    """Zero each of the first `count` entries of a block of n with a probability.

    block: number of the block, a key of the draws.
    """
    for k in range(count):
        if draws.uniform(key, block, k, draws.DROPOUT) < chance:
            for f in range(features):
                row_out[at + f * n + k] = _ZERO
