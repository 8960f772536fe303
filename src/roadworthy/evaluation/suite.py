"""Evaluates the sections of a file one after another, each failing alone, and rolls their figures up into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.evaluation.config import Engine, EvaluatorConfig, SummaryConfig
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.engines.workers import Limits, WorkersEngine
from roadworthy.evaluation.evaluator import Order, Progress
from roadworthy.evaluation.ledger import Ledger
from roadworthy.evaluation.policy_ref import PolicyRef, policy_ref
from roadworthy.evaluation.references import make_references
from roadworthy.evaluation.sections import Section, evaluator_class
from roadworthy.metrics.roll_up import Part, roll_up
from roadworthy.record import Run, RunWriter
from roadworthy.sinks import Publication, Sinks, figures_of

VIDEO = "video_"  # how names of artifacts that are videos begin; their view follows
Showing = Callable[[str], AbstractContextManager[Progress]]  # shows the progress of the section with this name


@dataclass(frozen=True)
class Outcome:
    """What became of a section."""

    name: str
    config: EvaluatorConfig | None
    run: Run | None = field(repr=False)
    # None where not even a failed run could be written.
    error: BaseException | None
    references: Sequence[Run] = field(default=(), repr=False)
    # Floors and ceilings on the same ledger.

    @property
    def is_complete(self) -> bool:
        return self.error is None


class Engines:
    """The engines that sections ask for; pools of processes are shared, and live until the end of the context."""

    def __init__(self) -> None:
        self._pools: dict[int | None, WorkersEngine] = {}  # by number of processes
        self._stack = ExitStack()

    def of(self, config: EvaluatorConfig) -> EpisodeEngine:
        """The engine of a section."""
        if config.engine is Engine.RAY:
            raise ConfigError("engine is 'ray', which this version does not have; take inline or workers")
        if config.engine is Engine.INLINE:
            return InlineEngine(retries=config.retries)
        if config.workers not in self._pools:
            self._pools[config.workers] = self._stack.enter_context(WorkersEngine(config.workers))
        pool, memory_gb = self._pools[config.workers], config.memory_limit_gb
        pool.limits = Limits(
            time_s=config.time_limit_s,
            memory_bytes=None if memory_gb is None else int(memory_gb * 1e9),
            retries=config.retries,
        )
        return pool

    def __enter__(self) -> Engines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


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
    showing: Showing = lambda name: nullcontext(lambda done, total: None),
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Make one run of each section. What goes wrong with one is in its failed run, and the others go on.

    policy: a checkpoint or another word for a policy; where there is none, sections name their own.
    step, epoch: of training, where the checkpoint does not say.
    has_references: make the floors and ceilings of each section as well.
    on_outcome: called as soon as a section is through, after its videos and sinks; `finish.finish` belongs there.
    """
    outcomes = []
    with ExitStack() as stack:
        engines = engines or stack.enter_context(Engines())
        for section in sections:
            outcome = _evaluate(section, policy, Path(out), is_new, step, epoch, engines, showing, has_references)
            if sinks is not None and outcome.is_complete and outcome.run is not None:
                publish(outcome.run, sinks)
            outcomes.append(outcome)
            on_outcome(outcome)
    return outcomes


def _evaluate(
    section: Section,
    policy: str | None,
    out: Path,
    is_new: bool,
    step: int | None,
    epoch: int | None,
    engines: Engines,
    showing: Showing,
    has_references: bool,
) -> Outcome:
    config = section.resolved.config if section.resolved is not None else None
    named = (config.policy_for(policy) if config else policy) or "none"
    ref = PolicyRef(named, named, None, step, epoch)
    begun: list[Path] = []
    try:
        spec = section.config.policy_for(policy)
        if spec is None:
            raise ConfigError(
                f"eval.{section.name} has no policy; name one with --checkpoint, or by the section's key checkpoint"
            )
        ref = policy_ref(spec, section.config.policy_config, step, epoch)
        origins = section.resolved.origins if section.resolved is not None else {}
        engine, evaluator = engines.of(section.config), evaluator_class(section.config.type)()
        with showing(section.name) as progress:
            order = Order(
                section.name,
                section.config,
                ref,
                out,
                engine,
                origins,
                is_new=is_new,
                progress=progress,
                on_begun=begun.append,
                ledger_name=section.ledger_name,
            )
            run = evaluator.evaluate(order)
        references = make_references(run, evaluator, order, showing) if has_references else ()
    except Exception as error:
        run = Run(begun[-1]) if begun else _failed_run(section, ref, out, error)
        return Outcome(section.name, config, run, error)
    return Outcome(section.name, config, run, None, references)


def _failed_run(section: Section, ref: PolicyRef, out: Path, error: Exception) -> Run | None:
    """The run of a section that could not even begin: it owes nothing and tells what is wrong."""
    try:
        values: dict[str, Any] = {}
        for layer in section.layers:
            values |= layer.values
        header = {"config": values, **ref.header()}
        writer = RunWriter.start(out, section.name, ref.name, header, Ledger(()).table())
        writer.fail(error)
        return Run(writer.folder)
    except (OSError, RoadworthyError):
        return None  # there is no place to write to: the error itself is told


def publish(run: Run, sinks: Sinks) -> None:
    """Hand a complete run to sinks; those that fail are listed among its artifacts."""
    videos: dict[str, list[Path]] = {}
    for artifact in run.artifacts:
        if artifact.name.startswith(VIDEO) and artifact.path is not None:
            videos.setdefault(artifact.name.removeprefix(VIDEO), []).append(run.folder / artifact.path)
    step, epoch = run.header.get("step") or 0, run.header.get("epoch") or 0
    figures = figures_of(run.metrics or {}, intervals=True)
    errors = sinks.publish(Publication(run.header["evaluator"], step, epoch, figures, videos))
    for name, error in errors.items():
        with suppress(OSError, RoadworthyError):  # a full disk takes no line either
            run.add_artifact(None, f"sink_{name}", error=error)


def eval_summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """One figure over all sections: the mean of what each names in `summary`, by weight (see metrics/roll_up.py)."""
    return roll_up([_part(outcome) for outcome in outcomes])


def _part(outcome: Outcome) -> Part:
    summary = outcome.config.summary if outcome.config is not None else SummaryConfig()
    figure = figure_of(outcome, summary.figure)
    weight = 1.0 if summary.weight is None else summary.weight
    return Part(outcome.name, summary.figure, weight, None if figure is None else figure["value"])


def figure_of(outcome: Outcome, name: str) -> Mapping[str, Any] | None:
    """A figure of a complete run."""
    metrics = outcome.run.metrics if outcome.run is not None and outcome.is_complete else None
    return next((figure for figure in metrics["figures"] if figure["name"] == name), None) if metrics else None
