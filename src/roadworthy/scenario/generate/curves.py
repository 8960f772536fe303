"""Curves of piecewise linear curvature: lines, arcs and clothoids, joined with continuous heading and curvature.

A curve is a start pose and pieces of (length, curvature at start, curvature at end). A lane is a parallel of such a
curve at a constant offset, left positive: its heading is that of the curve, its length is `length - offset * turning`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel

Array = NDArray[np.float64]

# Eight-point Gauss-Legendre rule on [0, 1]: exact to about 1e-12 for pieces that turn by less than a right angle.
_NODES, _WEIGHTS = (a.copy() for a in np.polynomial.legendre.leggauss(8))
_NODES, _WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0


@dataclass(frozen=True)
class Pose:
    """A position, a heading and the curvature of the path there."""

    x: float
    y: float
    heading: float
    curvature: float = 0.0

    def shifted(self, left: float = 0.0, ahead: float = 0.0) -> Pose:
        """Return the pose shifted left and ahead, on a straight continuation; the curvature is that of the parallel."""
        cos, sin = np.cos(self.heading), np.sin(self.heading)
        return Pose(
            self.x + ahead * cos - left * sin,
            self.y + ahead * sin + left * cos,
            self.heading,
            self.curvature / (1.0 - left * self.curvature),
        )

    def turned_back(self) -> Pose:
        """Return the same place in the opposite direction."""
        return Pose(self.x, self.y, self.heading + np.pi, -self.curvature)


@dataclass(frozen=True, eq=False)
class Curve:
    """A start pose and clothoid pieces."""

    start: Pose
    lengths: Array  # (n,)
    curvatures: Array  # (n, 2) at each piece's start and end

    @property
    def length(self) -> float:
        return float(self.lengths.sum())

    @property
    def turning(self) -> float:
        """Return rad from the first heading to the last, left positive."""
        return float((self.lengths * self.curvatures.mean(axis=1)).sum())

    @property
    def sharpest(self) -> float:
        """Return the largest absolute curvature."""
        return float(np.abs(self.curvatures).max())

    def at(self, station: float) -> Pose:
        """Return the pose at a distance from the start."""
        x, y, heading, curvature = self.sample(np.array([station]))
        return Pose(float(x[0]), float(y[0]), float(heading[0]), float(curvature[0]))

    @property
    def end(self) -> Pose:
        return self.at(self.length)

    def sample(self, stations: Array) -> tuple[Array, Array, Array, Array]:
        """Return x, y, heading (not wrapped) and curvature at each station."""
        start = np.array([self.start.x, self.start.y, self.start.heading])
        return _sample(start, self.lengths, self.curvatures, np.asarray(stations, np.float64))

    def parallel(self, offset: float, spacing: float, first: float = 0.0, last: float | None = None) -> Parallel:
        """Return the parallel at an offset between two stations, sampled evenly along its own length."""
        last = self.length if last is None else last
        start = np.array([self.start.x, self.start.y, self.start.heading])
        columns = _parallel(start, self.lengths, self.curvatures, offset, spacing, first, last)
        return Parallel(*columns)

    def reversed(self) -> Curve:
        """Return the same curve in the opposite direction."""
        return Curve(self.end.turned_back(), self.lengths[::-1].copy(), -self.curvatures[::-1, ::-1].copy())

    def then(self, other: Curve) -> Curve:
        """Return this curve followed by the pieces of another."""
        return Curve(
            self.start,
            np.concatenate([self.lengths, other.lengths]),
            np.concatenate([self.curvatures, other.curvatures]),
        )


@dataclass(frozen=True, eq=False)
class Parallel:
    """An evenly sampled parallel of a curve: n samples, with the first and last at its ends."""

    length: float
    stations: Array  # (n,) the station of each sample on the curve
    x: Array
    y: Array
    heading: Array
    curvature: Array


def line(start: Pose, length: float) -> Curve:
    """Return a straight line."""
    return Curve(start, np.array([length]), np.zeros((1, 2)))


def bend(start: Pose, turning: float, radius: float, ramp: float = 1.0 / 3.0) -> Curve:
    """Return a turn by an angle: clothoid, arc of the radius, clothoid; `ramp` is the length share of each clothoid."""
    length = abs(turning) * radius / (1.0 - ramp)
    peak = np.sign(turning) / radius
    lengths = np.array([ramp, 1.0 - 2.0 * ramp, ramp]) * length
    return Curve(start, lengths, np.array([[0.0, peak], [peak, peak], [peak, 0.0]]))


def connect(start: Pose, end: Pose) -> Curve | None:
    """Return three clothoids of equal length that join two poses with their curvatures, None if none were found."""
    found, lengths, curvatures = _connect(
        np.array([start.x, start.y, start.heading, start.curvature]),
        np.array([end.x, end.y, end.heading, end.curvature]),
    )
    return Curve(start, lengths, curvatures) if found else None


@kernel
def _advance(x, y, heading, k0, k1, piece, s):
    """Return the pose after s of a piece, whose curvature changes linearly from k0 to k1 over its length."""
    slope = (k1 - k0) / piece
    dx = 0.0
    dy = 0.0
    for i in range(8):
        t = _NODES[i] * s
        angle = heading + k0 * t + 0.5 * slope * t * t
        dx += _WEIGHTS[i] * np.cos(angle)
        dy += _WEIGHTS[i] * np.sin(angle)
    return x + s * dx, y + s * dy, heading + k0 * s + 0.5 * slope * s * s, k0 + slope * s


@kernel
def _sample(start, lengths, curvatures, stations):
    n = len(stations)
    x, y, heading, curvature = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    pieces = len(lengths)
    begins = np.empty((pieces + 1, 3))
    begins[0] = start
    offsets = np.zeros(pieces + 1)
    for p in range(pieces):
        bx, by, bh, _ = _advance(
            begins[p, 0], begins[p, 1], begins[p, 2], curvatures[p, 0], curvatures[p, 1], lengths[p], lengths[p]
        )
        begins[p + 1, 0], begins[p + 1, 1], begins[p + 1, 2] = bx, by, bh
        offsets[p + 1] = offsets[p] + lengths[p]
    for i in range(n):
        p = 0
        while p + 1 < pieces and stations[i] > offsets[p + 1]:
            p += 1
        x[i], y[i], heading[i], curvature[i] = _advance(
            begins[p, 0],
            begins[p, 1],
            begins[p, 2],
            curvatures[p, 0],
            curvatures[p, 1],
            lengths[p],
            stations[i] - offsets[p],
        )
    return x, y, heading, curvature


@kernel
def _parallel(start, lengths, curvatures, offset, spacing, first, last):
    bounds = np.array([first, last])
    _, _, turned, _ = _sample(start, lengths, curvatures, bounds)
    own_length = (last - first) - offset * (turned[1] - turned[0])
    n = max(int(np.ceil(own_length / spacing)), 1) + 1
    own = np.linspace(0.0, own_length, n)
    stations = first + own * ((last - first) / own_length)
    for _ in range(3):  # Newton: own length at station u is (u - first) - offset * (turning since first)
        _, _, heading, curvature = _sample(start, lengths, curvatures, stations)
        error = (stations - first) - offset * (heading - turned[0]) - own
        stations = stations - error / (1.0 - offset * curvature)
    stations[0] = first
    stations[n - 1] = last
    x, y, heading, curvature = _sample(start, lengths, curvatures, stations)
    x = x - offset * np.sin(heading)
    y = y + offset * np.cos(heading)
    return own_length, stations, x, y, heading, curvature / (1.0 - offset * curvature)


@kernel
def _reach(k0, k1, k2, k3, length):
    """Return where three clothoids of a third of the length each end, starting at the origin along x."""
    third = length / 3.0
    x, y, h, _ = _advance(0.0, 0.0, 0.0, k0, k1, third, third)
    x, y, h, _ = _advance(x, y, h, k1, k2, third, third)
    x, y, h, _ = _advance(x, y, h, k2, k3, third, third)
    return x, y


@kernel
def _connect(start, end):
    dx, dy = end[0] - start[0], end[1] - start[1]
    cos, sin = np.cos(start[2]), np.sin(start[2])
    goal_x, goal_y = cos * dx + sin * dy, -sin * dx + cos * dy
    turning = (end[2] - start[2] + np.pi) % (2.0 * np.pi) - np.pi
    k0, k3 = start[3], end[3]
    chord = np.hypot(goal_x, goal_y)
    half = 0.5 * turning
    length = chord * (half / np.sin(half) if abs(half) > 1e-6 else 1.0)
    skew = np.arctan2(goal_y, goal_x) - half  # how much the chord differs from that of a symmetric turn
    k1 = 0.5 * (3.0 * turning / length - 0.5 * (k0 + k3)) + 6.0 * skew / length
    found = False
    # The heading determines k2, given k1 and the length; Newton's method finds these two.
    for _ in range(40):
        k2 = 3.0 * turning / length - k1 - 0.5 * (k0 + k3)
        x, y = _reach(k0, k1, k2, k3, length)
        ex, ey = x - goal_x, y - goal_y
        if ex * ex + ey * ey < 1e-20 * (1.0 + chord * chord):
            found = True
            break
        dk, dl = 1e-7, 1e-6 * length
        x1, y1 = _reach(k0, k1 + dk, k2 - dk, k3, length)
        longer = length + dl
        x2, y2 = _reach(k0, k1, 3.0 * turning / longer - k1 - 0.5 * (k0 + k3), k3, longer)
        a, b, c, d = (x1 - x) / dk, (x2 - x) / dl, (y1 - y) / dk, (y2 - y) / dl
        determinant = a * d - b * c
        if abs(determinant) < 1e-12:
            break
        step_k = (d * ex - b * ey) / determinant
        step_l = (a * ey - c * ex) / determinant
        scale = min(1.0, 0.3 * length / (abs(step_l) + 1e-9), 2.0 / (length * abs(step_k) + 1e-9))
        k1 -= scale * step_k
        length -= scale * step_l
    k2 = 3.0 * turning / length - k1 - 0.5 * (k0 + k3)
    found = found and length < 4.0 * chord + 1.0
    lengths = np.full(3, length / 3.0)
    curvatures = np.array([[k0, k1], [k1, k2], [k2, k3]])
    return found, lengths, curvatures
