"""`roadworthy train`: learn to drive, with a live table of how it goes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.cli.evaluators import Evaluators
    from roadworthy.cli.learning import Display
    from roadworthy.config import Layer
    from roadworthy.training.config import TrainConfig
    from roadworthy.training.grid import Point

EXAMPLES = examples(
    "roadworthy train fast --out runs/first",
    "roadworthy train fast --out runs/first --set steps=48_000_000",
    "roadworthy train fast --out runs/first --sink tensorboard",
    "roadworthy train default --sink wandb --set sinks.wandb.project=driving",
    "roadworthy train default --set seed=2 --set ppo.entropy=0.02",
    "roadworthy train my.toml --out runs/mine --trace boundaries.jsonl",
    "torchrun --nproc-per-node 2 -m roadworthy train default",
    "roadworthy train fast --grid policy.core=mlp,lstm --grid seed=1,2,3",
    "roadworthy train fast --grid seed=1,2,3 --grid-index $SLURM_ARRAY_TASK_ID",
)
INTERRUPTED, SOME_FAILED = 130, 1


def train(
    config: Annotated[
        str,
        typer.Argument(
            help="A TOML file, or a preset: fast (two CPU cores), default (one GPU), adaptive (one GPU, with memory)."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run's folder; runs/train/CONFIG by default.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, over the file's; repeatable.")
    ] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option("--sink", metavar="NAME", help="Show the curves in tensorboard or wandb, too; repeatable."),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin anew, even if the folder has a run to go on with.")] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write where memory is cleared and value chains stop.")
    ] = None,
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
    """Train a policy; the same command goes on where it stopped, with more steps if it asks for them.

    Ctrl-C writes a checkpoint first. The run's folder has checkpoints, progress.jsonl, and curve.png.
    """
    from roadworthy.cli.evaluators import Evaluators, split_overrides, without_evaluators
    from roadworthy.config import parse_overrides, read, resolve
    from roadworthy.errors import UsageError
    from roadworthy.training.config import TrainConfig
    from roadworthy.training.run import preset_path

    path = preset_path(config)
    of_training, of_evaluators = split_overrides(overrides or [])
    layers = [without_evaluators(read(path)), parse_overrides(of_training)]
    evaluators = Evaluators(path, tuple(of_evaluators), tuple(sink or ()))
    evaluators.require_sound()
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
        display = _train_one(settings, folder, new, trace, evaluators, was_interrupted)
    if was_interrupted():
        _note_once(f"interrupted; the same command goes on from {display.checkpoint}")
        return INTERRUPTED
    if json and _is_first():
        tell_json(display.plain())
    elif _is_first():
        tell(*display.summary())
    return 0


def _train_one(
    settings: TrainConfig,
    folder: Path,
    is_new: bool,
    trace: Path | None,
    evaluators: Evaluators,
    was_interrupted: Callable[[], bool],
) -> Display:
    from roadworthy.cli.learning import Display
    from roadworthy.sources import parse_source
    from roadworthy.training.run import train

    with progress("generating scenarios") as report:
        pack = parse_source(settings.scenarios).fetch(report)
    display = Display(folder, settings, is_shown=_is_first())
    with display, evaluators.scheduled(settings, folder, _note_once) as (evaluate, sinks):
        display.checkpoint = train(
            settings,
            pack,
            folder,
            is_new=is_new,
            trace=trace,
            report=display.update,
            should_stop=was_interrupted,
            warn=_note_once,
            evaluate=evaluate,
            sinks=sinks,
        )
    return display


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
    from roadworthy.training.grid import TABLE, Status, outcomes_of, read_grid, run_grid, write_table

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
