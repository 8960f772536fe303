"""A training run as a folder: found again where it stopped, with its config, its progress and its checkpoints.

<out>/config.json        the config, resolved
<out>/progress.jsonl     a line per update
<out>/checkpoints/       see resume.py
<out>/before-<k>/        what an earlier run left there, which --new set aside
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path

from roadworthy.config import plain
from roadworthy.errors import CheckpointError, UsageError
from roadworthy.policy.checkpoint import newest
from roadworthy.train.config import TrainConfig
from roadworthy.train.loop import Progress, Trainer
from roadworthy.train.resume import checkpoints_of, forget_from, replace_text

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
) -> Path:
    """Train, or go on where the run in this folder stopped; the last checkpoint's folder.

    Where the newest checkpoint is damaged, `warn` is told and the one before it is taken.
    is_new: begin anew; what an earlier run left in the folder is moved to a folder within.
    evaluate: runs the evaluations that are due, at the start, after each update and at the end; in one process alone.
    """
    last = None if is_new else _newest(checkpoints_of(folder), warn)
    _require_same(config, folder, has_begun=last is not None)
    trainer = Trainer(config, pack, folder, trace)
    if last is not None:
        trainer.resume(last)
    folder.mkdir(parents=True, exist_ok=True)
    if trainer.processes.is_first:
        if is_new:
            _set_aside(folder)
        replace_text(folder / "config.json", json.dumps(plain(config), indent=1))
        forget_from(folder / "progress.jsonl", trainer.epoch + 1)
    try:
        with (folder / "progress.jsonl").open("a", encoding="utf-8") as log:

            def told(progress: Progress) -> None:
                if trainer.processes.is_first:
                    log.write(json.dumps(asdict(progress)) + "\n")
                    log.flush()
                report(progress)

            if evaluate is None or not trainer.processes.is_first:
                return trainer.run(told, should_stop)
            if last is None:
                evaluate(0, 0, trainer.save, False)

            def after(trained: Trainer) -> None:
                if trained.step < config.steps:  # what is due after the last update runs once, at the end
                    evaluate(trained.epoch, trained.step, trained.save, False)

            checkpoint = trainer.run(told, should_stop, after)
            if trainer.step >= config.steps:
                evaluate(trainer.epoch, trainer.step, lambda: checkpoint, True)
            return checkpoint
    finally:
        trainer.processes.close()


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
    names = ("config.json", "progress.jsonl", "checkpoints", "evaluations")
    left = [folder / name for name in names if (folder / name).exists()]
    if left:
        place = next(path for k in count(1) if not (path := folder / f"before-{k}").exists())
        place.mkdir()
        for path in left:
            path.rename(place / path.name)


def _require_same(config: TrainConfig, folder: Path, has_begun: bool) -> None:
    if has_begun and (folder / "config.json").exists():
        known = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if known != plain(config):
            changed = ", ".join(sorted(_differences(known, plain(config))))
            raise CheckpointError(
                f"{folder} holds a run with another config (other: {changed}); give --new to begin anew there, or "
                "another --out"
            )


def _differences(one: object, other: object, key: str = "") -> set[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return set().union(*(_differences(one.get(k), other.get(k), f"{key}.{k}".strip(".")) for k in keys))
    return set() if one == other else {key}
