"""Jobs files: TOML, and the JSON of other tools as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadworthy.errors import ConfigError
from roadworthy.jobs.files import read_jobs

TOML = """
[defaults]
environment = "table_top"
envs = 4
episodes = 20

[[jobs]]
name = "dim"
policy = "scripted_picker"
arguments = { light_intensity = 200.0 }

[[jobs]]
name = "film"
policy = "zero"
episodes = 2
videos = { episodes = 1, max_steps = 50 }
"""

PICK: dict[str, Any] = {
    "name": "soup_can_dim",
    "arena_env_args": {
        "enable_cameras": True,
        "environment": "pick_and_place_table",
        "embodiment": "arm_joint_pos",
        "num_envs": 2,
        "light_intensity": 43.3,
        "pick_up_object": "soup_can",
    },
    "num_episodes": 3,
    "num_rebuilds": 2,
    "language_instruction": "Pick up the soup can and place it in the bowl.",
    "policy_type": "some_package.policies.remote.ArmPolicy",
    "policy_config_dict": {"remote_host": "127.0.0.1", "remote_port": 8000},
}
WAIT: dict[str, Any] = {
    "name": "wait",
    "arena_env_args": {"environment": "open_door"},
    "num_steps": 10,
    "num_episodes": None,
    "policy_type": "zero_action",
    "policy_config_dict": {},
    "variations": {"light": {"intensity": {"enabled": True}}},
    "status": "completed",
}


def write(folder: Path, content: Any, name: str = "jobs.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.row("JOB-1")
def test_jobs_of_a_toml_file_share_its_defaults(tmp_path: Path) -> None:
    dim, film = read_jobs(write(tmp_path, TOML, "jobs.toml")).jobs
    assert (dim.environment, dim.envs, dim.episodes, dim.arguments) == ("table_top", 4, 20, {"light_intensity": 200.0})
    assert film.episodes == 2
    assert film.videos is not None
    assert film.videos.max_steps == 50


@pytest.mark.row("JOB-1")
def test_the_json_of_other_tools_is_read_as_it_is(tmp_path: Path) -> None:
    found = read_jobs(write(tmp_path, {"jobs": [PICK, WAIT]}))
    pick, wait = found.jobs
    assert not found.notes
    assert (pick.name, pick.environment, pick.envs, pick.episodes) == ("soup_can_dim", "pick_and_place_table", 2, 3)
    assert pick.arguments == {
        "enable_cameras": True,
        "embodiment": "arm_joint_pos",
        "light_intensity": 43.3,
        "pick_up_object": "soup_can",
    }
    assert (pick.policy, pick.policy_config["remote_port"]) == ("some_package.policies.remote.ArmPolicy", 8000)
    assert (pick.rebuilds, pick.instruction) == (2, "Pick up the soup can and place it in the bowl.")
    assert (wait.policy, wait.steps, wait.episodes, wait.envs, wait.skip) == ("zero", 10, None, 1, True)
    assert wait.arguments == {"variations": {"light": {"intensity": {"enabled": True}}}}


EXPERIMENT = """
shared:
  environment: {type: pick_and_place_table, enable_cameras: true, embodiment: arm}
  policy: {type: some_package.policies.remote.ArmPolicy, remote_port: 8000}
  rollout_limit: {num_episodes: 6}
runs:
  soup:
    environment: {pick_up_object: soup_can}
    environment_builder: {num_envs: 4, placement_seed: 42, language_instruction: Pick up the soup can.}
    num_rebuilds: 3
    variations: {light.intensity.enabled: true}
  wait:
    policy: {type: zero_action, remote_port: null}
    rollout_limit: {num_steps: 10, num_episodes: null}
    color: red
