"""The episodes of a log or a run as arrays for checks, in the order in which they finished."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.metrics.headlines import HEADLINES
from roadworthy.plugins import nearest
from roadworthy.record.journal import Journal
from roadworthy.record.readers.log import Role
from roadworthy.record.run import JOURNAL, Run
from roadworthy.results.scan import Scan

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Episodes:
    """n episodes in the order in which they finished, as far as the source knows it."""

    name: str  # of the evaluation and the policy
    outcome: str  # the name of what is estimated
    value: Array  # (n,) 0 to 1, or any number; NaN: no data
    length: Array  # (n,) NaN: not recorded
    length_unit: str  # steps or s; "" without lengths
    environment: Codes  # (n,) -1: not recorded
    seed: Array  # (n,) NaN: none
    key: Codes  # (n,) equal for episodes with the same scenario, seed and factors
    row: Codes  # (n,) equal for rows that are the same in everything but the time
    has_crashed: NDArray[np.bool_]
    has_order: bool  # whether the order in which they finished was recorded
    has_plan: bool  # whether the number of episodes of each scenario was fixed before the first one started
    planned: int  # episodes, with those that never ran
    cluster: Codes | None = None  # (n,) equal for episodes that share a cluster of the run; None: those with equal keys
    unit: Codes | None = None  # (n,) equal for episodes of one scenario, where scenarios share clusters

    def __len__(self) -> int:
        return len(self.value)

    @property
    def is_binary(self) -> bool:
        """Whether all values are 0 or 1."""
        known = self.value[~np.isnan(self.value)]
        return bool(np.isin(known, (0.0, 1.0)).all())

    def where(self, rows: NDArray[np.bool_]) -> Episodes:
        """Return some of the episodes."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        parts: dict[str, Any] = {name: None if column is None else column[rows] for name, column in columns.items()}
        return Episodes(
            name=self.name,
            outcome=self.outcome,
            length_unit=self.length_unit,
            has_order=self.has_order,
            has_plan=self.has_plan,
            planned=int(rows.sum()),
            **parts,
        )


_COLUMNS = ("value", "length", "environment", "seed", "key", "row", "has_crashed", "cluster", "unit")


def episodes_of_scan(scan: Scan) -> list[Episodes]:
    """Return the episodes of each job and policy of a log."""
    if scan.mapping.name(Role.SUCCESS) is None:
        raise UsageError(f"{scan.mapping.log.path}: has no column with the role success, so there is nothing to check")
    found = []
    order = np.argsort(scan.finish_rank, kind="stable")
    planned = len(scan.mapping.log.planned) if len(scan.runs) == 1 else 0
    for number, names in enumerate(scan.runs):
        rows = order[scan.run[order] == number]
        found.append(
            Episodes(
                name=" ".join(filter(None, names)) or scan.mapping.log.path.stem,
                outcome=scan.success_name,
                value=scan.success[rows],
                length=scan.length[rows],
                length_unit=scan.mapping.length_unit,
                environment=scan.environment[rows],
                seed=scan.seed[rows],
                key=scan.key[rows],
                row=scan.row[rows],
                has_crashed=scan.has_crashed[rows],
                # A log that is written while episodes run has them in the order in which they finish.
                has_order=bool(~np.isnan(scan.order[rows]).any()) or scan.mapping.log.format in _IN_ORDER,
                has_plan=scan.mapping.log.has_plan,
                planned=max(planned, len(rows)),
            )
        )
    return found


_IN_ORDER = ("arena", "rows", "episode_summary")


def episodes_of_run(run: Run, outcome: str | None = None) -> Episodes:
    """Return the episodes of a run folder; the outcome is success, or the first of its headline figures."""
    names = [name.removeprefix("outcomes.") for name in run.column_names("episodes") if name.startswith("outcomes.")]
    if outcome is None:
        outcome = next((name for name in ("success", "score", *HEADLINES) if name in names), None)
        if outcome is None:
            raise UsageError(f"{run.folder}: has none of the usual outcomes; name one of {', '.join(names) or 'none'}")
    elif outcome not in names:
        raise UsageError(f"{run.folder}: has no outcome {outcome!r}; {nearest(outcome, names)}")
    factors = [name for name in run.column_names("episodes") if name.startswith("factors.")]
    base = ["episode_id", "scenario_id", "seed", "steps", "wall_s", "world", "status", "more"]
    table = run.episodes([*base, f"outcomes.{outcome}", *factors])
    columns = {name: table[name].to_pylist() for name in table.column_names}
    count = table.num_rows
    more = [json.loads(text) if text else {} for text in columns["more"]]
    ranks = [row.get("finish_rank") for row in more]
    if any(rank is None for rank in ranks):
        places = {id: place for place, id in enumerate(Journal(run.folder / JOURNAL).ids_in_order())}
        ranks = [places.get(id, count) for id in columns["episode_id"]]
    order = np.argsort(np.array(ranks, np.int64), kind="stable")
    source = run.header.get("import")
    source = source if isinstance(source, dict) else {}
    has_environments = not source or any("env" in row for row in more)
    unit = source.get("length_unit") if source else "steps"
    length = np.array(columns["wall_s" if unit == "s" else "steps"], np.float64)
    seeds = np.array(columns["seed"], np.float64)
    crashed = np.array([status != "completed" for status in columns["status"]], np.bool_)
    value = np.array(columns[f"outcomes.{outcome}"], np.float64)
    keys = [hash(row) for row in zip(*(columns[name] for name in ("scenario_id", "seed", *factors)), strict=True)]
    rows = [hash(parts) for parts in zip(keys, value.tolist(), length.tolist(), columns["world"], strict=True)]
    clusters = _codes([run.clusters.get(name, name) for name in columns["scenario_id"]])
    scenarios = _codes(columns["scenario_id"])
    config = run.header.get("config")
    is_driving = isinstance(config, dict) and "scenarios" in config
    never = np.array(["never_ran" in row for row in more], np.bool_)
    kept = order[~never[order]]
    return Episodes(
        name=f"{run.header['evaluator']} {run.header['policy']}",
        outcome=outcome,
        value=np.where(crashed, np.nan, value)[kept],
        length=(length if unit else np.full(count, np.nan))[kept],
        length_unit=str(unit or ""),
        environment=(np.array(columns["world"], np.int64) if has_environments else np.full(count, -1))[kept],
        seed=(seeds if source.get("has_seeds", True) else np.full(count, np.nan))[kept],
        key=np.array(keys, np.int64)[kept],
        row=np.array(rows, np.int64)[kept],
        has_crashed=crashed[kept],
        has_order=True,
        has_plan=bool(source.get("has_plan", True)),
        planned=len(run.ledger),
        cluster=clusters[kept],
        unit=scenarios[kept] if is_driving and len(np.unique(clusters)) < len(np.unique(scenarios)) else None,
    )


def _codes(names: list[str]) -> Codes:
    return np.unique(np.array(names, np.str_), return_inverse=True)[1].astype(np.int64)
