"""Pairs of rectangles: whether they touch, and from when until when they would at constant velocities."""

from __future__ import annotations

import numpy as np

from roadworthy.metrics.closed_loop.motion import Array, Body, Flags, Others


def touches(ego: Body, others: Others) -> Flags:
    """Return where the ego's box shares a point with an other's, (F, A)."""
    gaps, reaches, _ = _separation(ego, others)
    touching = others.present.copy()
    for gap, reach in zip(gaps, reaches, strict=True):
        touching &= np.abs(gap) <= reach
    return touching


def contact_interval(ego: Body, others: Others) -> tuple[Array, Array]:
    """Return from when until when boxes would touch if everyone kept speed and heading, (F, A) each, in s.

    The first is above the second where they never would, in the past or in the future. Speeds are magnitudes.
    """
    gaps, reaches, rates = _separation(ego, others)
    begin, end = np.full_like(others.x, -np.inf), np.full_like(others.x, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for gap, reach, rate in zip(gaps, reaches, rates, strict=True):
            # |gap + rate * t| <= reach along this axis
            is_moving = rate != 0.0
            inverse = 1.0 / np.where(is_moving, rate, 1.0)
            low, high = (-reach - gap) * inverse, (reach - gap) * inverse
            is_apart = ~is_moving & (np.abs(gap) > reach)
            begin = np.maximum(begin, np.where(is_moving, np.minimum(low, high), np.where(is_apart, np.inf, -np.inf)))
            end = np.minimum(end, np.where(is_moving, np.maximum(low, high), np.inf))
    return begin, end


def _separation(ego: Body, others: Others) -> tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]:
    """Return, for the two sides of each box, how far the middles lie apart along it, the distance at which the boxes
    still touch, and how fast the middles move apart along it; (F, A) each.
    """
    dx, dy = others.x - ego.x[:, None], others.y - ego.y[:, None]
    cos, sin = ego.cos[:, None], ego.sin[:, None]
    own, other = np.abs(ego.speed)[:, None], np.abs(others.speed)
    vx, vy = other * others.cos - own * cos, other * others.sin - own * sin
    turn_cos, turn_sin = np.abs(cos * others.cos + sin * others.sin), np.abs(cos * others.sin - sin * others.cos)
    half_long, half_wide = 0.5 * ego.length, 0.5 * ego.width
    other_long, other_wide = 0.5 * others.length, 0.5 * others.width
    axes = ((cos, sin), (-sin, cos), (others.cos, others.sin), (-others.sin, others.cos))
    gaps = tuple(dx * ax + dy * ay for ax, ay in axes)
    rates = tuple(vx * ax + vy * ay for ax, ay in axes)
    reaches = (
        half_long + other_long * turn_cos + other_wide * turn_sin,
        half_wide + other_long * turn_sin + other_wide * turn_cos,
        other_long + half_long * turn_cos + half_wide * turn_sin,
        other_wide + half_long * turn_sin + half_wide * turn_cos,
    )
    return gaps, reaches, rates