"""


@pytest.mark.row("JOB-1")
def test_an_experiment_in_yaml_is_read_as_it_is(tmp_path: Path) -> None:
    found = read_jobs(write(tmp_path, EXPERIMENT, "experiment.yaml"))
    soup, wait = found.jobs
    assert [note.partition(": ")[2] for note in found.notes] == ["color is not used"]
    assert (soup.name, soup.environment, soup.envs, soup.episodes) == ("soup", "pick_and_place_table", 4, 6)
    assert (soup.rebuilds, soup.instruction, soup.steps) == (3, "Pick up the soup can.", None)
    assert (soup.policy, soup.policy_config) == ("some_package.policies.remote.ArmPolicy", {"remote_port": 8000})
    assert soup.arguments == {
        "enable_cameras": True,
        "embodiment": "arm",
        "pick_up_object": "soup_can",
        "placement_seed": 42,
        "variations": {"light.intensity.enabled": True},
    }
    assert (wait.policy, wait.steps, wait.episodes, wait.rebuilds) == ("zero", 10, None, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("runs: [1]", "expected a table `runs`"),
        ("runs: {a: 3}", "run 'a' is 3, expected a table"),
        ("runs: {a: {policy: zero}}", "run 'a': policy is 'zero', expected a table"),
        ("runs: {a: {environment: {type: e}, policy: {type: zero}}}", "neither episodes nor steps is given"),
        ("runs: {a: [", "not YAML"),
    ],
)
def test_what_is_wrong_with_an_experiment_is_told(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        read_jobs(write(tmp_path, content, "experiment.yaml"))


def test_num_envs_may_stand_outside_of_the_arguments(tmp_path: Path) -> None:
    job = {**WAIT, "num_envs": 7, "policy_type": "zero"}
    assert read_jobs(write(tmp_path, {"jobs": [job]})).jobs[0].envs == 7


def test_what_is_unknown_in_json_is_noted_and_in_toml_an_error(tmp_path: Path) -> None:
    found = read_jobs(write(tmp_path, {"jobs": [{**PICK, "color": "red"}], "version": 3}))
    assert [note.partition(": ")[2] for note in found.notes] == ["version is not used", "color is not used"]
    with pytest.raises(ConfigError, match=r"job 'dim': polcy is unknown; did you mean policy"):
        read_jobs(write(tmp_path, TOML.replace('policy = "scripted_picker"', 'polcy = "zero"'), "jobs.toml"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_steps": 5}, "both episodes and steps are given"),
        ({"num_episodes": None}, "neither episodes nor steps is given"),
        ({"num_episodes": 0}, "episodes is 0, expected at least 1"),
        ({"status": "lost"}, "status is 'lost', expected one of pending, running"),
        ({"arena_env_args": {}}, "environment is missing"),
        ({"name": ""}, "name is empty"),
        ({"policy_type": None}, "policy is missing"),
    ],
)
def test_what_is_wrong_with_a_job_is_told_with_its_name(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        read_jobs(write(tmp_path, {"jobs": [{**PICK, **change}]}))


def test_all_faults_are_told_at_once_and_names_are_unique(tmp_path: Path) -> None:
    jobs = [{**PICK, "num_episodes": -1}, WAIT, WAIT]
    with pytest.raises(ConfigError, match=r"(?s)episodes is -1.*2 jobs have the name 'wait'"):
        read_jobs(write(tmp_path, {"jobs": jobs}))


@pytest.mark.parametrize(("name", "content"), [("jobs.yaml", ""), ("jobs.json", "{"), ("jobs.json", "[]")])
def test_a_file_without_jobs_is_refused(name: str, content: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="jobs"):
        read_jobs(write(tmp_path, content, name))


def test_what_does_not_change_episodes_does_not_change_a_jobs_digest(tmp_path: Path) -> None:
    dim, _ = read_jobs(write(tmp_path, TOML, "jobs.toml")).jobs
    other, _ = read_jobs(write(tmp_path, TOML.replace("envs = 4", "envs = 9"), "jobs.toml")).jobs
    brighter, _ = read_jobs(write(tmp_path, TOML.replace("200.0", "300.0"), "jobs.toml")).jobs
    assert dim.digest == other.digest
    assert dim.digest != brighter.digest
