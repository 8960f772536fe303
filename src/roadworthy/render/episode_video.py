"""Videos of one episode: all views in one pass over its trace, each streamed into its own file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roadworthy.errors import RoadworthyError
from roadworthy.render.camera import Size
from roadworthy.render.canvas import Canvas
from roadworthy.render.config import View
from roadworthy.render.obs_view import ObsView
from roadworthy.render.style import LIGHT
from roadworthy.render.video import Mp4Writer
from roadworthy.render.views import EpisodeScene, MapView, VideoView

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace
    from roadworthy.render.resimulate import ObservedFrame
    from roadworthy.sim.layout import ObservationLayout


@dataclass(frozen=True)
class Video:
    """A video of an episode, or the reason why there is none."""

    episode_id: str | None  # None if no episodes could be chosen
    view: View | None
    path: Path | None
    error: str | None = None
    frames: int = 0


@dataclass(frozen=True, eq=False)
class ObservationFrames:
    """The observations of an episode's policies, frame by frame, for the view `obs`."""

    layout: ObservationLayout
    frames: Iterator[ObservedFrame]


def frame_count(trace: Trace, max_steps: int) -> int:
    """Return the number of frames that show at most `max_steps` steps; each trial has one more frame, its reset."""
    numbers = np.arange(trace.frame_count)
    trials = np.searchsorted(trace.trial_starts, numbers, side="right") - 1
    return int(np.count_nonzero(numbers - trials <= max_steps))


def write_videos(
    scene: EpisodeScene,
    paths: Mapping[View, Path],
    max_steps: int,
    size: Size = (1280, 720),
    speed_up: float = 1.0,
    seen_frames: ObservationFrames | None = None,
) -> list[Video]:
    """Write a video of each view. A view that fails reports its error, and the others continue; nothing is raised.

    Frame i of a video is frame i of the trace: frame 0 is the reset, frame i the state after i steps, and every further
    trial starts with its own reset.
    """
    frames = frame_count(scene.trace, max_steps)
    writers = [_ViewWriter(scene, view, path, size, speed_up, frames, seen_frames) for view, path in paths.items()]
    try:
        for frame in range(frames):
            for writer in writers:
                writer.add(frame)
        return [writer.finish() for writer in writers]
    finally:
        for writer in writers:
            writer.discard()


def make_view(
    view: View, scene: EpisodeScene, size: Size, frames: int, seen_frames: ObservationFrames | None
) -> VideoView:
    """Return a view for a video with this number of frames."""
    if view == "obs":
        if seen_frames is None:
            raise RoadworthyError("the view 'obs' needs the observations of the policies, which were not given")
        return ObsView(scene, seen_frames.layout, size, frames)
    return MapView(scene, size, LIGHT, frames, is_following=view == "ego")


class _ViewWriter:
    """Writes the video of one view. It keeps its error, so that other views and the evaluation are not affected."""

    def __init__(
        self,
        scene: EpisodeScene,
        view: View,
        path: Path,
        size: Size,
        speed_up: float,
        frames: int,
        seen_frames: ObservationFrames | None,
    ) -> None:
        self._episode_id, self._view, self._path = scene.trace.episode_id, view, path
        self._seen = seen_frames.frames if seen_frames is not None and view == "obs" else None
        self._writer: Mp4Writer | None = None
        self._error: str | None = None
        try:
            self._picture = make_view(view, scene, size, frames, seen_frames)
            self._canvas = Canvas(size)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = Mp4Writer(path, speed_up / scene.trace.dt)
        except Exception as error:
            self._fail(error)

    def add(self, frame: int) -> None:
        """Draw and write a frame, unless the view has failed."""
        if self._writer is None:
            return
        try:
            seen = None if self._seen is None else next(self._seen)
            camera = self._picture.draw(self._canvas, frame, seen)
            self._writer.add(self._canvas.finish(self._picture.ground, camera))
        except Exception as error:
            self._fail(error)

    def finish(self) -> Video:
        """Move the file to its place and return the result."""
        frames = 0
        if self._writer is not None:
            try:
                self._writer.close()
                frames = self._writer.count
            except Exception as error:
                self._fail(error)
        path = None if self._error else self._path
        return Video(self._episode_id, self._view, path, self._error, frames)

    def discard(self) -> None:
        """Remove a partial file."""
        if self._writer is not None:
            self._writer.discard()

    def _fail(self, error: Exception) -> None:
        self._error = str(error) if isinstance(error, RoadworthyError) else f"{type(error).__name__}: {error}"
        self.discard()
        self._writer = None
