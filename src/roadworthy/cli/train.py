"""`roadworthy train`: train a policy, with a live table of its progress."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

EXAMPLES = examples(
    "roadworthy train fast --out runs/first",
    "roadworthy train fast --out runs/first --set steps=48e6",
    "roadworthy train fast --out runs/first --eval town --sink tensorboard",
    "roadworthy train default --sink wandb --set sinks.wandb.project=driving",
    "roadworthy train default --set seed=2 --set ppo.ent_coef=0.02",
    "roadworthy train my.toml --out runs/mine --trace boundaries.jsonl",
    "torchrun --nproc-per-node 2 -m roadworthy train default",
    "roadworthy train fast --grid policy.core=mlp,lstm --grid seed=1,2,3",
    "roadworthy train fast --grid seed=1,2,3 --grid-index $SLURM_ARRAY_TASK_ID",
)
SOME_FAILED = 1


def train(
    config: Annotated[
        str,
        typer.Argument(
            help="A TOML file, or a preset: fast (two CPU cores), default (one GPU), adaptive (one GPU, with memory)."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The training folder; runs/train/CONFIG by default.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting that replaces the config's; repeatable."),
    ] = None,
    eval_: Annotated[
        str | None,
        typer.Option(
            "--eval", metavar="SUITE", help="Evaluate during training with a suite, such as town or suite.toml."
        ),
    ] = None,
    sink: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Also show the curves in tensorboard or wandb; repeatable.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start again, even if the folder has a run to resume.")] = False,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to FILE where memory is cleared and where value chains end."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=V,V,...", help="Train with each of these values; repeatable, for every combination."),
    ] = None,
    grid_index: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Train only run N of the grid, counted from 0; for clusters.")
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Train a policy; the same command resumes a training that was interrupted, or continues it with more steps.

    Ctrl-C saves a checkpoint. The training folder has checkpoints, progress.jsonl and curve.png.
    """
    from roadworthy.cli.learning import Display
    from roadworthy.training.grid import train_grid
    from roadworthy.training.train import train as train_policy

    display = Display(is_shown=_is_first())
    words: dict[str, Any] = {
        "out": out,
        "set": overrides or (),
        "eval": eval_,
        "sinks": sink or (),
        "new": new,
        "trace": trace,
        "progress": progress,
        "on_update": display.update,
        "say": _note_once,
    }
    if not grid:
        if grid_index is not None:
            raise UsageError("--grid-index is given without --grid")
        with display:
            result = train_policy(config, **words)
        if _is_first():
            tell_json(display.plain(result)) if json else tell(*display.summary(result))
        return 0
    if grid_index is None and (trace or "WORLD_SIZE" in os.environ):
        raise UsageError("--trace and torchrun support only one run; choose one of the grid with --grid-index")
    with display:
        runs = train_grid(config, grid, index=grid_index, **words)
    if _is_first() and json:
        tell_json({"table": str(runs.table), "runs": [outcome.row() for outcome in runs.outcomes]})
    elif _is_first():
        from roadworthy.cli.grids import grid_table, seeds_table

        tell(*grid_table(runs.outcomes), *seeds_table(runs.outcomes), f"table: {runs.table}")
    return SOME_FAILED if runs.has_failed else 0


def _is_first() -> bool:
    """Return whether this is the process that prints, of those that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def _note_once(message: str) -> None:
    if _is_first():
        note(message)
