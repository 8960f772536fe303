"""Captions, legends and scale bars over a picture, on translucent panels that are made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.camera import Size
from roadworthy.render.lettering import shortened, text_size, write
from roadworthy.render.motion import Entries
from roadworthy.render.raster import Image, Painter, blend_patch
from roadworthy.render.shapes import Sketch
from roadworthy.render.strokes import rounded_boxes
from roadworthy.render.style import Color, Theme
from roadworthy.scenario.schema import Scenario

Patch = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Placed:
    """A patch for `blend_patch`, and the pixel of its upper left corner."""

    patch: Patch
    left: int
    top: int

    def lay_on(self, image: Image) -> None:
        blend_patch(image, self.patch, self.left, self.top)


class Overlay:
    """Writes on pictures of one size; text and margins scale with it."""

    def __init__(self, size: Size, theme: Theme) -> None:
        self.width, self.height = size
        self.theme = theme
        self._patches: dict[object, Patch] = {}
        unit = float(np.clip(min(self.height / 860, self.width / 1280), 0.75, 2.5))
        self.unit, self.margin, self.pad = unit, round(16 * unit), round(11 * unit)
        self.large, self.small, self.tiny, self.leading = (round(size * unit) for size in (19, 14, 12, 3))

    def caption(self, image: Image, scenario: Scenario, step: int) -> None:
        """Write id, tags and time in the upper left corner."""
        theme, pad = self.theme, self.pad
        room = self.width - 2 * (self.margin + pad)
        tags = ",  ".join(tag.replace("_", " ") for tag in scenario.tags)
        lines = [(scenario.id, self.large, theme.ink), (tags, self.small, theme.faint_ink)]
        lines = [line for line in lines if line[0]]
        time_top = pad + sum(text_size(text, size)[1] + self.leading for text, size, _ in lines)
        last = f"t = {(scenario.steps - 1) * scenario.dt:.1f} s"

        def make() -> Patch:
            fitted = [(shortened(text, size, room), size, color) for text, size, color in lines]
            widest = max(text_size(text, size)[0] for text, size, _ in [*fitted, (last, self.small, theme.ink)])

            def fill(panel: Image) -> None:
                y = pad
                for text, size, color in fitted:
                    write(panel, text, pad, y, size, color)
                    y += text_size(text, size)[1] + self.leading

            return self.panel(widest + 2 * pad, time_top + text_size(last, self.small)[1] + pad, fill)

        self._placed(("caption", scenario.id, tags, last), make).lay_on(image)
        time = f"t = {step * scenario.dt:.1f} s"
        write(image, time, self.margin + pad, self.margin + time_top, self.small, theme.ink)

    def legend(self, entries: Entries, lift: int = 0) -> Placed:
        """Return the legend of agent colors, in the lower left corner, raised by `lift` pixels."""
        return self._placed(entries, lambda: self._make_legend(entries), is_bottom=True, lift=lift)

    def scale_bar(self, meters_per_pixel: float, lift: int = 0) -> Placed:
        """Return a scale bar with a round length, in the lower right corner, raised by `lift` pixels."""
        return self._placed(
            meters_per_pixel, lambda: self._make_scale_bar(meters_per_pixel), is_right=True, is_bottom=True, lift=lift
        )

    def _make_legend(self, entries: Entries) -> Patch:
        unit, pad, size = self.unit, self.pad, self.small
        swatch_length, gap = 19 * unit, 9 * unit
        text_height = text_size(entries[0][0], size)[1]
        line_height = text_height + round(5 * unit)
        swatch = rounded_boxes(swatch_length, 10 * unit, 3 * unit)

        def fill(panel: Image) -> None:
            sketch = Sketch()
            for number, (name, color) in enumerate(entries):
                y = pad + number * line_height
                sketch.polygons(swatch + np.array([pad + 0.5 * swatch_length, y + 0.5 * text_height]), color)
                write(panel, name, pad + swatch_length + gap, y, size, self.theme.ink)
            Painter(panel.shape[1], panel.shape[0]).paint(panel, sketch.shapes())

        widest = max(text_size(name, size)[0] for name, _ in entries)
        height = line_height * (len(entries) - 1) + text_height + 2 * pad
        return self.panel(swatch_length + gap + widest + 2 * pad, height, fill)

    def _make_scale_bar(self, meters_per_pixel: float) -> Patch:
        unit, pad, ink = self.unit, self.pad, self.theme.ink
        length_m = round_length(150 * unit * meters_per_pixel)
        length = length_m / meters_per_pixel
        label = f"{length_m:g} m"
        label_width, label_height = text_size(label, self.small)
        width, height = max(length, label_width) + 2 * pad, label_height + 9 * unit + 2 * pad

        def fill(panel: Image) -> None:
            write(panel, label, 0.5 * width, pad - 2 * unit, self.small, ink, "center")
            x0, x1 = 0.5 * (width - length), 0.5 * (width + length)
            base, thick, tick = height - pad, 2.0 * unit, 6.0 * unit
            sketch = Sketch()
            sketch.stroke(np.array([(x0, base), (x1, base)]), thick, ink)
            for x in (x0, x1):
                sketch.stroke(np.array([(x, base - tick), (x, base + 0.5 * thick)]), thick, ink)
            Painter(panel.shape[1], panel.shape[0]).paint(panel, sketch.shapes())

        return self.panel(width, height, fill)

    def chip(self, text: str, color: Color, ink: Color) -> Patch:
        """Return text on a small panel."""
        key = ("chip", text, color, ink)
        if key not in self._patches:
            width, height = text_size(text, self.tiny)
            pad = round(6 * self.unit)

            def fill(panel: Image) -> None:
                write(panel, text, pad, 0.5 * (panel.shape[0] - height), self.tiny, ink)

            self._patches[key] = self.panel(width + 2 * pad, height + 4 * self.unit, fill, color, 1.0)
        return self._patches[key]

    def panel(
        self,
        width: float,
        height: float,
        fill: Callable[[Image], None],
        color: Color | None = None,
        alpha: float | None = None,
    ) -> Patch:
        """Return a panel with the content that `fill` draws, as a patch for `blend_patch`, by default in theme colors.

        It is drawn on black and on white: black gives color times opacity, the difference gives the transparency.
        """
        columns, rows = int(np.ceil(width)), int(np.ceil(height))
        box = rounded_boxes(width, height, 7.0 * self.unit) + 0.5 * np.array([width, height])
        sketch = Sketch()
        theme = self.theme
        sketch.polygons(box, color or theme.panel, theme.panel_alpha if alpha is None else alpha)
        drawn = []
        for ground in (0, 255):
            panel = np.full((rows, columns, 3), ground, np.uint8)
            Painter(columns, rows).paint(panel, sketch.shapes())
            fill(panel)
            drawn.append(panel)
        through = np.clip(drawn[1].astype(np.int16) - drawn[0], 0, 255).max(axis=2, keepdims=True)
        return np.concatenate([drawn[0], through.astype(np.uint8)], axis=2)

    def _placed(
        self, key: object, make: Callable[[], Patch], is_right: bool = False, is_bottom: bool = False, lift: int = 0
    ) -> Placed:
        patch = self._patches.get(key)
        if patch is None:
            patch = self._patches[key] = make()
        height, width = patch.shape[:2]
        left = self.width - self.margin - width if is_right else self.margin
        top = self.height - self.margin - height - lift if is_bottom else self.margin
        return Placed(patch, left, top)


def round_length(at_most_m: float) -> float:
    """Return the largest of ..., 0.5, 1, 2, 5, 10, 20, ... meters that does not exceed a length."""
    power = 10.0 ** np.floor(np.log10(at_most_m))
    return float(max(step * power for step in (1.0, 2.0, 5.0) if step * power <= at_most_m * (1 + 1e-9)))
