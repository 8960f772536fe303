"""Cameras: the part of the map that a picture shows, its scale and its rotation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.errors import UsageError

Size = tuple[int, int]

NEAR_MAP_M = 50.0  # agents farther than this from the bounding box of the map are ignored


@dataclass(frozen=True)
class Camera:
    """Looks straight down. Pixel (0, 0) is at the upper left and covers the square from (0, 0) to (1, 1)."""

    center: tuple[float, float]  # the point of the map in the middle of the picture, m
    meters_per_pixel: float
    size: Size = (1280, 960)  # width and height in pixels
    rotation_rad: float = 0.0  # rotation of the map, counterclockwise; at 0 north is up

    def __post_init__(self) -> None:
        if not (np.isfinite(self.meters_per_pixel) and self.meters_per_pixel > 0):
            raise UsageError(f"meters_per_pixel is {self.meters_per_pixel}; it must be above 0")
        if not np.isfinite([*self.center, self.rotation_rad]).all():
            raise UsageError(
                f"the camera's center is {self.center} and its rotation {self.rotation_rad}; expected finite numbers"
            )
        if min(self.size) < 1:
            raise UsageError(f"the picture's size is {self.size[0]} x {self.size[1]} pixels; expected at least 1 x 1")

    @classmethod
    def fitting(
        cls, points: ArrayLike, size: Size = (1280, 960), margin: float = 0.04, rotation_rad: float = 0.0
    ) -> Camera:
        """Return the camera that shows all points (n, 2 or more), with a margin as a share of the picture."""
        found = np.asarray(points, np.float64).reshape(-1, np.asarray(points).shape[-1])[:, :2]
        if len(found) == 0:
            found = np.zeros((1, 2))
        turned = found @ _turn(rotation_rad).T
        low, high = turned.min(axis=0), turned.max(axis=0)
        extent = np.maximum(high - low, 40.0)  # a single point is shown with its surroundings
        scale = float((extent / np.array(size)).max() / (1.0 - 2.0 * margin))
        middle = _turn(-rotation_rad) @ (0.5 * (low + high))
        return cls((float(middle[0]), float(middle[1])), scale, size, rotation_rad)

    @classmethod
    def of_map(cls, points: ArrayLike, places: ArrayLike, size: Size = (1280, 960)) -> Camera:
        """Return the camera that shows a map and the agents on it.

        Args:
            points: Points of the map, (n, 2 or more).
            places: Positions of agents, (m, 2 or more). Positions far from the map are ignored, because trackers
                report false detections kilometers away.
        """
        ground, seen = _flat(points), _flat(places)
        middle = ground if len(ground) else np.median(seen, axis=0, keepdims=True) if len(seen) else np.zeros((1, 2))
        low, high = middle.min(axis=0) - NEAR_MAP_M, middle.max(axis=0) + NEAR_MAP_M
        is_near = ((seen >= low) & (seen <= high)).all(axis=1)
        return cls.fitting(np.concatenate([ground, seen[is_near]]), size)

    @property
    def transform(self) -> NDArray[np.float64]:
        """The affine transform from the map to pixels, (2, 3)."""
        turn = _turn(self.rotation_rad) / self.meters_per_pixel
        turn[1] *= -1.0  # rows count downwards
        shift = 0.5 * np.array(self.size) - turn @ np.array(self.center)
        return np.concatenate([turn, shift[:, None]], axis=1)

    def to_pixels(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the pixels of points of the map: (..., 2 or more) to (..., 2)."""
        transform = self.transform
        return np.asarray(points, np.float64)[..., :2] @ transform[:, :2].T + transform[:, 2]

    def to_map(self, pixels: ArrayLike) -> NDArray[np.float64]:
        """Return the points of the map at pixels: (..., 2) to (..., 2)."""
        transform = self.transform
        offsets = np.asarray(pixels, np.float64) - transform[:, 2]
        return offsets @ np.linalg.inv(transform[:, :2]).T

    def snapped(self, pixels: int = 1) -> Camera:
        """Return the camera moved slightly, so that the map's origin is at the corner of a square of some pixels.

        Pictures of snapped cameras with the same scale and rotation share their pixel grid, and so their backgrounds.
        """
        shift = self.transform[:, 2]
        center = self.to_map(0.5 * np.array(self.size) + shift - pixels * np.round(shift / pixels))
        return replace(self, center=(float(center[0]), float(center[1])))


def _flat(points: ArrayLike) -> NDArray[np.float64]:
    """Return the first two coordinates, (n, 2)."""
    found = np.asarray(points, np.float64)
    return found.reshape(-1, found.shape[-1])[:, :2] if found.size else np.zeros((0, 2))


def _turn(angle_rad: float) -> NDArray[np.float64]:
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([[cos, -sin], [sin, cos]])
