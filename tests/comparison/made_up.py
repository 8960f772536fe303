"""Invented runs of any environment, with a ledger that says scenario, seed, replicate and factors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.record import EpisodeResult, EpisodeRow, Run, RunWriter

LEDGER = pa.schema(
    [
        ("episode_id", pa.string()),
        ("scenario", pa.int32()),
        ("scenario_id", pa.string()),
        ("seed", pa.uint64()),
        ("replicate", pa.int32()),
        ("factors", pa.string()),
    ]
)


@dataclass(frozen=True)
class Made:
    """A planned episode with its outcome: a dict of outcomes, "failed", or None if it never ran."""

    scenario: str
    outcome: Mapping[str, float] | str | None
    seed: int = 7
    replicate: int = 0
    factors: Mapping[str, float | str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    id: str = ""

    @property
    def name(self) -> str:
        return self.id or f"{self.scenario}-r{self.replicate}"


def made_run(
    root: Path, episodes: Sequence[Made], policy: str = "best", evaluator: str = "grasp", clusters: bool = False
) -> Run:
    """Return a run of invented episodes; it is sealed if all of them ended, else interrupted."""
    rows = [
        {
            "episode_id": made.name,
            "scenario": place,
            "scenario_id": made.scenario,
            "seed": made.seed,
            "replicate": made.replicate,
            "factors": json.dumps(dict(made.factors), sort_keys=True),
        }
        for place, made in enumerate(episodes)
    ]
    ledger = pa.Table.from_pylist(rows, schema=LEDGER)
    if clusters:  # the part of the scenario's name before the dash
        names = pa.array([made.scenario.partition("-")[0] for made in episodes])
        ledger = ledger.append_column("cluster", names)
    header = {"config": {}, "checkpoint": None, "job": "grasp"}
    with RunWriter.start(root, evaluator, policy, header, ledger) as writer:
        for made in episodes:
            if made.outcome is not None:
                writer.append(EpisodeResult(_row(made, evaluator)))
        if all(made.outcome is not None for made in episodes):
            writer.seal(outcome_metrics)
    return Run(writer.folder)


def _row(made: Made, evaluator: str) -> EpisodeRow:
    is_failed = isinstance(made.outcome, str)
    return EpisodeRow(
        made.name,
        evaluator,
        made.scenario,
        made.seed,
        made.replicate,
        world=0,
        slot=0,
        first_step=0,
        last_step=9,
        steps=10,
        trials=1,
        status="failed" if is_failed else "completed",
        wall_s=1.0,
        error="it fell over" if is_failed else None,
        tags=tuple(made.tags),
        factors=dict(made.factors),
        outcomes={} if is_failed else dict(made.outcome or {}),  # type: ignore[call-overload]
    )
