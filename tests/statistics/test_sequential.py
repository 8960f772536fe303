"""Confidence sequences: the capital by hand, the bounds by brute force, and error rates by simulation."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.statistics.sequential import Bounds, ConfidenceSequence, Verdict, bets

Array = NDArray[np.float64]


def after(values: Array | list[float], margin: float, sizes: list[int] | None = None, largest: int = 1) -> Bounds:
    """The state after these clusters."""
    sequence = ConfidenceSequence(margin, largest)
    sequence.add(np.asarray(values, np.float64), sizes or [1] * len(values))
    return sequence.bounds()


def exact_low(totals: Array, sizes: Array, margin: float, largest: int, precision: float = 1e-4) -> float:
    """The largest mean that the capital, as the module's text defines it, excludes together with all below."""
    amounts, shares = bets(margin)
    fractions = np.minimum(amounts, 0.9 / (1.0 - margin)) * (1.0 - margin)
    for mean in np.arange(-0.5, 1.0, precision):
        factors = 1.0 + fractions[:, None] / (1.0 + mean) * (totals - sizes * mean) / largest
        if np.log(factors).sum(axis=1).max() < 600.0 and shares @ np.prod(factors, axis=1) < 20.0:
            return float(mean)
    raise AssertionError("everything is excluded")


def test_one_bet_passes_when_its_product_reaches_twenty() -> None:
    # With a margin of 0.5 there is one bet, 0.9: a pair without a difference multiplies by 1 + 0.9 * 0.5 = 1.45, a lost
    # one by 1 - 0.9 * 0.5 = 0.55. 1.45^8 = 19.5, 1.45^9 = 28.3, 1.45^9 * 0.55 = 15.6, 1.45^10 * 0.55 = 22.6.
    assert bets(0.5)[0].tolist() == [0.9]
    assert after([0.0] * 8, 0.5).verdict is Verdict.UNDECIDED
    assert after([0.0] * 9, 0.5).verdict is Verdict.PASS
    assert after([0.0] * 9 + [-1.0], 0.5).verdict is Verdict.UNDECIDED
    assert after([0.0] * 10 + [-1.0], 0.5).verdict is Verdict.PASS


def test_two_bets_share_the_capital() -> None:
    # Bets 0.6 and 0.9 with shares 1/3 and 2/3: (1.18^k + 2 * 1.27^k) / 3 is 17.8 for k = 13 and 22.3 for k = 14.
    assert after([0.0] * 13, 0.3).verdict is Verdict.UNDECIDED
    assert after([0.0] * 14, 0.3).verdict is Verdict.PASS


def test_losses_become_a_regression() -> None:
    # Against a mean of at least -0.5, a lost pair multiplies by 1 + 0.6 * 0.5 = 1.3: 0.9 is cut to 0.9 / 1.5 = 0.6.
    # 1.3^11 = 17.9, 1.3^12 = 23.3.
    assert after([-1.0] * 11, 0.5).verdict is Verdict.UNDECIDED
    assert after([-1.0] * 12, 0.5).verdict is Verdict.REGRESSION


def test_bounds_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(3)
    values = rng.choice([-1.0, 0.0, 1.0], 300, p=[0.1, 0.75, 0.15])
    found = after(values, 0.05)
    assert found.low == pytest.approx(exact_low(values, np.ones(300), 0.05, 1), abs=2e-4)
    assert -found.high == pytest.approx(mirrored(values, np.ones(300), 0.05, 1), abs=2e-4)
    assert found.low < found.estimate < found.high  # type: ignore[operator]


def mirrored(totals: Array, sizes: Array, margin: float, largest: int) -> float:
    """The lower bound of the negative differences: its bets are relative to a mean of +margin."""
    amounts, shares = bets(margin)
    fractions = np.minimum(amounts, 0.9 / (1.0 + margin)) * (1.0 + margin)
    for mean in np.arange(-0.5, 1.0, 1e-4):
        factors = 1.0 + fractions[:, None] / (1.0 + mean) * (-totals - sizes * mean) / largest
        if np.log(factors).sum(axis=1).max() < 600.0 and shares @ np.prod(factors, axis=1) < 20.0:
            return float(mean)
    raise AssertionError("everything is excluded")


def test_clusters_of_unequal_size_count_by_their_pairs() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 6, 200)
    totals = rng.binomial(sizes, 0.1) - rng.binomial(sizes, 0.1) * 1.0
    totals = np.clip(totals, -sizes, sizes)
    found = after(totals, 0.05, sizes.tolist(), largest=5)
    assert found.estimate == pytest.approx(totals.sum() / sizes.sum())
    assert found.low == pytest.approx(exact_low(totals, sizes, 0.05, 5), abs=3e-4)


def test_rounding_to_the_grid_is_safe_and_small() -> None:
    rng = np.random.default_rng(5)
    for spread in (0.02, 0.1, 0.5):
        values = np.clip(rng.normal(0.01, spread, 500), -1.0, 1.0)
        low = after(values, 0.05).low
        exact = exact_low(values, np.ones(500), 0.05, 1)
        assert exact - 2e-3 < low <= exact + 1e-4


def test_parts_order_and_whole_give_the_same_bounds() -> None:
    rng = np.random.default_rng(6)
    sizes = rng.integers(0, 8, 400)
    totals = rng.uniform(-1.0, 1.0, 400) * sizes
    whole, parts = ConfidenceSequence(0.1, 8), ConfidenceSequence(0.1, 8)
    whole.add(totals, sizes)
    order = rng.permutation(400)
    for part in np.array_split(order, 23):
        parts.add(totals[part], sizes[part])
        parts.bounds()
    first, second = whole.bounds(), parts.bounds()
    assert first.verdict is second.verdict
    assert (first.pairs, first.clusters, first.more) == (second.pairs, second.clusters, second.more)
    assert (first.low, first.high, first.estimate) == pytest.approx((second.low, second.high, second.estimate))


