"""The figures of a Gymnasium run: each outcome with its interval, n and unit of count."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from roadworthy.metrics.driving import eval_seconds
from roadworthy.metrics.metric import Array, Flags, Kind, Metric, as_figure, with_room
from roadworthy.record import Run
from roadworthy.statistics import Clusters, Interval, mean, rate, with_missing

VERSION = 1
UNITS = {"_m": "m", "_s": "s", "_mps": "m/s", "_rad": "rad"}  # by the suffix of the name
# Outcomes that say whether an episode succeeded: one that crashed did not. Version 2: it counts as failed.
SUCCESSES = ("success", "is_success", "successful", "succeeded", "passed", "solved", "goal_reached", "task_success")


def outcome_metric(name: str, is_rate: bool, per: str = "episode") -> Metric:
    """Return the declaration of an outcome: whether it is a rate is seen from its values, the rest from its name."""
    unit = "share" if is_rate else next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")
    if is_rate and name.rpartition(".")[2] in SUCCESSES:
        return Metric(name, Kind.RATE, name, unit, per, "", version=2, better="higher", failed=0.0)
    return Metric(name, Kind.RATE if is_rate else Kind.MEAN, name, unit, per, "", version=VERSION)


def outcome_metrics(run: Run) -> dict[str, Any]:
    """Return the content of metrics.json. Episodes that crashed or never ran count as failed in success rates."""
    table = run.episodes()
    rows = table.to_pylist()
    ended = [row for row in rows if row["status"] == "completed"]
    names = sorted(name.removeprefix("outcomes.") for name in table.column_names if name.startswith("outcomes."))
    planned = Counter(run.ledger["scenario_id"].to_pylist())
    completed, failed = (
        Counter(row["scenario_id"] for row in ended),
        Counter(row["scenario_id"] for row in rows if row["status"] == "failed"),
    )
    # One row for each completed episode, then one for each that crashed or never ran.
    lacking = [name for name, count in sorted(planned.items()) for _ in range(count - completed[name])]
    shared = run.clusters
    scenarios = [row["scenario_id"] for row in ended] + lacking
    clusters = Clusters.of(np.array([shared.get(name, name) for name in scenarios], np.str_))
    values = {name: np.array([row[f"outcomes.{name}"] for row in ended], np.float64) for name in names}
    # If a run is counted in steps, the unit is an env: its episodes are attempts in one stretch of steps.
    is_stretch = any(row["trials"] != 1 for row in ended) or "outcomes.episodes" in table.column_names
    per = "scenario" if is_stretch else "episode"
    found = [_figure(outcome_metric(name, _is_rate(values[name]), per), values[name], clusters) for name in names]
    gaps = [
        {"scenario_id": name, "owed": count, "completed": completed[name], "failed": failed[name]}
        for name, count in planned.items()
        if completed[name] < count
    ]
    return {
        "num_episodes": len(rows),
        "num_failed_episodes": len(rows) - len(ended),
        "num_scenarios": len(completed),
        "num_clusters": len({shared.get(name, name) for name in completed}),
        "num_agents_evaluated": sum(max(1, row["trials"]) for row in ended),
        "num_failed_spawns": None,
        "num_free_successes": None,
        "eval_seconds": eval_seconds(run),
        "gaps": gaps,
        "figures": found,
        "by_class": {},
        "by_trial": [],
        "by_scenario": {"scenario_id": [], "episodes": [], "failed": [], "agents": [], "figures": {}},
        "by_cluster": {"cluster": [], "figures": {}},
    }


def _is_rate(values: Array) -> bool:
    """Return whether all values are 0 or 1."""
    finite = values[~np.isnan(values)]
    return bool(finite.size) and bool(np.isin(finite, (0.0, 1.0)).all())


def _figure(metric: Metric, values: Array, clusters: Clusters) -> dict[str, Any]:
    """Return a rate, or a mean; the clusters are those of the values and of the missing ones after them."""
    rows, is_missing = with_room(values, len(clusters.codes) - len(values))
    known: Flags = ~np.isnan(rows)
    # Where no episode has the outcome, the others would not have had it either.
    chosen = known | is_missing if known.any() else known
    part = clusters.chosen(chosen)

    def estimate(given: Array) -> Interval:
        return (rate if metric.kind is Kind.RATE else mean)(given, part)

    found = with_missing(estimate, rows[chosen], is_missing[chosen], metric.failed, metric.bounds)
    return as_figure(found, metric.name, metric.per, metric)
