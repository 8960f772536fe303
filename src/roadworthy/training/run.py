"""A training run as a folder: found again where it stopped, with its config, its progress and its checkpoints.

One trainer at a time may write there (see record/lock.py); one that was killed is in nobody's way.

<out>/config.json        the config, resolved
<out>/progress.jsonl     a line per update
<out>/checkpoints/       see resume.py
<out>/sinks.json         see telemetry.py; sinks that write files have folders beside it, such as <out>/tensorboard
<out>/before-<k>/        what an earlier run left there, which --new set aside
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
from roadworthy.policy.checkpoint_files import newest, remove_partial_checkpoints
from roadworthy.record.files import remove_leftovers, write_whole
from roadworthy.record.lock import Lock, living_owner
from roadworthy.sinks import Sinks
from roadworthy.training.config import TrainConfig
from roadworthy.training.loop import Progress, Trainer
from roadworthy.training.processes import is_first_process
from roadworthy.training.resume import MAY_CHANGE, changed_keys, checkpoints_of, forget_from, last_progress
from roadworthy.training.telemetry import FILE as SINKS_FILE
from roadworthy.training.telemetry import Telemetry

# Epoch, step, what writes a checkpoint of the policy as it is, and whether training has come to its end.
Evaluate = Callable[[int, int, Callable[[], Path], bool], None]
PRESETS = Path(__file__).parent / "presets"


def preset_path(name: str) -> Path:
    """The file of a preset, or the path that was given."""
    known = sorted(path.stem for path in PRESETS.glob("*.toml"))
    if name in known:
        return PRESETS / f"{name}.toml"
    if not Path(name).exists():
        raise UsageError(f"there is no config {name!r}; expected a TOML file, or one of: {', '.join(known)}")
    return Path(name)


def train(
    config: TrainConfig,
    pack: Path,
    folder: Path,
    *,
    is_new: bool = False,
    trace: Path | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    warn: Callable[[str], None] = lambda _: None,
    evaluate: Evaluate | None = None,
    sinks: Sinks | None = None,
) -> Path:
    """Train, or go on where the run in this folder stopped; the last checkpoint's folder.

    Where the newest checkpoint is damaged, `warn` is told and the one before it is taken.
    is_new: begin anew; what an earlier run left in the folder is moved to a folder within.
    evaluate: runs the evaluations that are due, at the start, after each update and at the end; in one process alone.
    sinks: get the scalars of every update; see telemetry.py. One that fails is told by `warn`.
    """
    with _held(folder):
        logged_step = 0 if is_new else int(last_progress(folder).get("step", 0))
        trainer = _ready(config, pack, folder, is_new, trace, warn)
        is_first = trainer.processes.is_first
        telemetry = Telemetry(sinks if sinks is not None and is_first else Sinks({}, folder), folder, warn)
        telemetry.begin(config, logged_step)
        with (
            closing(trainer.processes),
            closing(telemetry),
            (folder / "progress.jsonl").open("a", encoding="utf-8") as log,
        ):

            def told(progress: Progress) -> None:
                if is_first:
                    log.write(json.dumps(asdict(progress)) + "\n")
                    log.flush()
                report(progress)
                telemetry.publish(progress)

            if evaluate is None or not is_first:
                return trainer.run(told, should_stop)
            if trainer.epoch == 0:
                evaluate(0, 0, trainer.save, False)

            def after(trained: Trainer) -> None:
                if trained.step < config.steps:  # what is due after the last update runs once, at the end
                    evaluate(trained.epoch, trained.step, trained.save, False)

            checkpoint = trainer.run(told, should_stop, after)
            if trainer.step >= config.steps:
                evaluate(trainer.epoch, trainer.step, lambda: checkpoint, True)
            return checkpoint


def _ready(
    config: TrainConfig, pack: Path, folder: Path, is_new: bool, trace: Path | None, warn: Callable[[str], None]
) -> Trainer:
    """A trainer at the start of a run, or where the run in this folder stopped."""
    if is_first_process():
        remove_leftovers(folder)
        remove_partial_checkpoints(checkpoints_of(folder))
    last = None if is_new else _newest(checkpoints_of(folder), warn)
    _require_same(config, folder, has_begun=last is not None)
    trainer = Trainer(config, pack, folder, trace, warn)
    if last is not None:
        trainer.resume(last)
    if trainer.processes.is_first:
        if is_new:
            _set_aside(folder)
        write_whole(folder / "config.json", json.dumps(plain(config), indent=1).encode())
        forget_from(folder / "progress.jsonl", trainer.epoch + 1)
    return trainer


def _newest(checkpoints: Path, warn: Callable[[str], None]) -> Path | None:
    """The newest whole checkpoint, None before the first; damaged ones that came after it are named."""
    last = newest(checkpoints)
    later = sorted(path for path in checkpoints.glob("step_*") if last is None or path.name > last.name)
    if later and last is None:
        raise CheckpointError(
            f"all checkpoints in {checkpoints} are damaged; give --new to begin anew, or another --out"
        )
    if later:
        warn(f"damaged: {', '.join(map(str, later))}; going on from the one before, {last}")
    return last


def _set_aside(folder: Path) -> None:
    """Move what an earlier run left: its checkpoints would be taken for those of this one."""
    names = ("config.json", "progress.jsonl", "checkpoints", "evaluations", SINKS_FILE, "tensorboard", "wandb")
    left = [folder / name for name in names if (folder / name).exists()]
    if left:
        place = next(path for k in count(1) if not (path := folder / f"before-{k}").exists())
        place.mkdir()
        for path in left:
            path.rename(place / path.name)


def _require_same(config: TrainConfig, folder: Path, has_begun: bool) -> None:
    if has_begun and (folder / "config.json").exists():
        known = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        changed = changed_keys(known, plain(config))
        if changed:
            raise CheckpointError(
                f"{folder} holds a run with another config (other: {', '.join(changed)}); give --new to begin anew "
                f"there, or another --out. Where a run goes on, only these may change: {', '.join(MAY_CHANGE)}"
            )


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep other trainers out of a folder; of the processes of one run, the first does so for all."""
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
            folder.rmdir()  # a run that could not begin leaves no empty folder
