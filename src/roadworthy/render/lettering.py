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

FINE = 4  # letters are placed on a grid of 1 / FINE pixels


@lru_cache(maxsize=32)
def _font(size_px: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size_px)
    assert isinstance(font, ImageFont.FreeTypeFont)  # given a size, Pillow's default is its scalable font
    return font


@lru_cache(maxsize=512)
def _mask(text: str, size_px: int) -> NDArray[np.float32]:
    """Return the opacity of a text, (height, width); all texts have the font's height, so that lines align.

    Numbers change in every frame of a video, so a line is assembled from cached letters. They are placed at quarters of
    a pixel, because small print at whole pixels would be spaced unevenly.
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
    """Return the opacity of a letter, (height, width), one pixel and `shift` quarters from the left border."""
    font = _font(FINE * size_px)
    ascent, descent = font.getmetrics()
    width = 3 * FINE + round(font.getlength(letter))
    picture = Pillow.new("L", (width + -width % FINE, ascent + descent + -(ascent + descent) % FINE))
    ImageDraw.Draw(picture).text((FINE + shift, 0), letter, fill=255, font=font)
    return np.asarray(picture.reduce(FINE), np.float32) / 255.0


@lru_cache(maxsize=4096)
def _advance(letter: str, following: str, size_px: int) -> int:
    """Return the advance from a letter to the following one, with kerning, in quarters of a pixel."""
    font = _font(FINE * size_px)
    return round(font.getlength(letter + following) - (font.getlength(following) if following else 0.0))


def text_size(text: str, size_px: int) -> tuple[int, int]:
    """Return the width and height of a line of text in pixels."""
    height, width = _mask(text, size_px).shape
    return width, height


def shortened(text: str, size_px: int, width_px: float) -> str:
    """Return the text, shortened with an ellipsis if it does not fit the width."""
    if text_size(text, size_px)[0] <= width_px:
        return text
    while text and text_size(text + "...", size_px)[0] > width_px:
        text = text[:-1]
    return text.rstrip() + "..."


def write(image: Image, text: str, x: float, y: float, size_px: int, color: Color, align: Align = "left") -> None:
    """Write a line of text, clipped at the border; (x, y) is its upper left, middle or right corner."""
    if text:
        patch = text_patch(text, size_px, color)
        blend_patch(image, patch, text_left(text, x, size_px, align), round(y))


def text_left(text: str, x: float, size_px: int, align: Align) -> int:
    """Return the column at which a line of text starts."""
    return round(x - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * _mask(text, size_px).shape[1])


@lru_cache(maxsize=512)
def text_patch(text: str, size_px: int, color: Color) -> NDArray[np.uint8]:
    """Return a line of text for `blend_patch`, (height, width, 4): color times opacity, and transparency."""
    mask = _mask(text, size_px)[..., None]
    patch = np.concatenate([mask * np.array(color, np.float32), 255.0 * (1.0 - mask)], axis=2)
    return (patch + 0.5).astype(np.uint8)
