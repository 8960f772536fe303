"""Few clusters, few rows and few events: published intervals, exact enumeration, and what the notes say."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from roadworthy.statistics import Clusters, mean, rate, ratio
from roadworthy.statistics.clusters import sums
from roadworthy.statistics.intervals import clopper_pearson, effective_sizes, garwood, normal_quantile, wilson


def apart(count: int) -> Clusters:
    return Clusters(np.arange(count), count)


def grouped(count: int, rows: int) -> Clusters:
    return Clusters(np.repeat(np.arange(count), rows), count)


# Newcombe (1998), Statistics in Medicine 17, table I: the score and the exact interval of four rates.
NEWCOMBE = {
    (81, 263): ((0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 148): ((0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20): ((0.0000, 0.1611), (0.0000, 0.1684)),
    (1, 29): ((0.0061, 0.1718), (0.0009, 0.1776)),
}


@pytest.mark.row("STAT-1")
@pytest.mark.parametrize(("counts", "expected"), NEWCOMBE.items())
def test_intervals_of_rates_are_the_published_ones(counts: tuple[int, int], expected: tuple[object, object]) -> None:
    yes, n = counts
    assert wilson(yes / n, n, normal_quantile(0.95)) == pytest.approx(expected[0], abs=5e-5)
    assert clopper_pearson(yes / n, n) == pytest.approx(expected[1], abs=5e-5)


@pytest.mark.parametrize(("events", "expected"), {0: (0.0, 3.69), 1: (0.0253, 5.57), 5: (1.62, 11.67)}.items())
def test_intervals_of_counts_are_those_of_garwood(events: int, expected: tuple[float, float]) -> None:
    """Garwood (1936), Biometrika 28, table 1."""
    assert garwood(events) == pytest.approx(expected, abs=5e-3)


@pytest.mark.row("STAT-1")
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("p", [0.02, 0.2, 0.5])
def test_three_clusters_hold_the_truth_however_alike_their_rows_are(p: float, correlation: float) -> None:
    """Enumerate all totals of three clusters of four rows, with their beta-binomial probabilities."""
    if correlation == 0.0:
        chances = stats.binom.pmf(range(5), 4, p)
    else:
        strength = (1.0 - correlation) / correlation
        chances = stats.betabinom.pmf(range(5), 4, p * strength, (1.0 - p) * strength)
    held = 0.0
    for totals in product(range(5), repeat=3):
        values = np.concatenate([np.arange(4) < total for total in totals]).astype(np.float64)
        found = rate(values, grouped(3, 4))
        is_held = found.low <= p <= found.high  # type: ignore[operator]
        held += np.prod([chances[total] for total in totals]) * is_held
    assert held >= 0.95


def test_few_clusters_count_as_one_row_each() -> None:
    found = rate(np.repeat([1.0, 0.0], [10, 10]), grouped(4, 5))
    exact = stats.binomtest(2, 4).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    share = mean(np.repeat([0.8, 0.9, 1.0], 5), grouped(3, 5), is_share=True)
    assert share.method == found.method == "Clopper-Pearson, one row per cluster"
    wide = mean(np.repeat([8.0, 9.0, 10.0], 5), grouped(3, 5), bounds=(0.0, 10.0))
    assert (wide.low, wide.high) == pytest.approx((10.0 * share.low, 10.0 * share.high))  # type: ignore[operator]


def test_a_failure_of_a_whole_cluster_that_did_not_happen_yet_keeps_the_interval_wide() -> None:
    """Ten single failures of 100 clusters of 8 say little about clusters that fail as a whole."""
    values = np.zeros(800)
    values[::80] = 1.0
    given = sums(values, grouped(100, 8))
    nearer, farther = effective_sizes(given, 0.0125 * 0.9875)
    independent = 800.0
    assert 100.0 <= farther < nearer < independent
    high = rate(values, grouped(100, 8)).high
    # One cluster of a hundred failing as a whole would add 8 of 800 to the rate; 3 are compatible with none seen.
    assert high is not None
    assert high > 0.0125 + 0.02
    assert high > stats.binomtest(10, 800).proportion_ci(method="exact").high


@pytest.mark.row("STAT-1")
def test_no_event_at_all_has_garwoods_upper_end() -> None:
    found = ratio(np.zeros(1000), np.full(1000, 0.1), apart(1000))
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(stats.chi2.ppf(0.975, 2) / 2 / 100.0, rel=0.01)
    # Rows of a cluster count as one: nothing says that they would not all have the event together.
    lumped = ratio(np.zeros(1000), np.full(1000, 0.1), grouped(200, 5))
    assert lumped.high == pytest.approx(5.0 * found.high, rel=0.03)  # type: ignore[operator]


def test_many_independent_events_have_the_interval_of_a_poisson_count() -> None:
    events = np.random.default_rng(4).poisson(0.5, 4000).astype(np.float64)
    found = ratio(events, np.ones(4000), apart(4000))
    low, high = stats.chi2.ppf([0.025, 0.975], [2 * events.sum(), 2 * (events.sum() + 1)]) / 2 / 4000
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.01)


@pytest.mark.row("STAT-1")
def test_a_mean_of_few_episodes_has_an_interval_and_says_what_it_assumes() -> None:
    rows = np.random.default_rng(3).normal(5.0, 2.0, 80)
    for count in (10, 20, 50):
        found = mean(rows[:count], apart(count))
        student = stats.t.interval(0.95, count - 1, rows[:count].mean(), stats.sem(rows[:count]))
        assert found.low <= student[0]  # type: ignore[operator]
        assert found.high >= student[1]  # type: ignore[operator]
        assert found.note == f"assumes that no rare extreme values are missing from its {count} clusters"
    assert mean(rows, apart(80)).note is None
    # The same number of clusters of very different size counts as fewer.
    uneven = Clusters(np.repeat(np.arange(12), [1] * 11 + [60]), 12)
    assert mean(np.arange(71.0), uneven).note == "not enough data: 1.4 clusters, an interval needs 15"


@pytest.mark.parametrize("count", [10, 20, 50])
@pytest.mark.parametrize("kind", ["normal", "exponential"])
def test_intervals_of_small_means_hold(kind: str, count: int) -> None:
    """300 samples: the chance of fewer than this is one in 10,000 where the coverage is 93%."""
    rng = np.random.default_rng([count, len(kind)])
    truth = {"normal": 0.0, "exponential": 1.0}[kind]
    draws = rng.normal(size=(300, count)) if kind == "normal" else rng.exponential(size=(300, count))
    found = [mean(row, apart(count)) for row in draws]
    held = sum(each.low <= truth <= each.high for each in found if each.low is not None and each.high is not None)
    assert held >= stats.binom.ppf(1e-4, 300, 0.93)


def test_units_that_count_once_lie_in_clusters_that_they_share() -> None:
    """Two scenarios on each of twenty maps, one of them with many rows."""
    scenarios = Clusters(np.repeat(np.arange(40), np.tile([9, 1], 20)), 40)
    maps = Clusters(scenarios.codes // 2, 20)
    values = (np.random.default_rng(0).random(200) < 0.6).astype(np.float64)
    means = np.bincount(scenarios.codes, values) / np.bincount(scenarios.codes)
    found = rate(values, maps, each_once=scenarios)
    assert found.value == pytest.approx(means.mean())
    assert found.clusters == 20
    # Each map has the mean of its two scenarios.
    by_map = mean(means.reshape(20, 2).mean(axis=1), apart(20), is_share=True)
    assert mean(values, maps, is_share=True, each_once=scenarios).value == pytest.approx(by_map.value)


@pytest.mark.row("STAT-1")
def test_scenarios_on_maps_leave_less_room_than_rows_that_may_all_fail_together() -> None:
    """Twenty maps with five scenarios of eight egos: no failure of 800 is not one of 20, and not one of 100 either."""
    maps = grouped(20, 40)
    scenarios = Clusters(np.arange(800) // 8, 100)
    never = np.zeros(800)
    high = {
        name: rate(never, clusters, units=units).high
        for name, clusters, units in (
            ("maps", maps, None),
            ("scenarios on maps", maps, scenarios),
            ("scenarios", scenarios, None),
        )
    }
    assert high["scenarios"] < high["scenarios on maps"] < high["maps"]  # type: ignore[operator]
    assert high["scenarios on maps"] > stats.binomtest(0, 100).proportion_ci(method="exact").high
    assert high["maps"] > stats.binomtest(0, 20).proportion_ci(method="wilson").high
    # Where the sample shows how alike the scenarios of a map are, they count as what they are.
    whole_maps = np.repeat(np.arange(20) % 2.0, 40)
    one, other = rate(whole_maps, maps), rate(whole_maps, maps, units=scenarios)
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=0.01)
