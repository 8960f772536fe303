"""Pictures of recorded scenarios from above: `draw` makes one, `animate` one for every step, `BirdView` any of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image as Pillow

from roadworthy.errors import UsageError
from roadworthy.render.agents import AgentLayer
from roadworthy.render.camera import Camera, Size
from roadworthy.render.lights import LightLayer
from roadworthy.render.map_layer import MapLayer
from roadworthy.render.motion import recorded_motion
from roadworthy.render.overlay import Overlay
from roadworthy.render.raster import Image, Painter
from roadworthy.render.shapes import Sketch
from roadworthy.render.style import LIGHT, Theme
from roadworthy.scenario.schema import Scenario

View = Literal["bev", "ego"]
VIEWS: tuple[View, ...] = ("bev", "ego")  # of recordings; traces have one more, see render.config


@dataclass(frozen=True)
class Show:
    """What is shown besides the map, the lights and the agents."""

    trail_seconds: float = 2.5  # the duration of trails; 0: none
    future: bool = True
    caption: bool = True
    legend: bool = True
    scale_bar: bool = True


EVERYTHING = Show()


class BirdView:
    """Draws one scenario. Backgrounds, text and buffers are reused between pictures."""

    def __init__(self, scenario: Scenario, theme: Theme = LIGHT, show: Show = EVERYTHING) -> None:
        self.scenario = scenario
        self.theme = theme
        self.show = show
        motion = recorded_motion(scenario, theme)
        self._agents = AgentLayer(motion, theme)
        self._lights = LightLayer(scenario, theme)
        self._legend = motion.legend
        self._map_layer: MapLayer | None = None
        self._painter: Painter | None = None

    def camera(
        self, view: View, step: int, size: Size = (1280, 960), width_m: float = 90.0, agent: int | None = None
    ) -> Camera:
        """Return the camera of a view: 'bev' shows the whole map, 'ego' follows an agent, by default the SDC."""
        if view == "bev":
            return whole_map_camera(self.scenario, size)
        if view != "ego":
            raise UsageError(f"view {view!r} is unknown; known: {', '.join(VIEWS)}")
        scenario = self.scenario
        followed = scenario.sdc if agent is None else agent
        if not 0 <= followed < scenario.agent_count or not scenario.valid[followed].any():
            raise UsageError(
                f"scenario {scenario.id!r} has no agent {followed} to follow (agents 0..{scenario.agent_count - 1}, "
                f"self-driving car {scenario.sdc}); choose another agent or the view 'bev'"
            )
        there = np.flatnonzero(scenario.valid[followed])
        nearest = there[np.argmin(np.abs(there - step))]
        x, y = scenario.positions[followed, nearest, :2].tolist()
        return Camera((x, y), width_m / size[0], size)

    def frame(self, step: int, camera: Camera) -> Image:
        """Return the scenario at a step, (h, w, 3). The camera moves by less than a pixel (see Camera.snapped)."""
        scenario, show = self.scenario, self.show
        if not 0 <= step < scenario.steps:
            raise UsageError(f"scenario {scenario.id!r} has no step {step}; expected 0 to {scenario.steps - 1}")
        camera = camera.snapped()
        scale = camera.meters_per_pixel
        if self._map_layer is None or self._map_layer.meters_per_pixel != scale:
            self._map_layer = MapLayer(scenario.map, scale, self.theme)
        if self._painter is None or (self._painter.width, self._painter.height) != camera.size:
            self._painter = Painter(*camera.size)
            self._overlay = Overlay(camera.size, self.theme)
        image = self._map_layer.background(camera)
        sketch = Sketch()
        if show.future:
            self._agents.draw_futures(sketch, step, scale)
        steps_back = round(show.trail_seconds / scenario.dt)
        if steps_back > 0:
            self._agents.draw_trails(sketch, step, steps_back, scale)
        self._agents.draw_bodies(sketch, step, scale)
        self._painter.paint(image, sketch.shapes(), camera.transform)
        self._painter.paint(image, self._lights.shapes(step, scale), camera.transform)
        if show.caption:
            self._overlay.caption(image, scenario, step)
        if show.legend and self._legend:
            self._overlay.legend(self._legend).lay_on(image)
        if show.scale_bar:
            self._overlay.scale_bar(scale).lay_on(image)
        return image


def draw(
    scenario: Scenario,
    step: int | None = None,
    camera: Camera | None = None,
    size: Size = (1280, 960),
    theme: Theme = LIGHT,
    show: Show = EVERYTHING,
) -> Image:
    """Return a scenario at a step, (h, w, 3); by default the last step of its history, and the whole map."""
    camera = whole_map_camera(scenario, size) if camera is None else camera
    return BirdView(scenario, theme, show).frame(scenario.current_step if step is None else step, camera)


def animate(
    scenario: Scenario,
    view: View = "bev",
    size: Size = (1280, 960),
    width_m: float = 90.0,
    agent: int | None = None,
    theme: Theme = LIGHT,
    show: Show = EVERYTHING,
) -> Iterator[Image]:
    """Yield a picture of every step in order; show 1 / scenario.dt of them per second."""
    bird = BirdView(scenario, theme, show)
    for step in range(scenario.steps):
        yield bird.frame(step, bird.camera(view, step, size, width_m, agent))


def whole_map_camera(scenario: Scenario, size: Size = (1280, 960)) -> Camera:
    """Return the camera that shows the whole map, and every agent on it or near it."""
    return Camera.of_map(scenario.map.points, scenario.positions[scenario.valid], size)


def save_png(path: str | os.PathLike[str], image: Image) -> None:
    """Write a picture as PNG, atomically."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    try:
        Pillow.fromarray(image).save(partial, format="PNG", optimize=True)
        os.replace(partial, target)
    except OSError as error:
        raise UsageError(f"can't write the picture {target}: {error.strerror or error}; choose another path") from error
    finally:
        partial.unlink(missing_ok=True)
