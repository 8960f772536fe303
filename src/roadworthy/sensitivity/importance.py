"""Importance of factors: Sobol indices with intervals, and a test that accounts for the other factors.

The first-order index of a factor is the share of the surface's variance that its own curve explains; the total index
includes its interactions. Even a factor without effect has indices above 0, because a fitted surface is never exactly
flat. So a surface is also fitted without the factor, and a score test asks whether the factor explains what is left:
does it predict the residuals better than if the residuals of every cluster had random signs? Where a factor is
correlated with another one, only the part counts that the other one does not explain. Where rows of a scenario are
alike, their residuals change sign together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.averages import quantile_band, reference_units
from roadworthy.sensitivity.factors import Categorical
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.score_test import LEVEL, p_value
from roadworthy.sensitivity.surface import Surface

Array = NDArray[np.float64]

INDEX_POINTS = 512
SMALL_SHARE = 0.10  # of the variance: an irrelevant factor explains less
SMALL_SWING = 0.15  # of a probability, or of four standard deviations of another outcome

Report = Callable[[int, int], None]


class Verdict(Enum):
    """The conclusion about a factor."""

    MATTERS = "matters"
    IRRELEVANT = "irrelevant"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Interval:
    """An estimate with its band."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Importance:
    """One factor's part in the outcome."""

    factor: str
    first_order: Interval
    total: Interval
    swing: Interval  # the range of the averaged curve
    p_value: float  # the probability that a factor without effect, given the others, explains as much
    large_swing: float = SMALL_SWING  # the range of the averaged curve that is worth knowing

    @property
    def verdict(self) -> Verdict:
        """The verdict; irrelevant requires that even the upper ends of the intervals are small."""
        if self.p_value <= LEVEL:
            return Verdict.MATTERS
        is_small = self.total.high < SMALL_SHARE and self.swing.high < self.large_swing
        return Verdict.IRRELEVANT if is_small else Verdict.UNDECIDED


def importance(rows: Rows, surface: Surface, flips: int = 999, report: Report | None = None) -> list[Importance]:
    """Return the indices of every factor, in the order of the factors."""
    first, second = _index_units(surface)
    base = surface.sample(first)
    variance = np.maximum(base.var(axis=1), 1e-12)
    large_swing = SMALL_SWING * (1.0 if surface.is_binary else 4.0 * surface.spread)
    found = []
    for number, factor in enumerate(surface.factors):
        curve = surface.marginal_draws(number)
        swapped = _swapped(first, second, number)
        total = 0.5 * np.square(base - surface.sample(swapped)).mean(axis=1) / variance
        found.append(
            Importance(
                factor=factor.name,
                first_order=_interval(surface, np.minimum(_variance_along(surface, number, curve) / variance, 1.0)),
                total=_interval(surface, np.minimum(total, 1.0)),
                swing=_interval(surface, curve.max(axis=1) - curve.min(axis=1)),
                p_value=p_value(rows, number, flips, surface.config.seed),
                large_swing=large_swing,
            )
        )
        if report:
            report(number + 1, len(surface.factors))
    return found


def interactions(surface: Surface) -> Array:
    """Return the share of the variance that pairs explain beyond both factors alone, (factors, factors), symmetric."""
    first, second = _index_units(surface)
    count = len(surface.factors)
    base = surface.sample(first)
    base = base - base.mean(axis=1, keepdims=True)
    variance = np.maximum(np.square(base).mean(axis=1), 1e-12)

    def closed(owners: tuple[int, ...]) -> Array:
        """Return the variance that these factors explain: the covariance when all others are resampled."""
        units = second.copy()
        units[:, owners] = first[:, owners]
        return (base * surface.sample(units)).mean(axis=1) / variance

    alone = [closed((number,)) for number in range(count)]
    shares = np.zeros((count, count))
    for one, two in combinations(range(count), 2):
        shares[one, two] = shares[two, one] = max((closed((one, two)) - alone[one] - alone[two]).mean(), 0.0)
    return shares


def _index_units(surface: Surface) -> tuple[Array, Array]:
    """Return two independent, evenly spread samples of all factors."""
    both = reference_units(surface.factors + surface.factors, INDEX_POINTS)
    count = len(surface.factors)
    return both[:, :count], both[:, count:]


def _swapped(first: Array, second: Array, factor: int) -> Array:
    units = first.copy()
    units[:, factor] = second[:, factor]
    return units


def _variance_along(surface: Surface, factor: int, curve: Array) -> Array:
    """Return the variance of the curve over uniform units, (draws,)."""
    weights = np.ones(curve.shape[1])
    if not isinstance(surface.factors[factor], Categorical):
        weights[[0, -1]] = 0.5  # trapezoids
    weights /= weights.sum()
    deviation = curve - (curve @ weights)[:, None]
    variance: Array = np.square(deviation) @ weights
    return variance


def _interval(surface: Surface, draws: Array) -> Interval:
    band = quantile_band(draws, surface.config.band)
    return Interval(float(band.mean), float(band.low), float(band.high))
