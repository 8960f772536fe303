"""Differences of two rates of independent runs: Newcombe's interval from Wilson's limits, clustered where needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadworthy.statistics.clusters import Array, Clusters
from roadworthy.statistics.differences import Tested
from roadworthy.statistics.intervals import LEVEL, Interval, normal_quantile, rate, student_quantile, wilson
from roadworthy.statistics.paired import mover

_STEPS = 40  # of the bisection for the p-value


def unpaired_rate(
    candidate: Array, baseline: Array, clusters: tuple[Clusters, Clusters], level: float = LEVEL
) -> Tested:
    """Return the difference of two rates of independent rows.

    Args:
        candidate: Rows of 0, 1 and NaN.
        baseline: The same of the baseline.
        clusters: The clusters of both; with several rows per cluster, Wilson's limits use the effective sample size.
        level: The level of the interval.
    """
    found = [rate(values, own, level) for values, own in zip((candidate, baseline), clusters, strict=True)]
    first, second = found
    rows, count = int(first.n + second.n), min(first.clusters, second.clusters)
    if first.value is None or second.value is None:
        return Tested(Interval(None, rows, count, note="no data"), None)
    whole = Interval(first.value - second.value, rows, count)
    if first.low is None or second.low is None:
        return Tested(replace(whole, note=first.note if first.low is None else second.note), None)
    limits = [_Limits(each) for each in found]
    low, high = mover((first.value, first.low, first.high or 0.0), (second.value, second.low, second.high or 0.0))
    is_clustered = "clustered" in f"{first.method} {second.method}"
    method = "clustered Newcombe" if is_clustered else "Newcombe"
    whole = replace(whole, low=low, high=high, level=level, method=method)
    return Tested(whole, _p_value(limits, whole.value or 0.0))


class _Limits:
    """The limits of a rate at any level, with the effective numbers of rows that its interval has at one level."""

    def __init__(self, found: Interval) -> None:
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        self.value = found.value
        self._freedom = None if found.method == "Wilson" else max(found.clusters - 1, 1)
        quantile = self._quantile(found.level or LEVEL)
        # Toward a bound that the rate is at, there is no limit; the other one says all.
        low = found.low if found.value > 0.0 else found.high
        high = found.high if found.value < 1.0 else found.low
        self._low_size, self._high_size = (_size_of(found.value, edge, quantile) for edge in (low, high))

    def at(self, level: float) -> tuple[float, float, float]:
        """Return value, lower and upper limit."""
        quantile = self._quantile(level)
        low, high = wilson(self.value, self._low_size, quantile)[0], wilson(self.value, self._high_size, quantile)[1]
        return self.value, low, high

    def _quantile(self, level: float) -> float:
        return normal_quantile(level) if self._freedom is None else student_quantile(level, self._freedom)


def _size_of(p: float, edge: float, quantile: float) -> float:
    """Return the number of rows with this limit of Wilson: a root of (x - p)**2 = q**2 x (1 - x) / n."""
    return max(quantile**2 * edge * (1.0 - edge) / (edge - p) ** 2, 1e-6)


def _interval(limits: list[_Limits], level: float) -> tuple[float, float]:
    return mover(limits[0].at(level), limits[1].at(level))


def _p_value(limits: list[_Limits], difference: float) -> float:
    """Return 1 minus the highest level whose interval excludes 0."""
    if difference == 0.0:
        return 1.0
    least, most = -12.0, 0.0  # powers of ten of the p-value
    for _ in range(_STEPS):
        middle = 0.5 * (least + most)
        low, high = _interval(limits, 1.0 - 10.0**middle)
        if low > 0.0 or high < 0.0:
            most = middle
        else:
            least = middle
    return float(np.clip(10.0**most, 0.0, 1.0))
