"""Add steps to the splines of a surface, where success jumps.

A spline of eight pieces can't follow a jump. Where the best fit rises about as fast as splines can, the place of a jump
is estimated by least squares, with the confidence interval of a threshold (Hansen 2000), and a step there and its
products with the other factors become functions of the surface.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from roadworthy.sensitivity.basis import Block, SplineBasis, partial_functions
from roadworthy.sensitivity.factors import Categorical, Factor

Array = NDArray[np.float64]

WINDOW = 0.15  # units on either side of the range that holds the step, in which rows are compared
MARGIN = 0.05  # units beyond that range in which the step is sought, because slopes of splines are not where steps are
FEWEST = 6  # rows in the window on either side of a step
THRESHOLD = 10.59  # of the likelihood ratio: the 99% quantile of Hansen 2000, table I
WIDTH = 0.008  # units over which a step rises
STEP_SPREAD, PRODUCT_SPREAD = 1.0, 0.5  # the prior medians of scales, on the logit scale


@dataclass(frozen=True)
class Step:
    """The place of a step along one factor, in units, with its interval."""

    factor: int
    place: float
    low: float
    high: float


@dataclass(frozen=True)
class SteppedBasis:
    """Splines, steps, and products of steps with other factors."""

    splines: SplineBasis
    steps: tuple[Step, ...]
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, splines: SplineBasis, steps: tuple[Step, ...]) -> SteppedBasis:
        """Lay out the columns of steps after those of the splines."""
        blocks = list(splines.blocks)
        column = splines.column_count
        stepped = {step.factor for step in steps}
        for step in steps:
            blocks.append(Block((step.factor,), slice(column, column + 1), STEP_SPREAD))
            column += 1
            for other, factor in enumerate(splines.factors):
                if other != step.factor:
                    width = _product_width(splines, factor, other in stepped)
                    blocks.append(Block((step.factor, other), slice(column, column + width), PRODUCT_SPREAD))
                    column += width
        return cls(splines, steps, tuple(blocks))

    def features(self, units: Array) -> Array:
        """Return the features of units: (n, factors) to (n, columns)."""
        steps = {step.factor: _rise(units[:, step.factor], step.place) for step in self.steps}
        columns = [self.splines.features(units)]
        for number, rise in steps.items():
            columns.append(rise[:, None])
            for other, factor in enumerate(self.splines.factors):
                if other != number:
                    functions = [partial_functions(factor, units[:, other], self.splines.order)]
                    if other in steps:
                        functions.append(steps[other][:, None])
                    columns.append(rise[:, None] * np.column_stack(functions))
        return np.column_stack(columns)


def locate(units: Array, residuals: Array, factors: tuple[Factor, ...], number: int, low: float, high: float) -> Step:
    """Find the step along one factor between two units, by least squares of residuals given the other factors.

    Args:
        units: The units of rows, (n, factors).
        residuals: What the other factors do not explain of the outcome, (n,).
        factors: The factors.
        number: The factor along which there is a step.
        low: The unit at which the steepest slope of the best fit begins.
        high: The unit at which it ends.
    """
    inside = (units[:, number] >= low - WINDOW) & (units[:, number] <= high + WINDOW)
    along, outcome = units[inside, number], residuals[inside]
    others = [
        partial_functions(factor, units[inside, other], 1) for other, factor in enumerate(factors) if other != number
    ]
    beside = np.column_stack([np.ones(len(along)), *others])
    ordered = np.sort(along)
    between = 0.5 * (ordered[1:] + ordered[:-1])[FEWEST - 1 : -(FEWEST - 1)]
    places = between[(between >= low - MARGIN) & (between <= high + MARGIN)]
    if not len(places):
        return Step(number, 0.5 * (low + high), low, high)
    left = np.array([_squared_error(beside, along, outcome, place) for place in places])
    best = int(left.argmin())
    likely = np.flatnonzero(len(along) * (left - left[best]) / max(left[best], 1e-12) <= THRESHOLD)
    # Between two rows a step can be anywhere.
    before, after = np.searchsorted(ordered, places[likely[0]]) - 1, np.searchsorted(ordered, places[likely[-1]])
    return Step(number, float(places[best]), float(ordered[before]), float(ordered[after]))


def _squared_error(beside: Array, along: Array, outcome: Array, place: float) -> float:
    """Return the squared error of lines along the factor, and levels on either side of a place."""
    above = (along > place).astype(np.float64)[:, None]
    features = np.column_stack([beside, above * beside, along - place])
    weights = np.linalg.lstsq(features, outcome, rcond=None)[0]
    return float(np.square(outcome - features @ weights).sum())


def _rise(units: Array, place: float) -> Array:
    """Return a step from -1 to 1."""
    rise: Array = 2.0 * ndtr((units - place) / WIDTH) - 1.0
    return rise


def _product_width(splines: SplineBasis, factor: Factor, is_stepped: bool) -> int:
    width = len(factor.choices) - 1 if isinstance(factor, Categorical) else splines.order
    return width + is_stepped
