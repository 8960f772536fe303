"""`roadworthy evaluate`: evaluate a policy with the evaluators of a file or of a shipped suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import roadworthy
from roadworthy.cli.options import PolicyOption, SetOption
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.evaluation.runs import Outcome, Runs
    from roadworthy.record import Run

EXAMPLES = examples(
    "roadworthy evaluate behaviors --policy runs/best",
    "roadworthy evaluate town --policy expert:drive --workers 2",
    "roadworthy evaluate suite.toml --evaluator hard_stop --set scenarios=my.pack --policy runs/best",
    "",
    "The same command resumes runs that were interrupted; --new starts others.",
    "Exit codes: 0 all runs are complete, 1 some failed (their folders say why), 2 usage, 130 Ctrl-C",
)
SOME_FAILED = 1


def evaluate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SUITE", help="The name of a suite, or a .toml or .ini file with sections \\[eval.NAME]."
        ),
    ],
    evaluators: Annotated[
        list[str] | None, typer.Option("--evaluator", "-e", metavar="NAME", help="Run only this section; repeatable.")
    ] = None,
    policy: PolicyOption = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for run folders.")] = Path("runs"),
    overrides: SetOption = None,
    workers: Annotated[int | None, typer.Option(metavar="N", min=1, help="Run the episodes in N processes.")] = None,
    step: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The training step, if the checkpoint does not record it.")
    ] = None,
    epoch: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The training update, if the checkpoint does not record it.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start new runs, even if there are interrupted ones.")] = False,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Record more for the viewer: policy (values, probabilities and observations of the 3 worst episodes) "
            "or policy:N.",
            show_default=False,
        ),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Evaluate a policy: one run folder per section. A section that fails does not stop the others."""
    runs = roadworthy.evaluate(
        source,
        policy,
        out=out,
        evaluators=evaluators or (),
        set=overrides or (),
        workers=workers,
        step=step,
        epoch=epoch,
        new=new,
        record=record,
        progress=progress,
        on_outcome=_say,
    )
    if json:
        result: dict[str, Any] = {"source": source, "out": str(out), "runs": list(map(_plain, runs.outcomes))}
        result |= {"eval_summary": runs.summary, "report": None if runs.report is None else str(runs.report)}
        result["references"] = [_plain_reference(run) for outcome in runs.outcomes for run in outcome.references]
        tell_json(result)
    else:
        _tell_figures(runs)
        if runs.report is not None:
            tell(f"report: {runs.report}")
    return SOME_FAILED if runs.errors else 0


def _say(outcome: Outcome) -> None:
    """Print a line when a section has ended."""
    folder = outcome.run.folder if outcome.run else ""
    if outcome.is_complete:
        note(f"{outcome.name}: complete, {folder}")
    else:
        note(f"{outcome.name}: failed: {outcome.reason}" + (f"; see {folder}" if folder else ""))


def _plain(outcome: Outcome) -> dict[str, Any]:
    run = outcome.run
    metrics = run.metrics if run is not None and outcome.is_complete else None
    return {
        "evaluator": outcome.name,
        "status": "completed" if outcome.is_complete else "failed",
        "folder": str(run.folder) if run else None,
        "error": None if outcome.error is None else str(outcome.error),
        "metrics": {key: metrics[key] for key in metrics if not key.startswith("by_")} if metrics else None,
    }


def _plain_reference(run: Run) -> dict[str, Any]:
    header, metrics = run.header, run.metrics or {}
    return {
        "evaluator": header["evaluator"],
        "policy": header["policy_spec"],
        "role": header["role"],
        "folder": str(run.folder),
        "metrics": {key: metrics[key] for key in metrics if not key.startswith("by_")},
    }


def _lacks_exams(run: Run) -> bool:
    """Return whether a run has exams and none of them has a result."""
    figures = (run.metrics or {}).get("figures", ())
    return any(figure["name"] == "passed" and figure["value"] is None for figure in figures)


def _tell_figures(runs: Runs) -> None:
    from roadworthy.cli.figures import closed_loop_table, figures_table, sections_table
    from roadworthy.report.words import roll_up_words

    complete = {o.name: (o, o.run) for o in runs.outcomes if o.is_complete and o.run is not None}
    metrics = {name: run.metrics for name, (_, run) in complete.items() if run.metrics}
    if len(metrics) == 1:
        (name,) = metrics
        outcome, _ = complete[name]
        tell(figures_table(name, metrics[name], outcome.references, outcome.headline))
    elif metrics:
        references = {name: outcome.references for name, (outcome, _) in complete.items()}
        tell(sections_table(metrics, references, {name: outcome.headline for name, (outcome, _) in complete.items()}))
    scores = closed_loop_table({name: (run, outcome.references) for name, (outcome, run) in complete.items()})
    if scores is not None:
        tell(scores)
    for name, (_, run) in complete.items():
        if _lacks_exams(run):
            tell(f"{name}: no recording qualifies as an exam; generate with --steps 161 (docs/behaviors.md)")
        failed = (run.metrics or {}).get("num_failed_episodes")
        if failed and len(complete) > 1:
            tell(f"{name}: {failed} episodes failed; they count as failures; the table of episodes has the errors")
    summary = runs.summary
    if len(runs.outcomes) > 1 and summary["parts"]:  # baselines have no part in it
        value = "none: some figures are missing" if summary["value"] is None else f"{summary['value']:.4f}"
        figures = ", ".join(dict.fromkeys(part["figure"] for part in summary["parts"]))
        tell(f"eval_summary {value}{roll_up_words(summary)} (mean of {figures})")
    if runs.errors:
        tell(f"{len(runs.errors)} of {len(runs.outcomes)} failed: {', '.join(runs.errors)}")
