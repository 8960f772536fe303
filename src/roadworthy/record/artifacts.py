"""`artifacts.jsonl`: files that belong to a run or to one of its episodes, and the reasons why others are missing.

Videos, reports and sinks are made after an episode has ended, some after the run was sealed. They never change a
result, so they are listed separately, one line each. The last line for an episode and name counts.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from roadworthy.errors import UsageError
from roadworthy.record.files import file_inside, naming
from roadworthy.record.schema import VERSION, require_readable

FILE = "artifacts.jsonl"
LEADS_OUT = "leads out of the run folder, so it is not read"


@dataclass(frozen=True)
class Artifact:
    """A file, or the reason why it is missing."""

    episode_id: str | None  # None: belongs to the whole run
    name: str
    path: str | None  # relative to the run folder, with slashes
    error: str | None


def add_artifact(
    folder: Path, episode_id: str | None, name: str, path: str | Path | None = None, error: str | None = None
) -> Artifact:
    """List a file of a run folder, or the reason why it is missing. Needs no lock, because a line is one write."""
    if (path is None) == (error is None):
        raise UsageError(f"artifact {name!r} has path {path!r} and error {error!r}; give one of the two")
    relative = None
    if path is not None:
        place = Path(os.path.normpath(folder / path))
        if not place.is_relative_to(folder):
            raise UsageError(f"artifact {name!r} is at {path}, outside of its run folder {folder}; write it there")
        relative = place.relative_to(folder).as_posix()
        if file_inside(folder, relative) is None:
            raise UsageError(
                f"artifact {name!r} is at {path}, which a link leads out of the run folder; remove the link"
            )
        if not place.exists():
            relative, error = None, f"{relative} was not written"
    if file_inside(folder, FILE) is None:  # appending would write to a file outside of the run folder
        raise UsageError(f"{folder / FILE} is a link that leads out of the run folder; remove it")
    artifact = Artifact(episode_id, name, relative, error)
    line = json.dumps({"schema_version": VERSION, **asdict(artifact)}, ensure_ascii=False)
    with naming(folder / FILE), open(folder / FILE, "ab", buffering=0) as file:
        # The newline before it keeps the line intact after an incomplete line of a killed writer.
        file.write(f"\n{line}\n".encode())
    return artifact


def read_artifacts(folder: Path) -> list[Artifact]:
    """Return the last artifact for each episode and name; incomplete lines of a killed writer are skipped."""
    found: dict[tuple[str | None, str], Artifact] = {}
    path = folder / FILE
    lines = path.read_bytes().splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line) if line.strip() else None
        except ValueError:
            continue
        if values is None:
            continue
        require_readable(values["schema_version"], f"{path}, line {number}")
        artifact = Artifact(values["episode_id"], values["name"], values["path"], values["error"])
        if artifact.path is not None and file_inside(folder, artifact.path) is None:
            artifact = replace(artifact, path=None, error=f"{artifact.path!r} {LEADS_OUT}")
        found[artifact.episode_id, artifact.name] = artifact
    return list(found.values())
