"""Text on pictures: Pillow's built-in scalable font, as cached masks that are blended in."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from roadworthy.render.raster import Image
from roadworthy.render.style import Color

Align = Literal["left", "center", "right"]


@lru_cache(maxsize=32)
def _font(size_px: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size_px)
    assert isinstance(font, ImageFont.FreeTypeFont)  # given a size, Pillow's default is its scalable font
    return font


@lru_cache(maxsize=512)
def _mask(text: str, size_px: int) -> NDArray[np.float32]:
    """(height, width) opacity; the height is the font's, whatever the letters, so that lines of text align."""
    font = _font(size_px)
    ascent, descent = font.getmetrics()
    picture = Pillow.new("L", (max(1, round(font.getlength(text)) + 2), ascent + descent))
    ImageDraw.Draw(picture).text((1, 0), text, fill=255, font=font)
    return np.asarray(picture, np.float32) / 255.0


def text_size(text: str, size_px: int) -> tuple[int, int]:
    """Width and height in pixels of a line of text."""
    height, width = _mask(text, size_px).shape
    return width, height


def shortened(text: str, size_px: int, width_px: float) -> str:
    """The text if it fits a width, else as much as fits and an ellipsis."""
    font = _font(size_px)
    if font.getlength(text) <= width_px:
        return text
    while text and font.getlength(text + "...") > width_px:
        text = text[:-1]
    return text.rstrip() + "..."


def write(image: Image, text: str, x: float, y: float, size_px: int, color: Color, align: Align = "left") -> None:
    """Write a line of text; (x, y) is its upper left, upper middle or upper right point. The rest is cut off."""
    if not text:
        return
    mask = _mask(text, size_px)
    height, width = mask.shape
    left = round(x - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * width)
    top = round(y)
    x0, x1 = max(left, 0), min(left + width, image.shape[1])
    y0, y1 = max(top, 0), min(top + height, image.shape[0])
    if x0 >= x1 or y0 >= y1:
        return
    cut = mask[y0 - top : y1 - top, x0 - left : x1 - left, None]
    below = image[y0:y1, x0:x1]
    below[...] = (below * (1.0 - cut) + np.array(color, np.float32) * cut + 0.5).astype(np.uint8)
