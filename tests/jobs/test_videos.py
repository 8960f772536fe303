"""Videos of Gymnasium episodes: frame i is the state after i steps, for every env and camera, the last one included."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import pytest
from gymnasium import spaces

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.batch import Begun
from roadworthy.evaluation.runners.gym.environments import open_envs
from roadworthy.evaluation.runners.gym.in_flight import InFlight
from roadworthy.evaluation.runners.gym.job import Job, VideoConfig, with_camera_videos
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.evaluation.runners.gym.spec import GymSpec
from roadworthy.evaluation.runners.gym.videos import GymRecorder, chosen_episodes
from roadworthy.jobs.record import JobRecord, Status
from roadworthy.record import Run
from tests.jobs.arenas import Cinema, number_in
from tests.jobs.running import run_job


class Painting(Cinema):
    """What it draws is all there is to see, and it draws where it was built to."""

    def render(self) -> Any:
        return super().render() if self.render_mode == "rgb_array" else None

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self.observation_space = spaces.Discrete(1000)

    def _seen(self) -> Any:
        return self._steps


class Shutter(Cinema):
    """Its cameras see something where they are switched on."""

    def __init__(self, enable_cameras: bool = False, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self._is_open = enable_cameras
        if not enable_cameras:
            self.observation_space = spaces.Discrete(1000)

    def _seen(self) -> Any:
        return super()._seen() if self._is_open else self._steps


CINEMA, VECTOR = "tests.jobs.arenas:Cinema", "tests.jobs.arenas:corridors"


def filmed(folder: Path, **settings: Any) -> JobRecord:
    values = {"name": "j", "environment": CINEMA, "policy": "zero", "episodes": 4, "envs": 2, **settings}
    return run_job(Job(**{"videos": VideoConfig(episodes=2, max_steps=100), **values}), folder)


def numbers(path: Path) -> list[int]:
    """What the frames of a video show, read by a decoder."""
    with av.open(str(path)) as container:
        return [number_in(frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]


@pytest.mark.row("VID-2")
@pytest.mark.parametrize("arguments", [{}, {"mode": "DISABLED"}, {"mode": "NEXT_STEP"}])
def test_frame_i_is_step_i_for_every_camera_and_render(arguments: dict[str, Any], tmp_path: Path) -> None:
    environment = VECTOR if arguments else CINEMA
    more = {"env": "Cinema", "render_mode": "rgb_array"} if arguments else {}
    record = filmed(tmp_path, environment=environment, arguments={**arguments, **more, "length": 21})
    assert record.status is Status.COMPLETED, record.traceback
    cameras = ("render", "cameras.left", "cameras.right") if not arguments else ("cameras.left", "cameras.right")
    names = {f"videos/{episode}_{camera}.mp4" for episode in ("0000", "0001") for camera in cameras}
    assert names <= set(record.videos)
    for name in names:
        shown = numbers(record.folder / name)
        assert shown == [255 - k if "right" in name else k for k in range(22)]


@pytest.mark.row("VID-2")
def test_where_envs_reset_in_the_same_step_cameras_have_the_last_frame_and_render_says_that_it_has_not(
    tmp_path: Path,
) -> None:
    arguments = {"mode": "SAME_STEP", "env": "Cinema", "render_mode": "rgb_array", "length": 9}
    config = VideoConfig(episodes=1, max_steps=50, cameras=("cameras.left", "render"))
    record = filmed(tmp_path, environment=VECTOR, arguments=arguments, videos=config)
    assert numbers(record.folder / "videos/0000_cameras.left.mp4") == list(range(10))
    assert numbers(record.folder / "videos/0000_render.mp4") == list(range(9))
    assert "the last frame is missing" in record.artifact_errors["0000 video_render"]


@pytest.mark.row("VID-2")
def test_a_failed_episode_keeps_its_frames(tmp_path: Path) -> None:
    config = VideoConfig(episodes=1, max_steps=50, cameras=("render",))
    record = filmed(tmp_path, arguments={"breaks_at": 7}, videos=config)
    assert record.status is Status.FAILED
    assert numbers(record.folder / "videos/0000_render.mp4") == list(range(7))


def test_what_is_longer_than_asked_for_is_cut(tmp_path: Path) -> None:
    config = VideoConfig(episodes=1, max_steps=5, cameras=("render",))
    record = filmed(tmp_path, videos=config)
    assert numbers(record.folder / "videos/0000_render.mp4") == list(range(6))


@pytest.mark.row("VID-3")
@pytest.mark.parametrize(
    "choose", ["first", "random", "failed", "worst", (5, 3)], ids=["first", "random", "failed", "worst", "numbers"]
)
def test_episodes_are_chosen(choose: Any, tmp_path: Path) -> None:
    config = VideoConfig(episodes=2, max_steps=20, choose=choose, cameras=("render",))
    record = filmed(tmp_path, episodes=12, videos=config)
    assert record.status is Status.COMPLETED, record.traceback
    files = sorted(path.name for path in (record.folder / "videos").glob("*"))
    assert [f"videos/{name}" for name in files] == list(record.videos)
    shown = [name.partition("_")[0] for name in files]
    assert len(shown) == 2
    success = dict(
        zip(*Run(record.folder).episodes(["episode_id", "outcomes.success"]).to_pydict().values(), strict=True)
    )
    if choose in ("failed", "worst"):
        assert all(success[name] == 0.0 for name in shown)
    if choose == "first":
        assert shown == ["0000", "0001"]
    if choose == (5, 3):
        assert shown == ["0003", "0005"]


@pytest.mark.row("VID-3")
def test_the_worst_are_chosen_from_all_builds_of_a_job(tmp_path: Path) -> None:
    config = VideoConfig(episodes=2, max_steps=20, choose="worst", cameras=("render",))
    record = filmed(tmp_path, episodes=15, rebuilds=3, videos=config)
    assert record.ended == 15
    assert len(record.videos) == 2


@pytest.mark.row("VID-2")
def test_a_switch_records_every_camera_of_every_episode_of_an_unchanged_job(tmp_path: Path) -> None:
    job = Job(name="j", environment=CINEMA, policy="zero", episodes=5, envs=2)
    record = run_job(with_camera_videos(job), tmp_path)
    assert record.digest == job.digest
    names = [f"videos/{k:04d}_cameras.{side}.mp4" for k in range(5) for side in ("left", "right")]
    assert list(record.videos) == names
    assert numbers(record.folder / names[8]) == list(range(13))
    own = replace(job, videos=VideoConfig(episodes=1, max_steps=3))
    assert with_camera_videos(own) is own


def test_the_switch_turns_cameras_on_in_an_environment_that_has_a_switch_of_its_own(tmp_path: Path) -> None:
    job = Job(name="j", environment="tests.jobs.test_videos:Shutter", policy="zero", episodes=1)
    assert run_job(with_camera_videos(job), tmp_path / "a").videos == (
        "videos/0000_cameras.left.mp4",
        "videos/0000_cameras.right.mp4",
    )
    assert run_job(replace(job, videos=VideoConfig(1, 20)), tmp_path / "b").videos == ("videos/0000_render.mp4",)


def test_the_switch_films_what_an_environment_draws_where_it_has_no_camera(tmp_path: Path) -> None:
    job = Job(name="j", environment="tests.jobs.test_videos:Painting", policy="zero", episodes=2)
    assert run_job(with_camera_videos(job), tmp_path).videos == ("videos/0000_render.mp4", "videos/0001_render.mp4")


def test_the_switch_fails_no_job_that_has_nothing_to_show(tmp_path: Path) -> None:
    job = Job(name="j", environment="tests.jobs.arenas:Corridor", policy="zero", episodes=4, rebuilds=2)
    record = run_job(with_camera_videos(job), tmp_path)
    assert record.status is Status.COMPLETED
    assert not record.videos
    assert record.artifact_errors == {
        "videos": "this environment has no pictures among its observations and does not draw"
    }


@pytest.mark.row("VID-2")
def test_a_cap_on_open_files_drops_films_with_a_clear_word(tmp_path: Path) -> None:
    config = VideoConfig(episodes=4, max_steps=20, cameras=("cameras.left", "cameras.right"), encoders=3)
    record = filmed(tmp_path, envs=4, videos=config)
    assert record.status is Status.COMPLETED
    assert len(record.videos) == 3
    assert len(record.artifact_errors) == 5
    assert all("as many as videos.encoders allows; raise it" in words for words in record.artifact_errors.values())


@pytest.mark.parametrize(
    ("environment", "settings", "words"),
    [
        ("tests.jobs.arenas:Corridor", {}, "neither the render mode"),
        (CINEMA, {"choose": (99,)}, "videos.choose names episode 99, but the job has episodes 0 to 3"),
        (CINEMA, {"cameras": ("top",)}, "camera 'top' is unknown; known: render, cameras.left, cameras.right"),
    ],
)
def test_videos_of_what_can_not_be_seen_are_refused(
    environment: str, settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    config = VideoConfig(episodes=1, max_steps=5, **settings)
    assert words in (filmed(tmp_path, environment=environment, videos=config).error or "")


def test_a_recorder_leaves_no_unfinished_files(tmp_path: Path) -> None:
    config = VideoConfig(episodes=1, max_steps=5, choose=(0,), cameras=("render",))
    job = Job(name="j", environment=CINEMA, policy="zero", episodes=1, videos=config)
    batch, (spec,) = open_envs(job), plan(job)
    recorder = GymRecorder(GymSpec(job, tmp_path, chosen_episodes(job, [spec])))
    recorder.watch(batch, None)
    begun = batch.begin({0: spec})[0]
    assert isinstance(begun, Begun)
    episode = InFlight(spec, 0, 0, None, begun)
    recorder.begin(episode)
    recorder.follow([episode])
    recorder.close()
    assert not list(tmp_path.rglob("*.mp4"))
    with pytest.raises(UsageError, match="counted in steps"):
        chosen_episodes(replace(job, episodes=None, steps=5), [spec])


@pytest.mark.row("VID-2")
@pytest.mark.long
def test_ten_envs_with_two_cameras_and_500_steps_are_filmed_in_little_memory(tmp_path: Path) -> None:
    def run(name: str, length: int) -> tuple[JobRecord, int]:
        config = VideoConfig(episodes=10, max_steps=1000, cameras=("cameras.left", "cameras.right"))
        arguments = {"length": length, "side": 256}
        record = filmed(tmp_path, name=name, arguments=arguments, episodes=10, envs=10, videos=config)
        return record, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    _, short = run("short", 50)
    record, long = run("long", 500)
    assert len(record.videos) == 20
    for name in record.videos:
        shown = numbers(record.folder / name)
        assert len(shown) == 501
        assert shown == [(255 - k % 256 if "right" in name else k % 256) for k in range(501)]
    assert long - short < 40 * 1024  # KiB: ten times the frames, and 1.9 GB of them
