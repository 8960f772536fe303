"""Training scalars for sinks such as TensorBoard and W&B, with the names of CleanRL and PufferLib.

Scalars are plotted over agent-steps. `charts/*` are speed and progress, `losses/*` the learner, `environment/*` the
figures of the egos: means over agents with equal weights, and their number `environment/n`. A failing sink gives a
message and is tried again later; training continues.

<folder>/sinks.json   the identity of the training in sinks, and the last step that they got: a training that was killed
                      resumes from an earlier step, and steps that were shown before are not shown twice
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from roadworthy.config import plain
from roadworthy.record.files import write_whole
from roadworthy.sinks import Sinks, Training, TrainingScalars
from roadworthy.training.config import TrainConfig
from roadworthy.training.progress import Progress

FILE = "sinks.json"
# A sink that failed is not used for this multiple of the time that the failure took, and for a minimum of seconds.
_REST, _LEAST_REST_S = 20.0, 30.0
_GIB = 2.0**30


def scalars_of(progress: Progress) -> dict[str, float | None]:
    """Return the scalars of an update by name; figures only if they were reported in this update."""
    charts = {
        "SPS": progress.steps_per_s,
        "learning_rate": progress.learning_rate,
        "epoch": progress.update,
        "trials": progress.trials,
        "wall_s": progress.seconds,
    }
    if progress.memory_bytes:
        charts["gpu_memory_gib"] = progress.memory_bytes / _GIB
    named: dict[str, float | None] = {f"charts/{name}": value for name, value in charts.items()}
    named |= {f"losses/{name}": value for name, value in progress.losses.items()}
    if progress.is_reported:
        named |= {f"environment/{name}": value for name, value in progress.figures.items()}
    return named


@dataclass
class _Fault:
    """A failure of a sink."""

    words: str
    missing: int  # updates that the sink did not get
    until_s: float  # the sink is not used until then


class Telemetry:
    """Passes the updates of a training to its sinks."""

    def __init__(
        self, sinks: Sinks, folder: Path, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Wrap sinks; `say` is called when a sink starts to fail, and when it works again."""
        self._sinks, self._folder, self._say, self._clock = sinks, folder, say, clock
        self._faults: dict[str, _Fault] = {}
        self._shown_step = 0

    def start(self, config: TrainConfig, logged_step: int) -> None:
        """Start or resume a training in the sinks.

        Args:
            config: The settings, which sinks show.
            logged_step: Agent-steps of the last update before this call.
        """
        if not self._sinks:
            return
        known = _read(self._folder / FILE)
        if known:
            self._shown_step = max(int(known.get("shown_step", 0)), logged_step)
        name = str(known.get("id") or uuid4().hex[:8])
        identity = {"id": name, "shown_step": self._shown_step}
        write_whole(self._folder / FILE, (json.dumps(identity) + "\n").encode())
        self._sinks.describe(Training(name, self._folder.name, plain(config), is_resumed=bool(known)))

    def publish(self, progress: Progress) -> None:
        """Pass an update to all sinks, except those that have just failed. Raises nothing."""
        if not self._sinks or progress.step <= self._shown_step:
            return
        resting = [name for name, fault in self._faults.items() if self._clock() < fault.until_s]
        before = self._clock()
        errors = self._sinks.publish(TrainingScalars(progress.step, progress.update, scalars_of(progress)), resting)
        took = self._clock() - before
        for name in resting:
            self._faults[name].missing += 1
        for name, words in errors.items():
            self._fail(name, words, took)
        for name in [name for name in self._faults if name not in errors and name not in resting]:
            self._say(f"sink {name} works again; {self._faults.pop(name).missing} updates are missing in it")

    def close(self) -> None:
        """Say which sinks fail at the end."""
        for name, fault in self._faults.items():
            self._say(f"sink {name} failed until the end: {fault.words}; {fault.missing} updates are missing in it")

    def _fail(self, name: str, words: str, took_s: float) -> None:
        now, known = self._clock(), self._faults.get(name)
        until = now + max(_LEAST_REST_S, _REST * took_s)
        self._faults[name] = _Fault(words, 1 + (known.missing if known else 0), until)
        if known is None or known.words != words:
            self._say(f"sink {name} failed: {words}; training continues, and the sink is tried again later")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
