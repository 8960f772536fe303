"""Differences of means, shares and ratios by the studentized bootstrap over clusters, with p-values.

Both figures are a sum over a sum. In pairs, clusters are drawn with both figures, so what they share cancels; without
pairs, the clusters of each run are drawn separately, and the standard errors add up as in Welch's test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite, sqrt

import numpy as np
from scipy import special

from roadworthy.statistics.bootstrap import DRAWS, MOST_CLUSTERS, SEED
from roadworthy.statistics.clusters import Array, Clusters
from roadworthy.statistics.intervals import FEWEST_WITH_EVENTS, LEVEL, Interval

# The fewest clusters for intervals whose level is right within two points; measured, see docs/comparison.md.
FEWEST_CLUSTERS = 20
_AT_ONCE = 1 << 21  # counts that are held in memory at a time


@dataclass(frozen=True)
class Tested:
    """A difference with its interval and the p-value of no difference."""

    interval: Interval
    p: float | None  # None: not enough data


@dataclass(frozen=True)
class Part:
    """A sum over a sum by cluster, (G,) each."""

    total: Array
    weight: Array

    @property
    def value(self) -> float:
        return float(self.total.sum() / self.weight.sum())


def paired_difference(
    candidate: Array,
    baseline: Array,
    clusters: Clusters,
    weights: tuple[Array, Array] | None = None,
    level: float = LEVEL,
) -> Tested:
    """Return the difference of two means, or of two ratios, over pairs.

    Args:
        candidate: Values (n,), or numerators; NaN for no data.
        baseline: The same of the baseline.
        clusters: The cluster of each pair.
        weights: The denominators of candidate and baseline, (n,) each, for ratios.
        level: The level of the interval.
    """
    known = ~(np.isnan(candidate) | np.isnan(baseline))
    if weights is not None:
        known &= ~(np.isnan(weights[0]) | np.isnan(weights[1]))
    clusters = clusters.chosen(known)
    ones = np.ones(int(known.sum()))
    parts = [
        _part(values[known], ones if weights is None else weights[side][known], clusters)
        for side, values in enumerate((candidate, baseline))
    ]
    return _tested(parts[0], parts[1], len(ones), clusters.count, level, is_paired=True, is_ratio=weights is not None)


def unpaired_difference(
    candidate: Array,
    baseline: Array,
    clusters: tuple[Clusters, Clusters],
    weights: tuple[Array, Array] | None = None,
    level: float = LEVEL,
) -> Tested:
    """Return the difference of two means, or of two ratios, of independent rows; arguments as for pairs."""
    parts, rows = [], 0
    for side, values in enumerate((candidate, baseline)):
        known = ~np.isnan(values) if weights is None else ~(np.isnan(values) | np.isnan(weights[side]))
        own = clusters[side].chosen(known)
        count = int(known.sum())
        parts.append(_part(values[known], np.ones(count) if weights is None else weights[side][known], own))
        rows += count
    fewest = min(len(part.total) for part in parts)
    return _tested(parts[0], parts[1], rows, fewest, level, is_paired=False, is_ratio=weights is not None)


def _part(values: Array, weights: Array, clusters: Clusters) -> Part:
    codes, count = clusters.codes, clusters.count
    total = np.bincount(codes, values, count).astype(np.float64)
    return Part(total, np.bincount(codes, weights, count).astype(np.float64))


def _tested(
    first: Part, second: Part, rows: int, clusters: int, level: float, *, is_paired: bool, is_ratio: bool
) -> Tested:
    if not rows or not (first.weight.sum() > 0.0 and second.weight.sum() > 0.0):
        return Tested(Interval(None, rows, clusters, note="no data"), None)
    difference = first.value - second.value
    found = Interval(difference, rows, clusters)
    if clusters < FEWEST_CLUSTERS:
        note = f"not enough data: {clusters} clusters, an interval needs {FEWEST_CLUSTERS}"
        return Tested(replace(found, note=note), None)
    events = min(int(np.count_nonzero(part.total)) for part in (first, second))
    if is_ratio and events < FEWEST_WITH_EVENTS:
        note = f"not enough data: it happened in {events} clusters, an interval needs {FEWEST_WITH_EVENTS}"
        return Tested(replace(found, note=note), None)
    error = _paired_error(first, second) if is_paired else _unpaired_error(first, second)
    if error <= 1e-12 * max(abs(first.value), abs(second.value), 1.0):
        return Tested(replace(found, note="not enough data: all clusters are equal"), None)
    low, high, p = _studentized(first, second, difference / error, level, is_paired)
    if not (isfinite(low) and isfinite(high)):
        return Tested(replace(found, note="not enough data: too few clusters differ from the others"), None)
    method = "paired bootstrap-t" if is_paired else "two-sample bootstrap-t"
    interval = replace(found, low=difference - high * error, high=difference - low * error, level=level, method=method)
    return Tested(interval, p)


def _paired_error(first: Part, second: Part) -> float:
    parts = _deviations(first) - _deviations(second)
    count = len(parts)
    return sqrt(count / (count - 1) * float((parts**2).sum()))


def _unpaired_error(first: Part, second: Part) -> float:
    return sqrt(sum(len(p.total) / (len(p.total) - 1) * float((_deviations(p) ** 2).sum()) for p in (first, second)))


def _deviations(part: Part) -> Array:
    deviations: Array = (part.total - part.value * part.weight) / part.weight.sum()
    return deviations


def _studentized(first: Part, second: Part, t: float, level: float, is_paired: bool) -> tuple[float, float, float]:
    """Return the quantiles of (estimate - truth) / standard error, and the p-value of the observed ratio t."""
    fewest = min(len(first.total), len(second.total))
    tail = (1.0 - level) / 2.0
    if fewest > MOST_CLUSTERS:
        edge = float(special.stdtrit(fewest - 1, 1.0 - tail))
        return -edge, edge, 2.0 * float(special.stdtr(fewest - 1, -abs(t)))
    values, errors = _paired_draws(first, second) if is_paired else _unpaired_draws(first, second)
    difference = first.value - second.value
    error = (difference / t) if t else (_paired_error if is_paired else _unpaired_error)(first, second)
    flat = errors <= 1e-9 * error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(flat, np.copysign(np.inf, values - difference), (values - difference) / errors)
    low, high = np.quantile(ratios, [tail, 1.0 - tail], method="inverted_cdf")
    beyond = 1 + min(int((ratios >= t).sum()), int((ratios <= t).sum()))
    return float(low), float(high), min(2.0 * beyond / (len(ratios) + 1), 1.0)


def _paired_draws(first: Part, second: Part) -> tuple[Array, Array]:
    """Return differences and their standard errors, (draws,) each; clusters are drawn with both figures."""
    columns = np.stack([first.total, first.weight, second.total, second.weight], axis=1)
    count = len(columns)
    products = np.einsum("gi,gj->gij", columns, columns).reshape(count, 16)
    values, errors = [], []
    for counts in _draws(count, 0):
        sums, squares = counts @ columns, (counts @ products).reshape(-1, 4, 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, two = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
            direction = np.stack([1 / sums[:, 1], -one / sums[:, 1], -1 / sums[:, 3], two / sums[:, 3]], axis=1)
            spread = np.einsum("di,dij,dj->d", direction, squares, direction)
        values.append(one - two)
        errors.append(np.sqrt(count / (count - 1) * np.maximum(spread, 0.0)))
    return np.concatenate(values), np.concatenate(errors)


def _unpaired_draws(first: Part, second: Part) -> tuple[Array, Array]:
    """Return the same with the clusters of each run drawn separately."""
    values, variances = [], []
    for number, part in enumerate((first, second)):
        y, w = part.total, part.weight
        columns = np.stack([y, w, y * y, y * w, w * w], axis=1)
        count = len(columns)
        drawn = np.concatenate([counts @ columns for counts in _draws(count, number)])
        total, weight, yy, yw, ww = drawn.T
        with np.errstate(divide="ignore", invalid="ignore"):
            value = total / weight
            spread = np.maximum(yy - 2.0 * value * yw + value**2 * ww, 0.0)
            variances.append(count / (count - 1) * spread / weight**2)
        values.append(value)
    return values[0] - values[1], np.sqrt(variances[0] + variances[1])


def _draws(count: int, stream: int) -> Iterator[Array]:
    """Yield how often each of `count` clusters is drawn, in blocks of (some of DRAWS, count); streams differ."""
    if DRAWS * count <= _AT_ONCE:
        yield _all_draws(count, stream)
        return
    rng = np.random.default_rng([SEED, count, stream])
    step = max(_AT_ONCE // count, 1)
    for start in range(0, DRAWS, step):
        yield _count(rng, min(step, DRAWS - start), count)


@lru_cache(maxsize=4)
def _all_draws(count: int, stream: int) -> Array:
    return _count(np.random.default_rng([SEED, count, stream]), DRAWS, count)


def _count(rng: np.random.Generator, draws: int, count: int) -> Array:
    places = rng.integers(0, count, (draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(places.ravel(), minlength=draws * count).reshape(draws, count).astype(np.float64)
