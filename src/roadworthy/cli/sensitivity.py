"""`roadworthy sensitivity`: analyze which factors decide an outcome, and write a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import roadworthy
from roadworthy.cli.files import require_suffix
from roadworthy.cli.output import JsonFlag, examples, new_table, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.plots import FIGURE_SUFFIXES
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.sensitivity.analysis import Analysis
    from roadworthy.sensitivity.rows import Rows

EXAMPLES = examples(
    "roadworthy sensitivity runs/town/20261116-best --factors factors.yaml -o report.html",
    "roadworthy sensitivity episode_summary.jsonl --factors factors.yaml --outcome success --neural -o report.html",
    "roadworthy sensitivity RUN --factors factors.toml --outcome time_s --at-most 30 -o report.html --json",
    "roadworthy sensitivity runs/town/before --against runs/town/after -o report.html",
    "roadworthy sensitivity episode_results.jsonl -o report.png",
)

WIDEST = 24  # characters of the name of a factor in a table of 80 columns
P_SHOWN = 0.01  # smaller p-values are not printed in full
FEW = 5  # the number of rejected rows that are named on the console


def sensitivity(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The report (.html), or its main figure alone (.png, .pdf, .svg); all figures (.json) go beside it.",
            callback=require_suffix(".html", *FIGURE_SUFFIXES),
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A folder of a run, of runs or of jobs, or a .jsonl or .parquet file."),
    ] = None,
    rows_file: Annotated[
        Path | None,
        typer.Option(
            "--episode-results",
            "--episode-summary",
            metavar="FILE",
            help="The same as RUN, under the names that Isaac Lab Arena has for it.",
            hidden=True,
        ),
    ] = None,
    factors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The factors: .yaml or .toml. By default, every factor that differs between rows."
        ),
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(help="The outcome to explain (success, or score in driving runs).", show_default=False),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help="Another run: also show where it is worse or better than the first, in pairs of equal episodes.",
            show_default=False,
        ),
    ] = None,
    at_least: Annotated[
        float | None, typer.Option(help="Count an episode as success if its outcome is at least this value.")
    ] = None,
    at_most: Annotated[
        float | None, typer.Option(help="Count an episode as success if its outcome is at most this value.")
    ] = None,
    model: Annotated[Literal["splines", "process"], typer.Option(help="The form of the response surface.")] = "splines",
    neural: Annotated[
        bool, typer.Option("--neural", help="Also fit a neural posterior (NPE or MNPE); needs sbi.")
    ] = False,
    next_episodes: Annotated[
        int, typer.Option("--next", help="The number of episodes to suggest.", min=1, max=1024)
    ] = 16,
    seed: Annotated[int, typer.Option(help="The seed of all random draws.", min=0)] = 0,
    json: JsonFlag = False,
) -> None:
    """Analyze which factors decide an outcome and how certain that is, and suggest episodes to run next."""
    if (run is None) == (rows_file is None):
        given = "both were given" if run is not None else "neither was given"
        raise UsageError(f"RUN and --episode-results both name the rows, and {given}; give one of them")
    with progress("analyzing") as update:
        analysis = roadworthy.analyze_sensitivity(
            run or rows_file,  # type: ignore[arg-type]  # one of them is a path
            factors,
            outcome,
            against=against,
            at_least=at_least,
            at_most=at_most,
            model=model,
            neural=neural,
            next_episodes=next_episodes,
            seed=seed,
            progress=update,
        )
    from roadworthy.sensitivity.analyze import write_files
    from roadworthy.sensitivity.difference_report import difference_words
    from roadworthy.sensitivity.report import beside, findings, trust

    if outcome is None and analysis.rows.outcome_name != "success":
        note(f"outcome: {analysis.rows.outcome_name}, because no row has success; --outcome names another one")
    if factors is None:
        names = ", ".join(factor.name for factor in analysis.rows.factors)
        note(
            f"factors: {names}, over the ranges and choices that the rows have; --factors FILE names those that "
            "were varied"
        )
    _name_rejected(analysis.rows)
    for warning in analysis.warnings:
        note(f"warning: {warning.message}")
    files = [str(path) for path in write_files(analysis, output)]
    if json:
        tell_json(_short(analysis, files))
    else:
        compared = [] if analysis.difference is None else difference_words(analysis.difference)
        words = [*compared, *findings(analysis), beside(analysis), trust(analysis)]
        tell(_table(analysis), *filter(None, words), *files[:2])


def _name_rejected(rows: Rows) -> None:
    for row in rows.rejected[:FEW]:
        note(f"left out: {row.name}: {row.reason}")
    if len(rows.rejected) > FEW:
        note(f"left out: {len(rows.rejected) - FEW} more; the report names all")


def _short(analysis: Analysis, files: list[str]) -> dict[str, object]:
    """Return the figures without curves, and the files."""
    from roadworthy.sensitivity.analysis import as_json

    result = as_json(analysis)
    long = {"at", "curve", "simultaneous", "given_success", "given_failure"}
    if result["neural"] is not None:
        del result["neural"]["distributions"]
    result["factors"] = [{key: part[key] for key in part if key not in long} for part in result["factors"]]
    if result["difference"] is not None:
        del result["difference"]["maps"]
        result["difference"]["factors"] = [
            {key: part[key] for key in part if key not in long} for part in result["difference"]["factors"]
        ]
    return {**result, "files": files}


def _table(analysis: Analysis) -> Table:
    from roadworthy.sensitivity.curves import short_names

    rows = analysis.rows
    heading = f"what decides {rows.outcome_name}: {len(rows)} rows, {len(rows.rejected)} left out"
    table = new_table("factor", "verdict", right=("of the variation", "alone", "swing", "p"), title=heading)
    table.columns[0].no_wrap = True
    shown = short_names([analysis.importance[number].factor for number in analysis.ranking], WIDEST)
    for number, name in zip(analysis.ranking, shown, strict=True):
        found = analysis.importance[number]
        total = f"{found.total.mean:.2f} ({found.total.low:.2f}–{found.total.high:.2f})"
        others = [f"{found.first_order.mean:.2f}", f"{found.swing.mean:.2f}", p_words(found.p_value)]
        table.add_row(name, found.verdict.value, total, *others)
    return table


def p_words(value: float) -> str:
    """Return a p-value with two decimals, or that it is smaller."""
    return "<0.01" if value < P_SHOWN else f"{value:.2f}"
