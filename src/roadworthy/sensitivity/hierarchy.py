"""Posterior draws of a regression whose coefficients come in blocks, each block with an unknown scale.

    outcome ~ Bernoulli(logistic(X w)) or Normal(X w, noise²)      w[block] = scale[block] * z,  z ~ Normal(0, 1)
    scale[block] ~ half-t(spread[block])

Gibbs steps draw w given the scales and the scales given w or z. With the log-likelihood replaced by a parabola at the
mode these are draws from Gaussians; elliptical slice sampling (Murray, Adams and MacKay 2010) corrects the difference,
so the draws are from the exact posterior. Bands with fixed scales, or from the parabola alone, would be too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lapack
from scipy.special import expit
from threadpoolctl import ThreadpoolController

from roadworthy.sensitivity.basis import Basis, Block
from roadworthy.sensitivity.correlation import Quadratic, shares
from roadworthy.sensitivity.rows import Rows

Array = NDArray[np.float64]

CONSTANT_SPREAD = 5.0  # of the logit of the overall probability: allows 1 in 10,000
FREEDOM = 1.0  # of the half-t: heavy tails allow one strong factor among many without effect
SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 20.0
SMALLEST_AT_MODE = 0.02  # the fixed-point iteration would converge slowly to 0 for blocks without effect
FIRST_CORRELATION = 0.1  # with which the search begins
CORRELATION_ROUNDS = 3  # how often the mode and the correlation are found in turn
LEAST_CHANCE = 1e-4  # bounds the leverage of a row with an unexpected outcome on the correlation
_SCALES = np.geomspace(SMALLEST_SCALE, LARGEST_SCALE, 160)


@dataclass(frozen=True)
class Mode:
    """The coefficients and scales at the mode, and the parabola of the log-likelihood there."""

    weights: Array  # (columns,)
    scales: Array  # (blocks,)
    noise: float  # of a Normal outcome
    curvature: Array  # (columns, columns) negative second derivative of the log-likelihood
    slope: Array  # (columns,) such that the parabola is slope·w - w·curvature·w / 2
    correlation: float = 0.0  # of rows of one cluster, beyond what the factors explain


@dataclass(frozen=True)
class Regression:
    """Data and priors of one fit. A Normal outcome is standardized."""

    features: Array
    outcome: Array
    is_binary: bool
    blocks: tuple[Block, ...]
    shares: Array | None = None  # (n,) the weight of each row; None: 1
    clusters: NDArray[np.intp] | None = None  # (n,) the number of each row's cluster; None: rows are independent

    @classmethod
    def of(cls, rows: Rows, basis: Basis, units: Array | None = None) -> Regression:
        """Return the regression of the rows' outcomes on a basis of their units, or of other units."""
        center, spread = rows.location
        # Column-major order makes products with vectors, most of the sampler's work, 25% faster.
        features = np.asfortranarray(basis.features(rows.units if units is None else units))
        return cls(features, (rows.outcome - center) / spread, rows.is_binary, basis.blocks, rows.shares, rows.groups)

    def prior_precision(self, scales: Array) -> Array:
        """Return the prior precision of each column, (columns,), given the scale of each block."""
        precision = np.empty(self.features.shape[1])
        precision[0] = CONSTANT_SPREAD**-2
        for block, scale in zip(self.blocks, scales, strict=True):
            precision[block.columns] = scale**-2
        return precision

    def log_likelihood(self, predictor: Array, noise: float) -> float:
        """Return the log-likelihood of all rows, up to a constant."""
        if self.shares is not None:
            if self.is_binary:
                return float(self.shares @ (self.outcome * predictor - np.logaddexp(0.0, predictor)))
            return float(-0.5 * (self.shares @ np.square(self.outcome - predictor)) / noise**2)
        if self.is_binary:
            return float(self.outcome @ predictor - np.logaddexp(0.0, predictor).sum())
        return float(-0.5 * np.square(self.outcome - predictor).sum() / noise**2)

    def parabola(self, weights: Array, noise: float) -> tuple[Array, Array]:
        """Return the curvature and slope of the log-likelihood at these weights."""
        if not self.is_binary:
            gram, product = self.products
            return gram / noise**2, product / noise**2
        predictor = self.features @ weights
        chance = expit(predictor)
        spread = chance * (1.0 - chance)
        pull = spread * predictor + self.outcome - chance
        if self.shares is not None:
            spread, pull = self.shares * spread, self.shares * pull
        half = self.features * np.sqrt(spread)[:, None]
        return half.T @ half, self.features.T @ pull

    def quadratic(self, weights: Array) -> Quadratic:
        """Return the parabola at these weights for any correlation of rows of one cluster, with a noise of 1."""
        assert self.clusters is not None
        counted = np.ones(len(self.outcome)) if self.shares is None else self.shares
        if not self.is_binary:
            root = np.sqrt(counted)
            return Quadratic.of(self.features * root[:, None], self.outcome * root, self.clusters)
        predictor = self.features @ weights
        chance = np.clip(expit(predictor), LEAST_CHANCE, 1.0 - LEAST_CHANCE)
        root = np.sqrt(counted * chance * (1.0 - chance))
        target = root * predictor + counted * (self.outcome - chance) / root
        return Quadratic.of(self.features * root[:, None], target, self.clusters)

    @property
    def products(self) -> tuple[Array, Array]:
        """The Gram matrix of the features, and their product with a Normal outcome."""
        counted = self.features if self.shares is None else self.features * self.shares[:, None]
        return counted.T @ self.features, counted.T @ self.outcome

    @property
    def count(self) -> float:
        """The sum of the weights of rows."""
        return float(len(self.outcome)) if self.shares is None else float(self.shares.sum())

    def squared_error(self, predictor: Array) -> float:
        """Return the weighted squared error of a predictor, summed over rows."""
        error = np.square(self.outcome - predictor)
        return float(error.sum() if self.shares is None else self.shares @ error)


