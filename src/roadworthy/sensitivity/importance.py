"""Importance of factors: Sobol indices with intervals, compared with shuffled data.

The first-order index of a factor is the share of the surface's variance that its own curve explains; the total index
includes its interactions. Even a factor without effect has indices above 0, because a fitted surface is never exactly
flat. So the values of each factor are also shuffled among the rows many times, and the surface is fitted again: a
factor matters if its real effect exceeds nearly all shuffled effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.factors import Categorical
from roadworthy.sensitivity.hierarchy import Regression, find_mode
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, quantile_band, reference_units

Array = NDArray[np.float64]

INDEX_POINTS = 512
TEST_ROUNDS = 10
LEVEL = 0.05  # the false positive rate
SMALL_SHARE = 0.10  # of the variance: a factor is irrelevant only if shuffled effects stay below it

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
    p_value: float  # the probability that shuffled values show as large an effect
    null_total: float  # the (1 - LEVEL) quantile of the total index of shuffled values
    best_total: float  # the total index of the real values by the same measure: for the best fit, not for draws

    @property
    def verdict(self) -> Verdict:
        """The verdict; irrelevant requires that a large effect would have been detected."""
        if self.p_value <= LEVEL:
            return Verdict.MATTERS
        return Verdict.IRRELEVANT if self.null_total <= SMALL_SHARE else Verdict.UNDECIDED


def importance(rows: Rows, surface: Surface, shuffles: int = 99, report: Report | None = None) -> list[Importance]:
    """Return the indices of every factor, in the order of the factors."""
    first, second = _index_units(surface)
    base = surface.sample(first)
    variance = np.maximum(base.var(axis=1), 1e-12)
    found = []
    for number, factor in enumerate(surface.factors):
        curve = surface.marginal_draws(number)
        swapped = _swapped(first, second, number)
        total = 0.5 * np.square(base - surface.sample(swapped)).mean(axis=1) / variance
        effect, null = _test(rows, surface, number, shuffles, (first, swapped), report)
        found.append(
            Importance(
                factor=factor.name,
                first_order=_interval(surface, np.minimum(_variance_along(surface, number, curve) / variance, 1.0)),
                total=_interval(surface, np.minimum(total, 1.0)),
                swing=_interval(surface, curve.max(axis=1) - curve.min(axis=1)),
                p_value=float((1 + (null >= effect).sum()) / (1 + shuffles)),
                null_total=float(min(np.quantile(null, 1.0 - LEVEL) / variance.mean(), 1.0)),
                best_total=float(min(effect / variance.mean(), 1.0)),
            )
        )
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


def _test(
    rows: Rows, surface: Surface, factor: int, shuffles: int, units: tuple[Array, Array], report: Report | None
) -> tuple[float, Array]:
    """Return the total effect of the factor, and its effects after shuffles, (shuffles,).

    Real and shuffled rows are fitted in the same way from the same start, so that only the order differs.
    """
    rng = np.random.default_rng((surface.config.seed, factor))
    one, other = (surface.basis.features(part) for part in units)
    effects = np.empty(1 + shuffles)
    dealt = rows.units.copy()
    for number in range(1 + shuffles):
        if number:
            dealt[:, factor] = _shuffled(rows, factor, rng)
        weights = find_mode(Regression.of(rows, surface.basis, dealt), TEST_ROUNDS).weights
        effects[number] = _effect(surface.outcome(one @ weights), surface.outcome(other @ weights))
        if report and number:
            report(factor * shuffles + number, len(surface.factors) * shuffles)
    return float(effects[0]), effects[1:]


def _shuffled(rows: Rows, factor: int, rng: np.random.Generator) -> Array:
    """Return the factor's values in random order, (n,); factors of scenarios, such as the class, by scenario.

    Rows of a scenario are alike beyond their factors. Shuffling such a factor by row would destroy that too, and the
    factor would always seem to matter.
    """
    values = rows.units[:, factor]
    if rows.scenarios is not None:
        names, first, number = np.unique(np.array(rows.scenarios), return_index=True, return_inverse=True)
        if len(names) < len(values) and (values == values[first][number]).all():
            return rng.permutation(values[first])[number]
    return rng.permutation(values)


def _effect(base: Array, swapped: Array) -> float:
    """Return the variance that remains when all other factors are known (Jansen 1999)."""
    return float(0.5 * np.square(base - swapped).mean())


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
