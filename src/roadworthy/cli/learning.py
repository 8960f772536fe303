"""How a training run shows itself: a live table or lines on stderr, the learning curve, and a summary at the end."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roadworthy.cli.output import console, note

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from roadworthy.training.config import TrainConfig
    from roadworthy.training.loop import Progress

LINE_EVERY_S = 5.0
CURVE_EVERY_S = 60.0
# What losses are called on the screen; the others as they are.
_LOSSES = {
    "policy": "policy loss",
    "value": "value loss",
    "divergence": "KL divergence",
    "clipped": "share clipped",
    "gradient": "gradient norm",
}
_IN_LINES = ("policy", "value", "entropy", "explained_variance")
_FIGURES = (
    "score goal_rate completion_rate at_fault_collision_rate collision_rate off_road_rate red_light_rate "
    "timed_out_rate comfort distance_m return"
).split()
_OF_TRIALS = ("trial_", "ada_delta")


class Display:
    """What is shown of one run, from its first update to its end."""

    checkpoint: Path | None = None  # the last, once there is one

    def __init__(self, folder: Path, settings: TrainConfig, *, is_shown: bool = True) -> None:
        """Get ready to show a run; is_shown: of several processes, one speaks."""
        from roadworthy.training.curve import PICTURE

        self.last: Progress | None = None
        self._folder, self._interval, self._is_shown = folder, settings.checkpoint_interval, is_shown
        self._curve = folder / PICTURE
        self._live: Live | None = None
        self._line_due = self._curve_due = 0.0

    def __enter__(self) -> Display:
        if self._is_shown and sys.stderr.isatty():
            from rich.live import Live

            self._live = Live(console=console(is_stderr=True), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if kind is None:
            self._draw()

    def update(self, told: Progress) -> None:
        """Show an update: on a terminal in a table, elsewhere in a line every few seconds."""
        self.last = told
        if not self._is_shown:
            return
        if self._live is not None:
            self._live.update(table(told, self._folder.name))
        elif told.seconds >= self._line_due or told.step >= told.steps:
            self._line_due = told.seconds + LINE_EVERY_S
            sys.stderr.write(line(told) + "\n")
            sys.stderr.flush()
        if told.epoch % self._interval == 0 and told.seconds >= self._curve_due:
            self._curve_due = told.seconds + CURVE_EVERY_S
            self._draw()

    def summary(self) -> list[str]:
        """Where everything is, in the end."""
        told = self.last
        lines = [f"trained: {self.checkpoint}"]
        if told is None:
            lines[0] += " (all its steps were made before; to train on, give more: --set steps=N)"
        else:
            lines.append(f"{told.step:,} agent-steps; this call took {duration(told.seconds)}")
            lines.append(f"while it learned: {_outcome(told)}")
        if self._curve.exists():
            lines.append(f"curve: {self._curve}")
        if (self._folder / "tensorboard").is_dir():
            lines.append(f"curves: tensorboard --logdir {self._folder}")
        if any((self._folder / "wandb").glob("offline-run-*")):
            lines.append(f"curves: wandb sync {self._folder / 'wandb' / 'offline-run-*'}")
        return [*lines, f"how good it is: roadworthy evaluate town --checkpoint {self.checkpoint}"]

    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        from roadworthy.training.resume import last_progress

        told = last_progress(self._folder)  # also where this call had nothing left to do
        return {
            "checkpoint": str(self.checkpoint),
            "curve": str(self._curve) if self._curve.exists() else None,
            "step": told.get("step"),
            "figures": told.get("figures", {}),
        }

    def _draw(self) -> None:
        """Draw the learning curve. No run fails for it."""
        from roadworthy.training.curve import draw_curve

        if not self._is_shown:
            return
        try:
            draw_curve(self._folder / "progress.jsonl", self._curve, self._folder.name)
        except (ImportError, OSError, ValueError) as error:
            note(f"the learning curve was not drawn: {error}")


def table(told: Progress, name: str) -> Table:
    """How a run stands: on the left what it does, on the right how its egos drive."""
    from rich.table import Table

    share = min(told.step / told.steps, 1.0)
    title = f"{name}: {share:.0%}, {duration(left_s(told))} left"
    shown = Table(title=title, title_justify="left", show_header=False, min_width=72)
    for _ in range(2):
        shown.add_column(style="dim")
        shown.add_column(justify="right")
    left, right = run_facts(told), figures(told)
    for k in range(max(len(left), len(right))):
        shown.add_row(*(left[k] if k < len(left) else ("", "")), *(right[k] if k < len(right) else ("", "")))
    return shown


def run_facts(told: Progress) -> list[tuple[str, str]]:
    """What a run does: how far it is, how fast, and what it learns."""
    facts = [
        ("agent-steps", f"{told.step:,} of {told.steps:,}"),
        ("per second", f"{told.steps_per_s:,.0f}"),
        ("updates", f"{told.epoch:,}"),
        ("time passed", duration(told.seconds)),
        ("time left", duration(left_s(told))),
        ("trials in an episode", str(told.trials)),
        ("learning rate", f"{told.rate:.2e}"),
    ]
    facts += [(_LOSSES.get(name, name.replace("_", " ")), f"{value:.4g}") for name, value in told.losses.items()]
    if told.memory_bytes:
        facts.append(("peak memory", f"{told.memory_bytes / 2**30:.1f} GiB"))
    return facts


def figures(told: Progress) -> list[tuple[str, str]]:
    """How the egos drive, by the names that progress.jsonl has."""
    names = [*_FIGURES, *(name for name in told.figures if name.startswith(_OF_TRIALS))]
    lines = [("agents with data (n)", f"{told.figures.get('n') or 0:,}")]
    return lines + [(name, _number(name, told.figures.get(name))) for name in names]


def line(told: Progress) -> str:
    """An update in one line, for logs."""
    parts = [
        f"update {told.epoch}",
        f"{told.step:,} of {told.steps:,} agent-steps",
        f"{told.steps_per_s:,.0f}/s",
        f"{duration(left_s(told))} left",
        *(f"{_LOSSES.get(name, name)} {value:.3g}" for name, value in told.losses.items() if name in _IN_LINES),
    ]
    return " · ".join([*parts, _outcome(told)])


def _outcome(told: Progress) -> str:
    """The figures that matter most, and of how many egos they are."""
    names = ["score", "at_fault_collision_rate", "off_road_rate"]
    names += [name for name in told.figures if name.startswith("ada_delta")]
    told_figures = [f"{name} {_number(name, told.figures.get(name))}" for name in names]
    return " · ".join([*told_figures, f"n {told.figures.get('n') or 0}"])


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "no data"
    return f"{value:+.3f}" if name.startswith("ada_delta") else f"{value:.3f}"


def left_s(told: Progress) -> float:
    """Seconds that the rest of a run will take, at the speed of its last updates."""
    return (told.steps - told.step) / told.steps_per_s if told.steps_per_s > 0 else 0.0


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
