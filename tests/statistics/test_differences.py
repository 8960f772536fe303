"""Intervals of differences, Holm's correction and ranks, beside published values and simulations with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from roadworthy.statistics import Clusters
from roadworthy.statistics.differences import paired_difference, unpaired_difference
from roadworthy.statistics.multiple import holm, ranks
from roadworthy.statistics.paired import newcombe_paired, one_pair_per_cluster
from roadworthy.statistics.unpaired import unpaired_rate


def alone(n: int) -> Clusters:
    return Clusters(np.arange(n), n)


@pytest.mark.row("STAT-2")
@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Newcombe (1998), Statistics in Medicine 17, 2635-2650, table II: method 10.
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((0, 12, 2, 36), (0.0569, 0.3404)),
    ],
)
def test_newcombes_paired_interval_gives_the_published_limits(
    table: tuple[int, int, int, int], expected: tuple[float, float]
) -> None:
    assert newcombe_paired(*table) == pytest.approx(expected, abs=6e-4)


@pytest.mark.row("STAT-2")
def test_newcombes_paired_interval_is_the_unpaired_one_without_correlation() -> None:
    """A table with both * neither = gains * losses; and exchanging the runs changes the sign alone."""
    rows = np.repeat([1.0, 0.0], [30, 70]), np.repeat([1.0, 0.0], [20, 80])
    apart = unpaired_rate(*rows, (alone(100), alone(100))).interval
    assert newcombe_paired(6, 24, 14, 56) == pytest.approx((apart.low, apart.high))
    low, high = newcombe_paired(20, 12, 2, 16)
    assert newcombe_paired(20, 2, 12, 16) == pytest.approx((-high, -low))


@pytest.mark.row("STAT-2")
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Newcombe (1998), Statistics in Medicine 17, 873-890, table II: method 10.
        ((56, 70), (48, 80), (0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.1705, 0.8090)),
        ((10, 10), (0, 20), (0.6791, 1.0000)),
        ((5, 56), (0, 29), (-0.0381, 0.1926)),
    ],
)
def test_newcombes_unpaired_interval_gives_the_published_limits(
    first: tuple[int, int], second: tuple[int, int], expected: tuple[float, float]
) -> None:
    rows = [np.repeat([1.0, 0.0], [yes, n - yes]) for yes, n in (first, second)]
    found = unpaired_rate(rows[0], rows[1], (alone(first[1]), alone(second[1])))
    assert (found.interval.low, found.interval.high) == pytest.approx(expected, abs=1e-4)
    is_apart = expected[0] > 0.0
    assert found.p is not None
    assert (found.p < 0.05) is is_apart


@pytest.mark.row("STAT-2")
def test_the_p_value_of_unpaired_rates_is_the_level_at_which_the_interval_touches_zero() -> None:
    rows = np.repeat([1.0, 0.0], [30, 70]), np.repeat([1.0, 0.0], [18, 82])
    both = (alone(100), alone(100))
    p = unpaired_rate(*rows, both).p
    assert p is not None
    touching = unpaired_rate(*rows, both, level=1.0 - p).interval
    assert touching.low == pytest.approx(0.0, abs=1e-6)


@pytest.mark.row("STAT-2")
def test_the_paired_bootstrap_is_near_students_t_for_normal_differences() -> None:
    rng = np.random.default_rng(3)
    baseline = rng.normal(size=400)
    candidate = baseline + rng.normal(0.1, 0.5, 400)
    found = paired_difference(candidate, baseline, alone(400))
    expected = stats.ttest_rel(candidate, baseline)
    ends = expected.confidence_interval()
    width = ends.high - ends.low
    assert found.interval.value == pytest.approx((candidate - baseline).mean())
    assert found.interval.low == pytest.approx(ends.low, abs=0.06 * width)
    assert found.interval.high == pytest.approx(ends.high, abs=0.06 * width)
    assert found.p == pytest.approx(expected.pvalue, abs=0.02)


@pytest.mark.row("STAT-2")
def test_the_unpaired_bootstrap_is_near_welchs_t() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(0.3, 1.0, 300), rng.normal(0.0, 3.0, 200)
    found = unpaired_difference(first, second, (alone(300), alone(200)))
    ends = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    width = ends.high - ends.low
    assert found.interval.low == pytest.approx(ends.low, abs=0.06 * width)
    assert found.interval.high == pytest.approx(ends.high, abs=0.06 * width)


@pytest.mark.row("STAT-2")
def test_rows_that_repeat_within_clusters_add_nothing() -> None:
    rng = np.random.default_rng(5)
    baseline, candidate = rng.exponential(size=60), rng.exponential(size=60)
    once = paired_difference(candidate, baseline, alone(60)).interval
    clusters = Clusters(np.repeat(np.arange(60), 7), 60)
    often = paired_difference(np.repeat(candidate, 7), np.repeat(baseline, 7), clusters).interval
    assert (often.low, often.high) == pytest.approx((once.low, once.high))


@pytest.mark.row("STAT-2")
def test_ratios_of_equal_denominators_are_means() -> None:
    rng = np.random.default_rng(6)
    values = rng.poisson(2.0, (2, 50)).astype(np.float64)
    ratios = paired_difference(values[0], values[1], alone(50), (np.ones(50), np.ones(50)))
    means = paired_difference(values[0], values[1], alone(50))
    assert ratios.interval.low == means.interval.low
    assert ratios.p == means.p


def test_too_few_clusters_have_no_interval() -> None:
    found = paired_difference(np.arange(6.0), np.zeros(6), alone(6))
    assert found.interval.low is None
    assert "not enough data: 6 clusters" in str(found.interval.note)


@pytest.mark.row("STAT-2")
def test_few_clusters_of_bounded_values_have_a_wide_interval() -> None:
    """With 4 clusters that all gain everything, the truth may still be far below."""
    clusters = Clusters(np.repeat(np.arange(4), 8), 4)
    found = one_pair_per_cluster(np.ones(32), clusters)
    assert found.high == 1.0
    assert found.low is not None
    assert found.low < 0.4


@pytest.mark.row("STAT-2")
def test_holm_gives_the_published_example() -> None:
    """Holm's step-down by hand: 4 * 0.01, 3 * 0.013 (not below the one before), 2 * 0.03, and 0.04 raised to it."""
    assert holm([0.03, 0.01, 0.04, 0.013]) == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm([0.5, None, 0.9]) == pytest.approx([1.0, None, 1.0], nan_ok=True)


