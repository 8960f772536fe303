"""Read Isaac Lab Arena's per-episode results, `episode_results*.jsonl`.

One line is one episode: `variations` holds its factors, the top level its results.

    {"job_name": "pick", "env_id": 3, "episode_in_env": 0, "seed": 42, "success": true, "episode_length": 204,
     "language_instruction": "...", "variations": {"light.intensity": 812.5, "wrist_camera": [0.01, -0.02, 0.0]}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError
from roadworthy.record.readers.log import Log, Record, Role
from roadworthy.record.readers.row_files import first_row, read_jsonl
from roadworthy.record.readers.row_streams import Skip, json_lines

_FILES = re.compile(r"episode_results(_rebuild\d+)?(_rank\d+)?\.jsonl")
_NOT_OUTCOMES = ("env_id", "episode_in_env", "seed")  # numbers that identify the episode
EPISODE = "episode"  # a column that the reader adds: the environment and the number of the episode in it
_NAME = {"job_name": "", "env_id": "env ", "episode_in_env": "episode "}


_ROLES = {
    "job_name": Role.JOB,
    "env_id": Role.ENVIRONMENT,
    "episode_in_env": Role.IGNORE,
    EPISODE: Role.SCENARIO,
    "seed": Role.SEED,
    "success": Role.SUCCESS,
    "episode_length": Role.LENGTH,
    "timestamp": Role.ORDER,
    "variations.*": Role.FACTOR,
    "variations": Role.IGNORE,
    "progress.*": Role.OUTCOME,
}


class ArenaReader:
    """Reads a file of Arena's results, or all `episode_results*.jsonl` below a folder."""

    def detects(self, path: Path) -> bool:
        """Return whether a folder has such files, or the first line of a .jsonl file is such a result."""
        if path.is_dir():
            return bool(_files(path))
        return path.suffix.lower() == ".jsonl" and is_result(first_row(path))

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows; lines of another form stay as they are."""
        rows = [row for file in (_files(path) if path.is_dir() else [path]) for row in read_jsonl(file)]
        return [episode_row(row) if is_result(row) else row for row in rows]

    def open(self, path: Path, skip: Skip | None = None) -> Log:
        """Return the log; the scenario is the environment with the number of the episode in it."""

        def records() -> Iterator[Record]:
            is_folder = path.is_dir()
            for file in _files(path) if is_folder else [path]:
                build = _FILES.fullmatch(file.name)
                prefix = "".join(_build(part) for part in (build.groups() if build else ()) if part)
                for record in json_lines(file, skip):
                    lacking = [name for name in ("env_id", "success") if name not in record.values]
                    if lacking:
                        raise RecordError(
                            f"{file}, {record.place}: lacks {' and '.join(lacking)}, so it is not an episode result of "
                            "Isaac Lab Arena; are two formats in one file?"
                        )
                    values = record.values
                    if "episode_in_env" in values:
                        name = f"{prefix}env-{values['env_id']}-episode-{values['episode_in_env']}"
                        values = {**values, EPISODE: name}
                    yield Record(f"{file.name}, {record.place}" if is_folder else record.place, values)

        return Log(path, "arena", records, _ROLES)


def _build(part: str) -> str:
    """Return the words for a rebuild or rank in the name of a file; the first rebuild needs none."""
    word = part.strip("_")
    return "" if word == "rebuild0" else f"{word}-"


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.jsonl") if _FILES.fullmatch(file.name))


def is_result(row: Mapping[str, Any]) -> bool:
    return "outcomes" not in row and ("variations" in row or ("env_id" in row and "success" in row))


def episode_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a result into a row with `factors` and `outcomes`.

    Every boolean or number at the top level is an outcome, and so are those in `progress`. A success that was not
    judged is null there and missing here. All lines of a build share the seed of the simulator, so episodes are
    numbered by environment and position there: two jobs with one seed have the same draws.
    """
    outcomes = {name: value for name, value in row.items() if name not in _NOT_OUTCOMES and _is_outcome(value)}
    progress = row.get("progress")
    if isinstance(progress, Mapping):
        outcomes |= {f"progress.{name}": value for name, value in progress.items() if _is_outcome(value)}
    kept = {name: row[name] for name in ("job_name", "language_instruction", "timestamp", "status") if name in row}
    name = " ".join(f"{word}{row.get(key, '?')}" for key, word in _NAME.items())
    renamed = {"env": "env_id", "steps": "episode_length", "seed": "seed"}
    return {
        **kept,
        **{name: row[theirs] for name, theirs in renamed.items() if theirs in row},
        "episode_id": name,
        "episode_idx": f"{row.get('env_id', '?')}/{row.get('episode_in_env', '?')}",
        "factors": dict(row.get("variations") or {}),
        "outcomes": outcomes,
    }


def _is_outcome(value: Any) -> bool:
    return isinstance(value, bool | int | float)
