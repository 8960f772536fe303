"""`roadworthy compare`: compare runs, in pairs where they share episodes."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import roadworthy
from roadworthy.cli.files import require_suffix
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.comparison.compare import Comparison, Versus
    from roadworthy.comparison.difference import Difference
    from roadworthy.comparison.ranking import Ranking

EXAMPLES = examples(
    "roadworthy compare runs/town/20261119T1-before runs/town/20261119T2-after",
    "roadworthy compare before after --margin 0.02 -o comparison.html",
    "roadworthy compare old new newer --metric score --margin score=0.01 --json",
    "roadworthy compare before after --fail-on worse",
    "",
    "Exit codes: 0 compared; with --fail-on: 10 worse, 11 undecided; 2 usage, 3 bad data",
)
WORSE, UNDECIDED = 10, 11
FEW = 5  # flips and classes that the terminal shows


class FailOn(Enum):
    """The answers that end the command with another exit code."""

    WORSE = "worse"
    UNDECIDED = "undecided"


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B [C...]", help="Run folders, or folders of runs: the newest of each section counts."
        ),
    ],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="Compare this metric; repeatable, the first is the main one."
        ),
    ] = None,
    margins: Annotated[
        list[str] | None,
        typer.Option("--margin", metavar="[NAME=]X", help="How much worse still counts as not worse, as score=0.02."),
    ] = None,
    reference: Annotated[
        int, typer.Option(metavar="N", min=1, help="The position of the run that others are compared with, from 1.")
    ] = 1,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Compare as independent samples, even if runs share episodes.")
    ] = False,
    level: Annotated[
        float | None, typer.Option(metavar="X", help="The level of intervals (0.95).", show_default=False)
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all metrics, classes and flipped episodes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            metavar="FILE",
            help="Write a page (.html) with pictures, and its data (.json, .csv) beside it.",
            callback=require_suffix(".html"),
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on", help="Exit with 10 if a headline metric is worse; undecided: also with 11.", show_default=False
        ),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Compare runs: how figures differ, with intervals, and what the data allow to conclude.

    Episodes with equal scenario, seed, replicate and factors are compared in pairs. The first run is the reference.
    """
    if len(runs) < 2:
        raise UsageError(f"a comparison needs at least two runs, and {len(runs)} was given; name another one")
    if reference > len(runs):
        raise UsageError(f"--reference is {reference}, but {len(runs)} runs are given; allowed: 1 to {len(runs)}")
    found = roadworthy.compare(
        runs[0],
        runs[1],
        *runs[2:],
        metrics=metrics or (),
        margin=_margins(margins or []),
        reference=reference - 1,
        paired=not unpaired,
        **({} if level is None else {"level": level}),
    )
    if found.left_out:
        note(f"left out, because not all have them: {', '.join(found.left_out)}")
    path = None if out is None else found.write_html(out)
    if not json:
        for versus in found.versus:
            _tell_versus(versus, found, show_all)
        for ranking in found.rankings:
            _tell_ranking(ranking)
        if path is not None:
            tell(f"page: {path}")
    else:
        tell_json({**found.to_dict(), "page": None if path is None else str(path)})
    if fail_on is not None and found.is_worse:
        return WORSE
    return UNDECIDED if fail_on is FailOn.UNDECIDED and found.is_undecided else 0


def _margins(given: list[str]) -> dict[str, float]:
    """Return margins by metric; "" stands for all others."""
    from roadworthy.comparison.margins import as_margin

    margins = {}
    for text in given:
        name, _, number = text.rpartition("=")
        margins[name.strip()] = as_margin(number, f"--margin of {name.strip()}" if name else "--margin")
    return margins


def _tell_versus(versus: Versus, comparison: Comparison, show_all: bool) -> None:
    from roadworthy.report import difference_words as words

    head = f"{versus.label} against {versus.reference_label}"
    tell(f"{versus.section}: {head}" if versus.section else head)
    tell(*(f"  {line}" for line in (words.sample(versus), words.flipped(versus)) if line))
    for line in (*words.alone(versus), *versus.notes):
        note(f"  note: {line}")
    shown = versus.differences if show_all else versus.shown
    hidden = len(versus.differences) - len(shown)
    tell(_table(shown, "metric", comparison.level, words.name))
    for difference in shown:
        if text := words.missing(difference):
            tell(f"  {text}")
    if hidden:
        tell(f"  {hidden} more {'metric' if hidden == 1 else 'metrics'} with --all")
    classes = sorted(versus.by_class, key=_order)[: None if show_all else FEW]
    if classes:
        title = f"{words.name(versus.main)} by class, worst first"
        tell(_table(classes, title, comparison.level, lambda found: found.part.replace("_", " ")))
        if len(classes) < len(versus.by_class):
            tell(f"  {len(versus.by_class) - len(classes)} more with --all")
    _tell_flips(versus, show_all)
    tell(words.conclusion(versus), "")


def _order(found: Difference) -> float:
    size = found.interval.value or 0.0
    return -size if found.metric.better == "lower" else size


def _table(found: tuple[Difference, ...] | list[Difference], title: str, level: float, name: object) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from roadworthy.report import difference_words as words

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, overflow="fold")
    for column in ("reference", "run", "change", f"{level:.0%} interval"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for each in found:
        cells = [words.value(each, each.baseline), words.value(each, each.candidate), words.change(each)]
        assert callable(name)
        table.add_row(name(each), *cells, words.interval(each), words.verdict(each))
    return table


def _tell_flips(versus: Versus, show_all: bool) -> None:
    lost = [flip for flip in versus.flips.listed if flip.change < 0]
    gained = [flip for flip in versus.flips.listed if flip.change > 0][::-1]
    words = ("worse", "better") if versus.main.metric.better else ("lower", "higher")
    totals = versus.flips.lost, versus.flips.gained
    for word, flips, total in zip(words, (lost, gained), totals, strict=True):
        shown = flips if show_all else flips[:FEW]
        for flip in shown:
            tags = f" ({', '.join(flip.tags)})" if flip.tags else ""
            tell(f"  {word}: {flip.episode_id}{tags}{': no result' if flip.is_missing else ''}")
        if total > len(shown):
            tell(f"  {word}: {total - len(shown):,} more{'' if show_all else ' with --all'}")
    if versus.flips.listed and versus.flips.listed[0].commands:
        tell(f"  look at it: {versus.flips.listed[0].commands[0]}")


def _tell_ranking(ranking: Ranking) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from roadworthy.report import difference_words as words
    from roadworthy.report.words import number, plain_name

    if not ranking.ranked:
        tell(ranking.note)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in (f"ranked by {plain_name(ranking.metric.name)}", "value", "rank", "ranks possible", "chance of best"):
        table.add_column(title, justify="left" if title.startswith("ranked") else "right")
    for place, (label, found) in enumerate(zip(ranking.labels, ranking.ranked, strict=True)):
        value = number(found.value, ranking.metric.unit)
        table.add_row(label, value, str(found.rank), words.rank_text(ranking, place), f"{found.chance_of_best:.0%}")
    tell(table)
    if ranking.note:
        note(f"note: {ranking.note}")
