"""`roadworthy train`: learn to drive, with a live table of how it goes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, console, examples, note, tell, tell_json
from roadworthy.cli.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.train.loop import Progress

EXAMPLES = examples(
    "roadworthy train fast --out runs/first",
    "roadworthy train default --set seed=2 --set ppo.entropy=0.02",
    "roadworthy train my.toml --out runs/mine --trace boundaries.jsonl",
    "torchrun --nproc-per-node 2 -m roadworthy train default",
)
LINE_EVERY_S = 5.0


def train(
    config: Annotated[str, typer.Argument(help="A TOML file, or a preset: fast, default, adaptive.")],
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/train/CONFIG by default.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="key=value, over the file's.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin anew, even if the folder has a run to go on with.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write where memory is cleared and value chains stop.")] = None,
    json: JsonFlag = False,
) -> None:
    """Train a policy; the same command goes on where it stopped. Ctrl-C writes a checkpoint first."""
    from roadworthy.config import load
    from roadworthy.sources import parse_source
    from roadworthy.train.config import TrainConfig
    from roadworthy.train.run import preset_path, train

    path = preset_path(config)
    settings = load(path, TrainConfig, overrides or [])
    folder = out or Path("runs") / "train" / path.stem
    with progress("generating scenarios") as report:
        pack = parse_source(settings.scenarios).fetch(report)
    with _interruptible() as was_interrupted, _shown() as show:
        checkpoint = train(settings, pack, folder, is_new=new, trace=trace, report=show, should_stop=was_interrupted)
    if was_interrupted():
        note(f"interrupted; the same command goes on from {checkpoint}")
        raise typer.Exit(130)
    if json:
        tell_json({"checkpoint": str(checkpoint)})
    else:
        tell(f"trained: {checkpoint}")


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a wish, which the loop sees between updates; the second ends at once."""
    wished = False

    def wish(*_: Any) -> None:
        nonlocal wished
        if wished:
            raise KeyboardInterrupt
        wished = True
        note("finishing this update and writing a checkpoint; Ctrl-C again ends at once")

    before = signal.signal(signal.SIGINT, wish)
    try:
        yield lambda: wished
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """A table that is drawn anew with every update on a terminal; a line every few seconds elsewhere."""
    if sys.stderr.isatty():
        from rich.live import Live

        with Live(console=console(is_stderr=True), refresh_per_second=4) as live:
            yield lambda told: live.update(_table(told))
        return
    due = 0.0

    def write(told: Progress) -> None:
        nonlocal due
        if told.seconds >= due or told.step >= told.steps:
            due = told.seconds + LINE_EVERY_S
            sys.stderr.write(_line(told) + "\n")
            sys.stderr.flush()

    yield write


def _table(told: Progress) -> Table:
    from rich.table import Table

    table = Table(title=f"update {told.epoch:,}", title_justify="left", show_header=False, min_width=72)
    for _ in range(2):
        table.add_column(style="dim")
        table.add_column(justify="right")
    left, right = _run_facts(told), _figures(told)
    for k in range(max(len(left), len(right))):
        table.add_row(*(left[k] if k < len(left) else ("", "")), *(right[k] if k < len(right) else ("", "")))
    return table


def _run_facts(told: Progress) -> list[tuple[str, str]]:
    facts = [
        ("agent-steps", f"{told.step:,} of {told.steps:,}"),
        ("per second", f"{told.steps_per_s:,.0f}"),
        ("time left", _duration(_left_s(told))),
        ("trials in an episode", str(told.trials)),
        ("learning rate", f"{told.rate:.2e}"),
    ]
    facts += [(name.replace("_", " "), f"{value:.4g}") for name, value in told.losses.items()]
    if told.memory_bytes:
        facts.append(("peak memory", f"{told.memory_bytes / 2**30:.1f} GiB"))
    return facts


def _figures(told: Progress) -> list[tuple[str, str]]:
    shown = [
        "score",
        "goal_rate",
        "collision_rate",
        "off_road_rate",
        "red_light_rate",
        "comfort",
        "distance_m",
        "return",
    ]
    shown += [name for name in told.figures if name.startswith(("trial_", "ada_delta"))]
    lines = [("agents with data (n)", f"{told.figures.get('n') or 0:,}")]
    for name in shown:
        value = told.figures.get(name)
        lines.append((name, "no data" if value is None else f"{value:.3f}"))
    return lines


def _line(told: Progress) -> str:
    parts = [
        f"update {told.epoch}",
        f"{told.step:,} of {told.steps:,} agent-steps",
        f"{told.steps_per_s:,.0f}/s",
        f"{_duration(_left_s(told))} left",
        *(f"{name} {told.losses[name]:.3g}" for name in ("entropy", "explained_variance")),
    ]
    for name in ("score", "collision_rate", "off_road_rate"):
        value = told.figures.get(name)
        parts.append(f"{name} {'no data' if value is None else f'{value:.3f}'}")
    return " · ".join([*parts, f"n {told.figures.get('n') or 0}"])


def _left_s(told: Progress) -> float:
    return (told.steps - told.step) / told.steps_per_s if told.steps_per_s > 0 else 0.0


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
