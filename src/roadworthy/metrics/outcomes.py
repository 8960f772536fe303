"""The figures of a Gymnasium run: each outcome with its interval, n and unit of count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roadworthy.metrics.driving import eval_seconds
from roadworthy.metrics.metric import Array, Flags, Kind, Metric, as_figure, with_room
from roadworthy.record import Run
from roadworthy.statistics import Clusters, Interval, mean, rate, with_missing

Numbers = NDArray[np.int64]

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
    names = sorted(
        name.removeprefix("outcomes.") for name in run.column_names("episodes") if name.startswith("outcomes.")
    )
    table = run.episodes(["scenario_id", "status", "trials", *(f"outcomes.{name}" for name in names)])
    scenarios, planned = _scenarios(run.ledger["scenario_id"])
    is_ended: Flags = pc.equal(table["status"], "completed").to_numpy()
    is_failed: Flags = pc.equal(table["status"], "failed").to_numpy()
    codes: Numbers = pc.index_in(table["scenario_id"], scenarios).to_numpy().astype(np.int64)
    completed = np.bincount(codes[is_ended], minlength=len(scenarios))
    failed = np.bincount(codes[is_failed], minlength=len(scenarios))
    # One row for each completed episode, then one for each that crashed or never ran, by name.
    by_name = pc.sort_indices(scenarios).to_numpy().astype(np.int64)
    lacking = np.repeat(by_name, np.maximum(planned - completed, 0)[by_name])
    shared = _clusters(run, scenarios)
    clusters = Clusters.of(shared[np.concatenate([codes[is_ended], lacking])])
    values = {name: table[f"outcomes.{name}"].to_numpy()[is_ended] for name in names}
    trials: Numbers = table["trials"].to_numpy()
    # If a run is counted in steps, the unit is an env: its episodes are attempts in one stretch of steps.
    is_stretch = bool((trials[is_ended] != 1).any()) or "episodes" in names
    per = "scenario" if is_stretch else "episode"
    found = [_figure(outcome_metric(name, _is_rate(values[name]), per), values[name], clusters) for name in names]
    gaps = [
        {
            "scenario_id": scenarios[place].as_py(),
            "owed": int(planned[place]),
            "completed": int(completed[place]),
            "failed": int(failed[place]),
        }
        for place in np.flatnonzero(completed < planned).tolist()
    ]
    return {
        "num_episodes": len(table),
        "num_failed_episodes": int(np.count_nonzero(~is_ended)),
        "num_scenarios": int(np.count_nonzero(completed)),
        "num_clusters": len(np.unique(shared[completed > 0])),
        "num_agents_evaluated": int(np.maximum(trials[is_ended], 1).sum()),
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


def _scenarios(column: pa.ChunkedArray) -> tuple[pa.Array, Numbers]:
    """Return the scenarios of a ledger in the order in which they occur, and how often each is planned."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary, np.bincount(encoded.indices.to_numpy(), minlength=len(encoded.dictionary))


def _clusters(run: Run, scenarios: pa.Array) -> Numbers:
    """Return the cluster of each scenario, numbered by sorted name."""
    if "cluster" in run.ledger.column_names:
        rows = run.ledger["scenario_id"].combine_chunks().dictionary_encode().indices.to_numpy()
        first = np.unique(rows, return_index=True)[1]
        names = pc.coalesce(run.ledger["cluster"].combine_chunks().take(pa.array(first)), scenarios)
    else:  # runs of older versions
        names = pa.array([run.clusters.get(name, name) for name in scenarios.to_pylist()], pa.string())
    encoded = names.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    return ranks[encoded.indices.to_numpy()]


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
