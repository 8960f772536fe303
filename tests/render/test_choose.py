"""The choice of the episodes that get videos."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.record import AgentRow, EpisodeResult, EpisodeRow
from roadworthy.render.choose import choose_episodes
from roadworthy.render.config import RenderConfig


def result(id, score, status="completed", scenario=None, agents=(), **outcomes):
    row = EpisodeRow(
        episode_id=id,
        evaluator="towns",
        scenario_id=scenario or id,
        seed=0,
        replicate=0,
        world=0,
        slot=0,
        first_step=0,
        last_step=9,
        steps=10,
        trials=1,
        status=status,
        wall_s=0.1,
        outcomes={"score": score, **outcomes},
    )
    rows = tuple(AgentRow(id, number, 0, 0, 9, {"score": figure}) for number, figure in enumerate(agents))
    return EpisodeResult(row, rows)


def chosen(results, choose, epoch=0, **settings):
    config = RenderConfig(max_steps=9, choose=choose, **({"episodes": 2} | settings))
    return choose_episodes(results, config, epoch)


@pytest.mark.row("VID-3")
def test_the_first_are_the_first_of_the_ledger_that_completed():
    results = [result("c", 1.0), result("x", None, "failed"), result("a", 0.0), result("b", 0.5)]
    assert chosen(results, "first") == ["c", "a"]


@pytest.mark.row("VID-3")
def test_ids_are_taken_as_they_are():
    assert chosen([], ("b", "a"), episodes=None) == ["b", "a"]


@pytest.mark.row("VID-3")
def test_a_random_sample_differs_from_epoch_to_epoch_and_not_from_time_to_time():
    results = [result(f"e{number}", 1.0) for number in range(40)]
    samples = [tuple(chosen(results, "random", epoch=epoch)) for epoch in range(30)]
    assert samples == [tuple(chosen(results[::-1], "random", epoch=epoch)) for epoch in range(30)]
    assert len(set(samples)) > 25
    assert tuple(chosen(results, "random", seed=1)) != samples[0]
    counts = np.bincount([int(id[1:]) for epoch in range(2000) for id in chosen(results, "random", epoch=epoch)])
    assert counts.min() > 60  # of 100 each on average, give or take 10
    assert counts.max() < 140


@pytest.mark.row("VID-3")
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(0, 3), st.sampled_from([0.0, 0.5])), max_size=12),
    st.integers(1, 12),
)
def test_the_worst_really_are_the_worst(episodes, number):
    results = [
        result(f"e{k:02}", score, infractions=float(infractions), goal_rate=goals)
        for k, (score, infractions, goals) in enumerate(episodes)
    ]
    rank = sorted((score, -bad, goals, f"e{k:02}") for k, (score, bad, goals) in enumerate(episodes))
    assert chosen(results, "worst", episodes=number) == [id for *_, id in rank[:number]]


def test_an_episode_without_a_score_is_not_among_the_worst():
    assert chosen([result("a", None), result("b", 0.5)], "worst") == ["b"]


@pytest.mark.row("VID-3")
def test_failed_are_those_in_which_any_ego_failed():
    results = [
        result("a", 1.0, agents=(1.0, 1.0)),
        result("b", 0.5, agents=(1.0, 0.0)),
        result("c", 0.0, agents=(0.0, 0.0)),
        result("d", 1.0),
    ]
    assert chosen(results, "failed") == ["c", "b"]
    assert chosen(results[:1], "failed") == []


@pytest.mark.row("VID-3")
def test_scenarios_get_one_episode_each():
    results = [result("a-r0", 0.2, scenario="a"), result("a-r1", 0.1, scenario="a"), result("b-r0", 0.9, scenario="b")]
    assert chosen(results, "first", episodes=None, scenarios=2) == ["a-r0", "b-r0"]
    assert chosen(results, "worst", episodes=None, scenarios=2) == ["a-r1", "b-r0"]
    assert chosen(results, "worst") == ["a-r1", "a-r0"]
