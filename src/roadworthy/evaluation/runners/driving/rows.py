"""Rows of results, from the logs of the simulator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.evaluation.ledger import Factor
from roadworthy.record.episodes import AgentRow, EpisodeResult, TrialRow
from roadworthy.scenario.schema import Scenario
from roadworthy.sim.config import HiddenConfig
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES
from roadworthy.sim.state import HIDDEN_FACTORS


def ego_rows(
    episode_id: str,
    agent: int,
    attempt: int,
    names: Sequence[str],
    figures: NDArray[np.float32],
    trials: NDArray[np.float32],
    track_id: int | None = None,
) -> tuple[AgentRow, list[TrialRow]]:
    """Return the rows of an ego whose own episode has ended.

    names, figures: (F,) see sim.logs.figure_names. trials: (K, len(TRIAL_FIGURES)), NaN for those that did not end.
    track_id: the source's number of the recorded agent that it replaces, see `track_id_of`.
    """
    rows = []
    for number, values in enumerate(trials):
        named = _by_name(TRIAL_FIGURES, values)
        first, last = named["first_step"], named["last_step"]
        if first is not None and last is not None:
            rows.append(TrialRow(episode_id, agent, attempt, number, int(first), int(last), named))
    steps = rows[0].first_step, rows[-1].last_step
    own = AgentRow(episode_id, agent, attempt, *steps, _by_name(names, figures), track_id)
    return own, rows


def track_id_of(scenario: Scenario, source: int) -> int | None:
    """Return the source's number of an agent, given its number in the scenario; None for a spawned one (-1)."""
    return int(scenario.agent_ids[source]) if source >= 0 else None


def mean_figures(rows: Iterable[AgentRow], names: Iterable[str]) -> dict[str, float | None]:
    """Return the mean of each figure over the egos of an episode; None where no ego has it."""
    rows = list(rows)
    means: dict[str, float | None] = {}
    for name in names:
        values = [value for row in rows if (value := row.figures[name]) is not None]
        means[name] = math.fsum(values) / len(values) if values else None
    return means


def are_rows_equal(recorded: EpisodeResult, repeated: EpisodeResult) -> bool:
    """Return whether the rows of egos and trials are equal, in the figures that the recorded ones have."""
    return _agree(recorded.agents, repeated.agents) and _agree(recorded.trials, repeated.trials)


def _agree(recorded: Sequence[AgentRow | TrialRow], repeated: Sequence[AgentRow | TrialRow]) -> bool:
    if len(recorded) != len(repeated):
        return False
    for old, new in zip(recorded, repeated, strict=True):
        if old != replace(new, figures={name: new.figures.get(name) for name in old.figures}):
            return False
    return True


def hidden_factors(hidden: Mapping[str, NDArray[Any]], world: int, settings: HiddenConfig) -> dict[str, Factor]:
    """Return the hidden factors (`DriveEnv.hidden`) of a world's episode that may differ between episodes."""
    varies = {name: getattr(settings, name) != (1.0, 1.0) for name in HIDDEN_FACTORS} | {
        "partner": settings.partners > 1
    }
    return {name: float(values[world]) for name, values in hidden.items() if varies[name]}


def _by_name(names: Iterable[str], values: NDArray[np.float32]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in zip(names, values.tolist(), strict=True)}
