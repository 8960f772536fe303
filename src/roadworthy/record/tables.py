"""Tables of a run: episodes, agents and trials as columns, in memory and as parquet files.

Nested values become columns with a prefix: `factors.grip` and `outcomes.score` of episodes, `figures.score` of agents
and trials. Every table has `episode_id` and `scenario_id`. In the tables of agents and trials, `episode` is the row
number of their episode in its table. Rows are in the order of the ledger, so equal results give equal tables whatever
the order in which episodes ended.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roadworthy.errors import RecordError
from roadworthy.record.episodes import AGENT_NUMBERS, TRACK_ID, TRIAL_NUMBERS, more_fields
from roadworthy.record.files import naming
from roadworthy.record.journal import ColumnNames
from roadworthy.record.schema import VERSION, require_readable

TABLES = ("episodes", "agents", "trials")
_VERSION_KEY = b"roadworthy.schema_version"
_ROWS = {"agents": "agent_rows", "trials": "trial_rows"}  # the keys in a line of the journal
_EPISODES_AT_ONCE = 1024
_WORDS = pa.map_(pa.string(), pa.string())
_EPISODE_COLUMNS: dict[str, pa.DataType] = {
    "episode_id": pa.string(),
    "evaluator": pa.string(),
    "scenario_id": pa.string(),
    "seed": pa.uint64(),
    "replicate": pa.int32(),
    "world": pa.int32(),
    "slot": pa.int32(),
    "first_step": pa.int64(),
    "last_step": pa.int64(),
    "steps": pa.int64(),
    "trials": pa.int32(),
    "status": pa.string(),
    "wall_s": pa.float64(),
    "error": pa.string(),
    "tags": pa.list_(pa.string()),
    "artifacts": _WORDS,
    "artifact_errors": _WORDS,
    "more": pa.string(),  # JSON of fields that a later minor version added, else null
}
_PART_COLUMNS = {name: pa.int32() for name in ("agent", "attempt", "trial")} | {
    name: pa.int64() for name in ("first_step", "last_step", TRACK_ID)
}


def table_schema(table: str, names: ColumnNames) -> pa.Schema:
    """Return the columns of a table that holds these names."""
    if table == "episodes":
        columns = list(_EPISODE_COLUMNS.items())
        columns += [(f"factors.{n}", pa.string() if names.factors[n] else pa.float64()) for n in sorted(names.factors)]
        columns += [(f"outcomes.{name}", pa.float64()) for name in sorted(names.outcomes)]
    else:
        columns = [("episode_id", pa.string()), ("episode", pa.int64()), ("scenario_id", pa.string())]
        columns += [(name, _PART_COLUMNS[name]) for name in _numbers(table)]
        columns += [(f"figures.{name}", pa.float64()) for name in sorted(getattr(names, table))]
    return pa.schema(columns, {_VERSION_KEY: VERSION.encode()})


def batches(
    lines: Iterable[dict[str, Any]], names: ColumnNames, tables: Sequence[str] = TABLES
) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Yield tables in batches, one batch of each table at a time, from one pass over the journal's lines.

    Each line is appended to long columns at once: keeping thousands of parsed lines would cost more time in the garbage
    collector than reading them does.
    """
    builders = [_EpisodeBuilder(names) if table == "episodes" else _PartBuilder(table, names) for table in tables]
    number = -1
    for number, line in enumerate(lines):
        if number and number % _EPISODES_AT_ONCE == 0:
            yield tuple(builder.take() for builder in builders)
        for builder in builders:
            builder.add(number, line)
    if number >= 0:
        yield tuple(builder.take() for builder in builders)


def write_tables(folder: Path, lines: Iterable[dict[str, Any]], names: ColumnNames) -> dict[str, pa.Table]:
    """Write all tables of a run folder, each atomically; return them unless they are too long to keep in memory."""
    whole: dict[str, pa.Table] = {}
    paths = [folder / f"{table}.parquet" for table in TABLES]
    with ExitStack() as stack:
        schemas = [table_schema(table, names) for table in TABLES]
        files = [stack.enter_context(_writing(path, schema)) for path, schema in zip(paths, schemas, strict=True)]
        for number, parts in enumerate(batches(lines, names)):
            for path, file, part in zip(paths, files, parts, strict=True):
                with naming(path):
                    file.write(part)
            # Keep a single part only: all parts of a long run could fill the memory.
            whole = {} if number else dict(zip(TABLES, (pa.Table.from_batches([part]) for part in parts), strict=True))
    return whole


