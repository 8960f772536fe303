"""`roadworthy sensitivity`: which factors decide an outcome, from finished records, as a report."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.files import make_folder, require_suffix
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.cli.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.sensitivity.analysis import Analysis
    from roadworthy.sensitivity.rows import Rows

EXAMPLES = examples(
    "roadworthy sensitivity runs/town/20261116-best --factors factors.yaml -o report.html",
    "roadworthy sensitivity episode_summary.jsonl --factors factors.yaml --outcome success --neural -o report.html",
    "roadworthy sensitivity RUN --factors factors.toml --outcome time_s --at-most 30 -o report.html --json",
)

FEW = 5  # rows that were left out are named on the console up to this many


class Model(Enum):
    """The form of the surface."""

    SPLINES = "splines"
    PROCESS = "process"


def sensitivity(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A folder of a run, of runs or of jobs, or a .jsonl or .parquet file.",
            show_default=False,
        ),
    ],
    factors: Annotated[
        Path, typer.Option("--factors", metavar="FILE", help="The factors: .yaml or .toml.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="HTML",
            help="The report; its figures (.json) and pictures go beside it.",
            show_default=False,
            callback=require_suffix(".html"),
        ),
    ],
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
    from roadworthy.sensitivity.factors import read_factors
    from roadworthy.sensitivity.report import write_report
    from roadworthy.sensitivity.rows import read_rows
    from roadworthy.sensitivity.surface import SurfaceConfig

    rows = read_rows(run, read_factors(factors), outcome, at_least, at_most)
    _name_rejected(rows)
    config = AnalysisConfig(
        SurfaceConfig(model=model.value, seed=seed), next_episodes=next_episodes, has_neural_posterior=neural
    )
    with progress("analysing") as report:
        analysis = analyse(rows, config, report)
    files = [str(path) for path in write_report(analysis, make_folder(output))]
    for warning in analysis.warnings:
        note(f"warning: {warning.message}")
    if json:
        tell_json(_short(analysis, files))
    else:
        from roadworthy.sensitivity.report import beside, findings, trust

        words = [*findings(analysis), beside(analysis), trust(analysis)]
        tell(_table(analysis), *filter(None, words), *files[:2])


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
        table.add_row(found.factor, found.verdict.value, total, *others)
    return table
