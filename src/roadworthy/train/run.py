"""A training run as a folder: found again where it stopped, with its config, its progress and its checkpoints.

<out>/config.json        the config, resolved
<out>/progress.jsonl     a line per update
<out>/checkpoints/       see resume.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from roadworthy.config import plain
from roadworthy.errors import CheckpointError, UsageError
from roadworthy.policy.checkpoint import newest
from roadworthy.train.config import TrainConfig
from roadworthy.train.loop import Progress, Trainer
from roadworthy.train.resume import checkpoints_of

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
) -> Path:
    """Train, or go on where the run in this folder stopped; the last checkpoint's folder.

    Where the newest checkpoint is damaged, the one before it is taken.
    """
    last = None if is_new else newest(checkpoints_of(folder))
    _require_same(config, folder, has_begun=last is not None)
    trainer = Trainer(config, pack, folder, trace)
    if last is not None:
        trainer.resume(last)
    if trainer.processes.is_first:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "config.json", json.dumps(plain(config), indent=1))
        _forget_after(folder / "progress.jsonl", trainer.epoch)
    try:
        with (folder / "progress.jsonl").open("a", encoding="utf-8") as log:

            def told(progress: Progress) -> None:
                if trainer.processes.is_first:
                    log.write(json.dumps(asdict(progress)) + "\n")
                    log.flush()
                report(progress)

            return trainer.run(told, should_stop)
    finally:
        trainer.processes.close()


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


def _forget_after(path: Path, epoch: int) -> None:
    """Drop lines of updates that were made after the checkpoint, and a line that was cut off."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["epoch"] <= epoch:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            break
    _write(path, "".join(f"{line}\n" for line in kept))


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
