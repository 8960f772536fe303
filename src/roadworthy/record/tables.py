"""Tables of a run: episodes, agents and trials as columns, in memory and as parquet files.

Tables within rows become columns with a prefix: `factors.grip`, `outcomes.score` of episodes, `figures.score` of agents
and trials. Every table has `episode_id` and `scenario_id`; in those of agents and trials `episode` is the row of their
episode in its table. Rows stand in the order of the ledger, agents and trials in that of their episodes, so that equal
results give equal tables in whatever order they came in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roadworthy.errors import RoadworthyError
from roadworthy.record.episodes import AGENT_NUMBERS, TRIAL_NUMBERS, more_fields
from roadworthy.record.files import naming
from roadworthy.record.journal import ColumnNames
from roadworthy.record.schema import VERSION, require_readable

TABLES = ("episodes", "agents", "trials")
_VERSION_KEY = b"roadworthy.schema_version"
_ROWS = {"agents": "agent_rows", "trials": "trial_rows"}  # where a line of the journal has them
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
    name: pa.int64() for name in ("first_step", "last_step")
}


def table_schema(table: str, names: ColumnNames) -> pa.Schema:
    """The columns of a table with these names in it."""
    if table == "episodes":
        columns = list(_EPISODE_COLUMNS.items())
        columns += [(f"factors.{n}", pa.string() if names.factors[n] else pa.float64()) for n in sorted(names.factors)]
        columns += [(f"outcomes.{name}", pa.float64()) for name in sorted(names.outcomes)]
    else:
        columns = [("episode_id", pa.string()), ("episode", pa.int64()), ("scenario_id", pa.string())]
        columns += [(name, _PART_COLUMNS[name]) for name in _numbers(table)]
        columns += [(f"figures.{name}", pa.float64()) for name in sorted(getattr(names, table))]
    return pa.schema(columns, {_VERSION_KEY: VERSION.encode()})


def batches(table: str, lines: Iterable[dict[str, Any]], names: ColumnNames) -> Iterator[pa.RecordBatch]:
    """A table in parts, from the values of the journal's lines."""
    schema = table_schema(table, names)
    rest, first = iter(lines), 0
    while part := list(islice(rest, _EPISODES_AT_ONCE)):
        columns = _episode_columns(part, schema) if table == "episodes" else _part_columns(table, part, schema, first)
        first += len(part)
        yield pa.record_batch([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def write_table(path: Path, schema: pa.Schema, parts: Iterable[pa.RecordBatch | pa.Table]) -> None:
    """Write a parquet file from parts, whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with naming(path):
            with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
                for part in parts:
                    writer.write(part)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a parquet file of a run folder, or some of its columns."""
    with _opened(path) as file:
        return file.read(columns)


def read_schema(path: Path) -> pa.Schema:
    """The columns of a parquet file of a run folder."""
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
        raise RoadworthyError(f"{path}: there is no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise RoadworthyError(f"{path}: can't be read as parquet: {error}") from error


def with_version(table: pa.Table) -> pa.Table:
    """A table that names its version, for writing."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _VERSION_KEY: VERSION.encode()})


def _numbers(table: str) -> tuple[str, ...]:
    return AGENT_NUMBERS if table == "agents" else TRIAL_NUMBERS


def _episode_columns(lines: list[dict[str, Any]], schema: pa.Schema) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for f in schema:
        group, dot, name = f.name.partition(".")
        if dot:
            values = [line.get(group, {}).get(name) for line in lines]
            is_text = pa.types.is_string(f.type)
            columns[f.name] = [None if v is None else str(v) for v in values] if is_text else values
        elif f.name == "more":
            more = [more_fields(line) for line in lines]
            columns[f.name] = [json.dumps(values) if values else None for values in more]
        elif f.type == _WORDS:
            columns[f.name] = [list(line.get(f.name, {}).items()) for line in lines]
        else:
            columns[f.name] = [line.get(f.name) for line in lines]
    return columns


def _part_columns(table: str, lines: list[dict[str, Any]], schema: pa.Schema, first: int) -> dict[str, list[Any]]:
    """The columns of agents or trials, from lines of which the first one is number `first` of all."""
    columns: dict[str, list[Any]] = {f.name: [] for f in schema}
    numbers = _numbers(table)
    figures = [f.name.removeprefix("figures.") for f in schema if f.name.startswith("figures.")]
    for number, line in enumerate(lines, first):
        part = line.get(_ROWS[table]) or {}
        count = len(part.get(numbers[0], ()))
        columns["episode_id"] += [line["episode_id"]] * count
        columns["episode"] += [number] * count
        columns["scenario_id"] += [line["scenario_id"]] * count
        for name in numbers:
            columns[name] += part.get(name, [None] * count)
        given = part.get("figures", {})
        for name in figures:
            columns[f"figures.{name}"] += given.get(name, [None] * count)
    return columns
