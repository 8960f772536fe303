"""Write the run folders of an imported log: row by row, and all of them or none."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.record.episodes import EpisodeResult, EpisodeRow, encode_line, line_values
from roadworthy.record.files import folder_name, naming, safe_name, sync, write_json
from roadworthy.record.journal import ColumnNames
from roadworthy.record.lock import Lock
from roadworthy.record.origin import hash_values, now, origin
from roadworthy.record.readers.conversion import Episode, file_hash
from roadworthy.record.readers.log import Role, printable
from roadworthy.record.run import JOURNAL, LEDGER, METRICS, RUN, TRACES, Run
from roadworthy.record.schema import VERSION
from roadworthy.record.tables import batches, read_table, table_schema, with_version, write_table
from roadworthy.results.scan import Scan

_AT_ONCE = 2048
_LEDGER = pa.schema(
    [
        ("episode_id", pa.string()),
        ("scenario", pa.int32()),
        ("scenario_id", pa.string()),
        ("seed", pa.uint64()),
        ("replicate", pa.int32()),
        ("factors", pa.string()),
        ("cluster", pa.string()),
    ]
)
NEVER_RAN = "the log has no result of this episode, which it says was planned"


class _RunFiles:
    """The files of one run while they are written, under a temporary name."""

    def __init__(self, scan: Scan, run: int, home: Path, evaluator: str, policy: str) -> None:
        self.evaluator, self.policy = evaluator, policy
        self.home = home / folder_name(evaluator)
        with naming(self.home):
            self.home.mkdir(parents=True, exist_ok=True)
        self.folder = self.home / f".beginning-{secrets.token_hex(4)}"
        with naming(self.folder):
            self.folder.mkdir()
            (self.folder / TRACES).mkdir()
        self.lock = Lock(self.folder)
        self.count = 0
        self._run = run
        success = {scan.success_name} if scan.mapping.name(Role.SUCCESS) is not None else set()
        self._names = ColumnNames(dict(scan.factor_names), scan.outcome_names | success)
        self._results: list[dict[str, Any]] = []
        self._planned: list[dict[str, Any]] = []
        schema = with_version(_LEDGER.empty_table()).schema
        self._ledger = pq.ParquetWriter(self.folder / LEDGER, schema, compression="zstd")
        self._episodes = pq.ParquetWriter(
            self.folder / "episodes.parquet", table_schema("episodes", self._names), compression="zstd"
        )
        self._journal = (self.folder / JOURNAL).open("wb")

    def add(self, row: EpisodeRow, cluster: str | None) -> None:
        """Add an episode."""
        values = line_values(EpisodeResult(row))
        self._results.append(values)
        self._planned.append(
            {
                "episode_id": row.episode_id,
                "scenario": self.count,
                "scenario_id": row.scenario_id,
                "seed": row.seed,
                "replicate": row.replicate,
                "factors": json.dumps(dict(row.factors), sort_keys=True),
                "cluster": cluster,
            }
        )
        self.count += 1
        if len(self._results) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        with naming(self.folder):
            self._journal.write(b"".join(map(encode_line, self._results)))
            for (part,) in batches(self._results, self._names, ("episodes",)):
                self._episodes.write_batch(part)
            self._ledger.write_batch(pa.RecordBatch.from_pylist(self._planned, schema=_LEDGER))
        self._results, self._planned = [], []

    def close(self) -> None:
        """Write what is left, and the empty tables of agents and trials."""
        if self._results:
            self._flush()
        self._close_files()
        for table in ("agents", "trials"):
            write_table(self.folder / f"{table}.parquet", table_schema(table, self._names), [])

    def _close_files(self) -> None:
        for file in (self._ledger, self._episodes, self._journal):
            file.close()

    def finish(self, header: Mapping[str, Any]) -> Path:
        """Write the figures, and rename the folder to its name."""
        run_id, started = secrets.token_hex(4), header["sessions"][0]["started"]
        values = {
            "schema_version": VERSION,
            "run_id": run_id,
            "evaluator": self.evaluator,
            "policy": self.policy,
            "config_hash": hash_values(header["config"]),
            "checkpoint_hash": None,
            "ledger_hash": _hash_ledger(self.folder / LEDGER),
            "status": "completed",
            "created": started,
            "ended": now(),
            "owed": self.count,
            **header,
            "checkpoint": None,
            "errors": [],
        }
        write_json(self.folder / RUN, values)
        # The figures need two columns of the ledger; all of a long one would take most of the memory.
        slim = read_table(self.folder / LEDGER, ["scenario_id", "cluster"])
        figures = outcome_metrics(Run(self.folder, {"ledger": slim}))
        write_json(self.folder / METRICS, {"schema_version": VERSION, **figures})
        sync(self.folder / LEDGER, self.folder / JOURNAL, self.folder / "episodes.parquet", self.folder)
        self.lock.release()
        place = self.home / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{folder_name(self.policy)[:60]}-{run_id}"
        with naming(place):
            self.folder.rename(place)
        sync(self.home)
        return place

    def discard(self) -> None:
        """Remove everything that was written."""
        self._close_files()
        self.lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)


def write_runs(
    scan: Scan,
    out: Path,
    *,
    evaluator: str | None,
    policy: str | None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write a run folder for each job and policy of a log; after an error there is none."""
    sha256 = file_hash(scan.mapping.log.path)
    session = {"started": now(), "ended": None, "status": "completed", **origin()}
    existed = out.exists()
    with ExitStack() as stack:
        files = []
        for number, names in enumerate(scan.runs):
            run = _RunFiles(scan, number, out.absolute(), *run_names(scan, names, evaluator, policy))
            stack.callback(run.discard)
            files.append(run)
        for number, episode in enumerate(_episodes(scan)):
            if progress is not None and number % _AT_ONCE == 0:
                progress(number, len(scan))
            run = files[int(scan.run[number])]
            row = _row(scan, number, episode, run.evaluator)
            run.add(row, episode.cluster)
        for run in files:
            _add_missing(scan, run, files)
            run.close()
        session |= {"ended": now()}
        places = [run.finish(_header(scan, sha256, session)) for run in files]
        stack.pop_all()
    if not existed:
        sync(out.absolute().parent)
    return places


