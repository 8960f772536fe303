"""Write run folders: create them atomically, append episode by episode, seal them at the end.

A folder is created under a temporary name with everything that is known in advance, then renamed to its unique name, so
each folder with a run's name is a valid run. Afterwards `run.json` is replaced atomically, lines are appended to
`episodes.jsonl`, and files are added.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.record.artifacts import add_artifact
from roadworthy.record.episodes import EpisodeResult, line_values
from roadworthy.record.files import folder_name, naming, read_json, remove_leftovers, sync, write_json
from roadworthy.record.journal import Journal
from roadworthy.record.lock import Lock, is_abandoned
from roadworthy.record.origin import copy_scenarios, hash_table, hash_values, now, origin, when
from roadworthy.record.run import JOURNAL, LEDGER, METRICS, PACK, RUN, TRACES, Run, trace_path
from roadworthy.record.schema import MAJOR, VERSION
from roadworthy.record.tables import TABLES, read_table, with_version, write_table, write_tables
from roadworthy.record.traces import write_trace

_logger = logging.getLogger(__name__)

# The keys that must be equal for a run to be resumed.
_IDENTITY = ("evaluator", "policy", "config_hash", "checkpoint_hash", "ledger_hash")
_STATE = ("schema_version", "run_id", "status", "created", "ended", "owed", "decided", "sessions", "errors")
_OWN_KEYS = (*_IDENTITY, *_STATE)
_TEMPORARY = ".beginning-"


class RunWriter:
    """The only writer of a run folder; it holds the folder's lock until the run is sealed, failed or interrupted.

    As a context manager, it marks the run as failed after an exception and as interrupted after Ctrl-C.
    """

    def __init__(self, folder: Path, lock: Lock, header: dict[str, Any], ledger: pa.Table) -> None:
        """Open the journal; called by `start` and `resume` with the header and the ledger in the folder."""
        self.folder = folder
        self._lock = lock
        self._is_open = True
        self._header = header
        self._ledger = ledger
        self._planned: frozenset[str] = frozenset(ledger["episode_id"].to_pylist())
        self._journal = Journal(folder / JOURNAL)
        self._journal.open()

    @classmethod
    def start(
        cls,
        root: str | Path,
        evaluator: str,
        policy_name: str,
        header: Mapping[str, Any],
        ledger_table: pa.Table,
        *,
        pack: str | Path | None = None,
        scenarios: Sequence[int] = (),
        new: bool = False,
    ) -> RunWriter:
        """Resume the unfinished run with the same config, checkpoint and ledger, or start a new run.

        Args:
            root: The folder that holds `<evaluator>/<run>`.
            evaluator: The name of the evaluator.
            policy_name: The display name of the policy.
            header: At least `config` (plain values) and `checkpoint` ({"path", "sha256", ...} or None); all of it is
                kept in run.json.
            ledger_table: The planned episodes.
            pack: The pack that `scenarios.pack` is copied from; None: the run has no pack.
            scenarios: The scenarios to copy, in this order; the ledger's `scenario` is an index into this list.
            new: Start a new run even if there is an unfinished one.
        """
        identity = _identity(evaluator, policy_name, header, ledger_table)
        home = Path(root).absolute() / folder_name(evaluator)
        if not new:
            unfinished = _unfinished(home, identity)
            if unfinished is not None:
                return cls.resume(unfinished)
        with naming(home):
            home.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(home)
        folder = home / f"{_TEMPORARY}{secrets.token_hex(4)}"
        with naming(folder):
            folder.mkdir()
        lock: Lock | None = None
        try:
            lock = Lock(folder)
            run_id = secrets.token_hex(4)
            if pack is not None:
                copy_scenarios(pack, scenarios, folder / PACK)
            ledger = with_version(ledger_table)
            write_table(folder / LEDGER, ledger.schema, [ledger])
            with naming(folder):
                (folder / TRACES).mkdir()
                (folder / JOURNAL).touch()
            values = {
                "schema_version": VERSION,
                "run_id": run_id,
                **identity,
                "status": "running",
                "created": now(),
                "ended": None,
                "owed": len(ledger_table),
                **header,
                "sessions": [_session()],
                "errors": [],
            }
            write_json(folder / RUN, values)
            name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{folder_name(policy_name)[:60]}-{run_id}"
            with naming(home / name):
                folder.rename(home / name)
        except BaseException:
            if lock is not None:
                lock.release()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        lock.move_to(home / name)
        with lock.released_on_error():
            sync(home)
            return cls(home / name, lock, values, ledger)

    @classmethod
    def resume(cls, folder: str | Path) -> RunWriter:
        """Resume a run that is not completed."""
        run = Run(folder)
        if run.is_sealed:
            raise UsageError(f"{run.folder}: the run is completed; start a new one")
        folder, lock = run.folder, Lock(run.folder)
        with lock.released_on_error():
            remove_leftovers(folder)
            writer = cls(folder, lock, read_json(folder / RUN), read_table(folder / LEDGER))
            writer._start_session()
        return writer

    @property
    def done(self) -> frozenset[str]:
        """The ids of the episodes that have ended, including failed ones."""
        return self._journal.ids

    @property
    def pack(self) -> Path:
        """The file of the scenarios that the run uses."""
        return self.folder / PACK

    def append(self, result: EpisodeResult) -> None:
        """Append an ended episode, its trace first; a kill at any moment leaves either all of it or nothing."""
        self._require_open()
        id = result.episode.episode_id
        if id not in self._planned:
            raise UsageError(f"{self.folder}: episode {id!r} is not one of the {len(self._planned)} in the ledger")
        self._lock.require_held()
        artifacts = {}
        if result.trace is not None:
            artifacts["trace"] = trace_path(id)
            write_trace(self.folder / artifacts["trace"], result.trace)
        self._journal.append(line_values(result, artifacts))

    def add_artifact(
        self, episode_id: str | None, name: str, path: str | Path | None = None, error: str | None = None
    ) -> None:
        """List a file of an episode, or of the run (None), or the reason why it is missing."""
        add_artifact(self.folder, episode_id, name, path, error)

    def seal(
        self,
        metrics: Mapping[str, Any] | Callable[[Run], Mapping[str, Any]],
        decided: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the tables and metrics.json and mark the run as completed.

        Args:
            metrics: The figures, or a function that gets the run with its tables.
            decided: The decision that made the episodes that have not run unnecessary; by default, all must have ended.
        """
        self._require_open()
        self._lock.require_held()
        done = self.done
        missing = sorted(self._planned - done)
        if missing and decided is None:
            raise UsageError(
                f"{self.folder}: {len(missing)} of {len(self._planned)} planned episodes have not ended, such as "
                f"{missing[0]!r}; run them, or call fail() or interrupt()"
            )
        order = self._ledger["episode_id"].to_pylist()
        tables = write_tables(self.folder, self._journal.lines(order), self._journal.names)
        needed = self._ledger
        if missing:
            self._header["decided"] = {**(decided or {}), "not_needed": len(missing)}
            needed = needed.filter(pa.array([id in done for id in order]))
        values = metrics(Run(self.folder, {"ledger": needed, **tables})) if callable(metrics) else metrics
        write_json(self.folder / METRICS, {"schema_version": VERSION, **values})
        self._journal.close()
        sync(*(self.folder / f"{table}.parquet" for table in TABLES), self.folder)
        self._end("completed")

    def fail(self, error: BaseException | str) -> None:
        """Mark the run as failed, with the reason; the same command resumes it."""
        self._require_open()
        trace = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else None
        text = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
        self._header["errors"].append({"time": now(), "error": text, "traceback": trace})
        self._end("failed")

    def interrupt(self) -> None:
        """Mark the run as interrupted; the same command resumes it."""
        self._require_open()
        self._end("interrupted")

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if not self._is_open:
            return
        if error is None or isinstance(error, KeyboardInterrupt):
            self.interrupt()
        else:
            self.fail(error)

    def _start_session(self) -> None:
        """Start another session, after one that ended or was killed."""
        # Remove traces of episodes whose line a killed writer did not write.
        named = {trace_path(id) for id in self.done}
        for path in (self.folder / TRACES).iterdir():
            if f"{TRACES}/{path.name}" not in named:
                path.unlink(missing_ok=True)
        for session in self._header["sessions"]:
            if session["ended"] is None:  # it was killed
                session |= {"ended": when(self.folder / JOURNAL), "status": "interrupted"}
        self._header["sessions"].append(_session())
        self._header |= {"status": "running", "ended": None}
        write_json(self.folder / RUN, self._header)

    def _end(self, status: str) -> None:
        """Write the status and release the lock. A full disk must not hide why a run failed."""
        self._journal.close()
        self._header |= {"status": status, "ended": now()}
        self._header["sessions"][-1] |= {"status": status, "ended": now()}
        try:
            write_json(self.folder / RUN, self._header)
        except RoadworthyError:
            if status == "completed":
                raise
            _logger.warning("%s: the status %r could not be written", self.folder / RUN, status)
        self._lock.release()
        self._is_open = False

    def _require_open(self) -> None:
        if not self._is_open:
            raise UsageError(f"{self.folder}: this writer is closed; start or resume the run with a new one")


