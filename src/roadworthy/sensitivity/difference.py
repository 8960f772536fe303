"""Compare two runs over the factors: where is the second one worse than the first, and by how much?

Episodes that both runs have (same scenario, seed, replicate and factors) are paired: a surface is fitted to their
differences, which are known better than the outcomes because what an episode has of its own cancels. Otherwise each run
has its own surface, and their draws are subtracted. A place counts as worse or better where a band that holds all
curves together excludes 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.averages import Averages, Band, excursions, quantile_band, simultaneous_band
from roadworthy.sensitivity.basis import SplineBasis
from roadworthy.sensitivity.factors import Categorical, Factor
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.score_test import p_value
from roadworthy.sensitivity.surface import LEAST_ROWS, Surface, SurfaceConfig, check_enough, fit, refit

Array = NDArray[np.float64]

LEVEL = 0.95  # of all bands of differences
DRAWS, EXPECTED_DRAWS = 600, 40
LEAST_VARIANCE = 0.02  # of a difference of successes, where both runs nearly always do the same
LEAST_PAIRED = 0.8  # of the rows of the smaller run; with fewer pairs, all rows are compared unpaired
FLIPS = 999


@dataclass(frozen=True)
class Estimate:
    """A mean difference with its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Region:
    """Adjacent values of a factor at which the second run is worse, or better, whatever the other factors are."""

    factor: int
    first: int  # of the grid
    last: int
    is_lower: bool  # the outcome of the second run is lower
    difference: Estimate


