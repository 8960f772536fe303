"""Held-out predictions, and simulated experiments with a known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES
from roadworthy.sensitivity.calibration import calibrate, twin_coverage
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, SurfaceConfig, fit
from roadworthy.statistics.intervals import normal_quantile, wilson

SMOOTH = KNOWN_SURFACES[0]


@pytest.fixture(scope="module")
def fitted() -> tuple[Rows, Surface]:
    rows = SMOOTH.sample(400, np.random.default_rng(0))
    return rows, fit(rows, SurfaceConfig(draws=100))


@pytest.mark.row("SENS-5")
def test_rows_are_predicted_better_than_by_their_mean(fitted: tuple[Rows, Surface]) -> None:
    found = calibrate(*fitted)
    assert sum(part.count for part in found.bins) == 400
    assert 0.0 < found.skill < 1.0
    assert np.all(np.diff([part.predicted for part in found.bins]) > 0.0)
    assert all(part.low <= part.observed <= part.high for part in found.bins)


@pytest.mark.row("SENS-5")
def test_outcomes_that_no_factor_explains_are_not_predicted(fitted: tuple[Rows, Surface]) -> None:
    rows, surface = fitted
    shuffled = replace(rows, outcome=np.random.default_rng(1).permutation(rows.outcome))
    assert calibrate(shuffled, surface).skill < 0.02


def test_rows_of_one_scenario_are_never_split(fitted: tuple[Rows, Surface]) -> None:
    """Outcomes are a coin per scenario: only a row of the same scenario could tell them."""
    rng = np.random.default_rng(2)
    units = np.repeat(rng.random((40, 3)), 10, axis=0)
    rows = Rows.of_arrays(SMOOTH.factors, units, np.repeat(rng.random(40) < 0.5, 10).astype(float))
    apart = calibrate(replace(rows, scenarios=tuple(str(n // 10) for n in range(400))), fitted[1])
    mixed = calibrate(rows, fitted[1])
    assert apart.skill < 0.1 < mixed.skill


@pytest.mark.row("SENS-5")
def test_twins_tell_how_often_bands_hold(fitted: tuple[Rows, Surface]) -> None:
    found = twin_coverage(*fitted, twins=4)
    assert (found.twins, found.promised) == (4, 0.9)
    assert found.curves is not None
    assert 0.5 < found.curves <= 1.0
    assert found.points is not None
    assert 0.5 < found.points <= 1.0


def test_twins_find_bands_out_that_are_too_narrow(fitted: tuple[Rows, Surface]) -> None:
    rows, surface = fitted
    narrow = replace(surface, config=replace(surface.config, band=0.1))
    points = twin_coverage(rows, narrow, twins=4).points
    assert points is not None
    assert points < 0.4


def test_very_few_rows_can_be_checked_too() -> None:
    rows = SMOOTH.sample(20, np.random.default_rng(3))
    surface = fit(rows, SurfaceConfig(draws=20))
    assert sum(part.count for part in calibrate(rows, surface).bins) == 20


@pytest.mark.row("STAT-1")
def test_wilson_intervals_are_those_of_the_textbook() -> None:
    """Its ends are the roots of a quadratic: (p - rate)² = z² p (1 - p) / n (Brown, Cai and DasGupta 2001)."""
    for successes, count in ((0, 10), (3, 10), (10, 10)):
        for end in wilson(successes / count, count, normal_quantile(0.95)):
            assert (end - successes / count) ** 2 == pytest.approx(1.959964**2 * end * (1.0 - end) / count, abs=1e-6)
