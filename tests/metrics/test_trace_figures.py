"""Figures from traces: the values of rows."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from roadworthy.evaluation.runners.driving.rows import are_rows_equal
from roadworthy.metrics.trace_figures import with_trace_figures
from roadworthy.record.episodes import AgentRow, EpisodeResult, EpisodeRow, TrialRow, decode_line, line_values


def result(*trials: TrialRow) -> EpisodeResult:
    agents = sorted({(row.agent, row.attempt) for row in trials})
    row = EpisodeRow("e", "test", "s", 0, 0, 0, 0, 0, 9, 10, 2, "completed", 0.1, outcomes={"score": 1.0})
    return EpisodeResult(row, tuple(AgentRow("e", *agent, 0, 9, {"score": 1.0}) for agent in agents), trials)


def trial(agent: int, number: int, attempt: int = 0) -> TrialRow:
    return TrialRow("e", agent, attempt, number, 0, 9, {"score": 1.0})


def test_trials_get_their_own_value_egos_the_mean_of_their_trials_and_the_episode_the_mean_of_its_egos() -> None:
    given = {(0, 0): 1.0, (0, 1): 0.0, (2, 0): 0.0, (2, 1): math.nan}

    def passed(trace: Any, scenario: Any, agent: int, number: int) -> dict[str, float]:
        assert (trace.name, scenario.name) == ("trace", "scenario")
        return {"passed": given[agent, number]}

    rows = result(*(trial(*key) for key in given))
    after = with_trace_figures(rows, SimpleNamespace(name="trace"), SimpleNamespace(name="scenario"), [passed])  # type: ignore[arg-type]
    assert [row.figures["passed"] for row in after.trials] == [1.0, 0.0, 0.0, None]
    assert [row.figures["passed"] for row in after.agents] == [0.5, 0.0]
    assert after.episode.outcomes == {"score": 1.0, "passed": 0.25}
    assert [row.figures["score"] for row in after.trials] == [1.0] * 4


def test_egos_that_started_again_within_a_trial_get_none() -> None:
    rows = result(trial(0, 0), trial(0, 0, attempt=1), trial(1, 0))
    after = with_trace_figures(rows, None, None, [lambda *_: {"passed": 1.0}])  # type: ignore[arg-type]
    assert [row.figures.get("passed") for row in after.trials] == [None, None, 1.0]
    assert after.episode.outcomes["passed"] == 1.0


def test_rows_with_and_without_a_figure_survive_a_round_trip() -> None:
    """A figure that a row lacks is read back as no data."""
    rows = result(trial(0, 0), trial(0, 0, attempt=1), trial(1, 0))
    after = with_trace_figures(rows, None, None, [lambda *_: {"passed": 1.0}])  # type: ignore[arg-type]
    assert are_rows_equal(decode_line(line_values(after)), after)
