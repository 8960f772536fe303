"""Draw agents from above: boxes to scale with a heading mark, their past path and their future path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.render.motion import LEAP_MPS, Motion
from roadworthy.render.shapes import Sketch
from roadworthy.render.strokes import Polyline, placed, rounded_boxes
from roadworthy.render.style import Theme

SMALLEST_PX = 6.0  # the minimum size of agents, so that pedestrians are visible on a large map
FUTURE_LINE_PX = 1.4
FUTURE_ALPHA = 0.55
TRAIL_ALPHA = 0.6
TRUCK_LENGTH_M = 7.0  # vehicles of at least this length have no rear window
FADED_ALPHA = 0.55


class AgentLayer:
    """Draws moving agents at any step."""

    def __init__(self, motion: Motion, theme: Theme) -> None:
        self._motion = motion
        self._theme = theme
        self._layers: list[_BodyLayer] | None = None
        self._layers_scale = 0.0
        steps = np.diff(motion.positions, axis=1)
        # (A, T - 1) whether the agent drove between two steps: it was present, moved and did not jump.
        self._is_driven = (
            (np.abs(steps).max(axis=2, initial=0.0) > 0.01)
            & (np.hypot(steps[..., 0], steps[..., 1]) < LEAP_MPS * motion.dt)
            & motion.valid[:, :-1]
            & motion.valid[:, 1:]
        )

    def draw_trails(self, sketch: Sketch, step: int, steps_back: int, meters_per_pixel: float) -> None:
        """Draw past positions of moving agents as ribbons that get narrower and fainter with age."""
        motion = self._motion
        first = max(0, step - steps_back)
        seen = np.flatnonzero(motion.valid[:, step] & ~motion.is_parked)
        if first == step or len(seen) == 0:
            return
        positions, headings = motion.positions[seen, first : step + 1], motion.headings[seen, first : step + 1]
        youth = 1.0 - np.arange(step - first, -1, -1) / steps_back  # 0 at the start of the trail, 1 at the agent
        half = np.maximum(0.5 * motion.sizes[seen, 1:2] * (0.25 + 0.45 * youth), 0.7 * meters_per_pixel)
        left, right = _sides(positions, headings, half)
        quads = np.stack([left[:, :-1], left[:, 1:], right[:, 1:], right[:, :-1]], axis=2)
        drawn = self._is_driven[seen, first:step]
        colors = np.broadcast_to(motion.colors[seen][:, None], (*drawn.shape, 3))
        alphas = np.broadcast_to(TRAIL_ALPHA * (0.5 * (youth[:-1] + youth[1:])) ** 1.3, drawn.shape)
        sketch.polygons(quads[drawn], colors[drawn], alphas[drawn])

    def draw_futures(self, sketch: Sketch, step: int, meters_per_pixel: float) -> None:
        """Draw the future path of moving agents, until they first disappear, as thin lines."""
        motion = self._motion
        seen = np.flatnonzero(motion.valid[:, step] & ~motion.is_parked)
        if step + 1 >= motion.steps or len(seen) == 0:
            return
        ahead = np.logical_and.accumulate(motion.valid[seen, step:], axis=1).sum(axis=1) - 1
        # After its last step, an agent's line repeats the last point, which adds no area.
        steps = step + np.minimum(np.arange(motion.steps - step)[None, :], ahead[:, None])
        positions, headings = motion.positions[seen[:, None], steps], motion.headings[seen[:, None], steps]
        is_marked = (seen == motion.marked)[:, None]
        half = 0.5 * meters_per_pixel * FUTURE_LINE_PX * np.where(is_marked, 1.6, 1.0)
        left, right = _sides(positions, headings, np.broadcast_to(half, steps.shape))
        alphas = np.where(is_marked[:, 0], 0.9, FUTURE_ALPHA)
        sketch.polygons(np.concatenate([left, right[:, ::-1]], axis=1), motion.colors[seen], alphas)

    def draw_bodies(self, sketch: Sketch, step: int, meters_per_pixel: float) -> None:
        """Draw the agents that are present at a step."""
        if self._layers is None or self._layers_scale != meters_per_pixel:
            self._layers, self._layers_scale = self._make_layers(meters_per_pixel), meters_per_pixel
        motion = self._motion
        positions, headings, valid = motion.positions[:, step], motion.headings[:, step], motion.valid[:, step]
        for layer in self._layers:
            shown = (motion.is_faded[:, step] if layer.is_faded_only else valid)[layer.agents]
            agents = layer.agents[shown]
            outlines = placed(layer.outlines[shown], positions[agents], headings[agents]) + layer.shift
            sketch.polygons(outlines, layer.colors[shown], layer.alphas[shown])

    def _make_layers(self, meters_per_pixel: float) -> list[_BodyLayer]:
        motion, theme = self._motion, self._theme
        smallest = SMALLEST_PX * meters_per_pixel
        lengths, widths = np.maximum(motion.sizes, smallest).T
        is_vehicle = motion.is_vehicle
        radii = np.where(is_vehicle, 0.24, 0.5) * np.minimum(lengths, widths)
        rim = max(0.09, 0.7 * meters_per_pixel)
        every = np.ones(motion.agent_count, bool)
        is_marked = np.arange(motion.agent_count) == motion.marked
        muted = np.where(motion.is_parked, 0.6, 1.0)

        def layer(
            outlines: Polyline,
            agents: NDArray[np.bool_],
            colors: ArrayLike,
            alphas: ArrayLike,
            shift: float = 0.0,
            is_faded_only: bool = False,
        ) -> _BodyLayer:
            chosen = np.flatnonzero(agents)
            return _BodyLayer(
                chosen,
                outlines[chosen],
                np.broadcast_to(np.asarray(colors, np.float32), (len(agents), 3))[chosen],
                np.broadcast_to(np.asarray(alphas, np.float32), len(agents))[chosen],
                shift * np.array([1.0, -1.5]),
                is_faded_only,
            )

        def grown(by: float) -> Polyline:
            return rounded_boxes(lengths + 2 * by, widths + 2 * by, radii + by)

        windshields, rear_windows = _windows(lengths, widths)
        return [
            layer(grown(2 * rim), every, (0, 0, 0), theme.shadow_alpha, shift=rim),
            layer(grown(max(0.75, 4.0 * meters_per_pixel)), is_marked, motion.colors, 0.28),
            layer(grown(rim), every, theme.casing, muted),
            layer(grown(0.0), every, motion.colors, 1.0),
            layer(windshields, is_vehicle, theme.glass, theme.glass_alpha * muted),
            layer(rear_windows, is_vehicle & (lengths < TRUCK_LENGTH_M), theme.glass, theme.glass_alpha * muted),
            layer(_noses(lengths, widths), ~is_vehicle, theme.casing, 0.95),
            layer(grown(0.0), every, theme.road, FADED_ALPHA, is_faded_only=True),
        ]


@dataclass(frozen=True)
class _BodyLayer:
    """One layer of the agents' bodies: n outlines of k points, in the frame of each agent."""

    agents: NDArray[np.int64]  # (n,)
    outlines: Polyline  # (n, k, 2)
    colors: NDArray[np.float32]  # (n, 3)
    alphas: NDArray[np.float32]  # (n,)
    shift: Polyline  # (2,) in the map's frame
    is_faded_only: bool  # drawn only for agents that have finished


