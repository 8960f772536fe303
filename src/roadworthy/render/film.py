"""Films of one episode: all views from one pass over its trace, each streamed into a file of its own."""

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
from roadworthy.render.views import FilmView, MapView, Story

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace
    from roadworthy.render.reenact import Seen
    from roadworthy.sim.layout import ObservationLayout


@dataclass(frozen=True)
class Video:
    """A video of an episode, or why there is none."""

    episode_id: str | None  # None where the episodes could not even be chosen
    view: View | None
    path: Path | None
    error: str | None = None
    frames: int = 0


@dataclass(frozen=True, eq=False)
class Sight:
    """What the policies of an episode saw, frame by frame, for the view `obs`."""

    layout: ObservationLayout
    frames: Iterator[Seen]


def frame_count(trace: Trace, max_steps: int) -> int:
    """How many frames show at most so many steps; each trial has one more than steps, its reset."""
    numbers = np.arange(trace.frame_count)
    trials = np.searchsorted(trace.trial_starts, numbers, side="right") - 1
    return int(np.count_nonzero(numbers - trials <= max_steps))


def shoot(
    story: Story,
    paths: Mapping[View, Path],
    max_steps: int,
    size: Size = (1280, 720),
    speed_up: float = 1.0,
    sight: Sight | None = None,
) -> list[Video]:
    """Write a film of each view. One that fails is told so and the others go on; nothing is raised.

    Frame i of a film is frame i of the trace: 0 is the reset, i the state after i steps, and every further trial begins
    with a reset of its own.
    """
    frames = frame_count(story.trace, max_steps)
    reels = [_Reel(story, view, path, size, speed_up, frames, sight) for view, path in paths.items()]
    try:
        for frame in range(frames):
            for reel in reels:
                reel.expose(frame)
        return [reel.developed() for reel in reels]
    finally:
        for reel in reels:
            reel.drop()


def make_view(view: View, story: Story, size: Size, frames: int, sight: Sight | None) -> FilmView:
    """The view of that name, for a film of so many frames."""
    if view == "obs":
        if sight is None:
            raise RoadworthyError("the view 'obs' needs what the policies saw, and that was not given")
        return ObsView(story, sight.layout, size, frames)
    return MapView(story, size, LIGHT, frames, is_following=view == "ego")


class _Reel:
    """One view's film under way. It keeps its own error, so that neither other views nor an evaluation see it."""

    def __init__(
        self, story: Story, view: View, path: Path, size: Size, speed_up: float, frames: int, sight: Sight | None
    ) -> None:
        self._episode_id, self._view, self._path = story.trace.episode_id, view, path
        self._seen = sight.frames if sight is not None and view == "obs" else None
        self._writer: Mp4Writer | None = None
        self._error: str | None = None
        try:
            self._picture = make_view(view, story, size, frames, sight)
            self._canvas = Canvas(size)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = Mp4Writer(path, speed_up / story.trace.dt)
        except Exception as error:
            self._fail(error)

    def expose(self, frame: int) -> None:
        """Draw and write a frame, unless something has failed before."""
        if self._writer is None:
            return
        try:
            seen = None if self._seen is None else next(self._seen)
            camera = self._picture.draw(self._canvas, frame, seen)
            self._writer.add(self._canvas.finish(self._picture.ground, camera))
        except Exception as error:
            self._fail(error)

    def developed(self) -> Video:
        """Put the file in its place; what became of it."""
        frames = 0
        if self._writer is not None:
            try:
                self._writer.close()
                frames = self._writer.count
            except Exception as error:
                self._fail(error)
        path = None if self._error else self._path
        return Video(self._episode_id, self._view, path, self._error, frames)

    def drop(self) -> None:
        """Leave no partial file behind."""
        if self._writer is not None:
            self._writer.discard()

    def _fail(self, error: Exception) -> None:
        self._error = str(error) if isinstance(error, RoadworthyError) else f"{type(error).__name__}: {error}"
        self.drop()
        self._writer = None
