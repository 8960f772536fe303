"""The studentized bootstrap over clusters: whole clusters are resampled, with the same draws for the same number.

Each draw gives an estimate and its standard error; the quantiles of their ratio replace those of Student's t (Efron's
bootstrap-t). Unlike plain percentiles, it keeps its level for few and for skewed clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from roadworthy.statistics.clusters import Array, Sums

DRAWS = 2000
SEED = 20_000  # of the draws, so that results are reproducible
MOST_CLUSTERS = 500  # with more, Student's quantiles are as good: measured with 1,000, see docs/statistics.md
_AT_ONCE = 1 << 22  # counts that are held in memory at a time
_ALONE = 1 << 18  # the number of multiplications up to which OpenBLAS uses one thread


def studentized_quantiles(sums: Sums, level: float) -> tuple[float, float]:
    """Return the quantiles of (estimate - truth) / standard error; infinite if draws have no spread."""
    tail = (1.0 - level) / 2.0
    if sums.count > MOST_CLUSTERS:
        edge = float(special.stdtrit(sums.count - 1, 1.0 - tail))
        return -edge, edge
    value, error = sums.value, sums.standard_error
    assert value is not None
    drawn = [_estimates(counts, sums) for counts in _draws(sums.count)]
    values = np.concatenate([part[0] for part in drawn])
    errors = np.concatenate([part[1] for part in drawn])
    # A draw of equal clusters has no spread, so its ratio is infinite.
    flat = errors <= 1e-9 * error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(flat, np.copysign(np.inf, values - value), (values - value) / errors)
    low, high = np.quantile(ratios, [tail, 1.0 - tail], method="inverted_cdf")
    return float(low), float(high)


def _estimates(counts: Array, sums: Sums) -> tuple[Array, Array]:
    """Return estimates and standard errors, (draws,) each; counts (draws, G): how often each cluster was drawn."""
    y, w = sums.total, sums.weight
    total, weight, yy, yw, ww = _product(counts, np.stack([y, w, y * y, y * w, w * w], axis=1)).T
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total / weight
        spread = np.maximum(yy - 2.0 * value * yw + value**2 * ww, 0.0)
        return value, np.sqrt(sums.count / (sums.count - 1) * spread) / weight


def _product(counts: Array, columns: Array) -> Array:
    """Return counts @ columns, in blocks so small that OpenBLAS uses one thread, which is ten times as fast."""
    step = max(_ALONE // columns.size, 1)
    return np.concatenate([counts[start : start + step] @ columns for start in range(0, len(counts), step)])


def _draws(count: int) -> Iterator[NDArray[np.float64]]:
    """Yield how often each of `count` clusters is drawn, in blocks of (some of DRAWS, count)."""
    if DRAWS * count <= _AT_ONCE:
        yield _all_draws(count)
        return
    rng = np.random.default_rng([SEED, count])
    step = max(_AT_ONCE // count, 1)
    for start in range(0, DRAWS, step):
        yield _count(rng, min(step, DRAWS - start), count)


@lru_cache(maxsize=2)
def _all_draws(count: int) -> NDArray[np.float64]:
    return _count(np.random.default_rng([SEED, count]), DRAWS, count)


def _count(rng: np.random.Generator, draws: int, count: int) -> NDArray[np.float64]:
    places = rng.integers(0, count, (draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(places.ravel(), minlength=draws * count).reshape(draws, count).astype(np.float64)
