"""Draw what a trace holds besides motion: goals, infractions that flash, and paths of earlier trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.render.counts import egos, infractions_of
from roadworthy.render.motion import LEAP_MPS
from roadworthy.render.shapes import Sketch
from roadworthy.render.strokes import disc, stroke_outline, without_repeats
from roadworthy.render.style import Color, Theme
from roadworthy.sim.state import EVENT_GOAL

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace

FLASH_S = 1.2  # how long an event is shown
PULSES = 3
CIRCLE = disc(1.0, 28)
PAST_PATH_PIECE = 12  # points of a path per shape; a canvas repaints the bounding box of each shape


@dataclass(frozen=True)
class Label:
    """Text beside an agent."""

    text: str
    position: tuple[float, float]  # on the map
    color: Color


class Effects:
    """Draws the events of a trace, frame by frame."""

    def __init__(self, trace: Trace, theme: Theme, followed: int, goal_radius_m: float) -> None:
        self._trace, self._theme, self._followed, self._radius = trace, theme, followed, goal_radius_m
        self._driven = egos(trace)
        self._events, self._infractions = trace.events, infractions_of(trace)
        self._flash_frames = max(1, round(FLASH_S / trace.dt))
        self._next_goal = np.concatenate(
            [np.cumsum((self._events[trace.trial(k)] & EVENT_GOAL) != 0, axis=0) for k in range(trace.trial_count)]
        )
        self._knows_goals = _knows_goals(trace)
        self._past_paths: dict[tuple[int, float], list[NDArray[np.float64]]] = {}

    def draw_past_paths(self, sketch: Sketch, trial: int, meters_per_pixel: float) -> None:
        """Draw the paths of the followed agent in earlier trials."""
        for earlier in range(trial):
            key = (earlier, meters_per_pixel)
            if key not in self._past_paths:
                frames = self._trace.trial(earlier)
                way = np.stack([self._trace.x[frames, self._followed], self._trace.y[frames, self._followed]], axis=1)
                line = without_repeats(way[self._trace.present[frames, self._followed]])
                self._past_paths[key] = [
                    ring
                    for start in range(0, len(line) - 1, PAST_PATH_PIECE)
                    for ring in stroke_outline(line[start : start + PAST_PATH_PIECE + 1], 2.2 * meters_per_pixel)
                ]
            for ring in self._past_paths[key]:
                sketch.polygon([ring], self._theme.sdc, 0.45)

    def draw_goals(self, sketch: Sketch, frame: int, meters_per_pixel: float) -> None:
        """Draw the next goal of every ego, and all goals of the followed one."""
        trace, theme, followed = self._trace, self._theme, self._followed
        radius = max(self._radius, 5.0 * meters_per_pixel)
        reached, knows = self._next_goal[frame], self._knows_goals[frame]
        others = self._driven[self._driven != followed]
        others = others[trace.active[frame, others] & knows[others] & (reached[others] < trace.goal_counts[others])]
        _rings(sketch, trace.goals[others, reached[others]], 0.6 * radius, 1.2 * meters_per_pixel, theme.sdc, 0.55)
        if followed not in self._driven or not knows[followed]:
            return
        goals = trace.goals[followed, : trace.goal_counts[followed]]
        numbers = np.arange(len(goals))
        is_reached, is_next = numbers < reached[followed], numbers == reached[followed]
        colors = np.where(is_reached[:, None], theme.green, theme.sdc)
        _rings(sketch, goals, radius, 2.6 * meters_per_pixel, colors, np.where(is_next | is_reached, 0.95, 0.6))
        inner = np.where(is_next | is_reached, 0.5, 0.22) * radius
        _discs(sketch, goals, inner, colors, np.where(is_next, 0.85, 0.5))

    def draw_flashes(self, sketch: Sketch, frame: int, first: int, meters_per_pixel: float) -> None:
        """Draw rings around agents with recent events; `first` is the first frame of the trial."""
        width = max(0.25, 3.0 * meters_per_pixel)
        for _, age, place, color, size in self._recent(frame, first):
            wave = (age * PULSES) % 1.0
            radius = max(0.6 * size, 9.0 * meters_per_pixel)
            _discs(sketch, place[None], radius, color, 0.22 * (1.0 - age))
            alpha = 0.95 * (1.0 - age) * (1.0 - 0.6 * wave)
            _rings(sketch, place[None], radius * (1.0 + 0.7 * wave), width, color, alpha)

    def labels(self, frame: int, first: int) -> Iterator[Label]:
        """Yield labels for recent infractions."""
        for text, _, place, color, _ in self._recent(frame, first):
            if text:
                yield Label(text, (float(place[0]), float(place[1])), color)

    def _recent(self, frame: int, first: int) -> Iterator[tuple[str, float, NDArray[np.float64], Color, float]]:
        trace, theme = self._trace, self._theme
        begin = max(first, frame - self._flash_frames + 1)
        bits = EVENT_GOAL
        for kind in self._infractions:
            bits |= kind.bit
        window = self._events[begin : frame + 1] & bits
        for agent in np.flatnonzero(window.any(axis=0)).tolist():
            at = int(np.flatnonzero(window[:, agent])[-1])
            found = [kind for kind in self._infractions if kind.happened(window[at, agent])]
            shown = frame if trace.present[frame, agent] else begin + at
            place = np.array([trace.x[shown, agent], trace.y[shown, agent]], np.float64)
            age = (frame - begin - at) / self._flash_frames
            color = theme.red if any(kind.is_fault for kind in found) else theme.amber if found else theme.green
            yield ", ".join(kind.name for kind in found), age, place, color, float(trace.length[agent])


def _knows_goals(trace: Trace) -> NDArray[np.bool_]:
    """Return whether the trace's goals are valid for the agent, (F, A): an agent that respawns has other goals."""
    known = np.ones(trace.x.shape, np.bool_)
    for trial in range(trace.trial_count):
        frames = trace.trial(trial)
        there = trace.present[frames]
        leaps = np.hypot(np.diff(trace.x[frames], axis=0), np.diff(trace.y[frames], axis=0)) > LEAP_MPS * trace.dt
        returns = (~there[:-1] | leaps) & there[1:]
        known[frames][1:] = ~np.logical_or.accumulate(returns, axis=0)
    return known


def _rings(
    sketch: Sketch, places: ArrayLike, radii: ArrayLike, width: float, colors: ArrayLike, alphas: ArrayLike
) -> None:
    """Draw circles around n places, each as one outline: along the outer side and back along the inner side."""
    outer, inner = np.asarray(radii) + 0.5 * width, np.maximum(np.asarray(radii) - 0.5 * width, 0.0)
    closed = np.concatenate([CIRCLE, CIRCLE[:1]])
    both = [closed * outer[..., None, None], closed[::-1] * inner[..., None, None]]
    sketch.polygons(np.asarray(places, np.float64)[:, None] + np.concatenate(both, axis=-2), colors, alphas)


def _discs(sketch: Sketch, places: ArrayLike, radii: ArrayLike, colors: ArrayLike, alphas: ArrayLike) -> None:
    sketch.polygons(
        np.asarray(places, np.float64)[:, None] + CIRCLE * np.asarray(radii)[..., None, None], colors, alphas
    )
