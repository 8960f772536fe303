"""Evaluations in the course of training: which sections are due after an update, and where they run.

A section with `engine = "inline"` runs there and then, while training stands still. One with `engine = "workers"` runs
beside training, on a pool of processes that stays alive from one evaluation to the next. Nothing that goes wrong in an
evaluation reaches training: it is in the failed run, and in a line on the console.
"""

from __future__ import annotations

import shutil
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.config import Busy, Engine
from roadworthy.evaluation.evaluate import Engines, evaluate_sections
from roadworthy.evaluation.finish import finish
from roadworthy.evaluation.runs import Outcome
from roadworthy.evaluation.sections import Section
from roadworthy.policy.checkpoint import ABOUT, WEIGHTS
from roadworthy.record.run import Run
from roadworthy.sinks import Sinks

Say = Callable[[str], None]  # tells a line to whoever watches


@dataclass(frozen=True)
class Due:
    """Sections that are to be run, and with which policy."""

    sections: tuple[Section, ...]
    policy: Path
    step: int
    epoch: int


class Schedule:
    """The evaluators of a training config. A context: leaving it waits for what still runs."""

    def __init__(self, sections: Sequence[Section], out: Path, sinks: Sinks, say: Say) -> None:
        self._say, self._out, self._sinks = say, out, sinks
        self._sections = [section for section in sections if not section.is_template]
        self._inline, self._beside = Engines(), Engines()
        self._waiting: deque[Due] = deque()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def due(self, epoch: int, *, is_last: bool = False) -> list[Section]:
        """The sections to run after an update: those whose interval divides its number, and at the end all.

        A section with a fault is due once, at the start: its failed run tells what is wrong.
        """
        if epoch == 0:
            return [s for s in self._sections if s.error is not None or (s.config.enabled and s.config.at_start)]
        sound = [s for s in self._sections if s.error is None and s.config.enabled]
        return [s for s in sound if is_last or (s.config.interval > 0 and epoch % s.config.interval == 0)]

    def run(self, epoch: int, step: int, save: Callable[[], Path], is_last: bool = False) -> None:
        """Run what is due. `save` writes a checkpoint of the policy as it is; nothing is raised."""
        sections = [section for section in self.due(epoch, is_last=is_last) if not self._has_run(section, step)]
        if not sections:
            return
        try:
            policy = self._hand_over(save())
        except Exception as error:
            self._say(f"evaluation at epoch {epoch} has no policy: {error}")
            return
        beside = [s for s in sections if s.error is None and s.config.engine is not Engine.INLINE]
        now = [s for s in sections if s not in beside]
        if now:
            self._evaluate(Due(tuple(now), policy, step, epoch), self._inline)
        if beside:
            self._start_beside(Due(tuple(beside), policy, step, epoch), is_last)

    def _has_run(self, section: Section, step: int) -> bool:
        """Whether a section is through with the policy of this step: a finished training may be called again."""
        for folder in (self._out / section.name).glob("*/"):
            with suppress(RoadworthyError):  # what can't be read is not through
                run = Run(folder)
                if run.is_sealed and run.header.get("step") == step:
                    return True
        return False

    def wait(self) -> None:
        """Wait until nothing runs beside training."""
        while (thread := self._thread) is not None:
            thread.join()

    def __enter__(self) -> Schedule:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wait()
        else:
            self._waiting.clear()
        for engines in (self._inline, self._beside):
            engines.__exit__(kind, error, trace)
        self.wait()

    def _hand_over(self, checkpoint: Path) -> Path:
        """A copy of the policy that nobody removes while it is evaluated, under its checkpoint's name."""
        folder = self._out / "policies" / checkpoint.name
        folder.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS, ABOUT):
            shutil.copyfile(checkpoint / name, folder / name)
        return folder

    def _start_beside(self, due: Due, is_last: bool) -> None:
        """Run sections beside training, or after what still runs there. Sections are skipped only before the end.

        The final policy is the one that counts, and training waits for its evaluation in any case.
        """
        with self._lock:
            is_busy = self._thread is not None and not is_last
            allowed = [s for s in due.sections if not is_busy or s.config.busy is not Busy.SKIP]
        skipped = [s.name for s in due.sections if s not in allowed]
        if skipped:
            self._say(f"{', '.join(skipped)}: skipped at epoch {due.epoch}, since the evaluation before still runs")
        if not allowed:
            return
        if any(s.config.busy is Busy.WAIT for s in allowed) and not is_last:
            self.wait()
        with self._lock:
            self._waiting.append(Due(tuple(allowed), due.policy, due.step, due.epoch))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="evaluations", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        """Run what waits, one after another."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                due = self._waiting.popleft()
            self._evaluate(due, self._beside)

    def _evaluate(self, due: Due, engines: Engines) -> None:
        def through(outcome: Outcome) -> None:
            if outcome.run is not None:
                finish(outcome.run)
            self._say(_told(outcome, due.epoch))

        try:
            evaluate_sections(
                due.sections,
                str(due.policy),
                self._out,
                step=due.step,
                epoch=due.epoch,
                engines=engines,
                sinks=self._sinks,
                on_outcome=through,
            )
        except Exception as error:
            self._say(f"evaluation at epoch {due.epoch} failed: {error}")


def _told(outcome: Outcome, epoch: int) -> str:
    """A line about a section that is through."""
    if outcome.error is not None:
        first = str(outcome.error).strip().partition("\n")[0] or type(outcome.error).__name__
        return f"{outcome.name} at epoch {epoch}: failed: {first}" + (
            f"; see {outcome.run.folder}" if outcome.run else ""
        )
    metrics = (outcome.run.metrics or {}) if outcome.run else {}
    names = ("score", "at_fault_collision_rate", "off_road_rate")
    shown = [f for f in metrics.get("figures", ()) if f["name"] in names]
    told = ", ".join(f"{f['name']} {f['value']:.3f} (n {f['n']})" for f in shown if f["value"] is not None)
    return f"{outcome.name} at epoch {epoch}: {told or 'no data'}"
