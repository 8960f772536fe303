"""Confidence sequences of a mean difference: bounds that hold at every look, however often one looks.

The data are clusters in random order. Cluster c has n_c pairs and the sum of differences T_c, candidate minus baseline,
each between -1 and 1. The estimand is the mean difference per pair in the population that the clusters are drawn from,
delta = E[T] / E[n]: for instance all maps of a generator, not only those in the ledger.

Testing "delta is at most mu" is a game of bets at fair odds (Waudby-Smith and Ramdas 2023). After each cluster, capital
is multiplied by 1 + bet * (T_c - n_c * mu) / N, where N is the largest possible n_c. If delta <= mu, the factor has a
conditional mean of at most 1, so the capital is a nonnegative supermartingale: the probability that it ever reaches
1 / error is at most `error` (Ville). All mu at which it is reached are excluded. Upper bounds are the lower bounds of
the negative differences.

What is required: given the clusters before it, the next one has the population's mean. Clusters that are drawn
independently, or a sample of such clusters in an order that does not depend on their results, satisfy it. Pairs within
a cluster may be correlated in any way; N must be known without the results.

The capital is split among constant bets, `bets(margin)`, and never moved. Its product does not depend on the order, so
the bounds are a function of the set of clusters: a stopped run and its folder give the same decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import ceil, inf, log

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.statistics.clusters import Array

ERROR = 0.05  # of each of the two decisions
_BOLDEST = 0.9  # of the bet that a worst cluster would lose all capital with
_CELLS = 256  # of the grid of cluster means
_MOST_MORE = 10**7  # clusters that are predicted
_TOLERANCE = 1e-5  # of a bound


class Verdict(Enum):
    """What a gate decides about the difference delta and the margin m."""

    PASS = "pass"  # delta > -m
    REGRESSION = "regression"  # delta < -m
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Bounds:
    """The state of a confidence sequence: each bound holds at all looks with probability 1 - error."""

    verdict: Verdict
    estimate: float | None  # the mean difference per pair; None: no data
    low: float
    high: float
    pairs: int
    clusters: int
    more: int | None  # clusters that would decide if the others are like those so far; 0: decided; None: none would


def bets(margin: float) -> tuple[Array, Array]:
    """Return the constant bets against a mean of -margin, and the share of the capital for each.

    The best bet is (delta + margin) / variance. The smallest bet here suits delta = 0 at half the greatest variance;
    from there they double up to the boldest, which suits differences that vary little and has a double share.
    """
    least, most = max(2.0 * margin, 0.02), _BOLDEST
    count = max(ceil(np.log2(most / least)), 0)
    values = np.append(least * 2.0 ** np.arange(count), most)
    shares = np.append(np.ones(count), 2.0)
    return values, shares / shares.sum()


class ConfidenceSequence:
    """The confidence sequence of a mean paired difference, updated by clusters.

    Example:
        >>> sequence = ConfidenceSequence(margin=0.05)
        >>> sequence.add([0.0] * 400, [1] * 400)  # 400 clusters of one pair each, without a difference
        >>> sequence.bounds().verdict
        <Verdict.PASS: 'pass'>
    """

    def __init__(self, margin: float, largest: int = 1, error: float = ERROR) -> None:
        """Prepare for clusters.

        Args:
            margin: The largest acceptable loss, as a share of the range of the metric, from 0 to below 1.
            largest: The largest possible number of pairs of a cluster.
            error: The probability that a decision in one direction is ever wrong.
        """
        if not 0.0 <= margin < 1.0:
            raise UsageError(f"the margin is {margin:g} of the metric's range; allowed: from 0 to below 1")
        if not 0.0 < error < 1.0:
            raise UsageError(f"the error probability is {error:g}; allowed: above 0 and below 1, such as {ERROR}")
        if largest < 1:
            raise UsageError(f"the largest cluster has {largest} pairs; a cluster has at least 1")
        self.margin, self.largest, self.error = margin, largest, error
        self._low = _LowerBound(-margin, margin, largest, error)
        self._high = _LowerBound(margin, margin, largest, error)
        self._total = 0.0
        self.pairs = self.clusters = 0

    def add(self, totals: Array | list[float], sizes: NDArray[np.int64] | list[int], best: Array | None = None) -> None:
        """Add complete clusters: the sum of differences and the number of pairs of each, (c,).

        best: the sums with the most favorable values of what is unknown, for the upper bound; by default `totals`.
        """
        values, counts = np.asarray(totals, np.float64), np.asarray(sizes, np.int64)
        favorable = values if best is None else np.asarray(best, np.float64)
        if counts.size and (counts.min() < 0 or counts.max() > self.largest):
            raise UsageError(f"a cluster has {counts.max()} pairs; at most {self.largest} were announced")
        if (np.abs(values) > counts + 1e-9).any() or (np.abs(favorable) > counts + 1e-9).any():
            raise UsageError("a difference is not between -1 and 1; divide differences by the range of the metric")
        used = counts > 0
        self._low.add(values[used], counts[used])
        self._high.add(-favorable[used], counts[used])
        self._total += float(values.sum())
        self.pairs += int(counts.sum())
        self.clusters += int(used.sum())

    @property
    def verdict(self) -> Verdict:
        """The decision at this look."""
        passes, regresses = (self._low.rejects, self._high.rejects) if self.clusters else (False, False)
        # Both can't be excluded unless something unlikely happened twice; then neither is believed.
        if passes == regresses:
            return Verdict.UNDECIDED
        return Verdict.PASS if passes else Verdict.REGRESSION

    def bounds(self) -> Bounds:
        """Return the bounds and the decision at this look."""
        if self.clusters == 0:
            return Bounds(Verdict.UNDECIDED, None, -1.0, 1.0, 0, 0, None)
        verdict = self.verdict
        more = 0.0 if verdict is not Verdict.UNDECIDED else min(self._low.more(), self._high.more())
        return Bounds(
            verdict,
            self._total / self.pairs,
            self._low.bound(),
            -self._high.bound(),
            self.pairs,
            self.clusters,
            int(more) if more < _MOST_MORE else None,
        )


class _LowerBound:
    """The lower confidence sequence, from counts of clusters by size and by mean difference.

    A cluster mean between two points of the grid counts as a share of each, such that the mean is kept. The logarithm
    is concave, so this can only lower the capital (Jensen): the bound stays valid, and a look does not depend on the
    number of clusters.
    """

    def __init__(self, decision: float, margin: float, largest: int, error: float) -> None:
        """Prepare for clusters; decision: the mean at which capital decides."""
        values, shares = bets(margin)
        self._bets = np.minimum(values, _BOLDEST / (1.0 + decision))  # at the mean that is decided about
        self._fractions = self._bets * (1.0 + decision)  # of the bet that could lose everything
        self._shares, self._decision, self._largest = shares, decision, largest
        self._wanted = log(1.0 / error)
        self._counts: dict[int, Array] = {}  # by size: (cells + 1,)
        self._cells: tuple[Array, Array, Array] | None = None  # used cells: mean and size over `largest`, clusters
        self._total, self._pairs = 0.0, 0

    def add(self, totals: Array, sizes: NDArray[np.int64]) -> None:
        """Count clusters."""
        self._cells = None
        self._total, self._pairs = self._total + float(totals.sum()), self._pairs + int(sizes.sum())
        for size in np.unique(sizes).tolist():
            place = (np.clip(totals[sizes == size] / size, -1.0, 1.0) + 1.0) * (_CELLS / 2)
            cell = np.minimum(place.astype(np.int64), _CELLS - 1)
            share = place - cell
            counts = self._counts.setdefault(size, np.zeros(_CELLS + 1))
            counts += np.bincount(cell, 1.0 - share, _CELLS + 1) + np.bincount(cell + 1, share, _CELLS + 1)

    @property
    def _estimate(self) -> float:
        return self._total / self._pairs

    @property
    def rejects(self) -> bool:
        """Whether the capital excludes the mean that is decided about."""
        return self._capital(self._decision) >= self._wanted

    def bound(self) -> float:
        """Return the smallest mean that is not excluded."""
        from scipy.optimize import brentq  # slow to import

        def distance(mean: float) -> float:
            return self._capital(mean) - self._wanted

        # The capital falls with the mean that is tested, so the excluded means are an interval from -1 on.
        is_excluded = self.rejects
        high = low = self._decision
        width = _TOLERANCE + abs(self._estimate - low) / 2.0
        while (distance(high) >= 0.0) if is_excluded else (distance(low) < 0.0):
            if is_excluded:
                low, high = high, high + width
            else:
                low, high = low - width, low
            width *= 2.0
            if low <= -1.0 + _TOLERANCE or high >= 1.0:
                return -1.0 if low < self._decision else low
        return low if high == low else max(float(brentq(distance, low, high, xtol=_TOLERANCE)) - _TOLERANCE, low)

    def more(self) -> float:
        """Return how many more clusters like those so far would decide; infinite if none would."""
        capital, growth = self._logs(self._decision)

        def decides(count: float) -> bool:
            return _mixture(capital + count * growth, self._shares) >= self._wanted

        if growth.max() <= 0.0 or not decides(_MOST_MORE):
            return inf
        low, high = 0, _MOST_MORE
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if decides(middle) else (middle, high)
        return high

    def _capital(self, mean: float) -> float:
        """Return the logarithm of the capital after betting that the difference is above a mean."""
        return _mixture(self._logs(mean)[0], self._shares)

    def _logs(self, mean: float) -> tuple[Array, Array]:
        """Return the logarithm of the capital of each bet, and its mean growth by cluster, (bets,) each."""
        if self._cells is None:
            sizes = np.array(list(self._counts))
            counts = np.array(list(self._counts.values()))
            rows, cells = np.nonzero(counts)
            shares = sizes[rows] / self._largest
            self._cells = shares * (cells * (2.0 / _CELLS) - 1.0), shares, counts[rows, cells]
        values, shares, clusters = self._cells
        bet = self._fractions / (1.0 + mean)
        logs: Array = np.log1p(bet[:, None] * (values - mean * shares)) @ clusters
        return logs, logs / clusters.sum()


def _mixture(logs: Array, shares: Array) -> float:
    """Return the logarithm of the capital of all bets together."""
    top = float(logs.max())
    return top + log(float((shares * np.exp(logs - top)).sum()))
