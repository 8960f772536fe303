"""The rows of a run, joined with the scenario and the classes of each ego and each trial."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roadworthy.metrics.metric import Metric, Rows, row_values
from roadworthy.record import Run
from roadworthy.statistics import Clusters

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


class RunRows:
    """Trials and egos of the completed episodes of a run, clustered by scenario."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._episodes = run.episodes(["scenario_id", "status", "tags"])
        self.is_completed: Flags = pc.equal(self._episodes["status"], "completed").to_numpy()
        names = self._episodes["scenario_id"].combine_chunks().dictionary_encode()
        # Numbered by sorted name, so that the order of the ledger has no influence on bootstrap draws.
        order = pc.sort_indices(names.dictionary).to_numpy()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        self._scenario_names = names.dictionary.take(pa.array(order))
        self._scenarios: Numbers = ranks[names.indices.to_numpy()]  # (episodes,)
        self.agents, self._agent_episodes = self._joined(run.agents(self._needed("agents")))
        self.trials, self._trial_episodes = self._joined(run.trials(self._needed("trials")))

    @property
    def episode_count(self) -> int:
        """The number of episodes that ended, including failed ones."""
        return len(self.is_completed)

    @property
    def scenario_count(self) -> int:
        """The number of scenarios with a completed episode."""
        return int(np.count_nonzero(self._count(self.is_completed)))

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
        """Return the trials and the egos of a class."""
        has_tag = self._has_tag(name)
        return self.trials.where(has_tag[self._trial_episodes]), self.agents.where(has_tag[self._agent_episodes])

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
        planned = pc.value_counts(self._run.ledger["scenario_id"])
        names, wanted = planned.field("values"), planned.field("counts").to_numpy()
        places = pc.index_in(names, self._scenario_names)
        places = np.nan_to_num(places.to_numpy(zero_copy_only=False), nan=len(self._scenario_names)).astype(np.int64)
        completed = np.append(self._count(self.is_completed), 0)[places]
        failed = np.append(self._count(~self.is_completed), 0)[places]
        return [
            {
                "scenario_id": names[place].as_py(),
                "owed": int(wanted[place]),
                "completed": int(completed[place]),
                "failed": int(failed[place]),
            }
            for place in np.flatnonzero(completed < wanted).tolist()
        ]

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

    def _joined(self, table: pa.Table) -> tuple[Rows, Numbers]:
        """Return the rows of completed episodes, with the episode of each."""
        table = table.combine_chunks()
        places: Numbers = table["episode"].to_numpy()
        is_kept = self.is_completed[places]
        codes = self._scenarios[places]
        clusters = Clusters(codes, len(self._scenario_names)).chosen(is_kept)
        return Rows(table if is_kept.all() else table.filter(pa.array(is_kept)), clusters), places[is_kept]
