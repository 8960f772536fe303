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
    table = run.episodes(["scenario_id", "status", "trials"])
    encoded = run.ledger["scenario_id"].combine_chunks().dictionary_encode()
    scenarios, rows = encoded.dictionary, encoded.indices.to_numpy()
    planned = np.bincount(rows, minlength=len(scenarios))
    is_ended: Flags = pc.equal(table["status"], "completed").to_numpy()
    is_failed: Flags = pc.equal(table["status"], "failed").to_numpy()
    codes: Numbers = pc.index_in(table["scenario_id"], scenarios).to_numpy().astype(np.int64)
    trials: Numbers = table["trials"].to_numpy()
    del table
    completed = np.bincount(codes[is_ended], minlength=len(scenarios))
    failed = np.bincount(codes[is_failed], minlength=len(scenarios))
    # One row for each completed episode, then one for each that crashed or never ran, by name.
    by_name = pc.sort_indices(scenarios).to_numpy().astype(np.int64)
    lacking = np.repeat(by_name, np.maximum(planned - completed, 0)[by_name])
    shared = _clusters(run, scenarios, rows)
    clusters = Clusters.of(shared[np.concatenate([codes[is_ended], lacking])])
    # If a run is counted in steps, the unit is an env: its episodes are attempts in one stretch of steps.
    is_stretch = bool((trials[is_ended] != 1).any()) or "episodes" in names
    per = "scenario" if is_stretch else "episode"
    found = []
    for name in names:  # one after the other, because all outcomes of a long run could fill the memory
        values = run.episodes([f"outcomes.{name}"])[f"outcomes.{name}"].to_numpy()[is_ended]
        found.append(_figure(outcome_metric(name, _is_rate(values), per), values, clusters))
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
        "num_episodes": len(is_ended),
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


def _clusters(run: Run, scenarios: pa.Array, rows: Numbers) -> Numbers:
    """Return the cluster of each scenario, numbered by sorted name; rows: the scenario of each row of the ledger."""
    if "cluster" not in run.ledger.column_names:  # runs of older versions
        names = pa.array([run.clusters.get(name, name) for name in scenarios.to_pylist()], pa.string())
    elif run.ledger["cluster"].null_count == len(rows):
        names = scenarios
    else:
        first = np.unique(rows, return_index=True)[1]
        names = pc.coalesce(run.ledger["cluster"].combine_chunks().take(pa.array(first)), scenarios)
    encoded = None if names is scenarios else names.dictionary_encode()  # scenarios are different already
    different = names if encoded is None else encoded.dictionary
    ranks = np.empty(len(different), np.int64)
    ranks[pc.sort_indices(different).to_numpy()] = np.arange(len(ranks))
    return ranks if encoded is None else ranks[encoded.indices.to_numpy()]


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
