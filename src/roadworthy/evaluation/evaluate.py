"""Evaluate a policy: run the sections of a file one after another, and collect their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from roadworthy.errors import ConfigError, RoadworthyError, UsageError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.engines import EpisodeEngine, Limits, engine_class
from roadworthy.evaluation.evaluator import EvalRequest
from roadworthy.evaluation.files import read_file
from roadworthy.evaluation.finish import add_policy_records, finish, publish, report_of_all
from roadworthy.evaluation.ledger import Ledger
from roadworthy.evaluation.policy_ref import PolicyRef, policy_ref
from roadworthy.evaluation.references import make_references
from roadworthy.evaluation.runs import Outcome, Runs
from roadworthy.evaluation.sections import Section, chosen, evaluator_class, read_sections
from roadworthy.evaluation.training import training_of
from roadworthy.progress import Showing, show_nothing
from roadworthy.record import Run, RunWriter
from roadworthy.sinks import Sinks, read_sinks


def evaluate(
    source: str | Path,
    policy: str | Path | None = None,
    *,
    out: str | Path = "runs",
    evaluators: Sequence[str] = (),
    set: Mapping[str, Any] | Iterable[str] = (),
    workers: int | None = None,
    step: int | None = None,
    epoch: int | None = None,
    new: bool = False,
    record: str | None = None,
    progress: Showing = show_nothing,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Runs:
    """Evaluate a policy: one run folder per section of a config file, with a report.

    The same call resumes runs that were interrupted. A wrong name or setting raises an error before anything is
    written. A section that fails while it runs does not stop the others: `errors` of the result names it.

    Args:
        source: A .toml or .ini file with sections `[eval.NAME]`, or the name of a suite, such as "town".
        policy: The policy to evaluate: a checkpoint folder, "baseline:NAME", "expert:NAME", "random", "zero",
            "module:Class" or "file.py:Class". If None, the sections name their own.
        out: The folder for run folders; a run goes to `out/SECTION/`.
        evaluators: The names of the sections to run; if empty, all that are enabled.
        set: Settings that replace those of the file, as a mapping `{"episodes": 20}` or as strings "episodes=20". A key
            holds for all sections, or as `eval.NAME.KEY` for one.
        workers: The number of processes that run episodes. If None, the `engine` of each section decides.
        step: The training step of the policy, in agent-steps, if its checkpoint does not say it.
        epoch: The training update of the policy, if its checkpoint does not say it.
        new: Start new runs, even if `out` has interrupted ones.
        record: "policy" also stores the observations, values, probabilities of actions and rewards of the three worst
            episodes of each run, for the viewer; "policy:N" those of N. The policy has to be a checkpoint.
        progress: Called with the name of each phase; returns a context manager for a function of (done, total).
        on_outcome: Called with the outcome of each section when it has ended.

    Returns:
        The complete runs, with their figures, errors and report.

    Raises:
        ConfigError: The file, a section or a setting is wrong.
        UsageError: The policy is unknown.

    Example:
        >>> import roadworthy as rw
        >>> few = {"scenarios": "generate:town?count=2&seed=7", "references": []}
        >>> runs = rw.evaluate("town", policy="expert:drive", set=few, out="runs")
        >>> runs["town"].status, runs["town"].metrics["num_episodes"]
        ('completed', 2)
        >>> 0.0 <= runs.figure("score")["town"]["value"] <= 1.0
        True
    """
    policy = None if policy is None else str(policy)
    out = Path(out)
    pool = {} if workers is None else {"engine": "workers", "workers": workers}
    overrides = {**set, **pool} if isinstance(set, Mapping) else [*set, *(f"{key}={pool[key]}" for key in pool)]
    training = training_of(policy) if policy is not None else None
    sections = chosen(read_sections(source, training=training, overrides=overrides), evaluators)
    _require_usable(sections, policy)
    recorded = 0 if record is None else _recorded(record, sections, policy)

    def conclude(outcome: Outcome) -> None:
        if outcome.run is not None:
            if recorded and outcome.is_complete:
                with progress(f"{outcome.name}: recording the policy") as done:
                    add_policy_records(outcome.run, recorded, done)
            finish(outcome.run)
        on_outcome(outcome)

    with Sinks(read_sinks(read_file(source)), out) as sinks:
        outcomes = evaluate_sections(
            sections,
            policy,
            out,
            is_new=new,
            step=step,
            epoch=epoch,
            sinks=sinks,
            has_references=True,
            showing=progress,
            on_outcome=conclude,
        )
    runs = [outcome.run for outcome in outcomes if outcome.run is not None]
    return Runs(outcomes, out, report_of_all(runs, out, Path(source).stem))


def _require_usable(sections: Sequence[Section], policy: str | None) -> None:
    """Raise the faults of all sections at once, and those of their policies, before any file is written."""
    faults = dict.fromkeys(str(section.error) for section in sections if section.error is not None)
    if faults:
        raise ConfigError("\n".join(faults))
    for section in sections:
        if section.config.scenarios is not None:
            section.config.source.require()
    for section in sections:
        engine_class(section.config.engine)
        _policy_of(section, policy)


def _recorded(record: str, sections: Sequence[Section], policy: str | None) -> int:
    """Return the number of episodes to record, after checking that the policies can be."""
    from roadworthy.evaluation.policy_record import parse_record

    count = parse_record(record)
    for section in sections:
        ref = _policy_of(section, policy)
        if ref.checkpoint is None:
            raise UsageError(
                f"--record {record}: eval.{section.name} evaluates {ref.spec!r}, which is not a checkpoint, so it has "
                "no values and probabilities; leave out --record, or name a checkpoint"
            )
    return count


def _policy_of(section: Section, policy: str | None, step: int | None = None, epoch: int | None = None) -> PolicyRef:
    """Return the policy that a section evaluates."""
    spec = section.config.policy_for(policy)
    if spec is None:
        raise ConfigError(
            f"eval.{section.name} has no policy; name one with --policy, or with the key checkpoint of the section"
        )
    return policy_ref(spec, section.config.policy_config, step, epoch)


class Engines:
    """The engines of sections. A context: sections share them, and they are closed at its end."""

    def __init__(self) -> None:
        self._engines: dict[tuple[str, int | None], EpisodeEngine] = {}  # by name and number of processes

    def of(self, config: EvaluatorConfig) -> EpisodeEngine:
        """Return the engine of a section."""
        key = config.engine, config.workers
        if key not in self._engines:
            self._engines[key] = engine_class(config.engine)(config.workers)
        engine, memory_gb = self._engines[key], config.memory_limit_gb
        engine.limits = Limits(
            time_s=config.time_limit_s,
            memory_bytes=None if memory_gb is None else int(memory_gb * 1e9),
            retries=config.retries,
        )
        return engine

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *_: object) -> None:
        for engine in self._engines.values():
            engine.close()


def evaluate_sections(
    sections: Iterable[Section],
    policy: str | None,
    out: str | Path,
    *,
    is_new: bool = False,
    step: int | None = None,
    epoch: int | None = None,
    engines: Engines | None = None,
    sinks: Sinks | None = None,
    has_references: bool = False,
    showing: Showing = show_nothing,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Make one run of each section. An error in a section ends in its failed run, and the other sections still run.

    Args:
        sections: The sections to run.
        policy: A policy spec; if None, the sections name their own.
        out: The folder for run folders.
        is_new: Start new runs, even if there are interrupted ones.
        step: The training step, if the checkpoint does not record it.
        epoch: The training update, if the checkpoint does not record it.
        engines: Pools of processes to reuse; if None, they live as long as this call.
        sinks: Where complete runs are published.
        has_references: Whether to run the floors and ceilings of each section as well.
        showing: Shows the progress of a phase.
        on_outcome: Called when a section has ended, after its videos and sinks.
    """
    outcomes = []
    with ExitStack() as stack:
        engines = engines or stack.enter_context(Engines())
        for section in sections:
            recorded_ref = _recorded_ref(section, policy, step, epoch)
            started: list[Path] = []
            try:
                ref = recorded_ref = _policy_of(section, policy, step, epoch)
                source = section.config.source if section.config.scenarios is not None else None
                if source is not None and source.recipe is not None and not source.is_there:
                    with showing("generating scenarios") as progress:
                        source.fetch(progress)
                with showing(f"{section.name}: running episodes") as progress:
                    request = EvalRequest(
                        section.name,
                        section.config,
                        ref,
                        Path(out),
                        engines.of(section.config),
                        section.resolved.origins if section.resolved is not None else {},
                        is_new=is_new,
                        progress=progress,
                        on_started=started.append,
                        ledger_name=section.ledger_name,
                    )
                    evaluator = evaluator_class(section.config.type)()
                    run = evaluator.evaluate(request)
                references = make_references(run, evaluator, request, showing) if has_references else ()
                outcome = Outcome(section.name, section.config, run, None, references)
            except Exception as error:
                failed = Run(started[-1]) if started else _failed_run(section, recorded_ref, Path(out), error)
                config = section.resolved.config if section.resolved is not None else None
                outcome = Outcome(section.name, config, failed, error)
            if sinks is not None and outcome.is_complete and outcome.run is not None:
                publish(outcome.run, sinks)
            outcomes.append(outcome)
            on_outcome(outcome)
    return outcomes


def _recorded_ref(section: Section, policy: str | None, step: int | None, epoch: int | None) -> PolicyRef:
    """Return what a failed run says about its policy if the policy can't be loaded."""
    named = (section.resolved.config.policy_for(policy) if section.resolved is not None else policy) or "none"
    return PolicyRef(named, named, None, step, epoch)


def _failed_run(section: Section, ref: PolicyRef, out: Path, error: Exception) -> Run | None:
    """Write the run of a section that could not start: no episodes, and the error."""
    try:
        values: dict[str, Any] = {}
        for layer in section.layers:
            values |= layer.values
        header = {"config": values, **ref.header()}
        writer = RunWriter.start(out, section.name, ref.name, header, Ledger(()).table())
        writer.fail(error)
        return Run(writer.folder)
    except (OSError, RoadworthyError):
        return None  # nothing can be written there; the outcome has the error
