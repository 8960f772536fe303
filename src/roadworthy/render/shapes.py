"""Shapes to paint: colored polygons with holes in flat arrays, and the sketch that collects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.render.strokes import Polyline, dash, stroke_outline
from roadworthy.render.style import Color


class FillRule(IntEnum):
    """The winding numbers that count as inside."""

    NONZERO = 0
    EVEN_ODD = 1
    COUNTERCLOCKWISE = 2  # inside counterclockwise rings (in the shape's own frame, y up), minus clockwise rings


@dataclass(frozen=True, eq=False)
class Shapes:
    """S shapes of R rings of P points, painted in order. A ring is closed without repeating its first point."""

    points: NDArray[np.float64]  # (P, 2)
    ring_starts: NDArray[np.int64]  # (R + 1,) ring r has points[ring_starts[r]:ring_starts[r + 1]]
    shape_rings: NDArray[np.int64]  # (S + 1,) shape s has rings shape_rings[s]:shape_rings[s + 1]
    colors: NDArray[np.float32]  # (S, 4) red, green, blue in 0..255, opacity in 0..1
    rules: NDArray[np.uint8]  # (S,) FillRule


class Sketch:
    """Collects shapes in any coordinate frame; `shapes()` returns them for painting."""

    def __init__(self) -> None:
        self._points: list[NDArray[np.float64]] = []
        self._ring_lengths: list[NDArray[np.int64]] = []
        self._ring_counts: list[NDArray[np.int64]] = []
        self._colors: list[NDArray[np.float32]] = []
        self._rules: list[NDArray[np.uint8]] = []

    def polygon(
        self, rings: Sequence[Polyline], color: Color, alpha: float = 1.0, rule: FillRule = FillRule.NONZERO
    ) -> None:
        """Add a shape made of rings (n, 2): an outline and its holes, or several outlines."""
        rings = [ring for ring in rings if len(ring) >= 3]
        if not rings:
            return
        self._points.extend(np.asarray(ring, np.float64) for ring in rings)
        self._ring_lengths.append(np.array([len(ring) for ring in rings], np.int64))
        self._ring_counts.append(np.array([len(rings)], np.int64))
        self._colors.append(np.array([(*color, alpha)], np.float32))
        self._rules.append(np.array([rule], np.uint8))

    def polygons(self, points: NDArray[np.float64], colors: ArrayLike, alphas: ArrayLike = 1.0) -> None:
        """Add n shapes of k points, (n, k, 2); colors are (3,) or (n, 3), alphas a number or (n,)."""
        count, corners = points.shape[:2]
        if count == 0:
            return
        rgba = np.empty((count, 4), np.float32)
        rgba[:, :3] = colors
        rgba[:, 3] = alphas
        self._points.append(np.asarray(points, np.float64).reshape(-1, 2))
        self._ring_lengths.append(np.full(count, corners, np.int64))
        self._ring_counts.append(np.ones(count, np.int64))
        self._colors.append(rgba)
        self._rules.append(np.full(count, FillRule.NONZERO, np.uint8))

    def stroke(
        self,
        line: Polyline,
        width: float,
        color: Color,
        alpha: float = 1.0,
        dashes: tuple[float, float] | None = None,
        is_closed: bool = False,
    ) -> None:
        """Add a line, solid or dashed (length of dash, length of gap)."""
        if dashes is None:
            self.polygon(stroke_outline(line, width, is_closed), color, alpha)
            return
        for piece in dash(line, *dashes):
            self.polygon(stroke_outline(piece, width), color, alpha)

    def shapes(self) -> Shapes:
        if not self._points:
            zero = np.zeros(1, np.int64)
            return Shapes(np.zeros((0, 2)), zero, zero, np.zeros((0, 4), np.float32), np.zeros(0, np.uint8))
        return Shapes(
            np.concatenate(self._points),
            _starts(self._ring_lengths),
            _starts(self._ring_counts),
            np.concatenate(self._colors),
            np.concatenate(self._rules),
        )


def _starts(lengths: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    every = np.concatenate(lengths)
    starts = np.zeros(len(every) + 1, np.int64)
    np.cumsum(every, out=starts[1:])
    return starts
