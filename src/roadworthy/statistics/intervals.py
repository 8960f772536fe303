"""Intervals of rates, means and ratios, clustered by scenario; docs/statistics.md explains the choice of methods.

rate    binary, one row per scenario: Wilson's interval. Several rows per scenario: Wilson's interval with the effective
        sample size from the variance between scenarios. Where the rarer outcome occurred in few scenarios, the size
        moves toward one row per scenario.
mean    the studentized bootstrap over scenarios.
ratio   a sum over a sum: the same.

An estimate without an interval has a note with the reason: "not enough data".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt

import numpy as np
from scipy import special

from roadworthy.errors import UsageError
from roadworthy.statistics.bootstrap import studentized_quantiles
from roadworthy.statistics.clusters import Array, Clusters, Sums, sums

LEVEL = 0.95
# The fewest scenarios for intervals whose level is right within two points; measured, see docs/statistics.md.
FEWEST_FOR_RATES = 10  # with several rows each
FEWEST_FOR_MEANS = 80
FEWEST_WITH_EVENTS = 10  # for ratios: scenarios with at least one event
_LEAST_DESIGN_EFFECT = 0.6  # a smaller one is due to chance, because rows of a scenario are not less alike than others


@dataclass(frozen=True)
class Interval:
    """An estimate and, if there are enough data, its interval."""

    value: float | None  # None: no data
    n: float  # rows; for a ratio, the sum of its denominator
    clusters: int  # the number of clusters that the rows come from
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str | None = None
    note: str | None = None  # the reason why something is missing, or what the interval assumes
    missing: float = 0.0  # the share of the planned rows whose episode crashed, timed out or never ran
    # The interval widened by the worst and best values of what is missing; as low and high if nothing is missing.
    worst_low: float | None = None
    worst_high: float | None = None


def rate(values: Array, clusters: Clusters, level: float = LEVEL, *, each_once: bool = False) -> Interval:
    """Return the rate of rows (n,) of 0, 1 and NaN (no data); each_once: the mean of the scenarios' rates."""
    _require_level(level)
    given = sums(values, clusters)
    given = given.each_once() if each_once else given
    finite = values[~np.isnan(values)]
    if finite.size and not ((finite == 0.0) | (finite == 1.0)).all():
        raise UsageError("a rate needs rows that are 0 or 1; use mean for other values")
    found = _estimate(given)
    if found.value is None:
        return found
    if given.is_one_each:
        low, high = wilson(found.value, given.rows, normal_quantile(level))
        return replace(found, low=low, high=high, level=level, method="Wilson")
    if given.count < FEWEST_FOR_RATES:
        return _too_few(found, f"{given.count} scenarios with several rows each", FEWEST_FOR_RATES)
    p = found.value
    size = effective_size(given, p * (1.0 - p))
    low, high = wilson(p, size, student_quantile(level, given.count - 1))
    return replace(found, low=low, high=high, level=level, method="clustered Wilson")


def mean(
    values: Array,
    clusters: Clusters,
    level: float = LEVEL,
    *,
    is_share: bool = False,
    each_once: bool = False,
) -> Interval:
    """Return the mean of rows (n,), NaN for no data; each_once: of the scenarios' means. Shares are from 0 to 1."""
    _require_level(level)
    given = sums(values, clusters)
    given = given.each_once() if each_once else given
    found = _estimate(given)
    if found.value is None:
        return found
    if given.count < FEWEST_FOR_MEANS:
        return _too_few(found, f"{given.count} scenarios", FEWEST_FOR_MEANS)
    if given.standard_error <= 1e-12 * max(abs(found.value), 1.0):
        if not is_share or found.value not in (0.0, 1.0):
            return replace(found, note="not enough data: all scenarios are equal")
        # Binary shares vary most among shares with a given mean, so their interval is wide enough for all.
        low, high = wilson(found.value, given.count, normal_quantile(level))
        return replace(found, low=low, high=high, level=level, method="Wilson")
    return _bootstrapped(found, given, level, (0.0, 1.0) if is_share else (-inf, inf))


def ratio(
    numerators: Array, denominators: Array, clusters: Clusters, level: float = LEVEL, least: float = 0.0
) -> Interval:
    """Return the sum of numerators over the sum of denominators, (n,) each; no data if the latter is zero."""
    _require_level(level)
    given = sums(numerators, clusters, denominators)
    found = _estimate(given)
    if found.value is None:
        return found
    events = int(np.count_nonzero(given.total))
    if given.count < FEWEST_FOR_MEANS:
        return _too_few(found, f"{given.count} scenarios", FEWEST_FOR_MEANS)
    if events < FEWEST_WITH_EVENTS:
        return _too_few(found, f"it happened in {events} scenarios", FEWEST_WITH_EVENTS)
    return _bootstrapped(found, given, level, (least, inf))


def wilson(p: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share p of n, within 0 and 1."""
    square = quantile**2
    middle = (p + square / (2.0 * n)) / (1.0 + square / n)
    half = quantile / (1.0 + square / n) * sqrt(p * (1.0 - p) / n + square / (4.0 * n**2))
    return (0.0 if p == 0.0 else max(middle - half, 0.0)), (1.0 if p == 1.0 else min(middle + half, 1.0))


def effective_size(given: Sums, row_variance: float) -> float:
    """Return the effective sample size: the number of independent rows with the same information.

    The design effect is the variance between clusters over that of independent rows. It is estimated from the clusters
    with the rarer outcome. If there are few of them, it may be anything up to its maximum, where all rows of a cluster
    are equal, so it is moved toward the maximum: by a half with one such cluster, a quarter with two, and so on. A
    cluster that holds most of the rarer outcomes reduces the weight of the others.
    """
    largest = given.rows * float((given.weight**2).sum() / given.weight.sum() ** 2)
    if row_variance > 0.0:
        effect = max(given.jackknife_variance() / (row_variance / given.rows), _LEAST_DESIGN_EFFECT)
    else:
        effect = largest
    squares = float((given.minority**2).sum())
    holders = float(given.minority.sum()) ** 2 / squares if squares > 0.0 else 0.0
    doubt = 0.5**holders
    effect = (1.0 - doubt) * effect + doubt * max(largest, effect)
    return given.rows / effect


def normal_quantile(level: float) -> float:
    """Return the half width of an interval of this level in standard errors, for the normal distribution."""
    return float(special.ndtri(0.5 + level / 2.0))


def student_quantile(level: float, freedom: float) -> float:
    """Return the half width in standard errors for Student's t with these degrees of freedom."""
    return float(special.stdtrit(freedom, 0.5 + level / 2.0))


def _estimate(given: Sums) -> Interval:
    note = "no data" if given.rows == 0 or given.value is None else None
    return Interval(given.value, given.rows, given.count, note=note)


def _bootstrapped(found: Interval, given: Sums, level: float, bounds: tuple[float, float]) -> Interval:
    assert found.value is not None
    low, high = studentized_quantiles(given, level)
    if not (isfinite(low) and isfinite(high)):
        return replace(found, note="not enough data: too few scenarios differ from the others")
    error = given.standard_error
    return replace(
        found,
        low=max(found.value - high * error, bounds[0]),
        high=min(found.value - low * error, bounds[1]),
        level=level,
        method="bootstrap-t",
    )


def _too_few(found: Interval, given: str, needed: int) -> Interval:
    return replace(found, note=f"not enough data: {given}, an interval needs {needed}")


def _require_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise UsageError(f"the level of an interval is {level}; allowed: above 0 and below 1, such as {LEVEL}")