def test_a_pass_means_a_lower_bound_above_minus_the_margin() -> None:
    rng = np.random.default_rng(7)
    seen = set()
    for shift in (-0.2, -0.1, -0.05, 0.0, 0.1):
        for count in (50, 400, 3000):
            found = after(rng.choice([-1.0, 0.0, 1.0], count, p=[0.15 - shift / 2, 0.7, 0.15 + shift / 2]), 0.05)
            assert (found.verdict is Verdict.PASS) == (found.low > -0.05)
            assert (found.verdict is Verdict.REGRESSION) == (found.high < -0.05)
            seen.add(found.verdict)
    assert seen == set(Verdict)


@pytest.mark.row("STAT-3")
@pytest.mark.parametrize(
    ("difference", "wrong"), [(-0.1, Verdict.PASS), (-0.13, Verdict.PASS), (-0.09, Verdict.REGRESSION)]
)
def test_few_streams_are_ever_wrong_however_often_one_looks(difference: float, wrong: Verdict) -> None:
    # Clusters of 1 to 5 pairs; in half of them all pairs are equal, and larger ones are harder.
    rng = np.random.default_rng(8)
    streams, clusters, errors = 200, 300, 0
    for _ in range(streams):
        sizes = rng.integers(1, 6, clusters)
        losses = 0.1 - difference / 2.0 * sizes * 3.0 / 11.0  # E[n] = 3, E[n^2] = 11
        wins = 0.2 - losses
        uniform = rng.random((clusters, 5))
        is_alike = rng.random(clusters) < 0.5
        uniform[is_alike] = uniform[is_alike][:, :1]
        each = (uniform < wins[:, None]) * 1.0 - (uniform >= 1.0 - losses[:, None])
        totals = np.where(np.arange(5) < sizes[:, None], each, 0.0).sum(axis=1)
        sequence = ConfidenceSequence(0.1, 5)
        for look in range(0, clusters, 15):
            sequence.add(totals[look : look + 15], sizes[look : look + 15])
            if sequence.verdict is wrong:
                errors += 1
                break
    assert errors / streams <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / streams)


@pytest.mark.row("STAT-3")
def test_most_streams_of_equal_policies_pass_and_say_when() -> None:
    rng = np.random.default_rng(9)
    stops, predictions = [], []
    for _ in range(50):
        sequence, prediction = ConfidenceSequence(0.05), None
        values = rng.choice([-1.0, 0.0, 1.0], 2000, p=[0.05, 0.9, 0.05])
        for look in range(0, 2000, 50):
            sequence.add(values[look : look + 50], [1] * 50)
            found = sequence.bounds()
            if look == 100 and found.more:
                prediction = look + 50 + found.more
            if found.verdict is Verdict.PASS:
                stops.append(look + 50)
                predictions += [prediction] if prediction else []
                break
    assert len(stops) >= 49
    assert 150 < np.mean(stops) < 600  # log(20) * 2 * 0.1 / 0.05^2 = 240 for whoever knows the best bet
    assert 0.5 < np.median(predictions) / np.mean(stops) < 2.0


def test_what_is_left_is_counted_by_hand() -> None:
    # See the first test: 9 pairs without a difference decide.
    assert after([0.0] * 5, 0.5).more == 4
    assert after([0.0] * 9, 0.5).more == 0
    assert after([-1.0, 0.0] * 40, 0.5).more is None  # the mean is at the margin
    assert after([], 0.5) == Bounds(Verdict.UNDECIDED, None, -1.0, 1.0, 0, 0, None)


def test_unknown_values_count_worst_for_the_lower_and_best_for_the_upper_bound() -> None:
    known, unknown = ConfidenceSequence(0.1), ConfidenceSequence(0.1)
    known.add([0.0] * 400, [1] * 400)
    unknown.add([-1.0] * 40 + [0.0] * 360, [1] * 400, best=np.array([1.0] * 40 + [0.0] * 360))
    assert known.bounds().verdict is Verdict.PASS
    found = unknown.bounds()
    assert found.verdict is Verdict.UNDECIDED
    assert found.low < -0.1
    assert found.high > 0.1


def test_a_look_at_100_000_pairs_takes_less_than_ten_milliseconds() -> None:
    rng = np.random.default_rng(10)
    sequence = ConfidenceSequence(0.02, 5)
    sequence.add(rng.uniform(-1.0, 1.0, 20_000) * 5, [5] * 20_000)
    sequence.bounds()
    taken = []
    for _ in range(10):
        begin = time.perf_counter()
        sequence.add(rng.uniform(-1.0, 1.0, 20) * 5, [5] * 20)
        sequence.bounds()
        taken.append(time.perf_counter() - begin)
    assert min(taken) < 0.010


def test_what_makes_no_sense_is_refused() -> None:
    for margin in (-0.1, 1.0):
        with pytest.raises(UsageError, match="allowed: from 0 to below 1"):
            ConfidenceSequence(margin)
    with pytest.raises(UsageError, match="error probability is 0"):
        ConfidenceSequence(0.1, error=0.0)
    sequence = ConfidenceSequence(0.1, 2)
    with pytest.raises(UsageError, match="at most 2 were announced"):
        sequence.add([0.0], [3])
    with pytest.raises(UsageError, match="divide differences by the range"):
        sequence.add([1.5], [1])
