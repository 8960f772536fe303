"""Averages of posterior draws over factors: curves, maps and means, with pointwise and simultaneous bands.

Averages over other factors are over uniform units, so they do not depend on where episodes were sampled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.stats import qmc

from roadworthy.sensitivity.basis import SPLINE_PIECES
from roadworthy.sensitivity.factors import Categorical, Factor, spread_units

Array = NDArray[np.float64]

GRID_POINTS = 25
STEEP_SHARE = 0.5  # of a curve's total rise, within one spline segment, the fastest that splines can rise
STEEP_CHANGE = 0.15  # of the probability of success; smaller steps are within the band
RESOLUTION = 1.0 / SPLINE_PIECES  # in units; a step can't be located more precisely
STEP_MARGIN = 0.01  # in units, beside the interval of a step that is part of the draws
AVERAGED_POINTS = 128
MAP_POINTS = 17


@dataclass(frozen=True)
class Band:
    """Posterior mean and interval at every point."""

    mean: Array
    low: Array
    high: Array


class Averages(ABC):
    """Posterior draws of an outcome at any units, and their averages."""

    factors: tuple[Factor, ...]

    @property
    @abstractmethod
    def band_level(self) -> float:
        """The posterior probability inside a band."""

    @property
    @abstractmethod
    def has_steps(self) -> bool:
        """Whether the outcome has a scale on which steps are recognized, as probabilities have."""

    @property
    @abstractmethod
    def limits(self) -> tuple[float, float]:
        """The smallest and largest possible value."""

    @property
    def known_steps(self) -> dict[int, tuple[float, float]] | None:
        """The steps that are part of the draws, with the intervals of their places; None if draws have no steps."""
        return None

    def step_reach(self, factor: int) -> float:
        """Return how far from its place a step blurs the curve, in units."""
        if self.known_steps is None:
            return 0.5 * RESOLUTION
        low, high = self.known_steps[factor]
        return STEP_MARGIN + high - low

    @abstractmethod
    def sample(self, units: Array) -> Array:
        """Return the outcome at units (n, factors) for every draw, (draws, n)."""

    def grid(self, factor: int, points: int = GRID_POINTS) -> Array:
        """Return the units of one factor at which curves are computed."""
        return grid_units(self.factors[factor], points)

    def marginal_draws(self, factor: int) -> Array:
        """Return the probability or mean along one factor, averaged over the others, (draws, grid)."""
        if factor not in self._curves:
            grid = self.grid(factor)
            units = np.tile(self._averaged, (len(grid), 1))
            units[:, factor] = np.repeat(grid, AVERAGED_POINTS)
            draws = self.sample(units)
            self._curves[factor] = draws.reshape(len(draws), len(grid), AVERAGED_POINTS).mean(axis=2)
        return self._curves[factor]

    def marginal(self, factor: int) -> Band:
        """Return the probability or mean along one factor, averaged over the others, with a band."""
        return self._beside_steps(self._band(self.marginal_draws(factor)), factor, axis=0)

    def simultaneous(self, factor: int) -> Band:
        """Return the curve along one factor with a band that holds the whole curve, not each point alone."""
        band = self._beside_steps(simultaneous_band(self.marginal_draws(factor), self.band_level), factor, axis=0)
        return Band(band.mean, np.maximum(band.low, self.limits[0]), np.minimum(band.high, self.limits[1]))

    @cached_property
    def steps(self) -> dict[int, tuple[float, float]]:
        """The factors along which success jumps, with the units between which it does."""
        if self.known_steps is not None:
            return self.known_steps
        return self.steepest(STEEP_SHARE, STEEP_CHANGE) if self.has_steps else {}

    def steepest(self, share: float, least: float) -> dict[int, tuple[float, float]]:
        """Return where each range rises or falls most within a spline segment, if that is enough.

        Args:
            share: The least share of the curve's whole rise.
            least: The least rise.
        """
        found = {}
        for number, factor in enumerate(self.factors):
            if isinstance(factor, Categorical):
                continue
            grid, curve = self.grid(number), self.marginal_draws(number).mean(axis=0)
            width = round((len(grid) - 1) * RESOLUTION)
            change = np.abs(curve[width:] - curve[:-width])
            place = int(change.argmax())
            if change[place] >= max(least, share * float(np.ptp(curve))):
                found[number] = float(grid[place]), float(grid[place + width])
        return found

    def _beside_steps(self, band: Band, factor: int, axis: int) -> Band:
        """Widen bands near a step to the values within half a spline segment, where the step may be."""
        if factor not in self.steps:
            return band
        low, high = self.steps[factor]
        grid, reach = self.grid(factor, band.mean.shape[axis]), self.step_reach(factor)
        size = 1 + 2 * int(np.ceil(reach * (len(grid) - 1)))
        shape = [1] * band.mean.ndim
        shape[axis] = -1
        near = ((grid >= low - reach) & (grid <= high + reach)).reshape(shape)
        return Band(
            band.mean,
            np.where(near, minimum_filter1d(band.low, size, axis, mode="nearest"), band.low),
            np.where(near, maximum_filter1d(band.high, size, axis, mode="nearest"), band.high),
        )

    def pairwise_draws(self, first: int, second: int, points: int = MAP_POINTS) -> Array:
        """Return the probability or mean along two factors, averaged over the others, (draws, grid, grid)."""
        one, two = self.grid(first, points), self.grid(second, points)
        units = np.tile(self._averaged, (len(one) * len(two), 1))
        units[:, first] = np.repeat(one, len(two) * AVERAGED_POINTS)
        units[:, second] = np.tile(np.repeat(two, AVERAGED_POINTS), len(one))
        parts = (self.sample(part) for part in np.array_split(units, len(one)))  # in parts, to save memory
        means = [part.reshape(len(part), -1, AVERAGED_POINTS).mean(axis=2) for part in parts]
        return np.concatenate(means, axis=1).reshape(-1, len(one), len(two))

    def pairwise(self, first: int, second: int, points: int = MAP_POINTS) -> Band:
        """Return the probability or mean along two factors, averaged over the others, (grid, grid)."""
        band = self._band(self.pairwise_draws(first, second, points))
        return self._beside_steps(self._beside_steps(band, first, axis=0), second, axis=1)

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

    def _band(self, draws: Array) -> Band:
        return quantile_band(draws, self.band_level)


def quantile_band(draws: Array, band: float) -> Band:
    """Return the mean and interval over the first axis, at each point alone."""
    beyond = 0.5 * (1.0 - band)
    low, high = np.quantile(draws, (beyond, 1.0 - beyond), axis=0)
    return Band(draws.mean(axis=0), low, high)


def simultaneous_band(draws: Array, band: float, factor: float | None = None) -> Band:
    """Return a band that holds whole draws: the pointwise one, widened by one factor at all points.

    Args:
        draws: The draws, (draws, ...).
        band: The posterior probability that a curve is inside the band everywhere.
        factor: The factor by which to widen; by default that of these draws.
    """
    alone = quantile_band(draws, band)
    factor = max(float(np.quantile(excursions(draws, alone), band)), 1.0) if factor is None else factor
    middle = alone.mean
    return Band(middle, middle - factor * (middle - alone.low), middle + factor * (alone.high - middle))


def excursions(draws: Array, alone: Band) -> Array:
    """Return how far each draw leaves its mean at most, (draws,), relative to the ends of a pointwise band."""
    above = (draws - alone.mean) / np.maximum(alone.high - alone.mean, 1e-12)
    below = (alone.mean - draws) / np.maximum(alone.mean - alone.low, 1e-12)
    most: Array = np.maximum(above, below).reshape(len(draws), -1).max(axis=1)
    return most


def reference_units(factors: tuple[Factor, ...], count: int, seed: int | tuple[int, ...] = 7) -> Array:
    """Return evenly spread units, (count, factors), the same at every call."""
    return spread_units(factors, qmc.Sobol(len(factors), rng=np.random.default_rng(seed)).random(count))


def grid_units(factor: Factor, points: int = GRID_POINTS) -> Array:
    """Return units of a factor: evenly over its range, or every choice."""
    if isinstance(factor, Categorical):
        return np.arange(len(factor.choices), dtype=np.float64)
    return np.linspace(0.0, 1.0, points)
