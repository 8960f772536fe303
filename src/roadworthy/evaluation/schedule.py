"""Evaluate during training: decide which sections are due after an update, and run them.

A section with `engine = "inline"` runs at once, while training waits. One with `engine = "workers"` runs in
parallel with training, in a pool of processes that stays alive between evaluations. An error in an evaluation does not
stop training: it is recorded in the failed run, and printed.
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
from roadworthy.evaluation.config import Busy
from roadworthy.evaluation.evaluate import Engines, evaluate_sections
from roadworthy.evaluation.finish import finish
from roadworthy.evaluation.runs import Outcome
from roadworthy.evaluation.sections import Section
from roadworthy.policy.checkpoint_files import ABOUT, WEIGHTS
from roadworthy.record.run import Run
from roadworthy.sinks import Sinks

Say = Callable[[str], None]  # prints a line


@dataclass(frozen=True)
class Due:
    """Sections to run with a policy."""

    sections: tuple[Section, ...]
    policy: Path
    step: int
    epoch: int


class Schedule:
    """The sections of a training config. A context: its end waits for evaluations that still run."""

    def __init__(self, sections: Sequence[Section], out: Path, sinks: Sinks, say: Say) -> None:
        self._say, self._out, self._sinks = say, out, sinks
        self._sections = [section for section in sections if not section.is_template]
        self._inline, self._beside = Engines(), Engines()
        self._waiting: deque[Due] = deque()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def due(self, epoch: int, *, is_last: bool = False) -> list[Section]:
        """Return the sections to run after an update: those whose interval divides its number, and all at the end.

        A section with an error is due once, at the start: its failed run has the error.
        """
        if epoch == 0:
            return [s for s in self._sections if s.error is not None or (s.config.enabled and s.config.at_start)]
        sound = [s for s in self._sections if s.error is None and s.config.enabled]
        return [s for s in sound if is_last or (s.config.interval > 0 and epoch % s.config.interval == 0)]

    def run(self, epoch: int, step: int, save: Callable[[], Path], is_last: bool = False) -> None:
        """Run the sections that are due. `save` writes a checkpoint of the current policy. Raises no error."""
        sections = [section for section in self.due(epoch, is_last=is_last) if not self._has_run(section, step)]
        if not sections:
            return
        try:
            policy = self._copy(save())
        except Exception as error:
            self._say(f"evaluation at epoch {epoch} has no policy: {error}")
            return
        beside = [s for s in sections if s.error is None and s.config.engine != "inline"]
        now = [s for s in sections if s not in beside]
        if now:
            self._evaluate(Due(tuple(now), policy, step, epoch), self._inline)
        if beside:
            self._start_beside(Due(tuple(beside), policy, step, epoch), is_last)

    def _has_run(self, section: Section, step: int) -> bool:
        """Return whether a section has evaluated the policy of this step: a finished training may be called again."""
        for folder in (self._out / section.name).glob("*/"):
            with suppress(RoadworthyError):  # a folder that can't be read does not count
                run = Run(folder)
                if run.is_sealed and run.header.get("step") == step:
                    return True
        return False

    def wait(self) -> None:
        """Wait until no evaluation runs in parallel with training."""
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

    def _copy(self, checkpoint: Path) -> Path:
        """Copy a checkpoint, so that training does not remove it during the evaluation; the name stays."""
        folder = self._out / "policies" / checkpoint.name
        folder.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS, ABOUT):
            shutil.copyfile(checkpoint / name, folder / name)
        return folder

    def _start_beside(self, due: Due, is_last: bool) -> None:
        """Run sections in parallel with training, after evaluations that are still running there.

        Sections are skipped only before the end: the final policy counts most, and training waits for its evaluation.
        """
        with self._lock:
            is_busy = self._thread is not None and not is_last
            allowed = [s for s in due.sections if not is_busy or s.config.busy is not Busy.SKIP]
        skipped = [s.name for s in due.sections if s not in allowed]
        if skipped:
            self._say(f"{', '.join(skipped)}: skipped at epoch {due.epoch}, because the previous evaluation still runs")
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
        """Run waiting evaluations, one after another."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                due = self._waiting.popleft()
            self._evaluate(due, self._beside)

    def _evaluate(self, due: Due, engines: Engines) -> None:
        def conclude(outcome: Outcome) -> None:
            if outcome.run is not None:
                finish(outcome.run)
            self._say(_line(outcome, due.epoch))

        try:
            evaluate_sections(
                due.sections,
                str(due.policy),
                self._out,
                step=due.step,
                epoch=due.epoch,
                engines=engines,
                sinks=self._sinks,
                on_outcome=conclude,
            )
        except Exception as error:
            self._say(f"evaluation at epoch {due.epoch} failed: {error}")


def _line(outcome: Outcome, epoch: int) -> str:
    """Return a line about a section that has ended."""
    if outcome.error is not None:
        where = f"; see {outcome.run.folder}" if outcome.run else ""
        return f"{outcome.name} at epoch {epoch}: failed: {outcome.reason}{where}"
    metrics = (outcome.run.metrics or {}) if outcome.run else {}
    names = ("score", "at_fault_collision_rate", "off_road_rate")
    shown = [f for f in metrics.get("figures", ()) if f["name"] in names]
    figures = ", ".join(f"{f['name']} {f['value']:.3f} (n {f['n']})" for f in shown if f["value"] is not None)
    return f"{outcome.name} at epoch {epoch}: {figures or 'no data'}"
