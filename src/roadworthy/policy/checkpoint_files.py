"""The files of checkpoints: which checkpoint a path names, which ones are complete, and atomic writes. Needs no torch.

<training folder>/checkpoints/step_<agent-steps>/   a checkpoint: policy.safetensors, policy.json, see checkpoint.py
<training folder>/checkpoints/last, best            text files with the path of a checkpoint, relative to `checkpoints`
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadworthy import __version__
from roadworthy.errors import CheckpointError

SCHEMA_VERSION = 1
WEIGHTS, ABOUT = "policy.safetensors", "policy.json"
CHECKPOINTS = "checkpoints"
LAST, BEST = "last", "best"


class DamagedCheckpoint(CheckpointError):
    """A checkpoint with a missing or damaged file; another one may be taken in its place."""


def resolve_checkpoint(spec: str | Path) -> Path:
    """Return the folder of the checkpoint that a path names.

    Args:
        spec: A checkpoint folder or a file in it; a training folder, which means its newest complete checkpoint; or
            a training folder with `@last`, `@best` or `@STEP`, such as `runs/first@best` or `runs/first@24_000_000`.

    Example:
        >>> resolve_checkpoint("runs/first@best")
        PosixPath('runs/first/checkpoints/step_000024000512')
    """
    path = Path(spec).expanduser()
    folder, at, word = str(path).rpartition("@")
    if at and not path.exists() and Path(folder).is_dir():
        return _chosen(_checkpoints_in(Path(folder)), word, str(spec))
    if path.name in (WEIGHTS, ABOUT):
        return path.parent
    if path.name in (LAST, BEST) and path.is_file():
        return _pointed_at(path)
    if (path / ABOUT).exists() or (path / WEIGHTS).exists():
        return path
    found = newest(_checkpoints_in(path))
    if found is None:
        raise CheckpointError(
            f"{spec} is not a checkpoint; expected a checkpoint folder, which has {ABOUT} and {WEIGHTS}, or a training "
            f"folder, which has {CHECKPOINTS}/step_*"
        )
    return found


def newest(folder: Path) -> Path | None:
    """Return the checkpoint of a folder with the most recorded steps; damaged ones are passed over."""
    return next((path for _, path in by_steps(folder) if is_complete(path)), None)


def by_steps(folder: Path) -> list[tuple[int, Path]]:
    """Return the checkpoints of a folder with their steps, the most steps first; hidden folders are left out."""
    found = [(step, path) for path in folder.glob("[!.]*/") if (step := recorded_step(path)) is not None]
    return sorted(found, reverse=True)


def recorded_step(folder: Path) -> int | None:
    """Return the steps of a checkpoint, None if it is damaged. A newer schema version is an error, not damage."""
    try:
        return int(read_about(folder)["counters"]["step"])
    except (DamagedCheckpoint, KeyError, TypeError, ValueError):
        return None


def is_complete(folder: Path) -> bool:
    """Return whether all files of a checkpoint are as they were written."""
    try:
        about = read_about(folder)
        sums = {WEIGHTS: about.get("weights_sha256"), **about.get("files_sha256", {})}
        return all(hashlib.sha256(read_bytes(folder / name)).hexdigest() == known for name, known in sums.items())
    except DamagedCheckpoint:
        return False


def read_about(folder: Path) -> dict[str, Any]:
    """Return the JSON of a checkpoint."""
    try:
        about = json.loads(read_bytes(folder / ABOUT))
    except ValueError as error:
        raise DamagedCheckpoint(f"{folder / ABOUT} is damaged: {error}") from error
    version = about.get("schema_version") if isinstance(about, dict) else None
    if not isinstance(version, int):
        raise DamagedCheckpoint(f"{folder / ABOUT} has no schema_version, so it does not belong to a checkpoint")
    if version > SCHEMA_VERSION:
        raise CheckpointError(
            f"{folder} has schema version {version}; Roadworthy {__version__} reads versions up to {SCHEMA_VERSION}; "
            "update Roadworthy"
        )
    return about


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file of a checkpoint."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedCheckpoint(
            f"can't read {path}: {error.strerror}; a checkpoint is a folder with {ABOUT} and {WEIGHTS}"
        ) from error


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> Path:
    """Write files into a folder that appears as a whole or not at all; an existing one is replaced."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name, data in contents.items():
        with (partial / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    if folder.exists():
        old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
        folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old)
    else:
        partial.rename(folder)
    return folder


def remove_partial_checkpoints(folder: Path) -> None:
    """Remove what killed writers left in a folder of checkpoints; restore a checkpoint that was being replaced."""
    for partial in folder.glob(".*.partial"):
        shutil.rmtree(partial, ignore_errors=True)
    for old in folder.glob(".*.old"):
        name = old.name[1:].rsplit(".", 2)[0]
        if (folder / name).exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(folder / name)


def _checkpoints_in(folder: Path) -> Path:
    """Return where a training folder has its checkpoints; a folder of checkpoints is accepted too."""
    return folder / CHECKPOINTS if (folder / CHECKPOINTS).is_dir() else folder


def _chosen(checkpoints: Path, word: str, spec: str) -> Path:
    """Return the checkpoint that `@word` names."""
    if word == BEST and (checkpoints / BEST).is_file():
        return _pointed_at(checkpoints / BEST)
    if word == LAST and (last := newest(checkpoints)) is not None:
        return last
    found = by_steps(checkpoints)
    chosen = [path for step, path in found if word.replace("_", "").isdecimal() and step == int(word)]
    if not chosen:
        steps = ", ".join(str(step) for step, _ in found)
        raise CheckpointError(f"{spec} is not a checkpoint; expected @{LAST}, @{BEST} or @STEP with one of: {steps}")
    return chosen[0]


def _pointed_at(pointer: Path) -> Path:
    """Return the checkpoint that a pointer file names."""
    folder = Path(os.path.normpath(pointer.parent / pointer.read_text(encoding="utf-8").strip()))
    if not folder.is_dir():
        raise CheckpointError(f"{pointer} names {folder}, which does not exist; name a checkpoint by its step instead")
    return folder
