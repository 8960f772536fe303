"""Which factors matter: Sobol indices with intervals, beside what chance alone would give.

The first-order index of a factor is the share of the surface's variance that its own curve explains; the total index
adds every interaction that it takes part in. Even a factor without any effect has indices above 0, because a fitted
surface bends a little everywhere. So every factor's values are also shuffled among the rows, many times, and the
surface fitted again: a factor matters if its real effect is larger than nearly all of those.
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
LEVEL = 0.05  # so many factors without any effect are said to matter
SMALL_SHARE = 0.10  # of the variance: chance alone has to stay below it for a factor to be called irrelevant

Report = Callable[[int, int], None]


class Verdict(Enum):
    """What can be said of a factor."""

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
    swing: Interval  # how far the averaged curve goes from its lowest to its highest point
    p_value: float  # the chance that shuffled values show as large an effect
    null_total: float  # the total index that shuffled values stay below in all but LEVEL of cases
    best_total: float  # the real values' index by the same measure: of the best fit, not averaged over draws

    @property
    def verdict(self) -> Verdict:
        """Irrelevant takes more than no sign of an effect: a large one would have been seen."""
        if self.p_value <= LEVEL:
            return Verdict.MATTERS
        return Verdict.IRRELEVANT if self.null_total <= SMALL_SHARE else Verdict.UNDECIDED


def importance(rows: Rows, surface: Surface, shuffles: int = 99, report: Report | None = None) -> list[Importance]:
    """Indices of every factor, in the order of the factors."""
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
    """(factors, factors), symmetric: the share of the variance that two factors explain together beyond each alone."""
    first, second = _index_units(surface)
    count = len(surface.factors)
    base = surface.sample(first)
    base = base - base.mean(axis=1, keepdims=True)
    variance = np.maximum(np.square(base).mean(axis=1), 1e-12)

    def closed(owners: tuple[int, ...]) -> Array:
        """The variance that these factors explain: what is left in common when all others are drawn anew."""
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
    """The total effect of the factor, and (shuffles,) where its values are dealt out to the rows anew.

    Real and shuffled rows are fitted in the same way from the same start, so that they differ in nothing but the order.
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
    """(n,) the factor's values in another order; a factor of scenarios, such as their class, is dealt out to these.

    Rows of a scenario have more in common than any factor tells. Dealt out to single rows, such a factor would lose
    that too, and look as if it mattered whether it does or not.
    """
    values = rows.units[:, factor]
    if rows.scenarios is not None:
        names, first, number = np.unique(np.array(rows.scenarios), return_index=True, return_inverse=True)
        if len(names) < len(values) and (values == values[first][number]).all():
            return rng.permutation(values[first])[number]
    return rng.permutation(values)


def _effect(base: Array, swapped: Array) -> float:
    """The variance that goes when all but the factor is known (Jansen 1999)."""
    return float(0.5 * np.square(base - swapped).mean())


def _index_units(surface: Surface) -> tuple[Array, Array]:
    """Two independent, evenly spread samples of all factors."""
    both = reference_units(surface.factors + surface.factors, INDEX_POINTS)
    count = len(surface.factors)
    return both[:, :count], both[:, count:]


def _swapped(first: Array, second: Array, factor: int) -> Array:
    units = first.copy()
    units[:, factor] = second[:, factor]
    return units


def _variance_along(surface: Surface, factor: int, curve: Array) -> Array:
    """(draws,): of the curve over uniform units."""
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
