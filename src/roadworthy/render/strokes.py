"""The geometry of lines: outlines with mitred joins, dashes, parallels, and the outlines of boxes, discs and arrows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Polyline = NDArray[np.float64]

MITRE_LIMIT = 2.0  # a join reaches at most this many half widths out, so that a hairpin grows no spike


def without_repeats(line: ArrayLike, is_closed: bool = False) -> Polyline:
    """The points (n, 2) of a line, less those that repeat the one before (and, if closed, the first)."""
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
    """(n, 2) at each point, the step to the left that keeps a parallel line at distance 1 (mitred joins)."""
    ahead = np.roll(points, -1, axis=0) - points if is_closed else np.diff(points, axis=0)
    normals = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) / np.hypot(ahead[:, 0], ahead[:, 1])[:, None]
    if is_closed:
        before, after = np.roll(normals, 1, axis=0), normals
    else:
        before = np.concatenate([normals[:1], normals])
        after = np.concatenate([normals, normals[-1:]])
    mitre = (before + after) / np.maximum(1.0 + np.sum(before * after, axis=1), 1e-3)[:, None]
    length = np.hypot(mitre[:, 0], mitre[:, 1])
    mitre *= np.minimum(1.0, MITRE_LIMIT / np.maximum(length, 1e-9))[:, None]
    return mitre


def parallel(line: ArrayLike, distance: float, is_closed: bool = False) -> Polyline:
    """The line beside a line, at a distance to its left (negative: to its right)."""
    points = without_repeats(line, is_closed)
    return points + distance * side_vectors(points, is_closed) if len(points) > 1 else points


def stroke_outline(line: ArrayLike, width: float, is_closed: bool = False) -> list[Polyline]:
    """The rings around a line of a width; a closed line has an outer and an inner one. Ends are cut square."""
    points = without_repeats(line, is_closed)
    if len(points) < 2:
        return []
    side = 0.5 * width * side_vectors(points, is_closed)
    left, right = points + side, (points - side)[::-1]
    return [left, right] if is_closed else [np.concatenate([left, right])]


def distances_along(points: Polyline) -> NDArray[np.float64]:
    """(n,) the way from the first point to each point."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    return np.concatenate([[0.0], np.cumsum(steps)])


def cut_out(points: Polyline, along: NDArray[np.float64], start: float, stop: float) -> Polyline:
    """The part of a line between two distances along it."""
    inner = (along > start) & (along < stop)
    ends = np.stack([np.interp([start, stop], along, points[:, axis]) for axis in (0, 1)], axis=1)
    return np.concatenate([ends[:1], points[inner], ends[1:]])


def dash(line: ArrayLike, on: float, off: float) -> list[Polyline]:
    """The painted pieces of a dashed line.

    Half a gap comes first, so that dashes of consecutive lines keep apart; a stub of under half a dash at the end is
    left out.
    """
    points = without_repeats(line)
    if len(points) < 2:
        return []
    along = distances_along(points)
    first = np.arange(0.5 * off, along[-1] - 0.5 * on, on + off)
    return [cut_out(points, along, start, min(start + on, along[-1])) for start in first.tolist()]


def pose_along(points: Polyline, along: NDArray[np.float64], distance: float) -> tuple[Polyline, float]:
    """Position (2,) and heading at a distance along a line."""
    segment = int(np.clip(np.searchsorted(along, distance, side="right") - 1, 0, len(points) - 2))
    ahead = points[segment + 1] - points[segment]
    fraction = (distance - along[segment]) / (along[segment + 1] - along[segment])
    return points[segment] + fraction * ahead, float(np.arctan2(ahead[1], ahead[0]))


def placed(outline: ArrayLike, positions: ArrayLike, headings: ArrayLike) -> Polyline:
    """Outlines (n, k, 2) or one (k, 2), given in frames with x ahead, moved to n positions with n headings."""
    points = np.asarray(outline, np.float64)
    heading = np.atleast_1d(np.asarray(headings, np.float64))
    cos, sin = np.cos(heading)[:, None], np.sin(heading)[:, None]
    x, y = points[..., 0], points[..., 1]
    turned = np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
    return turned + np.atleast_2d(np.asarray(positions, np.float64))[:, None, :]


def rounded_boxes(
    lengths: ArrayLike, widths: ArrayLike, radii: ArrayLike, corner_points: int = 5
) -> NDArray[np.float64]:
    """(n, 4 * corner_points, 2) outlines of boxes with round corners, centred, length along x."""
    half = 0.5 * np.stack(np.broadcast_arrays(np.asarray(lengths, np.float64), np.asarray(widths, np.float64)), axis=-1)
    half = np.atleast_2d(half)
    radius = np.minimum(np.broadcast_to(np.asarray(radii, np.float64), half.shape[:1]), half.min(axis=1))
    signs, arcs = _corners(corner_points)
    return (half - radius[:, None])[:, None, :] * signs + radius[:, None, None] * arcs


@lru_cache(maxsize=8)
def _corners(points: int) -> tuple[Polyline, Polyline]:
    """(4 * points, 2) the quadrant of each point of four round corners, and its place on a circle."""
    quarter = np.linspace(0.0, 0.5 * np.pi, points)
    angles = (quarter[None, :] + np.arange(4)[:, None] * 0.5 * np.pi).reshape(-1)
    signs = np.repeat([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], points, axis=0)
    return signs, np.stack([np.cos(angles), np.sin(angles)], axis=1)


def disc(radius: float, points: int = 24) -> Polyline:
    """(points, 2) a circle around the origin."""
    angles = np.arange(points) * (2 * np.pi / points)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def arrow(length: float, thickness: float, head: float) -> Polyline:
    """(7, 2) an arrow along x, centred: its shaft's thickness, its head's length and half width."""
    tip, neck, half = 0.5 * length, 0.5 * length - head, 0.5 * thickness
    return np.array(
        [(-tip, -half), (neck, -half), (neck, -head), (tip, 0.0), (neck, head), (neck, half), (-tip, half)], np.float64
    )
