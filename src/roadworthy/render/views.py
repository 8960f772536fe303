"""The views of an episode: the whole map, and the map around one agent; `obs_view.py` has its observations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.agents import AgentLayer
from roadworthy.render.camera import Camera, Size
from roadworthy.render.canvas import Canvas
from roadworthy.render.counts import egos
from roadworthy.render.effects import Effects
from roadworthy.render.lights import LightLayer
from roadworthy.render.map_layer import Background, MapLayer
from roadworthy.render.motion import Motion, traced_motion
from roadworthy.render.overlay import Overlay, Placed
from roadworthy.render.scoreboard import Heading, Scoreboard, Scores
from roadworthy.render.shapes import Sketch
from roadworthy.render.style import WHITE, Theme
from roadworthy.scenario.schema import Scenario

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace
    from roadworthy.render.resimulate import ObservedFrame

TRAIL_S = 2.5
EGO_WIDTH_M = 110.0


@dataclass(frozen=True, eq=False)
class EpisodeScene:
    """The content of a video: an episode's trace and related data."""

    trace: Trace
    scenario: Scenario
    lights: NDArray[np.uint8]  # (L, frames of the longest trial) LightState, from the first frame of a trial
    followed: int  # the agent in the views `ego` and `obs`
    goal_radius_m: float
    subtitle: str = ""
    own_scores: Scores = ()  # of the followed agent, by trial
    mean_scores: Scores = ()  # the mean over all egos, by trial


class VideoView(Protocol):
    """Draws the frames of one scene."""

    ground: Background

    def draw(self, canvas: Canvas, frame: int, seen: ObservedFrame | None) -> Camera:
        """Draw a frame of the trace and return the snapped camera of the background."""


class MapView:
    """The map with all agents, from a camera that is fixed or follows an agent."""

    def __init__(
        self,
        scene: EpisodeScene,
        size: Size,
        theme: Theme,
        frames: int,
        is_following: bool,
        width_m: float = EGO_WIDTH_M,
        is_bare: bool = False,
    ) -> None:
        """Set up the view; width_m: the width seen by a following camera; is_bare: no text on the picture."""
        self._scene, self._size, self._theme, self._is_following = scene, size, theme, is_following
        trace = scene.trace
        self._camera = self._whole_map() if not is_following else Camera((0.0, 0.0), width_m / size[0], size)
        scale = self._camera.meters_per_pixel
        self.ground: Background = MapLayer(scene.scenario.map, scale, theme)
        self._lights = LightLayer(scene.scenario, theme, scene.lights)
        self._effects = Effects(trace, theme, scene.followed, scene.goal_radius_m)
        self._overlay = overlay = Overlay(size, theme)
        agents = np.array([scene.followed]) if is_following else egos(trace)
        what = f"agent {agents[0]}" if len(agents) == 1 else f"{len(agents)} egos"
        scores = scene.own_scores if is_following else scene.mean_scores
        heading = Heading(trace.episode_id, scene.subtitle, scores)
        self._board = None if is_bare else Scoreboard(overlay, trace, agents, heading, frames, what)
        self._trial = -1

    def draw(self, canvas: Canvas, frame: int, seen: ObservedFrame | None) -> Camera:
        trace = self._scene.trace
        trial = int(np.searchsorted(trace.trial_starts, frame, side="right")) - 1
        if trial != self._trial:
            self._trial = trial
            self._motion: Motion = traced_motion(trace, self._trial, self._theme, self._scene.followed)
            self._agents = AgentLayer(self._motion, self._theme)
        first = int(trace.trial_starts[self._trial])
        step, camera = frame - first, self._moved(frame)
        scale, transform = camera.meters_per_pixel, camera.transform
        sketch = Sketch()
        self._effects.draw_past_paths(sketch, self._trial, scale)
        self._effects.draw_goals(sketch, frame, scale)
        self._agents.draw_trails(sketch, step, round(TRAIL_S / trace.dt), scale)
        self._agents.draw_bodies(sketch, step, scale)
        self._effects.draw_flashes(sketch, frame, first, scale)
        canvas.paint(sketch.shapes(), transform)
        canvas.paint(self._lights.shapes(step, scale), transform)
        if self._board is not None:
            self._lay_labels(canvas, frame, first, camera)
            canvas.lay(self._overlay.legend(self._motion.legend, self._board.lift))
            canvas.lay(self._overlay.scale_bar(scale, self._board.lift))
            self._board.draw(canvas, frame)
        return camera

    def _lay_labels(self, canvas: Canvas, frame: int, first: int, camera: Camera) -> None:
        for label in self._effects.labels(frame, first):
            x, y = camera.to_pixels(label.position)
            chip = self._overlay.chip(label.text, label.color, WHITE)
            top = y - 20 * self._overlay.unit - chip.shape[0]
            canvas.lay(Placed(chip, round(x - 0.5 * chip.shape[1]), round(top)))

    def _moved(self, frame: int) -> Camera:
        """Return the camera of a frame. While the followed agent is absent, it stays at its last or next position."""
        if not self._is_following:
            return self._camera
        trace, agent = self._scene.trace, self._scene.followed
        frames = trace.trial(self._trial)
        there = frames.start + np.flatnonzero(trace.present[frames, agent])
        if len(there) == 0:
            return replace(self._camera, center=self._whole_map().center).snapped(2)
        at = there[max(int(np.searchsorted(there, frame, side="right")) - 1, 0)]
        return replace(self._camera, center=(float(trace.x[at, agent]), float(trace.y[at, agent]))).snapped(2)

    def _whole_map(self) -> Camera:
        trace = self._scene.trace
        ways = np.stack([trace.x[trace.present], trace.y[trace.present]], axis=1)
        return Camera.of_map(self._scene.scenario.map.points, ways, self._size).snapped(2)
