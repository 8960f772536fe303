"""Steps of the success surface: bands cover less near them, and the report says so."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES
from roadworthy.sensitivity.analysis import AnalysisConfig, analyze
from roadworthy.sensitivity.averages import grid_units
from roadworthy.sensitivity.basis import SplineBasis
from roadworthy.sensitivity.factors import spread_units
from roadworthy.sensitivity.report import findings, html
from roadworthy.sensitivity.steep import steep_warnings
from roadworthy.sensitivity.surface import SurfaceConfig, fit, refit

CASES = {case.name: case for case in KNOWN_SURFACES}
QUICK = SurfaceConfig(draws=60)


@pytest.mark.row("SENS-5")
@pytest.mark.parametrize("seed", range(3))
def test_a_cliff_is_named_where_it_is(seed: int) -> None:
    """The known cliff is at light 900 (0.45 of its range) and friction 0.9 (0.7 of its range); height does nothing."""
    surface = fit(CASES["cliff"].sample(644, np.random.default_rng(400 + seed)), QUICK)
    found = {warning.factors: warning.message for warning in steep_warnings(surface)}
    assert set(found) == {("light",), ("friction",)}
    for name, step in (("light", 900.0), ("friction", 0.9)):
        low, high = found[name,].partition(f"between {name} ")[2].partition(". The surface")[0].split(" and ")
        assert float(low) <= step <= float(high)


@pytest.mark.row("SENS-5")
@pytest.mark.parametrize("name", ["smooth", "interaction", "categorical interaction", "2% successes"])
def test_slopes_are_not_called_steps(name: str) -> None:
    for seed in range(2):
        surface = fit(CASES[name].sample(644, np.random.default_rng(400 + seed)), QUICK)
        assert list(steep_warnings(surface)) == []


@pytest.mark.row("SENS-5")
def test_the_page_says_beside_the_bands_what_they_hold_at_a_step() -> None:
    rows = CASES["cliff"].sample(300, np.random.default_rng(1))
    analysis = analyze(rows, AnalysisConfig(QUICK, flips=2, twins=1, next_episodes=1))
    assert findings(analysis)
    page = html(analysis, {"curves": b"", "pairs": b""})
    before, _, after = page.partition("<h2>Along each factor</h2>")
    assert "success changes abruptly between light" in before
    assert "bands span the values on both sides" in before
    assert "Near a step" in after


@pytest.mark.row("SENS-5")
@pytest.mark.parametrize("name", ["cliff", "threshold"])
def test_bands_over_a_step_hold_the_truth_as_often_as_they_promise(name: str) -> None:
    """Ten experiments; bands of splines without steps hold 0.84 of the points of the cliff's surface."""
    case = CASES[name]
    places = spread_units(case.factors, np.random.default_rng(9).random((150, 3)))
    truth = case.chance(places)
    curve = case.marginal(0, grid_units(case.factors[0]))
    curves, points, errors = [], [], []
    for seed in range(10):
        rows = case.sample(644, np.random.default_rng(700 + seed))
        surface = fit(rows, SurfaceConfig(draws=150))
        band, places_band = surface.marginal(0), surface.predict(places)
        curves.append(np.mean((band.low <= curve) & (curve <= band.high)))
        points.append(np.mean((places_band.low <= truth) & (truth <= places_band.high)))
        smooth = refit(rows, SurfaceConfig(draws=50), SplineBasis.of(case.factors)).predict(places).mean
        errors.append(np.square(places_band.mean - truth).mean() / np.square(smooth - truth).mean())
    assert np.mean(curves) >= 0.83
    assert np.mean(points) >= 0.85
    assert np.mean(errors) <= 0.75


@pytest.mark.row("SENS-5")
def test_the_place_of_a_step_is_within_its_interval() -> None:
    inside = []
    for seed in range(12):
        surface = fit(CASES["cliff"].sample(400, np.random.default_rng(seed)), SurfaceConfig(draws=20))
        for number, (low, high) in surface.steps.items():
            inside.append(low <= (0.45, 0.7)[number] <= high)
    assert len(inside) >= 20
    assert np.mean(inside) >= 0.9
