"""Where an object is, from one picture: pixels of its colour, and the ray through their middle."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from roadworthy.robot.scene import FRONT_CAMERA, THINGS

DARKEST = 12.0  # mean level of a pixel below which its colour is mostly noise
NEAREST = 0.060  # distance of chromaticities up to which a pixel belongs to the object
FEWEST_PIXELS = 28  # half of what a ball shows at the far side of the table


@dataclass(frozen=True)
class Sighting:
    """Where an object was seen to lie."""

    x: float
    y: float
    yaw: float  # of the sides that are nearest to the gripper's own, -pi/4 to pi/4
    pixels: int


def object_named(instruction: str) -> str | None:
    """Which object an instruction speaks of: the one whose name comes first; None if there is none."""
    words = [word.strip(".,;:!?'\"").lower() for word in instruction.split()]
    return next((word for word in words if word in THINGS), None)


def find(picture: NDArray[np.uint8], name: str) -> Sighting | None:
    """Look for an object by its colour; None if too little of that colour is seen.

    It fails as cameras do: in the dark noise covers the colour, and where light is too strong the largest channels
    are cut off at 255, so that colours pale. The camera is taken to stand where it was calibrated.
    """
    thing = THINGS[name]
    levels = picture.astype(np.float64)
    levels = ndimage.uniform_filter(levels, (3, 3, 1))
    total = levels.sum(axis=2)
    colors = levels / np.maximum(total, 1.0)[..., None]
    wanted = np.asarray(thing.color) / sum(thing.color)
    is_near = (np.linalg.norm(colors - wanted, axis=2) < NEAREST) & (total > 3.0 * DARKEST)
    labels, count = ndimage.label(is_near)
    if not count:
        return None
    sizes = np.bincount(labels.ravel())[1:]
    if sizes.max() < FEWEST_PIXELS:
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
    """The turn of the smallest square-on rectangle around points, -pi/4 to pi/4."""
    angles = np.radians(np.arange(-45.0, 45.0, 3.0))

    def area(angle: float) -> float:
        turned = points @ np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        low, high = np.percentile(turned, (2.0, 98.0), axis=0)
        return float(np.prod(high - low))

    return float(angles[int(np.argmin([area(angle) for angle in angles]))])
