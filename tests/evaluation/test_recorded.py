"""Recorded scenes with all traits of real ones are driven from import to figures, by every kind of policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.cli.main import main
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluators.driving import driving_spec
from roadworthy.evaluation.policy_ref import policy_ref
from roadworthy.evaluation.runners.driving.probe import probe
from roadworthy.evaluation.sections import read_sections
from roadworthy.record import EpisodeResult, Run
from roadworthy.record.run import run_folders
from roadworthy.record.traces import Trace
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Scenario
from tests.scenario.importers.recorded import SCENES, WAITING, write_recordings

POLICIES = ("zero", "expert:log", "expert:drive", "baseline:town")
FIRST = 10  # the suite's init_steps


@pytest.fixture(scope="module")
def pack_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    records, pack = write_recordings(folder / "scenes.tfrecord"), folder / "scenes.pack"
    assert main(["scenarios", "import", "womd", str(records), "-o", str(pack), "--processes", "1"]) == 0
    return pack


@pytest.fixture(scope="module")
def runs(pack_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run of `human_replay` in all scenes, by each policy."""
    out = tmp_path_factory.mktemp("runs")
    found = {}
    for policy in POLICIES:
        folder = out / policy.replace(":", "-")
        overrides = [f"scenarios={pack_path}", "render.episodes=0", "references=[]", "worlds=4"]
        flags = [flag for override in overrides for flag in ("--set", override)]
        assert main(["evaluate", "human_replay", "--checkpoint", policy, "--out", str(folder), *flags]) == 0
        (only,) = run_folders(folder)
        found[policy] = Run(only)
    return found


def traced(run: Run) -> list[tuple[EpisodeResult, Trace]]:
    """Every episode with its trace."""
    return [(result, run.trace(result.episode.episode_id)) for result in run.results()]


def motion_errors(trace: Trace, scenario: Scenario) -> np.ndarray:
    """m from each recorded position of the self-driving car to where it was driven."""
    (ego,) = np.flatnonzero(trace.sources == scenario.sdc)
    frames = np.flatnonzero(trace.present[:, ego])
    recorded = scenario.positions[scenario.sdc, FIRST + frames, :2]
    return np.hypot(trace.x[frames, ego] - recorded[:, 0], trace.y[frames, ego] - recorded[:, 1])


@pytest.mark.parametrize("policy", POLICIES)
def test_every_scene_is_driven_to_an_end(runs: dict[str, Run], policy: str) -> None:
    run = runs[policy]
    assert run.is_sealed
    rows = [result.episode for result in run.results()]
    assert [(row.status, row.error) for row in rows] == [("completed", None)] * len(SCENES)
    assert all(len(result.agents) == 1 for result in run.results())
    assert all("interactive" in row.tags for row in rows)


@pytest.mark.parametrize("policy", POLICIES)
def test_figures_are_numbers_wherever_there_are_data(runs: dict[str, Run], policy: str) -> None:
    metrics = runs[policy].metrics
    assert metrics is not None
    assert metrics["num_failed_episodes"] == 0
    text = json.dumps(metrics, allow_nan=False)  # raises where one is NaN or infinite
    assert "NaN" not in text
    for entry in metrics["figures"]:
        is_empty = entry["n"] == 0
        # A ratio of infractions is without a value where nobody made one.
        assert (entry["value"] is None) == is_empty or "per_infraction" in entry["name"], entry
    for _, trace in traced(runs[policy]):
        for name in ("x", "y", "heading", "speed"):
            assert np.isfinite(getattr(trace, name)[trace.present]).all(), name


@pytest.mark.parametrize("policy", ["zero", "expert:drive"])
def test_recorded_agents_are_there_just_when_they_were_recorded(
    runs: dict[str, Run], pack_path: Path, policy: str
) -> None:
    with Pack(pack_path) as pack:
        came = left = 0
        for _, trace in traced(runs[policy]):
            scenario = pack.scenario(trace.scenario_id)
            frames = FIRST + np.arange(trace.frame_count)
            for agent, source in enumerate(trace.sources.tolist()):
                if source == scenario.sdc:
                    continue
                there = scenario.valid[source, frames]
                np.testing.assert_array_equal(trace.present[:, agent], there)
                places = np.stack([trace.x[there, agent], trace.y[there, agent]], axis=1)
                np.testing.assert_array_equal(places, scenario.positions[source, frames[there], :2])
                came, left = came + (not there[0] and there[-1]), left + (there[0] and not there[-1])
        assert came > 5
        assert left > 5


