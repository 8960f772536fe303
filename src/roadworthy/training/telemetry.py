"""Telemetry: what sinks get of a training, under the names that SB3, CleanRL and PufferLib have made known.

Scalars lie over agent-steps. `charts/*` says how fast and far training is, `losses/*` how the learner does, and
`environment/*` how the egos drive: means over agents with one weight each, and `environment/n`, how many agents those
are. A sink that fails is a line on the console and is left alone for a while; training continues.

<run>/sinks.json   the training's identity in sinks, and the last step that they were given: a training that was killed
                   resumes from an earlier step, and what was shown before is not shown twice
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
from roadworthy.training.loop import Progress

FILE = "sinks.json"
LOSSES = {
    "policy": "policy_loss",
    "value": "value_loss",
    "entropy": "entropy",
    "divergence": "approx_kl",
    "clipped": "clipfrac",
    "gradient": "grad_norm",
    "explained_variance": "explained_variance",
}
# A sink that failed is left alone for so many times as long as its failure took, and for some seconds at least.
_REST, _LEAST_REST_S = 20.0, 30.0
_GIB = 2.0**30


def scalars_of(progress: Progress) -> dict[str, float | None]:
    """Name the scalars of an update as sinks show them; figures only where they were reported in this update."""
    charts = {
        "SPS": progress.steps_per_s,
        "learning_rate": progress.rate,
        "epoch": progress.epoch,
        "trials": progress.trials,
        "wall_s": progress.seconds,
    }
    if progress.memory_bytes:
        charts["gpu_memory_gib"] = progress.memory_bytes / _GIB
    named: dict[str, float | None] = {f"charts/{name}": value for name, value in charts.items()}
    named |= {f"losses/{LOSSES.get(name, name)}": value for name, value in progress.losses.items()}
    if progress.is_reported:
        named |= {f"environment/{name}": value for name, value in progress.figures.items()}
    return named


@dataclass
class _Fault:
    """A sink that fails."""

    words: str
    missing: int  # updates that it was not given
    since_s: float
    until_s: float  # it is left alone until then


class Telemetry:
    """Hands the updates of one training to its sinks."""

    def __init__(
        self, sinks: Sinks, folder: Path, warn: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Get ready; warn is called once for each sink that begins to fail, and when it works again."""
        self._sinks, self._folder, self._warn, self._clock = sinks, folder, warn, clock
        self._faults: dict[str, _Fault] = {}
        self._shown_step = 0

    def begin(self, config: TrainConfig, logged_step: int) -> None:
        """Begin to publish a training, or continue to.

        Args:
            config: the training's settings, which sinks show.
            logged_step: agent-steps of the last update that an earlier session made before it was stopped.
        """
        if not self._sinks:
            return
        known = _read(self._folder / FILE)
        if known:
            self._shown_step = max(int(known.get("shown_step", 0)), logged_step)
        name = str(known.get("id") or uuid4().hex[:8])
        told = {"id": name, "shown_step": self._shown_step}
        write_whole(self._folder / FILE, (json.dumps(told) + "\n").encode())
        self._sinks.describe(Training(name, self._folder.name, plain(config), is_resumed=bool(known)))

    def publish(self, progress: Progress) -> None:
        """Hand an update to all sinks but those that have just failed; nothing is raised."""
        if not self._sinks or progress.step <= self._shown_step:
            return
        resting = [name for name, fault in self._faults.items() if self._clock() < fault.until_s]
        before = self._clock()
        errors = self._sinks.publish(TrainingScalars(progress.step, progress.epoch, scalars_of(progress)), resting)
        took = self._clock() - before
        for name in resting:
            self._faults[name].missing += 1
        for name, words in errors.items():
            self._fail(name, words, took)
        for name in [name for name in self._faults if name not in errors and name not in resting]:
            self._warn(f"sink {name} works again; {self._faults.pop(name).missing} updates are missing in it")

    def close(self) -> None:
        """Say which sinks do not work at the end."""
        for name, fault in self._faults.items():
            self._warn(f"sink {name} failed to the end: {fault.words}; {fault.missing} updates are missing in it")

    def _fail(self, name: str, words: str, took_s: float) -> None:
        now, known = self._clock(), self._faults.get(name)
        until = now + max(_LEAST_REST_S, _REST * took_s)
        self._faults[name] = _Fault(words, 1 + (known.missing if known else 0), known.since_s if known else now, until)
        if known is None or known.words != words:
            self._warn(f"sink {name} failed: {words}; training continues, and the sink is tried again later")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
