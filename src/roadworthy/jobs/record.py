"""The record of a job, `job.json` in its run folder: its settings, its status and results, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from roadworthy.config import plain
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.spec import described
from roadworthy.record import EpisodeResult, Run
from roadworthy.record.files import file_inside, read_json, write_json
from roadworthy.record.origin import now
from roadworthy.record.schema import VERSION, require_readable

FILE = "job.json"


class Status(Enum):
    """The status of a job."""

    PENDING = "pending"  # has not started
    RUNNING = "running"
    COMPLETED = "completed"  # all episodes have ended; it is not run again
    FAILED = "failed"  # an error ended it; run again, it starts from its beginning
    SKIPPED = "skipped"  # left out, because it was not chosen or because another job failed
    INTERRUPTED = "interrupted"  # stopped by the user; run again, it resumes


@dataclass(frozen=True)
class JobRecord:
    """A job and its results. Paths of files are relative to the run folder."""

    schema_version: str
    name: str
    status: Status
    digest: str  # of the settings that decide its results
    folder: Path  # the run folder
    task: str | None
    embodiment: str | None
    environment: str
    arguments: Mapping[str, Any]
    policy: str
    policy_config: Mapping[str, Any]
    instructions: tuple[str, ...]  # that the policy got, each once
    error: str | None
    traceback: str | None
    owed: int  # episodes, or stretches of steps
    ended: int  # including failed ones
    failed: int
    metrics: Mapping[str, Any] | None  # metrics.json; None if the job was not completed
    boundaries: tuple[Mapping[str, Any], ...]  # the first and last step of each episode
    videos: tuple[str, ...]
    artifact_errors: Mapping[str, str]  # "EPISODE NAME": why a file is missing
    written: str  # when
    wall_s: float  # of the last session
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, job: Job, folder: Path, status: Status, error: str | None, details: str | None, wall_s: float
    ) -> JobRecord:
        """Return the record of a job from its run folder."""
        run, metadata = Run(folder), described(folder)
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
        instructions = {str(row.more["instruction"]): None for row in rows if row.more.get("instruction")}
        boundaries = [bounds for result in results for bounds in _boundaries(job, result)]
        return cls(
            schema_version=VERSION,
            name=job.name,
            status=status,
            digest=job.digest,
            folder=folder,
            task=job.task or metadata.get("task") or job.environment,
            embodiment=job.embodiment or _text(job.arguments.get("embodiment")) or metadata.get("embodiment"),
            environment=job.environment,
            arguments=recorded_arguments(job),
            policy=job.policy,
            policy_config=plain(job.policy_config),
            instructions=tuple(instructions) or ((job.instruction,) if job.instruction else ()),
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
        """Return the content of the file."""
        values = asdict(self) | {"status": self.status.value}
        del values["folder"]
        return {**values.pop("more"), **values}


def write_record(record: JobRecord) -> Path:
    """Write a job's record into its run folder."""
    path = record.folder / FILE
    write_json(path, record.as_plain())
    return path


def read_record(folder: str | Path) -> JobRecord:
    """Read the record in a run folder; fields of a later minor version are kept."""
    folder = Path(folder)
    values = read_json(folder / FILE)
    require_readable(values.get("schema_version"), folder / FILE)
    known = {name: values.pop(name) for name in JobRecord.__dataclass_fields__ if name in values}
    for name in ("instructions", "boundaries", "videos"):
        known[name] = tuple(known[name])
    return JobRecord(**{**known, "status": Status(known["status"])}, folder=folder, more=values)


def recorded_arguments(job: Job) -> dict[str, Any]:
    """Return the arguments of a job's environment, with the number of envs under the name that other tools use."""
    arguments: dict[str, Any] = plain(job.arguments)
    return {"num_envs": job.envs, **arguments}


def _boundaries(job: Job, result: EpisodeResult) -> list[dict[str, Any]]:
    """Return the first and last steps of the episodes of a row: one, or all in a stretch of steps."""
    row = result.episode
    if job.steps is None:
        parts = [(row.episode_id, row.first_step, row.last_step, row.status == "completed")]
    else:
        parts = [(f"{row.episode_id}-{part.attempt}", part.first_step, part.last_step, True) for part in result.agents]
        parts += [
            (f"{row.episode_id}-{part['attempt']}", part["first_step"], part["last_step"], False)
            for part in row.more.get("unfinished", ())
        ]
    # Processes number their envs from 0 on, and each rebuild counts steps from 0 on.
    place = {"env": row.slot * job.envs + row.world, "rebuild": row.replicate}
    return [
        {"episode": name, **place, "first_step": first, "last_step": last, "is_complete": is_complete}
        for name, first, last, is_complete in sorted(parts, key=lambda part: part[1])
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
