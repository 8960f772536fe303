"""Steps of the success surface: bands cover less near them, and the report says so."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES
from roadworthy.sensitivity.analysis import AnalysisConfig, analyze
from roadworthy.sensitivity.report import findings, html
from roadworthy.sensitivity.steep import steep_warnings
from roadworthy.sensitivity.surface import GRID_POINTS, SurfaceConfig, fit

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
    analysis = analyze(rows, AnalysisConfig(QUICK, shuffles=2, twins=1, next_episodes=1))
    assert findings(analysis)
    page = html(analysis, {"curves": b"", "pairs": b""})
    before, _, after = page.partition("<h2>Along each factor</h2>")
    assert "success changes abruptly between light" in before
    assert "90% bands covered" in before
    assert "Near a step" in after


@pytest.mark.row("SENS-5")
def test_bands_of_curves_over_a_cliff_hold_the_truth_as_often_as_they_promise() -> None:
    """Twelve experiments; bands of each point alone hold 0.83, at the three points beside the step hardly ever."""
    case = CASES["cliff"]
    held, beside = [], []
    curves = [case.marginal(number, np.linspace(0.0, 1.0, GRID_POINTS)) for number in range(2)]
    for seed in range(12):
        surface = fit(case.sample(644, np.random.default_rng(700 + seed)), SurfaceConfig(draws=150))
        for number, step in ((0, 0.45), (1, 0.7)):
            band, grid, truth = surface.marginal(number), surface.grid(number), curves[number]
            inside = (band.low <= truth) & (truth <= band.high)
            held.append(inside.mean())
            beside.append(inside[np.argsort(np.abs(grid - step))[:3]].mean())
    assert np.mean(held) >= 0.85
    assert np.mean(beside) >= 0.6
