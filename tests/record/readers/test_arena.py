"""Isaac Lab Arena's per-episode results as rows. The lines have the fields that Arena's recorder writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roadworthy.record.readers.arena import ArenaReader, episode_row, is_result
from roadworthy.sensitivity.rows import seed_keys


def line(env: int = 3, episode: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "job_name": "pick",
        "env_id": env,
        "episode_in_env": episode,
        "seed": 42,
        "success": True,
        "episode_length": 204,
        "language_instruction": "pick up the banana",
        "timestamp": "2026-07-06T09:08:47.660978",
        "variations": {"light.hdr_image": "office", "arm.wrist_camera": [0.01, -0.02]},
        **more,
    }


def test_outcomes_are_the_results_at_the_top_level() -> None:
    row = episode_row(line())
    assert row["outcomes"] == {"success": True, "episode_length": 204}
    assert row["factors"] == {"light.hdr_image": "office", "arm.wrist_camera": [0.01, -0.02]}
    assert (row["env"], row["steps"], row["job_name"]) == (3, 204, "pick")


def test_the_seed_of_a_build_is_not_the_seed_of_an_episode() -> None:
    rows = [episode_row(line(env=env)) for env in (0, 1)]
    assert [row["seed"] for row in rows] == [42, 42]
    assert len(set(seed_keys(rows))) == 2


def test_jobs_with_one_seed_are_seen_to_have_the_same_draws() -> None:
    jobs = [episode_row(line(env, job_name=f"light_{job}")) for job in range(150) for env in (0, 1)]
    assert len(set(seed_keys(jobs))) == 2
    assert len({row["episode_id"] for row in jobs}) == 300


def test_progress_is_an_outcome_and_a_success_that_was_not_judged_is_missing() -> None:
    progress = {"overall_score": 0.5, "all_complete": False, "objectives": {}, "events": []}
    row = episode_row(line(success=None, progress=progress))
    assert row["outcomes"] == {
        "episode_length": 204,
        "progress.overall_score": 0.5,
        "progress.all_complete": False,
    }


def test_an_episode_summary_is_not_an_arena_result() -> None:
    assert is_result(line())
    without = line()
    del without["variations"]
    assert is_result(without)
    assert not is_result({"job_name": "j", "arena_env_args": {}, "outcomes": {"success": True}})
    assert not is_result({"episode_id": "0", "factors": {}, "outcomes": {}, "seed": 3})


def test_a_folder_is_all_files_of_rebuilds_and_ranks(tmp_path: Path) -> None:
    names = ["episode_results.jsonl", "episode_results_rebuild3.jsonl", "episode_results_rebuild0_rank1.jsonl"]
    for number, name in enumerate([*names, "episodes.jsonl"]):
        (tmp_path / name).write_text(json.dumps(line(env=number)) + "\n")
    reader = ArenaReader()
    assert reader.detects(tmp_path)
    assert sorted(row["env"] for row in reader.read(tmp_path)) == [0, 1, 2]
