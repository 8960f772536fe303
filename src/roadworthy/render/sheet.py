"""Contact sheets: many scenarios side by side, each a titled tile around its self-driving car."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.render.birdview import BirdView, Show, whole_map_camera
from roadworthy.render.camera import Camera, Size
from roadworthy.render.lettering import shortened, text_size, write
from roadworthy.render.raster import Image, Painter
from roadworthy.render.shapes import FillRule, Sketch
from roadworthy.render.strokes import rounded_boxes
from roadworthy.render.style import LIGHT, Theme
from roadworthy.scenario.schema import Scenario

TILE_SHOW = Show(trail_seconds=6.0, caption=False, legend=False, scale_bar=False)
GAP_PX = 20


@dataclass(frozen=True)
class Tile:
    """One picture of a sheet."""

    title: str
    scenario: Scenario
    step: int | None = None  # the step to show; None: a characteristic one


def contact_sheet(
    tiles: Sequence[Tile], columns: int = 4, width: int = 1600, tile_width_m: float = 90.0, theme: Theme = LIGHT
) -> Image:
    """Return the tiles row by row, (h, width, 3)."""
    if not tiles or columns < 1 or width < columns * (GAP_PX + 40):
        raise UsageError(
            f"the sheet has {len(tiles)} tiles in {columns} columns and is {width} pixels wide; expected at least one "
            f"tile, one column, and {GAP_PX + 40} pixels per column"
        )
    tile_width = (width - (columns + 1) * GAP_PX) // columns
    size = (tile_width, round(0.75 * tile_width))
    letter_px = max(11, round(tile_width / 21))
    title_height = text_size("Ag", letter_px)[1] + 6
    rows = -(-len(tiles) // columns)
    pitch_x, pitch_y = tile_width + GAP_PX, size[1] + title_height + GAP_PX
    left = (width - columns * pitch_x + GAP_PX) // 2
    sheet = np.empty((rows * pitch_y + GAP_PX, width, 3), np.uint8)
    sheet[:] = theme.panel
    for number, tile in enumerate(tiles):
        x, y = left + number % columns * pitch_x, GAP_PX + number // columns * pitch_y
        write(sheet, shortened(tile.title, letter_px, tile_width), x, y, letter_px, theme.ink)
        y += title_height
        sheet[y : y + size[1], x : x + size[0]] = _tile_picture(tile, size, tile_width_m, theme)
    return sheet


def _tile_picture(tile: Tile, size: Size, width_m: float, theme: Theme) -> Image:
    step = key_step(tile.scenario) if tile.step is None else tile.step
    image = BirdView(tile.scenario, theme, TILE_SHOW).frame(step, tile_camera(tile.scenario, step, size, width_m))
    corners = Sketch()  # covers the tile outside of a rounded box in the color of the sheet
    width, height = size
    outside = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float64)
    box = rounded_boxes(width, height, 9.0)[0] + 0.5 * np.array([width, height])
    corners.polygon([outside, box], theme.panel, rule=FillRule.EVEN_ODD)
    Painter(width, height).paint(image, corners.shapes())
    return image


def key_step(scenario: Scenario) -> int:
    """Return the most characteristic step: where the self-driving car's velocity changes most within a second."""
    if scenario.sdc < 0:
        return scenario.current_step
    there = np.flatnonzero(scenario.valid[scenario.sdc])
    span = max(1, round(1.0 / scenario.dt))
    if len(there) <= 2 * span:
        return scenario.current_step
    velocity = scenario.velocities[scenario.sdc, there].astype(np.float64)
    change = np.hypot(*(velocity[span:] - velocity[:-span]).T)
    if change.max() < 0.5:  # the velocity is constant, so all steps are equally good
        return int(there[len(there) // 2])
    return int(there[int(np.argmax(change)) + span // 2])


def tile_camera(scenario: Scenario, step: int, size: Size, width_m: float) -> Camera:
    """Return a camera around the self-driving car, shifted so that its path nearby is visible."""
    if scenario.sdc < 0 or not scenario.valid[scenario.sdc].any():
        return whole_map_camera(scenario, size)
    there = scenario.valid[scenario.sdc]
    path = scenario.positions[scenario.sdc, there, :2].astype(np.float64)
    now = path[int(np.argmin(np.abs(np.flatnonzero(there) - step)))]
    reach = 0.3 * width_m * np.array([1.0, size[1] / size[0]])
    nearby = np.clip(path, now - reach, now + reach)
    center = 0.5 * (nearby.min(axis=0) + nearby.max(axis=0))
    return Camera((float(center[0]), float(center[1])), width_m / size[0], size)
