"""Rows that share a cluster: the parabola compared with explicit matrices, and bands compared with known truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks.known_surfaces import KNOWN_SURFACES
from roadworthy.sensitivity.averages import simultaneous_band
from roadworthy.sensitivity.correlation import CORRELATIONS, Quadratic
from roadworthy.sensitivity.rows import Rows, make_rows
from roadworthy.sensitivity.surface import SurfaceConfig, fit

SMOOTH = KNOWN_SURFACES[0]
QUICK = SurfaceConfig(draws=120)


@pytest.fixture(scope="module")
def grouped() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 4)), rng.standard_normal(40), np.sort(rng.integers(0, 9, 40))


def correlation_matrix(codes: np.ndarray, correlation: float) -> np.ndarray:
    same = (codes[:, None] == codes[None, :]).astype(float)
    return correlation * same + (1.0 - correlation) * np.eye(len(codes))


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_the_parabola_is_that_of_generalized_least_squares(
    grouped: tuple[np.ndarray, np.ndarray, np.ndarray], correlation: float
) -> None:
    features, target, codes = grouped
    order = np.random.default_rng(1).permutation(len(codes))
    found = Quadratic.of(features[order], target[order], np.unique(codes[order], return_inverse=True)[1])
    inverse = np.linalg.inv(correlation_matrix(codes, correlation))
    curvature, slope = found.parabola(correlation)
    np.testing.assert_allclose(curvature, features.T @ inverse @ features)
    np.testing.assert_allclose(slope, features.T @ inverse @ target)
    weights = np.arange(4.0)
    left = target - features @ weights
    assert found.squared_error(weights, correlation) == pytest.approx(left @ inverse @ left)


def test_the_likelihood_of_a_correlation_is_that_of_the_normal_distribution(
    grouped: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    features, target, codes = grouped
    weights, noise = np.array([0.5, -0.2, 0.0, 0.1]), 1.3
    found = Quadratic.of(features, target, np.unique(codes, return_inverse=True)[1]).log_density(weights, noise)
    left = target - features @ weights
    exact = [multivariate_normal.logpdf(left, cov=noise**2 * correlation_matrix(codes, part)) for part in CORRELATIONS]
    np.testing.assert_allclose(found - found[0], np.array(exact) - exact[0], atol=1e-8)


@pytest.mark.row("STAT-1")
@pytest.mark.row("SENS-2")
def test_bands_of_scenarios_with_several_rows_cover_as_often_as_they_promise() -> None:
    """Twelve experiments of 100 scenarios with 6 rows each, much alike; taken as independent, bands hold 0.65."""
    truths = None
    held: dict[str, list[float]] = {"clusters": [], "independent": []}
    for seed in range(12):
        rows = SMOOTH.replicate(100, 6, 0.7, np.random.default_rng(seed))
        for name, part in (("clusters", rows), ("independent", replace(rows, scenarios=None))):
            surface = fit(part, QUICK)
            truths = truths or [SMOOTH.marginal(number, surface.grid(number)) for number in range(3)]
            bands = [surface.marginal(number) for number in range(3)]
            held[name] += [np.mean((b.low <= t) & (t <= b.high)) for b, t in zip(bands, truths, strict=True)]
    assert np.mean(held["independent"]) < 0.75
    assert np.mean(held["clusters"]) >= 0.82  # 0.9 less two standard errors of twelve experiments


@pytest.mark.row("SENS-2")
def test_what_varies_within_scenarios_is_known_better_than_what_differs_between_them() -> None:
    rng = np.random.default_rng(2)
    number = np.repeat(np.arange(60), 8)
    units = rng.random((480, 3))
    units[:, 1] = rng.random(60)[number]
    outcome = units[:, 0] + units[:, 1] + rng.standard_normal(60)[number] + 0.3 * rng.standard_normal(480)
    rows = replace(Rows.of_arrays(SMOOTH.factors, units, outcome), scenarios=tuple(map(str, number)))
    surface = fit(rows, QUICK)
    slopes = [surface.marginal_draws(k)[:, -1] - surface.marginal_draws(k)[:, 0] for k in (0, 1)]
    assert surface.mode.correlation == pytest.approx(1.0 / 1.09, abs=0.06)
    assert slopes[0].std() < 0.3 * slopes[1].std()
    assert slopes[0].mean() == pytest.approx(1.0, abs=0.15)


def test_a_cluster_of_rows_goes_before_their_scenario() -> None:
    rows = [
        {"scenario_id": f"s{k}", "cluster": f"c{k // 4}", "factors": {"light": k}, "outcomes": {"success": k % 3 == 0}}
        for k in range(40)
    ]
    found = make_rows(rows, (SMOOTH.factors[0],), "success")
    assert found.groups is not None
    assert found.groups.max() == 9
    alone = make_rows([{**row, "cluster": row["scenario_id"]} for row in rows], (SMOOTH.factors[0],), "success")
    assert alone.groups is None


@pytest.mark.row("SENS-2")
def test_a_simultaneous_band_holds_whole_curves() -> None:
    """The quantile of the largest of 12 independent Normal values, from its distribution function."""
    draws = np.random.default_rng(3).standard_normal((40_000, 12)) * np.arange(1.0, 13.0) + 5.0
    band = simultaneous_band(draws, 0.9)
    reach = 2.6206  # (2 Phi(reach) - 1)^12 = 0.9
    np.testing.assert_allclose(band.high - 5.0, reach * np.arange(1.0, 13.0), rtol=0.03)
    np.testing.assert_allclose(5.0 - band.low, reach * np.arange(1.0, 13.0), rtol=0.03)
    inside = ((draws >= band.low) & (draws <= band.high)).all(axis=1)
    assert inside.mean() == pytest.approx(0.9, abs=0.005)