@dataclass(frozen=True)
class Difference(Averages):
    """Posterior draws of the outcome of the second run minus that of the first."""

    factors: tuple[Factor, ...]
    outcome_name: str
    is_binary: bool
    names: tuple[str, str]
    surfaces: tuple[Surface, ...]  # of the differences of pairs, or of each run
    rows: tuple[int, int]
    pairs: int  # 0 if the runs are compared unpaired
    why_unpaired: str
    paired: Rows | None  # a row per pair with the difference of its outcomes
    p_values: tuple[float, ...]  # of pairs: the probability that a difference depends as much on a factor by chance

    @property
    def band_level(self) -> float:
        """The posterior probability inside a band."""
        return LEVEL

    @property
    def has_steps(self) -> bool:
        """Whether the difference can jump."""
        return self.is_binary

    @property
    def limits(self) -> tuple[float, float]:
        """-1 and 1 for a difference of probabilities."""
        return (-1.0, 1.0) if self.is_binary else (-np.inf, np.inf)

    def sample(self, units: Array) -> Array:
        """Return the difference at units (n, factors) for every draw, (draws, n)."""
        if self.pairs:
            return self.surfaces[0].sample(units)
        return self.surfaces[1].sample(units) - self.surfaces[0].sample(units)

    @cached_property
    def overall(self) -> Estimate:
        """The mean difference over all values of all factors."""
        return _estimate(self.rate())

    @cached_property
    def widening(self) -> float:
        """The factor from pointwise bands to a band that holds the curves of all factors together."""
        most = np.max(
            [
                excursions(draws, quantile_band(draws, LEVEL))
                for draws in (self.marginal_draws(number) for number in range(len(self.factors)))
            ],
            axis=0,
        )
        return max(float(np.quantile(most, LEVEL)), 1.0)

    def simultaneous(self, factor: int) -> Band:
        """Return the difference along one factor, with a band that holds the curves of all factors together."""
        band = simultaneous_band(self.marginal_draws(factor), LEVEL, self.widening)
        band = self._beside_steps(band, factor, axis=0)
        return Band(band.mean, np.maximum(band.low, self.limits[0]), np.minimum(band.high, self.limits[1]))

    def simultaneous_map(self, first: int, second: int) -> Band:
        """Return the difference over two factors, with a band that holds the whole map, (grid, grid)."""
        band = simultaneous_band(self.pairwise_draws(first, second), LEVEL)
        return self._beside_steps(self._beside_steps(band, first, axis=0), second, axis=1)

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The values of each factor at which the second run is worse or better, largest difference first."""
        found = [region for number in range(len(self.factors)) for region in self._regions(number)]
        return tuple(sorted(found, key=lambda region: -abs(region.difference.mean)))

    def _regions(self, factor: int) -> list[Region]:
        band, draws = self.simultaneous(factor), self.marginal_draws(factor)
        signs = np.where(band.high < 0.0, -1, np.where(band.low > 0.0, 1, 0))
        parts = [[k] for k in range(len(signs))]
        if not isinstance(self.factors[factor], Categorical):
            parts = [list(run) for _, run in groupby(range(len(signs)), key=lambda k: int(signs[k]))]
        return [
            Region(
                factor,
                part[0],
                part[-1],
                bool(signs[part[0]] < 0),
                _estimate(simultaneous_band(draws[:, part].mean(axis=1), LEVEL, self.widening)),
            )
            for part in parts
            if signs[part[0]]
        ]


def difference(first: Rows, second: Rows, names: tuple[str, str], seed: int = 0) -> Difference:
    """Compare the outcomes of two runs, second minus first, in pairs where episodes match."""
    config = SurfaceConfig(draws=DRAWS, band=LEVEL, seed=seed)
    for rows, name in zip((first, second), names, strict=True):
        if not rows.is_binary or len(rows) < LEAST_ROWS:  # a run may succeed always, if the other one does not
            check_enough(rows, f"{name}: ")
    is_binary = first.is_binary and second.is_binary
    if not is_binary:
        first, second = replace(first, is_binary=False), replace(second, is_binary=False)
    matches, why = match(first, second)
    basis = SplineBasis.of(first.factors)
    expected = replace(config, draws=EXPECTED_DRAWS) if len(matches) else config  # pairs need only their variances
    alone = refit(first, expected, basis), refit(second, replace(expected, seed=seed + 1), basis)
    surfaces: tuple[Surface, ...] = alone
    p_values: tuple[float, ...] = ()
    paired = None
    if len(matches):
        paired = _differences(first, second, matches, alone)
        if np.ptp(paired.outcome) == 0.0:
            why = f"the difference is {paired.outcome[0]:g} in all {len(matches)} pairs"
            matches, paired = matches[:0], None
            surfaces = refit(first, config, basis), refit(second, replace(config, seed=seed + 1), basis)
        else:
            surfaces = (fit(paired, config),)
            p_values = tuple(p_value(paired, number, FLIPS, seed) for number in range(len(first.factors)))
    return Difference(
        factors=first.factors,
        outcome_name=first.outcome_name,
        is_binary=is_binary,
        names=names,
        surfaces=surfaces,
        rows=(len(first), len(second)),
        pairs=len(matches),
        why_unpaired=why,
        paired=paired,
        p_values=p_values,
    )


def match(first: Rows, second: Rows) -> tuple[NDArray[np.intp], str]:
    """Return the rows of pairs of equal episodes, (pairs, 2), or none with the reason."""
    none = np.zeros((0, 2), np.intp)
    if first.keys is None or second.keys is None:
        return none, "the rows do not say which episodes they are"
    for rows in (first, second):
        assert rows.keys is not None
        repeated = len(rows) - len(set(rows.keys))
        if repeated:
            return none, f"{repeated} rows have the scenario, seed, replicate and factors of another row of their run"
    places = {key: number for number, key in enumerate(second.keys)}
    found = [(number, places[key]) for number, key in enumerate(first.keys) if key in places]
    smaller = min(len(first), len(second))
    if len(found) < LEAST_PAIRED * smaller:
        return none, (
            f"only {len(found)} of {smaller} episodes have the scenario, seed, replicate and factors of an episode of "
            "the other run"
        )
    return np.array(found, np.intp).reshape(-1, 2), ""


def _differences(first: Rows, second: Rows, matches: NDArray[np.intp], surfaces: tuple[Surface, Surface]) -> Rows:
    """Return a row per pair, with the difference of the outcomes and how precise it is."""
    one, two = first.chosen(matches[:, 0]), second.chosen(matches[:, 1])
    rows = replace(one, outcome=two.outcome - one.outcome, is_binary=False)
    if not first.is_binary:
        return rows
    expected = [surface.predict(one.units).mean for surface in surfaces]
    spreads = [np.sqrt(np.maximum(chance * (1.0 - chance), 1e-4)) for chance in expected]
    residuals = [
        (part.outcome - chance) / spread for part, chance, spread in zip((one, two), expected, spreads, strict=True)
    ]
    together = float(np.clip(np.mean(residuals[0] * residuals[1]), 0.0, 0.95))
    variance = spreads[0] ** 2 + spreads[1] ** 2 - 2.0 * together * spreads[0] * spreads[1]
    precision = 1.0 / np.maximum(variance, LEAST_VARIANCE)
    return replace(rows, precision=precision / precision.mean())


def _estimate(band: Band) -> Estimate:
    return Estimate(float(band.mean), float(band.low), float(band.high))