def write_table(path: Path, schema: pa.Schema, parts: Iterable[pa.RecordBatch | pa.Table]) -> None:
    """Write a parquet file from parts, atomically."""
    with _writing(path, schema) as file:
        for part in parts:
            file.write(part)


@contextmanager
def _writing(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Open a parquet file under a temporary name and rename it when it is complete."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with naming(path):
            with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
                yield writer
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a parquet file of a run folder, optionally only some columns."""
    with _opened(path) as file:
        return file.read(columns)


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a parquet file of a run folder."""
    with _opened(path) as file:
        return file.schema_arrow


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            version = (file.schema_arrow.metadata or {}).get(_VERSION_KEY, b"")
            require_readable(version.decode(), path)
            yield file
    except FileNotFoundError:
        raise RecordError(f"{path}: there is no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path}: can't be read as parquet: {error}") from error


def with_version(table: pa.Table) -> pa.Table:
    """Return a table with the schema version in its metadata, for writing."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _VERSION_KEY: VERSION.encode()})


def _numbers(table: str) -> tuple[str, ...]:
    return (*AGENT_NUMBERS, TRACK_ID) if table == "agents" else TRIAL_NUMBERS


class _Builder(ABC):
    """Collects the columns of a table line by line."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns: dict[str, list[Any]] = {f.name: [] for f in schema}
        # Nested values: the column, the name of the table in a line, and the key in it.
        self._inner = [(column, *name.partition(".")[::2]) for name, column in self._columns.items() if "." in name]

    @abstractmethod
    def add(self, number: int, line: dict[str, Any]) -> None:
        """Add the rows of a line; `number` counts all lines from 0."""

    def take(self) -> pa.RecordBatch:
        """Return the rows added since the last call."""
        arrays = [pa.array(self._columns[f.name], f.type) for f in self._schema]
        for column in self._columns.values():
            column.clear()
        return pa.record_batch(arrays, schema=self._schema)


class _EpisodeBuilder(_Builder):
    """A row for each line."""

    def __init__(self, names: ColumnNames) -> None:
        super().__init__(table_schema("episodes", names))
        self._own = [name for name, kind in _EPISODE_COLUMNS.items() if name != "more" and kind != _WORDS]
        self._maps = [name for name, kind in _EPISODE_COLUMNS.items() if kind == _WORDS]
        self._words = {name for name, is_text in names.factors.items() if is_text}

    def add(self, number: int, line: dict[str, Any]) -> None:
        for name in self._own:
            self._columns[name].append(line.get(name))
        for name in self._maps:
            self._columns[name].append(list(line.get(name, {}).items()))
        for column, table, key in self._inner:
            value = line.get(table, {}).get(key)
            is_word = table == "factors" and key in self._words and value is not None
            column.append(str(value) if is_word else value)
        more = more_fields(line)
        self._columns["more"].append(json.dumps(more) if more else None)


class _PartBuilder(_Builder):
    """A row for each agent, or for each trial, of a line."""

    def __init__(self, table: str, names: ColumnNames) -> None:
        super().__init__(table_schema(table, names))
        self._rows, self._numbers = _ROWS[table], _numbers(table)

    def add(self, number: int, line: dict[str, Any]) -> None:
        part, columns = line.get(self._rows) or {}, self._columns
        count = len(part.get("agent", ()))
        columns["episode_id"] += [line["episode_id"]] * count
        columns["episode"] += [number] * count
        columns["scenario_id"] += [line["scenario_id"]] * count
        for name in self._numbers:
            columns[name] += part.get(name, [None] * count)
        figures = part.get("figures", {})
        for column, _, name in self._inner:
            column += figures.get(name) or [None] * count
