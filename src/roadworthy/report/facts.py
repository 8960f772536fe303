"""The content of a report, read once per run: header, figures, and episodes ordered by their outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roadworthy.record import Run
from roadworthy.record.artifacts import LEADS_OUT, Artifact
from roadworthy.record.files import file_inside
from roadworthy.record.references import reference_runs
from roadworthy.record.worst import sorted_worst_first
from roadworthy.report.words import Figure

# The outcome that says how good an episode was: the first of these that a run has.
MAIN_OUTCOMES = ("realism", "passed", "score", "success", "return")
# Infractions of egos: the figure that counts them, and their name in reports. An ego with collisions counts once: as at
# fault, as not at fault, or, in runs of earlier versions, as neither.
OTHER_COLLISIONS = "other_collisions"
FAULTS = {
    "at_fault_collisions": "at-fault collision",
    OTHER_COLLISIONS: "collision, not at fault",
    "collisions": "collision",
    "departures": "off road",
    "red_lights": "red light",
    "stop_signs": "stop sign",
    "timed_out_rate": "out of time",
}
# Outcomes that mean nothing in rollouts, where goals can't be reached.
OF_GOALS = ("score", "success", "goal_rate", "return", "timed_out_rate")
MOST_EPISODES = 1000
MOST_FAILED = 200


@dataclass(frozen=True)
class Episode:
    """An ended episode."""

    anchor: str  # its id for links within a page
    id: str
    scenario_id: str
    seed: int
    replicate: int
    steps: int
    trials: int
    tags: tuple[str, ...]
    factors: Mapping[str, Any]
    outcomes: Mapping[str, float | None]
    artifacts: Mapping[str, str]  # name: path in the run folder
    error: str | None = None
    egos: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)  # name of FAULTS: how many egos


class RunFacts:
    """A run as a report shows it; a run that failed or was interrupted has no figures."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.header = run.header
        self.status = run.status
        self.metrics: dict[str, Any] = run.metrics or {} if run.is_sealed else {}
        self.figures: dict[str, Figure] = {f["name"]: self._worded(f) for f in self.metrics.get("figures", ())}
        self.artifacts: list[Artifact] = run.artifacts

    @property
    def name(self) -> str:
        return str(self.header["evaluator"])

    @property
    def policy(self) -> str:
        return str(self.header["policy"])

    @cached_property
    def is_driving(self) -> bool:
        """Whether egos drove scenarios; False for other environments and for logs of other tools."""
        return "job" not in self.header and "import" not in self.header

    @property
    def unit(self) -> str:
        """The independent unit that intervals count."""
        if not self.is_driving:
            shares_clusters = self.metrics.get("num_clusters", 0) < self.metrics.get("num_episodes", 0)
            return "cluster" if shares_clusters and self.header.get("import") and self.metrics else "episode"
        shares_maps = self.metrics.get("num_clusters", 0) < self.metrics.get("num_scenarios", 0)
        return "map" if "num_clusters" in self.metrics and shares_maps else "scenario"

    def _worded(self, figure: Figure) -> Figure:
        """Return a figure with words for episodes instead of scenarios if the run did not drive."""
        if self.is_driving:
            return figure
        note = figure.get("note")
        return {
            **figure,
            "note": note and note.replace("cluster", self.unit),
            "per": "environment" if figure["per"] == "scenario" else figure["per"],
        }

    @property
    def anchor(self) -> str:
        """The id of the run for links within a page."""
        return f"run-{self.header['run_id']}"

    @property
    def settings(self) -> dict[str, Any]:
        """All settings: those that decide what happens, and those of the execution."""
        return {**self.header.get("config", {}), **self.header.get("carried_out", {})}

    @property
    def errors(self) -> list[Mapping[str, Any]]:
        return list(self.header.get("errors", ()))

    @property
    def seconds(self) -> float | None:
        seconds = self.metrics.get("eval_seconds")
        return None if seconds is None else float(seconds)

    @property
    def realism(self) -> Mapping[str, Any]:
        """The realism results of a run of rollouts that are not figures; empty for other runs."""
        found: Mapping[str, Any] = self.metrics.get("realism") or {}
        return found

    @cached_property
    def references(self) -> list[Run]:
        """The floor and ceiling runs of the run."""
        return reference_runs(self.run)

    @cached_property
    def scenario_figures(self) -> dict[str, dict[str, float | None]]:
        """The figures of each scenario by its id."""
        columns = self.metrics.get("by_scenario") or {"scenario_id": (), "figures": {}}
        figures: Mapping[str, list[float | None]] = columns["figures"]
        return {
            id: {name: values[place] for name, values in figures.items()}
            for place, id in enumerate(columns["scenario_id"])
        }

    @cached_property
    def main_outcome(self) -> str | None:
        """The outcome that episodes are ordered by; None if no episode has a known one."""
        columns = set(self._table.column_names)
        known = (name for name in MAIN_OUTCOMES if f"outcomes.{name}" in columns)
        return next((name for name in known if self._table[f"outcomes.{name}"].null_count < len(self._table)), None)

    @cached_property
    def episode_count(self) -> int:
        """The number of episodes that ended."""
        return len(self._table)

    @cached_property
    def failed_count(self) -> int:
        return len(self._failed)

    @cached_property
    def episodes(self) -> list[Episode]:
        """Completed episodes, worst first, at most MOST_EPISODES; of rollouts, the first of each scenario."""
        table = self._table.filter(pc.equal(self._table["status"], "completed"))
        if self.realism:
            table = table.filter(pc.equal(table["replicate"], 0))
        return self._episodes(sorted_worst_first(table, self.main_outcome).slice(0, MOST_EPISODES), "e")

    @cached_property
    def failed(self) -> list[Episode]:
        """Episodes without a result, at most MOST_FAILED."""
        return self._episodes(self._failed.slice(0, MOST_FAILED), "f")

    @cached_property
    def reasons(self) -> list[tuple[str, int]]:
        """The first line of each error with its count, most frequent first."""
        lines = ((error or "no reason given").strip().partition("\n")[0] for error in self._failed["error"].to_pylist())
        return Counter(lines).most_common()

    @cached_property
    def artifact_errors(self) -> list[tuple[str | None, str, str]]:
        """Missing artifacts: the episode, or None for the run, the artifact and the error."""
        found = {(a.episode_id, a.name): a.error for a in self.artifacts}
        has_errors = pc.greater(pc.list_value_length(_entries(self._table["artifact_errors"])), 0)
        for row in self._table.select(["episode_id", "artifact_errors"]).filter(has_errors).to_pylist():
            for name, error in row["artifact_errors"]:
                found.setdefault((row["episode_id"], name), error)
        for row in self._table.select(["episode_id", "artifacts"]).to_pylist():
            for name, path in row["artifacts"] or ():
                if name != "trace" and file_inside(self.run.folder, path) is None:
                    found[row["episode_id"], name] = f"{path!r} {LEADS_OUT}"
        return [(id, name, error) for (id, name), error in found.items() if error is not None]

    @cached_property
    def _table(self) -> pa.Table:
        table = self.run.episodes()
        if not self.realism:
            return table
        # All rollouts of a scenario share its realism.
        figures = [self.scenario_figures.get(id, {}) for id in table["scenario_id"].to_pylist()]
        values = pa.array([figure.get("realism") for figure in figures], pa.float64())
        table = table.drop_columns(sorted({f"outcomes.{name}" for name in OF_GOALS} & set(table.column_names)))
        return table.append_column("outcomes.realism", values)

    @cached_property
    def _failed(self) -> pa.Table:
        return self._table.filter(pc.equal(self._table["status"], "failed"))

    def _episodes(self, table: pa.Table, letter: str) -> list[Episode]:
        """Return rows of the table of episodes, with the infractions of their egos."""
        rows = table.to_pylist()
        egos, faults = self._egos([row["episode_id"] for row in rows])
        return [
            Episode(
                anchor=f"{self.anchor}-{letter}{place}",
                id=row["episode_id"],
                scenario_id=row["scenario_id"],
                seed=row["seed"],
                replicate=row["replicate"],
                steps=row["steps"],
                trials=row["trials"],
                tags=tuple(row["tags"] or ()),
                factors=_group(row, "factors."),
                outcomes=_group(row, "outcomes."),
                artifacts=dict(row["artifacts"] or ()),
                error=row["error"],
                egos=egos[row["episode_id"]],
                faults=faults.get(row["episode_id"], {}),
            )
            for place, row in enumerate(rows)
        ]

    def _egos(self, ids: list[str]) -> tuple[Counter[str], dict[str, Counter[str]]]:
        """Return the number of egos of these episodes, and the number of egos with each infraction."""
        faults_known = [name for name in FAULTS if not (self.realism and name in OF_GOALS)]
        columns = [f"figures.{name}" for name in faults_known if f"figures.{name}" in self.run.column_names("agents")]
        agents = self.run.agents(["episode_id", *columns])
        agents = agents.filter(pc.is_in(agents["episode_id"], pa.array(ids, pa.string())))
        faults: dict[str, Counter[str]] = {}
        rows = agents.to_pylist()
        for row in rows:
            found = faults.setdefault(row["episode_id"], Counter())
            names = {c.removeprefix("figures.") for c in columns if (row[c] or 0.0) > 0.0}
            if row.get("figures.at_fault_collisions") is not None and "collisions" in names:
                names.remove("collisions")
                names |= set() if "at_fault_collisions" in names else {OTHER_COLLISIONS}
            found.update(names)
        return Counter(row["episode_id"] for row in rows), faults


def worst_first(run: Run) -> list[str]:
    """Return the ids of completed episodes in the order of reports: lowest outcome first, then most infractions."""
    return [episode.id for episode in RunFacts(run).episodes]


def leaves(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return settings with dotted keys."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found += leaves(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", value))
    return found


def _group(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)}


def _entries(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of maps as lists of entries, whose length Arrow can compute."""
    entry = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())])
    return column.cast(pa.list_(entry))
