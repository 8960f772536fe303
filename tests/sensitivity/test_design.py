"""Warnings about the sampling of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.sensitivity.design import DesignWarning, design_warnings, explained_share
from roadworthy.sensitivity.factors import Categorical, Continuous, Factor
from roadworthy.sensitivity.rows import Rows

FACTORS: tuple[Factor, ...] = (
    Continuous("light", 0.0, 2000.0),
    Continuous("friction", 0.0, 1.0),
    Categorical("object", ("box", "can", "ball")),
)
COUNT = 600


def sampled(seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    units = np.column_stack([rng.random((COUNT, 2)), rng.integers(0, 3, COUNT)])
    return Rows.of_arrays(FACTORS, units, (rng.random(COUNT) < 0.5).astype(float), np.ones(COUNT))


def with_units(rows: Rows, column: int, values: np.ndarray) -> Rows:
    units = rows.units.copy()
    units[:, column] = values
    return replace(rows, units=units)


def kinds(rows: Rows) -> list[tuple[str, tuple[str, ...]]]:
    return [(warning.kind, warning.factors) for warning in design_warnings(rows)]


def only(rows: Rows) -> DesignWarning:
    (warning,) = design_warnings(rows)
    return warning


@pytest.mark.row("SENS-5")
def test_even_and_independent_factors_give_no_warning() -> None:
    assert [kinds(sampled(seed)) for seed in range(20)] == [[]] * 20


@pytest.mark.row("SENS-5")
@pytest.mark.parametrize(
    "bend", [lambda u: u, lambda u: 1.0 - u, lambda u: 4.0 * (u - 0.5) ** 2], ids=["up", "down", "bow"]
)
def test_factors_that_went_together_are_reported_as_confounded(bend: object) -> None:
    rows = sampled()
    together = with_units(rows, 1, bend(rows.units[:, 0]))  # type: ignore[operator]
    assert ("confounded", ("light", "friction")) in kinds(together)


@pytest.mark.row("SENS-5")
def test_a_choice_that_depends_on_a_range_is_confounded_with_it() -> None:
    rows = sampled()
    together = with_units(rows, 2, np.floor(2.999 * rows.units[:, 0]))
    messages = [warning.message for warning in design_warnings(together) if warning.kind == "confounded"]
    assert len(messages) == 1
    assert "light and object are confounded" in messages[0]
    assert "can't be separated" in messages[0]


def test_factors_that_went_together_in_part_are_said_to() -> None:
    rows = sampled()
    rng = np.random.default_rng(1)
    mixed = np.where(rng.random(COUNT) < 0.7, rows.units[:, 0], rng.random(COUNT))
    assert "partly confounded" in only(with_units(rows, 1, mixed)).message


def test_independent_factors_explain_nothing_of_each_other() -> None:
    shares = [explained_share(sampled(seed), 0, 1) for seed in range(20)]
    assert abs(np.mean(shares)) < 0.01


@pytest.mark.row("SENS-5")
def test_a_range_without_rows_is_named() -> None:
    rows = sampled()
    warning = only(with_units(rows, 0, 0.5 * rows.units[:, 0]))
    assert (warning.kind, warning.factors) == ("empty", ("light",))
    assert "no row has light 1000 to 2000" in warning.message


@pytest.mark.row("SENS-5")
def test_a_choice_without_rows_is_named() -> None:
    rows = sampled()
    assert "no row has object ball" in only(with_units(rows, 2, np.minimum(rows.units[:, 2], 1.0))).message


@pytest.mark.row("SENS-5")
def test_a_combination_without_rows_is_named() -> None:
    rows = sampled()
    dim = np.where(rows.units[:, 2] == 2.0, 0.5 * rows.units[:, 0], rows.units[:, 0])
    warning = only(with_units(rows, 0, dim))
    assert warning.factors == ("light", "object")
    assert "2 of 12 combinations" in warning.message
    assert "light 1000 to 1500 with object ball" in warning.message


def test_few_rows_of_a_choice_and_few_successes_are_named() -> None:
    rows = sampled()
    rare = with_units(rows, 2, np.where(np.arange(COUNT) < 4, 2.0, rows.units[:, 2] % 2))
    assert ("few", ("object",)) in kinds(rare)
    outcome = np.zeros(COUNT)
    outcome[:7] = 1.0
    assert "only 7 successes among 600 rows" in only(replace(rows, outcome=outcome)).message


def test_uneven_sampling_without_a_density_is_named() -> None:
    rows = sampled()
    uneven = with_units(rows, 0, rows.units[:, 0] ** 2)
    assert kinds(uneven) == []
    assert kinds(replace(uneven, density=None)) == [("uneven", ("light",))]


def test_repeated_scenarios_are_named() -> None:
    rows = replace(sampled(), scenarios=tuple(str(number % 50) for number in range(COUNT)))
    assert "600 rows come from 50 scenarios" in only(rows).message
