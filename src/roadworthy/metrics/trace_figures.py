"""Figures of an episode that are computed from its trace and its scenario.

Such a function gets the motion of all agents and the scenario, never the simulator or the policy. It runs when an
episode ends, in the process that ran it, and when a run is re-scored, so new figures also apply to old runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from roadworthy.record.episodes import EpisodeResult, Figures
from roadworthy.record.traces import Trace
from roadworthy.scenario.schema import Scenario

# (trace, scenario, the ego's column in the trace, trial) -> figures of one ego in one trial; NaN means no data.
TraceFigures = Callable[[Trace, Scenario, int, int], Mapping[str, float]]


def with_trace_figures(
    result: EpisodeResult, trace: Trace, scenario: Scenario, functions: Sequence[TraceFigures]
) -> EpisodeResult:
    """Add the figures of these functions to a result.

    The row of a trial gets the figures, the row of an ego their mean over its trials, and the outcomes of the episode
    the mean over its egos. Egos that started more than once in a trial (`respawn`) get none, because their trace does
    not separate attempts.
    """
    respawned = {row.agent for row in result.agents if row.attempt > 0}
    by_trial: dict[tuple[int, int], Figures] = {
        (row.agent, row.trial): {
            name: None if math.isnan(value) else float(value)
            for function in functions
            for name, value in function(trace, scenario, row.agent, row.trial).items()
        }
        for row in result.trials
        if row.agent not in respawned
    }
    by_agent = {row.agent: _means(by_trial[key] for key in by_trial if key[0] == row.agent) for row in result.agents}
    return replace(
        result,
        episode=replace(result.episode, outcomes={**result.episode.outcomes, **_means(by_agent.values())}),
        agents=tuple(replace(row, figures={**row.figures, **by_agent[row.agent]}) for row in result.agents),
        trials=tuple(
            replace(row, figures={**row.figures, **by_trial.get((row.agent, row.trial), {})}) for row in result.trials
        ),
    )


def _means(rows: Iterable[Figures]) -> Figures:
    """Return the mean of each figure over the rows that have it; None if no row has it."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).extend(() if value is None else (value,))
    return {name: math.fsum(found) / len(found) if found else None for name, found in values.items()}
