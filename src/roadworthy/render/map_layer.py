"""The background of pictures: a map painted once, in tiles, and reused by every camera of the same scale."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.render.camera import Camera
from roadworthy.render.map_shapes import map_shapes
from roadworthy.render.raster import Image, Painter
from roadworthy.render.style import LIGHT, US_PAINT, RoadPaint, Theme
from roadworthy.scenario.schema import RoadMap

TILE_PX = 512
KEPT_BYTES = 96 * 2**20  # tiles beyond this are forgotten, the least recently seen first


class MapLayer:
    """A map at one scale. A camera that moves finds most tiles painted; one that turns has them painted anew."""

    def __init__(
        self,
        road_map: RoadMap,
        meters_per_pixel: float,
        theme: Theme = LIGHT,
        paint: RoadPaint = US_PAINT,
    ) -> None:
        self.meters_per_pixel = meters_per_pixel
        self.theme = theme
        self._shapes = map_shapes(road_map, meters_per_pixel, theme, paint)
        self._painter = Painter(TILE_PX, TILE_PX)
        self._tiles: OrderedDict[tuple[float, int, int], Image] = OrderedDict()

    def background(self, camera: Camera) -> Image:
        """(h, w, 3) a fresh picture of the map alone, as this snapped camera sees it."""
        if camera.meters_per_pixel != self.meters_per_pixel:
            raise UsageError(
                f"this layer was made for {self.meters_per_pixel} m per pixel, the camera has {camera.meters_per_pixel}"
            )
        width, height = camera.size
        image = np.empty((height, width, 3), np.uint8)
        left, top = np.round(-camera.transform[:, 2]).astype(int).tolist()  # of the picture, seen from the map's origin
        for row in range(top // TILE_PX, (top + height - 1) // TILE_PX + 1):
            for column in range(left // TILE_PX, (left + width - 1) // TILE_PX + 1):
                x, y = column * TILE_PX - left, row * TILE_PX - top  # of the tile in the picture
                x0, x1 = max(x, 0), min(x + TILE_PX, width)
                y0, y1 = max(y, 0), min(y + TILE_PX, height)
                image[y0:y1, x0:x1] = self._tile(camera, column, row)[y0 - y : y1 - y, x0 - x : x1 - x]
        return image

    def _tile(self, camera: Camera, column: int, row: int) -> Image:
        key = (camera.rotation_rad, column, row)
        tile = self._tiles.get(key)
        if tile is None:
            tile = np.empty((TILE_PX, TILE_PX, 3), np.uint8)
            tile[:] = self.theme.land
            transform = camera.transform
            transform[:, 2] = -column * TILE_PX, -row * TILE_PX
            self._painter.paint(tile, self._shapes, transform)
            self._tiles[key] = tile
            while len(self._tiles) * tile.nbytes > KEPT_BYTES:
                self._tiles.popitem(last=False)
        self._tiles.move_to_end(key)
        return tile
