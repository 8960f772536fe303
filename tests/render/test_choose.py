"""The episodes that get videos are those that were asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.record import AgentRow, EpisodeResult, EpisodeRow
from roadworthy.render.choose import choose_episodes
from roadworthy.render.config import RenderConfig
from roadworthy.sim.state import EGO, EVENT_COLLISION, EVENT_RED_LIGHT, EVENT_STOP_SIGN, REPLAYED


@dataclass(frozen=True)
class Motion:
    """As much of a trace as choosing looks at."""

    events: np.ndarray
    active: np.ndarray
    roles: np.ndarray


def result(id, score, status="completed", scenario=None, agents=()):
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
        outcomes={"score": score},
    )
    rows = tuple(AgentRow(id, number, 0, 0, 9, {"score": figure}) for number, figure in enumerate(agents))
    return EpisodeResult(row, rows)


def motion(infraction=None, bit=EVENT_COLLISION, agent=0):
    events = np.zeros((30, 3), np.uint16)
    if infraction is not None:
        events[infraction, agent] = bit
    return Motion(events, np.ones((30, 3), bool), np.array([EGO, EGO, REPLAYED]))


def no_trace(id):
    raise AssertionError(f"the trace of {id} was read, and need not be")


def chosen(results, choose, trace=no_trace, epoch=0, **settings):
    config = RenderConfig(max_steps=9, choose=choose, **({"episodes": 2} | settings))
    return choose_episodes(results, config, epoch, trace)


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
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.none() | st.integers(1, 29)), max_size=12),
    st.integers(1, 12),
)
def test_the_worst_really_are_the_worst(episodes, number):
    results = [result(f"e{k:02}", score) for k, (score, _) in enumerate(episodes)]
    traces = {f"e{k:02}": motion(at) for k, (_, at) in enumerate(episodes)}
    rank = sorted((score, 99 if at is None else at, f"e{k:02}") for k, (score, at) in enumerate(episodes))
    assert chosen(results, "worst", traces.__getitem__, episodes=number) == [id for *_, id in rank[:number]]


def test_infractions_of_others_and_what_is_no_infraction_do_not_count():
    traces = {
        "a": motion(3, agent=2),  # somebody who was replayed
        "b": motion(4, EVENT_STOP_SIGN),  # is told, but is not among an episode's infractions
        "c": motion(20, EVENT_RED_LIGHT, agent=1),
    }
    results = [result(id, 0.0) for id in traces]
    assert chosen(results, "worst", traces.__getitem__, episodes=1) == ["c"]


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
