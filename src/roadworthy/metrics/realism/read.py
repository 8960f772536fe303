"""Rollouts from files: `.npz`, and submissions of the challenge as one file, as shards or as a tar archive.

Files are split into parts, one per scenario, which hold the bytes of its rollouts. A part is decoded by the process
that scores it.
"""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

import numpy as np

from roadworthy.errors import RoadworthyError, ScenarioError, UsageError
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.metrics.realism.submission import read_scenario_rollouts, split_submission
from roadworthy.scenario.importers.wire import Buffer

NPZ_ARRAYS = ("object_id", "x", "y", "z", "heading")
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz")
_SHARD = re.compile(r"(?P<base>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})")
Found = TypeVar("Found")


class Part(NamedTuple):
    """The rollouts of one scenario, not yet decoded."""

    scenario_id: str
    origin: str  # where it is, for people
    content: Path | bytes  # an .npz file, or its bytes, or a message ScenarioRollouts
    is_npz: bool

    def read(self) -> Rollouts:
        """Decode the rollouts; errors name the file."""
        if self.is_npz:
            source = io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content
            return _named(self.origin, lambda: _npz(source))
        assert isinstance(self.content, bytes)
        data = self.content
        return _named(self.origin, lambda: read_scenario_rollouts(data)[1])


@dataclass(frozen=True)
class Selection:
    """The rollouts to score."""

    scenario_ids: frozenset[str]  # of the pack
    only: frozenset[str] = frozenset()  # of these alone; empty: of all
    skip_unknown: bool = False  # whether rollouts of other scenarios than those of the pack are left out

    def wants(self, scenario_id: str, origin: str) -> bool:
        """Return whether to score the rollouts of a scenario; an unknown one is an error unless it is skipped."""
        if self.only:
            return scenario_id in self.only
        if scenario_id not in self.scenario_ids and not self.skip_unknown:
            raise UsageError(
                f"{origin}: no scenario of the pack has the id {scenario_id!r}; name the file after its "
                "scenario; --skip-unknown leaves out rollouts of other scenarios"
            )
        return scenario_id in self.scenario_ids


def find_parts(paths: Iterable[Path], selection: Selection) -> Iterator[Part]:
    """Yield the rollouts of every wanted scenario, in the order of the files.

    An `.npz` file is named after its scenario, unless there is only one to choose. Any other file is a submission, a
    shard of one or a tar archive of such files. A folder is all of its files, less those that start with a dot. A name
    whose shards exist, but which does not, is all of its shards.
    """
    paths = list(paths)
    for path in paths:
        files = _files(path)
        for file in files:
            yield from _file_parts(file, selection, is_alone=len(paths) == len(files) == 1 and file == path)


def read_rollouts(path: Path, scenario_ids: Iterable[str]) -> Iterator[tuple[str, Rollouts]]:
    """Yield the rollouts of a file or folder with the id of their scenario, each read when it is asked for."""
    for part in find_parts([path], Selection(frozenset(scenario_ids))):
        yield part.scenario_id, part.read()


def _files(path: Path) -> list[Path]:
    """Return the files of a path; all shards must exist."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not files:
            raise UsageError(f"{path}: the folder has no files; expected ID.npz for each scenario, or a submission")
        _require_all_shards(str(path), [file.name for file in files])
        return files
    if path.exists():
        return [path]
    shards = sorted(file for file in path.parent.glob(f"{path.name}-*-of-*") if _SHARD.fullmatch(file.name))
    if not shards:
        raise UsageError(f"{path}: there is no such file or folder, and there are no shards {path.name}-00000-of-...")
    _require_all_shards(str(path.parent), [file.name for file in shards])
    return shards


def _require_all_shards(where: str, names: Iterable[str]) -> None:
    """Raise if some shards of a file are among the names, but not all."""
    found: dict[tuple[str, int], set[int]] = {}
    for name in names:
        match = _SHARD.fullmatch(name)
        if match:
            found.setdefault((match["base"], int(match["count"])), set()).add(int(match["number"]))
    for (base, count), numbers in found.items():
        missing = sorted(set(range(count)) - numbers)
        if missing:
            shown = ", ".join(f"{number:05d}" for number in missing[:5]) + (", ..." if len(missing) > 5 else "")
            raise UsageError(
                f"{where}: of the {count} shards of {base}, {len(missing)} are missing ({shown}); to score a part of a "
                "submission, name its shards one by one"
            )


def _file_parts(path: Path, selection: Selection, is_alone: bool) -> Iterator[Part]:
    if path.name.endswith(TAR_ENDINGS):
        yield from _tar_parts(path, selection)
        return
    if path.suffix == ".npz":
        known = selection.scenario_ids
        name = next(iter(known)) if is_alone and len(known) == 1 else path.stem
        if selection.wants(name, str(path)):
            yield Part(name, str(path), path, is_npz=True)
        return
    if not path.stat().st_size:
        raise UsageError(f"{path}: the file is empty; expected an .npz file or a submission of the challenge")
    with open(path, "rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)  # views of it are handed on; the last one closes it
    yield from _submission_parts(str(path), data, selection)


def _tar_parts(path: Path, selection: Selection) -> Iterator[Part]:
    """Yield the members of an archive one at a time, to save memory."""
    names = []
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if not member.isfile() or name.startswith("."):
                    continue
                file = archive.extractfile(member)
                assert file is not None
                data, origin = file.read(), f"{path}, {member.name}"
                names.append(name)
                if name.endswith(".npz"):
                    if selection.wants(name.removesuffix(".npz"), origin):
                        yield Part(name.removesuffix(".npz"), origin, data, is_npz=True)
                else:
                    yield from _submission_parts(origin, data, selection)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UsageError(f"{path}: can't be read as a tar archive: {error}") from error
    if not names:
        raise UsageError(f"{path}: the archive has no files; expected a submission of the challenge or its shards")
    _require_all_shards(str(path), names)


def _submission_parts(origin: str, data: Buffer, selection: Selection) -> Iterator[Part]:
    for scenario_id, message in _named(origin, lambda: split_submission(data)):
        if selection.wants(scenario_id, origin):
            yield Part(scenario_id, origin, bytes(message), is_npz=False)


def _npz(source: Path | io.BytesIO) -> Rollouts:
    try:
        with np.load(source, allow_pickle=False) as file:
            missing = [name for name in NPZ_ARRAYS if name not in file.files]
            if missing:
                raise UsageError(
                    f"there is no array {missing[0]!r} in it; expected {', '.join(NPZ_ARRAYS)}, "
                    f"found {', '.join(file.files) or 'none'}"
                )
            arrays: list[Any] = [file[name] for name in NPZ_ARRAYS]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"can't be read as .npz: {error}") from error
    return Rollouts.of(*arrays)


def _named(origin: str, read: Callable[[], Found]) -> Found:
    try:
        return read()
    except (ScenarioError, UsageError) as error:
        raise _with_name(error, origin) from error.__cause__


def _with_name(error: RoadworthyError, origin: str) -> RoadworthyError:
    return type(error)(f"{origin}: {error}")
