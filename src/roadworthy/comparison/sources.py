"""Find the runs that paths name: a run folder, the newest run of a folder of runs, or every section of an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.record import Run
from roadworthy.record.references import FOLDER as REFERENCES
from roadworthy.record.run import RUN

LOGS = (".jsonl", ".json", ".csv", ".eval", ".parquet")  # files of other tools, which can be imported


def find_runs(source: Run | str | Path | Sequence[Run]) -> dict[str, Run]:
    """Return the runs that a source names, by section.

    Args:
        source: A run; runs, as `evaluate` returns them; a run folder; a folder of the runs of one section, of which the
            newest complete one counts; or a folder with several sections.
    """
    if isinstance(source, Run):
        return {_section(source): source}
    if not isinstance(source, str | Path):
        found = {_section(run): run for run in source}
        if not found:
            raise UsageError("no run was given to compare; the evaluation has no complete run")
        return found
    path = Path(source)
    if path.name == RUN and path.is_file():
        raise UsageError(f"{path}: is the file of a run; name its folder, {path.parent}")
    if path.is_file():
        hint = f"; import it first: roadworthy results import {path}" if path.suffix.lower() in LOGS else ""
        raise UsageError(f"{path}: is a file, but runs are folders{hint}")
    if not path.is_dir():
        raise UsageError(f"{path}: there is no such folder; name a run folder, or a folder of runs")
    if (path / RUN).is_file():
        run = Run(path)
        return {_section(run): run}
    newest = _newest(path)
    if newest is not None:
        return {_section(newest): newest}
    sections = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and folder.name != REFERENCES]
    all_newest = [_newest(folder) for folder in sections]
    found = {_section(run): run for run in all_newest if run is not None}
    if not found:
        raise UsageError(f"{path}: holds no complete run, neither directly nor one folder deeper; name a run folder")
    return found


def holds_runs(path: Path) -> bool:
    """Return whether a folder has runs, directly or one folder deeper."""
    return any(True for depth in ("*", "*/*") for _ in path.glob(f"{depth}/{RUN}"))


def _section(run: Run) -> str:
    return str(run.header.get("evaluator", ""))


def _newest(folder: Path) -> Run | None:
    """Return the newest complete run directly in a folder."""
    found = []
    for path in folder.glob(f"*/{RUN}"):
        if not path.parent.name.startswith("."):
            try:
                run = Run(path.parent)
            except RoadworthyError:
                continue
            if run.is_sealed:
                found.append(run)
    return max(found, key=lambda run: (str(run.header.get("created")), run.folder.name), default=None)


def shared_sections(sources: Sequence[Mapping[str, Run]]) -> tuple[dict[str, tuple[Run, ...]], list[str]]:
    """Return the runs of each section that all sources have, and the sections that only some have.

    Sources with one run each are compared whatever their sections are called.
    """
    if all(len(source) == 1 for source in sources):
        runs = tuple(next(iter(source.values())) for source in sources)
        names = list(dict.fromkeys(_section(run) for run in runs))
        return {" and ".join(names): runs}, []
    names = list(dict.fromkeys(name for source in sources for name in source))
    shared = {name: tuple(s[name] for s in sources) for name in names if all(name in s for s in sources)}
    if not shared:
        listed = "; ".join(", ".join(source) for source in sources)
        raise UsageError(f"the folders share no section: {listed}; name run folders to compare them anyway")
    return shared, [name for name in names if name not in shared]


def labels(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run that tells it apart: its policy, with step or run id where policies are equal."""
    names = [str(run.header.get("policy", run.folder.name)) for run in runs]
    for key, word in (("step", "step "), ("run_id", "")):
        if len(set(names)) < len(names):
            doubled = {name for name in names if names.count(name) > 1}
            values = [run.header.get(key) for run in runs]
            if len(set(map(str, values))) > 1:
                names = [
                    f"{name} {word}{value}" if name in doubled and value is not None else name
                    for name, value in zip(names, values, strict=True)
                ]
    if len(set(names)) < len(names):  # one run twice
        names = [f"{name} ({place + 1})" for place, name in enumerate(names)]
    return names
