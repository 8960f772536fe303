"""A training folder: created once, resumed by the same command, with its config, progress and checkpoints.

One trainer at a time may write there, see record/lock.py; a killed one does not block the next.

<folder>/config.json        the resolved config
<folder>/progress.jsonl     a line per update, see progress.py
<folder>/checkpoints/       see resume.py
<folder>/evaluations/       runs of the evaluators of the config
<folder>/sinks.json         see telemetry.py; sinks with files have folders beside it, as <folder>/tensorboard
<folder>/before-<k>/        an earlier run, which --new moved there
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path

from roadworthy.config import plain
from roadworthy.errors import CheckpointError, UsageError
from roadworthy.policy.checkpoint_files import CHECKPOINTS, newest, remove_partial_checkpoints
from roadworthy.record.files import remove_leftovers, write_whole
from roadworthy.record.lock import Lock, living_owner
from roadworthy.sinks import Sinks
from roadworthy.training.best import EVALUATIONS
from roadworthy.training.config import TrainConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.processes import is_first_process
from roadworthy.training.progress import PROGRESS, Progress, drop_from, last_progress
from roadworthy.training.resume import MAY_CHANGE, changed_keys, recorded_config
from roadworthy.training.telemetry import FILE as SINKS_FILE
from roadworthy.training.telemetry import Telemetry

# Called with the number of updates, the step, a function that saves a checkpoint, and whether training has ended.
Evaluate = Callable[[int, int, Callable[[], Path], bool], None]
CONFIG = "config.json"


def run_training(
    config: TrainConfig,
    pack: Path,
    folder: Path,
    *,
    is_new: bool = False,
    trace: Path | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
    evaluate: Evaluate | None = None,
    sinks: Sinks | None = None,
) -> Path:
    """Train in a folder, or resume the run that is there; return the folder of the last checkpoint.

    Args:
        config: The settings of the run.
        pack: The scenarios.
        folder: The training folder.
        is_new: Start again; an earlier run is moved to a folder within.
        trace: A file for the boundaries of memory and value chains, see trace.py.
        report: Called after every update.
        should_stop: Called before every update; true ends the training with a checkpoint.
        say: Gets messages for the user: where the run resumes, and problems that training survives.
        evaluate: Runs the evaluations that are due at the start, after each update and at the end; in one process only.
        sinks: Get the scalars of every update, see telemetry.py.
    """
    with _locked(folder):
        logged_step = 0 if is_new else int(last_progress(folder).get("step", 0))
        trainer = _ready_trainer(config, pack, folder, is_new, trace, say)
        is_first = trainer.processes.is_first
        telemetry = Telemetry(sinks if sinks is not None and is_first else Sinks({}, folder), folder, say)
        telemetry.start(config, logged_step)
        with closing(trainer.processes), closing(telemetry), (folder / PROGRESS).open("a", encoding="utf-8") as log:

            def publish(progress: Progress) -> None:
                if is_first:
                    log.write(json.dumps(asdict(progress)) + "\n")
                    log.flush()
                report(progress)
                telemetry.publish(progress)

            if evaluate is None or not is_first:
                return trainer.run(publish, should_stop)
            if trainer.updates == 0:
                evaluate(0, 0, trainer.save, False)

            def evaluate_after(trained: Trainer) -> None:
                if trained.step < config.steps:  # what is due after the last update runs once, at the end
                    evaluate(trained.updates, trained.step, trained.save, False)

            checkpoint = trainer.run(publish, should_stop, evaluate_after)
            if trainer.step >= config.steps:
                evaluate(trainer.updates, trainer.step, lambda: checkpoint, True)
            return checkpoint


def _ready_trainer(
    config: TrainConfig, pack: Path, folder: Path, is_new: bool, trace: Path | None, say: Callable[[str], None]
) -> Trainer:
    """Return a trainer at the start of a run, or in the state of the folder's newest checkpoint."""
    if is_first_process():
        remove_leftovers(folder)
        remove_partial_checkpoints(folder / CHECKPOINTS)
    last = None if is_new else _newest(folder / CHECKPOINTS, say)
    _require_same_config(config, folder, has_checkpoint=last is not None)
    trainer = Trainer(config, pack, folder, trace, say)
    if last is not None:
        trainer.resume(last)
        say(f"resuming from step {trainer.step:,} ({last})")
    if trainer.processes.is_first:
        if is_new:
            _move_earlier_run(folder)
        write_whole(folder / CONFIG, json.dumps(plain(config), indent=1).encode())
        drop_from(folder / PROGRESS, trainer.updates + 1)
    return trainer


def _newest(checkpoints: Path, say: Callable[[str], None]) -> Path | None:
    """Return the newest complete checkpoint, None if there is none yet; name damaged ones that are newer."""
    last = newest(checkpoints)
    damaged = sorted(path for path in checkpoints.glob("step_*") if last is None or path.name > last.name)
    if damaged and last is None:
        raise CheckpointError(
            f"all checkpoints in {checkpoints} are damaged; give --new to start again, or another --out"
        )
    if damaged:
        say(f"damaged: {', '.join(map(str, damaged))}; the checkpoint before is used")
    return last


def _move_earlier_run(folder: Path) -> None:
    """Move an earlier run away; its checkpoints would be mistaken for those of this one."""
    names = (CONFIG, PROGRESS, CHECKPOINTS, EVALUATIONS, SINKS_FILE, "tensorboard", "wandb")
    found = [folder / name for name in names if (folder / name).exists()]
    if found:
        place = next(path for k in count(1) if not (path := folder / f"before-{k}").exists())
        place.mkdir()
        for path in found:
            path.rename(place / path.name)


def _require_same_config(config: TrainConfig, folder: Path, has_checkpoint: bool) -> None:
    path = folder / CONFIG
    if has_checkpoint and path.exists():
        recorded = recorded_config(json.loads(path.read_text(encoding="utf-8")), str(path))
        changed = changed_keys(recorded, plain(config))
        if changed:
            raise CheckpointError(
                f"{folder} has a run with a different config (different: {', '.join(changed)}); give --new to start "
                f"again there, or another --out. A resumed run may only change: {', '.join(MAY_CHANGE)}"
            )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other trainers out of a folder; the first of several processes locks it for all."""
    folder.mkdir(parents=True, exist_ok=True)
    if not is_first_process():
        yield
        return
    other = living_owner(folder)
    if other is not None:
        raise UsageError(f"{folder}: {other} is training there; wait for it, stop it, or give another --out")
    lock = Lock(folder)
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):
            folder.rmdir()  # a run that could not start leaves no empty folder
