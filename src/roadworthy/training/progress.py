"""The progress of a training run: what is known after each update, and the file progress.jsonl with a line for each."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roadworthy.record.files import write_whole

PROGRESS = "progress.jsonl"
# Names in files of earlier versions.
_OLD_NAMES = {"epoch": "update", "rate": "learning_rate"}
_OLD_LOSSES = {
    "policy": "policy_loss",
    "value": "value_loss",
    "divergence": "approx_kl",
    "clipped": "clipfrac",
    "gradient": "grad_norm",
}


@dataclass(frozen=True)
class Progress:
    """The state of a training run after an update."""

    update: int  # number of updates so far
    step: int  # agent-steps so far
    steps: int  # agent-steps of the whole training
    seconds: float  # since the run started or resumed
    steps_per_s: float  # agent-steps per second, over the last updates
    trials: int  # per episode
    learning_rate: float
    losses: dict[str, float]  # see ppo.Losses, and explained_variance
    figures: dict[str, float | None]  # the last report, see DriveEnv.report; empty before the first
    memory_bytes: int  # peak on the GPU; 0 on a CPU
    is_reported: bool = True  # whether figures were reported in this update; otherwise they are from an earlier one


class Clock:
    """Measures seconds since the start, and steps per second over the last few updates."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._recent: list[tuple[float, int]] = [(self._started, 0)]

    def tick(self, steps: int) -> tuple[float, float]:
        """Return both after an update with this many steps."""
        now = time.perf_counter()
        self._recent = [*self._recent[-10:], (now, steps)]
        passed = now - self._recent[0][0]
        return now - self._started, sum(n for _, n in self._recent[1:]) / passed


def read_progress(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a progress.jsonl; lines of earlier versions get the current names."""
    return [line for line in map(_parsed, path.read_text(encoding="utf-8").splitlines()) if line is not None]


def last_progress(folder: Path) -> dict[str, Any]:
    """Return the last complete line of a training folder's progress.jsonl, empty before the first."""
    path = folder / PROGRESS
    texts = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line for line in map(_parsed, reversed(texts)) if line is not None), {})


def drop_from(path: Path, update: int) -> None:
    """Remove the lines of a log from this update on, and a line that was cut off."""
    if not path.exists():
        return
    kept = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
            if line.get("update", line.get("epoch")) >= update:
                break
        except (ValueError, AttributeError, TypeError):
            break
        kept.append(text)
    write_whole(path, "".join(f"{text}\n" for text in kept).encode())


def _parsed(text: str) -> dict[str, Any] | None:
    """Return a line with current names, None for one that was cut off."""
    try:
        line = {_OLD_NAMES.get(name, name): value for name, value in json.loads(text).items()}
    except ValueError:
        return None
    line["losses"] = {_OLD_LOSSES.get(name, name): value for name, value in line["losses"].items()}
    return line
