"""Intervals: equal to known results, with the right coverage elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.coverage import DOCUMENT, measure
from benchmarks.coverage_cases import Case, cases
from roadworthy.errors import UsageError
from roadworthy.statistics import Clusters, mean, paired_mean, paired_rate, rate, ratio
from roadworthy.statistics.clusters import sums
from roadworthy.statistics.paired import tango


def apart(count: int) -> Clusters:
    """Return clusters of one row each."""
    return Clusters(np.arange(count), count)


def grouped(scenarios: int, rows: int) -> Clusters:
    return Clusters(np.repeat(np.arange(scenarios), rows), scenarios)


@pytest.mark.row("STAT-1")
@given(n=st.integers(1, 200), data=st.data())
def test_a_rate_with_one_row_per_scenario_has_wilsons_interval(n: int, data: st.DataObject) -> None:
    yes = data.draw(st.integers(0, n))
    found = rate(np.repeat([1.0, 0.0], [yes, n - yes]), apart(n))
    expected = stats.binomtest(yes, n).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (found.n, found.clusters, found.level, found.method, found.note) == (n, n, 0.95, "Wilson", None)


def test_rows_that_only_repeat_their_scenario_tell_no_more_than_one_row_each() -> None:
    once = np.repeat([1.0, 0.0], [60, 140])
    few, many = rate(once, apart(200)), rate(np.repeat(once, 5), grouped(200, 5))
    assert (many.n, many.clusters) == (1000, 200)
    # Student's quantile in place of the normal one is all that is between them.
    assert many.high - many.low == pytest.approx(few.high - few.low, rel=0.02)  # type: ignore[operator]


def test_rows_that_have_nothing_in_common_tell_almost_as_much_as_scenarios() -> None:
    rows = (np.random.default_rng(0).random(5000) < 0.3).astype(np.float64)
    one, other = rate(rows, apart(5000)), rate(rows, grouped(1000, 5))
    assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.05)  # type: ignore[operator]


@pytest.mark.row("STAT-1")
@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_a_rate_that_never_varied_still_has_an_interval(truth: float) -> None:
    found = rate(np.full(100, truth), grouped(20, 5))
    expected = stats.binomtest(int(20 * truth), 20).proportion_ci(method="wilson")
    assert found.value == truth
    # As wide as twenty scenarios are worth, or wider: nothing says that replicates are worth more.
    assert found.high - found.low >= expected.high - expected.low  # type: ignore[operator]
    assert truth in (found.low, found.high)


@pytest.mark.row("STAT-1")
def test_no_data_give_no_figure_and_few_data_give_no_interval() -> None:
    nothing = rate(np.full(3, np.nan), apart(3))
    assert (nothing.value, nothing.low, nothing.n, nothing.note) == (None, None, 0, "no data")
    alone = rate(np.tile([1.0, 0.0], 10), grouped(1, 20))
    assert (alone.value, alone.low, alone.level, alone.method) == (0.5, None, None, None)
    assert alone.note == "not enough data: 1 cluster with 20 rows, an interval needs 2"
    assert mean(np.arange(9.0), apart(9)).note == "not enough data: 9 clusters, an interval needs 10"
    assert mean(np.ones(90), apart(90)).note == "not enough data: all clusters are equal"
    assert ratio(np.ones(2), np.ones(2), apart(2)).note == "not enough data: 2 clusters, an interval needs 3"
    assert ratio(np.zeros(40), np.zeros(40), apart(40)).value is None


def test_a_scenario_that_holds_nearly_all_failures_says_little_about_the_others() -> None:
    """Twelve failures of 500 rows: one in each of twelve scenarios, or eleven of them in one scenario of many rows."""
    counts = np.where(np.arange(100) == 0, 104, 4)
    spread, lump = np.zeros(500), np.zeros(500)
    spread[104 + 4 * np.arange(12)] = 1.0
    lump[[*range(11), 104]] = 1.0
    clusters = Clusters(np.repeat(np.arange(100), counts), 100)
    one, other = rate(spread, clusters), rate(lump, clusters)
    assert one.value == other.value
    assert other.high > 1.5 * one.high  # type: ignore[operator]


def test_rows_without_data_are_left_out() -> None:
    values = np.where(np.arange(100) % 2 == 0, np.nan, np.arange(100) % 3 == 0)
    known = ~np.isnan(values)
    assert rate(values, apart(100)) == rate(values[known], apart(int(known.sum())))


def test_a_mean_has_the_interval_of_students_t_where_rows_are_normal() -> None:
    rows = np.random.default_rng(3).normal(5.0, 2.0, 400)
    found = mean(rows, apart(400))
    low, high = stats.t.interval(0.95, 399, rows.mean(), stats.sem(rows))
    assert found.value == pytest.approx(rows.mean())
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.01)
    assert found.method == "bootstrap-t"


def test_the_interval_of_a_skewed_mean_reaches_further_to_the_side_of_its_tail() -> None:
    rows = np.random.default_rng(3).exponential(1.0, 90)
    found = mean(rows, apart(90))
    assert found.high - found.value > 1.1 * (found.value - found.low)  # type: ignore[operator]


def test_shares_have_an_interval_even_when_all_or_nearly_all_are_1() -> None:
    always = mean(np.ones(100), apart(100), is_share=True)
    assert always.low == pytest.approx(stats.binomtest(100, 100).proportion_ci(method="wilson").low)
    # Of unbounded values hardly any of which differs, nothing can be said; shares can't be below 0.
    rare = np.append(np.ones(89), 0.5)
    assert mean(rare, apart(90)).note == "not enough data: too few clusters differ from the others"
    assert mean(rare, apart(90), is_share=True).method == "Clopper-Pearson, one row per cluster"


def test_a_ratio_is_a_sum_over_a_sum() -> None:
    events, km = np.tile([0.0, 1.0, 3.0], 30), np.tile([1.0, 2.0, 0.5], 30)
    found = ratio(events, km, apart(90))
    assert found.value == pytest.approx(4.0 / 3.5)
    assert found.low < found.value < found.high  # type: ignore[operator]


def test_counting_each_scenario_once_weighs_a_scenario_with_many_rows_like_one_with_few() -> None:
    clusters = Clusters(np.repeat(np.arange(40), [10] * 20 + [1] * 20), 40)
    rows = np.repeat([1.0, 0.0], [200, 20])
    assert rate(rows, clusters).value == pytest.approx(200 / 220)
    assert rate(rows, clusters, each_once=True).value == pytest.approx(0.5)
    assert mean(rows, clusters, each_once=True).value == pytest.approx(0.5)
    equal = grouped(40, 3)
    values = (np.random.default_rng(0).random(120) < 0.4).astype(np.float64)
    one, other = rate(values, equal), rate(values, equal, each_once=True)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_has_no_influence(random: object) -> None:
    names = [f"town-{number % 90}" for number in range(180)]
    rng = np.random.default_rng(5)
    values, yes = rng.normal(size=180), (rng.random(180) < 0.3).astype(np.float64)
    order = list(range(180))
    random.shuffle(order)  # type: ignore[attr-defined]
    before, after = Clusters.of(names), Clusters.of([names[k] for k in order])
    for estimate, rows in ((mean, values), (rate, yes)):
        one, other = estimate(rows, before), estimate(rows[order], after)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)


def test_intervals_are_the_same_every_time() -> None:
    rows = np.random.default_rng(3).exponential(1.0, 90)
    assert mean(rows, apart(90)) == mean(rows, apart(90))


def test_draws_are_summed_the_same_in_however_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).exponential(1.0, 90)
    found = []
    for alone in (1, 1000, 1 << 40):
        monkeypatch.setattr("roadworthy.statistics.bootstrap._ALONE", alone)
        interval = mean(rows, apart(90))
        found.append((interval.low, interval.high))
    assert found[1:] == [pytest.approx(found[0], rel=1e-9)] * 2


@given(
    gains=st.integers(0, 40),
    losses=st.integers(0, 40),
    others=st.integers(1, 40),
)
def test_tangos_interval_holds_the_estimate_and_mirrors_when_pairs_are_swapped(
    gains: int, losses: int, others: int
) -> None:
    n = gains + losses + others
    low, high = tango(gains, losses, n, 1.96)
    assert -1.0 <= low <= (gains - losses) / n <= high <= 1.0
    assert tango(losses, gains, n, 1.96) == pytest.approx((-high, -low), abs=1e-6)


def test_tangos_interval_is_where_the_score_test_ends() -> None:
    gains, losses, n, delta_grid = 12.0, 3.0, 60.0, np.linspace(-0.99, 0.99, 200_001)
    # The likeliest rate of losses given a difference, from the formula of Tango (1998), on a grid.
    b = (2 * n - gains + losses) * delta_grid - gains - losses
    q = (np.sqrt(b**2 + 8 * n * losses * delta_grid * (1 - delta_grid)) - b) / (4 * n)
    z = (gains - losses - n * delta_grid) / np.sqrt(n * (2 * q + delta_grid * (1 - delta_grid)))
    inside = delta_grid[np.abs(z) <= 1.96]
    assert tango(gains, losses, n, 1.96) == pytest.approx((inside[0], inside[-1]), abs=1e-4)


def test_pairs_give_narrower_intervals_than_two_rates() -> None:
    rng = np.random.default_rng(0)
    before = (rng.random(300) < 0.5).astype(np.float64)
    after = np.where(rng.random(300) < 0.1, 1.0, before)
    paired = paired_rate(after, before, apart(300))
    one, other = rate(after, apart(300)), rate(before, apart(300))
    assert paired.value == pytest.approx(after.mean() - before.mean())
    assert paired.low > 0.0  # type: ignore[operator]
    assert one.low < other.high  # type: ignore[operator]
    assert paired_mean(after, before, apart(300)).value == pytest.approx(paired.value)


def test_invalid_input_is_refused() -> None:
    with pytest.raises(UsageError, match="a rate needs rows that are 0 or 1"):
        rate(np.array([0.5]), apart(1))
    with pytest.raises(UsageError, match="paired rates need rows that are 0 or 1"):
        paired_rate(np.array([0.5]), np.array([0.0]), apart(1))
    with pytest.raises(UsageError, match="level of an interval is 95; allowed: above 0 and below 1"):
        rate(np.array([1.0]), apart(1), level=95)
    with pytest.raises(UsageError, match="expected one each"):
        sums(np.zeros(3), apart(2))


QUICK = [case for case in cases() if case.clusters in (20, 24, 100) and case.rows in (1, 5)]


@pytest.mark.row("STAT-1")
@pytest.mark.parametrize("table", ["rates", "means", "ratios", "paired rates", "shared maps", "roll-ups"])
def test_intervals_hold_their_level(table: str) -> None:
    """With so few repetitions only a gross failure is told from chance; docs/statistics.md has the real measurement."""
    held = {"by map", "clustered jointly"} if table in ("shared maps", "roll-ups") else None
    chosen: list[Case] = [case for case in QUICK if case.table == table and (held is None or case.column in held)][::4]
    for case in chosen:
        found = measure(case, 200)
        if found.covered is not None:
            # 93% is the least that is promised; the chance of fewer than this is one in 10,000.
            assert found.covered >= stats.binom.ppf(1e-4, 200, 0.93) / 200, case.name


def test_the_document_holds_a_measurement_of_every_case() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for case in cases():
        part = text.partition(f"<!-- coverage of {case.table} -->")[2].partition("<!-- end -->")[0]
        assert f"| {case.what} | {case.clusters:,} | {case.size} |" in part, case.name
