"""Many figures at once: Holm's correction of p-values, and ranks of several runs with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadworthy.statistics.bootstrap import DRAWS, MOST_CLUSTERS, SEED
from roadworthy.statistics.clusters import Array, Clusters, sums
from roadworthy.statistics.intervals import LEVEL


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values that hold for a whole family (Holm 1979); None stays None and is not part of the family."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min((len(known) - rank) * p, 1.0))
        found[place] = largest
    return found


@dataclass(frozen=True)
class Ranked:
    """The rank of one of K runs."""

    value: float
    rank: int  # 1 is the best
    best: int  # the best and the worst rank that the data allow, jointly for all runs
    worst: int
    chance_of_best: float  # the share of bootstrap draws in which it is the best; ties are shared


def ranks(
    values: Sequence[Array],
    clusters: Sequence[Clusters],
    *,
    is_paired: bool,
    higher_is_better: bool = True,
    level: float = LEVEL,
) -> list[Ranked]:
    """Rank runs by their means, with ranks that hold jointly for all runs at a level.

    All pairs of runs are compared with simultaneous intervals (the bootstrap distribution of the largest deviation of
    all differences). The best possible rank of a run is one more than the number of runs that are better beyond
    doubt, its worst possible rank is K minus the number of runs that are worse beyond doubt.

    Args:
        values: For each run its rows, NaN for no data.
        clusters: For each run the clusters of its rows; in pairs, equal for all.
        is_paired: Whether row k is the same episode in all runs, so that clusters are drawn for all runs together.
        higher_is_better: The direction.
        level: The level of the ranks.
    """
    sign = 1.0 if higher_is_better else -1.0
    if is_paired:
        known = np.asarray(~np.isnan(np.stack(values)).any(axis=0))
        values = [each[known] for each in values]
        clusters = [clusters[0].chosen(known)] * len(values)
    found = [sums(each, own) for each, own in zip(values, clusters, strict=True)]
    means = np.array([each.value for each in found], np.float64)
    rng = np.random.default_rng([SEED, len(values)])
    if min(each.count for each in found) > MOST_CLUSTERS:
        table = means + _normal_draws(rng, [each.parts for each in found], is_paired)
    else:
        shared = _counts(rng, found[0].count) if is_paired else None
        columns = []
        for each in found:
            counts = _counts(rng, each.count) if shared is None else shared
            columns.append((counts @ each.total) / (counts @ each.weight))
        table = np.stack(columns, axis=1)
    return _ranked(sign * means, sign * table, sign, level)


def _normal_draws(rng: np.random.Generator, parts: list[Array], is_paired: bool) -> Array:
    """Return deviations of the estimates (DRAWS, K) from their normal limit; parts: of the clusters, by run."""
    if is_paired:
        covariance = np.stack(parts) @ np.stack(parts).T
        return rng.multivariate_normal(np.zeros(len(parts)), covariance, DRAWS, method="svd")
    errors = np.array([np.sqrt((part**2).sum()) for part in parts])
    return rng.normal(size=(DRAWS, len(parts))) * errors


def _ranked(means: Array, table: Array, sign: float, level: float) -> list[Ranked]:
    count = len(means)
    deltas = means[:, None] - means[None, :]
    drawn = table[:, :, None] - table[:, None, :]
    errors = drawn.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(errors > 1e-12, np.abs(drawn - deltas) / errors, 0.0)
    edge = float(np.quantile(distances.max(axis=(1, 2)), level, method="inverted_cdf"))
    is_better = deltas > np.where(errors > 1e-12, edge * errors, np.inf)  # [i, j]: i is better than j beyond doubt
    tops = table >= table.max(axis=1, keepdims=True) - 1e-12
    chances = (tops / tops.sum(axis=1, keepdims=True)).mean(axis=0)
    order = np.argsort(-means, kind="stable")
    places = np.empty(count, np.int64)
    places[order] = np.arange(1, count + 1)
    return [
        Ranked(
            float(sign * means[k]),
            int(places[k]),
            int(1 + is_better[:, k].sum()),
            int(count - is_better[k].sum()),
            float(chances[k]),
        )
        for k in range(count)
    ]


def _counts(rng: np.random.Generator, clusters: int) -> Array:
    """Return how often each cluster is drawn, (DRAWS, clusters)."""
    places = rng.integers(0, clusters, (DRAWS, clusters)) + clusters * np.arange(DRAWS)[:, None]
    counts = np.bincount(places.ravel(), minlength=DRAWS * clusters).reshape(DRAWS, clusters)
    return counts.astype(np.float64)
