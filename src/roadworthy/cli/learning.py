"""The display of a training run: a live table or lines on stderr, and a summary at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from roadworthy.cli.output import console

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from roadworthy.training.progress import Progress
    from roadworthy.training.train import TrainResult

LINE_INTERVAL_S = 5.0
_LABELS = {"approx_kl": "approx. KL", "clipfrac": "clip fraction", "grad_norm": "gradient norm"}
_IN_LINES = ("policy_loss", "value_loss", "entropy", "explained_variance")
_FIGURES = (
    "score goal_rate completion_rate at_fault_collision_rate collision_rate off_road_rate red_light_rate "
    "timed_out_rate comfort distance_m return"
).split()
_OF_TRIALS = ("trial_", "ada_delta")


class Display:
    """Shows training runs, from the first update to the end."""

    def __init__(self, *, is_shown: bool = True) -> None:
        """Prepare a display; with several processes, only one shows it."""
        self._last: Progress | None = None
        self._is_shown = is_shown
        self._live: Live | None = None
        self._line_due_s = 0.0

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def update(self, progress: Progress) -> None:
        """Show an update: in a table on a terminal, otherwise in a line every few seconds."""
        if self._last is None or progress.update < self._last.update:
            self._line_due_s = 0.0  # the first update of another run of a grid
        self._last = progress
        if not self._is_shown:
            return
        if sys.stderr.isatty():
            if self._live is None:
                from rich.live import Live

                self._live = Live(console=console(is_stderr=True), refresh_per_second=4)
                self._live.start()
            self._live.update(table(progress), refresh=True)
            if progress.step >= progress.steps:
                self._stop()
        elif progress.seconds >= self._line_due_s or progress.step >= progress.steps:
            self._line_due_s = progress.seconds + LINE_INTERVAL_S
            sys.stderr.write(line(progress) + "\n")
            sys.stderr.flush()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def summary(self, result: TrainResult) -> list[str]:
        """Return what to print at the end."""
        lines = [f"trained: {result.last}"]
        if self._last is None:
            lines[0] += " (the training was finished before; to continue it, give more steps: --set steps=N)"
        else:
            lines.append(f"{result.step:,} agent-steps; this call took {duration(self._last.seconds)}")
            lines.append(f"in training: {_outcome(self._last)}")
        if result.best != result.last:
            lines.append(f"best: {result.best}")
        if (curve := result.folder / "curve.png").exists():
            lines.append(f"curve: {curve}")
        if (result.folder / "tensorboard").is_dir():
            lines.append(f"curves: tensorboard --logdir {result.folder}")
        if any((result.folder / "wandb").glob("offline-run-*")):
            lines.append(f"curves: wandb sync {result.folder / 'wandb' / 'offline-run-*'}")
        return [*lines, f"evaluate it: roadworthy evaluate town --policy {result.folder}"]

    def plain(self, result: TrainResult) -> dict[str, Any]:
        """Return the same for programs."""
        curve = result.folder / "curve.png"
        return {
            "folder": str(result.folder),
            "checkpoint": str(result.last),
            "best": str(result.best),
            "curve": str(curve) if curve.exists() else None,
            "step": result.step,
            "figures": dict(result.figures),
        }


def table(progress: Progress) -> Table:
    """Return the live table: the learner on the left, the egos on the right."""
    from rich.table import Table

    share = min(progress.step / progress.steps, 1.0)
    title = f"training: {share:.0%}, {duration(left_s(progress))} left"
    shown = Table(title=title, title_justify="left", show_header=False, min_width=72)
    for _ in range(2):
        shown.add_column(style="dim")
        shown.add_column(justify="right")
    left, right = run_facts(progress), figures(progress)
    for k in range(max(len(left), len(right))):
        shown.add_row(*(left[k] if k < len(left) else ("", "")), *(right[k] if k < len(right) else ("", "")))
    return shown


def run_facts(progress: Progress) -> list[tuple[str, str]]:
    """Return progress, speed and losses."""
    facts = [
        ("agent-steps", f"{progress.step:,} of {progress.steps:,}"),
        ("per second", f"{progress.steps_per_s:,.0f}"),
        ("updates", f"{progress.update:,}"),
        ("time passed", duration(progress.seconds)),
        ("time left", duration(left_s(progress))),
        ("trials per episode", str(progress.trials)),
        ("learning rate", f"{progress.learning_rate:.2e}"),
    ]
    facts += [(_label(name), f"{value:.4g}") for name, value in progress.losses.items()]
    if progress.memory_bytes:
        facts.append(("peak memory", f"{progress.memory_bytes / 2**30:.1f} GiB"))
    return facts


def figures(progress: Progress) -> list[tuple[str, str]]:
    """Return the figures of the egos, with the names of progress.jsonl."""
    names = [*_FIGURES, *(name for name in progress.figures if name.startswith(_OF_TRIALS))]
    lines = [("agents with data (n)", f"{progress.figures.get('n') or 0:,}")]
    return lines + [(name, _number(name, progress.figures.get(name))) for name in names]


def line(progress: Progress) -> str:
    """Return an update in one line, for logs."""
    parts = [
        f"update {progress.update}",
        f"{progress.step:,} of {progress.steps:,} agent-steps",
        f"{progress.steps_per_s:,.0f}/s",
        f"{duration(left_s(progress))} left",
        *(f"{_label(name)} {value:.3g}" for name, value in progress.losses.items() if name in _IN_LINES),
    ]
    return " · ".join([*parts, _outcome(progress)])


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def _outcome(progress: Progress) -> str:
    """Return the most important figures, and the number of egos."""
    names = ["score", "at_fault_collision_rate", "off_road_rate"]
    names += [name for name in progress.figures if name.startswith("ada_delta")]
    shown = [f"{name} {_number(name, progress.figures.get(name))}" for name in names]
    return " · ".join([*shown, f"n {progress.figures.get('n') or 0}"])


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "no data"
    return f"{value:+.3f}" if name.startswith("ada_delta") else f"{value:.3f}"


def left_s(progress: Progress) -> float:
    """Return the seconds until the end of training, at the speed of the last updates."""
    return (progress.steps - progress.step) / progress.steps_per_s if progress.steps_per_s > 0 else 0.0


def duration(seconds: float) -> str:
    """Return seconds in words, as "1 h 5 min"."""
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
