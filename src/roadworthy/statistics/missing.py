"""Missing data: rows whose episode crashed, timed out or never ran, bounded by their worst and best values.

Episodes seldom fail by chance: a hard scenario is slow to simulate. So an estimate from the other rows is biased, and
no formula knows by how much. The bounds say what the figure would be if every missing row had the least, or the
greatest, possible value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roadworthy.statistics.clusters import Array
from roadworthy.statistics.intervals import Interval


def with_missing(
    estimate: Callable[[Array], Interval],
    values: Array,
    is_missing: NDArray[np.bool_],
    failed: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Interval:
    """Return an estimate with the share of missing rows, and with worst-case bounds if rows have bounds.

    Args:
        estimate: Estimates a figure from the values of all rows, (n,), NaN for no data.
        values: The values of all rows; those of missing rows are ignored.
        is_missing: Whether the episode of a row crashed, timed out or never ran, (n,).
        failed: The value that stands for a missing row in the estimate; None: it is left out.
        bounds: The least and the greatest possible value of a row.

    Example:
        >>> clusters = Clusters.of(["a", "b", "c", "d"])
        >>> passed, crashed = np.array([1.0, 1.0, 0.0, np.nan]), np.array([False, False, False, True])
        >>> with_missing(lambda rows: rate(rows, clusters), passed, crashed, 0.0, (0.0, 1.0)).value
        0.5
    """
    count = int(np.count_nonzero(is_missing))
    if not count:
        found = estimate(values)
        return replace(found, worst_low=found.low, worst_high=found.high)
    found = estimate(_filled(values, is_missing, np.nan if failed is None else failed))
    known = int(np.count_nonzero(~np.isnan(values) & ~is_missing))
    found = replace(found, missing=count / (count + known))
    if bounds is None:
        return found
    least, most = (estimate(_filled(values, is_missing, bound)) for bound in bounds)
    lows = [end for end in (found.low, least.low) if end is not None]
    highs = [end for end in (found.high, most.high) if end is not None]
    return replace(found, worst_low=min(lows, default=None), worst_high=max(highs, default=None))


def _filled(values: Array, is_missing: NDArray[np.bool_], value: float) -> Array:
    return np.where(is_missing, value, values)