def _episodes(scan: Scan) -> Iterator[Episode]:
    for number, (_, episode) in enumerate(scan.mapping.episodes()):
        if number >= len(scan):
            raise scan.mapping.log.error("its end", "the file grew while it was read; import it when it is complete")
        yield episode


def run_names(scan: Scan, names: tuple[str, str], evaluator: str | None, policy: str | None) -> tuple[str, str]:
    """Return the evaluator and the policy of a run: the user's names, else those of the log."""
    job = evaluator or names[0] or scan.mapping.log.path.stem
    if evaluator and len({job for job, _ in scan.runs}) > 1:
        job = f"{evaluator}-{names[0]}"
    return job, policy or names[1] or scan.mapping.log.path.stem


def _row(scan: Scan, number: int, episode: Episode, evaluator: str) -> EpisodeRow:
    replicate = int(scan.replicate[number])
    is_steps = scan.mapping.length_unit == "steps"
    length = episode.length or 0.0
    steps = int(length) if is_steps else 0
    outcomes: dict[str, float] = {}
    if episode.error is None:
        success = {} if episode.success is None else {scan.success_name: episode.success}
        outcomes = {**success, **episode.outcomes}
    more: dict[str, Any] = {"job_name": episode.job, "episode_idx": number}
    more |= {"env": episode.environment} if episode.environment is not None else {}
    more |= {"finish_rank": int(scan.finish_rank[number])}
    factors = {name: _as_kind(value, scan.factor_names[name]) for name, value in episode.factors.items()}
    return EpisodeRow(
        episode_id=_episode_id(scan, episode, replicate),
        evaluator=evaluator,
        scenario_id=episode.scenario,
        seed=episode.seed or 0,
        replicate=replicate,
        world=_world(scan, number),
        slot=0,
        first_step=0,
        last_step=max(steps - 1, 0),
        steps=steps,
        trials=1,
        status="completed" if episode.error is None else "failed",
        wall_s=0.0 if is_steps else length,
        error=episode.error,
        factors=factors,
        outcomes=outcomes,
        more=more,
    )


