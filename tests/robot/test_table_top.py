"""The table-top task: the environment, the scripted picker, and the reasons for its failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")

from gymnasium.utils.env_checker import check_env

from roadworthy.errors import DeviceError, UsageError
from roadworthy.evaluation.runners.gym.job import Job, VideoConfig
from roadworthy.jobs.record import Status
from roadworthy.policy.protocol import Batch, stack
from roadworthy.record import Run
from roadworthy.robot import graphics
from roadworthy.robot.env import TableTopEnv
from roadworthy.robot.perception import find, object_named
from roadworthy.robot.picker import ScriptedPicker
from roadworthy.robot.scene import FRONT_CAMERA, THINGS
from tests.jobs.running import run_job

try:
    graphics.Renderer("<mujoco/>", 16)
except DeviceError as error:
    pytest.skip(str(error), allow_module_level=True)

TABLE_TOP, PICKER = "roadworthy.robot.env:TableTopEnv", "roadworthy.robot.picker:ScriptedPicker"


@pytest.fixture(scope="module")
def env() -> TableTopEnv:
    return TableTopEnv()


def batch_of(env: TableTopEnv, observation: Any, step: int, instruction: str | None) -> Batch:
    """Return the batch of one environment."""
    row, seed = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    seen = stack(env.observation_space, [observation])
    return Batch(seen, np.ones(1, np.bool_), row, seed, np.array([step]), [instruction])


def play(env: TableTopEnv, seed: int, **factors: Any) -> dict[str, Any]:
    """Run an episode with the picker, and return its outcomes."""
    picker = ScriptedPicker()
    observation, info = env.reset(seed=seed, options={"factors": factors})
    instruction, step = info["instruction"], 0
    while True:
        action = picker.act(batch_of(env, observation, step, instruction))[0]
        observation, _, terminated, truncated, info = env.step(action)
        step += 1
        if terminated or truncated:
            outcomes: dict[str, Any] = info["outcomes"]
            return outcomes


def test_the_environment_passes_the_checker_of_gymnasium() -> None:
    check_env(TableTopEnv(max_steps=5), skip_render_check=True)


def test_the_same_seed_gives_the_same_episode_in_any_env(env: TableTopEnv) -> None:
    other = TableTopEnv(max_steps=10, light_intensity=300.0)
    env.reset(seed=99)
    one, info = env.reset(seed=4, options={"factors": {"light_intensity": 300.0}})
    two, told = other.reset(seed=4)
    assert info == told
    for _ in range(10):
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])
        one, *_ = env.step(np.full(5, 0.3, np.float32))
        two, *_ = other.step(np.full(5, 0.3, np.float32))


@pytest.mark.parametrize("thing", THINGS)
def test_an_object_is_found_where_it_lies(thing: str, env: TableTopEnv) -> None:
    for seed in range(5):
        observation, info = env.reset(seed=seed, options={"factors": {"object": thing}})
        seen = find(observation["first_picture"], thing)
        assert seen is not None
        assert abs(seen.x - info["factors"]["object_x"]) < 0.012
        assert abs(seen.y - info["factors"]["object_y"]) < 0.018


def test_the_projection_of_a_pixel_is_the_inverse_of_the_camera() -> None:
    right, up, back = FRONT_CAMERA.axes
    place = np.array([0.1, -0.05, 0.03])
    away = place - FRONT_CAMERA.position
    scale = 64.0 / np.tan(np.radians(FRONT_CAMERA.fovy_deg) / 2.0)
    column, row = 64.0 + scale * (away @ right) / -(away @ back), 64.0 - scale * (away @ up) / -(away @ back)
    np.testing.assert_allclose(FRONT_CAMERA.ground(column, row, 128, 128, 0.03), place[:2], atol=1e-9)


@pytest.mark.parametrize("thing", THINGS)
def test_the_picker_solves_the_task_in_good_light(thing: str, env: TableTopEnv) -> None:
    results = [play(env, seed, object=thing) for seed in range(6)]
    assert sum(result["success"] for result in results) >= 5
    assert all(result["lifted"] for result in results if result["success"])


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"light_intensity": 0.0}, {"touched": False}),
        ({"object": "can", "light_intensity": 150.0}, {"touched": False}),
        ({"object": "ball", "light_intensity": 2000.0}, {"touched": False}),
        ({"friction": 0.03}, {"touched": True, "lifted": False}),
        ({"camera_shift": 0.08}, {"moved": False}),
        ({"object_x": -0.30}, {"lifted": False}),
    ],
    ids=["dark", "dark can", "overexposed ball", "slippery", "camera moved", "out of reach"],
)
def test_outcomes_show_why_the_picker_fails(
    factors: dict[str, Any], expected: dict[str, bool], env: TableTopEnv
) -> None:
    for seed in range(2):
        result = play(env, seed, **factors)
        assert not result["success"]
        assert {name: result[name] for name in expected} == expected


@pytest.mark.parametrize("light", [150.0, 2000.0])
def test_objects_need_different_light(light: float, env: TableTopEnv) -> None:
    success = {thing: play(env, 0, object=thing, light_intensity=light)["success"] for thing in THINGS}
    assert success["ball"] == (light < 1000.0)
    assert success["can"] == (light > 1000.0)


def test_the_instruction_names_the_object_of_the_episode(env: TableTopEnv) -> None:
    for thing in THINGS:
        _, info = env.reset(seed=0, options={"factors": {"object": thing}})
        assert object_named(info["instruction"]) == thing
    assert object_named("Bring me the Ball, please.") == "ball"
    assert object_named("do nothing") is None


def test_without_an_instruction_the_picker_stays_where_it_is(env: TableTopEnv) -> None:
    picker = ScriptedPicker()
    before, _ = env.reset(seed=0)
    observation = before
    for step in range(20):
        observation, *_ = env.step(picker.act(batch_of(env, observation, step, None))[0])
    np.testing.assert_allclose(observation["gripper"][:3], before["gripper"][:3], atol=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"light": 5.0}, "unknown factor 'light'; did you mean light_intensity"),
        ({"light_intensity": 5000.0}, "light_intensity is 5000.0, expected a number from 0 to 2000"),
        ({"object": "cup"}, "object is 'cup', expected one of box, can, ball"),
        ({"friction": None}, "friction is None"),
        ({"cameras": ("back",)}, "camera 'back' is unknown; known: front, wrist, scene"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
    ],
)
def test_unknown_arguments_are_errors(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        TableTopEnv(**arguments)


def test_an_action_that_is_not_finite_is_an_error(env: TableTopEnv) -> None:
    env.reset(seed=0)
    with pytest.raises(UsageError, match="expected 5 finite numbers"):
        env.step(np.array([np.nan] * 5, np.float32))


def test_without_a_renderer_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise AttributeError("'NoneType' object has no attribute 'eglQueryString'")

    monkeypatch.setattr(graphics, "_context_class", lambda: broken)
    with pytest.raises(DeviceError, match=r"apt-get install .* libegl1 libgl1-mesa-dri"):
        graphics.Renderer("<mujoco/>", 16)


@pytest.mark.row("VID-2")
def test_videos_show_the_cameras_of_the_environment(tmp_path: Path) -> None:
    job = Job(
        name="film",
        environment=TABLE_TOP,
        arguments={"enable_cameras": True, "max_steps": 12},
        policy=PICKER,
        episodes=2,
        envs=2,
        videos=VideoConfig(episodes=2, max_steps=20),
    )
    record = run_job(job, tmp_path)
    assert record.status is Status.COMPLETED, record.traceback
    assert len(record.videos) == 6
    assert {path.rpartition("_")[2] for path in record.videos} == {"front.mp4", "render.mp4", "wrist.mp4"}
    assert record.instructions == ("pick up the red box and put it in the tray",)
    assert record.task == "pick an object up and put it in the tray"


@pytest.mark.row("JOB-4")
def test_rows_do_not_depend_on_the_number_of_environments(tmp_path: Path) -> None:
    def rows(envs: int) -> Any:
        job = Job(name="pick", environment=TABLE_TOP, policy=PICKER, episodes=5, envs=envs)
        record = run_job(job, tmp_path / str(envs))
        return Run(record.folder).episodes(["episode_id", "steps", "outcomes.success", "outcomes.distance_m"])

    assert rows(1).equals(rows(3))