def _sides(positions: Polyline, headings: Polyline, half: Polyline) -> tuple[Polyline, Polyline]:
    """Return points left and right of a path, square to the heading, which is defined at a standstill too."""
    across = half[..., None] * np.stack([-np.sin(headings), np.cos(headings)], axis=-1)
    return positions + across, positions - across


def _windows(lengths: Polyline, widths: Polyline) -> tuple[Polyline, Polyline]:
    """Return the outlines of windshields and of rear windows, (n, 4, 2) each."""
    cabin = np.minimum(lengths, 5.0)
    front = np.stack(
        [
            np.stack([0.5 * lengths - back * cabin, side * widths], axis=-1)
            for back, side in ((0.24, 0.41), (0.24, -0.41), (0.40, -0.34), (0.40, 0.34))
        ],
        axis=1,
    )
    rear = np.stack(
        [
            np.stack([-0.5 * lengths + ahead * cabin, side * widths], axis=-1)
            for ahead, side in ((0.20, 0.33), (0.20, -0.33), (0.10, -0.38), (0.10, 0.38))
        ],
        axis=1,
    )
    return front, rear


def _noses(lengths: Polyline, widths: Polyline) -> Polyline:
    """Return the outlines of the triangles that point ahead on cyclists and pedestrians, (n, 3, 2)."""
    tip, back, half = 0.36 * lengths, 0.36 * lengths - 0.55 * widths, 0.27 * widths
    return np.stack(
        [np.stack([tip, 0 * half], axis=-1), np.stack([back, half], axis=-1), np.stack([back, -half], axis=-1)], axis=1
    )
