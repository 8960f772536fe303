"""The figures of a Gymnasium run: each outcome with its interval, n and unit of count."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from roadworthy.metrics.driving import eval_seconds
from roadworthy.record import Run
from roadworthy.statistics.clusters import Clusters
from roadworthy.statistics.intervals import mean, rate

VERSION = 1
UNITS = {"_m": "m", "_s": "s", "_mps": "m/s", "_rad": "rad"}  # by the suffix of the name


def outcome_metrics(run: Run) -> dict[str, Any]:
    """Return the content of metrics.json. Failed episodes are counted, and are in no denominator."""
    table = run.episodes()
    rows = table.to_pylist()
    ended = [row for row in rows if row["status"] == "completed"]
    names = sorted(name.removeprefix("outcomes.") for name in table.column_names if name.startswith("outcomes."))
    clusters = Clusters.of([row["scenario_id"] for row in ended])
    values = {name: np.array([row[f"outcomes.{name}"] for row in ended], np.float64) for name in names}
    # If a run is counted in steps, the unit is an env: its episodes are attempts in one stretch of steps.
    is_stretch = any(row["trials"] != 1 for row in ended) or "outcomes.episodes" in table.column_names
    found = [_figure(name, values[name], clusters, "scenario" if is_stretch else "episode") for name in names]
    planned = Counter(run.ledger["scenario_id"].to_pylist())
    completed, failed = (
        Counter(row["scenario_id"] for row in ended),
        Counter(row["scenario_id"] for row in rows if row["status"] == "failed"),
    )
    gaps = [
        {"scenario_id": name, "owed": count, "completed": completed[name], "failed": failed[name]}
        for name, count in planned.items()
        if completed[name] < count
    ]
    return {
        "num_episodes": len(rows),
        "num_failed_episodes": len(rows) - len(ended),
        "num_scenarios": len(completed),
        "num_agents_evaluated": sum(max(1, row["trials"]) for row in ended),
        "num_failed_spawns": None,
        "num_free_successes": None,
        "eval_seconds": eval_seconds(run),
        "gaps": gaps,
        "figures": found,
        "by_class": {},
        "by_trial": [],
        "by_scenario": {"scenario_id": [], "episodes": [], "failed": [], "agents": [], "figures": {}},
    }


def _figure(name: str, values: Any, clusters: Clusters, per: str) -> dict[str, Any]:
    """Return a rate if all values are 0 or 1, else a mean."""
    finite = values[~np.isnan(values)]
    is_rate = bool(finite.size) and bool(np.isin(finite, (0.0, 1.0)).all())
    found = asdict((rate if is_rate else mean)(values, clusters))
    unit = "share" if is_rate else next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")
    return {"name": name, **found, "per": per, "unit": unit, "version": VERSION}
