"""Differences of means, shares and ratios by the studentized bootstrap over clusters, with p-values.

Both figures are a sum over a sum. In pairs, clusters are drawn with both figures, so what they share cancels; without
pairs, the clusters of each run are drawn separately, and the standard errors add up as in Welch's test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isfinite, sqrt

import numpy as np
from scipy import special

from roadworthy.statistics.bootstrap import DRAWS, MOST_CLUSTERS, SEED
from roadworthy.statistics.clusters import Array, Clusters
from roadworthy.statistics.intervals import (
    FEWEST_FOR_MEANS,
    FEWEST_UNEQUAL,
    FEWEST_WITH_EVENTS,
    FEWEST_WITH_NOTE,
    LEVEL,
    Interval,
    student_quantile,
)

_SMALL_SAMPLE = 3.0  # the standard error grows by this over the effective number of clusters
_AT_ONCE = 1 << 21  # counts that are held in memory at a time


@dataclass(frozen=True)
class Tested:
    """A difference with its interval and the p-value of no difference."""

    interval: Interval
    p: float | None  # None: not enough data


@dataclass(frozen=True)
class _Part:
    """A sum over a sum by cluster, (G,) each."""

    total: Array
    weight: Array

    @property
    def value(self) -> float:
        return float(self.total.sum() / self.weight.sum())

    @property
    def deviations(self) -> Array:
        """The deviation of each cluster from the value, as a share of the denominator, (G,)."""
        found: Array = (self.total - self.value * self.weight) / self.weight.sum()
        return found

    @property
    def effective_count(self) -> float:
        """The number of clusters of equal size that would have the same weight."""
        return float(self.weight.sum()) ** 2 / float((self.weight**2).sum())

    @property
    def jackknifed(self) -> Array:
        """The deviations, larger for clusters that hold much of the weight."""
        found: Array = self.deviations / np.maximum(1.0 - self.weight / self.weight.sum(), 1e-9)
        return found


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
    return _tested(parts[0], parts[1], len(ones), level, is_paired=True, is_ratio=weights is not None)


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
    return _tested(parts[0], parts[1], rows, level, is_paired=False, is_ratio=weights is not None)


def _part(values: Array, weights: Array, clusters: Clusters) -> _Part:
    codes, count = clusters.codes, clusters.count
    total = np.bincount(codes, values, count).astype(np.float64)
    return _Part(total, np.bincount(codes, weights, count).astype(np.float64))


def _tested(first: _Part, second: _Part, rows: int, level: float, *, is_paired: bool, is_ratio: bool) -> Tested:
    """Return the interval and the p-value: not narrower than Student's, and with room for few clusters."""
    count = min(len(first.total), len(second.total))
    if not rows or not (first.weight.sum() > 0.0 and second.weight.sum() > 0.0):
        return Tested(Interval(None, rows, count, note="no data"), None)
    difference = first.value - second.value
    found = Interval(difference, rows, count)
    clusters = min(first.effective_count, second.effective_count)
    needed = FEWEST_WITH_NOTE if clusters > count - 1e-9 else FEWEST_UNEQUAL
    if clusters < needed - 1e-9:
        note = f"not enough data: {clusters:.3g} clusters, an interval needs {needed}"
        return Tested(replace(found, note=note), None)
    events = min(int(np.count_nonzero(part.total)) for part in (first, second))
    if is_ratio and events < FEWEST_WITH_EVENTS:
        note = f"not enough data: it happened in {events} clusters, an interval needs {FEWEST_WITH_EVENTS}"
        return Tested(replace(found, note=note), None)
    error = _error(first, second, is_paired, "deviations")
    if error <= 1e-12 * max(abs(first.value), abs(second.value), 1.0):
        return Tested(replace(found, note="not enough data: all clusters are equal"), None)
    wide = _error(first, second, is_paired, "jackknifed") * (1.0 + _SMALL_SAMPLE / clusters)
    ratios = _ratios(first, second, error, is_paired)
    low, high = (-inf, inf) if ratios is None else _quantiles(ratios, level)
    student = student_quantile(level, clusters - 1.0)
    few = student / student_quantile(level, count - 1)
    low, high = (-student, student) if ratios is None else (min(low * few, -student), max(high * few, student))
    if not (isfinite(low) and isfinite(high)):
        return Tested(replace(found, note="not enough data: too few clusters differ from the others"), None)
    assumed = f"assumes that no rare extreme values are missing from its {count} clusters"
    interval = replace(
        found,
        low=difference - high * wide,
        high=difference - low * wide,
        level=level,
        method="paired bootstrap-t" if is_paired else "two-sample bootstrap-t",
        note=assumed if count < FEWEST_FOR_MEANS else None,
    )
    return Tested(interval, _p_value(ratios, difference / wide, few, clusters - 1.0))


def _error(first: _Part, second: _Part, is_paired: bool, kind: str) -> float:
    """Return the standard error of the difference from the clusters' deviations of this kind."""
    sides: list[Array] = [getattr(part, kind) for part in (first, second)]
    if is_paired:
        count = len(sides[0])
        scale = count / (count - 1) if kind == "deviations" else (count - 1) / count
        return sqrt(scale * float(((sides[0] - sides[1]) ** 2).sum()))
    total = 0.0
    for side in sides:
        count = len(side)
        scale = count / (count - 1) if kind == "deviations" else (count - 1) / count
        total += scale * float((side**2).sum())
    return sqrt(total)


def _ratios(first: _Part, second: _Part, error: float, is_paired: bool) -> Array | None:
    """Return draws of (estimate - truth) / standard error; None with so many clusters that Student's t is as good."""
    if min(len(first.total), len(second.total)) > MOST_CLUSTERS:
        return None
    values, errors = _paired_draws(first, second) if is_paired else _unpaired_draws(first, second)
    difference = first.value - second.value
    flat = errors <= 1e-9 * error
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(flat, np.copysign(np.inf, values - difference), (values - difference) / errors)
    return found


def _quantiles(ratios: Array, level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(ratios, [tail, 1.0 - tail], method="inverted_cdf")
    return float(low), float(high)


def _p_value(ratios: Array | None, t: float, few: float, freedom: float) -> float:
    """Return the p-value of the ratio of the difference to its error: the larger of the bootstrap's and Student's."""
    p = 2.0 * float(special.stdtr(freedom, -abs(t)))
    if ratios is None:
        return p
    t /= few
    beyond = 1 + min(int((ratios >= t).sum()), int((ratios <= t).sum()))
    return min(max(2.0 * beyond / (len(ratios) + 1), p), 1.0)


def _paired_draws(first: _Part, second: _Part) -> tuple[Array, Array]:
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


def _unpaired_draws(first: _Part, second: _Part) -> tuple[Array, Array]:
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
