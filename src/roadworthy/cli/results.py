"""`roadworthy results`: import the logs of other tools as runs, and check logs and runs for bias."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.results.findings import Report
    from roadworthy.results.import_results import Understood

IMPORT_EXAMPLES = examples(
    "roadworthy results import episode_results.jsonl --policy pi0",
    "roadworthy results import eval_info.json --dry-run",
    "roadworthy results import logs/2026-07-06_popularity.eval --out runs",
    "roadworthy results import mine.csv --map reached=success --map light=factor --map note=ignore",
    "",
    "Formats: arena, episode_summary, lerobot, inspect, vla_eval, rows (CSV, TSV, JSON, JSON lines, parquet)",
    "Roles: success, outcome, factor, seed, scenario, cluster, replicate, length, environment, order, job, policy,",
    "id, status, error, ignore; docs/results.md explains them",
    "Exit codes: 0 imported, 2 usage or no success column, 3 damaged file",
)
CHECK_EXAMPLES = examples(
    "roadworthy results check episode_results.jsonl",
    "roadworthy results check runs/town/20260101T120000Z-best-1f2e3d4c",
    "roadworthy results check mine.csv --map reached=success --fail-on warning --json",
    "",
    "Exit codes: 0 checked, whatever was found; 10 found what --fail-on names; 2 usage; 3 damaged file",
)
FOUND = 10  # the exit code for findings
_FEW = 5  # skipped rows that are named
_SHOWN_COLUMNS = 40

app = typer.Typer(no_args_is_help=True, help="Import results of other tools, and check results for bias.")

FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="FORMAT", help="The format of the log: a name below, module:Name or file.py:Name, or auto."
    ),
]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="COLUMN=ROLE", help="Give a column a role instead of the guessed one; repeatable."),
]
SkipOption = Annotated[
    bool,
    typer.Option("--skip-damaged", help="Leave out damaged rows of text files and list them, instead of stopping."),
]


class FailOn(Enum):
    """The least severe finding that gives exit code 10."""

    NEVER = "never"
    WARNING = "warning"
    NOTE = "note"


@app.command("import", epilog=IMPORT_EXAMPLES)
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Logs of other tools.", show_default=False)],
    format: FormatOption = "auto",
    map: MapOption = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder for the runs.")] = Path("runs"),
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="The name of the policy.", show_default=False)
    ] = None,
    evaluator: Annotated[
        str | None, typer.Option("--evaluator", metavar="NAME", help="The name of the evaluation.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is understood, and write nothing.")] = False,
    skip_damaged: SkipOption = False,
    new: Annotated[bool, typer.Option("--new", help="Import a file again that was imported before.")] = False,
    json: JsonFlag = False,
) -> None:
    """Import logs of other tools as run folders, one for each job and policy.

    What was understood of each file is shown before anything is written. A damaged file writes nothing. Importing the
    same file again returns the runs that are there.
    """
    from roadworthy.record.readers.mapping import parse_roles
    from roadworthy.results.import_results import understand, write

    roles = parse_roles(map or [])
    understood = []
    for file in files:
        with progress(f"reading {file.name}") as report:
            understood.append(
                understand(
                    *(file, format, roles),
                    evaluator=evaluator,
                    policy=policy,
                    skip_damaged=skip_damaged,
                    progress=report,
                )
            )
    warnings = _differences(understood)
    if not json:
        for one in understood:
            _show(one)
        for warning in warnings:
            note(f"warning: {warning}")
    written = []
    for one in understood if not dry_run else []:
        with progress("writing runs") as report:
            written.append(write(one, out, new=new, progress=report))
    if json:
        found: list[dict[str, Any]] = [one.as_json() for one in understood]
        for part, runs in zip(found, written, strict=False):
            part["folders"] = [str(run.folder) for run in runs]
        tell_json({"files": found, "warnings": warnings, "dry_run": dry_run})
    elif dry_run:
        tell("nothing was written (--dry-run)")
    else:
        tell(*(str(run.folder) for runs in written for run in runs))


@app.command(epilog=CHECK_EXAMPLES)
def check(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|RUN", help="A log of another tool, or a run folder.", show_default=False)
    ],
    format: FormatOption = "auto",
    map: MapOption = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", metavar="NAME", help="The outcome of a run to check (success).", show_default=False),
    ] = None,
    skip_damaged: SkipOption = False,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="The findings that give exit code 10.")] = FailOn.NEVER,
    json: JsonFlag = False,
) -> int:
    """Check results for order and stopping bias, repeated and missing episodes, and say what it means.

    Where successes are shorter than failures, the first episodes to finish are mostly successes, and so are those of
    an evaluation that stops after a number of finished episodes.
    """
    from roadworthy.record.readers.mapping import parse_roles
    from roadworthy.results.check import check_results
    from roadworthy.results.findings import Severity

    with progress("reading") as report:
        reports = check_results(
            *(path, format, parse_roles(map or [])), outcome=outcome, skip_damaged=skip_damaged, progress=report
        )
    if json:
        tell_json({"source": str(path), "reports": [report.as_json() for report in reports]})
    else:
        for one in reports:
            _show_report(one)
    limit = {FailOn.WARNING: Severity.WARNING, FailOn.NOTE: Severity.NOTE}.get(fail_on)
    return FOUND if limit is not None and any(one.worst >= limit for one in reports) else 0


def _differences(understood: list[Understood]) -> list[str]:
    """Return what keeps several files from being compared."""
    units = {one.scan.mapping.length_unit: one.scan.mapping.log.path.name for one in understood}
    units.pop("", None)
    if len(units) < 2:
        return []
    (first, here), (second, there) = list(units.items())[:2]
    return [f"lengths are in {first} in {here} and in {second} in {there}, so they can't be compared"]


def _show(one: Understood) -> None:
    """Print what was understood of a log."""
    found = one.as_json()
    tell(f"{found['file']}: {found['format']}, {found['episodes']:,} episodes", _columns(found["columns"]))
    for run in found["runs"]:
        tell(f"run: {run['evaluator']}, policy {run['policy']}, {run['episodes']:,} episodes")
    for text in found["notes"]:
        note(f"note: {text}")
    for text in found["skipped"][:_FEW]:
        note(f"left out: {text}")
    if len(found["skipped"]) > _FEW:
        note(f"left out: {len(found['skipped']) - _FEW} more rows")


def _columns(columns: list[dict[str, str]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("column", "role", "values", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    used = [column for column in columns if column["role"] != "ignore"]
    ignored = [column for column in columns if column["role"] == "ignore"]
    for column in [*used, *ignored][:_SHOWN_COLUMNS]:
        name, role = column["column"], column["role"]
        table.add_row(name if len(name) <= 32 else f"...{name[-29:]}", role, column["values"])
    if len(columns) > _SHOWN_COLUMNS:
        table.add_row(f"{len(columns) - _SHOWN_COLUMNS} more columns", "", "")
    return table


def _show_report(report: Report) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(report.outcome, "", "95% interval", "from", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[1].justify = "right"
    for estimate in report.estimates:
        found = estimate.interval
        interval = "" if found.low is None or found.high is None else f"{found.low:.3f} to {found.high:.3f}"
        value = "no data" if found.value is None else f"{found.value:.3f}"
        table.add_row("", value, interval, estimate.which)
    tell(f"{report.name}: {report.episodes:,} episodes", table)
    for finding in report.findings:
        if finding.severity.word == "ok":
            continue
        tell(Text(f"{finding.severity.word}: {finding.title}", style="bold"))
        tell(Padding(Text(finding.text), (0, 0, 0, 2)))
        if finding.advice:
            tell(Padding(Text(f"What to do: {finding.advice}"), (0, 0, 0, 2)))
    good = [finding.title for finding in report.findings if finding.severity.word == "ok"]
    if good:
        tell(f"fine: {'; '.join(good)}")