@lru_cache
def _threads() -> ThreadpoolController:
    """Return the controller that limits BLAS to one thread, because the matrices are small."""
    return ThreadpoolController()


def find_mode(data: Regression, rounds: int = 12, start: Mode | None = None) -> Mode:
    """Alternate Newton steps for the weights with fixed-point steps for the scales (MacKay 1992)."""
    with _threads().limit(limits=1, user_api="blas"):
        if data.clusters is None:
            return _find_mode(data, rounds, start)
        return _find_clustered_mode(data, rounds, start)


def _find_clustered_mode(data: Regression, rounds: int, start: Mode | None) -> Mode:
    """Find the mode with each row counted as far as it is independent of its cluster, and the correlation there."""
    assert data.clusters is not None
    sizes = np.bincount(data.clusters)[data.clusters]
    alone = np.ones(len(sizes)) if data.shares is None else data.shares
    correlation = start.correlation if start else FIRST_CORRELATION
    for _ in range(CORRELATION_ROUNDS):
        counted = replace(data, clusters=None, shares=alone * shares(sizes, correlation))
        start = mode = _find_mode(counted, -(-rounds // CORRELATION_ROUNDS), start)
        quadratic = data.quadratic(mode.weights)
        correlation = quadratic.likeliest(mode.weights, 1.0 if data.is_binary else mode.noise)
    curvature, slope = quadratic.parabola(correlation)
    scale = 1.0 if data.is_binary else mode.noise**-2.0
    return replace(mode, curvature=scale * curvature, slope=scale * slope, correlation=correlation)


def _find_mode(data: Regression, rounds: int, start: Mode | None) -> Mode:
    spreads = np.array([block.spread for block in data.blocks])
    scales = start.scales.copy() if start else 0.5 * spreads
    weights = start.weights.copy() if start else np.zeros(data.features.shape[1])
    noise = start.noise if start else 0.7
    curvature, slope = data.parabola(weights, noise)
    for _ in range(rounds):
        precision = data.prior_precision(scales)
        factor = cho_factor(curvature + np.diag(precision), lower=True)
        weights = _damped(data, weights, cho_solve(factor, slope), precision, noise)
        curvature, slope = data.parabola(weights, noise)
        inverse = lapack.dpotri(factor[0], lower=1)[0]
        learned = 1.0 - precision * np.diag(inverse)  # how far data determine each coefficient, 0 to 1
        for number, block in enumerate(data.blocks):
            size = np.square(weights[block.columns]).sum()
            # The prior shrinks scales that are far above their spread.
            held_back = 2.0 * size / (size + spreads[number] ** 2 * (block.columns.stop - block.columns.start))
            scales[number] = np.sqrt(size / (learned[block.columns].sum() + held_back + 1e-9))
        scales = np.clip(scales, SMALLEST_AT_MODE, LARGEST_SCALE)
        if not data.is_binary:
            left = data.squared_error(data.features @ weights)
            noise = float(np.sqrt(max(left / max(data.count - learned.sum(), 1.0), 1e-6)))
            curvature, slope = data.parabola(weights, noise)
    return Mode(weights, scales, noise, curvature, slope)


def log_evidence(data: Regression, mode: Mode) -> float:
    """Return the log marginal likelihood of the rows in the Laplace approximation."""
    precision = data.prior_precision(mode.scales)
    height = data.log_likelihood(data.features @ mode.weights, mode.noise) - 0.5 * precision @ np.square(mode.weights)
    factor, _ = lapack.dpotrf(mode.curvature + np.diag(precision), lower=1, overwrite_a=1)
    volume = 0.5 * np.log(precision).sum() - np.log(np.diag(factor)).sum()
    return float(height + volume) - (0.0 if data.is_binary else data.count * float(np.log(mode.noise)))


def _damped(data: Regression, old: Array, new: Array, precision: Array, noise: float) -> Array:
    """Halve the step until the posterior does not decrease: Newton's method can diverge for rare outcomes."""
    if not data.is_binary:
        return new

    def height(weights: Array) -> float:
        return data.log_likelihood(data.features @ weights, noise) - 0.5 * float(precision @ np.square(weights))

    before = height(old)
    for _ in range(12):
        if height(new) >= before - 1e-9:
            return new
        new = 0.5 * (old + new)
    return old


def draw(data: Regression, mode: Mode, count: int, rng: np.random.Generator, warmup: int = 60) -> tuple[Array, Array]:
    """Draw weights (count, columns) and noise (count,) from the posterior."""
    sampler = _Sampler(data, mode, rng)
    weights, noise = np.empty((count, len(mode.weights))), np.empty(count)
    with _threads().limit(limits=1, user_api="blas"):
        for _ in range(warmup):
            sampler.step()
        for number in range(count):
            sampler.step()
            weights[number], noise[number] = sampler.weights, sampler.noise
    return weights, noise


class _Sampler:
    """The state of the chain: weights, their predictor at the rows, scales and noise."""

    def __init__(self, data: Regression, mode: Mode, rng: np.random.Generator) -> None:
        self.data, self.rng = data, rng
        self.weights, self.scales, self.noise = mode.weights.copy(), mode.scales.copy(), mode.noise
        self.curvature, self.slope = mode.curvature, mode.slope
        self.predictor = data.features @ self.weights
        self.typical = np.array([block.spread for block in data.blocks])
        self.spreads = self.typical.copy()
        self.sizes = np.array([block.columns.stop - block.columns.start for block in data.blocks])
        self.starts = np.array([block.columns.start for block in data.blocks])
        self.gram = None if data.is_binary or data.clusters is not None else data.products
        self.correlation, self.share = mode.correlation, 1.0
        self.quadratic = None if data.clusters is None else data.quadratic(mode.weights)
        self.plain = self.curvature, self.slope  # the parabola of independent rows
        if self.quadratic is not None:
            self.share = self.quadratic.share(self.correlation)
            self.plain = self.quadratic.gram, self.quadratic.product

    def step(self) -> None:
        """Run one round: weights, scales given weights, scales given standardized weights, noise."""
        self._draw_weights()
        if len(self.sizes):
            self._draw_scales_given_weights()
            self._draw_scales_given_standard()
            self._draw_spreads()
        if self.gram is not None:
            self._draw_noise(*self.gram)
        if self.quadratic is not None:
            self._draw_correlation(self.quadratic)

    def _draw_weights(self) -> None:
        precision = self.data.prior_precision(self.scales)
        center, direction = _gaussian(self.curvature + np.diag(precision), self.slope, self.rng)
        self._slice(center, direction)

    def _slice(self, center: Array, direction: Array) -> None:
        """Move on an ellipse around the Gaussian's center, with an elliptical slice step for the exact posterior."""
        data = self.data
        if not data.is_binary:  # the parabola is the log-likelihood
            self.weights = center + direction
            self.predictor = data.features @ self.weights
            return
        offset = self.weights - center
        middle, step = data.features @ center, data.features @ direction
        shift = self.predictor - middle
        # Evaluate the parabola along the ellipse from a few dot products. In clusters, the likelihood departs from its
        # parabola as that of independent rows does, but counts less.
        curvature, slope = self.plain
        bent_offset, bent_direction = curvature @ offset, curvature @ direction
        pull = slope - curvature @ center
        terms = (
            pull @ offset,
            pull @ direction,
            offset @ bent_offset,
            offset @ bent_direction,
            direction @ bent_direction,
        )

        def excess(cosine: float, sine: float) -> float:
            parabola = cosine * terms[0] + sine * terms[1]
            parabola -= 0.5 * (cosine**2 * terms[2] + 2.0 * cosine * sine * terms[3] + sine**2 * terms[4])
            height = data.log_likelihood(middle + cosine * shift + sine * step, self.noise)
            return self.share * (height - float(parabola))

        level = excess(1.0, 0.0) + np.log(self.rng.random())
        angle = self.rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        while excess(np.cos(angle), np.sin(angle)) < level:
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = self.rng.uniform(low, high)
        self.weights = center + np.cos(angle) * offset + np.sin(angle) * direction
        self.predictor = middle + np.cos(angle) * shift + np.sin(angle) * step

    def _draw_scales_given_weights(self) -> None:
        """Draw from the exact conditional on a grid of log scales, for all blocks at once."""
        size = np.add.reduceat(np.square(self.weights), self.starts)
        log_density = (
            np.outer(1.0 - self.sizes, np.log(_SCALES))  # the 1 makes it a density of the log scale
            - 0.5 * np.outer(size, _SCALES**-2.0)
            - 0.5 * np.outer(self.spreads**-2.0, _SCALES**2)
        )
        shares = np.cumsum(np.exp(log_density - log_density.max(axis=1, keepdims=True)), axis=1)
        chosen = (shares < self.rng.random((len(shares), 1)) * shares[:, -1:]).sum(axis=1)
        gap = np.log(_SCALES[1] / _SCALES[0])
        # The density hardly changes within a cell of the grid.
        self.scales = _SCALES[chosen] * np.exp(gap * self.rng.uniform(-0.5, 0.5, len(chosen)))

    def _draw_scales_given_standard(self) -> None:
        """Draw all scales jointly for fixed z = weights / scale: signed scales are Gaussian; z takes their signs."""
        columns, blocks = len(self.weights), len(self.sizes)
        standard = self.weights[1:] / np.repeat(self.scales, self.sizes)
        spread_out = np.zeros((columns, 1 + blocks))  # weights = spread_out @ (constant, scales)
        spread_out[0, 0] = 1.0
        spread_out[np.arange(1, columns), np.repeat(np.arange(1, 1 + blocks), self.sizes)] = standard
        precision = spread_out.T @ (self.curvature @ spread_out)
        precision[np.diag_indices(1 + blocks)] += np.concatenate([[CONSTANT_SPREAD**-2.0], self.spreads**-2.0])
        center, direction = _gaussian(precision, spread_out.T @ self.slope, self.rng)
        self._slice(spread_out @ center, spread_out @ direction)
        along = np.add.reduceat(self.weights[1:] * standard, self.starts - 1)
        length = np.add.reduceat(np.square(standard), self.starts - 1)
        self.scales = np.clip(np.abs(along / length), SMALLEST_SCALE, LARGEST_SCALE)

    def _draw_spreads(self) -> None:
        """Draw spreads: a half-t scale is half-normal with a spread whose inverse square is gamma-distributed."""
        rate = 0.5 * (FREEDOM + np.square(self.scales / self.typical))
        self.spreads = self.typical / np.sqrt(self.rng.gamma(0.5 * (FREEDOM + 1.0), 1.0 / rate))

    def _draw_noise(self, gram: Array, product: Array) -> None:
        """Draw the noise: the precision of a Normal outcome is gamma-distributed. Update the parabola."""
        left = self.data.squared_error(self.predictor)
        precision = self.rng.gamma(1.0 + 0.5 * self.data.count, 1.0 / (1e-3 + 0.5 * left))
        self.noise = float(precision**-0.5)
        self.curvature, self.slope = gram * precision, product * precision

    def _draw_correlation(self, quadratic: Quadratic) -> None:
        """Draw the noise of a Normal outcome and the correlation of rows of one cluster. Update the parabola."""
        if not self.data.is_binary:
            left = quadratic.squared_error(self.weights, self.correlation)
            self.noise = float(self.rng.gamma(1.0 + 0.5 * quadratic.count, 1.0 / (1e-3 + 0.5 * left)) ** -0.5)
        scale = 1.0 if self.data.is_binary else self.noise
        self.correlation = quadratic.draw(self.weights, scale, self.rng)
        self.share = quadratic.share(self.correlation)
        curvature, slope = quadratic.parabola(self.correlation)
        self.curvature, self.slope = curvature / scale**2, slope / scale**2


def _gaussian(precision: Array, slope: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the mean of a Gaussian with this precision and precision times mean, and a random deviation from it."""
    factor, _ = lapack.dpotrf(precision, lower=1, overwrite_a=1)
    mean, _ = lapack.dpotrs(factor, slope, lower=1)
    deviation, _ = lapack.dtrtrs(factor, rng.standard_normal(len(slope)), lower=1, trans=1)
    return mean, deviation
