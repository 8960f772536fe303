"""Videos of Gymnasium episodes: every chosen episode and camera a file, streamed to the disk as the episode runs.

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
from roadworthy.jobs.batch import EnvBatch, Picture
from roadworthy.jobs.episode import Underway
from roadworthy.jobs.job import RENDER, VideoConfig
from roadworthy.record.files import safe_name
from roadworthy.render.video import Mp4Writer

DEFAULT_FPS = 30.0  # of envs that declare no render_fps
SMALLEST_PX = 16


@dataclass
class Film:
    """The open files of one episode, by camera."""

    writers: dict[str, Mp4Writer] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    frames: int = 0


@dataclass(frozen=True)
class Filmed:
    """What became of an episode's films: paths relative to the run folder, and why some are missing."""

    paths: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    displaced: tuple[tuple[str, str], ...] = ()  # episode and camera of films that made room for this one


@dataclass(frozen=True, order=True)
class _Kept:
    """A film that may have to make room for that of a worse episode."""

    outcome: float
    episode_id: str
    paths: Mapping[str, str] = field(compare=False)


class Crew:
    """Films episodes of one job."""

    def __init__(
        self,
        config: VideoConfig,
        folder: Path,
        owed: Sequence[EpisodeSpec] | None,
        seed: int,
        render_fault: str | None = None,
    ) -> None:
        """Get ready; owed: all episodes of the job in order, None where they are not known beforehand.

        render_fault: why render() can't be called; None if it can.
        """
        self.render_fault = render_fault
        self._config, self._folder = config, folder
        for leftover in (folder / "videos").glob(".*.partial.mp4"):  # of a process that was killed
            leftover.unlink()
        self._films: dict[int, Film] = {}  # by env
        self._chosen = _chosen(config, owed, seed)
        self._begun_count = 0
        self._kept: list[_Kept] = []  # of `failed` and `worst`, the worst first

    def watch(self, batch: EnvBatch) -> None:
        """Film what happens in these envs from here on."""
        self._batch = batch
        self.cameras = _cameras(self._config, batch)
        self._fps = float(batch.info.metadata.get("render_fps") or DEFAULT_FPS) * self._config.speed_up

    def begin(self, episode: Underway) -> None:
        """Open an episode's files, if it was chosen."""
        if not self._wants(episode):
            return
        self._begun_count += 1
        film = self._films[episode.env] = Film()
        (self._folder / "videos").mkdir(exist_ok=True)
        for camera in self.cameras:
            if camera == RENDER and self.render_fault is not None:
                film.errors[camera] = self.render_fault
                continue
            open_count = sum(len(other.writers) for other in self._films.values())
            if open_count >= self._config.encoders:
                film.errors[camera] = (
                    f"not filmed: {open_count} videos are being written at the same time, as many as videos.encoders "
                    "allows; raise it, or lower envs or the number of cameras"
                )
                continue
            self._try(film, camera, lambda film, camera: self._open(film, camera, episode.owed.episode_id))

    def follow(self, episodes: Sequence[Underway]) -> None:
        """Add a frame of each of these episodes."""
        filmed = [e for e in episodes if e.env in self._films and self._films[e.env].frames <= self._config.max_steps]
        drawn = self._render([e.env for e in filmed if self._shows_render(e)])
        for episode in filmed:
            film = self._films[episode.env]
            for camera in list(film.writers):
                picture = drawn.get(episode.env) if camera == RENDER else _picture(episode.observation, camera)
                self._add(film, camera, picture)
            film.frames += 1

    def end(self, episode: Underway, outcome: float | None) -> Filmed:
        """Close an episode's files; an unfinished or failed one keeps what it has."""
        film = self._films.pop(episode.env, None)
        if film is None:
            return Filmed()
        for camera in list(film.writers):
            self._try(film, camera, lambda film, camera: film.writers[camera].close())
        paths = {camera: str(writer.path.relative_to(self._folder)) for camera, writer in film.writers.items()}
        if self._config.choose not in ("failed", "worst"):
            return Filmed(paths, film.errors)
        value = float("-inf") if outcome is None else outcome
        this = _Kept(value, episode.owed.episode_id, paths)
        if self._config.choose == "failed" and value >= 1.0:
            self._remove(this)
            return Filmed()
        self._kept = sorted([*self._kept, this])
        out = self._kept[self._config.episodes :]
        self._kept = self._kept[: self._config.episodes]
        for kept in out:
            self._remove(kept)
        displaced = tuple((kept.episode_id, camera) for kept in out if kept is not this for camera in kept.paths)
        return Filmed() if this in out else Filmed(paths, film.errors, displaced)

    def close(self) -> None:
        """Leave no unfinished files."""
        for film in self._films.values():
            for writer in film.writers.values():
                writer.discard()
        self._films = {}

    def _wants(self, episode: Underway) -> bool:
        if self._chosen is not None:
            return episode.owed.episode_id in self._chosen
        if self._config.choose == "first":
            return self._begun_count < self._config.episodes
        return self._config.choose != "failed" or len(self._kept) < self._config.episodes

    def _open(self, film: Film, camera: str, episode_id: str) -> None:
        path = self._folder / "videos" / f"{safe_name(episode_id)}_{safe_name(camera)}.mp4"
        film.writers[camera] = Mp4Writer(path, self._fps)

    def _shows_render(self, episode: Underway) -> bool:
        """Whether render() shows this episode now: a vector env that resets in the same step shows the next one."""
        has_ended = episode.last is not None and (episode.last.is_terminated or episode.last.is_truncated)
        return RENDER in self._films[episode.env].writers and (self._batch.shows_last_state or not has_ended)

    def _render(self, envs: list[int]) -> Mapping[int, Picture]:
        if not envs:
            return {}
        try:
            return self._batch.render(envs)
        except Exception as error:  # a picture that can't be drawn is no fault of the episode
            for env in envs:
                self._drop(self._films[env], RENDER, f"render() raised {type(error).__name__}: {error}")
            return {}

    def _add(self, film: Film, camera: str, picture: Any) -> None:
        if camera not in film.writers:
            return
        if picture is None:
            if film.frames == 0:
                self._drop(film, camera, "there was no picture at the reset")
            else:
                film.errors[camera] = (
                    "the last frame is missing: this vector env resets in the step that ends an episode, and render() "
                    "shows the next one; film a camera among the observations, or use another autoreset mode"
                )
            return
        self._try(film, camera, lambda film, camera: film.writers[camera].add(_rgb(picture)))

    def _try(self, film: Film, camera: str, action: Callable[[Film, str], None]) -> None:
        """Whatever goes wrong with a film is told beside the episode's result, and never changes it."""
        try:
            action(film, camera)
        except Exception as error:
            self._drop(film, camera, f"{type(error).__name__}: {error}")

    def _drop(self, film: Film, camera: str, reason: str) -> None:
        film.errors[camera] = reason
        writer = film.writers.pop(camera, None)
        if writer is not None:
            writer.discard()

    def _remove(self, kept: _Kept) -> None:
        for path in kept.paths.values():
            (self._folder / path).unlink(missing_ok=True)


