"""Intervals of rates, means and ratios, clustered by what rows share; docs/statistics.md explains the methods.

rate    binary, one row per cluster: Wilson's interval. Several rows per cluster: Wilson's interval with an effective
        number of rows (see effective_sizes). Fewer than 10 clusters: Clopper and Pearson's, each counts as one row.
mean    the studentized bootstrap over clusters, at least as wide as Student's t. Bounded values in fewer than 10
        clusters: as a rate, because values that are 0 or 1 vary most.
ratio   events over a distance: Garwood's interval of a Poisson rate with a design effect. Others: as a mean.

An estimate without an interval has a note with the reason: "not enough data". An interval that rests on an assumption
has a note that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt

import numpy as np
from scipy import special

from roadworthy.errors import UsageError
from roadworthy.statistics.bootstrap import studentized_quantiles
from roadworthy.statistics.clusters import Array, Clusters, Sums, sums, sums_of_units

LEVEL = 0.95
# The numbers of clusters from which intervals hold their level within two points; measured, see docs/statistics.md.
FEWEST_FOR_RATES = 10  # below, each cluster counts as one row
FEWEST_FOR_MEANS = 80  # below, an interval of a mean has a note with its assumption
FEWEST_WITH_NOTE = 10  # below, a mean without bounds has no interval
FEWEST_UNEQUAL = 15  # the same for clusters of unequal size, as an effective number
FEWEST_FOR_RATIOS = 3
FEWEST_WITH_EVENTS = 10  # for ratios that do not count events: clusters with a value other than zero
FEW_HOLDERS = 4.0  # clusters with the rarer outcome, below which its rate has the exact end toward the nearer bound
_LEAST_DESIGN_EFFECT = 0.6  # a smaller one is due to chance, because rows of a cluster are not less alike than others
_SMALL_SAMPLE = 3.0  # the standard error of a mean grows by this over the effective number of clusters


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


def rate(
    values: Array,
    clusters: Clusters,
    level: float = LEVEL,
    *,
    each_once: bool | Clusters = False,
    units: Clusters | None = None,
) -> Interval:
    """Return the rate of rows (n,) of 0, 1 and NaN (no data).

    Args:
        values: One value per row.
        clusters: The cluster of each row.
        level: The level of the interval.
        each_once: Return the mean of the rates of clusters, or of other units that lie in clusters.
        units: Groups of rows within the clusters whose rows may all be alike, such as scenarios on maps; by default,
            all rows of a cluster may be. They decide how wide the interval is where failures are rare.
    """
    _require_level(level)
    finite = values[~np.isnan(values)]
    if finite.size and not ((finite == 0.0) | (finite == 1.0)).all():
        raise UsageError("a rate needs rows that are 0 or 1; use mean for other values")
    given = _sums(values, clusters, each_once, units)
    found = _estimate(given)
    p = found.value
    if p is None:
        return found
    if given.is_one_each:
        low, high = wilson(p, given.rows, normal_quantile(level))
        return replace(found, low=low, high=high, level=level, method="Wilson")
    if given.count < FEWEST_FOR_RATES:
        return _one_row_per_cluster(found, given, level)
    nearer, farther = effective_sizes(given, p * (1.0 - p))
    quantile = student_quantile(level, max(given.effective_count - 1.0, 1.0))
    lows, highs = zip(*(wilson(p, size, quantile) for size in (nearer, farther)), strict=True)
    low, high = (lows[0], highs[1]) if p <= 0.5 else (lows[1], highs[0])
    if _holders(given.minority) < FEW_HOLDERS:  # there, Wilson's end toward the nearer bound is too close
        exact = clopper_pearson(p, nearer, level)
        low, high = (min(low, exact[0]), high) if p <= 0.5 else (low, max(high, exact[1]))
    return replace(found, low=low, high=high, level=level, method="clustered Wilson")


def mean(
    values: Array,
    clusters: Clusters,
    level: float = LEVEL,
    *,
    is_share: bool = False,
    each_once: bool | Clusters = False,
    bounds: tuple[float, float] | None = None,
    units: Clusters | None = None,
) -> Interval:
    """Return the mean of rows (n,), NaN for no data.

    Args:
        values: One value per row.
        clusters: The cluster of each row.
        level: The level of the interval.
        is_share: The values are from 0 to 1.
        each_once: Return the mean of the means of clusters, or of other units that lie in clusters.
        bounds: The least and the greatest possible value of a row.
        units: Groups of rows within the clusters, as for rates; for shares that are all at a bound.
    """
    _require_level(level)
    given = _sums(values, clusters, each_once, units)
    found = _estimate(given)
    if found.value is None:
        return found
    bounds = (0.0, 1.0) if is_share else bounds
    needed = FEWEST_WITH_NOTE if given.has_equal_sizes else FEWEST_UNEQUAL
    has_enough = given.count >= FEWEST_WITH_NOTE and given.effective_count >= needed - 1e-9
    if not has_enough:
        if bounds is not None:
            return _one_row_per_cluster(found, given, level, bounds)
        return _too_few(found, f"{given.effective_count:.3g} clusters", needed)
    if given.standard_error <= 1e-12 * max(abs(found.value), 1.0):
        if bounds is None or found.value not in bounds:
            return replace(found, note="not enough data: all clusters are equal")
        # Values at the bounds vary most among values with a given mean, so their interval is wide enough for all.
        low, high = _scaled(wilson, found.value, bounds, given.rows / given.largest_effect, normal_quantile(level))
        return replace(found, low=low, high=high, level=level, method="Wilson")
    return _bootstrapped(found, given, level, bounds)


def ratio(
    numerators: Array,
    denominators: Array,
    clusters: Clusters,
    level: float = LEVEL,
    least: float = 0.0,
    *,
    units: Clusters | None = None,
) -> Interval:
    """Return the sum of numerators over the sum of denominators, (n,) each; no data if the latter is zero.

    units: groups of rows within the clusters, as for rates.
    """
    _require_level(level)
    given = sums(numerators, clusters, denominators, units)
    found = _estimate(given)
    if found.value is None:
        return found
    counts = np.asarray(numerators, np.float64)
    counts = counts[~np.isnan(counts)]
    if bool((counts >= 0.0).all() and (counts == np.floor(counts)).all()):
        if given.count < FEWEST_FOR_RATIOS:
            return _too_few(found, f"{given.count} clusters", FEWEST_FOR_RATIOS)
        low, high = _events_interval(given, level)
        return replace(found, low=max(low, least), high=high, level=level, method="clustered Garwood")
    spread = int(np.count_nonzero(given.total))
    if given.effective_count < FEWEST_UNEQUAL:
        return _too_few(found, f"{given.effective_count:.3g} clusters", FEWEST_UNEQUAL)
    if spread < FEWEST_WITH_EVENTS:
        return _too_few(found, f"it happened in {spread} clusters", FEWEST_WITH_EVENTS)
    return _bootstrapped(found, given, level, (least, inf))


def wilson(p: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share p of n, within 0 and 1."""
    square = quantile**2
    middle = (p + square / (2.0 * n)) / (1.0 + square / n)
    half = quantile / (1.0 + square / n) * sqrt(p * (1.0 - p) / n + square / (4.0 * n**2))
    return (0.0 if p == 0.0 else max(middle - half, 0.0)), (1.0 if p == 1.0 else min(middle + half, 1.0))


