"""Videos of Gymnasium episodes: one file per chosen episode and camera, written to the disk while the episode runs.

Frame 0 is the reset, frame i the state after i steps, the last one included. An episode that fails keeps its frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from roadworthy.errors import UsageError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runners.gym.batch import EnvBatch, Picture
from roadworthy.evaluation.runners.gym.in_flight import InFlight
from roadworthy.evaluation.runners.gym.job import RENDER, Job, VideoConfig
from roadworthy.evaluation.runners.gym.plan import job_seed
from roadworthy.evaluation.runners.gym.spec import GymSpec
from roadworthy.record import Run
from roadworthy.record.artifacts import add_artifact
from roadworthy.record.files import safe_name
from roadworthy.render.video import Mp4Writer

DEFAULT_FPS = 30.0  # of envs that declare no render_fps
SMALLEST_PX = 16


@dataclass
class _Open:
    """The open files of one episode, by camera."""

    writers: dict[str, Mp4Writer] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    frames: int = 0


@dataclass(frozen=True)
class Recording:
    """The videos of an episode: paths relative to the run folder, and why some are missing."""

    paths: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class _Kept:
    """Videos that may have to make room for those of a worse episode."""

    outcome: float
    episode_id: str
    paths: Mapping[str, str] = field(compare=False)

    def remove(self, folder: Path, *, is_listed: bool = False) -> None:
        """Delete the files; is_listed: whether the rows of the run name them."""
        for camera, path in self.paths.items():
            (folder / path).unlink(missing_ok=True)
            if is_listed:
                add_artifact(folder, self.episode_id, f"video_{camera}", error="made room for a worse episode's video")


class GymRecorder:
    """Records episodes of one run in one process."""

    def __init__(self, spec: GymSpec) -> None:
        assert spec.job.videos is not None
        self._config, self._folder, self._chosen = spec.job.videos, spec.folder, spec.recorded
        self._open_videos: dict[int, _Open] = {}  # by env
        self._begun_count = 0
        self._kept: list[_Kept] = []  # of `failed` and `worst`, the worst first
        self.cameras: tuple[str, ...] | None = None

    def watch(self, batch: EnvBatch, render_fault: str | None) -> None:
        """Record what happens in these envs; render_fault: why render() can't be called, or None."""
        is_first, self._batch, self._render_fault = self.cameras is None, batch, render_fault
        self.cameras = _cameras(self._config, batch)
        self._fps = float(batch.info.metadata.get("render_fps") or DEFAULT_FPS) * self._config.speed_up
        if is_first and not self.cameras:
            add_artifact(
                self._folder,
                None,
                "videos",
                error="this environment has no pictures among its observations and does not draw",
            )

    def begin(self, episode: InFlight) -> None:
        """Open the files of an episode, if it is chosen."""
        if not self._wants(episode):
            return
        self._begun_count += 1
        video = self._open_videos[episode.env] = _Open()
        (self._folder / "videos").mkdir(exist_ok=True)
        for camera in self.cameras or ():
            if camera == RENDER and self._render_fault is not None:
                video.errors[camera] = self._render_fault
                continue
            open_count = sum(len(other.writers) for other in self._open_videos.values())
            if open_count >= self._config.encoders:
                video.errors[camera] = (
                    f"not recorded: {open_count} videos are being written at the same time, as many as videos.encoders "
                    "allows; raise it, or lower envs or the number of cameras"
                )
                continue
            self._try(video, camera, lambda video, camera: self._open(video, camera, episode.spec.episode_id))

    def follow(self, episodes: Sequence[InFlight]) -> None:
        """Add a frame of each of these episodes."""
        recorded = [
            e
            for e in episodes
            if e.env in self._open_videos and self._open_videos[e.env].frames <= self._config.max_steps
        ]
        drawn = self._render([e.env for e in recorded if self._shows_render(e)])
        for episode in recorded:
            video = self._open_videos[episode.env]
            for camera in list(video.writers):
                picture = drawn.get(episode.env) if camera == RENDER else _picture(episode.observation, camera)
                self._add(video, camera, picture)
            video.frames += 1

    def end(self, episode: InFlight, outcomes: Mapping[str, float | None]) -> Recording:
        """Close the files of an episode; one that failed or was cut off keeps what it has."""
        video = self._open_videos.pop(episode.env, None)
        if video is None:
            return Recording()
        for camera in list(video.writers):
            self._try(video, camera, lambda video, camera: video.writers[camera].close())
        paths = {camera: str(writer.path.relative_to(self._folder)) for camera, writer in video.writers.items()}
        if self._config.choose not in ("failed", "worst"):
            return Recording(paths, video.errors)
        outcome = outcomes.get(self._config.outcome)
        this = _Kept(float("-inf") if outcome is None else outcome, episode.spec.episode_id, paths)
        if self._config.choose == "failed" and this.outcome >= 1.0:
            this.remove(self._folder)
            return Recording()
        self._kept = sorted([*self._kept, this])
        displaced, self._kept = self._kept[self._config.episodes :], self._kept[: self._config.episodes]
        for kept in displaced:
            kept.remove(self._folder, is_listed=kept is not this)
        return Recording() if this in displaced else Recording(paths, video.errors)

    def close(self) -> None:
        """Leave no unfinished files."""
        for video in self._open_videos.values():
            for writer in video.writers.values():
                writer.discard()
        self._open_videos = {}

    def _wants(self, episode: InFlight) -> bool:
        if self._chosen is not None:
            return episode.spec.episode_id in self._chosen
        if self._config.choose == "first":
            return self._begun_count < self._config.episodes
        return self._config.choose != "failed" or len(self._kept) < self._config.episodes

    def _open(self, video: _Open, camera: str, episode_id: str) -> None:
        path = self._folder / "videos" / f"{safe_name(episode_id)}_{safe_name(camera)}.mp4"
        video.writers[camera] = Mp4Writer(path, self._fps)

    def _shows_render(self, episode: InFlight) -> bool:
        """Whether render() shows this episode now: a vector env that resets in the same step shows the next one."""
        has_ended = episode.last is not None and (episode.last.is_terminated or episode.last.is_truncated)
        return RENDER in self._open_videos[episode.env].writers and (self._batch.shows_last_state or not has_ended)

    def _render(self, envs: list[int]) -> Mapping[int, Picture]:
        if not envs:
            return {}
        try:
            return self._batch.render(envs)
        except Exception as error:  # a picture that can't be drawn does not fail the episode
            for env in envs:
                self._drop(self._open_videos[env], RENDER, f"render() raised {type(error).__name__}: {error}")
            return {}

    def _add(self, video: _Open, camera: str, picture: Any) -> None:
        if camera not in video.writers:
            return
        if picture is None:
            if video.frames == 0:
                self._drop(video, camera, "there was no picture at the reset")
            else:
                video.errors[camera] = (
                    "the last frame is missing: this vector env resets in the step that ends an episode, and render() "
                    "shows the next one; record a camera among the observations, or use another autoreset mode"
                )
            return
        self._try(video, camera, lambda video, camera: video.writers[camera].add(_rgb(picture)))

    def _try(self, video: _Open, camera: str, action: Callable[[_Open, str], None]) -> None:
        """Call `action`; an error is listed with the result of the episode and never changes it."""
        try:
            action(video, camera)
        except Exception as error:
            self._drop(video, camera, f"{type(error).__name__}: {error}")

    def _drop(self, video: _Open, camera: str, reason: str) -> None:
        video.errors[camera] = reason
        writer = video.writers.pop(camera, None)
        if writer is not None:
            writer.discard()


