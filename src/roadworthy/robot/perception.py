"""Locate an object in one picture: the pixels of its color, and the ray through their center."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from roadworthy.robot.scene import FRONT_CAMERA, THINGS

MIN_LEVEL = 12.0  # mean level of a pixel below which its color is mostly noise
MAX_CHROMATICITY_DISTANCE = 0.060  # of a pixel of the object
MIN_PIXELS = 28  # half of a ball at the far side of the table


@dataclass(frozen=True)
class Sighting:
    """The position of an object on the table."""

    x: float
    y: float
    yaw: float  # of the side nearest to the zero direction of the gripper, -pi/4 to pi/4
    pixels: int


def object_named(instruction: str) -> str | None:
    """Return the first object that an instruction names; None if it names none."""
    words = [word.strip(".,;:!?'\"").lower() for word in instruction.split()]
    return next((word for word in words if word in THINGS), None)


def find(picture: NDArray[np.uint8], name: str) -> Sighting | None:
    """Return the position of an object by its color; None if too few pixels have that color.

    It fails as real cameras do: in the dark, noise hides the color; in strong light, the brightest channels are clipped
    at 255 and colors turn pale. The camera is assumed to be at its calibrated position.
    """
    thing = THINGS[name]
    levels = picture.astype(np.float64)
    levels = ndimage.uniform_filter(levels, (3, 3, 1))
    total = levels.sum(axis=2)
    colors = levels / np.maximum(total, 1.0)[..., None]
    expected = np.asarray(thing.color) / sum(thing.color)
    is_near = (np.linalg.norm(colors - expected, axis=2) < MAX_CHROMATICITY_DISTANCE) & (total > 3.0 * MIN_LEVEL)
    labels, count = ndimage.label(is_near)
    if not count:
        return None
    sizes = np.bincount(labels.ravel())[1:]
    if sizes.max() < MIN_PIXELS:
        return None
    rows, columns = np.nonzero(labels == 1 + int(sizes.argmax()))
    height, width = picture.shape[:2]
    middle = FRONT_CAMERA.ground(columns.mean() + 0.5, rows.mean() + 0.5, width, height, thing.height)
    outline = np.array(
        [
            FRONT_CAMERA.ground(column + 0.5, row + 0.5, width, height, 2.0 * thing.height)
            for column, row in zip(columns, rows, strict=True)
        ]
    )
    return Sighting(float(middle[0]), float(middle[1]), _side_angle(outline) if name == "box" else 0.0, len(rows))


def _side_angle(points: NDArray[np.float64]) -> float:
    """Return the angle of the smallest rectangle around points, -pi/4 to pi/4."""
    angles = np.radians(np.arange(-45.0, 45.0, 3.0))

    def area(angle: float) -> float:
        turned = points @ np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        low, high = np.percentile(turned, (2.0, 98.0), axis=0)
        return float(np.prod(high - low))

    return float(angles[int(np.argmin([area(angle) for angle in angles]))])
