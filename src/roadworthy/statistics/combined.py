"""The interval of a weighted mean of several estimates, such as one figure over all evaluators.

The method of variance estimates recovery (Zou and Donner): each estimate's own interval says how far it may be off, and
these distances add up as the sides of triangles do. So it keeps what the intervals know about rates near 0 or 1 and
about few clusters. Estimates that share clusters, such as maps, are correlated by what the clusters contribute to both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from roadworthy.statistics.clusters import Array


@dataclass(frozen=True)
class Estimate:
    """One of the estimates, with its interval and what each cluster contributes to its deviation."""

    weight: float
    value: float
    low: float
    high: float
    # The deviation of each cluster from the estimate, as a share of its denominator (see Sums.parts).
    contributions: Mapping[str, float]


def combined_interval(estimates: Sequence[Estimate]) -> tuple[float, float, float]:
    """Return the weighted mean of estimates and its interval, at the level of theirs."""
    weights = np.array([part.weight for part in estimates])
    weights = weights / weights.sum()
    value = float((weights * [part.value for part in estimates]).sum())
    alike = correlations(estimates)
    below = weights * [part.value - part.low for part in estimates]
    above = weights * [part.high - part.value for part in estimates]
    return value, value - sqrt(max(below @ alike @ below, 0.0)), value + sqrt(max(above @ alike @ above, 0.0))


def correlations(estimates: Sequence[Estimate]) -> Array:
    """Return the correlation of each pair of estimates that comes from shared clusters, (k, k), not below 0.

    Where an estimate has no spread (all succeeded), nothing is known about it, so shared clusters count as equal.
    """
    alike = np.eye(len(estimates))
    for row, first in enumerate(estimates):
        for column, second in enumerate(estimates[:row]):
            alike[row, column] = alike[column, row] = _correlation(first.contributions, second.contributions)
    return alike


def _correlation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    shared = first.keys() & second.keys()
    if not shared:
        return 0.0
    norms = [sqrt(sum(part**2 for part in parts.values())) for parts in (first, second)]
    if min(norms) <= 0.0:
        return len(shared) / sqrt(len(first) * len(second))
    product = sum(first[name] * second[name] for name in sorted(shared))
    return min(max(product / (norms[0] * norms[1]), 0.0), 1.0)
