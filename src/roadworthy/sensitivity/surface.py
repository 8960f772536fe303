"""The success surface: the probability of success (or the mean of an outcome) over the factors, with bands.

A surface consists of posterior draws of one regression. All results are computed for each draw, so every curve, map,
distribution and index has a band. Averages over other factors are over uniform units, so they do not depend on where
episodes were sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.special import expit
from scipy.stats import qmc

from roadworthy.errors import UsageError
from roadworthy.sensitivity.basis import SPLINE_PIECES, Basis, SplineBasis
from roadworthy.sensitivity.factors import Categorical, Factor, spread_units
from roadworthy.sensitivity.hierarchy import Mode, Regression, draw, find_mode
from roadworthy.sensitivity.rows import Rows

Array = NDArray[np.float64]

LEAST_ROWS = 20
GRID_POINTS = 25
STEEP_SHARE = 0.5  # of a curve's total rise, within one spline segment, the fastest that splines can rise
STEEP_CHANGE = 0.15  # of the probability of success; smaller steps are within the band
RESOLUTION = 1.0 / SPLINE_PIECES  # in units; a step can't be located more precisely
AVERAGED_POINTS = 128


@dataclass(frozen=True)
class SurfaceConfig:
    """Settings of the fit of a surface."""

    model: Literal["splines", "process"] = "splines"
    """The form: splines with pairwise interactions, or a Gaussian process, which is slower and suits few factors."""
    draws: int = 300
    """The number of posterior draws."""
    band: float = 0.9
    """The posterior probability inside a band."""
    seed: int = 0
    """The seed of the posterior draws."""

    def __post_init__(self) -> None:
        if self.draws < 20:
            raise UsageError(f"draws is {self.draws}, expected 20 or more")
        if not 0.0 < self.band < 1.0:
            raise UsageError(f"band is {self.band}, expected a share between 0 and 1, such as 0.9")


@dataclass(frozen=True)
class Band:
    """Posterior mean and interval at every point."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Surface:
    """Posterior draws of the probability of success, or of the mean of a continuous outcome."""

    factors: tuple[Factor, ...]
    is_binary: bool
    config: SurfaceConfig
    basis: Basis
    mode: Mode
    weights: Array  # (draws, columns)
    center: float = 0.0  # of a continuous outcome, and its spread
    spread: float = 1.0

    def sample(self, units: Array) -> Array:
        """Return the probability or mean at units (n, factors) for every draw, (draws, n)."""
        return self.outcome(self.weights @ self.basis.features(units).T)

    def predict(self, units: Array) -> Band:
        """Return the probability or mean at units (n, factors), with a band for each point.

        Near a step, a band spans the values within half a spline segment on either side of the point.
        """
        band = self._band(self.sample(units))
        for factor, (low, high) in self.steps.items():
            reach = 0.5 * RESOLUTION
            near = np.flatnonzero((units[:, factor] >= low - reach) & (units[:, factor] <= high + reach))
            for shift in np.linspace(-reach, reach, 5) if len(near) else ():
                shifted = units[near]
                shifted[:, factor] = np.clip(shifted[:, factor] + shift, 0.0, 1.0)
                beside = self._band(self.sample(shifted))
                band.low[near] = np.minimum(band.low[near], beside.low)
                band.high[near] = np.maximum(band.high[near], beside.high)
        return band

    def grid(self, factor: int, points: int = GRID_POINTS) -> Array:
        """Return the units of one factor at which curves are computed."""
        return grid_units(self.factors[factor], points)

    def marginal_draws(self, factor: int) -> Array:
        """Return the probability or mean along one factor, averaged over the others, (draws, grid)."""
        if factor not in self._curves:
            grid = self.grid(factor)
            units = np.tile(self._averaged, (len(grid), 1))
            units[:, factor] = np.repeat(grid, AVERAGED_POINTS)
            draws = self.sample(units).reshape(len(self.weights), len(grid), AVERAGED_POINTS)
            self._curves[factor] = draws.mean(axis=2)
        return self._curves[factor]

    def marginal(self, factor: int) -> Band:
        """Return the probability or mean along one factor, averaged over the others, with a band."""
        return self._beside_steps(self._band(self.marginal_draws(factor)), factor, axis=0)

    @cached_property
    def steps(self) -> dict[int, tuple[float, float]]:
        """The factors along which success jumps, with the units between which it does."""
        found = {}
        for number, factor in enumerate(self.factors if self.is_binary else ()):
            if isinstance(factor, Categorical):
                continue
            grid, curve = self.grid(number), self.marginal_draws(number).mean(axis=0)
            width = round((len(grid) - 1) * RESOLUTION)
            change = np.abs(curve[width:] - curve[:-width])
            place = int(change.argmax())
            if change[place] >= max(STEEP_CHANGE, STEEP_SHARE * float(np.ptp(curve))):
                found[number] = float(grid[place]), float(grid[place + width])
        return found

    def _beside_steps(self, band: Band, factor: int, axis: int) -> Band:
        """Widen bands near a step to the values within half a spline segment, where the step may be."""
        if factor not in self.steps:
            return band
        low, high = self.steps[factor]
        grid, reach = self.grid(factor, band.mean.shape[axis]), 0.5 * RESOLUTION
        size = 1 + 2 * int(np.ceil(reach * (len(grid) - 1)))
        shape = [1] * band.mean.ndim
        shape[axis] = -1
        near = ((grid >= low - reach) & (grid <= high + reach)).reshape(shape)
        return Band(
            band.mean,
            np.where(near, minimum_filter1d(band.low, size, axis, mode="nearest"), band.low),
            np.where(near, maximum_filter1d(band.high, size, axis, mode="nearest"), band.high),
        )

    def pairwise(self, first: int, second: int, points: int = 17) -> Band:
        """Return the probability or mean along two factors, averaged over the others, (grid, grid)."""
        one, two = self.grid(first, points), self.grid(second, points)
        units = np.tile(self._averaged, (len(one) * len(two), 1))
        units[:, first] = np.repeat(one, len(two) * AVERAGED_POINTS)
        units[:, second] = np.tile(np.repeat(two, AVERAGED_POINTS), len(one))
        means = np.concatenate(
            [
                self.sample(part).reshape(len(self.weights), -1, AVERAGED_POINTS).mean(axis=2)
                for part in np.array_split(units, len(one))
            ],
            axis=1,
        )  # in parts, to save memory
        band = self._band(means.reshape(len(self.weights), len(one), len(two)))
        return self._beside_steps(self._beside_steps(band, first, axis=0), second, axis=1)

    def given(self, factor: int, is_success: bool) -> Band:
        """Return the distribution of one factor given success or failure, relative to uniform (1)."""
        chance = self.marginal_draws(factor)
        band = self._band(normalized(chance if is_success else 1.0 - chance, self.factors[factor]))
        return self._beside_steps(band, factor, axis=0)

    def rate(self) -> Band:
        """Return the probability or mean over all uniform units."""
        return self._band(self.sample(self._averaged).mean(axis=1))

    @cached_property
    def _curves(self) -> dict[int, Array]:
        """A cache of curves, which most parts of a report use."""
        return {}

    @cached_property
    def _averaged(self) -> Array:
        return reference_units(self.factors, AVERAGED_POINTS)

    def outcome(self, predictor: Array) -> Array:
        """Return the probability or mean for a predictor."""
        return expit(predictor) if self.is_binary else self.center + self.spread * predictor

    def _band(self, draws: Array) -> Band:
        return quantile_band(draws, self.config.band)


