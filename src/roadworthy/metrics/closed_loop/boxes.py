"""Pairs of boxes: whether they touch, and the time span in which they would at constant velocities."""

from __future__ import annotations

import numpy as np

from roadworthy.boxes import Boxes, gap_rates, separation, touching
from roadworthy.metrics.closed_loop.motion import Array, Body, Flags, Others


def touches(ego: Body, others: Others) -> Flags:
    """Return where the ego's box shares a point with another agent's box, (F, A)."""
    return touching(_column(ego), others.boxes) & others.present


def contact_interval(ego: Body, others: Others) -> tuple[Array, Array]:
    """Return when boxes would begin and end to touch if all agents kept speed and heading, (F, A) each, in s.

    The beginning is after the end where they would never touch, in the past or future. Speeds are magnitudes.
    """
    own = _column(ego)
    (gaps, reaches), rates = separation(own, others.boxes), gap_rates(own, others.boxes)
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


def _column(ego: Body) -> Boxes:
    """Return the ego's boxes as columns, (F, 1), against the (F, A) boxes of others."""
    return Boxes(*(np.asarray(values)[..., None] for values in ego.boxes))
