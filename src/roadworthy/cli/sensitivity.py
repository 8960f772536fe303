"""`roadworthy sensitivity`: which factors decide an outcome, from finished records, as a report."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.files import make_folder, require_suffix
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.plots import FIGURE_SUFFIXES
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.sensitivity.analysis import Analysis
    from roadworthy.sensitivity.factors import Factor
    from roadworthy.sensitivity.rows import Rows

EXAMPLES = examples(
    "roadworthy sensitivity runs/town/20261116-best --factors factors.yaml -o report.html",
    "roadworthy sensitivity episode_summary.jsonl --factors factors.yaml --outcome success --neural -o report.html",
    "roadworthy sensitivity RUN --factors factors.toml --outcome time_s --at-most 30 -o report.html --json",
    "roadworthy sensitivity episode_results.jsonl -o report.png",
)

FEW = 5  # rows that were left out are named on the console up to this many


class Model(Enum):
    """The form of the surface."""

    SPLINES = "splines"
    PROCESS = "process"


def sensitivity(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The report (.html), or its main figure alone (.png, .pdf, .svg); all figures (.json) go beside it.",
            show_default=False,
            callback=require_suffix(".html", *FIGURE_SUFFIXES),
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="A folder of a run, of runs or of jobs, or a .jsonl or .parquet file.",
            show_default=False,
        ),
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
            "--factors",
            metavar="FILE",
            help="The factors: .yaml or .toml. Without it, everything that differs between the rows is one.",
            show_default=False,
        ),
    ] = None,
    outcome: Annotated[str, typer.Option("--outcome", help="Which outcome to explain.")] = "success",
    at_least: Annotated[
        float | None, typer.Option("--at-least", help="Call it success from this value on.", show_default=False)
    ] = None,
    at_most: Annotated[
        float | None, typer.Option("--at-most", help="Call it success up to this value.", show_default=False)
    ] = None,
    model: Annotated[Model, typer.Option("--model", help="The form of the surface.")] = Model.SPLINES,
    neural: Annotated[
        bool, typer.Option("--neural", help="Learn a neural posterior too (NPE or MNPE; needs sbi).")
    ] = False,
    next_episodes: Annotated[int, typer.Option("--next", help="How many episodes to suggest.", min=1, max=1024)] = 16,
    seed: Annotated[int, typer.Option("--seed", help="Of all random draws.", min=0)] = 0,
    json: JsonFlag = False,
) -> None:
    """Find out which factors decide an outcome, how sure that is, and which episodes to run next."""
    from roadworthy.sensitivity.analysis import AnalysisConfig, analyse
    from roadworthy.sensitivity.report import write_main_figure, write_report
    from roadworthy.sensitivity.rows import read_rows
    from roadworthy.sensitivity.surface import SurfaceConfig

    source = _source(run, rows_file)
    rows = read_rows(source, _factors(source, factors), outcome, at_least, at_most)
    _name_rejected(rows)
    config = AnalysisConfig(
        SurfaceConfig(model=model.value, seed=seed), next_episodes=next_episodes, has_neural_posterior=neural
    )
    with progress("analysing") as report:
        analysis = analyse(rows, config, report)
    write = write_report if output.suffix.lower() == ".html" else write_main_figure
    files = [str(path) for path in write(analysis, make_folder(output))]
    for warning in analysis.warnings:
        note(f"warning: {warning.message}")
    if json:
        tell_json(_short(analysis, files))
    else:
        from roadworthy.sensitivity.report import beside, findings, trust

        words = [*findings(analysis), beside(analysis), trust(analysis)]
        tell(_table(analysis), *filter(None, words), *files[:2])


def _source(run: Path | None, rows_file: Path | None) -> Path:
    """Return where the rows are, however that was given."""
    if (run is None) == (rows_file is None):
        told = "both were given" if run is not None else "neither was given"
        raise UsageError(f"RUN or --episode-results says where the rows are, and {told}; give one of them")
    return run or rows_file  # type: ignore[return-value]  # one of them is a path


def _factors(source: Path, factors: Path | None) -> tuple[Factor, ...]:
    """Return the factors of a file, or what differs between the rows where there is none."""
    from roadworthy.sensitivity.discover import discovered
    from roadworthy.sensitivity.factors import read_factors
    from roadworthy.sensitivity.sources import load_rows

    if factors is not None:
        return read_factors(factors)
    found = discovered(load_rows(source))
    note(
        f"factors: {', '.join(factor.name for factor in found)}, over the ranges and choices that the rows have; "
        "--factors FILE says which were really varied"
    )
    return found


def _name_rejected(rows: Rows) -> None:
    for row in rows.rejected[:FEW]:
        note(f"left out: {row.name}: {row.reason}")
    if len(rows.rejected) > FEW:
        note(f"left out: {len(rows.rejected) - FEW} more, all named in the report")


def _short(analysis: Analysis, files: list[str]) -> dict[str, object]:
    """The figures without curves, and where everything was written."""
    from roadworthy.sensitivity.analysis import as_json

    told = as_json(analysis)
    long = {"at", "curve", "given_success", "given_failure"}
    if told["neural"] is not None:
        del told["neural"]["distributions"]
    told["factors"] = [{key: part[key] for key in part if key not in long} for part in told["factors"]]
    return {**told, "files": files}


def _table(analysis: Analysis) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from roadworthy.sensitivity.panels import short

    rows = analysis.rows
    heading = f"what decides {rows.outcome_name}: {len(rows)} rows, {len(rows.rejected)} left out"
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("factor")
    table.add_column("verdict")
    for name in ("of the variation", "alone", "swing", "p"):
        table.add_column(name, justify="right")
    for number in analysis.ranking:
        found = analysis.importance[number]
        total = f"{found.total.mean:.2f} ({found.total.low:.2f}–{found.total.high:.2f})"
        others = [f"{part:.2f}" for part in (found.first_order.mean, found.swing.mean, found.p_value)]
        table.add_row(short(found.factor, 26), found.verdict.value, total, *others)
    return table