def quantile_band(draws: Array, band: float) -> Band:
    """Return the mean and interval over the first axis."""
    beyond = 0.5 * (1.0 - band)
    low, high = np.quantile(draws, (beyond, 1.0 - beyond), axis=0)
    return Band(draws.mean(axis=0), low, high)


def fit(rows: Rows, config: SurfaceConfig | None = None) -> Surface:
    """Fit a surface to rows."""
    config = config or SurfaceConfig()
    check_enough(rows)
    return refit(rows, config, _basis(rows, config))


def refit(rows: Rows, config: SurfaceConfig, basis: Basis) -> Surface:
    """Fit other rows with the basis of a surface, without a check of their number."""
    data = Regression.of(rows, basis)
    mode = find_mode(data)
    weights, _ = draw(data, mode, config.draws, np.random.default_rng(config.seed))
    return Surface(rows.factors, rows.is_binary, config, basis, mode, weights, *rows.location)


def _basis(rows: Rows, config: SurfaceConfig) -> Basis:
    if config.model == "splines":
        return SplineBasis.of(rows.factors)
    from roadworthy.sensitivity.gaussian_process import process_basis

    return process_basis(rows)


def check_enough(rows: Rows) -> None:
    """Raise UsageError if the rows are too few for a surface, or all equal."""
    if len(rows) < LEAST_ROWS:
        raise UsageError(f"not enough data: {len(rows)} usable rows, a surface needs {LEAST_ROWS}; run more episodes")
    if np.ptp(rows.outcome) == 0.0:
        raise UsageError(
            f"not enough data: {rows.outcome_name} is {rows.outcome[0]:g} in all {len(rows)} rows; run episodes at "
            "other values, or name another outcome"
        )


def reference_units(factors: tuple[Factor, ...], count: int, seed: int | tuple[int, ...] = 7) -> Array:
    """Return evenly spread units, (count, factors), the same at every call."""
    return spread_units(factors, qmc.Sobol(len(factors), rng=np.random.default_rng(seed)).random(count))


def grid_units(factor: Factor, points: int = GRID_POINTS) -> Array:
    """Return units of a factor: evenly over its range, or every choice."""
    if isinstance(factor, Categorical):
        return np.arange(len(factor.choices), dtype=np.float64)
    return np.linspace(0.0, 1.0, points)


def normalized(density: Array, factor: Factor) -> Array:
    """Divide by the mean along the last axis, by trapezoids where the factor is continuous."""
    if isinstance(factor, Categorical):
        mean = density.mean(axis=-1)
    else:
        mean = np.trapezoid(density, dx=1.0 / (density.shape[-1] - 1), axis=-1)
    return density / np.maximum(mean, 1e-12)[..., None]