def clopper_pearson(p: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share p of n, which need not be a whole number."""
    tail, yes = (1.0 - level) / 2.0, p * n
    low = 0.0 if p <= 0.0 else float(special.betaincinv(yes, n - yes + 1.0, tail))
    high = 1.0 if p >= 1.0 else float(special.betaincinv(yes + 1.0, n - yes, 1.0 - tail))
    return low, high


def garwood(events: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Garwood's interval of the expected number of events of a Poisson process, given the observed number."""
    tail = (1.0 - level) / 2.0
    low = float(special.gammaincinv(events, tail)) if events > 0.0 else 0.0
    return low, float(special.gammaincinv(events + 1.0, 1.0 - tail))


def effective_size(given: Sums, row_variance: float) -> float:
    """Return the effective number of rows: how many independent rows carry the same information; see effective_sizes.

    This is the smaller one, for intervals that reach to both sides alike.
    """
    return effective_sizes(given, row_variance)[1]


def effective_sizes(given: Sums, row_variance: float) -> tuple[float, float]:
    """Return the effective number of rows toward the nearer bound of a rate, and away from it.

    The design effect is the variance between clusters over that of independent rows. It is estimated from the clusters
    with the rarer outcome. A cluster in which all rows fail together, and of which the sample has none yet, does not
    show in it. So the effect moves toward its maximum, at which all rows of a cluster are equal: by 1 / (1 + k) where
    a missing one matters little, toward the nearer bound, and by 1 / (1 + k / m) away from it, where k is the
    effective number of clusters with the rarer outcome, and m the mean number of rows of a cluster: k / m is how many
    clusters the rarer outcomes would fill.
    """
    largest = given.largest_effect
    if row_variance > 0.0:
        effect = max(given.jackknife_variance() / (row_variance / given.rows), _LEAST_DESIGN_EFFECT)
    else:
        effect = largest
    nearer, farther = _with_doubt(effect, largest, _holders(given.minority), _rows_each(given))
    return given.rows / nearer, given.rows / farther


def normal_quantile(level: float) -> float:
    """Return the half width of an interval of this level in standard errors, for the normal distribution."""
    return float(special.ndtri(0.5 + level / 2.0))


def student_quantile(level: float, freedom: float) -> float:
    """Return the half width in standard errors for Student's t with these degrees of freedom."""
    return float(special.stdtrit(freedom, 0.5 + level / 2.0))


def _sums(values: Array, clusters: Clusters, each_once: bool | Clusters, units: Clusters | None) -> Sums:
    if each_once is False:
        return sums(values, clusters, None, units)
    return sums_of_units(values, clusters, clusters if each_once is True else each_once)


def _estimate(given: Sums) -> Interval:
    note = "no data" if given.rows == 0 or given.value is None else None
    return Interval(given.value, given.rows, given.count, note=note)


def _holders(events: Array) -> float:
    """Return the effective number of clusters that hold events: one that holds most of them counts for little more."""
    squares = float((events**2).sum())
    return float(events.sum()) ** 2 / squares if squares > 0.0 else 0.0


def _rows_each(given: Sums) -> float:
    """Return the number of rows that may all be alike."""
    return given.rows / given.count if given.unit_count is None else given.largest_effect


def _with_doubt(effect: float, largest: float, holders: float, rows_each: float) -> tuple[float, float]:
    """Return the design effect toward the nearer bound and away from it."""
    most = max(largest, effect)
    nearer, farther = 1.0 / (1.0 + holders), 1.0 / (1.0 + holders / rows_each)
    return effect + nearer * (most - effect), effect + farther * (most - effect)


def _one_row_per_cluster(
    found: Interval, given: Sums, level: float, bounds: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """Return the interval of few clusters, each of which counts as one row: right however alike its rows are."""
    if given.count < 2:
        return _too_few(found, f"{given.count} cluster with {given.rows} rows", 2)
    assert found.value is not None
    low, high = _scaled(clopper_pearson, found.value, bounds, given.effective_count, level)
    return replace(found, low=low, high=high, level=level, method="Clopper-Pearson, one row per cluster")


def _scaled(
    method: Callable[[float, float, float], tuple[float, float]],
    value: float,
    bounds: tuple[float, float],
    n: float,
    argument: float,
) -> tuple[float, float]:
    """Return the interval of a mean between bounds by a method for shares."""
    least, width = bounds[0], bounds[1] - bounds[0]
    low, high = method(min(max((value - least) / width, 0.0), 1.0), n, argument)
    return least + width * low, least + width * high


def _events_interval(given: Sums, level: float) -> tuple[float, float]:
    """Return Garwood's interval of events per denominator with a design effect.

    Without events, nothing is known about how they come together, so all rows of a cluster count as one. With few
    clusters, the effect is itself uncertain: it grows by the square of Student's quantile over the normal one.
    """
    events, over, value = float(given.total.sum()), float(given.weight.sum()), given.value
    assert value is not None
    clusters = given.effective_count
    largest = given.largest_effect
    effect = max(given.jackknife_variance() / (value / over), 1.0) if events > 0.0 else largest
    nearer, farther = _with_doubt(effect, largest, _holders(given.total), _rows_each(given))
    spread = (student_quantile(level, max(clusters - 1.0, 1.0)) / normal_quantile(level)) ** 2
    nearer, farther = nearer * spread, farther * spread
    low = garwood(events / nearer, level)[0] * nearer / over
    return low, garwood(events / farther, level)[1] * farther / over


def _bootstrapped(found: Interval, given: Sums, level: float, bounds: tuple[float, float] | None) -> Interval:
    """Return the bootstrap-t interval of a mean; not narrower than Student's, and with room for few clusters."""
    assert found.value is not None
    low, high = studentized_quantiles(given, level)
    clusters = given.effective_count
    student = student_quantile(level, clusters - 1.0)
    few = student / student_quantile(level, given.count - 1)
    low, high = min(low * few, -student), max(high * few, student)
    is_bounded = bounds is not None and isfinite(bounds[1])
    if not (isfinite(low) and isfinite(high)):
        if is_bounded:
            return _one_row_per_cluster(found, given, level, bounds)  # type: ignore[arg-type]
        return replace(found, note="not enough data: too few clusters differ from the others")
    error = sqrt(given.jackknife_variance()) * (1.0 + _SMALL_SAMPLE / clusters)
    least, most = bounds or (-inf, inf)
    if is_bounded:
        least, most = _scaled(clopper_pearson, found.value, (least, most), clusters, level)
    note = None
    if given.count < FEWEST_FOR_MEANS:
        note = f"assumes that no rare extreme values are missing from its {given.count} clusters"
    return replace(
        found,
        low=max(found.value - high * error, least),
        high=min(found.value - low * error, most),
        level=level,
        method="bootstrap-t",
        note=note,
    )


def _too_few(found: Interval, given: str, needed: int) -> Interval:
    return replace(found, note=f"not enough data: {given}, an interval needs {needed}")


def _require_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise UsageError(f"the level of an interval is {level}; allowed: above 0 and below 1, such as {LEVEL}")
