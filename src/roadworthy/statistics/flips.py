"""Exact tests of paired rates: McNemar's, and its form for clusters, where all pairs of a cluster flip together.

If neither run is better, exchanging the two runs in a cluster changes nothing, so the sign of each cluster's sum of
differences is random. The distribution of their total is computed exactly where the sums are small whole numbers, and
otherwise from its normal limit. With one pair per cluster it is McNemar's test.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import special

from roadworthy.statistics.clusters import Array

_LARGEST_TOTAL = 4000  # of the clusters' sums, up to which the distribution is exact


@dataclass(frozen=True)
class PValues:
    """Two-sided p-values: the exact one, and the mid-p value, which counts half of the observed result's chance."""

    exact: float
    mid: float


def mcnemar(gains: int, losses: int) -> PValues:
    """Return McNemar's p-values of independent pairs.

    Args:
        gains: The number of pairs with a success in the candidate alone.
        losses: The number of pairs with a success in the baseline alone.
    """
    n, least = gains + losses, min(gains, losses)
    if n == 0:
        return PValues(1.0, 1.0)
    below = float(special.bdtr(least, n, 0.5))
    here = below - (float(special.bdtr(least - 1, n, 0.5)) if least else 0.0)
    return PValues(min(2.0 * below, 1.0), min(2.0 * below - here, 1.0))


def sign_flips(totals: Array) -> PValues:
    """Return the p-values of sums of differences (G,), one per cluster, if each has a random sign."""
    sizes = np.abs(totals[totals != 0.0])
    if not sizes.size:
        return PValues(1.0, 1.0)
    if (sizes == 1.0).all():
        return mcnemar(int((totals == 1.0).sum()), int((totals == -1.0).sum()))
    observed = abs(float(totals.sum()))
    whole = np.rint(sizes)
    if sizes.sum() > _LARGEST_TOTAL or not np.allclose(whole, sizes, atol=1e-9):
        p = 2.0 * float(special.ndtr(-observed / sqrt(float((sizes**2).sum()))))
        return PValues(p, p)
    chances = _totals(whole.astype(np.int64))
    middle = len(chances) // 2
    at = middle + round(observed)
    here, above = float(chances[at]), float(chances[at + 1 :].sum())
    return PValues(min(2.0 * (above + here), 1.0), min(2.0 * above + here, 1.0) if at > middle else 1.0)


def _totals(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Array:
    """Return the chance of each total from -S to S, where S is the sum of the sizes."""
    reach = int(sizes.sum())
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    for size in sizes.tolist():
        moved = np.zeros_like(chances)
        moved[size:] += 0.5 * chances[:-size]
        moved[:-size] += 0.5 * chances[size:]
        chances = moved
    return chances
