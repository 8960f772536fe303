"""`roadworthy jobs` and `roadworthy sweep`: from files to a table, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import roadworthy as rw
from roadworthy.cli import jobs, sweep
from roadworthy.errors import UsageError
from roadworthy.record.run import run_folders
from roadworthy.sensitivity.factors import read_factors
from roadworthy.sensitivity.rows import read_rows

JOBS = """
[defaults]
environment = "tests.jobs.arenas:Corridor"
policy = "random"
episodes = 5
envs = 2

[[jobs]]
name = "good"

[[jobs]]
name = "bad"
arguments = { breaks_at = "build" }
"""
BASE = """
[[jobs]]
name = "lamps"
environment = "tests.jobs.arenas:SwitchableLamp"
policy = "zero"
episodes = 3
"""
FACTORS = (
    "factors:\n  brightness: {type: continuous, range: [0, 1]}\n  color: {type: categorical, choices: [white, red]}\n"
)

app = typer.Typer()
app.add_typer(jobs.app, name="jobs")
app.command()(sweep.sweep)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.toml"
    path.write_text(JOBS)
    return path


def call(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_a_file_of_jobs_becomes_a_table_and_a_failure_an_exit_code(file: Path, tmp_path: Path) -> None:
    code, text = call("jobs", "run", file, "--out", tmp_path / "out", "--metrics", tmp_path / "m.json")
    assert code == 1
    assert "good" in text
    assert "5/5" in text
    assert "bad: no episode could be started: RuntimeError: no such corridor" in text
    figures = json.loads((tmp_path / "m.json").read_text())["jobs"]
    assert figures["good"]["num_episodes"] == 5
    code, text = call("jobs", "status", tmp_path / "out")
    assert code == 0
    assert "failed" in text
    code, text = call("jobs", "run", file, "--out", tmp_path / "out", "--only", "good", "--json")
    assert code == 0  # the job that was asked for is fine
    told = json.loads(text.splitlines()[-1])
    assert [entry["status"] for entry in told["jobs"]] == ["completed", "failed"]


def test_where_nothing_was_run_there_is_no_status(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no jobs here"):
        call("jobs", "status", tmp_path)


@pytest.mark.row("JOB-6")
def test_a_sweep_writes_what_sensitivity_reads(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "factors.yaml").write_text(FACTORS)
    summary = tmp_path / "episodes.jsonl"
    arguments = ["sweep", tmp_path / "factors.yaml", "--base", tmp_path / "base.toml", "--out", tmp_path / "out"]
    code, text = call(*arguments, "--episodes", 30, "--episode-summary", summary, "--seed", 3)
    assert code == 0
    assert "30/30" in text
    rows = read_rows(summary, read_factors(tmp_path / "factors.yaml"), "success")
    assert len(rows) == 30
    assert rows.density is not None
    code, text = call(*arguments, "--design", "grid", "--levels", 4)
    assert code == 0
    assert "8/8" in text


def test_a_sweep_needs_one_job(file: Path, tmp_path: Path) -> None:
    (tmp_path / "factors.yaml").write_text(FACTORS)
    with pytest.raises(UsageError, match="has 2 jobs; choose the one to vary with --job: good, bad"):
        call("sweep", tmp_path / "factors.yaml", "--base", file)


@pytest.mark.row("UI-4")
def test_the_command_and_the_function_give_identical_rows_for_the_same_words(file: Path, tmp_path: Path) -> None:
    code, _ = call("jobs", "run", file, "--out", tmp_path / "command", "--only", "good", "--chunk-size", 1)
    jobs = rw.run_jobs(file, tmp_path / "function", only=["good"], chunk_size=1)
    assert code == 0
    assert jobs.errors == {}
    found = [rw.load_run(folder) for name in ("command", "function") for folder in run_folders(tmp_path / name)]
    rows = [run.episodes().drop_columns(["wall_s"]).to_pylist() for run in found]
    assert len(rows) == 2
    assert rows[0] == rows[1]
    assert len(rows[0]) == 5
    assert found[0].header["ledger_hash"] == found[1].header["ledger_hash"]
    assert jobs.metrics("good") == {**(jobs.metrics("good") or {}), "owed": 5, "ended": 5, "failed": 0}


def test_the_result_names_the_jobs_that_failed_among_those_that_were_chosen(file: Path, tmp_path: Path) -> None:
    assert list(rw.run_jobs(file, tmp_path).errors) == ["bad"]
    jobs = rw.run_jobs(file, tmp_path, only=["good"])
    assert jobs.errors == {}
    assert [entry.status.value for entry in jobs] == ["completed", "failed"]
    assert "bad  failed: no episode could be started: RuntimeError: no such corridor" in repr(jobs)
