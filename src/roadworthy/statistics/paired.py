"""Intervals of paired differences: the same ego in two trials, or the same episode in two runs."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.statistics.clusters import Array, Clusters, sums
from roadworthy.statistics.intervals import (
    FEWEST_FOR_RATES,
    LEVEL,
    Interval,
    effective_sizes,
    mean,
    normal_quantile,
    student_quantile,
    wilson,
)

_TINY = 1e-9


def paired_rate(
    after: Array, before: Array, clusters: Clusters, level: float = LEVEL, *, units: Clusters | None = None
) -> Interval:
    """Return the difference of two rates over pairs (n,) of 0, 1 and NaN with Tango's interval, clustered.

    units: groups of rows within the clusters whose rows may all be alike, such as scenarios on maps; see rate.
    """
    differences = np.asarray(after, np.float64) - np.asarray(before, np.float64)
    finite = differences[~np.isnan(differences)]
    if finite.size and not np.isin(finite, (-1.0, 0.0, 1.0)).all():
        raise UsageError("paired rates need rows that are 0 or 1; use paired_mean for other values")
    given = sums(differences, clusters, None, units)
    found = Interval(given.value, given.rows, given.count, note=None if given.rows else "no data")
    if found.value is None:
        return found
    changed = sums(np.abs(differences), clusters)
    given = replace(given, minority=changed.total)
    gains, losses = float((finite > 0.0).mean()), float((finite < 0.0).mean())
    if given.is_one_each:
        size, quantile, method = float(given.rows), normal_quantile(level), "Tango"
    elif given.count < FEWEST_FOR_RATES:
        note = f"not enough data: {given.count} scenarios with several rows each, an interval needs {FEWEST_FOR_RATES}"
        return replace(found, note=note)
    else:
        # The smaller effective number would widen the interval for no gain in coverage: see docs/comparison.md.
        size = effective_sizes(given, gains + losses - found.value**2)[0]
        quantile, method = student_quantile(level, given.count - 1), "clustered Tango"
    low, high = tango(gains * size, losses * size, size, quantile)
    return replace(found, low=low, high=high, level=level, method=method)


def one_pair_per_cluster(differences: Array, clusters: Clusters, level: float = LEVEL) -> Interval:
    """Return the mean of differences (n,) from -1 to 1 with Tango's interval as if each cluster were one pair.

    It is right however alike the rows of a cluster are, because differences of -1, 0 and 1 vary most among those with
    a given mean. So it is wide, and made for few clusters, or few that differ.
    """
    given = sums(differences, clusters)
    found = Interval(given.value, given.rows, given.count, note=None if given.rows else "no data")
    if found.value is None:
        return found
    if given.count < 2:
        return replace(found, note=f"not enough data: {given.count} cluster, an interval needs 2")
    size = given.effective_count
    weight = float(given.weight.sum())
    gains, losses = (float(np.maximum(sign * given.total, 0.0).sum()) / weight for sign in (1.0, -1.0))
    low, high = tango(gains * size, losses * size, size, normal_quantile(level))
    return replace(found, low=low, high=high, level=level, method="Tango, one pair per cluster")


def tango(gains: float, losses: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Tango's score interval of (gains - losses) / n over n pairs, the paired analog of Wilson's interval."""
    from scipy.optimize import brentq  # slow to import, and not needed without pairs

    estimate = (gains - losses) / n

    def deviation(delta: float) -> float:
        """Return the distance of the estimate above a difference, in standard errors under that difference."""
        b = (2.0 * n - gains + losses) * delta - gains - losses
        rate_of_losses = (sqrt(max(b * b + 8.0 * n * losses * delta * (1.0 - delta), 0.0)) - b) / (4.0 * n)
        variance = n * (2.0 * rate_of_losses + delta * (1.0 - delta))
        return (gains - losses - n * delta) / sqrt(max(variance, _TINY))

    low = -1.0 if losses == n else float(brentq(lambda delta: deviation(delta) - quantile, _TINY - 1.0, estimate))
    high = 1.0 if gains == n else float(brentq(lambda delta: deviation(delta) + quantile, estimate, 1.0 - _TINY))
    return low, high


def paired_mean(after: Array, before: Array, clusters: Clusters, level: float = LEVEL) -> Interval:
    """Return the mean difference over pairs (n,), NaN for no data, with the studentized bootstrap over scenarios."""
    return mean(np.asarray(after, np.float64) - np.asarray(before, np.float64), clusters, level)


def newcombe_paired(
    both: float, gains: float, losses: float, neither: float, level: float = LEVEL
) -> tuple[float, float]:
    """Return Newcombe's interval of a difference of paired rates: Wilson's limits of both, with their correlation.

    It is method 10 of Newcombe (1998), for independent pairs.

    Args:
        both: The number of pairs with a success in both runs.
        gains: With a success in the candidate alone.
        losses: With a success in the baseline alone.
        neither: With a success in neither.
        level: The level of the interval.
    """
    n = both + gains + losses + neither
    first, second = (both + gains) / n, (both + losses) / n
    quantile = normal_quantile(level)
    low_1, high_1 = wilson(first, n, quantile)
    low_2, high_2 = wilson(second, n, quantile)
    product = (both + gains) * (losses + neither) * (both + losses) * (gains + neither)
    excess = both * neither - gains * losses
    # The continuity correction applies to positive correlations alone.
    excess = max(excess - n / 2.0, 0.0) if excess > 0.0 else excess
    correlation = excess / sqrt(product) if product > 0.0 else 0.0
    return mover((first, low_1, high_1), (second, low_2, high_2), correlation)


def mover(
    first: tuple[float, float, float], second: tuple[float, float, float], correlation: float = 0.0
) -> tuple[float, float]:
    """Return the interval of first minus second from (value, low, high) of each: the method of variance recovery."""
    value_1, low_1, high_1 = first
    value_2, low_2, high_2 = second
    difference = value_1 - value_2

    def half(a: float, b: float) -> float:
        return sqrt(max(a * a - 2.0 * correlation * a * b + b * b, 0.0))

    low = difference - half(value_1 - low_1, high_2 - value_2)
    high = difference + half(high_1 - value_1, value_2 - low_2)
    return low, high