def _cameras(config: VideoConfig, batch: EnvBatch) -> tuple[str, ...]:
    """Return the cameras to record: those of the config, else all."""
    declared = batch.info.metadata.get("cameras")
    found = tuple(declared) if declared is not None else tuple(picture_names(batch.info.observation_space))
    can_render = "rgb_array" in batch.info.metadata.get("render_modes", ())
    known = (RENDER, *found) if can_render else found
    if config.cameras == "observed":
        return found or known
    if config.cameras is None:
        if not known:
            raise UsageError(
                "videos are set, but this environment has neither the render mode 'rgb_array' nor pictures among its "
                "observations; leave `videos` out"
            )
        return known
    possible = (RENDER, *picture_names(batch.info.observation_space))
    unknown = [camera for camera in config.cameras if camera not in possible]
    if unknown:
        raise UsageError(f"camera {unknown[0]!r} is unknown; known: {', '.join(possible)}")
    return config.cameras


def picture_names(space: spaces.Space[Any], prefix: str = "") -> list[str]:
    """Return the parts of an observation space that are pictures: arrays (height, width, 3) of uint8."""
    if isinstance(space, spaces.Dict):
        parts = [picture_names(part, f"{prefix}.{name}" if prefix else name) for name, part in space.spaces.items()]
        return [name for part in parts for name in part]
    is_picture = (
        isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) == 3
        and space.shape[2] == 3
        and min(space.shape[:2]) >= SMALLEST_PX
    )
    return [prefix or "observation"] if is_picture else []


