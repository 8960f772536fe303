"""Surfaces compared with known truths from other families of models."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES, KnownSurface
from roadworthy.errors import UsageError
from roadworthy.sensitivity.averages import reference_units
from roadworthy.sensitivity.factors import Categorical, Continuous
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import SurfaceConfig, fit, normalized

BY_NAME = {case.name: case for case in KNOWN_SURFACES}
SMOOTH = [case for case in KNOWN_SURFACES if case.is_smooth]
LINE = Continuous("light", 0.0, 1.0)


def variation_given_success(case: KnownSurface, rows: Rows) -> float:
    """Total variation between estimated and true distributions of factors given success, mean over factors."""
    surface = fit(rows, SurfaceConfig(draws=100))
    distances = []
    for number, factor in enumerate(case.factors):
        true = normalized(case.marginal(number, surface.grid(number)), factor)
        distances.append(0.5 * np.abs(surface.given(number, True).mean - true).mean())
    return float(np.mean(distances))


@pytest.mark.row("SENS-2")
@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.name)
def test_factors_given_success_are_found_within_a_total_variation_of_a_twentieth(case: KnownSurface) -> None:
    rows = case.sample(644, np.random.default_rng(0))
    assert variation_given_success(case, rows) <= 0.05


@pytest.mark.long
@pytest.mark.row("SENS-2")
@pytest.mark.parametrize("case", [*SMOOTH, BY_NAME["2% successes"]], ids=lambda case: case.name)
def test_bands_cover_as_often_as_they_promise(case: KnownSurface) -> None:
    """Where most of the range has hardly a row, bands are wider than they had to be for so plain a truth."""
    truth = None
    held = []
    for seed in range(100):
        surface = fit(case.sample(644, np.random.default_rng(seed)))
        truth = truth or [case.marginal(number, surface.grid(number)) for number in range(len(case.factors))]
        bands = [surface.marginal(number) for number in range(len(case.factors))]
        held.append(np.mean([np.mean((b.low <= t) & (t <= b.high)) for b, t in zip(bands, truth, strict=True)]))
    assert 0.85 <= np.mean(held) <= (1.0 if case.is_uneven else 0.95)


@pytest.mark.row("SENS-2")
def test_where_rows_were_sampled_does_not_move_the_distribution_given_success() -> None:
    def chance(units: np.ndarray) -> np.ndarray:
        return 0.2 + 0.6 * units[:, 0]

    case = KnownSurface("line", (LINE, Continuous("friction", 0.0, 1.0)), chance)
    rng = np.random.default_rng(1)
    units = rng.beta(1.0, 3.0, (2000, 2))  # most rows are at small values, where success is rare
    rows = case.observe(units, rng)
    raw = rows.units[rows.outcome == 1.0, 0].mean()
    surface = fit(rows, SurfaceConfig(draws=100))
    found = np.average(surface.grid(0), weights=surface.given(0, True).mean)
    grid = surface.grid(0)
    true = np.average(grid, weights=0.2 + 0.6 * grid)
    assert raw < 0.4
    assert found == pytest.approx(true, abs=0.03)


@pytest.mark.row("SENS-2")
def test_a_continuous_outcome_has_a_surface_too() -> None:
    rng = np.random.default_rng(2)
    factors = (LINE, Categorical("object", ("box", "can")))
    units = np.column_stack([rng.random(400), rng.integers(0, 2, 400)])
    true = 30.0 + 10.0 * np.sin(4.0 * units[:, 0]) * np.where(units[:, 1] == 1.0, 1.0, -1.0)
    surface = fit(Rows.of_arrays(factors, units, true + rng.standard_normal(400)), SurfaceConfig(draws=100))
    assert not surface.is_binary
    np.testing.assert_allclose(surface.predict(units).mean, true, atol=1.5)


@pytest.mark.row("SENS-2")
def test_a_gaussian_process_is_a_setting() -> None:
    case = BY_NAME["interaction"]
    rows = case.sample(400, np.random.default_rng(3))
    places = reference_units(case.factors, 256)
    surface = fit(rows, SurfaceConfig(model="process", draws=50))
    error = np.square(surface.predict(places).mean - case.chance(places)).mean()
    assert error < 0.3 * case.chance(places).var()


def test_maps_and_curves_agree() -> None:
    case = BY_NAME["categorical interaction"]
    surface = fit(case.sample(300, np.random.default_rng(4)), SurfaceConfig(draws=50))
    over_objects = surface.pairwise(0, 2).mean.mean(axis=1)
    curve = np.interp(surface.grid(0, len(over_objects)), surface.grid(0), surface.marginal(0).mean)
    np.testing.assert_allclose(over_objects, curve, atol=0.03)


def test_distributions_given_success_and_failure_mix_to_an_even_one() -> None:
    case = BY_NAME["smooth"]
    surface = fit(case.sample(300, np.random.default_rng(5)), SurfaceConfig(draws=50))
    chance = surface.marginal_draws(0)
    rate = np.trapezoid(chance, dx=1.0 / (chance.shape[1] - 1), axis=1)[:, None]
    mixed = rate * normalized(chance, LINE) + (1.0 - rate) * normalized(1.0 - chance, LINE)
    np.testing.assert_allclose(mixed, 1.0)


def test_one_factor_is_enough() -> None:
    rng = np.random.default_rng(6)
    units = rng.random((200, 1))
    surface = fit(Rows.of_arrays((LINE,), units, (units[:, 0] > rng.random(200)).astype(float)))
    curve = surface.marginal(0).mean
    assert curve[0] < 0.25
    assert curve[-1] > 0.75


@pytest.mark.row("STAT-1")
@pytest.mark.parametrize(("count", "words"), [(19, "19 usable rows"), (100, "success is 1 in all 100 rows")])
def test_not_enough_data_is_an_answer(count: int, words: str) -> None:
    rows = Rows.of_arrays((LINE,), np.linspace(0.0, 1.0, count)[:, None], np.ones(count))
    with pytest.raises(UsageError, match=f"not enough data: .*{words}"):
        fit(rows)


@pytest.mark.parametrize(("settings", "words"), [({"draws": 3}, "draws is 3"), ({"band": 90.0}, "band is 90.0")])
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SurfaceConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.row("SENS-2")
def test_the_analysis_imports_neither_torch_nor_the_simulator() -> None:
    check = (
        "import sys; import roadworthy.sensitivity.report;"
        "print('heavy:', *sorted(m for m in sys.modules if m in ('torch', 'sbi', 'numba', 'roadworthy.sim')))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "heavy:"