def _session() -> dict[str, Any]:
    """Return the entry of run.json for a process that starts to write."""
    return {"started": now(), "ended": None, "status": "running", **origin()}


def _identity(evaluator: str, policy: str, header: Mapping[str, Any], ledger: pa.Table) -> dict[str, Any]:
    """Return the values that identify a run."""
    for key in ("config", "checkpoint"):
        if key not in header:
            raise UsageError(f"the header of a run lacks {key!r}; it has {', '.join(header) or 'no keys'}")
    reserved = [key for key in header if key in _OWN_KEYS]
    if reserved:
        raise UsageError(f"the header of a run holds {reserved[0]!r}, which the writer fills in; leave it out")
    if "episode_id" not in ledger.column_names or "scenario_id" not in ledger.column_names:
        raise UsageError(f"a ledger needs episode_id and scenario_id; it has {', '.join(ledger.column_names)}")
    checkpoint = header["checkpoint"]
    # Clusters decide intervals, not episodes: ledgers from before there were clusters keep their hash.
    planned = ledger.drop_columns(["cluster"]) if "cluster" in ledger.column_names else ledger
    return {
        "evaluator": evaluator,
        "policy": policy,
        "config_hash": hash_values(header["config"]),
        "checkpoint_hash": checkpoint["sha256"] if checkpoint is not None else None,
        "ledger_hash": hash_table(planned),
    }


def _unfinished(home: Path, identity: Mapping[str, Any]) -> Path | None:
    """Return the newest run with this identity that is not completed."""
    for path in sorted(home.glob(f"*/{RUN}"), reverse=True):
        if path.parent.name.startswith("."):
            continue
        try:
            values = read_json(path)
        except RoadworthyError:
            continue  # it can't be read, so it is not resumed
        is_readable = str(values.get("schema_version", "")).startswith(f"{MAJOR}.")
        if is_readable and values.get("status") != "completed" and all(values.get(k) == identity[k] for k in _IDENTITY):
            return path.parent
    return None


def _remove_abandoned(home: Path) -> None:
    """Remove incomplete folders of processes that were killed while they started a run."""
    for folder in home.glob(f"{_TEMPORARY}*"):
        if is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
