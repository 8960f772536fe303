"""Backgrounds of pictures: a map is painted once, in tiles, and reused by every camera with the same scale."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.render.camera import Camera
from roadworthy.render.map_shapes import map_shapes
from roadworthy.render.raster import Image, Painter
from roadworthy.render.style import LIGHT, US_PAINT, RoadPaint, Theme
from roadworthy.render.yuv import Plane, to_yuv420
from roadworthy.scenario.schema import RoadMap

TILE_PX = 512
KEPT_TILES = 80  # of 1.1 MB each, in an LRU cache


@dataclass(frozen=True, eq=False)
class Tile:
    """A square of a background, as a picture and as the planes of a video frame."""

    image: Image  # (TILE_PX, TILE_PX, 3)
    luma: Plane  # (TILE_PX, TILE_PX)
    blue: Plane  # (TILE_PX / 2, TILE_PX / 2)
    red: Plane

    @classmethod
    def of(cls, image: Image) -> Tile:
        half = TILE_PX // 2
        planes = [np.empty((side, side), np.uint8) for side in (TILE_PX, half, half)]
        to_yuv420(image, *planes)
        return cls(image, *planes)


class Background(Protocol):
    """A background that pictures are drawn on, in tiles."""

    def tiles(self, camera: Camera) -> Iterator[tuple[int, int, Tile]]:
        """Yield the tiles that a snapped camera shows, with the column and row of their upper left corner."""


class StillBackground:
    """A picture that does not move, for cameras of its size."""

    def __init__(self, image: Image) -> None:
        height, width = image.shape[:2]
        self._tiles = []
        for top in range(0, height, TILE_PX):
            for left in range(0, width, TILE_PX):
                tile = np.zeros((TILE_PX, TILE_PX, 3), np.uint8)
                part = image[top : top + TILE_PX, left : left + TILE_PX]
                tile[: part.shape[0], : part.shape[1]] = part
                self._tiles.append((left, top, Tile.of(tile)))

    def tiles(self, camera: Camera) -> Iterator[tuple[int, int, Tile]]:
        """Yield all tiles, whatever the camera."""
        return iter(self._tiles)


class MapLayer:
    """A map at one scale. A moving camera reuses most tiles; a rotating camera needs new ones."""

    def __init__(
        self, road_map: RoadMap, meters_per_pixel: float, theme: Theme = LIGHT, paint: RoadPaint = US_PAINT
    ) -> None:
        self.meters_per_pixel = meters_per_pixel
        self.theme = theme
        self._shapes = map_shapes(road_map, meters_per_pixel, theme, paint)
        self._painter = Painter(TILE_PX, TILE_PX)
        self._tiles: OrderedDict[tuple[float, int, int], Tile] = OrderedDict()

    def background(self, camera: Camera) -> Image:
        """Return a new picture of the map for a snapped camera, (h, w, 3)."""
        width, height = camera.size
        image = np.empty((height, width, 3), np.uint8)
        for x, y, tile in self.tiles(camera):
            x0, x1 = max(x, 0), min(x + TILE_PX, width)
            y0, y1 = max(y, 0), min(y + TILE_PX, height)
            image[y0:y1, x0:x1] = tile.image[y0 - y : y1 - y, x0 - x : x1 - x]
        return image

    def tiles(self, camera: Camera) -> Iterator[tuple[int, int, Tile]]:
        """Yield the tiles that a snapped camera shows, with the column and row of their upper left corner."""
        if camera.meters_per_pixel != self.meters_per_pixel:
            raise UsageError(
                f"this layer was made for {self.meters_per_pixel} m per pixel, the camera has {camera.meters_per_pixel}"
            )
        width, height = camera.size
        left, top = (
            np.round(-camera.transform[:, 2]).astype(int).tolist()
        )  # of the picture, relative to the map's origin
        for row in range(top // TILE_PX, (top + height - 1) // TILE_PX + 1):
            for column in range(left // TILE_PX, (left + width - 1) // TILE_PX + 1):
                yield column * TILE_PX - left, row * TILE_PX - top, self._tile(camera, column, row)

    def _tile(self, camera: Camera, column: int, row: int) -> Tile:
        key = (camera.rotation_rad, column, row)
        tile = self._tiles.get(key)
        if tile is None:
            image = np.empty((TILE_PX, TILE_PX, 3), np.uint8)
            image[:] = self.theme.land
            transform = camera.transform
            transform[:, 2] = -column * TILE_PX, -row * TILE_PX
            self._painter.paint(image, self._shapes, transform)
            tile = self._tiles[key] = Tile.of(image)
            while len(self._tiles) > KEPT_TILES:
                self._tiles.popitem(last=False)
        self._tiles.move_to_end(key)
        return tile
