"""The realism of a run: figures per scenario, their means with intervals, and histograms for the report.

Scenarios are scored one at a time from their traces, so that memory holds the rollouts of one scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from roadworthy.errors import RoadworthyError, ScenarioError
from roadworthy.metrics.metric import Better, Kind, Metric, as_figure, with_room
from roadworthy.metrics.realism.config import BUCKETS, CHALLENGES, Event, RealismConfig
from roadworthy.metrics.realism.features import Features, compute_features
from roadworthy.metrics.realism.likelihood import bin_edges, histogram_counts
from roadworthy.metrics.realism.score import FIGURES, buckets, score_features
from roadworthy.metrics.realism.traced import traced_rollouts
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Scenario
from roadworthy.statistics import Clusters, mean, with_missing

REALISM = "realism"  # the name of the challenge's meta-metric in figures
_WHAT = {
    REALISM: "the weighted sum of all likelihoods",
    "average_displacement_error": "distance from the recording, mean over rollouts, agents and steps",
    "min_average_displacement_error": "the same, of the rollout that is nearest to the recording",
    "simulated_collision_rate": "evaluated agents that touch another one in a rollout",
    "simulated_offroad_rate": "evaluated agents that leave the road in a rollout",
    "simulated_traffic_light_violation_rate": "evaluated agents that run a red light in a rollout",
}


def _metric(name: str) -> Metric:
    name = REALISM if name == "metametric" else name
    if name.endswith("_error"):
        return Metric(name, Kind.MEAN, name, "m", "scenario", _WHAT[name], better="lower")
    unit = "share" if name.endswith("_rate") else "likelihood"
    feature = name.removesuffix("_likelihood").replace("_", " ")
    what = _WHAT.get(name, f"the likelihood of the recorded {feature} under the distribution of the rollouts")
    better: Better = "lower" if name.endswith("_rate") else "higher"
    return Metric(name, Kind.SHARE, name, unit, "scenario", what, better=better)


def _bucket_metric(bucket: str) -> Metric:
    what = f"the weighted mean of the {bucket.replace('_', '-')} likelihoods, as on the challenge's leaderboard"
    return Metric(f"{bucket}_metrics", Kind.SHARE, f"{bucket}_metrics", "likelihood", "scenario", what, better="higher")


REALISM_METRICS = (*map(_metric, FIGURES), *map(_bucket_metric, BUCKETS))


class FeatureHistograms:
    """Histograms of the features of recordings and of rollouts over scenarios."""

    def __init__(self, config: RealismConfig) -> None:
        self._config = config
        sizes = {name: 2 if isinstance(part, Event) else part.histogram.bins for name, part in config.parts.items()}
        self._log = {name: np.zeros(size) for name, size in sizes.items()}
        self._simulated = {name: np.zeros(size) for name, size in sizes.items()}

    def add(self, features: Features) -> None:
        """Add a scenario at the steps valid in the recording; its rollouts together weigh as much as the recording."""
        for name, part in self._config.parts.items():
            counted = features.counted(name)
            log, simulated = getattr(features.log, name), getattr(features.simulated, name)
            for values, counts in ((log, self._log[name]), (simulated, self._simulated[name])):
                if isinstance(part, Event):
                    happens = (values & counted).any(axis=2)
                    counts += np.array([np.count_nonzero(~happens), np.count_nonzero(happens)]) / len(values)
                else:
                    chosen = np.ascontiguousarray(values[:, counted][:, :, None])
                    counts += histogram_counts(part.histogram, chosen).sum(axis=0) / len(values)

    def plain(self) -> list[dict[str, Any]]:
        """Return plain values for metrics.json: features with bin edges; events with counts without and with them."""
        return [
            {
                "name": name,
                "weight": part.weight,
                "edges": None if isinstance(part, Event) else np.round(bin_edges(part.histogram), 6).tolist(),
                "log": np.round(self._log[name], 4).tolist(),
                "simulated": np.round(self._simulated[name], 4).tolist(),
            }
            for name, part in self._config.parts.items()
        ]


def realism_metrics(run: Run, challenge: str, init_steps: int) -> dict[str, Any]:
    """Return the figures of a run with traces, over scenarios, by class and by scenario, and data for the report.

    init_steps: the step of the recordings at which the rollouts start. Scenarios that can't be scored are named in
    `realism.unscored` with the reason, and are in no figure; those of which a rollout failed count as missing.
    """
    config = CHALLENGES[challenge]
    histograms = FeatureHistograms(config)
    rows: dict[str, Mapping[str, float | None]] = {}
    classes: dict[str, list[str]] = {}
    unscored: list[dict[str, str]] = []
    failed: dict[str, tuple[str, ...]] = {}  # scenarios without all of their rollouts, with their tags
    with Pack(run.pack) as pack:
        for scenario_id, episodes, missing in _planned_rollouts(run):
            try:
                if missing:
                    failed[scenario_id] = pack.scenario(scenario_id).tags
                    raise ScenarioError(f"{missing} of its {missing + len(episodes)} rollouts failed")
                scenario = pack.scenario(scenario_id)
                features = _features(run, scenario, episodes, init_steps)
            except RoadworthyError as error:
                unscored.append({"scenario_id": scenario_id, "reason": str(error)})
                continue
            scored = score_features(features, config)
            groups = buckets(scored, config)
            rows[scenario_id] = {
                **{REALISM if name == "metametric" else name: value for name, value in scored.plain().items()},
                **{f"{bucket}_metrics": _plain(groups[f"{bucket}_metrics"]) for bucket in BUCKETS},
            }
            histograms.add(features)
            for tag in scenario.tags:
                classes.setdefault(tag, []).append(scenario_id)
    names = sorted(rows)
    columns = {metric.name: [rows[name][metric.name] for name in names] for metric in REALISM_METRICS}
    shared = {name: run.clusters.get(name, name) for name in (*rows, *failed)}

    def found(metric: Metric, members: Sequence[str], lost: Sequence[str]) -> dict[str, Any]:
        values = [rows[name][metric.name] for name in members]
        return realism_figure(metric, values, [shared[name] for name in members], [shared[name] for name in lost])

    return {
        "figures": [found(metric, names, sorted(failed)) for metric in REALISM_METRICS],
        "by_class": {
            tag: [found(REALISM_METRICS[0], members, [name for name in sorted(failed) if tag in failed[name]])]
            for tag, members in classes.items()
        },
        "by_scenario": {"scenario_id": names, "figures": columns},
        "by_cluster": _by_cluster(columns, [shared[name] for name in names]),
        "realism": {"challenge": challenge, "unscored": unscored, "parts": histograms.plain()},
    }


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value


def realism_figure(
    metric: Metric, values: Sequence[float | None], clusters: Sequence[str] = (), missing: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the mean over scenarios with its interval.

    Args:
        metric: The declaration of the figure.
        values: One value per scenario; None means no data.
        clusters: The cluster of each scenario; by default, each is on its own.
        missing: The clusters of scenarios of which rollouts are missing.
    """
    known = np.array([np.nan if value is None else value for value in values], np.float64)
    names = [*(clusters or [f"{number}" for number in range(len(known))]), *missing]
    groups = Clusters.of(np.array(names, np.str_))
    rows, is_missing = with_room(known, len(missing))
    found = with_missing(
        lambda given: mean(given, groups, bounds=metric.bounds), rows, is_missing, metric.failed, metric.bounds
    )
    return as_figure(found, metric.name, metric.per, metric)


