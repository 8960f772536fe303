"""Rollouts from files: `.npz`, or the challenge's submission."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.metrics.realism.submission import read_submission

NPZ_ARRAYS = ("object_id", "x", "y", "z", "heading")


def read_rollouts(path: Path, scenario_ids: Sequence[str]) -> Iterator[tuple[str, Rollouts]]:
    """Rollouts with the id of their scenario, one after another, each read when it is asked for.

    An `.npz` file is named after its scenario, unless there is only one to choose. Any other file is a submission. Of a
    folder, all files are read; those that start with a dot are left out.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not files:
            raise UsageError(f"{path}: the folder has no files; expected ID.npz for each scenario, or a submission")
        for file in files:
            yield from _read_file(file, scenario_ids, is_alone=False)
    else:
        yield from _read_file(path, scenario_ids, is_alone=True)


def read_npz(path: Path) -> Rollouts:
    """Arrays object_id (A,) and x, y, z, heading (R, A, S), in the coordinates of the scenario's source."""
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in NPZ_ARRAYS if name not in file.files]
            if missing:
                raise UsageError(
                    f"{path}: there is no array {missing[0]!r} in it; expected {', '.join(NPZ_ARRAYS)}, "
                    f"found {', '.join(file.files) or 'none'}"
                )
            return Rollouts.of(*(file[name] for name in NPZ_ARRAYS))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path}: can't be read as .npz: {error}") from error
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None


def _read_file(path: Path, scenario_ids: Sequence[str], is_alone: bool) -> Iterator[tuple[str, Rollouts]]:
    if path.suffix == ".npz":
        if path.stem in scenario_ids:
            yield path.stem, read_npz(path)
        elif is_alone and len(scenario_ids) == 1:
            yield scenario_ids[0], read_npz(path)
        else:
            raise UsageError(
                f"{path}: no scenario of the pack has the id {path.stem!r}; name the file after its scenario"
            )
        return
    if not path.stat().st_size:
        raise UsageError(f"{path}: the file is empty; expected an .npz file or a submission of the challenge")
    with open(path, "rb") as file:
        data = mmap(
            file.fileno(), 0, access=ACCESS_READ
        )  # views of it are handed on, so it closes with the last of them
    try:
        yield from read_submission(data)
    except (ScenarioError, UsageError) as error:
        raise type(error)(f"{path}: {error}") from None
