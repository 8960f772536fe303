"""`roadworthy evaluate`: find out how good a policy is, by the evaluators of a file or of a shipped suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import Report, progress

if TYPE_CHECKING:
    from roadworthy.evaluation.suite import Outcome
    from roadworthy.record import Run

EXAMPLES = examples(
    "roadworthy evaluate behaviors --checkpoint runs/best",
    "roadworthy evaluate town --checkpoint expert:drive --workers 2",
    "roadworthy evaluate suite.toml --evaluator hard_stop --set scenarios=my.pack --checkpoint runs/best",
    "",
    "The same command goes on with runs that were cut short; --new starts others.",
    "Exit codes: 0 all runs are complete, 1 some failed (their folders tell why), 2 usage, 130 Ctrl-C",
)
SOME_FAILED = 1


def evaluate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A .toml or .ini file with sections \\[eval.NAME], or a suite's name.",
            show_default=False,
        ),
    ],
    evaluators: Annotated[
        list[str] | None,
        typer.Option("--evaluator", "-e", metavar="NAME", help="Run this section alone; repeatable."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="A checkpoint, baseline:NAME, expert:drive, random, or module:Class.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where run folders go.")] = Path("runs"),
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key, or eval.NAME.KEY of one section; repeatable."),
    ] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", min=1, help="Run in so many processes.")] = None,
    step: Annotated[int | None, typer.Option(metavar="N", min=0, help="Step of training (the checkpoint's).")] = None,
    epoch: Annotated[int | None, typer.Option(metavar="N", min=0, help="Epoch of training (its own).")] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin new runs, even where unfinished ones are there.")] = False,
    json: JsonFlag = False,
) -> int:
    """Evaluate a policy: one run folder per section, each failing alone."""
    from roadworthy.evaluation.files import read_file
    from roadworthy.evaluation.finish import finish
    from roadworthy.evaluation.sections import chosen, read_sections
    from roadworthy.evaluation.suite import eval_summary, evaluate_sections
    from roadworthy.evaluation.training import training_of
    from roadworthy.sinks import Sinks, read_sinks

    spread = [] if workers is None else ["engine=workers", f"workers={workers}"]
    training = training_of(checkpoint) if checkpoint is not None else None
    sections = chosen(
        read_sections(source, training=training, overrides=[*(overrides or ()), *spread]), evaluators or ()
    )

    @contextmanager
    def showing(name: str) -> Iterator[Report]:
        with progress(name) as report:
            yield report

    def through(outcome: Outcome) -> None:
        if outcome.run is not None:
            finish(outcome.run)
        _say(outcome)

    with Sinks(read_sinks(read_file(source)), out) as sinks:
        outcomes = evaluate_sections(
            sections,
            checkpoint,
            out,
            is_new=new,
            step=step,
            epoch=epoch,
            sinks=sinks,
            has_references=True,
            showing=showing,
            on_outcome=through,
        )
    summary, report = eval_summary(outcomes), _report(outcomes, out, Path(source).stem)
    if json:
        told = {"source": source, "out": str(out), "runs": list(map(_plain, outcomes)), "eval_summary": summary}
        told["references"] = [_plain_reference(run) for outcome in outcomes for run in outcome.references]
        tell_json(told | {"report": None if report is None else str(report)})
    else:
        _tell_figures(outcomes, summary)
        if report is not None:
            tell(f"report: {report}")
    return 0 if all(outcome.is_complete for outcome in outcomes) else SOME_FAILED


def _report(outcomes: list[Outcome], out: Path, name: str) -> Path | None:
    """The page about everything: the run's own, or one about all of them."""
    from roadworthy.evaluation.finish import report_of_all
    from roadworthy.report import FILE, FOLDER

    runs = [outcome.run for outcome in outcomes if outcome.run is not None]
    if len(runs) == 1:
        path = runs[0].folder / FOLDER / FILE
        return path if path.exists() else None
    return report_of_all(runs, out, name) if runs else None


def _say(outcome: Outcome) -> None:
    """A line as soon as a section is through."""
    if outcome.is_complete:
        note(f"{outcome.name}: complete, {outcome.run.folder if outcome.run else ''}")
    else:
        where = f"; see {outcome.run.folder}" if outcome.run else ""
        note(f"{outcome.name}: failed: {_first_line(outcome.error)}{where}")


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


def _first_line(error: BaseException | None) -> str:
    return f"{error}".strip().partition("\n")[0] or type(error).__name__


def _lacks_exams(run: Run) -> bool:
    """Return whether a run has exams, none of which has a result."""
    figures = (run.metrics or {}).get("figures", ())
    return any(figure["name"] == "passed" and figure["value"] is None for figure in figures)


def _headline(outcome: Outcome) -> str:
    return "score" if outcome.config is None else outcome.config.summary.figure


def _tell_figures(outcomes: list[Outcome], summary: dict[str, Any]) -> None:
    from roadworthy.cli.figures import closed_loop_table, figures_table, sections_table

    complete = [outcome for outcome in outcomes if outcome.is_complete and outcome.run is not None]
    if len(complete) == 1 and complete[0].run is not None and complete[0].run.metrics is not None:
        outcome = complete[0]
        tell(figures_table(outcome.name, complete[0].run.metrics, outcome.references, _headline(outcome)))
    elif complete:
        metrics = {o.name: o.run.metrics for o in complete if o.run is not None and o.run.metrics}
        main = {o.name: _headline(o) for o in complete}
        tell(sections_table(metrics, {o.name: o.references for o in complete}, main))
    scores = closed_loop_table({o.name: (o.run, o.references) for o in complete if o.run is not None})
    if scores is not None:
        tell(scores)
    for outcome in complete:
        if outcome.run is not None and _lacks_exams(outcome.run):
            tell(f"{outcome.name}: no recording qualifies as an exam; generate with --steps 161 (docs/behaviors.md)")
        failed = (outcome.run.metrics or {}).get("num_failed_episodes") if outcome.run is not None else 0
        if failed and len(complete) > 1:
            tell(f"{outcome.name}: {failed} episodes failed and are in no figure; the run's episodes tell why")
    if len(outcomes) > 1 and summary["parts"]:  # baselines have no part in it
        told = "none: some figures are missing" if summary["value"] is None else f"{summary['value']:.4f}"
        figures = ", ".join(dict.fromkeys(part["figure"] for part in summary["parts"]))
        tell(f"eval_summary {told} (mean of {figures})")
    failed = [outcome.name for outcome in outcomes if not outcome.is_complete]
    if failed:
        tell(f"{len(failed)} of {len(outcomes)} failed: {', '.join(failed)}")