def _world(scan: Scan, number: int) -> int:
    """Return the number of the environment: its name if that is a number, else its place among all."""
    code = int(scan.environment[number])
    if code < 0:
        return 0
    name = scan.environments[code]
    return int(name) if name.isdecimal() and len(name) < 10 else code


def _as_kind(value: float | str, is_word: bool) -> float | str:
    if not is_word or isinstance(value, str):
        return value
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else str(value)


def _episode_id(scan: Scan, episode: Episode, replicate: int) -> str:
    """Return a name that is safe in paths, unique in the run, and the same whenever the log is imported."""
    if episode.id is not None:
        return safe_name(episode.id)
    if scan.has_plain_ids:
        return safe_name(f"{episode.scenario}-r{replicate}")
    key = json.dumps([episode.seed, sorted(episode.factors.items())], default=str)
    return safe_name(f"{episode.scenario}-{hashlib.sha256(key.encode()).hexdigest()[:10]}-r{replicate}")


def _add_missing(scan: Scan, run: _RunFiles, runs: Sequence[_RunFiles]) -> None:
    """Add the episodes that the log says were planned and has no result of, as failed ones."""
    planned = scan.mapping.log.planned
    if not planned or len(runs) > 1:
        return
    there = {(episode.scenario, int(scan.replicate[k])) for k, episode in enumerate(_episodes(scan))}
    for name, replicate in planned:
        scenario = printable(name)
        if (scenario, replicate) not in there:
            row = EpisodeRow(
                episode_id=safe_name(f"{scenario}-r{replicate}"),
                evaluator=run.evaluator,
                scenario_id=scenario,
                seed=0,
                replicate=replicate,
                world=0,
                slot=0,
                first_step=0,
                last_step=0,
                steps=0,
                trials=0,
                status="failed",
                wall_s=0.0,
                error=NEVER_RAN,
                more={"never_ran": True},
            )
            run.add(row, None)


def _header(scan: Scan, sha256: str, session: Mapping[str, Any]) -> dict[str, Any]:
    """Return what run.json says about the source."""
    mapping, log = scan.mapping, scan.mapping.log
    roles = {printable(name): role.value for name, role in mapping.roles.items()}
    return {
        "config": {"format": log.format, "columns": roles},
        "sessions": [dict(session)],
        "import": {
            "file": log.path.name,
            "sha256": sha256,
            "bytes": log.path.stat().st_size if log.path.is_file() else None,
            "format": log.format,
            "episodes": len(scan),
            "columns": roles,
            "length_unit": mapping.length_unit or None,
            "has_seeds": mapping.name(Role.SEED) is not None,
            "has_plan": log.has_plan,
            "skipped": len(scan.skipped),
            "notes": [printable(note) for note in scan.notes],
            "facts": _plain(log.facts),
        },
    }


def _plain(value: Any) -> Any:
    """Return facts as JSON holds them, with printable texts and without NaN."""
    if isinstance(value, Mapping):
        return {printable(str(key)): _plain(part) for key, part in value.items()}
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, bool | int | float) else None


def _hash_ledger(path: Path) -> str:
    """Return the same hash as `hash_table`, a column at a time."""
    found = hashlib.sha256()
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        found.update(f"[{json.dumps(names, separators=(',', ':'))},{{".encode())
        for place, name in enumerate(sorted(names)):
            found.update(f"{',' if place else ''}{json.dumps(name)}:[".encode())
            is_first = True
            for batch in file.iter_batches(65_536, columns=[name]):
                text = json.dumps(batch.column(0).to_pylist(), separators=(",", ":"))[1:-1]
                found.update(f"{'' if is_first else ','}{text}".encode())
                is_first = False
            found.update(b"]")
    found.update(b"}]")
    return found.hexdigest()
