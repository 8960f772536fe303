"""Likelihoods against histograms and shares counted by NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.errors import UsageError
from roadworthy.metrics.realism.config import (
    CHALLENGE_2024,
    CHALLENGE_2025,
    SCENARIO_GENERATION_2025,
    Event,
    Feature,
    Histogram,
    RealismConfig,
)
from roadworthy.metrics.realism.likelihood import bin_edges, event_likelihood, histogram_likelihood

BINS = Histogram(-5.0, 40.0, 10)


def test_the_likelihood_is_that_of_numpys_histogram() -> None:
    rng = np.random.default_rng(3)
    log = rng.normal(10, 20, (4, 50)).astype(np.float32)
    simulated = rng.normal(12, 25, (8, 4, 50)).astype(np.float32)
    counted = rng.random((4, 50)) < 0.7
    logarithms = []
    for agent in range(4):
        samples = np.clip(simulated[:, agent].astype(np.float64), -5, 40)
        counts, edges = np.histogram(samples, BINS.bins, (-5, 40))
        probability = (counts + 0.1) / (counts + 0.1).sum()
        values = np.clip(log[agent, counted[agent]].astype(np.float64), -5, 40)
        places = np.minimum(np.searchsorted(edges, values, side="right") - 1, BINS.bins - 1)
        logarithms += list(np.log(probability[places]))
    found = histogram_likelihood(BINS, log, simulated, counted)
    assert found == pytest.approx(np.exp(np.mean(logarithms)), rel=1e-12)


@pytest.mark.parametrize(
    ("value", "place"), [(-np.inf, 0), (-5.0, 0), (-0.5, 1), (39.9, 9), (40.0, 9), (1e10, 9), (np.nan, 9)]
)
def test_bins_are_half_open_and_the_last_takes_the_top_edge_and_nan(value: float, place: int) -> None:
    """All samples are the value, so the recorded value of its bin has nearly all the probability."""
    inside = (bin_edges(BINS)[:-1] + np.float32(1.0))[None, place : place + 1]
    simulated = np.full((1, 1, 20), value, np.float32)
    found = histogram_likelihood(BINS, inside, simulated, np.ones((1, 1), np.bool_))
    assert found == pytest.approx(20.1 / 21.0)


def test_edges_are_those_of_float32() -> None:
    for part in CHALLENGE_2025.parts.values():
        if isinstance(part, Feature):
            histogram = part.histogram
            exact = np.linspace(histogram.low, histogram.high, histogram.bins + 1)
            edges = bin_edges(histogram)
            assert edges.dtype == np.float32
            assert edges == pytest.approx(exact, rel=1e-6, abs=1e-6)
            assert (edges[0], edges[-1]) == (np.float32(histogram.low), np.float32(histogram.high))


def test_without_valid_values_there_is_no_likelihood() -> None:
    values = np.zeros((2, 3), np.float32)
    assert np.isnan(histogram_likelihood(BINS, values, values[None], np.zeros((2, 3), np.bool_)))


def test_an_event_is_as_likely_as_in_the_rollouts() -> None:
    rng = np.random.default_rng(5)
    log, simulated = rng.random(6) < 0.5, rng.random((32, 6)) < 0.3
    share = (np.where(log, simulated.sum(axis=0), (~simulated).sum(axis=0)) + 0.001) / 32.002
    assert event_likelihood(Event(0.25), log, simulated) == pytest.approx(np.prod(share) ** (1 / 6))


@pytest.mark.row("REAL-1")
def test_pooled_estimates_count_all_agents_together() -> None:
    rng = np.random.default_rng(6)
    log, simulated = rng.normal(10, 20, (3, 20)).astype(np.float32), rng.normal(12, 25, (4, 3, 20)).astype(np.float32)
    everywhere = np.ones((3, 20), np.bool_)
    as_one = histogram_likelihood(BINS, log.reshape(1, -1), simulated.reshape(4, 1, -1), everywhere.reshape(1, -1))
    assert histogram_likelihood(BINS, log, simulated, everywhere, pooled=True) == pytest.approx(as_one)
    assert histogram_likelihood(BINS, log, simulated, everywhere) != pytest.approx(as_one)
    happens, happen = rng.random(3) < 0.5, rng.random((8, 3)) < 0.3
    share = (np.where(happens, happen.sum(), (~happen).sum()) + 0.001) / 24.002
    assert event_likelihood(Event(0.25, pooled=True), happens, happen) == pytest.approx(np.prod(share) ** (1 / 3))


@pytest.mark.row("REAL-1")
def test_scenario_generation_pools_all_estimates_but_that_of_red_lights() -> None:
    pooled = {name for name, part in SCENARIO_GENERATION_2025.parts.items() if part.pooled}
    assert pooled == set(SCENARIO_GENERATION_2025.parts) - {"traffic_light_violation"}
    assert not any(part.pooled for part in CHALLENGE_2025.parts.values())
    weights = {name: part.weight for name, part in SCENARIO_GENERATION_2025.parts.items()}
    assert weights == {name: part.weight for name, part in CHALLENGE_2025.parts.items()}


def test_the_years_differ_in_the_weights_of_two_features() -> None:
    weights = [{name: part.weight for name, part in year.parts.items()} for year in (CHALLENGE_2025, CHALLENGE_2024)]
    differing = {
        name: (weights[0][name], weights[1][name]) for name in weights[0] if weights[0][name] != weights[1][name]
    }
    assert differing == {"distance_to_road_edge": (0.05, 0.10), "traffic_light_violation": (0.05, 0.0)}


def test_weights_that_do_not_add_up_and_bins_that_hold_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match=r"add up to 1.75, expected 1"):
        RealismConfig(offroad_indication=Event(1.0))
    with pytest.raises(UsageError, match="low < high"):
        Histogram(1.0, 1.0, 10)
