"""Suggestions of the next episodes."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.errors import UsageError
from roadworthy.sensitivity.factors import Categorical, Continuous
from roadworthy.sensitivity.next_batch import as_values, suggest
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, SurfaceConfig, fit

FACTORS = (Continuous("light", 0.0, 2000.0), Categorical("object", ("box", "can")))


@pytest.fixture(scope="module")
def half_seen() -> Surface:
    """Light was never above half of its range where the object was a can."""
    rng = np.random.default_rng(0)
    units = np.column_stack([rng.random(300), rng.integers(0, 2, 300)])
    units[:, 0] *= np.where(units[:, 1] == 1.0, 0.5, 1.0)
    outcome = (rng.random(300) < 0.2 + 0.6 * units[:, 0]).astype(float)
    return fit(Rows.of_arrays(FACTORS, units, outcome), SurfaceConfig(draws=100))


@pytest.mark.row("SENS-6")
def test_most_suggestions_are_where_nothing_was_seen(half_seen: Surface) -> None:
    units = suggest(half_seen, 20)
    unseen = (units[:, 0] > 0.5) & (units[:, 1] == 1.0)
    assert unseen.mean() > 0.5  # a quarter of all places


@pytest.mark.row("SENS-6")
def test_a_batch_spreads_out(half_seen: Surface) -> None:
    units = suggest(half_seen, 20)
    assert len(np.unique(units, axis=0)) == 20
    assert np.ptp(units[:, 0]) > 0.5


def test_suggestions_are_values_of_the_factors(half_seen: Surface) -> None:
    told = as_values(half_seen, np.array([[0.25, 1.0]]))
    assert told == [{"light": 500.0, "object": "can"}]


def test_a_continuous_outcome_gets_suggestions_too() -> None:
    rng = np.random.default_rng(1)
    units = np.column_stack([0.5 * rng.random(100), rng.integers(0, 2, 100)])
    surface = fit(Rows.of_arrays(FACTORS, units, units[:, 0] + 0.1 * rng.standard_normal(100)), SurfaceConfig(draws=50))
    assert (suggest(surface, 10)[:, 0] > 0.5).mean() > 0.5


def test_no_episodes_are_no_batch(half_seen: Surface) -> None:
    with pytest.raises(UsageError, match="0 episodes, expected 1 or more"):
        suggest(half_seen, 0)
