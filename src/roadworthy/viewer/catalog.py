"""Find the runs and trainings below folders, and give each a key for addresses.

The key of a run is its id, the last part of its folder's name, so that a link to it stays valid when other runs are
added. Folders that share an id (copies), and folders with other names, get a key from the hash of their path as well.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadworthy.errors import UsageError
from roadworthy.record.run import RUN

PROGRESS = "progress.jsonl"
DEPTH = 6  # folders below the given one
_RESCAN_S = 1.0
_RUN_ID = re.compile(r"-([0-9a-f]{8})\Z")
# Folders inside of runs and trainings that hold no runs.
_SKIPPED = frozenset(("traces", "videos", "report", "checkpoints", "policies", "tensorboard", "viewer", "wandb"))


@dataclass(frozen=True)
class Place:
    """A run or a training: its folder, its path below the folder that was given, its key, and its path in commands."""

    folder: Path
    path: str
    key: str
    command_path: str


class Catalog:
    """The runs and trainings below some folders; scanned again when asked a second later."""

    def __init__(self, folders: Sequence[str | Path], *, is_local: bool = True) -> None:
        """Open folders that exist; links that lead to other folders are not followed.

        Args:
            folders: Folders that hold runs, or run folders.
            is_local: Whether commands name the folders as they were given; False leaves out the places of this machine.
        """
        self._given = tuple(Path(folder) for folder in folders)
        self._is_local = is_local
        self.roots = tuple(Path(folder).absolute() for folder in folders)
        for given, root in zip(folders, self.roots, strict=True):
            if not root.is_dir():
                raise UsageError(f"{given}: there is no such folder; give folders that hold runs, such as runs")
        self._lock = threading.Lock()
        self._scanned = -_RESCAN_S
        self._runs: dict[str, Place] = {}
        self._trainings: dict[str, Place] = {}

    @property
    def runs(self) -> dict[str, Place]:
        """The runs by key, in the order of their paths."""
        self._scan()
        return self._runs

    @property
    def trainings(self) -> dict[str, Place]:
        """The trainings by key, in the order of their paths."""
        self._scan()
        return self._trainings

    def _scan(self) -> None:
        with self._lock:
            if time.monotonic() - self._scanned < _RESCAN_S:
                return
            runs: dict[Path, str] = {}
            trainings: dict[Path, str] = {}
            shown: dict[Path, str] = {}
            for given, root in zip(self._given, self.roots, strict=True):
                for folder, names in _folders(root, DEPTH):
                    path = folder.relative_to(root).as_posix() if folder != root else folder.name
                    shown.setdefault(folder, str(given / folder.relative_to(root)) if self._is_local else path)
                    if RUN in names:
                        runs.setdefault(folder, path)
                    elif PROGRESS in names:
                        trainings.setdefault(folder, path)
            self._runs = _keyed(runs, shown)
            self._trainings = _keyed(trainings, shown)
            self._scanned = time.monotonic()


def _folders(folder: Path, depth: int) -> Iterator[tuple[Path, frozenset[str]]]:
    """Yield folders with the names of their files; nothing inside of a run, and no hidden folders."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    names = frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    yield folder, names
    if RUN in names or depth == 0:
        return
    for entry in entries:
        is_listed = not entry.name.startswith(".") and entry.name not in _SKIPPED
        if is_listed and entry.is_dir(follow_symlinks=False):
            yield from _folders(Path(entry.path), depth - 1)


def _keyed(found: dict[Path, str], shown: dict[Path, str]) -> dict[str, Place]:
    keys = {folder: _id(folder.name) or _digest(path) for folder, path in found.items()}
    for longer in (lambda folder: _digest(found[folder]), lambda folder: _digest(str(folder))):
        counts = Counter(keys.values())
        keys = {folder: f"{key}-{longer(folder)}" if counts[key] > 1 else key for folder, key in keys.items()}
    order = sorted(found, key=lambda folder: (found[folder], str(folder)))
    return {keys[folder]: Place(folder, found[folder], keys[folder], shown[folder]) for folder in order}


def _id(name: str) -> str | None:
    found = _RUN_ID.search(name)
    return found[1] if found else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
