"""The sampler, compared with posteriors from numerical integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from roadworthy.sensitivity.basis import Block
from roadworthy.sensitivity.hierarchy import CONSTANT_SPREAD, Regression, draw, find_mode

SPREAD = 0.7


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.7, 1.7, 40)
    return np.column_stack([np.ones(40), x]), (rng.random(40) < expit(-2.0 + 1.0 * x)).astype(np.float64)


def integrated(features: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of constant and slope, on a fine grid; the scale of the slope is half-Cauchy."""
    constant, slope = np.linspace(-8.0, 3.0, 221), np.linspace(-4.0, 8.0, 241)
    scale = np.geomspace(1e-3, 20.0, 2000)
    scale_density = 1.0 / (1.0 + np.square(scale / SPREAD)) * scale  # of its logarithm
    prior = (np.exp(-0.5 * np.square(slope[:, None] / scale)) / scale * scale_density).sum(axis=1)
    predictor = features @ np.stack([x.ravel() for x in np.meshgrid(constant, slope, indexing="ij")])
    likelihood = (outcome @ predictor - np.logaddexp(0.0, predictor).sum(axis=0)).reshape(len(constant), -1)
    log_posterior = likelihood - 0.5 * np.square(constant / CONSTANT_SPREAD)[:, None] + np.log(prior)
    weight = np.exp(log_posterior - log_posterior.max())
    weight /= weight.sum()
    means, deviations = [], []
    for grid, axis in ((constant, 1), (slope, 0)):
        share = weight.sum(axis=axis)
        means.append(share @ grid)
        deviations.append(np.sqrt(share @ np.square(grid - means[-1])))
    return np.array(means), np.array(deviations)


@pytest.mark.row("SENS-2")
def test_draws_have_the_moments_of_the_exact_posterior(rows: tuple[np.ndarray, np.ndarray]) -> None:
    features, outcome = rows
    data = Regression(features, outcome, True, (Block((0,), slice(1, 2), SPREAD),))
    weights, _ = draw(data, find_mode(data), 8_000, np.random.default_rng(1))
    means, deviations = integrated(features, outcome)
    # Draws are correlated: 8,000 of them are worth some 2,000 independent ones, whose mean is off by 0.02 deviations.
    np.testing.assert_allclose(weights.mean(axis=0), means, atol=0.08 * deviations.max())
    np.testing.assert_allclose(weights.std(axis=0), deviations, rtol=0.08)


def test_a_normal_outcome_gives_back_its_line_and_its_noise() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(400)
    features = np.column_stack([np.ones(400), x])
    data = Regression(features, 0.2 + 0.8 * x + 0.5 * rng.standard_normal(400), False, (Block((0,), slice(1, 2), 1.0),))
    weights, noise = draw(data, find_mode(data), 500, rng)
    least_squares = np.linalg.lstsq(features, data.outcome, rcond=None)[0]
    np.testing.assert_allclose(weights.mean(axis=0), least_squares, atol=0.01)
    np.testing.assert_allclose(weights.std(axis=0), 0.5 / np.sqrt(400), rtol=0.2)
    assert noise.mean() == pytest.approx(0.5, rel=0.1)


def test_the_same_seed_gives_the_same_draws(rows: tuple[np.ndarray, np.ndarray]) -> None:
    data = Regression(*rows, True, (Block((0,), slice(1, 2), SPREAD),))
    one, two = (draw(data, find_mode(data), 20, np.random.default_rng(3))[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_perfectly_separated_outcomes_do_not_run_away() -> None:
    x = np.linspace(-1.7, 1.7, 60)
    data = Regression(
        np.column_stack([np.ones(60), x]), (x > 0.0).astype(float), True, (Block((0,), slice(1, 2), 1.0),)
    )
    weights, _ = draw(data, find_mode(data), 200, np.random.default_rng(4))
    assert np.isfinite(weights).all()
    assert weights[:, 1].min() > 0.0
