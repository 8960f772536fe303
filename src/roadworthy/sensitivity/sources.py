"""Load rows from run folders, folders of several runs, output folders of jobs, files, and logs of other tools.

Rows of a run are completed with factors that can be derived from it (see `driving`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.plugins import known
from roadworthy.record import Run
from roadworthy.record.files import file_inside, read_json
from roadworthy.record.readers import GROUP, find_reader, load_reader
from roadworthy.record.readers.row_files import read_row_file
from roadworthy.sensitivity.factors import Factor
from roadworthy.sensitivity.names import find

RUN, JOBS, LEDGER = "run.json", "jobs.json", "ledger.parquet"
FOLDER_FILES = ("episodes.parquet", "episodes.jsonl", "episode_summary.jsonl")


def load_rows(
    path: str | Path, factors: Sequence[Factor] | None = (), reader: str | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a run folder, a folder of runs or jobs, a .jsonl or .parquet file, or another tool's log.

    Args:
        path: Where the rows are.
        factors: Rows of runs are completed with those of these factors that can be derived. None: rows of driving runs
            are completed with the factors that every driving run has.
        reader: The reader for the log of another tool: a registered name, `module:Name` or `file.py:Name`. None: run
            folders are recognized first, then the logs that a registered reader detects.
    """
    path = Path(path)
    if reader is not None:
        return load_reader(reader).read(path)
    runs = runs_in(path) if path.is_dir() else []
    if runs:
        return [row for run in runs for row in _completed(run, read_row_file(_file(run)), factors)]
    found = find_reader(path)
    if found is not None:
        return found.read(path)
    if path.is_dir():
        names = ", ".join((*FOLDER_FILES, JOBS))
        raise UsageError(
            f"folder {str(path)!r} holds none of {names}, nor a log that a reader detects ({', '.join(known(GROUP))}); "
            "name a run folder, a folder of several runs, or the output folder of jobs"
        )
    return read_row_file(path)


def runs_in(folder: Path) -> list[Path]:
    """Return the folders with rows in a folder: itself, the last run of each job, or all runs below it."""
    if any((folder / name).is_file() for name in FOLDER_FILES):
        return [folder]
    if (folder / JOBS).is_file():
        entries = json.loads((folder / JOBS).read_text(encoding="utf-8"))["jobs"]
        places = [file_inside(folder, entry["run"]) for entry in entries if entry.get("run")]
        runs = [place for place in places if place is not None]  # paths that lead out of the folder are ignored
    else:
        found = [*folder.glob(f"*/{RUN}"), *folder.glob(f"*/*/{RUN}")]
        runs = sorted(file.parent for file in found if not file.parent.name.startswith("."))
    return [run for run in runs if any((run / name).is_file() for name in FOLDER_FILES)]


def _file(run: Path) -> Path:
    return next(run / name for name in FOLDER_FILES if (run / name).is_file())


def _completed(run: Path, rows: list[dict[str, Any]], factors: Sequence[Factor] | None) -> list[dict[str, Any]]:
    """Return the rows of a run with missing factors derived from the run.

    The scenario id of a job's episode is its number, which is not comparable between jobs, so it is removed.
    """
    if (run / RUN).is_file() and "job" in read_json(run / RUN):
        rows = [{key: value for key, value in row.items() if key != "scenario_id"} for row in rows]
    rows = _with_clusters(run, rows)
    if factors is None:
        from roadworthy.sensitivity.driving import with_start_factors

        return with_start_factors(run, rows) if (run / RUN).is_file() else rows
    tables = [table_of(row, "factors") for row in rows]
    missing = [factor for factor in factors if any(_is_missing(factor.name, table) for table in tables)]
    if not missing or not (run / RUN).is_file():
        return rows
    from roadworthy.sensitivity.driving import derived

    found = derived(run, rows, missing)
    return [
        {**row, "factors": {**{name: value for name, value in more.items() if value is not None}, **table}}
        for row, table, more in zip(rows, tables, found, strict=True)
    ]


def _with_clusters(run: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a run with what their scenarios share, such as a map."""
    if not (run / RUN).is_file() or not (run / LEDGER).is_file() or any("scenario_id" not in row for row in rows):
        return rows
    names = Run(run).clusters
    return [{"cluster": names.get(row["scenario_id"], row["scenario_id"]), **row} for row in rows]


def _is_missing(name: str, table: Mapping[str, Any]) -> bool:
    try:
        return find(name, {"factors": table}) is None
    except ValueError:  # the name is ambiguous, so the row is rejected later
        return False


def factor_tables(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables of a row that may hold a factor, by name, in the order in which they are searched."""
    return {key: table_of(row, key) for key in ("factors", "variations", "arena_env_args", "arguments")}


def table_of(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a dict of a row from a dict, JSON text, pairs, `key.name` columns, or `--name value` arguments."""
    value = row.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{key} is text that is not JSON: {value[:40]!r}") from error
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if all(isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2 for item in value):
            return {str(name): item for name, item in value}
        return _arguments([str(item) for item in value])
    prefix = f"{key}."
    return {name.removeprefix(prefix): item for name, item in row.items() if name.startswith(prefix)}


def _arguments(words: list[str]) -> dict[str, Any]:
    """Return the values of `--name value` arguments; numbers and booleans are parsed."""
    found: dict[str, Any] = {}
    for word, value in pairwise(words):
        if word.startswith("--") and not value.startswith("--"):
            try:
                found[word[2:]] = json.loads(value)
            except json.JSONDecodeError:
                found[word[2:]] = value
    return found
