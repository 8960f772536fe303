"""Sobol indices compared with closed forms, and verdicts on factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES, SMALL_EFFECT
from benchmarks.sensitivity_studies import correlated, jittered
from roadworthy.sensitivity.factors import Continuous
from roadworthy.sensitivity.importance import Importance, Interval, Verdict, importance, interactions
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, SurfaceConfig, fit

FACTORS = tuple(Continuous(name, 0.0, 1.0) for name in "abc")


@pytest.fixture(scope="module")
def exact() -> tuple[Rows, Surface]:
    """y = 2 (a - 1/2) + 6 (b - 1/2)(c - 1/2), nearly without noise: a explains 4/7, b and c together 3/7."""
    units = np.random.default_rng(0).random((500, 3))
    a, b, c = (units - 0.5).T
    noise = 0.01 * np.random.default_rng(1).standard_normal(500)
    rows = Rows.of_arrays(FACTORS, units, 2.0 * a + 6.0 * b * c + noise)
    return rows, fit(rows, SurfaceConfig(draws=60))


@pytest.mark.row("SENS-4")
def test_indices_are_those_of_the_closed_form(exact: tuple[Rows, Surface]) -> None:
    rows, surface = exact
    variances = 4.0 / 12.0, 36.0 / 144.0
    alone, together = (part / sum(variances) for part in variances)
    found = importance(rows, surface, flips=3)
    assert [part.first_order.mean for part in found] == pytest.approx([alone, 0.0, 0.0], abs=0.03)
    assert [part.total.mean for part in found] == pytest.approx([alone, together, together], abs=0.03)
    assert all(part.total.low <= part.total.mean <= part.total.high for part in found)


@pytest.mark.row("SENS-4")
def test_interactions_are_found_between_the_factors_that_have_them(exact: tuple[Rows, Surface]) -> None:
    shares = interactions(exact[1])
    assert shares[1, 2] == shares[2, 1] == pytest.approx(3.0 / 7.0, abs=0.05)
    assert max(shares[0, 1], shares[0, 2]) < 0.05


@pytest.mark.row("SENS-4")
def test_an_irrelevant_factor_is_called_irrelevant_with_enough_rows_and_the_others_matter() -> None:
    case = next(case for case in KNOWN_SURFACES if case.name == "irrelevant factor")
    for count, verdict in ((200, Verdict.UNDECIDED), (2500, Verdict.IRRELEVANT)):
        rows = case.sample(count, np.random.default_rng(0))
        found = importance(rows, fit(rows, SurfaceConfig(draws=60)))
        assert found[3].verdict is verdict
    assert [part.verdict for part in found[:3]] == [Verdict.MATTERS] * 3


@pytest.mark.row("SENS-4")
def test_similar_rows_of_a_scenario_do_not_make_a_factor_important() -> None:
    """Eight rows each of 30 scenarios that differ much: a says nothing, but is the same for all rows of a scenario."""
    rng = np.random.default_rng(3)
    number = np.repeat(np.arange(30), 8)
    units = rng.random((240, 3))
    units[:, 0] = rng.random(30)[number]
    outcome = (rng.random(240) < np.where(rng.random(30) < 0.5, 0.1, 0.9)[number]).astype(float)
    rows = Rows.of_arrays(FACTORS, units, outcome)
    alone = importance(rows, fit(rows, SurfaceConfig(draws=40)), flips=39)[0]
    together = replace(rows, scenarios=tuple(map(str, number)))
    known = importance(together, fit(together, SurfaceConfig(draws=40)), flips=39)[0]
    assert alone.p_value <= 0.05 < known.p_value


@pytest.mark.row("SENS-4")
def test_a_factor_that_goes_along_with_a_real_one_does_not_matter_for_that() -> None:
    """Alone the dummy would seem to matter: its correlation with light is 0.9."""
    alarms, alone, real = 0, 0, 0
    for seed in range(12):
        rows = correlated(250, 0.9, np.random.default_rng(seed))
        found = importance(rows, fit(rows, SurfaceConfig(draws=20)), flips=199)
        alarms += found[2].verdict is Verdict.MATTERS
        real += found[0].verdict is Verdict.MATTERS
        dummy = replace(rows, factors=rows.factors[2:], units=rows.units[:, 2:])
        alone += importance(dummy, fit(dummy, SurfaceConfig(draws=20)), flips=199)[0].verdict is Verdict.MATTERS
    assert alone >= 10
    assert real >= 8
    assert alarms <= 3  # more than that has a probability below 1% at a rate of 1 in 20


@pytest.mark.row("SENS-4")
def test_a_factor_of_scenarios_with_jitter_is_tested_by_scenario() -> None:
    alarms, by_row = 0, 0
    for seed in range(12):
        rows = jittered(30, 8, np.random.default_rng(seed))
        for scenarios in (rows.scenarios, None):
            part = replace(rows, scenarios=scenarios)
            found = importance(part, fit(part, SurfaceConfig(draws=20)), flips=199)[2]
            alarms += found.verdict is Verdict.MATTERS and scenarios is not None
            by_row += found.verdict is Verdict.MATTERS and scenarios is None
    assert alarms <= 3 < by_row


@pytest.mark.row("SENS-4")
def test_factors_that_do_nothing_are_said_to_matter_no_more_often_than_stated() -> None:
    """One factor in twenty reaches a p-value of 1/20, 3 of 60 on average."""
    p_values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = Rows.of_arrays(FACTORS, rng.random((200, 3)), (rng.random(200) < 0.4).astype(float))
        p_values += [part.p_value for part in importance(rows, fit(rows, SurfaceConfig(draws=20)), 199)]
    assert np.mean(np.array(p_values) <= 0.05) <= 8 / 60  # more than that has a probability below 1%
    assert 0.3 < np.mean(p_values) < 0.8


@pytest.mark.row("SENS-4")
def test_a_small_effect_in_a_small_study_is_not_called_irrelevant() -> None:
    for seed in range(10):
        rows = SMALL_EFFECT.sample(60 + 20 * seed, np.random.default_rng(seed))
        verdict = importance(rows, fit(rows, SurfaceConfig(draws=60)), flips=99)[2].verdict
        assert verdict is not Verdict.IRRELEVANT


@pytest.mark.parametrize(
    ("p_value", "total_high", "swing_high", "verdict"),
    [
        (0.05, 0.5, 0.5, Verdict.MATTERS),
        (0.06, 0.05, 0.1, Verdict.IRRELEVANT),
        (0.06, 0.3, 0.1, Verdict.UNDECIDED),
        (0.06, 0.05, 0.2, Verdict.UNDECIDED),
    ],
)
def test_no_sign_of_an_effect_is_not_enough_for_irrelevance(
    p_value: float, total_high: float, swing_high: float, verdict: Verdict
) -> None:
    total, swing = Interval(0.02, 0.0, total_high), Interval(0.05, 0.0, swing_high)
    assert Importance("a", total, total, swing, p_value).verdict is verdict


def test_progress_is_reported_to_its_end(exact: tuple[Rows, Surface]) -> None:
    seen: list[tuple[int, int]] = []
    importance(*exact, flips=2, report=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
