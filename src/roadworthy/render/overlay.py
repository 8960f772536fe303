"""What is written over a picture: caption, legend and scale bar, on translucent panels that are made once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.camera import Size
from roadworthy.render.lettering import shortened, text_size, write
from roadworthy.render.raster import Image, Painter, blend_patch
from roadworthy.render.shapes import Sketch
from roadworthy.render.strokes import rounded_boxes
from roadworthy.render.style import Color, Theme
from roadworthy.scenario.schema import AgentType, Scenario

Patch = NDArray[np.uint8]
Entries = tuple[tuple[str, Color], ...]


class Overlay:
    """Writes over pictures of one size; letters and margins grow with it."""

    def __init__(self, size: Size, theme: Theme) -> None:
        self._width, self._height = size
        self._theme = theme
        self._patches: dict[object, Patch] = {}
        unit = float(np.clip(min(self._height / 960, self._width / 1280), 0.75, 2.5))
        self._unit, self._margin, self._pad = unit, round(16 * unit), round(11 * unit)
        self._large, self._small, self._leading = round(19 * unit), round(14 * unit), round(3 * unit)

    def caption(self, image: Image, scenario: Scenario, step: int) -> None:
        """Id, tags and time, in the upper left corner."""
        theme, pad = self._theme, self._pad
        room = self._width - 2 * (self._margin + pad)
        tags = ",  ".join(tag.replace("_", " ") for tag in scenario.tags)
        lines = [(scenario.id, self._large, theme.ink), (tags, self._small, theme.faint_ink)]
        lines = [line for line in lines if line[0]]
        time_top = pad + sum(text_size(text, size)[1] + self._leading for text, size, _ in lines)
        last = f"t = {(scenario.steps - 1) * scenario.dt:.1f} s"

        def make() -> Patch:
            fitted = [(shortened(text, size, room), size, color) for text, size, color in lines]
            widest = max(text_size(text, size)[0] for text, size, _ in [*fitted, (last, self._small, theme.ink)])

            def fill(panel: Image) -> None:
                y = pad
                for text, size, color in fitted:
                    write(panel, text, pad, y, size, color)
                    y += text_size(text, size)[1] + self._leading

            return self._panel(widest + 2 * pad, time_top + text_size(last, self._small)[1] + pad, fill)

        self._lay(image, ("caption", scenario.id, tags, last), make, is_right=False, is_bottom=False)
        time = f"t = {step * scenario.dt:.1f} s"
        write(image, time, self._margin + pad, self._margin + time_top, self._small, theme.ink)

    def legend(self, image: Image, entries: Entries) -> None:
        """What the colours of agents mean, in the lower left corner."""
        if entries:
            self._lay(image, entries, lambda: self._make_legend(entries), is_right=False, is_bottom=True)

    def scale_bar(self, image: Image, meters_per_pixel: float) -> None:
        """A bar of a round number of metres, in the lower right corner."""
        self._lay(
            image, meters_per_pixel, lambda: self._make_scale_bar(meters_per_pixel), is_right=True, is_bottom=True
        )

    def _make_legend(self, entries: Entries) -> Patch:
        unit, pad, size = self._unit, self._pad, self._small
        swatch_length, gap = 19 * unit, 9 * unit
        text_height = text_size(entries[0][0], size)[1]
        line_height = text_height + round(5 * unit)
        swatch = rounded_boxes(swatch_length, 10 * unit, 3 * unit)

        def fill(panel: Image) -> None:
            sketch = Sketch()
            for number, (name, color) in enumerate(entries):
                y = pad + number * line_height
                sketch.polygons(swatch + np.array([pad + 0.5 * swatch_length, y + 0.5 * text_height]), color)
                write(panel, name, pad + swatch_length + gap, y, size, self._theme.ink)
            Painter(panel.shape[1], panel.shape[0]).paint(panel, sketch.shapes())

        widest = max(text_size(name, size)[0] for name, _ in entries)
        height = line_height * (len(entries) - 1) + text_height + 2 * pad
        return self._panel(swatch_length + gap + widest + 2 * pad, height, fill)

    def _make_scale_bar(self, meters_per_pixel: float) -> Patch:
        unit, pad, ink = self._unit, self._pad, self._theme.ink
        length_m = round_length(150 * unit * meters_per_pixel)
        length = length_m / meters_per_pixel
        label = f"{length_m:g} m"
        label_width, label_height = text_size(label, self._small)
        width, height = max(length, label_width) + 2 * pad, label_height + 9 * unit + 2 * pad

        def fill(panel: Image) -> None:
            write(panel, label, 0.5 * width, pad - 2 * unit, self._small, ink, "center")
            x0, x1 = 0.5 * (width - length), 0.5 * (width + length)
            base, thick, tick = height - pad, 2.0 * unit, 6.0 * unit
            sketch = Sketch()
            sketch.stroke(np.array([(x0, base), (x1, base)]), thick, ink)
            for x in (x0, x1):
                sketch.stroke(np.array([(x, base - tick), (x, base + 0.5 * thick)]), thick, ink)
            Painter(panel.shape[1], panel.shape[0]).paint(panel, sketch.shapes())

        return self._panel(width, height, fill)

    def _panel(self, width: float, height: float, fill: Callable[[Image], None]) -> Patch:
        """A panel with what `fill` draws on it, as a patch for `blend_patch`.

        It is drawn on black and on white: black gives colour times opacity, the difference what shines through.
        """
        columns, rows = int(np.ceil(width)), int(np.ceil(height))
        box = rounded_boxes(width, height, 7.0 * self._unit) + 0.5 * np.array([width, height])
        sketch = Sketch()
        sketch.polygons(box, self._theme.panel, self._theme.panel_alpha)
        drawn = []
        for ground in (0, 255):
            panel = np.full((rows, columns, 3), ground, np.uint8)
            Painter(columns, rows).paint(panel, sketch.shapes())
            fill(panel)
            drawn.append(panel)
        through = np.clip(drawn[1].astype(np.int16) - drawn[0], 0, 255).max(axis=2, keepdims=True)
        return np.concatenate([drawn[0], through.astype(np.uint8)], axis=2)

    def _lay(self, image: Image, key: object, make: Callable[[], Patch], is_right: bool, is_bottom: bool) -> None:
        patch = self._patches.get(key)
        if patch is None:
            patch = self._patches[key] = make()
        height, width = patch.shape[:2]
        left = self._width - self._margin - width if is_right else self._margin
        top = self._height - self._margin - height if is_bottom else self._margin
        blend_patch(image, patch, left, top)


def round_length(at_most_m: float) -> float:
    """The largest of 1, 2, 5, 10, 20, 50... metres (or fractions of one) that is not above a length."""
    power = 10.0 ** np.floor(np.log10(at_most_m))
    return float(max(step * power for step in (1.0, 2.0, 5.0) if step * power <= at_most_m * (1 + 1e-9)))


def legend_entries(scenario: Scenario, is_parked: NDArray[np.bool_], theme: Theme) -> Entries:
    """Names and colours of the kinds of agents that a scenario has."""
    types = scenario.agent_types
    others = np.ones(scenario.agent_count, bool)
    if scenario.sdc >= 0:
        others[scenario.sdc] = False
    vehicles = others & (types == AgentType.VEHICLE)
    kinds = [
        ("self-driving car", theme.sdc, ~others),
        ("vehicle", theme.vehicle, vehicles & ~is_parked),
        ("vehicle that never moves", theme.parked, vehicles & is_parked),
        ("cyclist", theme.cyclist, others & (types == AgentType.CYCLIST)),
        ("pedestrian", theme.pedestrian, others & (types == AgentType.PEDESTRIAN)),
        ("other", theme.other, others & (types == AgentType.OTHER)),
    ]
    return tuple((name, color) for name, color, present in kinds if present.any())
