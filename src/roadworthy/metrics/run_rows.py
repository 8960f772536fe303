"""The rows of a run, joined with the scenario and the classes of each ego and each trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roadworthy.metrics.metric import Metric, MissingRows, Rows, contributions, row_values
from roadworthy.record import Run
from roadworthy.statistics import Clusters

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
SUMMARIZED = ("score", "passed", "closed_loop_score")  # figures of summaries over several runs, beside configured ones


class RunRows:
    """Trials and egos of the completed episodes of a run, clustered by what scenarios share, and those it lacks.

    An episode that crashed, timed out or never ran lacks as many egos as the completed episodes of its scenario have on
    average, or of the run if there are none.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._episodes = run.episodes(["scenario_id", "status", "tags"])
        self.is_completed: Flags = pc.equal(self._episodes["status"], "completed").to_numpy()
        # Numbered by sorted name, so that the order of the ledger has no influence on bootstrap draws.
        self._planned = pc.value_counts(run.ledger["scenario_id"])
        ended = pc.unique(self._episodes["scenario_id"]).cast(pa.string())
        unique = pc.unique(pa.concat_arrays([self._planned.field("values").cast(pa.string()), ended]))
        self._scenario_names = unique.take(pc.sort_indices(unique))
        self._scenarios: Numbers = self._places(self._episodes["scenario_id"])  # (episodes,)
        self.cluster_names, self._clusters = _clusters_of(self._scenario_names.to_pylist(), run.clusters)
        agents, self._agent_episodes = self._completed(run.agents(self._needed("agents")))
        trials, self._trial_episodes = self._completed(run.trials(self._needed("trials")))
        missing = self._missing_egos()
        self.agents = self._rows(agents, self._agent_episodes, missing, np.zeros(len(missing), np.int64))
        self.trials = self._rows(trials, self._trial_episodes, missing[:0], missing[:0])
        count = max(self.trial_count, 1)
        self.trials.missing = self._missing_rows(np.repeat(missing, count), np.tile(np.arange(count), len(missing)))

    @property
    def episode_count(self) -> int:
        """The number of episodes that ended, including failed ones."""
        return len(self.is_completed)

    @property
    def scenario_count(self) -> int:
        """The number of scenarios with a completed episode."""
        return int(np.count_nonzero(self._count(self.is_completed)))

    @property
    def cluster_count(self) -> int:
        """The number of clusters with a completed episode."""
        return len(np.unique(self._clusters[self._scenarios[self.is_completed]]))

    @cached_property
    def trial_count(self) -> int:
        """The number of trials of an episode."""
        return int(self.trials.numbers("trial").max(initial=-1)) + 1

    @property
    def failed_spawns(self) -> int | None:
        """The number of agents that could not be placed in completed episodes; None if it was not recorded."""
        name = "outcomes.failed_spawns"
        if name not in self._run.column_names("episodes"):
            return None
        return int(np.nansum(self._run.episodes([name])[name].to_numpy()[self.is_completed]))

    @property
    def free_successes(self) -> int | None:
        """The number of egos that started at their goal in completed episodes; None if it was not recorded."""
        if "figures.starts_at_goal" not in self._run.column_names("agents"):
            return None
        return int((self.agents.column("starts_at_goal") > 0.0).sum())

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The tags of the scenarios in alphabetical order."""
        return tuple(sorted(pc.unique(self._tags[0]).to_pylist()))

    def of_class(self, name: str) -> tuple[Rows, Rows]:
        """Return the trials and the egos of a class, with those it lacks."""
        has_tag = self._has_tag(name)
        # A scenario of which no episode ended has no known tags.
        is_tagged = np.bincount(self._scenarios[has_tag], minlength=len(self._scenario_names)) > 0
        return (
            self.trials.where(has_tag[self._trial_episodes], is_tagged[self.trials.missing.scenarios]),
            self.agents.where(has_tag[self._agent_episodes], is_tagged[self.agents.missing.scenarios]),
        )

    def counts_of_class(self, name: str) -> dict[str, int]:
        """Return the number of completed episodes and scenarios of a class."""
        counts = self._count(self._has_tag(name) & self.is_completed)
        return {"episodes": int(counts.sum()), "scenarios": int(np.count_nonzero(counts))}

    def pairs(self, rows: Rows) -> tuple[Numbers, Numbers]:
        """Return the index of the ego's episode of each trial row, and the number of its trial."""
        agents, attempts = rows.numbers("agent"), rows.numbers("attempt")
        keys = self._trial_episodes * (int(agents.max(initial=0)) + 1) + agents
        keys = keys * (int(attempts.max(initial=0)) + 1) + attempts
        return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64), rows.numbers("trial")

    def gaps(self) -> list[dict[str, Any]]:
        """Return the scenarios with fewer completed episodes than planned."""
        names, wanted = self._planned.field("values"), self._planned.field("counts").to_numpy()
        places = self._places(names)
        completed, failed = self._count(self.is_completed)[places], self._count(~self.is_completed)[places]
        return [
            {
                "scenario_id": names[place].as_py(),
                "owed": int(wanted[place]),
                "completed": int(completed[place]),
                "failed": int(failed[place]),
            }
            for place in np.flatnonzero(completed < wanted).tolist()
        ]

    def by_cluster(self, per_trial: Sequence[Metric], per_agent: Sequence[Metric]) -> dict[str, Any]:
        """Return columns with one entry per cluster: what it contributes to the deviation of a figure.

        The figures are those that summaries over several runs are made of.
        """
        settings = {**self._run.header.get("config", {}), **self._run.header.get("carried_out", {})}
        figure = str((settings.get("summary") or {}).get("figure", "score"))
        names = {*SUMMARIZED, figure.removesuffix("_per_scenario")}
        columns = {
            metric.name: np.round(contributions(metric, rows), 9).tolist()
            for metrics, rows in ((per_trial, self.trials), (per_agent, self.agents))
            for metric in metrics
            if metric.name in names and not metric.is_inverse
        }
        return {"cluster": list(self.cluster_names), "figures": columns}

    def by_scenario(self, per_trial: Sequence[Metric], per_agent: Sequence[Metric]) -> dict[str, Any]:
        """Return columns with one entry per scenario: counts, and the means of some metrics over its rows."""
        count = len(self._scenario_names)
        egos = np.bincount(self._scenarios[self._agent_episodes], minlength=count)
        columns: dict[str, list[float | None]] = {}
        for metrics, rows, episodes in (
            (per_trial, self.trials, self._trial_episodes),
            (per_agent, self.agents, self._agent_episodes),
        ):
            codes = self._scenarios[episodes]
            for metric in metrics:
                values = row_values(metric, rows)
                known = ~np.isnan(values)
                sizes = np.bincount(codes[known], minlength=count)
                totals = np.bincount(codes[known], values[known], count)
                means = np.round(totals / np.maximum(sizes, 1), 6).tolist()
                if not sizes.all():
                    means = [mean if size else None for mean, size in zip(means, sizes.tolist(), strict=True)]
                columns[metric.name] = means
        return {
            "scenario_id": self._scenario_names.to_pylist(),
            "episodes": self._count(self.is_completed).tolist(),
            "failed": self._count(~self.is_completed).tolist(),
            "agents": egos.tolist(),
            "figures": columns,
        }

    def _needed(self, table: str) -> list[str]:
        """Return all columns except ids, which are different in every row."""
        return [name for name in self._run.column_names(table) if name not in ("episode_id", "scenario_id")]

    def _count(self, episodes: Flags) -> Numbers:
        return np.bincount(self._scenarios[episodes], minlength=len(self._scenario_names))

    def _has_tag(self, name: str) -> Flags:
        """Return whether the scenario of each episode has a tag, (episodes,)."""
        tags, episodes = self._tags
        flags = np.zeros(self.episode_count, np.bool_)
        flags[episodes[pc.equal(tags, name).to_numpy(zero_copy_only=False)]] = True
        return flags

    @cached_property
    def _tags(self) -> tuple[pa.Array, Numbers]:
        """All tags of all episodes, with the episode of each."""
        lists = self._episodes["tags"].combine_chunks()
        return pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()

    def _places(self, names: pa.Array | pa.ChunkedArray) -> Numbers:
        """Return the number of each of these scenarios."""
        places: Numbers = pc.index_in(names, self._scenario_names).to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    def _completed(self, table: pa.Table) -> tuple[pa.Table, Numbers]:
        """Return the rows of completed episodes, with the episode of each."""
        table = table.combine_chunks()
        places: Numbers = table["episode"].to_numpy()
        is_kept = self.is_completed[places]
        return table if is_kept.all() else table.filter(pa.array(is_kept)), places[is_kept]

    def _rows(self, table: pa.Table, episodes: Numbers, missing: Numbers, trials: Numbers) -> Rows:
        codes = self._scenarios[episodes]
        scenarios = Clusters(codes, len(self._scenario_names))
        is_shared = len(self.cluster_names) < len(self._scenario_names)
        clusters = Clusters(self._clusters[codes], len(self.cluster_names)) if is_shared else scenarios
        return Rows(table, clusters, scenarios, self._missing_rows(missing, trials))

    def _missing_egos(self) -> Numbers:
        """Return the scenario of each ego that is missing with its episode, (m,)."""
        names, wanted = self._planned.field("values"), self._planned.field("counts").to_numpy()
        planned = np.zeros(len(self._scenario_names), np.int64)
        planned[self._places(names)] = wanted
        completed = self._count(self.is_completed)
        absent = np.maximum(planned - completed, 0)
        if not absent.any():
            return np.zeros(0, np.int64)
        egos = np.bincount(self._scenarios[self._agent_episodes], minlength=len(planned))
        usual = egos.sum() / max(completed.sum(), 1)
        each = np.maximum(np.round(np.where(completed > 0, egos / np.maximum(completed, 1), usual)), 1.0)
        return np.repeat(np.arange(len(planned)), absent * each.astype(np.int64))

    def _missing_rows(self, scenarios: Numbers, trials: Numbers) -> MissingRows:
        return MissingRows(self._clusters[scenarios], scenarios, trials.astype(np.int64))


def _clusters_of(scenarios: Sequence[str], shared: Mapping[str, str]) -> tuple[Sequence[str], Numbers]:
    """Return the names of clusters and the cluster of each scenario, (scenarios,); both are sorted by name."""
    own = [shared.get(name, name) for name in scenarios]
    if own == list(scenarios):
        return own, np.arange(len(own))
    names, codes = np.unique(np.array(own, np.str_), return_inverse=True)
    return names.tolist(), codes.reshape(-1).astype(np.int64)
