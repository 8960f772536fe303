"""The files of the viewer by their address: the page itself, and data made from run folders when asked for.

The server answers with these files, and a bundle is these files, so that the page is the same in both. Every address
is relative and has no query. Nothing is written, and nothing that a record names is executed.

    index.html, app/...                          the page
    data/site.json                               whether data change, and what made this site
    data/runs.json                               all runs and trainings
    data/run/KEY/run.json                        a run without its episodes
    data/run/KEY/episodes/START-END.cols         its episodes from row START to row END, see episode_rows.py
    data/run/KEY/sums/START-END.cols             the sums of their figures, see figure_sums.py
    data/run/KEY/scenario/N.cols, map/N.cols     scenario N of its pack, and map N, see scenes.py
    data/run/KEY/trace/N.trace                   the recorded motion of episode N of its ledger
    data/run/KEY/policy/N.cols                   what the policy did in episode N, where it was recorded
    data/run/KEY/file/PATH                       a video or picture of the run folder
    data/run/KEY/sensitivity.json                its sensitivity analyses
    data/training/KEY/training.json              a training
    data/training/KEY/progress/START-END.cols    its updates
    data/compare/A/B.json                        run A against run B
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roadworthy import __version__
from roadworthy.errors import RecordError, RoadworthyError
from roadworthy.record import Run
from roadworthy.record.files import file_inside, safe_name
from roadworthy.record.run import JOURNAL, METRICS, RUN, trace_path
from roadworthy.scenario.pack import Pack
from roadworthy.viewer import app_files, compare_data, run_data, scenes, sensitivity_data, training_data
from roadworthy.viewer.catalog import Catalog, Place
from roadworthy.viewer.columns import SUFFIX
from roadworthy.viewer.episode_rows import LEDGER_ORDER, EpisodeRows, JournalIndex
from roadworthy.viewer.training_data import TrainingRows

VERSION = 1  # of the data, which the page checks
# Files of a run folder that a page may show, by suffix. HTML is not among them: it could hold scripts.
MEDIA = {".mp4": "video/mp4", ".webm": "video/webm", ".png": "image/png", ".jpg": "image/jpeg", ".gif": "image/gif"}
JSON, BINARY = "application/json", "application/octet-stream"
_MOST_CACHED_BYTES = 1 << 28
_MOST_JSON_BYTES = 1 << 28  # of run.json and of metrics.json
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})\." + SUFFIX)
_NUMBER = re.compile(r"(\d{1,9})\.(\w+)")
_WATCHED = (RUN, METRICS, JOURNAL, "artifacts.jsonl")


class NotThere(RoadworthyError):
    """There is no file at an address."""

    exit_code = 4


@dataclass(frozen=True)
class Content:
    """A file of the site: bytes, or the place of a large file."""

    body: bytes | Path
    kind: str  # the media type
    etag: str


@dataclass(frozen=True)
class _Opened:
    signature: tuple[object, ...]
    run: Run
    rows: EpisodeRows


class Site:
    """The files of the viewer for the runs below some folders."""

    def __init__(
        self, folders: Sequence[str | Path], *, is_live: bool = False, level: int = 1, home: Path | None = None
    ) -> None:
        """Open folders.

        Args:
            folders: Folders that hold runs, or run folders.
            is_live: Whether the page asks for changes.
            level: How much data are compressed, from 1 (fast) to 9.
            home: The folder that the page will be in, if it reads traces and videos from the run folders themselves.
        """
        self._home = home
        self.catalog = Catalog(folders, is_local=is_live)
        self.is_live = is_live
        self._level = level
        self._lock = threading.RLock()
        self._opened: dict[str, _Opened] = {}
        self._journals: dict[str, JournalIndex] = {}
        self._trainings: dict[str, TrainingRows] = {}
        self._summaries: dict[str, tuple[tuple[object, ...], dict[str, Any]]] = {}
        self._packs: dict[Path, tuple[object, Pack]] = {}
        self._cache: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._cached_bytes = 0

    def get(self, path: str) -> Content:
        """Return the file at an address; raise NotThere if there is none, and RecordError if a record is damaged."""
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
            raise NotThere(f"{path!r}: there is no such file")
        if parts[0] != "data":
            return self._app_file(path)
        match parts[1:]:
            case ["site.json"]:
                return self._json(self._about())
            case ["runs.json"]:
                return self._json(self._runs())
            case ["run", key, *rest]:
                return self._of_run(path, self._place(key), rest)
            case ["compare", first, last] if last.endswith(".json"):
                return self._compared(first, last.removesuffix(".json"))
            case ["training", key, *rest]:
                return self._of_training(path, key, rest)
        raise NotThere(f"{path!r}: there is no such file")

    def paths(self) -> Iterator[str]:
        """Yield the addresses of all files, for a bundle."""
        yield from app_files.paths()
        yield from ("data/site.json", "data/runs.json")
        for key, place in self.catalog.runs.items():
            try:
                yield from self._paths_of_run(f"data/run/{key}", self._open(place))
            except (RoadworthyError, OSError, ValueError, KeyError):
                continue  # it is listed as damaged
        summaries = [self._summary(place) for place in self.catalog.runs.values()]
        for reference, candidate in compare_data.pairs(summaries):
            yield f"data/compare/{reference}/{candidate}.json"
        for key in self.catalog.trainings:
            count = self._training_rows(key).update()
            yield f"data/training/{key}/training.json"
            yield f"data/training/{key}/progress/0-{count}.{SUFFIX}"

    def _about(self) -> dict[str, Any]:
        folders = [root.name for root in self.catalog.roots]
        about = {
            "version": VERSION,
            "is_live": self.is_live,
            "made_by": f"roadworthy {__version__}",
            "folders": folders,
        }
        if self._home is None:
            return about
        places = {key: os.path.relpath(place.folder, self._home) for key, place in self.catalog.runs.items()}
        return about | {"records": {key: Path(place).as_posix() for key, place in places.items()}}

    def _runs(self) -> dict[str, Any]:
        with self._lock:
            trainings = [
                training_data.summary(place, self._training_rows(key).update(), self.catalog)
                for key, place in self.catalog.trainings.items()
            ]
            return {"runs": [self._summary(place) for place in self.catalog.runs.values()], "trainings": trainings}

    def _summary(self, place: Place) -> dict[str, Any]:
        try:
            signature = _signature(place.folder)
            known = self._summaries.get(place.key)
            if known is not None and known[0] == signature:
                return known[1] | {"status": Run(place.folder).status} if known[1]["status"] == "running" else known[1]
            _require_small(place.folder)
            run = Run(place.folder)
            found = run_data.summary(place, run, self._ended(place, run))
        except Exception as error:  # a damaged run must not hide the others
            return run_data.damaged(place, error)
        self._summaries[place.key] = signature, found
        return found

    def _ended(self, place: Place, run: Run) -> int:
        metrics = run.metrics if run.is_sealed else None
        if metrics is not None and isinstance(metrics.get("num_episodes"), int):
            return int(metrics["num_episodes"])
        journal = self._journal(place)
        journal.update()
        return len(journal.ends)

    def _of_run(self, path: str, place: Place, rest: list[str]) -> Content:
        opened = self._open(place)
        run, rows = opened.run, opened.rows
        match rest:
            case ["run.json"]:
                if rows.order == LEDGER_ORDER:  # a sealed run changes seldom; others may become its references
                    key = "page", opened.signature, tuple(self.catalog.runs)
                    body = self._cached(key, lambda: _json_bytes(run_data.page(place, run, rows, self.catalog)))
                    return self._bytes(body, JSON)
                return self._json(run_data.page(place, run, rows, self.catalog))
            case ["sensitivity.json"]:
                return self._json(sensitivity_data.analyses(run))
            case ["episodes", name]:
                start, end = self._range(path, name, rows.count)
                return self._made(path, opened, lambda: rows.episodes(start, end).encode(self._level))
            case ["sums", name]:
                start, end = self._range(path, name, rows.count)
                return self._made(path, opened, lambda: rows.sums(start, end, rows.metrics()).encode(self._level))
            case ["scenario", name]:
                pack, number = self._pack(run), _number(path, name, SUFFIX)
                self._require(path, number < len(pack))
                return self._made(path, opened, lambda: scenes.scenario_columns(pack, number).encode(self._level))
            case ["map", name]:
                pack, number = self._pack(run), _number(path, name, SUFFIX)
                self._require(path, number < pack.map_count)
                return self._made(path, opened, lambda: scenes.map_columns(pack, number).encode(self._level))
            case ["trace", name]:
                ids = run.ledger["episode_id"]
                number = _number(path, name, "trace")
                self._require(path, number < len(ids))
                return self._file(path, run, trace_path(ids[number].as_py()), BINARY)
            case ["policy", name]:
                ids = run.ledger["episode_id"]
                number = _number(path, name, SUFFIX)
                self._require(path, number < len(ids))
                return self._file(path, run, policy_path(ids[number].as_py()), BINARY)
            case ["file", *names]:
                name = "/".join(names)
                kind = MEDIA.get(Path(name).suffix.lower())
                if kind is not None:
                    return self._file(path, run, name, kind)
        raise NotThere(f"{path!r}: there is no such file")

    def _compared(self, reference: str, candidate: str) -> Content:
        opened = [self._open(self._place(key)) for key in (reference, candidate)]
        key = "compare", *(entry.signature for entry in opened)
        body = self._cached(key, lambda: _json_bytes(compare_data.comparison(*(entry.run for entry in opened))))
        return self._bytes(body, JSON)

    def _of_training(self, path: str, key: str, rest: list[str]) -> Content:
        place = self.catalog.trainings.get(key)
        self._require(path, place is not None)
        assert place is not None
        with self._lock:
            rows = self._training_rows(key)
            count = rows.update()
        match rest:
            case ["training.json"]:
                return self._json(training_data.page(place, count, self.catalog))
            case ["progress", name]:
                start, end = self._range(path, name, count)
                return self._bytes(rows.rows(start, end).encode(self._level), BINARY)
        raise NotThere(f"{path!r}: there is no such file")

    def _paths_of_run(self, home: str, opened: _Opened) -> Iterator[str]:
        run, rows = opened.run, opened.rows
        yield f"{home}/run.json"
        yield f"{home}/sensitivity.json"
        for start, end in rows.parts:
            yield f"{home}/episodes/{start}-{end}.{SUFFIX}"
            yield f"{home}/sums/{start}-{end}.{SUFFIX}"
        if run.pack.is_file():
            pack = self._pack(run)
            yield from (f"{home}/scenario/{number}.{SUFFIX}" for number in range(len(pack)))
            yield from (f"{home}/map/{number}.{SUFFIX}" for number in range(pack.map_count))
        for number, id in enumerate(run.ledger["episode_id"].to_pylist()):
            if run.place(trace_path(id)).is_file():
                yield f"{home}/trace/{number}.trace"
            if run.place(policy_path(id)).is_file():
                yield f"{home}/policy/{number}.{SUFFIX}"
        for path in sorted(run_data.media_paths(run)):
            if file_inside(run.folder, path) is not None and (run.folder / path).is_file():
                yield f"{home}/file/{path}"

    def _place(self, key: str) -> Place:
        place = self.catalog.runs.get(key)
        if place is None:
            raise NotThere(f"there is no run {key!r}")
        return place

    def _open(self, place: Place) -> _Opened:
        with self._lock:
            signature = _signature(place.folder)
            found = self._opened.get(place.key)
            if found is None or found.signature != signature:
                _require_small(place.folder)
                run = Run(place.folder)
                try:
                    found = _Opened(signature, run, EpisodeRows(run, self._journal(place)))
                except RoadworthyError:
                    raise
                except Exception as error:  # a field is missing or has another type
                    raise RecordError(f"{place.folder}: is damaged ({type(error).__name__}: {error})") from error
                self._opened[place.key] = found
            return found

    def _journal(self, place: Place) -> JournalIndex:
        return self._journals.setdefault(place.key, JournalIndex(place.folder / JOURNAL))

    def _training_rows(self, key: str) -> TrainingRows:
        if key not in self._trainings:
            self._trainings[key] = TrainingRows(self.catalog.trainings[key].folder)
        return self._trainings[key]

    def _pack(self, run: Run) -> Pack:
        path = run.pack
        if not path.is_file():
            raise NotThere(f"{run.folder}: the run has no scenarios")
        found = path.stat()
        mark = found.st_size, found.st_mtime_ns
        with self._lock:
            if path not in self._packs or self._packs[path][0] != mark:
                self._packs[path] = mark, Pack(path)
            return self._packs[path][1]

    def _range(self, path: str, name: str, count: int) -> tuple[int, int]:
        found = _RANGE.fullmatch(name)
        self._require(path, found is not None)
        assert found is not None
        start, end = int(found[1]), int(found[2])
        self._require(path, start <= end <= count)
        return start, end

    def _require(self, path: str, is_there: bool) -> None:
        if not is_there:
            raise NotThere(f"{path!r}: there is no such file")

    def _app_file(self, path: str) -> Content:
        found = app_files.content(path)
        if found is None:
            raise NotThere(f"{path!r}: there is no such file")
        return self._bytes(*found)

    def _file(self, path: str, run: Run, name: str, kind: str) -> Content:
        place = run.place(name)
        if not place.is_file():
            raise NotThere(f"{path!r}: there is no such file")
        found = place.stat()
        return Content(place, kind, f'"{found.st_mtime_ns:x}-{found.st_size:x}"')

    def _json(self, value: Any) -> Content:
        return self._bytes(_json_bytes(value), JSON)

    def _bytes(self, body: bytes, kind: str) -> Content:
        return Content(body, kind, f'"{hashlib.sha256(body).hexdigest()[:24]}"')

    def _made(self, path: str, opened: _Opened, make: Callable[[], bytes]) -> Content:
        """Return a file that is expensive to make, from the cache if the run has not changed."""
        is_of_rows = opened.rows.order != LEDGER_ORDER  # rows that have ended don't change
        key = path, opened.rows.order, () if is_of_rows else opened.signature
        return self._bytes(self._cached(key, make), BINARY)

    def _cached(self, key: tuple[object, ...], make: Callable[[], bytes]) -> bytes:
        with self._lock:
            body = self._cache.get(key)
            if body is not None:
                self._cache.move_to_end(key)
                return body
        body = make()  # several threads make files at the same time
        with self._lock:
            if key not in self._cache:
                self._cache[key] = body
                self._cached_bytes += len(body)
            while self._cached_bytes > _MOST_CACHED_BYTES and len(self._cache) > 1:
                self._cached_bytes -= len(self._cache.popitem(last=False)[1])
        return body


def _require_small(folder: Path) -> None:
    """Raise an error if a file that is read as a whole would fill the memory."""
    for name in (RUN, METRICS):
        with suppress(FileNotFoundError):
            size = (folder / name).stat().st_size
            if size > _MOST_JSON_BYTES:
                raise RecordError(f"{folder / name}: has {size / 1e6:.0f} MB, more than a record has; is it damaged?")


def _signature(folder: Path) -> tuple[object, ...]:
    """Return what changes when a run changes."""
    marks: list[object] = []
    for name in _WATCHED:
        try:
            found = (folder / name).stat()
            marks.append((found.st_size, found.st_mtime_ns, found.st_ino))
        except OSError:
            marks.append(None)
    return tuple(marks)


def policy_path(episode_id: str) -> str:
    """Return the path, in a run folder, of what the policy did in an episode."""
    return f"policy/{safe_name(episode_id)}.{SUFFIX}"


def _number(path: str, name: str, suffix: str) -> int:
    found = _NUMBER.fullmatch(name)
    if found is None or found[2] != suffix:
        raise NotThere(f"{path!r}: there is no such file")
    return int(found[1])


def _json_bytes(value: Any) -> bytes:
    # NaN is not JSON, and a record of a stranger may hold it.
    text = json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str)
    return text.encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    """Return a value without NaN and infinity, which become null."""
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