@pytest.mark.row("STAT-2")
def test_ranks_hold_jointly_in_simulations() -> None:
    """True ranks lie within the ranks that the data allow, for all runs together, in at least 93% of 200 draws."""
    truths = np.array([0.5, 0.55, 0.56, 0.8])
    ranks_of_truth = [4, 3, 2, 1]
    rng, held = np.random.default_rng(7), 0
    for _ in range(200):
        shared = rng.normal(0.0, 0.3, 60)
        values = [t + shared + rng.normal(0.0, 0.2, 60) for t in truths]
        found = ranks(values, [alone(60)] * 4, is_paired=True)
        held += all(each.best <= rank <= each.worst for each, rank in zip(found, ranks_of_truth, strict=True))
    assert held >= 0.93 * 200


@pytest.mark.row("STAT-2")
def test_runs_that_differ_clearly_are_ranked_without_doubt() -> None:
    rng = np.random.default_rng(8)
    values = [rng.normal(mean, 0.1, 80) for mean in (1.0, 3.0, 2.0)]
    found = ranks(values, [alone(80)] * 3, is_paired=False, higher_is_better=False)
    assert [(each.rank, each.best, each.worst) for each in found] == [(1, 1, 1), (3, 3, 3), (2, 2, 2)]
    assert found[0].chance_of_best == 1.0


def test_equal_runs_share_every_rank() -> None:
    values = [np.tile([0.0, 1.0], 20)] * 3
    found = ranks(values, [alone(40)] * 3, is_paired=True)
    assert all((each.best, each.worst) == (1, 3) for each in found)
    assert found[0].chance_of_best == pytest.approx(1 / 3)