def _cameras(config: VideoConfig, batch: EnvBatch) -> tuple[str, ...]:
    """The cameras to film: those asked for, else all there are."""
    declared = batch.info.metadata.get("cameras")
    found = tuple(declared) if declared is not None else tuple(picture_names(batch.info.observation_space))
    can_render = "rgb_array" in batch.info.metadata.get("render_modes", ())
    known = (RENDER, *found) if can_render else found
    if config.cameras == "observed":
        return found or known
    if config.cameras is None:
        if not known:
            raise UsageError(
                "videos were asked for, but this environment neither draws (no render mode 'rgb_array') nor has "
                "pictures among its observations; leave `videos` out"
            )
        return known
    possible = (RENDER, *picture_names(batch.info.observation_space))
    unknown = [camera for camera in config.cameras if camera not in possible]
    if unknown:
        raise UsageError(f"camera {unknown[0]!r} is unknown; known: {', '.join(possible)}")
    return config.cameras


def picture_names(space: spaces.Space[Any], prefix: str = "") -> list[str]:
    """Parts of an observation space that are pictures: whole numbers of a byte, three colours, some pixels."""
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


def _chosen(config: VideoConfig, owed: Sequence[EpisodeSpec] | None, seed: int) -> frozenset[str] | None:
    """Ids of the episodes to film, where that is known beforehand."""
    if config.choose in ("failed", "worst"):
        return None
    if owed is None:
        if config.choose == "first":
            return None
        raise UsageError(
            f"videos.choose is {config.choose!r}, but a job that is counted in steps does not know its episodes "
            "beforehand; choose first, failed or worst"
        )
    if isinstance(config.choose, tuple):
        wrong = [number for number in config.choose if not 0 <= number < len(owed)]
        if wrong:
            raise UsageError(f"videos.choose names episode {wrong[0]}, but the job has episodes 0 to {len(owed) - 1}")
        return frozenset(owed[number].episode_id for number in config.choose)
    if config.choose == "first":
        return frozenset(episode.episode_id for episode in owed[: config.episodes])
    count = min(config.episodes, len(owed))
    numbers = np.random.default_rng(seed).choice(len(owed), count, replace=False)
    return frozenset(owed[number].episode_id for number in numbers.tolist())
