"""`roadworthy train`: learn to drive, with a live table of how it goes."""

from __future__ import annotations

import os
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

    from roadworthy.cli.evaluators import Evaluators
    from roadworthy.config import Layer
    from roadworthy.train.config import TrainConfig
    from roadworthy.train.grid import Point
    from roadworthy.train.loop import Progress

EXAMPLES = examples(
    "roadworthy train fast --out runs/first",
    "roadworthy train default --set seed=2 --set ppo.entropy=0.02",
    "roadworthy train my.toml --out runs/mine --trace boundaries.jsonl",
    "torchrun --nproc-per-node 2 -m roadworthy train default",
    "roadworthy train fast --grid policy.core=mlp,lstm --grid seed=1,2,3",
    "roadworthy train fast --grid seed=1,2,3 --grid-index $SLURM_ARRAY_TASK_ID",
)
LINE_EVERY_S = 5.0
INTERRUPTED, SOME_FAILED = 130, 1


def train(
    config: Annotated[str, typer.Argument(help="A TOML file, or a preset: fast, default, adaptive.")],
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/train/CONFIG by default.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="key=value, over the file's.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin anew, even if the folder has a run to go on with.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write where memory is cleared and value chains stop.")] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid", metavar="KEY=V,V,...", help="Train with each of these values; several: every combination."
        ),
    ] = None,
    grid_index: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Of a grid, the N-th run alone, from 0: for clusters.")
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Train a policy; the same command goes on where it stopped. Ctrl-C writes a checkpoint first."""
    from roadworthy.cli.evaluators import Evaluators, split_overrides, without_evaluators
    from roadworthy.config import parse_overrides, read, resolve
    from roadworthy.errors import UsageError
    from roadworthy.train.config import TrainConfig
    from roadworthy.train.run import preset_path

    path = preset_path(config)
    of_training, of_evaluators = split_overrides(overrides or [])
    layers = [without_evaluators(read(path)), parse_overrides(of_training)]
    evaluators = Evaluators(path, tuple(of_evaluators))
    if grid:
        if grid_index is None and (trace or "WORLD_SIZE" in os.environ):
            raise UsageError("--trace and torchrun are for one run at a time; say with --grid-index which of the grid")
        folder = out or Path("runs") / "train" / f"{path.stem}-grid"
        return _train_grid(layers, grid, grid_index, folder, new, trace, evaluators, json)
    if grid_index is not None:
        raise UsageError("--grid-index is given without --grid")
    folder = out or Path("runs") / "train" / path.stem
    settings = resolve(TrainConfig, layers).config
    with _interruptible() as was_interrupted:
        checkpoint = _train_one(settings, folder, new, trace, evaluators, was_interrupted)
    if was_interrupted():
        _note_once(f"interrupted; the same command goes on from {checkpoint}")
        return INTERRUPTED
    if json and _is_first():
        tell_json({"checkpoint": str(checkpoint)})
    elif _is_first():
        tell(f"trained: {checkpoint}")
    return 0


def _train_one(
    settings: TrainConfig,
    folder: Path,
    is_new: bool,
    trace: Path | None,
    evaluators: Evaluators,
    was_interrupted: Callable[[], bool],
) -> Path:
    from roadworthy.sources import parse_source
    from roadworthy.train.run import train

    with progress("generating scenarios") as report:
        pack = parse_source(settings.scenarios).fetch(report)
    with _shown() as show, evaluators.scheduled(settings, folder, _note_once) as evaluate:
        return train(
            settings,
            pack,
            folder,
            is_new=is_new,
            trace=trace,
            report=show,
            should_stop=was_interrupted,
            warn=_note_once,
            evaluate=evaluate,
        )


def _train_grid(
    layers: list[Layer],
    axes: list[str],
    index: int | None,
    out: Path,
    is_new: bool,
    trace: Path | None,
    evaluators: Evaluators,
    as_json: bool,
) -> int:
    """Train the runs of a grid, or one of them; the table is of all."""
    from roadworthy.cli.grids import grid_table, seeds_table
    from roadworthy.errors import UsageError
    from roadworthy.train.grid import TABLE, Status, outcomes_of, read_grid, run_grid, write_table

    points = read_grid(axes, layers)
    if index is not None and index >= len(points):
        raise UsageError(f"--grid-index is {index}; the grid has {len(points)} runs, 0 to {len(points) - 1}")
    chosen = points if index is None else [points[index]]
    with _interruptible() as was_interrupted:

        def run(point: Point, folder: Path) -> None:
            _note_once(f"run {points.index(point) + 1} of {len(points)}: {point.name}")
            _train_one(point.config, folder, is_new, trace, evaluators, was_interrupted)

        done = run_grid(chosen, out, run, was_interrupted, is_new=is_new)
    outcomes = outcomes_of(points, out)
    if _is_first():
        write_table(outcomes, out / TABLE)
    if as_json and _is_first():
        tell_json({"table": str(out / TABLE), "runs": [outcome.row() for outcome in outcomes]})
    elif _is_first():
        tell(*grid_table(outcomes), *seeds_table(outcomes), f"table: {out / TABLE}")
    if was_interrupted():
        _note_once("interrupted; the same command goes on")
        return INTERRUPTED
    return SOME_FAILED if any(outcome.status is Status.FAILED for outcome in done) else 0


def _is_first() -> bool:
    """Whether this is the process that speaks, of those that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def _note_once(message: str) -> None:
    if _is_first():
        note(message)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a wish, which the loop sees between updates; the second ends at once."""
    wished = False

    def wish(*_: Any) -> None:
        nonlocal wished
        if wished:
            raise KeyboardInterrupt
        wished = True
        _note_once("finishing this update and writing a checkpoint; Ctrl-C again ends at once")

    before = signal.signal(signal.SIGINT, wish)
    try:
        yield lambda: wished
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """A table that is drawn anew with every update on a terminal; a line every few seconds elsewhere."""
    if not _is_first():
        yield lambda _: None
        return
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
