"""Frames of videos: only the squares of a frame that shapes touch are painted and converted.

Most of a frame is background, which is stored as the planes that an encoder takes. So a frame's shapes and patches are
collected first; the squares that they touch are painted in RGB and converted, and all others are copied, or left as
they are if the camera does not move.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import kernel
from roadworthy.render.camera import Camera, Size
from roadworthy.render.lettering import Align, text_left, text_patch
from roadworthy.render.map_layer import TILE_PX, Background
from roadworthy.render.overlay import Placed
from roadworthy.render.raster import IDENTITY, Image, Painter
from roadworthy.render.shapes import Shapes
from roadworthy.render.style import Color
from roadworthy.render.yuv import Planes, two_rows_to_yuv420

SQUARE_PX = 32
_SQUARE = SQUARE_PX


class Canvas:
    """Draws pictures of one size with even sides; each call of `finish` overwrites the previous picture."""

    def __init__(self, size: Size) -> None:
        width, height = size
        if width % 2 or height % 2:
            raise UsageError(f"the video's size is {width} x {height} pixels; expected even numbers")
        self.size = size
        self.planes = Planes(*(np.empty((height // n, width // n), np.uint8) for n in (1, 2, 2)))
        self._image = np.zeros((height, width, 3), np.uint8)
        self._painter = Painter(width, height)
        shape = (-(-height // SQUARE_PX), -(-width // SQUARE_PX))
        self._touched, self._was_touched = np.zeros(shape, np.bool_), np.ones(shape, np.bool_)
        self._items: list[tuple[Shapes, NDArray[np.float64]] | Placed] = []
        self._shown: tuple[Background, Camera] | None = None

    def paint(self, shapes: Shapes, transform: NDArray[np.float64] = IDENTITY) -> None:
        """Paint shapes on top; transform (2, 3) maps their points to pixels."""
        self._items.append((shapes, transform))

    def lay(self, placed: Placed) -> None:
        """Put a patch on top."""
        self._items.append(placed)

    def write(self, text: str, x: float, y: float, size_px: int, color: Color, align: Align = "left") -> None:
        """Write a line of text; (x, y) is its upper left, upper middle or upper right corner."""
        if text:
            patch = text_patch(text, size_px, color)
            self._items.append(Placed(patch, text_left(text, x, size_px, align), round(y)))

    def finish(self, ground: Background, camera: Camera) -> Planes:
        """Draw everything added since the last picture on a background, for a camera snapped to two pixels."""
        touched, is_same = self._touched, self._shown == (ground, camera)
        touched[:] = False
        for item in self._items:
            if isinstance(item, Placed):
                _mark_box(touched, item.left, item.top, item.patch.shape[1], item.patch.shape[0])
            else:
                _mark_shapes(touched, item[0].points, item[0].ring_starts, item[0].shape_rings, item[1])
        if not is_same:
            self._was_touched[:] = True
        planes = self.planes
        for left, top, tile in ground.tiles(camera):
            _copy_pixels(tile.image, left, top, self._image, touched)
            _copy_planes(
                (tile.luma, tile.blue, tile.red), left, top, (planes.luma, planes.blue, planes.red), self._was_touched
            )
        self._paint_items()
        _convert_squares(self._image, touched, planes.luma, planes.blue, planes.red)
        self._touched, self._was_touched = self._was_touched, touched
        self._shown = (ground, camera)
        return planes

    def picture(self, ground: Background, camera: Camera) -> Image:
        """Draw like `finish`, and return a new RGB picture, (h, w, 3)."""
        everywhere = np.ones_like(self._touched)
        for left, top, tile in ground.tiles(camera):
            _copy_pixels(tile.image, left, top, self._image, everywhere)
        self._paint_items()
        return self._image.copy()

    def _paint_items(self) -> None:
        for item in self._items:
            if isinstance(item, Placed):
                item.lay_on(self._image)
            else:
                self._painter.paint(self._image, *item)
        self._items.clear()


@kernel
def _mark_box(touched, left, top, width, height):
    """Mark the squares under a box of pixels."""
    rows, columns = touched.shape
    for row in range(max(top // _SQUARE, 0), min((top + height - 1) // _SQUARE + 1, rows)):
        for column in range(max(left // _SQUARE, 0), min((left + width - 1) // _SQUARE + 1, columns)):
            touched[row, column] = True


@kernel
def _mark_shapes(touched, points, ring_starts, shape_rings, transform):
    """Mark the squares under the box around each shape."""
    rows, columns = touched.shape
    for shape in range(len(shape_rings) - 1):
        begin, end = ring_starts[shape_rings[shape]], ring_starts[shape_rings[shape + 1]]
        left, top, right, bottom = np.inf, np.inf, -np.inf, -np.inf
        for i in range(begin, end):
            x = transform[0, 0] * points[i, 0] + transform[0, 1] * points[i, 1] + transform[0, 2]
            y = transform[1, 0] * points[i, 0] + transform[1, 1] * points[i, 1] + transform[1, 2]
            left, right = min(left, x), max(right, x)
            top, bottom = min(top, y), max(bottom, y)
        if not (left < columns * _SQUARE and right > 0.0 and top < rows * _SQUARE and bottom > 0.0):
            continue
        # One pixel more, because an edge on a pixel's border leaves rounding errors in the next pixel.
        x0, x1 = int(max(left - 1.0, 0.0)), int(min(right + 1.0, columns * _SQUARE - 1.0))
        y0, y1 = int(max(top - 1.0, 0.0)), int(min(bottom + 1.0, rows * _SQUARE - 1.0))
        _mark_box(touched, x0, y0, x1 - x0 + 1, y1 - y0 + 1)


@kernel
def _copy_pixels(tile, left, top, image, touched):
    """Copy the part of a tile in marked squares of a picture; its corner (left, top) may be outside."""
    height, width = image.shape[0], image.shape[1]
    _copy_squares(tile.reshape(TILE_PX, 3 * TILE_PX), left, top, 3, 1, image.reshape(height, 3 * width), touched)


@kernel
def _copy_planes(tile, left, top, planes, touched):
    """Do the same for the planes of a tile and a picture; the corner must be at even pixels."""
    _copy_squares(tile[0], left, top, 1, 1, planes[0], touched)
    _copy_squares(tile[1], left, top, 1, 2, planes[1], touched)
    _copy_squares(tile[2], left, top, 1, 2, planes[2], touched)


@kernel
def _copy_squares(tile, left, top, size, shrunk, out, touched):
    """Copy rows of numbers: `size` per pixel, or one per `shrunk` pixels, in both directions."""
    height, width = out.shape[0] * shrunk, out.shape[1] * shrunk // size
    last = (min(left + TILE_PX, width) - 1) // _SQUARE
    for row in range(max(top, 0) // _SQUARE, (min(top + TILE_PX, height) - 1) // _SQUARE + 1):
        y0, y1 = max(row * _SQUARE, top, 0) // shrunk, min((row + 1) * _SQUARE, top + TILE_PX, height) // shrunk
        column = max(left, 0) // _SQUARE
        while column <= last:
            if not touched[row, column]:
                column += 1
                continue
            first = column
            while column <= last and touched[row, column]:
                column += 1
            x0 = max(first * _SQUARE, left, 0) * size // shrunk
            x1 = min(column * _SQUARE, left + TILE_PX, width) * size // shrunk
            shift = left * size // shrunk
            for y in range(y0, y1):
                source, target = tile[y - top // shrunk, x0 - shift : x1 - shift], out[y, x0:x1]
                for x in range(len(target)):  # an index that starts at 0 needs no check for negative values
                    target[x] = source[x]


@kernel
def _convert_squares(image, touched, luma, blue, red):
    """Convert the marked squares of a picture into planes."""
    height, width = luma.shape
    rows = image.reshape(height, 3 * width)
    for row in range(touched.shape[0]):
        y0, y1 = row * _SQUARE, min((row + 1) * _SQUARE, height)
        column = 0
        while column < touched.shape[1]:
            if not touched[row, column]:
                column += 1
                continue
            first = column
            while column < touched.shape[1] and touched[row, column]:
                column += 1
            x0, x1 = first * _SQUARE, min(column * _SQUARE, width)
            for y in range(y0, y1, 2):
                two_rows_to_yuv420(
                    rows[y, 3 * x0 : 3 * x1],
                    rows[y + 1, 3 * x0 : 3 * x1],
                    luma[y, x0:x1],
                    luma[y + 1, x0:x1],
                    blue[y // 2, x0 // 2 : x1 // 2],
                    red[y // 2, x0 // 2 : x1 // 2],
                )
