"""Import logs of other tools as run folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError, RoadworthyError, UsageError
from roadworthy.record.files import file_inside, folder_name, read_json
from roadworthy.record.readers import open_log
from roadworthy.record.readers.conversion import file_hash
from roadworthy.record.readers.log import Role, printable
from roadworthy.record.readers.mapping import ColumnMapping
from roadworthy.record.run import RUN, Run
from roadworthy.results.folders import run_names, write_runs
from roadworthy.results.scan import Scan, scan

Progress = Callable[[int, int], None]
_MOST_SKIPPED = 1000  # reasons that are kept


@dataclass(frozen=True)
class Understood:
    """What was understood of a log before anything is written."""

    scan: Scan
    evaluator: str | None
    policy: str | None

    @property
    def runs(self) -> list[tuple[str, str, int]]:
        """The evaluator, the policy and the number of episodes of each run."""
        found = self.scan
        return [
            (*run_names(found, names, self.evaluator, self.policy), int((found.run == number).sum()))
            for number, names in enumerate(found.runs)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        mapping = self.scan.mapping
        columns = [
            {"column": printable(name), "role": role.value, "values": column.described()}
            for name, role in mapping.roles.items()
            if (column := mapping.columns.get(name)) is not None
        ]
        runs = [{"evaluator": job, "policy": policy, "episodes": count} for job, policy, count in self.runs]
        return {
            "file": str(mapping.log.path),
            "format": mapping.log.format,
            "episodes": len(self.scan),
            "success": self.scan.success_name if mapping.name(Role.SUCCESS) else None,
            "length_unit": mapping.length_unit or None,
            "columns": columns,
            "runs": runs,
            "skipped": self.scan.skipped,
            "notes": [printable(note) for note in self.scan.notes],
        }


def understand(
    file: str | Path,
    format: str = "auto",
    roles: Mapping[str, Role] | None = None,
    *,
    evaluator: str | None = None,
    policy: str | None = None,
    skip_damaged: bool = False,
    progress: Progress | None = None,
) -> Understood:
    """Read a log without writing anything; raise an error that names the place of the first wrong value."""
    skipped: dict[str, None] = {}

    def skip(error: RecordError) -> None:
        if len(skipped) < _MOST_SKIPPED:
            skipped[printable(str(error))] = None

    try:
        mapping = ColumnMapping.of(open_log(file, format, skip if skip_damaged else None), roles)
        found = scan(mapping, progress)
    except RecursionError as error:
        raise RecordError(f"{file}: is nested too deep to be read") from error
    found.skipped = list(skipped)
    return Understood(found, evaluator, policy)


def write(
    understood: Understood, out: str | Path = "runs", *, new: bool = False, progress: Progress | None = None
) -> list[Run]:
    """Write the run folders of a log; return those of an earlier import of the same file, if there are any."""
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; name a folder for the runs")
    there = [] if new else _imported(understood, out)
    if there:
        return there
    places = write_runs(
        understood.scan, out, evaluator=understood.evaluator, policy=understood.policy, progress=progress
    )
    return [Run(place) for place in places]


def import_results(
    file: str | Path,
    format: str = "auto",
    out: str | Path = "runs",
    *,
    columns: Mapping[str, str] | None = None,
    evaluator: str | None = None,
    policy: str | None = None,
    skip_damaged: bool = False,
    new: bool = False,
    progress: Progress | None = None,
) -> list[Run]:
    """Import the log of another tool as run folders. Nothing in the log is executed.

    Args:
        file: The log; for Isaac Lab Arena also a folder.
        format: `arena`, `episode_summary`, `lerobot`, `inspect`, `vla_eval`, `rows` (CSV, TSV, JSON lines, JSON and
            parquet), `module:Name` or `file.py:Name`; "auto" detects it.
        out: The folder for the runs.
        columns: Roles of columns that replace the guessed ones, as {"reached_goal": "success"}.
        evaluator: The name of the evaluation. None: the job, task or benchmark of the log, else the name of the file.
        policy: The name of the policy. None: that of the log, else the name of the file.
        skip_damaged: Leave out damaged rows of text files instead of raising an error.
        new: Import the file again even if there are runs of it.
        progress: Called with the number of episodes that were read, and their total.

    Returns:
        A run for each job and policy of the log.

    Raises:
        UsageError: The request makes no sense, or no column says whether an episode succeeded.
        RecordError: The file is damaged; the message names the line and the field.

    Example:
        >>> import roadworthy as rw
        >>> (run,) = rw.import_results("results.csv", out="runs")
        >>> run.metrics["num_episodes"], run.ledger.num_rows
        (4, 4)
    """
    from roadworthy.record.readers.mapping import parse_roles

    roles = parse_roles([f"{name}={role}" for name, role in (columns or {}).items()])
    understood = understand(
        file, format, roles, evaluator=evaluator, policy=policy, skip_damaged=skip_damaged, progress=progress
    )
    return write(understood, out, new=new, progress=progress)


def _imported(understood: Understood, out: Path) -> list[Run]:
    """Return the runs of an earlier import of the same content with the same roles and names, one for each."""
    mapping = understood.scan.mapping
    expected = {
        "format": mapping.log.format,
        "columns": {printable(name): role.value for name, role in mapping.roles.items()},
    }
    sha256, found = "", []
    for evaluator, policy, _ in understood.runs:
        home = out / folder_name(evaluator)
        place = None
        for path in sorted(home.glob(f"*/{RUN}"), reverse=True):
            try:
                values = read_json(path)
            except RoadworthyError:
                continue
            source = values.get("import")
            if not isinstance(source, dict) or values.get("status") != "completed" or path.parent.name.startswith("."):
                continue
            sha256 = sha256 or file_hash(mapping.log.path)
            same = source.get("sha256") == sha256 and values.get("config") == expected
            if same and (values.get("evaluator"), values.get("policy")) == (evaluator, policy):
                place = path.parent
                break
        if place is None or file_inside(out, place.relative_to(out)) is None:
            return []
        found.append(Run(place))
    return found
