"""Every file that jobs write is what its JSON Schema says."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.runners.gym.job import Job, SweepConfig, VideoConfig
from roadworthy.jobs.record import read_record
from roadworthy.jobs.scheduler import Settings, run_jobs
from roadworthy.jobs.table import read_entries
from roadworthy.record.schema import schema

FACTORS = {"brightness": {"type": "continuous", "range": [0.0, 1.0]}}


def validator(name: str) -> Draft202012Validator:
    found = json.loads((files("roadworthy.jobs") / "schemas" / f"{name}.json").read_text())
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of every kind: counted in episodes and in steps, a sweep, filmed, failed, and left out."""

    def job(name: str, environment: str, **settings: Any) -> Job:
        values = {"name": name, "environment": f"tests.jobs.arenas:{environment}", "policy": "zero", "envs": 2}
        return Job(**{**values, **settings})

    jobs = [
        job("plain", "Corridor", episodes=3),
        job("steps", "Corridor", steps=60),
        job("sweep", "SwitchableLamp", episodes=4, sweep=SweepConfig(FACTORS)),
        job("film", "Cinema", episodes=2, videos=VideoConfig(episodes=1, max_steps=5)),
        job("bad", "Corridor", episodes=3, arguments={"breaks_at": "build"}),
        job("worse", "Corridor", episodes=3, arguments={"breaks_at": "reset"}),
        job("out", "Corridor", episodes=3, skip=True),
    ]
    folder = tmp_path_factory.mktemp("jobs")
    run_jobs(jobs, folder, Settings(episode_summary=folder / "summary.jsonl"))
    return folder


@pytest.mark.row("REC-1")
def test_every_file_of_jobs_is_what_its_schema_says(out: Path) -> None:
    validator("jobs").validate(json.loads((out / "jobs.json").read_text()))
    records = list(out.glob("*/*/job.json"))
    assert len(records) == 6
    for path in records:
        validator("job").validate(json.loads(path.read_text()))
    lines = (out / "summary.jsonl").read_text().splitlines()
    assert len(lines) > 10
    for line in lines:
        validator("episode_summary_line").validate(json.loads(line))


@pytest.mark.row("REC-1")
def test_runs_of_jobs_are_what_the_schemas_of_runs_say(out: Path) -> None:
    for name in ("run", "metrics"):
        check = Draft202012Validator(schema(name))
        found = list(out.glob(f"*/*/{name}.json"))
        assert found
        for path in found:
            check.validate(json.loads(path.read_text()))
    check = Draft202012Validator(schema("episodes_line"))
    for path in out.glob("*/*/episodes.jsonl"):
        for line in path.read_text().splitlines():
            check.validate(json.loads(line))


@pytest.mark.row("REC-1")
def test_fields_of_a_later_minor_version_are_kept_and_a_later_major_one_is_refused(out: Path, tmp_path: Path) -> None:
    values = json.loads(next(out.glob("plain/*/job.json")).read_text())
    (tmp_path / "job.json").write_text(json.dumps({**values, "schema_version": "1.9", "color": "red"}))
    assert read_record(tmp_path).more == {"color": "red"}
    assert read_record(tmp_path).as_plain()["color"] == "red"
    (tmp_path / "job.json").write_text(json.dumps({**values, "schema_version": "2.0"}))
    with pytest.raises(RoadworthyError, match=r"version 2\.0"):
        read_record(tmp_path)
    (tmp_path / "jobs.json").write_text('{"schema_version": "2.0", "jobs": []}')
    with pytest.raises(RoadworthyError, match=r"version 2\.0"):
        read_entries(tmp_path)
