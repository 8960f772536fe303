"""Renderers that die: what they would have drawn is missing, and every episode counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.runners.gym.environments import prefer_egl, unprefer_egl
from roadworthy.evaluation.runners.gym.job import Job, VideoConfig
from roadworthy.evaluation.sections import read_sections
from roadworthy.jobs.record import Status, read_record
from roadworthy.jobs.scheduler import Settings, run_jobs
from roadworthy.record import Run
from tests.plugin_package import install

DYING = "tests.jobs.arenas:DyingCinema"
VIDEOS = VideoConfig(episodes=2, max_steps=100)


def job(**settings: Any) -> Job:
    given = {"environment": DYING, "policy": "zero", "episodes": 4, "videos": VIDEOS, "seed": 3}
    return Job(**{"name": "j", **given, **settings})


@pytest.mark.row("REC-4")
@pytest.mark.row("VID-2")
@pytest.mark.parametrize("dies_at", [1, 9])
@pytest.mark.parametrize("settings", [{}, {"time_limit_s": 0.0}], ids=["limited", "unlimited"])
def test_a_renderer_that_aborts_is_an_artifact_error_and_the_episodes_count(
    dies_at: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    """In the first picture, or in the middle of the second episode."""
    jobs = [job(arguments={"dies_at": dies_at}, **settings), job(name="after", videos=None, **settings)]
    entries = run_jobs(jobs, tmp_path, Settings())
    assert [entry.status for entry in entries] == [Status.COMPLETED, Status.COMPLETED], entries
    record = read_record(tmp_path / str(entries[0].run))
    whole = read_record(tmp_path / str(entries[1].run))
    assert (record.ended, record.failed) == (4, 0)
    columns = ["episode_id", "seed", "steps", "status", "outcomes.return", "outcomes.success"]
    assert Run(record.folder).episodes(columns).equals(Run(whole.folder).episodes(columns))
    faults = [text for key, text in record.artifact_errors.items() if key.endswith("video_render")]
    assert len(faults) + len(record.videos) == 2
    assert faults
    assert all("renderer died" in text and "SIGABRT" in text for text in faults)


@pytest.mark.row("REC-4")
def test_a_section_of_type_gym_outlives_its_renderer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"gym": "roadworthy.evaluation.evaluators.gym:Gym"}
    install(tmp_path / "site", monkeypatch, "roadworthy.evaluators", parts, "", name="gym_part")
    (tmp_path / "suite.toml").write_text(
        f'[eval.films]\ntype = "gym"\nenvironment = "{DYING}"\npolicy = "zero"\nepisodes = 3\n'
        "videos.episodes = 2\nvideos.max_steps = 50\n"
    )
    (outcome,) = evaluate_sections(read_sections(tmp_path / "suite.toml"), None, tmp_path / "runs")
    assert outcome.is_complete, outcome.error
    assert outcome.run is not None
    rows = outcome.run.episodes().to_pylist()
    assert [row["status"] for row in rows] == ["completed"] * 3
    errors = [dict(row["artifact_errors"]).get("video_render", "") for row in rows]
    assert sum("SIGABRT" in error for error in errors) == 2


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, "egl"),
        ({"DISPLAY": ":0"}, None),
        ({"WAYLAND_DISPLAY": "wayland-0"}, None),
        ({"MUJOCO_GL": "osmesa"}, "osmesa"),
    ],
)
def test_mujoco_draws_by_egl_where_there_is_no_display_and_nothing_else_was_asked_for(
    given: dict[str, str], chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    prefer_egl()
    assert os.environ.get("MUJOCO_GL") == chosen
    unprefer_egl()
    assert os.environ.get("MUJOCO_GL") == given.get("MUJOCO_GL")


@pytest.mark.row("VID-2")
def test_a_gymnasium_mujoco_env_is_filmed_without_a_display(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    code = (
        "from roadworthy.jobs.scheduler import run_jobs\n"
        "from roadworthy.evaluation.runners.gym.job import Job, VideoConfig\n"
        "if __name__ == '__main__':\n"
        "    films = VideoConfig(episodes=1, max_steps=3, cameras=('render',))\n"
        "    job = Job(name='pole', environment='gym:InvertedPendulum-v5', policy='zero', episodes=2, max_steps=3,\n"
        "              videos=films)\n"
        f"    (entry,) = run_jobs([job], {str(tmp_path / 'out')!r})\n"
        "    print(entry.status.value, entry.run)\n"
    )
    (tmp_path / "film.py").write_text(code)
    unseen = {
        name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")
    }
    done = subprocess.run(
        [sys.executable, tmp_path / "film.py"], env=unseen, capture_output=True, text=True, check=True
    )
    status, run = done.stdout.split()
    record = read_record(tmp_path / "out" / run)
    assert (status, record.ended, record.failed) == ("completed", 2, 0)
    assert len(record.videos) == 1 or "EGL" in str(record.artifact_errors)  # where the machine has no EGL, it says so
