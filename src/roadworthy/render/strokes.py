"""Geometry of lines: outlines with mitered joins, dashes, parallels, and outlines of boxes, discs and arrows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Polyline = NDArray[np.float64]

MITER_LIMIT = 2.0  # the maximum length of a join in half widths, so that hairpins have no spikes


def without_repeats(line: ArrayLike, is_closed: bool = False) -> Polyline:
    """Return the points of a line, (n, 2), without repetitions (if it is closed, of the first point too)."""
    points = np.asarray(line, np.float64)[:, :2]
    if len(points) < 2:
        return points
    keep = np.ones(len(points), bool)
    keep[1:] = np.abs(np.diff(points, axis=0)).max(axis=1) > 1e-6
    points = points[keep]
    if is_closed and len(points) > 1 and np.abs(points[0] - points[-1]).max() <= 1e-6:
        points = points[:-1]
    return points


def side_vectors(points: Polyline, is_closed: bool = False) -> Polyline:
    """Return the offset to the left at each point that gives a parallel line at distance 1, (n, 2) (mitered)."""
    ahead = np.roll(points, -1, axis=0) - points if is_closed else np.diff(points, axis=0)
    normals = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) / np.hypot(ahead[:, 0], ahead[:, 1])[:, None]
    if is_closed:
        before, after = np.roll(normals, 1, axis=0), normals
    else:
        before = np.concatenate([normals[:1], normals])
        after = np.concatenate([normals, normals[-1:]])
    miter = (before + after) / np.maximum(1.0 + np.sum(before * after, axis=1), 1e-3)[:, None]
    length = np.hypot(miter[:, 0], miter[:, 1])
    miter *= np.minimum(1.0, MITER_LIMIT / np.maximum(length, 1e-9))[:, None]
    return miter


def parallel(line: ArrayLike, distance: float, is_closed: bool = False) -> Polyline:
    """Return the parallel line at a distance to the left (negative: to the right)."""
    points = without_repeats(line, is_closed)
    return points + distance * side_vectors(points, is_closed) if len(points) > 1 else points


def stroke_outline(line: ArrayLike, width: float, is_closed: bool = False) -> list[Polyline]:
    """Return the outline of a line as rings; a closed line has an outer and an inner ring. Ends are square."""
    points = without_repeats(line, is_closed)
    if len(points) < 2:
        return []
    side = 0.5 * width * side_vectors(points, is_closed)
    left, right = points + side, (points - side)[::-1]
    return [left, right] if is_closed else [np.concatenate([left, right])]


def distances_along(points: Polyline) -> NDArray[np.float64]:
    """Return the arc length from the first point to each point, (n,)."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    return np.concatenate([[0.0], np.cumsum(steps)])


def cut_out(points: Polyline, along: NDArray[np.float64], start: float, stop: float) -> Polyline:
    """Return the part of a line between two arc lengths."""
    inner = (along > start) & (along < stop)
    ends = np.stack([np.interp([start, stop], along, points[:, axis]) for axis in (0, 1)], axis=1)
    return np.concatenate([ends[:1], points[inner], ends[1:]])


def dash(line: ArrayLike, on: float, off: float) -> list[Polyline]:
    """Return the dashes of a line.

    The line starts with half a gap, so that dashes of consecutive lines stay apart; a dash of less than half its length
    at the end is omitted.
    """
    points = without_repeats(line)
    if len(points) < 2:
        return []
    along = distances_along(points)
    first = np.arange(0.5 * off, along[-1] - 0.5 * on, on + off)
    return [cut_out(points, along, start, min(start + on, along[-1])) for start in first.tolist()]


def pose_along(points: Polyline, along: NDArray[np.float64], distance: float) -> tuple[Polyline, float]:
    """Return the position (2,) and the heading at an arc length."""
    segment = int(np.clip(np.searchsorted(along, distance, side="right") - 1, 0, len(points) - 2))
    ahead = points[segment + 1] - points[segment]
    fraction = (distance - along[segment]) / (along[segment + 1] - along[segment])
    return points[segment] + fraction * ahead, float(np.arctan2(ahead[1], ahead[0]))


def placed(outline: ArrayLike, positions: ArrayLike, headings: ArrayLike) -> Polyline:
    """Transform outlines (n, k, 2), or one outline (k, 2), with x ahead, to n positions and headings."""
    points = np.asarray(outline, np.float64)
    heading = np.atleast_1d(np.asarray(headings, np.float64))
    cos, sin = np.cos(heading)[:, None], np.sin(heading)[:, None]
    x, y = points[..., 0], points[..., 1]
    turned = np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
    return turned + np.atleast_2d(np.asarray(positions, np.float64))[:, None, :]


def rounded_boxes(
    lengths: ArrayLike, widths: ArrayLike, radii: ArrayLike, corner_points: int = 5
) -> NDArray[np.float64]:
    """Return the outlines of centered boxes with round corners and the length along x, (n, 4 * corner_points, 2)."""
    half = 0.5 * np.stack(np.broadcast_arrays(np.asarray(lengths, np.float64), np.asarray(widths, np.float64)), axis=-1)
    half = np.atleast_2d(half)
    radius = np.minimum(np.broadcast_to(np.asarray(radii, np.float64), half.shape[:1]), half.min(axis=1))
    signs, arcs = _corners(corner_points)
    return (half - radius[:, None])[:, None, :] * signs + radius[:, None, None] * arcs


@lru_cache(maxsize=8)
def _corners(points: int) -> tuple[Polyline, Polyline]:
    """Return the quadrant of each point of four round corners, and its place on a circle, (4 * points, 2) each."""
    quarter = np.linspace(0.0, 0.5 * np.pi, points)
    angles = (quarter[None, :] + np.arange(4)[:, None] * 0.5 * np.pi).reshape(-1)
    signs = np.repeat([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], points, axis=0)
    return signs, np.stack([np.cos(angles), np.sin(angles)], axis=1)


def disc(radius: float, points: int = 24) -> Polyline:
    """Return a circle around the origin, (points, 2)."""
    angles = np.arange(points) * (2 * np.pi / points)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def arrow(length: float, thickness: float, head: float) -> Polyline:
    """Return a centered arrow along x, (7, 2); `head` is the length and half the width of its head."""
    tip, neck, half = 0.5 * length, 0.5 * length - head, 0.5 * thickness
    return np.array(
        [(-tip, -half), (neck, -half), (neck, -head), (tip, 0.0), (neck, head), (neck, half), (-tip, half)], np.float64
    )
