"""Names of factors: the same name finds a quantity anywhere in a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.scheduler import Settings, run_jobs
from roadworthy.sensitivity.curves import short_names
from roadworthy.sensitivity.discover import discovered
from roadworthy.sensitivity.factors import Categorical, Continuous
from roadworthy.sensitivity.names import find
from roadworthy.sensitivity.rows import make_rows, read_rows
from roadworthy.sensitivity.sources import load_rows

LIGHT = Continuous("light_intensity", 0.0, 2000.0)


@pytest.mark.row("SENS-1")
@pytest.mark.parametrize(
    "row",
    [
        {"factors": {"light_intensity": 500}},
        {"factors": {"arena_env_args.light_intensity": 500}},
        {"factors": {"scene": {"lamp": {"light_intensity": 500}}}},
        {"factors.light_intensity": 500},
        {"factors": {"object": "box"}, "arena_env_args": {"light_intensity": 500}},
        {"arena_env_args.light_intensity": 500},
        {"arena_env_args": {"variations": {"light": {"intensity": 500}}}},
        {"variations": {"light.intensity": 500}},
    ],
    ids=["plain", "prefixed", "nested", "column", "beside factors", "argument column", "deep", "variation"],
)
@pytest.mark.parametrize("name", ["light_intensity"])
def test_one_name_finds_a_factor_in_every_form(name: str, row: dict[str, Any]) -> None:
    rows = make_rows([{**row, "outcomes": {"success": 1}}], [Continuous(name, 0.0, 2000.0)], "success")
    assert rows.units.tolist() == [[0.25]]


@pytest.mark.parametrize("name", ["arena_env_args.light_intensity", "factors.light_intensity", "light_intensity"])
def test_a_name_may_carry_the_prefix_of_its_table(name: str) -> None:
    label = name.partition(".")[0] if "." in name else "factors"
    rows = make_rows(
        [{label: {"light_intensity": 500}, "outcomes": {"success": 1}}], [Continuous(name, 0, 2000)], "success"
    )
    assert rows.units.tolist() == [[0.25]]


def test_an_ambiguous_name_is_refused_with_all_candidates() -> None:
    row = {"factors": {"lamp.intensity": 1.0, "sun.intensity": 2.0}}
    with pytest.raises(ValueError, match=r"'intensity' is ambiguous: lamp\.intensity, sun\.intensity"):
        find("intensity", row)
    assert find("sun.intensity", row) == 2.0
    assert find("sun_intensity", row) == 2.0
    assert find("ensity", row) is None
    assert find("lamp", row) is None


def test_a_whole_name_goes_before_the_end_of_another() -> None:
    assert find("light", {"factors": {"sun.light": 1.0}, "arena_env_args": {"light": 2.0}}) == 2.0


@pytest.mark.row("SENS-1")
def test_a_folder_of_jobs_and_their_summary_give_the_same_rows_under_the_same_name(tmp_path: Path) -> None:
    """The factor is an argument of each job; its rows lie in run folders, where it is a setting of the run."""
    jobs = [
        Job(
            name=f"lamp {k}",
            environment="tests.jobs.arenas:SwitchableLamp",
            arguments={"brightness": k / 4},
            policy="zero",
            episodes=2,
            time_limit_s=0.0,
        )
        for k in range(5)
    ]
    run_jobs(jobs, tmp_path / "out", Settings(episode_summary=tmp_path / "summary.jsonl"))
    factor = Continuous("brightness", 0.0, 1.0)
    from_folder = read_rows(tmp_path / "out", [factor], "success")
    from_summary = read_rows(tmp_path / "summary.jsonl", [factor], "success")
    assert from_folder.units.ravel().tolist() == [k / 4 for k in range(5) for _ in range(2)]
    assert from_summary.units.tolist() == from_folder.units.tolist()
    assert from_summary.outcome.tolist() == from_folder.outcome.tolist()


def arena_file(folder: Path, count: int = 6) -> Path:
    """A small file as Isaac Lab Arena's recorder writes it."""
    lines = [
        {
            "job_name": "pick",
            "env_id": k % 2,
            "episode_in_env": k // 2,
            "seed": 42,
            "success": k % 3 == 0,
            "episode_length": 100 + k,
            "variations": {
                "light.intensity": 100.0 * k,
                "light.hdr": ["office", "hall"][k % 2],
                "arm.camera": [k / 10, 0.5],
            },
        }
        for k in range(count)
    ]
    path = folder / "episode_results_rebuild0.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.row("SENS-1")
def test_arenas_episode_results_are_read_with_vectors_as_components(tmp_path: Path) -> None:
    factors = [
        Continuous("light_intensity", 0.0, 1000.0),
        Categorical("hdr", ("office", "hall")),
        Continuous("arm.camera[0]", 0.0, 1.0),
    ]
    for source in (arena_file(tmp_path), tmp_path):
        rows = read_rows(source, factors, "success")
        assert not rows.rejected
        assert rows.units.tolist() == [[k / 10, float(k % 2), k / 10] for k in range(6)]
        assert rows.outcome.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
        assert read_rows(source, factors, "episode_length").outcome.tolist() == [100.0 + k for k in range(6)]


@pytest.mark.row("SENS-1")
def test_without_a_factors_file_what_differs_is_a_factor(tmp_path: Path) -> None:
    found = discovered(load_rows(arena_file(tmp_path)))
    assert found == (
        Continuous("intensity", 0.0, 500.0),
        Categorical("hdr", ("hall", "office")),
        Continuous("camera[0]", 0.0, 0.5),
    )
    twice = [{"factors": {"sun.light": float(k), "lamp.light": 1.0 - k, "lamp.size": float(k)}} for k in range(2)]
    assert [factor.name for factor in discovered(twice)] == ["sun.light", "lamp.light", "size"]


def test_constant_rows_have_no_factor() -> None:
    with pytest.raises(UsageError, match=r"no factor differs between the rows \(the same in all rows: light\)"):
        discovered([{"factors": {"light": 1.0}}] * 3)
    with pytest.raises(UsageError, match="'light' is a number in some rows and a word in others"):
        discovered([{"factors": {"light": 1.0}}, {"factors": {"light": "dim"}}])


def test_shortened_names_stay_different() -> None:
    long = [f"arena.extrinsics_wrist_camera_of_the_arm[{k}]" for k in range(3)]
    assert short_names(long, 24) == [f"…cs_wrist_camera_of_the_arm[{k}]"[-23:].rjust(24, "…") for k in range(3)]
    ends = [f"{word}.extrinsics_of_the_wrist_camera[0]" for word in ("left", "right")]
    cut = short_names(ends, 24)
    assert len(set(cut)) == 2
    assert all(len(name) <= 24 for name in cut)
    assert short_names(["light", "grip"], 24) == ["light", "grip"]
