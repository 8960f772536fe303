"""Intervals over several estimates: independent ones, and ones that share clusters."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from roadworthy.statistics.combined import Estimate, combined_interval, correlations


def estimate(value: float, half: float, contributions: dict[str, float], weight: float = 1.0) -> Estimate:
    return Estimate(weight, value, value - half, value + half, contributions)


def test_independent_estimates_add_up_as_their_variances_do() -> None:
    parts = [estimate(0.4, 0.03, {"a": 1.0}), estimate(0.8, 0.04, {"b": 1.0}, weight=3.0)]
    value, low, high = combined_interval(parts)
    half = sqrt((0.25 * 0.03) ** 2 + (0.75 * 0.04) ** 2)
    assert (value, low, high) == pytest.approx((0.7, 0.7 - half, 0.7 + half))


def test_the_same_estimate_twice_is_no_more_certain_than_once() -> None:
    part = estimate(0.4, 0.03, {"a": 1.0, "b": -1.0})
    assert combined_interval([part, part]) == pytest.approx((0.4, 0.37, 0.43))


@pytest.mark.row("STAT-1")
def test_the_interval_of_two_means_over_shared_maps_is_that_of_their_sum() -> None:
    """Two figures of the same 400 maps: the mean of both is a mean over maps, whose standard error is known."""
    rng = np.random.default_rng(1)
    shared = rng.normal(size=400)
    first, second = shared + rng.normal(size=400), shared + rng.normal(size=400)
    parts = []
    for values in (first, second):
        half = 1.96 * values.std(ddof=1) / 20.0
        named = {f"map-{k}": float(part) for k, part in enumerate((values - values.mean()) / 400)}
        parts.append(estimate(float(values.mean()), float(half), named))
    _, low, high = combined_interval(parts)
    both = (first + second) / 2.0
    assert (high - low) / 2.0 == pytest.approx(1.96 * both.std(ddof=1) / 20.0, rel=1e-3)
    apart = [
        estimate(p.value, p.high - p.value, {f"{k}{n}": v for n, v in p.contributions.items()})
        for k, p in enumerate(parts)
    ]
    assert combined_interval(apart)[2] < high


def test_estimates_without_spread_count_as_equal_where_they_share_clusters() -> None:
    never = {"a": 0.0, "b": 0.0}
    alike = correlations([estimate(1.0, 0.1, never), estimate(1.0, 0.1, never), estimate(1.0, 0.1, {"c": 0.0})])
    assert alike.tolist() == [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_opposite_clusters_do_not_narrow_an_interval() -> None:
    parts = [estimate(0.5, 0.1, {"a": 0.1, "b": -0.1}), estimate(0.5, 0.1, {"a": -0.1, "b": 0.1})]
    assert correlations(parts)[0, 1] == 0.0
