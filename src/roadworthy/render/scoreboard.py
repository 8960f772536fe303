"""Overlays of videos: a card with the episode, the trial, the step and the figures so far, and a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.canvas import Canvas
from roadworthy.render.counts import COUNTED_BITS, count_events, infractions_of
from roadworthy.render.effects import FLASH_S
from roadworthy.render.lettering import shortened, text_size, write
from roadworthy.render.overlay import Overlay, Placed
from roadworthy.render.raster import Image
from roadworthy.render.shapes import Shapes, Sketch
from roadworthy.render.strokes import rounded_boxes
from roadworthy.render.style import BLACK, WHITE, Color, Theme
from roadworthy.sim.state import EVENT_GOAL

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace

LINE_PX = 7  # the height of the timeline, in units of the overlay

Scores = tuple[float | None, ...]  # by trial; None: no score


@dataclass(frozen=True)
class Heading:
    """The text of a card that is the same in the whole video."""

    title: str
    subtitle: str
    trial_scores: Scores = ()  # of the agents on the card


class Scoreboard:
    """The card and the timeline of one view, for the followed agent or for all egos."""

    def __init__(
        self, overlay: Overlay, trace: Trace, agents: NDArray[np.int64], heading: Heading, frames: int, what: str
    ) -> None:
        self._overlay, self._trace, self._agents, self._what = overlay, trace, agents, what
        self._counts = count_events(trace, agents)
        self._trials = np.searchsorted(trace.trial_starts, np.arange(trace.frame_count), side="right") - 1
        self._flash_frames = max(1, round(FLASH_S / trace.dt))
        self._make_card(heading)
        self._make_line(heading, frames)

    @property
    def lift(self) -> int:
        """The height of the timeline above the lower margin, in pixels."""
        return round((LINE_PX + 12) * self._overlay.unit)

    def draw(self, canvas: Canvas, frame: int) -> None:
        """Write the values of a frame."""
        overlay, theme = self._overlay, self._overlay.theme
        canvas.lay(self._card)
        left, y = overlay.margin + overlay.pad, float(self._lines_top)
        for text in self._texts(frame):
            canvas.write(text, left, y, overlay.small, theme.ink)
            y += self._line_height
        y += 3 * overlay.unit
        x = left
        for chip in self._chips(frame):
            canvas.lay(Placed(chip, round(x), round(y)))
            x += chip.shape[1] + 6 * overlay.unit
        canvas.paint(self._line)
        canvas.paint(self._played(frame))
        canvas.paint(self._marks)

    def _texts(self, frame: int) -> tuple[str, ...]:
        trace, so_far = self._trace, self._counts
        trial = int(self._trials[frame])
        step = frame - int(trace.trial_starts[trial])
        when = f"trial {trial + 1} of {trace.trial_count}    " if trace.trial_count > 1 else ""
        active = trace.active[frame, self._agents]
        if len(self._agents) == 1:
            agent = int(self._agents[0])
            speed = float(trace.speed[frame, agent])
            pace = f"{speed:.1f} m/s   {3.6 * speed:.0f} km/h" if active[0] else "not driving"
        else:
            mean = float(trace.speed[frame, self._agents][active].mean()) if active.any() else 0.0
            pace = f"{np.count_nonzero(active)} driving, mean {mean:.1f} m/s"
        goals = int(so_far.goals[frame])
        of_all = f" of {so_far.goal_count}" if goals <= so_far.goal_count else ""  # with new_goal there may be more
        return (
            f"{when}step {step}    {step * trace.dt:.1f} s",
            f"{self._what}    {pace}",
            f"goals {goals}{of_all}    {so_far.distance_m[frame]:.0f} m driven",
        )

    def _chips(self, frame: int) -> list[NDArray[np.uint8]]:
        """Return a chip for each kind of infraction: pale for none, else red, blinking while it is recent.

        Contacts that are not the agent's fault are amber.
        """
        theme, chips = self._overlay.theme, []
        counts, since = self._counts.infractions[frame].tolist(), self._counts.since[frame].tolist()
        for kind, count, ago in zip(self._counts.kinds, counts, since, strict=True):
            is_bright = ago < self._flash_frames and (ago * 6 // self._flash_frames) % 2 == 0
            if count == 0:
                look = (theme.land, theme.faint_ink)
            elif kind.is_fault:
                look = (theme.amber, BLACK) if is_bright else (theme.red, WHITE)
            else:
                look = (theme.land, theme.ink) if is_bright else (theme.amber, BLACK)
            chips.append(self._overlay.chip(f"{kind.name} {count}", *look))
        return chips

    def _make_card(self, heading: Heading) -> None:
        overlay, theme, pad = self._overlay, self._overlay.theme, self._overlay.pad
        room = overlay.width - 2 * (overlay.margin + pad)
        titles = [(heading.title, overlay.large, theme.ink), (heading.subtitle, overlay.small, theme.faint_ink)]
        fitted = [(shortened(text, size, room), size, color) for text, size, color in titles if text]
        chips = self._chips(0)
        chips_width = sum(chip.shape[1] for chip in chips) + 6 * overlay.unit * (len(chips) - 1)
        widest = max([chips_width, *(text_size(text, size)[0] for text, size, _ in fitted)])
        texts = self._texts(0)
        widest = max([widest, *(text_size(text + "000", overlay.small)[0] for text in texts)])
        self._line_height = text_size("Ag", overlay.small)[1] + overlay.leading
        top = pad + sum(text_size(text, size)[1] + overlay.leading for text, size, _ in fitted) + 4 * overlay.unit
        self._lines_top = overlay.margin + top
        height = top + len(texts) * self._line_height + 3 * overlay.unit + chips[0].shape[0] + pad

        def fill(panel: Image) -> None:
            y = pad
            for text, size, color in fitted:
                write(panel, text, pad, y, size, color)
                y += text_size(text, size)[1] + overlay.leading

        self._card = Placed(overlay.panel(widest + 2 * pad, height, fill), overlay.margin, overlay.margin)

    def _make_line(self, heading: Heading, frames: int) -> None:
        """Prepare the timeline: a section for each trial, with marks for goals and infractions."""
        overlay, theme, trace = self._overlay, self._overlay.theme, self._trace
        left, right = overlay.margin, overlay.width - overlay.margin
        self._line_y = overlay.height - overlay.margin - LINE_PX * overlay.unit
        gap, count = 4 * overlay.unit, int(self._trials[frames - 1]) + 1
        per_frame = (right - left - gap * (count - 1)) / frames
        self._columns = left + per_frame * np.arange(frames) + gap * self._trials[:frames]  # where a frame starts
        sketch = Sketch()
        self._stretches: list[tuple[float, float, Color]] = []
        for trial in range(count):
            begin, end = int(trace.trial_starts[trial]), min(int(trace.trial_starts[trial + 1]), frames)
            x0 = float(self._columns[begin])
            x1 = x0 + per_frame * (end - begin)
            score = heading.trial_scores[trial] if trial < len(heading.trial_scores) else None
            is_whole = end == trace.trial_starts[trial + 1]
            self._stretches.append((x0, x1, _verdict(score if is_whole else None, theme)))
            self._add_box(sketch, x0, x1, theme.panel, 0.9, LINE_PX + 4.0)
            self._add_box(sketch, x0, x1, theme.faint_ink, 0.35, LINE_PX)
        self._line = sketch.shapes()
        self._per_frame = per_frame
        self._marks = self._make_marks(frames)

    def _make_marks(self, frames: int) -> Shapes:
        overlay, theme, sketch = self._overlay, self._overlay.theme, Sketch()
        events, half = self._trace.events[:frames, self._agents], 1.5 * overlay.unit
        marked = [((events & EVENT_GOAL) != 0, theme.green)]
        kinds = [kind for kind in infractions_of(self._trace) if kind.bit & COUNTED_BITS]
        marked += [(kind.happened(events), theme.amber) for kind in kinds if not kind.is_fault]
        marked += [(kind.happened(events), theme.red) for kind in kinds if kind.is_fault]
        for happened, color in marked:
            for frame in np.flatnonzero(happened.any(axis=1)).tolist():
                x = float(self._columns[frame]) + 0.5 * self._per_frame
                self._add_box(sketch, x - half, x + half, color, 1.0, LINE_PX + 8.0)
        return sketch.shapes()

    def _played(self, frame: int) -> Shapes:
        """Return the elapsed part of the timeline; completed trials have the color of their result."""
        theme, sketch = self._overlay.theme, Sketch()
        trial = int(self._trials[frame])
        for number, (x0, x1, verdict) in enumerate(self._stretches[: trial + 1]):
            is_over = number < trial or frame + 1 == self._trace.trial_starts[trial + 1]
            end = x1 if number < trial else float(self._columns[frame]) + self._per_frame
            self._add_box(sketch, x0, end, verdict if is_over else theme.ink, 0.9, LINE_PX)
        return sketch.shapes()

    def _add_box(self, sketch: Sketch, x0: float, x1: float, color: Color, alpha: float, height_units: float) -> None:
        unit = self._overlay.unit
        width, height = max(x1 - x0, 1.0), height_units * unit
        middle = np.array([0.5 * (x0 + x1), self._line_y + 0.5 * LINE_PX * unit])
        sketch.polygons(rounded_boxes(width, height, 0.3 * min(height, width)) + middle, color, alpha)


def _verdict(score: float | None, theme: Theme) -> Color:
    """Return green for a success, red for a failure, and amber if some agents failed."""
    if score is None:
        return theme.ink
    return theme.green if score >= 1.0 else theme.red if score <= 0.0 else theme.amber
