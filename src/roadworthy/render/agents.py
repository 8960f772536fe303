"""Agents from above: boxes of their true size with a heading mark, the way they came and the way they will go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.render.motion import LEAP_MPS, Motion
from roadworthy.render.shapes import Sketch
from roadworthy.render.strokes import Polyline, placed, rounded_boxes
from roadworthy.render.style import Theme

SMALLEST_PX = 6.0  # agents are drawn at least this large, so that a pedestrian is seen on a map of a town
FUTURE_LINE_PX = 1.4
FUTURE_ALPHA = 0.55
TRAIL_ALPHA = 0.6
LORRY_LENGTH_M = 7.0  # vehicles from this length on have no rear window
VEIL_ALPHA = 0.55


class AgentLayer:
    """Moving agents, ready to be drawn at any step."""

    def __init__(self, motion: Motion, theme: Theme) -> None:
        self._motion = motion
        self._theme = theme
        self._coats: list[_Coat] | None = None
        self._coats_scale = 0.0
        steps = np.diff(motion.positions, axis=1)
        # (A, T - 1) whether the way from one step to the next was driven: the agent was there, moved and did not leap.
        self._is_driven = (
            (np.abs(steps).max(axis=2, initial=0.0) > 0.01)
            & (np.hypot(steps[..., 0], steps[..., 1]) < LEAP_MPS * motion.dt)
            & motion.valid[:, :-1]
            & motion.valid[:, 1:]
        )

    def draw_trails(self, sketch: Sketch, step: int, steps_back: int, meters_per_pixel: float) -> None:
        """Where moving agents were: a ribbon that gets narrower and fainter with age."""
        motion = self._motion
        first = max(0, step - steps_back)
        seen = np.flatnonzero(motion.valid[:, step] & ~motion.is_parked)
        if first == step or len(seen) == 0:
            return
        positions, headings = motion.positions[seen, first : step + 1], motion.headings[seen, first : step + 1]
        youth = 1.0 - np.arange(step - first, -1, -1) / steps_back  # 0 where the trail begins, 1 at the agent
        half = np.maximum(0.5 * motion.sizes[seen, 1:2] * (0.25 + 0.45 * youth), 0.7 * meters_per_pixel)
        left, right = _sides(positions, headings, half)
        quads = np.stack([left[:, :-1], left[:, 1:], right[:, 1:], right[:, :-1]], axis=2)
        drawn = self._is_driven[seen, first:step]
        colors = np.broadcast_to(motion.colors[seen][:, None], (*drawn.shape, 3))
        alphas = np.broadcast_to(TRAIL_ALPHA * (0.5 * (youth[:-1] + youth[1:])) ** 1.3, drawn.shape)
        sketch.polygons(quads[drawn], colors[drawn], alphas[drawn])

    def draw_futures(self, sketch: Sketch, step: int, meters_per_pixel: float) -> None:
        """Where moving agents will be while they are there without a break: one thin line each."""
        motion = self._motion
        seen = np.flatnonzero(motion.valid[:, step] & ~motion.is_parked)
        if step + 1 >= motion.steps or len(seen) == 0:
            return
        ahead = np.logical_and.accumulate(motion.valid[seen, step:], axis=1).sum(axis=1) - 1
        # Beyond its last step an agent's line repeats the last point, which adds no area.
        steps = step + np.minimum(np.arange(motion.steps - step)[None, :], ahead[:, None])
        positions, headings = motion.positions[seen[:, None], steps], motion.headings[seen[:, None], steps]
        is_marked = (seen == motion.marked)[:, None]
        half = 0.5 * meters_per_pixel * FUTURE_LINE_PX * np.where(is_marked, 1.6, 1.0)
        left, right = _sides(positions, headings, np.broadcast_to(half, steps.shape))
        alphas = np.where(is_marked[:, 0], 0.9, FUTURE_ALPHA)
        sketch.polygons(np.concatenate([left, right[:, ::-1]], axis=1), motion.colors[seen], alphas)

    def draw_bodies(self, sketch: Sketch, step: int, meters_per_pixel: float) -> None:
        """The agents that are there at a step."""
        if self._coats is None or self._coats_scale != meters_per_pixel:
            self._coats, self._coats_scale = self._make_coats(meters_per_pixel), meters_per_pixel
        motion = self._motion
        positions, headings, valid = motion.positions[:, step], motion.headings[:, step], motion.valid[:, step]
        for coat in self._coats:
            shown = (motion.is_faded[:, step] if coat.is_veil else valid)[coat.agents]
            agents = coat.agents[shown]
            outlines = placed(coat.outlines[shown], positions[agents], headings[agents]) + coat.shift
            sketch.polygons(outlines, coat.colors[shown], coat.alphas[shown])

    def _make_coats(self, meters_per_pixel: float) -> list[_Coat]:
        motion, theme = self._motion, self._theme
        smallest = SMALLEST_PX * meters_per_pixel
        lengths, widths = np.maximum(motion.sizes, smallest).T
        is_vehicle = motion.is_vehicle
        radii = np.where(is_vehicle, 0.24, 0.5) * np.minimum(lengths, widths)
        rim = max(0.09, 0.7 * meters_per_pixel)
        every = np.ones(motion.agent_count, bool)
        is_marked = np.arange(motion.agent_count) == motion.marked
        muted = np.where(motion.is_parked, 0.6, 1.0)

        def coat(
            outlines: Polyline,
            agents: NDArray[np.bool_],
            colors: ArrayLike,
            alphas: ArrayLike,
            shift: float = 0.0,
            is_veil: bool = False,
        ) -> _Coat:
            chosen = np.flatnonzero(agents)
            return _Coat(
                chosen,
                outlines[chosen],
                np.broadcast_to(np.asarray(colors, np.float32), (len(agents), 3))[chosen],
                np.broadcast_to(np.asarray(alphas, np.float32), len(agents))[chosen],
                shift * np.array([1.0, -1.5]),
                is_veil,
            )

        def grown(by: float) -> Polyline:
            return rounded_boxes(lengths + 2 * by, widths + 2 * by, radii + by)

        windscreens, rear_windows = _windows(lengths, widths)
        return [
            coat(grown(2 * rim), every, (0, 0, 0), theme.shadow_alpha, shift=rim),
            coat(grown(max(0.75, 4.0 * meters_per_pixel)), is_marked, motion.colors, 0.28),
            coat(grown(rim), every, theme.casing, muted),
            coat(grown(0.0), every, motion.colors, 1.0),
            coat(windscreens, is_vehicle, theme.glass, theme.glass_alpha * muted),
            coat(rear_windows, is_vehicle & (lengths < LORRY_LENGTH_M), theme.glass, theme.glass_alpha * muted),
            coat(_noses(lengths, widths), ~is_vehicle, theme.casing, 0.95),
            coat(grown(0.0), every, theme.road, VEIL_ALPHA, is_veil=True),
        ]


@dataclass(frozen=True)
class _Coat:
    """One layer of the agents' bodies: n outlines of k points, each in the frame of its agent."""

    agents: NDArray[np.int64]  # (n,)
    outlines: Polyline  # (n, k, 2)
    colors: NDArray[np.float32]  # (n, 3)
    alphas: NDArray[np.float32]  # (n,)
    shift: Polyline  # (2,) in the map's frame
    is_veil: bool  # laid over those alone that have nothing left to do


def _sides(positions: Polyline, headings: Polyline, half: Polyline) -> tuple[Polyline, Polyline]:
    """Points left and right of a path, square to the heading, which unlike the path's direction exists at a stop."""
    across = half[..., None] * np.stack([-np.sin(headings), np.cos(headings)], axis=-1)
    return positions + across, positions - across


def _windows(lengths: Polyline, widths: Polyline) -> tuple[Polyline, Polyline]:
    """Outlines (n, 4, 2) of windscreens and of rear windows."""
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
    """Outlines (n, 3, 2) of the triangles that point ahead on cyclists and pedestrians."""
    tip, back, half = 0.36 * lengths, 0.36 * lengths - 0.55 * widths, 0.27 * widths
    return np.stack(
        [np.stack([tip, 0 * half], axis=-1), np.stack([back, half], axis=-1), np.stack([back, -half], axis=-1)], axis=1
    )
