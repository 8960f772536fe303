"""The rasterizer: fill polygons with exact-area anti-aliasing in an RGB picture.

Each edge adds the signed area to its right to the pixels that it crosses; a running sum along a row is then the winding
number averaged over each pixel, as in font rasterizers. Only the part of each row that a shape touches is visited, so a
thin diagonal line costs no more than its own pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import kernel
from roadworthy.render.shapes import FillRule, Shapes

Image = NDArray[np.uint8]

IDENTITY = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


_EVEN_ODD = int(FillRule.EVEN_ODD)
_COUNTERCLOCKWISE = int(FillRule.COUNTERCLOCKWISE)


class Painter:
    """Paints shapes into pictures of one size. It keeps its buffers, which are all zeros between calls."""

    def __init__(self, width: int, height: int) -> None:
        if width < 1 or height < 1:
            raise UsageError(f"the picture's size is {width} x {height} pixels; expected at least 1 x 1")
        self.width, self.height = width, height
        self._winding = np.zeros((height, width + 1), np.float32)
        self._first = np.full(height, width, np.int32)
        self._last = np.full(height, -1, np.int32)

    def paint(self, image: Image, shapes: Shapes, transform: NDArray[np.float64] = IDENTITY) -> None:
        """Paint shapes in order over an image (height, width, 3); transform (2, 3) takes their points to pixels."""
        if image.shape != (self.height, self.width, 3):
            raise UsageError(f"this painter fills pictures of shape {(self.height, self.width, 3)}, not {image.shape}")
        _paint(
            image,
            self._winding,
            self._first,
            self._last,
            shapes.points,
            shapes.ring_starts,
            shapes.shape_rings,
            shapes.colors,
            shapes.rules,
            transform,
        )


@kernel
def _add_edge(winding, first, last, x0, y0, x1, y1):
    height, width = winding.shape[0], winding.shape[1] - 1
    if y0 == y1 or (x0 >= width and x1 >= width):
        return
    direction = 1.0
    if y0 > y1:
        direction = -1.0
        x0, y0, x1, y1 = x1, y1, x0, y0
    if y1 <= 0.0 or y0 >= height:
        return
    slope = (x1 - x0) / (y1 - y0)
    x, y = x0, y0
    if y < 0.0:
        x -= y * slope
        y = 0.0
    bottom = min(y1, float(height))
    row = int(y)
    while y < bottom:
        next_y = min(float(row + 1), bottom)
        next_x = x + (next_y - y) * slope
        left, right = min(x, next_x), max(x, next_x)
        rise = direction * (next_y - y)
        if right <= 0.0:
            winding[row, 0] += rise
            first[row] = 0
            last[row] = max(last[row], 0)
        elif left < width:
            first_cell = int(max(left, 0.0))
            last_cell = min(int(right), width - 1)
            first[row] = min(first[row], first_cell)
            last[row] = max(last[row], min(last_cell + 1, width - 1))
            if first_cell == last_cell and left >= 0.0 and right <= width:
                middle = 0.5 * (left + right) - first_cell
                winding[row, first_cell] += rise * (1.0 - middle)
                winding[row, first_cell + 1] += rise * middle
            else:
                rise_per_x = rise / (right - left)
                if left < 0.0:
                    winding[row, 0] -= rise_per_x * left
                for cell in range(first_cell, last_cell + 1):
                    a, b = max(left, float(cell)), min(right, float(cell + 1))
                    part = (b - a) * rise_per_x
                    middle = 0.5 * (a + b) - cell
                    winding[row, cell] += part * (1.0 - middle)
                    winding[row, cell + 1] += part * middle
        x, y = next_x, next_y
        row += 1


@kernel
def _blend_row(pixels, winding, start, stop, rule, sign, red, green, blue, alpha):
    """Turn the winding numbers of a row into coverage, blend, and reset them to zero."""
    width = pixels.shape[0]
    total = 0.0
    for column in range(start, width):
        if column <= stop:
            total += winding[column]
            winding[column] = 0.0
        elif -0.001 < total < 0.001:
            break  # past the last edge and outside
        if rule == _COUNTERCLOCKWISE:
            coverage = min(max(sign * total, 0.0), 1.0)
        elif rule == _EVEN_ODD:
            coverage = abs(total) % 2.0
            if coverage > 1.0:
                coverage = 2.0 - coverage
        else:
            coverage = min(abs(total), 1.0)
        coverage *= alpha
        if coverage > 0.998:
            pixels[column, 0] = np.uint8(red)
            pixels[column, 1] = np.uint8(green)
            pixels[column, 2] = np.uint8(blue)
        elif coverage > 0.002:
            keep = 1.0 - coverage
            pixels[column, 0] = np.uint8(pixels[column, 0] * keep + red * coverage + 0.5)
            pixels[column, 1] = np.uint8(pixels[column, 1] * keep + green * coverage + 0.5)
            pixels[column, 2] = np.uint8(pixels[column, 2] * keep + blue * coverage + 0.5)
    winding[width] = 0.0


@kernel
def _paint(image, winding, first, last, points, ring_starts, shape_rings, colors, rules, transform):
    height, width = image.shape[0], image.shape[1]
    xx, xy, x_shift = transform[0, 0], transform[0, 1], transform[0, 2]
    yx, yy, y_shift = transform[1, 0], transform[1, 1], transform[1, 2]
    # An edge that runs down the picture counts +1 to its right, so a ring that looks counter-clockwise winds +1. Rows
    # count downwards: a ring looks as in its own frame (y up) if the transform mirrors, and reversed if it does not.
    sign = -1.0 if xx * yy - xy * yx > 0.0 else 1.0
    for shape in range(len(shape_rings) - 1):
        begin, end = ring_starts[shape_rings[shape]], ring_starts[shape_rings[shape + 1]]
        if colors[shape, 3] <= 0.0 or end - begin < 3:
            continue
        left, top, right, bottom = np.inf, np.inf, -np.inf, -np.inf
        for i in range(begin, end):
            x = xx * points[i, 0] + xy * points[i, 1] + x_shift
            y = yx * points[i, 0] + yy * points[i, 1] + y_shift
            left, right = min(left, x), max(right, x)
            top, bottom = min(top, y), max(bottom, y)
        if not (left < width and right > 0.0 and top < height and bottom > 0.0):
            continue
        for ring in range(shape_rings[shape], shape_rings[shape + 1]):
            ring_begin, ring_end = ring_starts[ring], ring_starts[ring + 1]
            x0 = xx * points[ring_end - 1, 0] + xy * points[ring_end - 1, 1] + x_shift
            y0 = yx * points[ring_end - 1, 0] + yy * points[ring_end - 1, 1] + y_shift
            for i in range(ring_begin, ring_end):
                x1 = xx * points[i, 0] + xy * points[i, 1] + x_shift
                y1 = yx * points[i, 0] + yy * points[i, 1] + y_shift
                _add_edge(winding, first, last, x0, y0, x1, y1)
                x0, y0 = x1, y1
        red, green, blue, alpha = colors[shape, 0], colors[shape, 1], colors[shape, 2], colors[shape, 3]
        for row in range(max(int(top), 0), min(int(bottom) + 1, height)):
            if last[row] >= 0:
                _blend_row(image[row], winding[row], first[row], last[row], rules[shape], sign, red, green, blue, alpha)
                first[row] = width
                last[row] = -1


@kernel
def blend_patch(image, patch, left, top):
    """Blend a patch (h, w, 4) into an image: red, green, blue times opacity, and transparency (0 to 255)."""
    first, last = max(left, 0), min(left + patch.shape[1], image.shape[1])
    if last <= first:
        return
    for row in range(max(top, 0), min(top + patch.shape[0], image.shape[0])):
        below, above = image[row, first:last], patch[row - top, first - left : last - left]
        for column in range(len(below)):
            through = np.int32(above[column, 3])
            for channel in range(3):
                # The product divided by 255 and rounded, without a division.
                scaled = np.int32(below[column, channel]) * through + np.int32(128)
                scaled = (scaled + (scaled >> np.int32(8))) >> np.int32(8)
                value = np.int32(above[column, channel]) + scaled
                below[column, channel] = np.uint8(min(value, np.int32(255)))
