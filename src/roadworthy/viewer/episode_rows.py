"""The episodes of a run as tables for the browser, in parts: rows `start` to `end` of those that have ended.

A sealed run has its rows in the order of the ledger. An unfinished run has them in the order in which they ended, so a
row never changes its place while the run continues, and a browser that has n rows only needs those after them. `order`
says which of the two it is; when it changes, all rows are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from roadworthy.errors import RecordError
from roadworthy.record.episodes import parse_line
from roadworthy.record.files import file_inside
from roadworthy.record.journal import ColumnNames
from roadworthy.record.run import JOURNAL, TRACES, Run, trace_path
from roadworthy.record.tables import TABLES, batches, read_schema, read_table, table_schema
from roadworthy.viewer.columns import Columns
from roadworthy.viewer.figure_sums import (
    KINDS,
    Array,
    Declared,
    Lacking,
    column_values,
    declared,
    episode_sums,
    rates_of,
)

PART = 1 << 14  # rows of a part
LEDGER_ORDER, ENDED_ORDER = "ledger", "ended"
_LINES_FOR_NAMES = 256  # of an unfinished run, whose figures are those of its first episodes
_NUMBERS = ("replicate", "steps", "trials", "wall_s")
_TEXTS = ("episode_id", "scenario_id", "status", "error")


@dataclass
class JournalIndex:
    """The complete lines of a journal that is being written: their places in the file, found step by step."""

    path: Path
    ends: list[int] = field(default_factory=list)  # the offset after each line
    _file: tuple[int, int] = (0, 0)  # which file this is

    def update(self) -> None:
        """Find the lines that were appended since the last call."""
        try:
            found = self.path.stat()
        except OSError:
            self.ends = []
            return
        if (found.st_dev, found.st_ino) != self._file or found.st_size < (self.ends or [0])[-1]:
            self._file, self.ends = (found.st_dev, found.st_ino), []
        start = (self.ends or [0])[-1]
        if found.st_size == start:
            return
        with open(self.path, "rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                start += len(line)
                self.ends.append(start)

    def blocks(self, start: int, end: int) -> list[bytes]:
        """Return some lines."""
        first = self.ends[start - 1] if start else 0
        with open(self.path, "rb") as file:
            file.seek(first)
            block = file.read(self.ends[end - 1] - first) if end > start else b""
        return block.split(b"\n")[:-1]

    def lines(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the values of some lines, each of which is an episode."""
        values = [parse_line(line, str(self.path)) for line in self.blocks(start, end)]
        if any(value is None for value in values):
            raise RecordError(f"{self.path}: a line is not an episode; fix or remove it")
        return [value for value in values if value is not None]


def drives(run: Run) -> bool:
    """Return whether egos drove; in runs of other environments and of imported logs, outcomes are the figures."""
    return "job" not in run.header and "import" not in run.header


