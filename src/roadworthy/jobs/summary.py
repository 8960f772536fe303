"""The episode summary: a JSONL file with the episodes of many jobs, for sensitivity analysis and other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.plan import seed_of
from roadworthy.jobs.record import recorded_arguments
from roadworthy.record import Run
from roadworthy.record.files import naming


def summary_rows(job: Job, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each episode of a job's run, with its factors among the arguments of the environment."""
    run = Run(folder)
    shared = {
        "job_name": job.name,
        "run": run.header["run_id"],
        "policy_type": job.policy,
        "language_instruction": job.instruction,
    }
    arguments = {"environment": job.environment, **recorded_arguments(job)}
    number = 0
    for result in run.results():
        row = result.episode
        rest = {
            "episode_id": row.episode_id,
            "arena_env_args": {**arguments, **row.factors},
            "status": row.status,
            "error": row.error,
            "env": row.world,
        }
        rest |= {"density": row.more["density"]} if row.more.get("density") else {}
        rest |= {"language_instruction": row.more["instruction"]} if row.more.get("instruction") else {}
        parts = [(row.episode_id, row.seed, row.steps, row.outcomes)]
        if job.steps is not None:
            parts = [
                (
                    f"{row.episode_id}-{part.attempt}",
                    seed_of(job, part.attempt, row.episode_id),
                    part.last_step - part.first_step + 1,
                    part.figures,
                )
                for part in result.agents
            ]
        for name, seed, steps, outcomes in parts:
            own = {"episode_id": name, "seed": seed, "steps": steps, "outcomes": dict(outcomes)}
            yield {**shared, "episode_idx": number, **rest, **own}
            number += 1


def append_summary(path: Path, job: Job, folder: Path) -> int:
    """Append the episodes of a run that are not in the file yet; return their number."""
    known = {(row.get("job_name"), row.get("run"), row.get("episode_id")) for row in _read(path)}
    rows = [row for row in summary_rows(job, folder) if (row["job_name"], row["run"], row["episode_id"]) not in known]
    if rows:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            with path.open("ab", buffering=0) as file:
                file.truncate(_whole_lines(path))
                rest = memoryview(text.encode())
                while rest:  # a disk that gets full takes a part, and raises at the next one
                    rest = rest[file.write(rest) :]
    return len(rows)


def require_summary(path: Path) -> None:
    """Raise a UsageError if episodes can't be appended to a file."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder, expected a file for the episode summary; name another one")
    for _ in _read(path):
        pass


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line) if line.strip() else None
            except ValueError:
                continue  # half a line of a killed writer
            if row is not None and not isinstance(row, dict):
                raise UsageError(f"{path} is not an episode summary: a line is not a JSON object; name another file")
            if row is not None:
                yield row


def _whole_lines(path: Path) -> int:
    """Return the number of bytes that are complete lines; a killed writer may have left a part of one after them."""
    return path.read_bytes().rfind(b"\n") + 1
