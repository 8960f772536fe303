"""Runs of invented egos, for tests of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from roadworthy.metrics.driving import driving_metrics
from roadworthy.record import AgentRow, EpisodeResult, EpisodeRow, Run, RunWriter, TrialRow

Figures = Mapping[str, float | None]


def episode(
    scenario: str,
    egos: Sequence[Sequence[Figures]],
    replicate: int = 0,
    tags: Sequence[str] = (),
    **changes: Any,
) -> EpisodeResult:
    """Return an episode in which each ego has these figures in each trial; its own are those of the first trial."""
    name = f"{scenario}-r{replicate}"
    values = {"status": "completed", "outcomes": {"failed_spawns": 1.0}, "tags": tuple(tags), **changes}
    trial_count = len(egos[0]) if egos else 0
    row = EpisodeRow(name, "town", scenario, 1, replicate, 0, 0, 0, 9, 10, trial_count, wall_s=1.0, **values)
    return EpisodeResult(
        row,
        tuple(AgentRow(name, a, 0, 0, 9, trials[0]) for a, trials in enumerate(egos)),
        tuple(TrialRow(name, a, 0, k, 0, 9, one) for a, trials in enumerate(egos) for k, one in enumerate(trials)),
    )


def metrics_of(root: Path, results: Sequence[EpisodeResult], owed: Sequence[EpisodeResult] = ()) -> dict[str, Any]:
    """Return the content of metrics.json for a run of these episodes; those in `owed` are still missing."""
    return driving_metrics(run_of(root, results, owed))


def run_of(root: Path, results: Sequence[EpisodeResult], owed: Sequence[EpisodeResult] = ()) -> Run:
    """Return an interrupted run of these episodes."""
    rows = [result.episode for result in (*results, *owed)]
    names = [(row.episode_id, row.scenario_id) for row in rows]
    columns = [pa.array([name[place] for name in names], pa.string()) for place in range(2)]
    ledger = pa.table(columns, names=["episode_id", "scenario_id"])
    with RunWriter.start(root, "town", "random", {"config": {}, "checkpoint": None}, ledger) as writer:
        for result in results:
            writer.append(result)
        return Run(writer.folder)


def by_name(metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return figures by name; all names must differ."""
    names = [figure["name"] for figure in metrics["figures"]]
    assert len(names) == len(set(names))
    return {figure["name"]: figure for figure in metrics["figures"]}
