"""Read run folders: the planned episodes, their results, and the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roadworthy.errors import RecordError, RoadworthyError, UsageError
from roadworthy.record.artifacts import Artifact, add_artifact, read_artifacts
from roadworthy.record.episodes import EpisodeResult, decode_line
from roadworthy.record.files import file_inside, read_json, safe_name
from roadworthy.record.journal import Journal
from roadworthy.record.lock import living_owner
from roadworthy.record.schema import require_readable
from roadworthy.record.shared_maps import shared_maps
from roadworthy.record.tables import batches, read_schema, read_table, table_schema
from roadworthy.record.traces import Trace, read_trace

RUN, LEDGER, JOURNAL, METRICS, PACK = "run.json", "ledger.parquet", "episodes.jsonl", "metrics.json", "scenarios.pack"
TRACES = "traces"


class Run:
    """A run folder opened for reading, sealed or not.

    The tables have one row per episode, per ego, and per ego and trial. Nested values are columns with a prefix:
    `factors.NAME` and `outcomes.NAME` of episodes, `figures.NAME` of agents and trials. Files are read when needed;
    rows that a running run appends later appear in a new Run.
    """

    def __init__(self, folder: str | Path, tables: Mapping[str, pa.Table] | None = None) -> None:
        """Open a run folder; `tables` that the caller has in memory are not read from the folder."""
        self._tables = tables or {}
        self.folder = Path(folder).absolute()
        if not (self.folder / RUN).is_file():
            reason = f"it has no {RUN}" if self.folder.is_dir() else "there is no such folder"
            raise UsageError(f"{self.folder}: is not a run folder: {reason}")
        self.header: dict[str, Any] = read_json(self.folder / RUN)  # what run.json holds
        require_readable(self.header.get("schema_version"), self.folder / RUN)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.status})"

    @property
    def status(self) -> str:
        """`running`, `completed`, `failed` or `interrupted`; a run whose writer died is interrupted."""
        status = str(self.header.get("status"))
        if status == "running" and living_owner(self.folder) is None:
            return "interrupted"
        return status

    @property
    def is_sealed(self) -> bool:
        """Return whether the tables are complete and final."""
        return self.header.get("status") == "completed"

    @cached_property
    def ledger(self) -> pa.Table:
        """The planned episodes, without those that a decision made unnecessary: they are not missing."""
        if self.decided is None or "ledger" in self._tables:
            return self.whole_ledger
        ended = self.episodes(["episode_id"])["episode_id"].combine_chunks()
        return self.whole_ledger.filter(pc.is_in(self.whole_ledger["episode_id"], ended))

    @cached_property
    def whole_ledger(self) -> pa.Table:
        """The planned episodes, as they were fixed before the first step."""
        return self._tables["ledger"] if "ledger" in self._tables else read_table(self.folder / LEDGER)

    @property
    def decided(self) -> dict[str, Any] | None:
        """The decision of a gate that ended the run before all planned episodes had run; None for other runs."""
        decided: dict[str, Any] | None = self.header.get("decided")
        return decided

    @cached_property
    def clusters(self) -> Mapping[str, str]:
        """The cluster of each planned scenario: what it shares with others, such as their map, else its own id."""
        if "cluster" not in self.ledger.column_names:
            return self._clusters_of_pack()
        each = self.ledger.select(["scenario_id", "cluster"]).group_by("scenario_id").aggregate([("cluster", "min")])
        names = each["scenario_id"].to_pylist()
        return {name: cluster or name for name, cluster in zip(names, each["cluster_min"].to_pylist(), strict=True)}

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The ids of planned episodes that have not ended."""
        ended = set(self.episodes(["episode_id"])["episode_id"].to_pylist())
        return tuple(id for id in self.ledger["episode_id"].to_pylist() if id not in ended)

    def column_names(self, table: str) -> tuple[str, ...]:
        """Return the columns of `episodes`, `agents` or `trials`."""
        if table in self._tables:
            return tuple(self._tables[table].column_names)
        path = self.folder / f"{table}.parquet"
        schema = read_schema(path) if path.exists() else table_schema(table, self._journal.names)
        return tuple(schema.names)

    def episodes(self, columns: list[str] | None = None) -> pa.Table:
        """Return one row per ended episode, optionally only some columns."""
        table = self._table("episodes", columns)
        return self._with_artifacts(table) if "artifacts" in table.column_names else table

    def agents(self, columns: list[str] | None = None) -> pa.Table:
        """Return one row per ego and attempt, optionally only some columns."""
        return self._table("agents", columns)

    def trials(self, columns: list[str] | None = None) -> pa.Table:
        """Return one row per ego, attempt and trial, optionally only some columns."""
        return self._table("trials", columns)

    def results(self) -> Iterator[EpisodeResult]:
        """Yield the ended episodes with their agents and trials, without traces, in the order of the ledger."""
        for line in self._journal.lines(self._order):
            yield decode_line(line)

    @property
    def metrics(self) -> dict[str, Any] | None:
        """The content of `metrics.json`; None before the run is sealed."""
        path = self.folder / METRICS
        if not path.exists():
            return None
        metrics = read_json(path)
        require_readable(metrics.get("schema_version"), path)
        return metrics

    @property
    def artifacts(self) -> list[Artifact]:
        """The additional files of episodes and of the run, and the reasons why others are missing."""
        return read_artifacts(self.folder)

    def add_artifact(
        self, episode_id: str | None, name: str, path: str | Path | None = None, error: str | None = None
    ) -> None:
        """List a file that was made afterwards, or the reason why it is missing."""
        add_artifact(self.folder, episode_id, name, path, error)

    @property
    def pack(self) -> Path:
        """The file of the scenarios that the run used."""
        return self.place(PACK)

    def trace(self, episode_id: str) -> Trace:
        """Return the motion of an episode."""
        path = self.place(trace_path(episode_id))
        if not path.exists():
            is_planned = episode_id in self.ledger["episode_id"].to_pylist()
            raise UsageError(
                f"{self.folder}: episode {episode_id!r} has no trace; it did not end, failed, or the run kept no traces"
                if is_planned
                else f"{self.folder}: the run has no episode {episode_id!r}"
            )
        trace = read_trace(path)
        if trace.episode_id != episode_id:
            raise RecordError(f"{path}: holds episode {trace.episode_id!r}, not {episode_id!r}; was it renamed?")
        return trace

    def place(self, path: str) -> Path:
        """Return the location of a file of the run; raise RecordError if a link leads out of the run folder."""
        place = file_inside(self.folder, path)
        if place is None:
            raise RecordError(
                f"{self.folder / path}: is, or is inside of, a link that leads out of the run folder, so it is not "
                "used; put the file itself there"
            )
        return place

    def clustered_ledger(self) -> pa.Table:
        """Return the ledger with a column `cluster`, which ledgers before schema 1.2 lack."""
        if "cluster" in self.ledger.column_names:
            return self.ledger
        names = self.ledger["scenario_id"].to_pylist()
        return self.ledger.append_column("cluster", pa.array([self.clusters[name] for name in names], pa.string()))

    def _clusters_of_pack(self) -> Mapping[str, str]:
        """Return the clusters of a run that was recorded before ledgers had them."""
        from roadworthy.scenario.pack import Pack

        clusters = {name: name for name in self.ledger["scenario_id"].to_pylist()}
        with suppress(RoadworthyError), Pack(self.pack) as pack:
            known = [number for number, name in enumerate(pack.ids) if name in clusters]
            maps = shared_maps(pack, known)
            clusters |= {pack.ids[k]: name for k, name in zip(known, maps, strict=True) if name is not None}
        return clusters

    @cached_property
    def _journal(self) -> Journal:
        return Journal(self.folder / JOURNAL)

    @cached_property
    def _order(self) -> list[str]:
        ids: list[str] = self.whole_ledger["episode_id"].to_pylist()
        return ids

    def _table(self, table: str, columns: list[str] | None) -> pa.Table:
        if table in self._tables:
            return self._tables[table] if columns is None else self._tables[table].select(columns)
        path = self.folder / f"{table}.parquet"
        if self.is_sealed or path.exists():
            return read_table(path, columns)
        names = self._journal.names
        parts = batches(self._journal.lines(self._order), names, (table,))
        whole = pa.Table.from_batches((part for (part,) in parts), schema=table_schema(table, names))
        return whole if columns is None else whole.select(columns)

    def _with_artifacts(self, table: pa.Table) -> pa.Table:
        """Return the table with the artifacts that are listed in `artifacts.jsonl`."""
        places = {id: place for place, id in enumerate(table["episode_id"].to_pylist())} if self.artifacts else {}
        if not places:
            return table
        paths = [dict(row) for row in table["artifacts"].to_pylist()]
        errors = [dict(row) for row in table["artifact_errors"].to_pylist()]
        for artifact in self.artifacts:
            place = places.get(artifact.episode_id or "")
            if place is None:
                continue
            paths[place].pop(artifact.name, None)
            errors[place].pop(artifact.name, None)
            if artifact.path is not None:
                paths[place][artifact.name] = artifact.path
            else:
                errors[place][artifact.name] = artifact.error
        for name, rows in (("artifacts", paths), ("artifact_errors", errors)):
            column = pa.array([list(row.items()) for row in rows], table.schema.field(name).type)
            table = table.set_column(table.column_names.index(name), table.schema.field(name), column)
        return table


def trace_path(episode_id: str) -> str:
    """Return the path of an episode's trace in its run folder."""
    return f"{TRACES}/{safe_name(episode_id)}.trace"


def run_folders(root: str | Path) -> list[Path]:
    """Return the run folders `<evaluator>/<run>` below a folder, sorted by name, without incomplete ones."""
    return sorted(path.parent for path in Path(root).glob(f"*/*/{RUN}") if not path.parent.name.startswith("."))


def load_run(path: str | Path) -> Run:
    """Open a run folder for reading. Nothing that the folder names is executed.

    Args:
        path: A run folder, as `runs/town/20260101T120000Z-best-1f2e3d4c`.

    Returns:
        The run: `episodes()`, `agents()` and `trials()` are its tables, `metrics` are its figures.

    Raises:
        UsageError: The path is not a run folder.
        RecordError: A file of the folder is damaged or too new.

    Example:
        >>> import roadworthy as rw
        >>> run = rw.load_run("runs/town/20260101T120000Z-best-1f2e3d4c")
        >>> run.episodes().num_rows, run.metrics["num_episodes"]
        (12, 12)
    """
    return Run(path)