def _picture(observation: Any, camera: str) -> Any:
    if not isinstance(observation, Mapping):
        return observation if camera == "observation" else None
    for name in camera.split("."):
        if not isinstance(observation, Mapping) or name not in observation:
            return None
        observation = observation[name]
    return observation


def _rgb(picture: Any) -> Picture:
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] not in (3, 4):
        raise UsageError(f"a frame is {array.dtype} of shape {array.shape}, expected uint8 of (height, width, 3)")
    return np.ascontiguousarray(array[..., :3])


def chosen_episodes(job: Job, ledger: Sequence[EpisodeSpec]) -> tuple[str, ...] | None:
    """Return the ids of the episodes to record; None if that is decided when they start or end."""
    config, episodes = job.videos, ledger if job.steps is None else None
    if config is None or config.choose in ("failed", "worst"):
        return None
    if episodes is None:
        if config.choose == "first":
            return None
        raise UsageError(
            f"videos.choose is {config.choose!r}, but the episodes of a job that is counted in steps are not known "
            "beforehand; choose first, failed or worst"
        )
    if isinstance(config.choose, tuple):
        wrong = [number for number in config.choose if not 0 <= number < len(episodes)]
        if wrong:
            raise UsageError(
                f"videos.choose names episode {wrong[0]}, but the job has episodes 0 to {len(episodes) - 1}"
            )
        return tuple(episodes[number].episode_id for number in config.choose)
    if config.choose == "first":
        return tuple(episode.episode_id for episode in episodes[: config.episodes])
    count = min(config.episodes, len(episodes))
    numbers = np.random.default_rng(job_seed(job)).choice(len(episodes), count, replace=False)
    return tuple(episodes[number].episode_id for number in numbers.tolist())


def remove_partial(folder: Path) -> None:
    """Delete videos that a killed process left unfinished."""
    for leftover in (folder / "videos").glob(".*.partial.mp4"):
        leftover.unlink()


def keep_worst(run: Run, config: VideoConfig) -> None:
    """Keep the videos of the worst episodes: each process of a run has kept its own."""
    if config.choose not in ("failed", "worst"):
        return
    removed = {(artifact.episode_id, artifact.name) for artifact in run.artifacts}
    found = []
    for result in run.results():
        row, outcome = result.episode, result.episode.outcomes.get(config.outcome)
        paths = {
            name.removeprefix("video_"): path
            for name, path in row.artifacts.items()
            if name.startswith("video_") and (row.episode_id, name) not in removed
        }
        if paths:
            found.append(_Kept(float("-inf") if outcome is None else outcome, row.episode_id, paths))
    for kept in sorted(found)[config.episodes :]:
        kept.remove(run.folder, is_listed=True)
