"""The view `obs`: the observation of an agent's policy, and nothing else, in the agent's own frame (ahead is up).

Every shape is one entry of the observation, with the position and size in its numbers. Entries outside of the picture
are marked at its border. Anything that the policy does not observe, such as the rest of the map, is not drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.camera import Camera, Size
from roadworthy.render.canvas import Canvas
from roadworthy.render.lettering import text_size, write
from roadworthy.render.map_layer import Background, StillBackground
from roadworthy.render.overlay import Overlay, Placed
from roadworthy.render.raster import Image, Painter
from roadworthy.render.scoreboard import Heading, Scoreboard
from roadworthy.render.shapes import FillRule, Sketch
from roadworthy.render.strokes import disc, placed, rounded_boxes
from roadworthy.render.style import DARK, Color, Theme
from roadworthy.sim.layout import COUNTED, Block, ObservationLayout

if TYPE_CHECKING:
    from roadworthy.render.resimulate import ObservedFrame
    from roadworthy.render.views import EpisodeScene

HEIGHT_M = 100.0  # the height of the picture
AHEAD_M = 14.0  # the distance from the agent to the middle of the picture
RINGS_M = (20.0, 40.0, 60.0, 80.0, 100.0)


class ObsView:
    """The observations of one agent."""

    def __init__(
        self, scene: EpisodeScene, layout: ObservationLayout, size: Size, frames: int, theme: Theme = DARK
    ) -> None:
        self._scene, self._layout, self._theme = scene, layout, theme
        self._camera = Camera((AHEAD_M, 0.0), HEIGHT_M / size[1], size, 0.5 * np.pi)
        self._overlay = overlay = Overlay(size, theme)
        self.ground: Background = StillBackground(self._range_rings())
        heading = Heading(
            scene.trace.episode_id, f"what the policy of agent {scene.followed} is given", scene.own_scores
        )
        agents = np.array([scene.followed])
        self._board = Scoreboard(overlay, scene.trace, agents, heading, frames, f"agent {scene.followed}")
        self._table = self._make_table()

    def draw(self, canvas: Canvas, frame: int, seen: ObservedFrame | None) -> Camera:
        camera = self._camera
        transform, scale = camera.transform, camera.meters_per_pixel
        row = None if seen is None or not self._has_seen(seen) else seen.observations[self._scene.followed]
        if row is None:
            text = "no observation: the agent is not driving"
            x, y = (0.5 * side for side in camera.size)
            canvas.write(text, x, y, self._overlay.large, self._theme.faint_ink, "center")
        else:
            sketch, border = Sketch(), []
            self._draw_pieces(sketch, "lanes", row, self._theme.white_paint, 0.30, scale)
            self._draw_pieces(sketch, "edges", row, self._theme.curb, 1.0, scale)
            border += self._draw_goals(sketch, row, scale)
            border += self._draw_lights(sketch, row, scale)
            border += self._draw_partners(sketch, row, scale)
            self._draw_self(sketch, row)
            canvas.paint(sketch.shapes(), transform)
            self._mark_border(canvas, border)
            self._write_table(canvas, row)
        self._board.draw(canvas, frame)
        canvas.lay(self._overlay.scale_bar(scale, self._board.lift))
        return camera

    def _range_rings(self) -> Image:
        """Draw circles around the agent at fixed distances."""
        camera, theme, sketch = self._camera, self._theme, Sketch()
        image = np.empty((camera.size[1], camera.size[0], 3), np.uint8)
        image[:] = theme.land
        for radius in RINGS_M:
            rings = [disc(radius + side * 0.5 * camera.meters_per_pixel, 180) for side in (1, -1)]
            sketch.polygon(rings, theme.faint_ink, 0.45, FillRule.EVEN_ODD)
        Painter(*camera.size).paint(image, sketch.shapes(), camera.transform)
        for radius in RINGS_M:
            x, y = camera.to_pixels((radius, 0.0)).tolist()
            write(image, f"{radius:g} m", x + 5, y + 2, self._overlay.tiny, theme.faint_ink)
        return image

    def _has_seen(self, seen: ObservedFrame) -> bool:
        return self._scene.followed < len(seen.has_seen) and bool(seen.has_seen[self._scene.followed])

    def _entries(self, name: str, row: NDArray[np.float32]) -> dict[str, NDArray[np.float64]]:
        """Return the filled entries of a block in their units, by feature, without those hidden by dropout."""
        block = self._layout[name]
        values = block.of(row).astype(np.float64) * np.array([f.scale for f in block.features])[:, None]
        values = values[:, : self._count(name, row)]
        values = values[:, (values != 0.0).any(axis=0)]
        return {feature.name: values[k] for k, feature in enumerate(block.features)}

    def _count(self, name: str, row: NDArray[np.float32]) -> int:
        counts = self._layout["counts"]
        return round(float(row[counts.column(name)]) * counts.features[COUNTED.index(name)].scale)

    def _draw_pieces(
        self, sketch: Sketch, name: str, row: NDArray[np.float32], color: Color, alpha: float, scale: float
    ) -> None:
        """Draw lanes or edges: each segment is a bar to scale; lanes have a dart that shows the direction."""
        pieces = self._entries(name, row)
        if not len(pieces["x"]):
            return
        at = np.stack([pieces["x"], pieces["y"]], axis=1)
        headings = np.arctan2(pieces["sin"], pieces["cos"])
        half = np.maximum(pieces["half_length"], 0.5 * scale)
        width = (2.6 if name == "edges" else 1.6) * scale
        box = np.array([(-1.0, -0.5), (1.0, -0.5), (1.0, 0.5), (-1.0, 0.5)])
        sketch.polygons(
            placed(box * np.stack([half, np.full_like(half, width)], 1)[:, None], at, headings), color, alpha
        )
        if name == "lanes":
            dart = np.array([(3.5, 0.0), (-2.5, 2.6), (-2.5, -2.6)]) * scale
            sketch.polygons(placed(dart, at, headings), color, min(1.0, 1.6 * alpha))

    def _draw_partners(
        self, sketch: Sketch, row: NDArray[np.float32], scale: float
    ) -> list[tuple[float, float, Color]]:
        theme, seen = self._theme, self._entries("partners", row)
        at = np.stack([seen["x"], seen["y"]], axis=1)
        headings = np.arctan2(seen["sin"], seen["cos"])
        lengths, widths = np.maximum(seen["length"], 4 * scale), np.maximum(seen["width"], 4 * scale)
        kinds = np.round(2.0 * seen["kind"]).astype(int)  # 0 vehicle, 1 cyclist, 2 pedestrian
        colors = np.array([theme.vehicle, theme.cyclist, theme.pedestrian], np.float32)[kinds.clip(0, 2)]
        sketch.polygons(placed(rounded_boxes(lengths, widths, 0.24 * widths), at, headings), colors.reshape(-1, 3))
        nose = np.array([(0.42, 0.0), (0.12, 0.36), (0.12, -0.36)])
        sizes = np.stack([lengths, widths], axis=1)[:, None]
        sketch.polygons(placed(nose * sizes, at, headings), theme.casing, 0.8)
        # A line from the front with the length of one second of motion.
        ahead = np.array([(0.0, -0.5), (1.0, -0.5), (1.0, 0.5), (0.0, 0.5)])
        reach = np.stack([seen["speed"], np.full_like(lengths, 1.5 * scale)], axis=1)[:, None]
        front = np.stack([0.5 * lengths, np.zeros_like(lengths)], axis=1)[:, None]
        sketch.polygons(placed(ahead * reach + front, at, headings), colors.reshape(-1, 3), 0.6)
        return [(x, y, theme.vehicle) for x, y in at.tolist()]

    def _draw_goals(self, sketch: Sketch, row: NDArray[np.float32], scale: float) -> list[tuple[float, float, Color]]:
        goal = {name: float(values[0]) for name, values in _single(self._layout["goal"], row).items()}
        places = [(goal["x"], goal["y"])] if goal["share_left"] > 0.0 else []
        if goal["has_second"] > 0.0:
            places.append((goal["second_x"], goal["second_y"]))
        for number, place in enumerate(places):
            rings = [np.array(place) + disc(radius * scale) for radius in (11.0, 7.5)]
            sketch.polygon(rings, self._theme.sdc, (0.95, 0.5)[number], FillRule.EVEN_ODD)
            if number == 0:
                sketch.polygon([np.array(place) + disc(4.0 * scale)], self._theme.sdc)
        return [(x, y, self._theme.sdc) for x, y in places]

    def _draw_lights(self, sketch: Sketch, row: NDArray[np.float32], scale: float) -> list[tuple[float, float, Color]]:
        theme, seen = self._theme, self._entries("lights", row)
        marks = []
        for k, (x, y) in enumerate(zip(seen["x"].tolist(), seen["y"].tolist(), strict=True)):
            color = theme.dark_lamp
            for name, shown in (("is_red", theme.red), ("is_amber", theme.amber), ("is_green", theme.green)):
                color = shown if seen[name][k] > 0.5 else color
            is_sign = seen["is_stop_sign"][k] > 0.5
            if is_sign:
                color = theme.sign
            corners = 8 if is_sign else 24
            place = np.array([x, y])
            sketch.polygon([place + disc(9.5 * scale, corners)], theme.housing)
            sketch.polygon([place + disc(7.0 * scale, corners)], color)
            marks.append((x, y, color))
        return marks

    def _draw_self(self, sketch: Sketch, row: NDArray[np.float32]) -> None:
        own = {name: float(values[0]) for name, values in _single(self._layout["ego"], row).items()}
        length, width = max(own["length"], 0.5), max(own["width"], 0.5)
        sketch.polygons(rounded_boxes(length + 1.2, width + 1.2, 0.7), self._theme.sdc, 0.3)
        sketch.polygons(rounded_boxes(length, width, 0.24 * width), self._theme.sdc)
        nose = np.array([[(0.42, 0.0), (0.12, 0.36), (0.12, -0.36)]]) * np.array([length, width])
        sketch.polygons(nose, self._theme.casing, 0.8)

    def _mark_border(self, canvas: Canvas, entries: list[tuple[float, float, Color]]) -> None:
        """Draw triangles at the border that point to entries outside of the picture."""
        if not entries:
            return
        inset = 14.0 * self._overlay.unit
        room = np.array(self._camera.size, np.float64) - [0.0, self._overlay.margin + self._board.lift]
        middle = 0.5 * room
        away = self._camera.to_pixels([(x, y) for x, y, _ in entries]) - middle
        colors = np.array([color for *_, color in entries], np.float32)
        outside = (np.abs(away) >= middle).any(axis=1)
        away, colors = away[outside], colors[outside]
        share = ((middle - inset) / np.maximum(np.abs(away), 1e-9)).min(axis=1)
        dart = np.array([(10.0, 0.0), (-6.0, 7.0), (-6.0, -7.0)]) * self._overlay.unit
        sketch = Sketch()
        angles = np.arctan2(away[:, 1], away[:, 0])
        sketch.polygons(placed(dart, middle + share[:, None] * away, angles), colors, 0.95)
        canvas.paint(sketch.shapes())

    def _write_table(self, canvas: Canvas, row: NDArray[np.float32]) -> None:
        """Write the number of entries of each block, and the agent's own values, in the upper right corner."""
        overlay, layout = self._overlay, self._layout
        own = {name: float(values[0]) for name, values in _single(layout["ego"], row).items()}
        values = [f"{self._count(name, row)} of {layout[name].entries}" for name in COUNTED]
        values += [
            f"{own['speed']:.1f} m/s",
            f"{own['speed_limit']:.1f} m/s" if own["speed_limit"] > 0.0 else "unknown",
            f"{own['acceleration']:+.1f} m/s2",
            f"{np.degrees(own['steering']):+.0f}°",
            f"{own['lane_offset']:+.1f} m",
        ]
        canvas.lay(self._table)
        x = self._table.left + self._table.patch.shape[1] - overlay.pad
        for k, value in enumerate(values):
            y = self._table.top + overlay.pad + k * self._table_line
            canvas.write(value, x, y, overlay.small, self._theme.ink, "right")

    def _make_table(self) -> Placed:
        overlay = self._overlay
        names = [*COUNTED, "speed", "speed limit", "acceleration", "steering", "left of the lane's center"]
        self._table_line = text_size("Ag", overlay.small)[1] + overlay.leading

        def fill(panel: Image) -> None:
            for k, name in enumerate(names):
                y = overlay.pad + k * self._table_line
                write(panel, name, overlay.pad, y, overlay.small, self._theme.faint_ink)

        widest = max(text_size(name, overlay.small)[0] for name in names)
        width = widest + text_size("+00.0 m/s2", overlay.small)[0] + 3 * overlay.pad
        panel = overlay.panel(width, 2 * overlay.pad + self._table_line * len(names), fill)
        return Placed(panel, overlay.width - overlay.margin - panel.shape[1], overlay.margin)


def _single(block: Block, row: NDArray[np.float32]) -> dict[str, NDArray[np.float64]]:
    values = block.of(row).astype(np.float64)
    return {feature.name: values[k] * feature.scale for k, feature in enumerate(block.features)}
