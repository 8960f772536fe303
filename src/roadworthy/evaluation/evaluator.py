"""The contract of evaluators: from the request for one evaluation to a finished run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from roadworthy.evaluation.config import EXECUTION_KEYS, EvaluatorConfig
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.ledger import EpisodeSpec, Ledger
from roadworthy.evaluation.policy_ref import PolicyRef, coplayer_files
from roadworthy.evaluation.runner import RunnerSpec
from roadworthy.progress import Report
from roadworthy.record import EpisodeResult, Run, RunWriter


@dataclass(frozen=True)
class EvalRequest:
    """A request for one evaluation."""

    name: str
    # Name of the section.
    config: EvaluatorConfig
    policy: PolicyRef
    out: Path
    # Run folders go to <out>/<name>/.
    engine: EpisodeEngine
    origins: Mapping[str, str] = field(default_factory=dict)
    # The source of each setting.
    ledger_name: str | None = None
    # The section by whose name scenarios are drawn, if it is another: a control runs the episodes of another section.
    is_new: bool = False
    # Whether to start a new run even if there is an unfinished one.
    progress: Report = lambda done, total: None
    on_started: Callable[[Path], None] = lambda folder: None
    # Called with the run folder as soon as it exists.
    role: str | None = None
    # What a reference run is to the run that it belongs to: its floor or its ceiling.
    pack: Path | None = None
    # The scenarios of another run, if its episodes are run again; by default, the config names them.
    arrange: Callable[[Ledger], Ledger] = lambda ledger: ledger
    # Reorders the planned episodes before they are written, or replaces them by those of another run.
    gate: Mapping[str, Any] | None = None
    # What a gate decides with the run.

    def header(self) -> dict[str, Any]:
        """Return what run.json records: settings that decide results as `config`, the others as `carried_out`."""
        settings = self.config.as_plain()
        return {
            "config": {key: value for key, value in settings.items() if key not in EXECUTION_KEYS},
            "carried_out": {key: value for key, value in settings.items() if key in EXECUTION_KEYS},
            "origins": dict(self.origins),
            "coplayers": coplayer_files(self.config),
            **self.policy.header(),
            **({} if self.role is None else {"role": self.role}),
            **({} if self.gate is None else {"gate": dict(self.gate)}),
        }


@dataclass(frozen=True)
class StartedRun:
    """A run folder whose episodes can be run. The caller that started it closes the writer."""

    spec: RunnerSpec
    ledger: Ledger
    writer: RunWriter
    metrics: Callable[[Run], Mapping[str, Any]]
    # All figures of a run whose episodes have ended.
    order: Callable[[EpisodeSpec], Any] = lambda episode: 0
    # The key by which episodes that run together are sorted.


class Evaluator(Protocol):
    """A class of the entry point group `roadworthy.evaluators`. It is constructed without arguments."""

    config_type: ClassVar[type[EvaluatorConfig]]

    def evaluate(self, request: EvalRequest) -> Run:
        """Answer a request: start a run, or resume an interrupted one. Raise an error if the run can't be completed."""


class BlockEvaluator(Evaluator, Protocol):
    """An evaluator whose runs can be run in blocks, with looks in between."""

    def start(self, request: EvalRequest) -> StartedRun:
        """Write the ledger of a run, or resume an interrupted one, before any episode runs."""


@contextmanager
def ended_on_error(writer: RunWriter) -> Iterator[None]:
    """Mark a run as failed or interrupted if the body of the with statement fails; else leave it open."""
    try:
        yield
    except BaseException as error:
        writer.__exit__(type(error), error, error.__traceback__)
        raise


def run_ledger(
    spec: RunnerSpec,
    ledger: Ledger,
    writer: RunWriter,
    engine: EpisodeEngine,
    progress: Report,
    order: Callable[[EpisodeSpec], Any] = lambda episode: 0,
) -> None:
    """Run the episodes of a ledger, or of a part of it, that have not ended, and append their results to the run.

    order: a key by which episodes are sorted; without it they start in the order of the ledger.
    """
    ended = writer.done
    left = sorted((episode for episode in ledger if episode.episode_id not in ended), key=order)
    done = len(ledger) - len(left)
    progress(done, len(ledger))

    def keep(result: EpisodeResult) -> None:
        nonlocal done
        writer.append(result)
        done += 1
        progress(done, len(ledger))

    if left:
        engine.run(spec, left, keep, completed=len(ended))