class EpisodeRows:
    """The episodes of a run that have ended."""

    def __init__(self, run: Run, journal: JournalIndex | None = None) -> None:
        """Open the rows of a run; a run that is not sealed needs the index of its journal."""
        self.run = run
        self.is_driving = drives(run)
        self._journal = journal or JournalIndex(run.folder / JOURNAL)
        self._whole: pa.Table | None = None
        if run.is_sealed:
            self.order = LEDGER_ORDER
            self._whole = run.episodes()
            self.count = len(self._whole)
        else:
            self.order = ENDED_ORDER
            self._journal.update()
            self.count = len(self._journal.ends)
        ledger = run.ledger
        self._numbers = {id: place for place, id in enumerate(ledger["episode_id"].to_pylist())}
        self._scenarios = ledger["scenario"].to_pylist() if "scenario" in ledger.column_names else None
        self._clusters: Mapping[str, str] = run.clusters
        self._missing_rows: dict[str, Array] = {}

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The first and last row of the parts, which hold PART rows each."""
        return [(start, min(start + PART, self.count)) for start in range(0, self.count, PART)]

    def episodes(self, start: int, end: int) -> Columns:
        """Return what is known of the episodes, except their figures."""
        table = self._rows(start, end)["episodes"]
        columns = Columns(end - start, start=start, order=self.order)
        ids = table["episode_id"].to_pylist()
        numbers = np.array([self._numbers.get(id, -1) for id in ids], np.int64)
        columns.numbers("number", numbers)
        for name in _TEXTS:
            columns.texts(name, table[name])
        scenarios = table["scenario_id"].to_pylist()
        clusters = [self._clusters.get(id, id) for id in scenarios]
        if clusters != scenarios:
            columns.texts("cluster", pa.chunked_array([pa.array(clusters, pa.string())]))
        columns.texts("seed", table["seed"].cast(pa.string()))
        for name in _NUMBERS:
            columns.numbers(name, table[name].to_numpy().astype(np.float32 if name == "wall_s" else np.float64))
        columns.words("tags", [tuple(tags or ()) for tags in table["tags"].to_pylist()])
        if self._scenarios is not None:
            places = [self._scenarios[number] if number >= 0 else -1 for number in numbers.tolist()]
            columns.numbers("scenario", np.array(places, np.int64))
        for name in table.column_names:
            if name.startswith(("factors.", "outcomes.")):
                is_text = pa.types.is_string(table.schema.field(name).type)
                columns.texts(name, table[name]) if is_text else columns.numbers(name, column_values(table, name))
        self._add_artifacts(columns, ids, table)
        return columns

    def sums(self, start: int, end: int, metrics: Sequence[Declared]) -> Columns:
        """Return the sums of the metrics for each episode; failed episodes have none."""
        tables = self._rows(start, end, with_parts=True)
        count = end - start
        columns = Columns(count, start=start, order=self.order)
        is_completed = np.array([status == "completed" for status in tables["episodes"]["status"].to_pylist()], bool)
        for entry in metrics:
            table = tables[entry.table]
            if not set(entry.columns) <= set(table.column_names):
                continue
            places = np.arange(count) if entry.table == "episodes" else table["episode"].to_numpy()
            episodes = np.where(is_completed[places], places, -1)
            values = [column_values(table, name) for name in entry.columns]
            for kind, sums in zip(KINDS, episode_sums(entry.metric, values, episodes, count), strict=True):
                if kind != "weight" or entry.metric.over:
                    columns.numbers(f"{entry.metric.name}.{kind}", sums)
            if self._lacking is not None:
                columns.numbers(f"{entry.metric.name}.missing", self._missing(entry)[start:end])
        return columns

    def metrics(self) -> list[Declared]:
        """Return the metrics whose sums can be computed."""
        if self.order == LEDGER_ORDER:
            names = {table: list(self.run.column_names(table)) for table in TABLES}
            assert self._whole is not None
            return declared(names, self.is_driving, frozenset() if self.is_driving else rates_of(self._whole))
        if not self.count:
            return []
        tables = self._rows(0, min(self.count, _LINES_FOR_NAMES), with_parts=True)
        names = {table: tables[table].column_names for table in TABLES}
        return declared(names, self.is_driving, frozenset() if self.is_driving else rates_of(tables["episodes"]))

    @cached_property
    def _lacking(self) -> Lacking | None:
        """The rows that failed episodes of a sealed run lack; None if there are none."""
        if self._whole is None:
            return None
        egos = self._counted("agents") if self.is_driving else np.zeros(self.count, np.int64)
        lacking = Lacking(self._whole, egos)
        return None if lacking.is_empty else lacking

    def _missing(self, entry: Declared) -> Array:
        """Return the number of rows of a metric that each episode of a sealed run lacks, (n,)."""
        assert self._lacking is not None
        assert self._whole is not None
        name = entry.metric.name
        if name not in self._missing_rows:
            if entry.table == "episodes":
                episodes, table, egos = np.arange(self.count), self._whole, None
            else:
                table = read_table(self.run.place(f"{entry.table}.parquet"), ["episode", *entry.columns])
                episodes, egos = table["episode"].to_numpy(), self._counted("agents")
            values = [column_values(table, column) for column in entry.columns]
            rows = episode_sums(entry.metric, values, episodes, self.count)[2]
            trials = self._trial_count if entry.table == "trials" else 1
            self._missing_rows[name] = self._lacking.of(rows, egos, trials)
        return self._missing_rows[name]

    @cached_property
    def _trial_count(self) -> int:
        trials = read_table(self.run.place("trials.parquet"), ["trial"])["trial"].to_numpy()
        return int(trials.max(initial=0)) + 1

    def _counted(self, table: str) -> NDArray[np.int64]:
        """Return the number of rows of each episode in a table of a sealed run, (n,)."""
        episodes = read_table(self.run.place(f"{table}.parquet"), ["episode"])["episode"].to_numpy()
        return np.bincount(episodes, minlength=self.count)

    def _rows(self, start: int, end: int, with_parts: bool = False) -> dict[str, pa.Table]:
        """Return the tables of some episodes; `episode` counts from the first of them."""
        if self._whole is None:
            return _tables_of_lines(self._journal.lines(start, end), TABLES if with_parts else TABLES[:1])
        found = {"episodes": self._whole.slice(start, end - start)}
        for table in TABLES[1:] if with_parts else ():
            found[table] = self._part(table, start, end)
        return found

    def _part(self, table: str, start: int, end: int) -> pa.Table:
        path = self.run.place(f"{table}.parquet")
        names = [name for name in read_schema(path).names if name == "episode" or name.startswith("figures.")]
        try:
            part = pq.read_table(path, columns=names, filters=[("episode", ">=", start), ("episode", "<", end)])
        except (pa.ArrowException, OSError) as error:
            raise RecordError(f"{path}: can't be read as parquet: {error}") from error
        moved = pa.chunked_array([pa.array(part["episode"].to_numpy() - start)])
        return part.set_column(part.column_names.index("episode"), "episode", moved)

    def _add_artifacts(self, columns: Columns, ids: list[str], table: pa.Table) -> None:
        """Add whether there is a trace, and the other artifacts as objects."""
        rows = [dict(row or ()) for row in table["artifacts"].to_pylist()]
        has_trace = [_is_trace(row.pop("trace", None), id) for row, id in zip(rows, ids, strict=True)]
        columns.numbers("has_trace", np.array(has_trace, bool))
        columns.words("artifacts", [{n: p for n, p in row.items() if file_inside(self.run.folder, p)} for row in rows])
        columns.words("artifact_errors", [dict(row or ()) for row in table["artifact_errors"].to_pylist()])


def _is_trace(path: str | None, id: str) -> bool:
    """Return whether a path is where the trace of an episode is; most ids are plain, and quoting them takes time."""
    return path is not None and (path == f"{TRACES}/{id}.trace" or path == trace_path(id))


def _tables_of_lines(lines: Sequence[dict[str, Any]], tables: Sequence[str]) -> dict[str, pa.Table]:
    names = ColumnNames()
    for line in lines:
        names.add(line)
    parts = list(batches(lines, names, tuple(tables)))
    return {
        table: pa.Table.from_batches([part[place] for part in parts], table_schema(table, names))
        for place, table in enumerate(tables)
    }
