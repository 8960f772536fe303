"""The success surface: the probability of success (or the mean of an outcome) over the factors, with bands.

A surface consists of posterior draws of one regression. All results are computed for each draw, so every curve, map,
distribution and index has a band. Averages over other factors are over uniform units, so they do not depend on where
episodes were sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from roadworthy.errors import UsageError
from roadworthy.sensitivity.averages import Averages, Band
from roadworthy.sensitivity.basis import Basis, SplineBasis
from roadworthy.sensitivity.factors import Categorical, Factor
from roadworthy.sensitivity.hierarchy import Mode, Regression, draw, find_mode, log_evidence
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.score_test import residuals_without
from roadworthy.sensitivity.step_basis import Step, SteppedBasis, locate

Array = NDArray[np.float64]

LEAST_ROWS = 20
CANDIDATE_SHARE, CANDIDATE_CHANGE = 0.25, 0.12  # of the rise of the best curve within one segment: maybe a step
CLEARLY_BETTER = 6.0  # a gain of the log-evidence; among 18 curves of smooth surfaces the largest was 3.6


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
class Surface(Averages):
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

        Near a step, a band spans the values on both sides.
        """
        band = self._band(self.sample(units))
        for factor, (low, high) in self.steps.items():
            reach = self.step_reach(factor)
            near = np.flatnonzero((units[:, factor] >= low - reach) & (units[:, factor] <= high + reach))
            for shift in np.linspace(-reach, reach, 5) if len(near) else ():
                shifted = units[near]
                shifted[:, factor] = np.clip(shifted[:, factor] + shift, 0.0, 1.0)
                beside = self._band(self.sample(shifted))
                band.low[near] = np.minimum(band.low[near], beside.low)
                band.high[near] = np.maximum(band.high[near], beside.high)
        return band

    def given(self, factor: int, is_success: bool) -> Band:
        """Return the distribution of one factor given success or failure, relative to uniform (1)."""
        chance = self.marginal_draws(factor)
        band = self._band(normalized(chance if is_success else 1.0 - chance, self.factors[factor]))
        return self._beside_steps(band, factor, axis=0)

    @property
    def band_level(self) -> float:
        """The posterior probability inside a band."""
        return self.config.band

    @property
    def has_steps(self) -> bool:
        """Whether success can jump; steps of other outcomes are not recognized."""
        return self.is_binary

    @property
    def known_steps(self) -> dict[int, tuple[float, float]] | None:
        """The steps of the basis, with the intervals of their places."""
        if not isinstance(self.basis, SteppedBasis):
            return None
        return {step.factor: (step.low, step.high) for step in self.basis.steps}

    @property
    def limits(self) -> tuple[float, float]:
        """0 and 1 for a probability."""
        return (0.0, 1.0) if self.is_binary else (-np.inf, np.inf)

    def outcome(self, predictor: Array) -> Array:
        """Return the probability or mean for a predictor."""
        return expit(predictor) if self.is_binary else self.center + self.spread * predictor


def fit(rows: Rows, config: SurfaceConfig | None = None) -> Surface:
    """Fit a surface to rows, with splines, and steps where they explain success clearly better."""
    config = config or SurfaceConfig()
    check_enough(rows)
    basis = _basis(rows, config)
    data = Regression.of(rows, basis)
    mode = find_mode(data)
    if isinstance(basis, SplineBasis) and rows.is_binary:
        best = Surface(rows.factors, rows.is_binary, config, basis, mode, mode.weights[None], *rows.location)
        steps = tuple(_steps(rows, basis, best, log_evidence(data, mode)))
        if steps:
            return refit(rows, config, SteppedBasis.of(basis, steps))
    return _drawn(rows, config, basis, data, mode)


def refit(rows: Rows, config: SurfaceConfig, basis: Basis) -> Surface:
    """Fit other rows with the basis of a surface, without a check of their number."""
    data = Regression.of(rows, basis)
    return _drawn(rows, config, basis, data, find_mode(data))


def _drawn(rows: Rows, config: SurfaceConfig, basis: Basis, data: Regression, mode: Mode) -> Surface:
    weights, _ = draw(data, mode, config.draws, np.random.default_rng(config.seed))
    return Surface(rows.factors, rows.is_binary, config, basis, mode, weights, *rows.location)


def _steps(rows: Rows, basis: SplineBasis, best: Surface, evidence: float) -> Iterator[Step]:
    """Yield the steps that explain the rows clearly better than splines do, given the best fit of these."""
    for number, (low, high) in best.steepest(CANDIDATE_SHARE, CANDIDATE_CHANGE).items():
        step = locate(rows.units, residuals_without(rows, number), rows.factors, number, low, high)
        data = Regression.of(rows, SteppedBasis.of(basis, (step,)))
        if log_evidence(data, find_mode(data)) > evidence + CLEARLY_BETTER:
            yield step


def _basis(rows: Rows, config: SurfaceConfig) -> Basis:
    if config.model == "splines":
        return SplineBasis.of(rows.factors)
    from roadworthy.sensitivity.gaussian_process import process_basis

    return process_basis(rows)


def check_enough(rows: Rows, source: str = "") -> None:
    """Raise UsageError if the rows are too few for a surface, or all equal."""
    if len(rows) < LEAST_ROWS:
        raise UsageError(
            f"{source}not enough data: {len(rows)} usable rows, a surface needs {LEAST_ROWS}; run more episodes"
        )
    if np.ptp(rows.outcome) == 0.0:
        raise UsageError(
            f"{source}not enough data: {rows.outcome_name} is {rows.outcome[0]:g} in all {len(rows)} rows; run "
            "episodes at other values, or name another outcome"
        )


def normalized(density: Array, factor: Factor) -> Array:
    """Divide by the mean along the last axis, by trapezoids where the factor is continuous."""
    if isinstance(factor, Categorical):
        mean = density.mean(axis=-1)
    else:
        mean = np.trapezoid(density, dx=1.0 / (density.shape[-1] - 1), axis=-1)
    return density / np.maximum(mean, 1e-12)[..., None]
