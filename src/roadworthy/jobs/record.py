"""The record of a job, `job.json` in its run folder: what was asked for, what became of it and where everything is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from roadworthy.config import plain
from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.runners.gym.job import Job, Status
from roadworthy.record import EpisodeResult, Run
from roadworthy.record.files import file_inside, read_json, write_json
from roadworthy.record.origin import now
from roadworthy.record.schema import VERSION, require_readable

FILE = "job.json"


@dataclass(frozen=True)
class JobRecord:
    """One job and what became of it. Paths of files are relative to the run folder."""

    schema_version: str
    name: str
    status: Status
    digest: str  # of all that decides its episodes
    folder: Path  # the run folder
    task: str | None
    embodiment: str | None
    environment: str
    arguments: Mapping[str, Any]
    policy: str
    policy_config: Mapping[str, Any]
    instructions: tuple[str, ...]  # that were given, each once
    error: str | None
    traceback: str | None
    owed: int  # episodes, or stretches of steps
    ended: int  # of them, failed ones too
    failed: int
    metrics: Mapping[str, Any] | None  # metrics.json; None where the job did not get so far
    boundaries: tuple[Mapping[str, Any], ...]  # of every episode: where in the job's steps it lies
    videos: tuple[str, ...]
    artifact_errors: Mapping[str, str]  # "EPISODE NAME": why a file is missing
    written: str  # when
    wall_s: float  # of the last session
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        job: Job,
        folder: Path,
        status: Status,
        error: str | None,
        details: str | None,
        wall_s: float,
        metadata: Mapping[str, Any] | None = None,
    ) -> JobRecord:
        """The record of a job from its run folder."""
        run, metadata = Run(folder), metadata or {}
        results = list(run.results())
        rows = [result.episode for result in results]
        artifacts = {(row.episode_id, name): path for row in rows for name, path in row.artifacts.items()}
        errors = {(row.episode_id, name): text for row in rows for name, text in row.artifact_errors.items()}
        for artifact in run.artifacts:
            key = artifact.episode_id or "", artifact.name
            artifacts.pop(key, None)
            errors.pop(key, None)
            if artifact.path is not None:
                artifacts[key] = artifact.path
            elif artifact.error is not None:
                errors[key] = artifact.error
        places = {key: file_inside(folder, path) for key, path in artifacts.items()}
        is_there = {key: place is not None and place.is_file() for key, place in places.items()}
        errors |= {key: f"{artifacts[key]} is gone" for key, found in is_there.items() if not found}
        told = {str(row.more["instruction"]): None for row in rows if row.more.get("instruction")}
        boundaries = [bounds for result in results for bounds in _boundaries(job, result)]
        return cls(
            schema_version=VERSION,
            name=job.name,
            status=status,
            digest=job.digest,
            folder=folder,
            task=job.task or _text(metadata.get("task")) or job.environment,
            embodiment=job.embodiment or _text(job.arguments.get("embodiment")) or _text(metadata.get("embodiment")),
            environment=job.environment,
            arguments=recorded_arguments(job),
            policy=job.policy,
            policy_config=plain(job.policy_config),
            instructions=tuple(told) or ((job.instruction,) if job.instruction else ()),
            error=error,
            traceback=details,
            owed=len(run.ledger),
            ended=len(rows),
            failed=sum(row.status == "failed" for row in rows),
            metrics=run.metrics,
            boundaries=tuple(boundaries),
            videos=tuple(sorted(path for key, path in artifacts.items() if is_there[key] and path.endswith(".mp4"))),
            artifact_errors={f"{id} {name}".strip(): text for (id, name), text in sorted(errors.items())},
            written=now(),
            wall_s=wall_s,
        )

    def as_plain(self) -> dict[str, Any]:
        """For files; the folder is where the file lies."""
        told = asdict(self) | {"status": self.status.value}
        del told["folder"]
        return {**told.pop("more"), **told}


def write_record(record: JobRecord) -> Path:
    """Write a job's record into its run folder."""
    path = record.folder / FILE
    write_json(path, record.as_plain())
    return path


def read_record(folder: str | Path) -> JobRecord:
    """The record in a run folder; fields of a later minor version are kept."""
    folder = Path(folder)
    values = read_json(folder / FILE)
    require_readable(values.get("schema_version"), folder / FILE)
    known = {name: values.pop(name) for name in JobRecord.__dataclass_fields__ if name in values}
    for name in ("instructions", "boundaries", "videos"):
        known[name] = tuple(known[name])
    return JobRecord(**{**known, "status": Status(known["status"])}, folder=folder, more=values)


def recorded_arguments(job: Job) -> dict[str, Any]:
    """Return the arguments of a job's environment, how many ran side by side among them, as other tools name it."""
    arguments: dict[str, Any] = plain(job.arguments)
    return {"num_envs": job.envs, **arguments}


def described(folder: Path) -> dict[str, Any]:
    """Return what an environment told about itself, from the record that is written when it is built.

    A process that was killed can't tell it any more.
    """
    try:
        record = read_record(folder)
    except RoadworthyError:
        return {}
    return {"task": record.task, "embodiment": record.embodiment}


def _boundaries(job: Job, result: EpisodeResult) -> list[dict[str, Any]]:
    """Return where the episodes of a row lie in its env's steps: one, or all that a stretch of steps holds."""
    row = result.episode
    if job.steps is None:
        parts = [(row.episode_id, row.first_step, row.last_step, row.status == "completed")]
    else:
        parts = [(f"{row.episode_id}-{part.attempt}", part.first_step, part.last_step, True) for part in result.agents]
        parts += [
            (f"{row.episode_id}-{part['attempt']}", part["first_step"], part["last_step"], False)
            for part in row.more.get("unfinished", ())
        ]
    place = {"env": row.world, "rebuild": row.replicate}  # steps are counted from 0 again in each rebuild
    return [
        {"episode": name, **place, "first_step": first, "last_step": last, "is_complete": is_complete}
        for name, first, last, is_complete in sorted(parts, key=lambda part: part[1])
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