def test_the_log_expert_drives_where_the_car_was_recorded(runs: dict[str, Run], pack_path: Path) -> None:
    with Pack(pack_path) as pack:
        for result, trace in traced(runs["expert:log"]):
            errors = motion_errors(trace, pack.scenario(trace.scenario_id))
            assert errors.max() < 1.0, trace.scenario_id
            (row,) = result.agents
            assert (row.figures["collisions"], row.figures["at_fault_collisions"]) == (0, 0), trace.scenario_id
            if not row.figures["starts_at_goal"]:
                assert row.figures["score"] == 1, trace.scenario_id


def test_doing_nothing_is_not_what_was_recorded(runs: dict[str, Run], pack_path: Path) -> None:
    with Pack(pack_path) as pack:
        driven = [trace for k, (_, trace) in enumerate(traced(runs["zero"])) if k != WAITING]
        errors = [motion_errors(trace, pack.scenario(trace.scenario_id)).max() for trace in driven]
    assert max(errors) > 3.0


@pytest.mark.row("CL-4")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_car_that_waits_at_a_red_light_is_in_no_figure_of_success(runs: dict[str, Run], policy: str) -> None:
    starts = [result.agents[0].figures["starts_at_goal"] for result in runs[policy].results()]
    assert starts == [float(number == WAITING) for number in range(len(SCENES))]
    metrics = runs[policy].metrics
    assert metrics is not None
    assert metrics["num_free_successes"] == 1
    assert next(entry["n"] for entry in metrics["figures"] if entry["name"] == "score") == len(SCENES) - 1


def test_doing_nothing_at_a_red_light_is_no_infraction(runs: dict[str, Run]) -> None:
    result = list(runs["zero"].results())[WAITING]
    (row,) = result.agents
    assert (row.figures["collisions"], row.figures["red_lights"], row.figures["departures"]) == (0, 0, 0)


def config_of(pack_path: Path) -> EvaluatorConfig:
    (section,) = read_sections("human_replay")
    assert section.resolved is not None
    return section.config


@pytest.mark.row("EVAL-10")
@pytest.mark.parametrize("policy", ["expert:drive", "expert:log", "zero", "random", "baseline:town"])
def test_built_in_policies_pass_the_probe_on_recordings(pack_path: Path, policy: str) -> None:
    assert probe(driving_spec("probed", pack_path, policy_ref(policy), config_of(pack_path))) == ()


@pytest.mark.row("EVAL-10")
@pytest.mark.parametrize("trial_steps", [1, 2])
def test_the_expert_passes_the_probe_where_episodes_are_over_at_once(
    pack_path: Path, trial_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadworthy.evaluation.runners.driving.probe.STEPS", trial_steps)
    assert probe(driving_spec("probed", pack_path, policy_ref("expert:drive"), config_of(pack_path))) == ()


def test_a_folder_named_like_a_policy_changes_nothing_in_a_suite(
    pack_path: Path, runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zero").mkdir()
    (tmp_path / "random").write_text("notes")
    flags: list[Any] = [
        "--set",
        f"scenarios={pack_path}",
        "--set",
        "render.episodes=0",
        "--set",
        "references=[]",
        "--set",
        "episodes=2",
    ]
    assert main(["evaluate", "human_replay", "--checkpoint", "zero", "--out", "out", *flags]) == 0
    (folder,) = run_folders(tmp_path / "out")
    again = {row.episode.episode_id: row.agents for row in Run(folder).results()}
    before = {row.episode.episode_id: row.agents for row in runs["zero"].results()}
    assert len(again) == 2
    assert all(before[name] == rows for name, rows in again.items())
