"""`roadworthy gate`: decide whether a candidate may replace a baseline."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import roadworthy
from roadworthy.cli.files import require_suffix
from roadworthy.cli.options import SetOption, Trust
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.comparison.gate import GateDecision
    from roadworthy.evaluation.gate import GateResult
    from roadworthy.record import Run

PASS, REGRESSION, UNDECIDED = 0, 10, 11
LIMITS = ("episodes", "scenarios", "replicates")  # settings that decide how many episodes are planned
EXAMPLES = examples(
    "roadworthy gate --candidate runs/town/NEW --baseline runs/town/OLD --margin 0.02",
    "roadworthy gate --candidate runs/second --baseline runs/town/OLD --budget 2000 -o gate.html",
    "roadworthy gate --candidate runs/second --baseline runs/first --suite town --set episodes=500",
    "",
    "The same command resumes a gate that was interrupted; with a larger budget, it continues.",
    "Exit codes: 0 pass, 10 regression, 11 undecided; 1 failed, 2 usage, 3 bad data, 130 Ctrl-C",
)


class Direction(Enum):
    """What is better."""

    HIGHER = "higher"
    LOWER = "lower"


def gate(
    candidate: Annotated[
        str,
        typer.Option(
            "--candidate",
            metavar="RUN|POLICY",
            help="A run, a folder of runs (the newest counts), or a policy to run.",
            show_default=False,
        ),
    ],
    baseline: Annotated[
        str,
        typer.Option("--baseline", metavar="RUN|POLICY", help="What it must not be worse than.", show_default=False),
    ],
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A rate, a share, or a mean with bounds; by default score, or success where there is no score.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        str,
        typer.Option(metavar="M", help="The largest acceptable loss, in the unit of the metric: 0.02 is 2% of a rate."),
    ] = "0.02",
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A .toml file or the name of a suite; by default that of the run.", show_default=False
        ),
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option("--evaluator", "-e", metavar="NAME", help="The section of the suite to run.", show_default=False),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The most episodes to run; by default all planned.", show_default=False),
    ] = None,
    block: Annotated[int, typer.Option(metavar="K", min=1, help="The number of episodes between looks.")] = 100,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for run folders.")] = Path("runs"),
    overrides: SetOption = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Run the episodes in N processes.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of the order of episodes.")] = 0,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH", help="Bounds of a metric that does not declare them, as 0,300.", show_default=False
        ),
    ] = None,
    better: Annotated[
        Direction | None, typer.Option(help="What is better, if the metric does not say.", show_default=False)
    ] = None,
    error: Annotated[
        float, typer.Option(metavar="P", help="The probability that a decision in one direction is ever wrong.")
    ] = 0.05,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A page with the picture (.html).",
            show_default=False,
            callback=require_suffix(".html"),
        ),
    ] = None,
    trust: Trust = False,
    json: JsonFlag = False,
) -> int:
    """Decide whether a candidate is worse than a baseline by more than a margin; look as often as you like.

    The bounds are made for the decision: they depend on the margin. For an interval of the difference, use compare.
    """
    from roadworthy.comparison.margins import as_margin

    direction: Literal["higher", "lower", ""] = "" if better is None else better.value
    try:
        result = roadworthy.gate(
            candidate,
            baseline,
            metric,
            as_margin(margin, "--margin"),
            suite=suite,
            evaluator=evaluator,
            set=overrides or (),
            budget=budget,
            block=block,
            out=out,
            seed=seed,
            workers=workers,
            bounds=None if bounds is None else _bounds(bounds),
            better=direction,
            error=error,
            trust=trust,
            progress=progress,
            on_look=_say,
        )
    except KeyboardInterrupt:
        note("the same command resumes this gate")
        raise
    names = _name(result.candidate), _name(result.baseline)
    if output is not None:
        from roadworthy.report.gate import write_gate_page

        write_gate_page(result.decision, *names, output)
    if json:
        tell_json({**result.as_json(), "page": None if output is None else str(output)})
    else:
        _tell(result, names, output, baseline, overrides or [])
    codes = {"pass": PASS, "regression": REGRESSION, "undecided": UNDECIDED}
    return codes[result.verdict.value]


def _say(decision: GateDecision) -> None:
    """Print the state after a block."""
    from roadworthy.report.words import number

    unit = decision.metric.unit
    shown = [number(value, unit, signed=True) for value in (decision.difference, decision.low, decision.high)]
    verdict = decision.verdict.value
    note(f"{decision.episodes:,} pairs: difference {shown[0]}, bounds {shown[1]} to {shown[2]}: {verdict}")


def _tell(result: GateResult, names: tuple[str, str], output: Path | None, baseline: str, overrides: list[str]) -> None:
    from roadworthy.report.gate import decision_lines

    lines = decision_lines(result.decision)
    tell(f"{result.verdict.value}: {names[0]} against {names[1]}", *lines)
    for line in result.decision.notes:
        tell(f"note: {line}")
    if result.budget is not None:
        tell(f"candidate: {result.candidate.folder}")
        if result.verdict.value == "undecided":
            tell(_advice(result, baseline, overrides))
    if output is not None:
        tell(f"page: {output}")


def _advice(result: GateResult, baseline: str, overrides: list[str]) -> str:
    """Return what to do about an undecided gate; baseline: as it was given, a run or a policy."""
    if not result.candidate.is_sealed:
        return f"{result.budget:,} episodes were the budget; the same command with a larger --budget continues"
    text = f"all {result.budget:,} planned episodes have run"
    more = result.decision.more
    folder = result.baseline.folder.resolve()
    if Path(baseline).expanduser().resolve() in (folder, *folder.parents):  # its episodes were run again
        needed = f" about {more:,} more than" if more else " more episodes than"
        return f"{text}, which are those of the baseline; the decision needs{needed} it has: evaluate it on more first"
    limits = [text for text in overrides if text.partition("=")[0].strip().rpartition(".")[2] in LIMITS]
    if limits:
        given = " and ".join(f"--set {limit}" for limit in limits)
        needed = f"; about {more:,} more are needed" if more else ""
        return f"{text}, because {given} limited the suite{needed}: raise it, or leave it out"
    needed = f", and about {more:,} more are needed than the suite has" if more else ""
    return f"{text}{needed}: plan more scenarios in it (or, less useful, replicates)"


def _name(run: Run) -> str:
    return f"{run.header.get('policy')} ({run.folder.name.rpartition('-')[2]})"


def _bounds(text: str) -> tuple[float, float]:
    """Return the bounds in LOW,HIGH."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--bounds is {text!r}, expected two numbers, such as 0,300") from None
    return low, high
