"""Text on pictures: Pillow's built-in scalable font, as cached patches that are blended in."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from roadworthy.render.raster import Image, blend_patch
from roadworthy.render.style import Color

Align = Literal["left", "center", "right"]

FINE = 4  # letters are placed to this part of a pixel


@lru_cache(maxsize=32)
def _font(size_px: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size_px)
    assert isinstance(font, ImageFont.FreeTypeFont)  # given a size, Pillow's default is its scalable font
    return font


@lru_cache(maxsize=512)
def _mask(text: str, size_px: int) -> NDArray[np.float32]:
    """(height, width) opacity; the height is the font's, whatever the letters, so that lines of text align.

    Numbers change with every frame of a film, so a line is put together from letters that are kept. They stand at
    quarters of a pixel: at whole ones, small print would be spaced unevenly.
    """
    places = [FINE]
    for k, letter in enumerate(text):
        places.append(places[-1] + _advance(letter, text[k + 1 : k + 2], size_px))
    mask = np.zeros((_letter(" ", size_px, 0).shape[0], -(-(places[-1] + FINE) // FINE)), np.float32)
    for letter, place in zip(text, places, strict=False):
        shape = _letter(letter, size_px, place % FINE)
        left = place // FINE - 1
        part = mask[:, left : left + shape.shape[1]]
        np.maximum(part, shape[:, : part.shape[1]], out=part)
    return mask


@lru_cache(maxsize=4096)
def _letter(letter: str, size_px: int, shift: int) -> NDArray[np.float32]:
    """(height, width) opacity of one letter, a pixel and `shift` quarters from the left border."""
    font = _font(FINE * size_px)
    ascent, descent = font.getmetrics()
    width = 3 * FINE + round(font.getlength(letter))
    picture = Pillow.new("L", (width + -width % FINE, ascent + descent + -(ascent + descent) % FINE))
    ImageDraw.Draw(picture).text((FINE + shift, 0), letter, fill=255, font=font)
    return np.asarray(picture.reduce(FINE), np.float32) / 255.0


@lru_cache(maxsize=4096)
def _advance(letter: str, following: str, size_px: int) -> int:
    """Quarters of a pixel from a letter to the one that follows it; some pairs stand closer than others."""
    font = _font(FINE * size_px)
    return round(font.getlength(letter + following) - (font.getlength(following) if following else 0.0))


def text_size(text: str, size_px: int) -> tuple[int, int]:
    """Width and height in pixels of a line of text."""
    height, width = _mask(text, size_px).shape
    return width, height


def shortened(text: str, size_px: int, width_px: float) -> str:
    """The text if it fits a width, else as much as fits and an ellipsis."""
    if text_size(text, size_px)[0] <= width_px:
        return text
    while text and text_size(text + "...", size_px)[0] > width_px:
        text = text[:-1]
    return text.rstrip() + "..."


def write(image: Image, text: str, x: float, y: float, size_px: int, color: Color, align: Align = "left") -> None:
    """Write a line of text; (x, y) is its upper left, upper middle or upper right point. The rest is cut off."""
    if text:
        patch = text_patch(text, size_px, color)
        blend_patch(image, patch, text_left(text, x, size_px, align), round(y))


def text_left(text: str, x: float, size_px: int, align: Align) -> int:
    """The column at which a line of text begins."""
    return round(x - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * _mask(text, size_px).shape[1])


@lru_cache(maxsize=512)
def text_patch(text: str, size_px: int, color: Color) -> NDArray[np.uint8]:
    """(height, width, 4) a line of text for `blend_patch`: its colour times its opacity, and what shines through."""
    mask = _mask(text, size_px)[..., None]
    patch = np.concatenate([mask * np.array(color, np.float32), 255.0 * (1.0 - mask)], axis=2)
    return (patch + 0.5).astype(np.uint8)
