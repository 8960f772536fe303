"""Where rows come from: run folders, folders of several runs, output folders of jobs, and files.

Rows of a run are completed by what can be derived of it: see `driving`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.record.files import file_inside, read_json
from roadworthy.record.readers import arena
from roadworthy.sensitivity.factors import Factor
from roadworthy.sensitivity.names import find

RUN, JOBS = "run.json", "jobs.json"
FOLDER_FILES = ("episodes.parquet", "episodes.jsonl", "episode_summary.jsonl")
ENDINGS = (".jsonl", ".parquet")


def load_rows(path: str | Path, factors: Sequence[Factor] = ()) -> list[dict[str, Any]]:
    """The rows of a folder, a .jsonl or a .parquet file; those of runs with the factors that can be derived."""
    path = Path(path)
    if path.is_dir():
        runs = _runs(path)
        results = [] if runs else sorted(file for file in path.rglob("*.jsonl") if arena.FILES.fullmatch(file.name))
        if results:
            return [row for file in results for row in _load_jsonl(file)]
        if not runs:
            known = ", ".join((*FOLDER_FILES, JOBS, "episode_results*.jsonl"))
            raise UsageError(
                f"folder {str(path)!r} holds none of {known}; name a run folder, one of several runs, or that of jobs"
            )
        return [row for run in runs for row in _completed(run, load_rows(_file(run)), factors)]
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{str(path)!r} is neither a folder nor ends in {' or '.join(ENDINGS)}")
    if not path.is_file():
        raise UsageError(f"{str(path)!r} does not exist; name a run folder or a file of rows")
    return _load_parquet(path) if path.suffix.lower() == ".parquet" else _load_jsonl(path)


def _runs(folder: Path) -> list[Path]:
    """The folders with rows that a folder stands for: itself, the last run of each job, or all runs below it."""
    if any((folder / name).is_file() for name in FOLDER_FILES):
        return [folder]
    if (folder / JOBS).is_file():
        entries = json.loads((folder / JOBS).read_text(encoding="utf-8"))["jobs"]
        places = [file_inside(folder, entry["run"]) for entry in entries if entry.get("run")]
        runs = [place for place in places if place is not None]  # a run of a stranger names nothing elsewhere
    else:
        found = [*folder.glob(f"*/{RUN}"), *folder.glob(f"*/*/{RUN}")]
        runs = sorted(file.parent for file in found if not file.parent.name.startswith("."))
    return [run for run in runs if any((run / name).is_file() for name in FOLDER_FILES)]


def _file(run: Path) -> Path:
    return next(run / name for name in FOLDER_FILES if (run / name).is_file())


def _completed(run: Path, rows: list[dict[str, Any]], factors: Sequence[Factor]) -> list[dict[str, Any]]:
    """Rows of a run with the factors that they lack and that it tells otherwise.

    The scenario of a job's episode is its number, which means nothing beside that of another job, so it is left out.
    """
    if (run / RUN).is_file() and "job" in read_json(run / RUN):
        rows = [{key: value for key, value in row.items() if key != "scenario_id"} for row in rows]
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


def _is_missing(name: str, table: Mapping[str, Any]) -> bool:
    try:
        return find(name, {"factors": table}) is None
    except ValueError:  # it stands for several, which the row is left out for
        return False


def factor_tables(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables of a row that may hold a factor, by name, in the order in which they are searched."""
    return {key: table_of(row, key) for key in ("factors", "variations", "arena_env_args", "arguments")}


def table_of(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A row's dict: as such, as JSON text, as pairs, as `key.name` columns, or as `--name value` arguments."""
    value = row.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{key} is text that is no JSON: {value[:40]!r}") from error
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if all(isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2 for item in value):
            return {str(name): item for name, item in value}
        return _arguments([str(item) for item in value])
    prefix = f"{key}."
    return {name.removeprefix(prefix): item for name, item in row.items() if name.startswith(prefix)}


def _arguments(words: list[str]) -> dict[str, Any]:
    """The values of `--name value` in a list of command-line words; numbers and booleans as such."""
    found: dict[str, Any] = {}
    for word, value in pairwise(words):
        if word.startswith("--") and not value.startswith("--"):
            try:
                found[word[2:]] = json.loads(value)
            except json.JSONDecodeError:
                found[word[2:]] = value
    return found


def _load_jsonl(path: Path) -> list[dict[str, Any]]:
    rows = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                if not line.endswith("\n"):  # the writer was killed in the middle of the last line
                    rows.append({"episode_id": f"line {number}, cut off"})
                    continue
                raise UsageError(f"{path}, line {number}: not JSON: {error.msg}; mend or remove the line") from error
            if not isinstance(row, dict):
                raise UsageError(f"{path}, line {number}: expected an object, one row per line")
            rows.append(arena.from_arena_result(row) if arena.is_arena_result(row) else row)
    return rows


def _load_parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise UsageError(f"{path}: can't be read as parquet: {error}") from error
    # Fields beyond the columns of a run's table, such as the density, stand together as JSON.
    return [{**row, **json.loads(row["more"])} if isinstance(row.get("more"), str) else row for row in rows]
