"""Missing data: bounds that hold whatever the missing rows would have been."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from roadworthy.statistics import Clusters, mean, rate, with_missing
from roadworthy.statistics.intervals import Interval


def apart(count: int) -> Clusters:
    return Clusters(np.arange(count), count)


@pytest.mark.row("STAT-4")
def test_a_crashed_episode_counts_as_failed_between_bounds() -> None:
    values = np.array([1.0] * 60 + [0.0] * 30 + [np.nan] * 10)
    crashed = np.isnan(values)
    found = with_missing(lambda rows: rate(rows, apart(100)), values, crashed, 0.0, (0.0, 1.0))
    low = stats.binomtest(60, 100).proportion_ci(method="wilson")
    high = stats.binomtest(70, 100).proportion_ci(method="wilson")
    assert (found.value, found.missing, found.n) == (0.6, 0.1, 100)
    assert (found.low, found.high) == pytest.approx((low.low, low.high))
    assert (found.worst_low, found.worst_high) == pytest.approx((low.low, high.high))


@pytest.mark.row("STAT-4")
def test_a_figure_without_a_value_for_failures_leaves_them_out_between_bounds() -> None:
    values = np.array([0.0, 1.0] * 20 + [np.nan] * 10)
    found = with_missing(lambda rows: rate(rows, apart(50)), values, np.isnan(values), None, (0.0, 1.0))
    assert (found.value, found.n, found.missing) == (0.5, 40, 0.2)
    least, most = (stats.binomtest(k, 50).proportion_ci(method="wilson") for k in (20, 30))
    assert (found.worst_low, found.worst_high) == pytest.approx((least.low, most.high))


def test_a_mean_without_bounds_has_no_worst_case() -> None:
    values = np.append(np.random.default_rng(0).normal(size=90), [np.nan] * 10)
    found = with_missing(lambda rows: mean(rows, apart(100)), values, np.isnan(values))
    assert (found.missing, found.worst_low, found.worst_high) == (0.1, None, None)


def test_without_missing_rows_the_bounds_are_the_interval() -> None:
    values = np.tile([0.0, 1.0, 1.0], 20)
    found = with_missing(lambda rows: rate(rows, apart(60)), values, np.zeros(60, np.bool_), 0.0, (0.0, 1.0))
    assert (found.missing, found.worst_low, found.worst_high) == (0.0, found.low, found.high)


@given(st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=40), st.data())
def test_the_bounds_hold_the_interval_of_every_way_to_fill_the_gaps(
    rows: list[float | None], data: st.DataObject
) -> None:
    values = np.array([np.nan if row is None else row for row in rows])
    is_missing = np.isnan(values)
    clusters = apart(len(values))
    found = with_missing(lambda filled: rate(filled, clusters), values, is_missing, 0.0, (0.0, 1.0))
    filled = np.where(is_missing, data.draw(st.sampled_from([0.0, 1.0])), values)
    filled[is_missing] = data.draw(
        st.lists(st.sampled_from([0.0, 1.0]), min_size=int(is_missing.sum()), max_size=int(is_missing.sum()))
    )
    whole: Interval = rate(filled, clusters)
    assert found.worst_low <= whole.low  # type: ignore[operator]
    assert whole.high <= found.worst_high  # type: ignore[operator]


@pytest.mark.row("STAT-4")
def test_informative_failures_are_within_the_bounds() -> None:
    """Truth 0.82; a tenth of the episodes crash, all of them in scenarios of which 31% succeed."""
    rng = np.random.default_rng(0)
    held = {"left out": 0, "worst case": 0}
    for _ in range(100):
        is_hard = np.repeat(rng.random(200) < 0.2, 2)
        values = (rng.random(400) < np.where(is_hard, 0.31, 0.9475)).astype(np.float64)
        crashed = is_hard & (rng.random(400) < 0.5)
        clusters = Clusters(np.repeat(np.arange(200), 2), 200)
        only = rate(np.where(crashed, np.nan, values), clusters)
        found = with_missing(lambda rows, c=clusters: rate(rows, c), values, crashed, 0.0, (0.0, 1.0))  # type: ignore[misc]
        held["left out"] += only.low <= 0.82 <= only.high  # type: ignore[operator]
        held["worst case"] += found.worst_low <= 0.82 <= found.worst_high  # type: ignore[operator]
    assert held["left out"] < 60
    assert held["worst case"] >= 98