def _by_cluster(columns: Mapping[str, Sequence[float | None]], clusters: Sequence[str]) -> dict[str, Any]:
    """Return what each cluster contributes to the deviation of each figure."""
    groups = Clusters.of(np.array(clusters, np.str_))
    figures = {}
    for name, column in columns.items():
        values = np.array([np.nan if value is None else value for value in column], np.float64)
        known = ~np.isnan(values)
        parts = np.where(known, values - (values[known].mean() if known.any() else 0.0), 0.0) / max(known.sum(), 1)
        figures[name] = np.round(np.bincount(groups.codes, parts, groups.count), 9).tolist()
    return {"cluster": sorted(set(clusters)), "figures": figures}


def _features(run: Run, scenario: Scenario, episodes: Sequence[str], init_steps: int) -> Features:
    if init_steps != scenario.current_step:
        raise ScenarioError(
            f"scenario {scenario.id!r}: its current step is {scenario.current_step}, but the rollouts start at step "
            f"{init_steps}; set env.init_steps to {scenario.current_step}"
        )
    traces = [run.trace(episode) for episode in episodes]
    rollouts = traced_rollouts(scenario, traces, str(run.header.get("policy_spec")))
    return compute_features(scenario, rollouts)


def _planned_rollouts(run: Run) -> list[tuple[str, list[str], int]]:
    """Return each scenario with its completed episodes and the number of missing ones, sorted by id."""
    table = run.episodes(["episode_id", "scenario_id", "status"])
    completed = table.filter(pc.equal(table["status"], "completed"))
    found: dict[str, list[str]] = {name: [] for name in sorted(set(run.ledger["scenario_id"].to_pylist()))}
    for row in completed.to_pylist():
        found[row["scenario_id"]].append(row["episode_id"])
    planned = pc.value_counts(run.ledger["scenario_id"]).to_pylist()
    counts = {entry["values"]: entry["counts"] for entry in planned}
    return [(name, sorted(episodes), counts[name] - len(episodes)) for name, episodes in found.items()]
