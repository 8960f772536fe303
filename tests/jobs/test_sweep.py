"""From a sweep to the rows that sensitivity analysis reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.evaluation.runners.gym.job import Job, SweepConfig
from roadworthy.jobs.record import Status
from roadworthy.jobs.scheduler import Settings, run_jobs
from roadworthy.jobs.summary import append_summary
from roadworthy.record import Run
from roadworthy.sensitivity.factors import parse_factors
from roadworthy.sensitivity.rows import read_rows
from tests.jobs.running import run_job

FACTORS = {
    "brightness": {"type": "continuous", "range": [0.0, 1.0]},
    "color": {"type": "categorical", "choices": ["white", "red"]},
}
KNOWN = parse_factors({"factors": FACTORS})


def lamps(environment: str, **settings: object) -> Job:
    values = {"name": "lamps", "environment": f"tests.jobs.arenas:{environment}", "policy": "zero", "episodes": 40}
    return Job(**{**values, "envs": 3, "sweep": SweepConfig(FACTORS), **settings})  # type: ignore[arg-type]


@pytest.mark.row("JOB-6")
def test_factors_reach_envs_that_take_them_at_reset_and_envs_that_are_built_with_them(tmp_path: Path) -> None:
    tables = []
    for name in ("Lamp", "SwitchableLamp"):
        record = run_job(lamps(name), tmp_path / name)
        assert record.status is Status.COMPLETED, record.traceback
        rows = Run(record.folder).episodes().to_pylist()
        for row in rows:
            needed = 0.2 if row["factors.color"] == "white" else 0.6
            assert row["outcomes.success"] == float(row["factors.brightness"] > needed)
            assert 0.0 < row["factors.hidden"] < 1.0  # what the env drew by itself is recorded too
        tables.append(Run(record.folder).episodes(["episode_id", "seed", "factors.brightness", "outcomes.success"]))
    assert tables[0].equals(tables[1])


@pytest.mark.row("JOB-6")
@pytest.mark.parametrize("mode", ["DISABLED", "NEXT_STEP", "SAME_STEP"])
@pytest.mark.parametrize("env", ["Lamp", "SwitchableLamp"])
def test_factors_reach_vector_envs(mode: str, env: str, tmp_path: Path) -> None:
    record = run_job(lamps("corridors", arguments={"mode": mode, "env": env}, episodes=8), tmp_path)
    assert record.status is Status.COMPLETED, record.traceback
    for row in Run(record.folder).episodes().to_pylist():
        needed = 0.2 if row["factors.color"] == "white" else 0.6
        assert row["outcomes.success"] == float(row["factors.brightness"] > needed)


@pytest.mark.row("JOB-5")
@pytest.mark.row("SENS-1")
def test_a_sweep_is_read_from_its_run_its_output_folder_and_its_summary(tmp_path: Path) -> None:
    summary = tmp_path / "episodes.jsonl"
    (entry,) = run_jobs([lamps("SwitchableLamp")], tmp_path / "out", Settings(episode_summary=summary))
    sources = [tmp_path / "out" / str(entry.run), tmp_path / "out", summary]
    found = [read_rows(source, KNOWN, "success") for source in sources]
    for rows in found:
        assert len(rows) == 40
        assert rows.density is not None
        assert rows.density.tolist() == pytest.approx([1.0] * 40)
        assert rows.units.tolist() == found[0].units.tolist()
        assert rows.outcome.tolist() == found[0].outcome.tolist()


@pytest.mark.row("JOB-5")
def test_the_summary_is_appended_across_jobs_and_never_twice(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "episodes.jsonl"
    jobs = [lamps("Lamp", name="a", episodes=3), lamps("Lamp", name="b", sweep=None, episodes=12)]
    run_jobs(jobs, tmp_path / "out", Settings(episode_summary=path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["job_name"], line["episode_idx"]) for line in lines] == [("a", n) for n in range(3)] + [
        ("b", n) for n in range(12)
    ]
    assert {"environment", "brightness", "color"} <= set(lines[0]["arena_env_args"])
    with path.open("a") as file:
        file.write('{"job_name": "torn')  # a writer was killed here
    folder = next((tmp_path / "out" / "a").glob("2*"))
    assert append_summary(path, jobs[0], folder) == 0
    run_jobs(jobs, tmp_path / "out", Settings(episode_summary=path, new=True), only=("a",))
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 18


def test_the_summary_of_a_job_of_steps_lists_its_episodes(tmp_path: Path) -> None:
    job = lamps("Lamp", sweep=None, episodes=None, steps=5, envs=2)
    record = run_job(job, tmp_path)
    path = tmp_path / "episodes.jsonl"
    assert append_summary(path, job, record.folder) == 10
