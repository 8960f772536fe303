"""The basis functions of a spline surface: main effects of every factor, and products of pairs.

A continuous factor has a straight line and cubic splines, sorted from smooth to wiggly; a categorical factor has
contrasts between its choices. All are orthonormal for uniform units, so that main effects and interactions separate as
in an analysis of variance. Functions come in blocks; the fit estimates the scale of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import eigh, helmert

from roadworthy.sensitivity.factors import Categorical, Factor

Array = NDArray[np.float64]

SPLINE_PIECES = 8
CURVE_SHARE = 0.5  # the strength of the first curve relative to the line, within an interaction
PAIR_ORDERS = ((10, 4), (15, 3), (45, 2))  # (number of pairs at most, functions of each continuous factor)

# The prior medians of scales, on the logit scale, for functions of variance 1. A line of scale 1 is a probability that
# goes from 15% to 85% over the range. Curves are often weaker, and most interactions are close to zero.
LINE_SPREAD, CURVE_SPREAD, CHOICE_SPREAD, PAIR_SPREAD = 1.0, 0.5, 0.5, 0.15


@dataclass(frozen=True)
class Block:
    """Columns that share a scale, and their factors."""

    factors: tuple[int, ...]
    columns: slice
    spread: float


class Basis(Protocol):
    """Features of units: column 0 is constant, the other columns form blocks."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks in the order of their columns."""

    def features(self, units: Array) -> Array:
        """Return the features of units: (n, factors) to (n, columns)."""


@dataclass(frozen=True)
class SplineBasis:
    """Main effects of factors and products of pairs."""

    factors: tuple[Factor, ...]
    pairs: tuple[tuple[int, int], ...]
    order: int
    blocks: tuple[Block, ...]
    column_count: int

    @classmethod
    def of(cls, factors: Sequence[Factor], has_pairs: bool = True) -> SplineBasis:
        """Lay out the columns; with more pairs, each pair has fewer functions."""
        pairs = tuple(combinations(range(len(factors)), 2)) if has_pairs else ()
        order = next((order for most, order in PAIR_ORDERS if len(pairs) <= most), 1)
        blocks: list[Block] = []
        column = 1

        def add(owners: tuple[int, ...], size: int, spread: float) -> None:
            nonlocal column
            blocks.append(Block(owners, slice(column, column + size), spread))
            column += size

        for number, factor in enumerate(factors):
            if isinstance(factor, Categorical):
                add((number,), len(factor.choices) - 1, CHOICE_SPREAD)
            else:
                add((number,), 1, LINE_SPREAD)
                add((number,), len(_splines().strengths), CURVE_SPREAD)
        for first, second in pairs:
            add((first, second), _width(factors[first], order) * _width(factors[second], order), PAIR_SPREAD)
        return cls(tuple(factors), pairs, order, tuple(blocks), column)

    def features(self, units: Array) -> Array:
        """Return the features of units: (n, factors) to (n, columns)."""
        out = np.empty((len(units), self.column_count))
        out[:, 0] = 1.0
        partial = []
        column = 1
        for number, factor in enumerate(self.factors):
            values = main_functions(factor, units[:, number])
            out[:, column : column + values.shape[1]] = values
            column += values.shape[1]
            partial.append(_for_products(factor, values, self.order))
        for first, second in self.pairs:
            product = partial[first][:, :, None] * partial[second][:, None, :]
            width = product.shape[1] * product.shape[2]
            out[:, column : column + width] = product.reshape(len(units), width)
            column += width
        return out


def main_functions(factor: Factor, units: Array) -> Array:
    """Return the functions of one factor, (n, functions), each with mean 0 over uniform units."""
    if isinstance(factor, Categorical):
        return contrasts(len(factor.choices))[units.astype(np.intp)]
    splines = _splines()
    line = np.sqrt(12.0) * (units - 0.5)
    return np.column_stack([line, splines.curves(units) * splines.strengths])


def partial_functions(factor: Factor, units: Array, order: int) -> Array:
    """Return the functions of one factor that occur in products, (n, functions)."""
    return _for_products(factor, main_functions(factor, units), order)


def _for_products(factor: Factor, values: Array, order: int) -> Array:
    return values[:, : _width(factor, order)] * _pair_strengths(factor, order)


@lru_cache
def contrasts(choices: int) -> Array:
    """Return contrasts that are orthonormal over equally frequent choices, (choices, choices - 1)."""
    matrix: Array = helmert(choices).T * np.sqrt(choices / max(choices - 1, 1))
    return matrix


@dataclass(frozen=True)
class _Splines:
    """Cubic splines on 0 to 1 without constant and line, and their strengths relative to the smoothest."""

    curves: BSpline
    strengths: Array


@lru_cache
def _splines() -> _Splines:
    """Return orthonormal splines with orthogonal second derivatives; their variance falls with their bending energy."""
    inner = np.linspace(0.0, 1.0, SPLINE_PIECES + 1)
    knots = np.concatenate([[0.0] * 3, inner, [1.0] * 3])
    count = len(knots) - 4
    splines = BSpline(knots, np.eye(count), 3)
    nodes, weights = np.polynomial.legendre.leggauss(4)  # exact for products of two cubics
    places = (inner[:-1, None] + (nodes + 1.0) / (2.0 * SPLINE_PIECES)).ravel()
    weight = np.tile(weights / (2.0 * SPLINE_PIECES), SPLINE_PIECES)
    values, bends = splines(places), splines.derivative(2)(places)
    gram = values.T @ (weight[:, None] * values)
    bending = bends.T @ (weight[:, None] * bends)
    energies, vectors = eigh(bending, gram)
    energies, vectors = energies[2:], vectors[:, 2:]  # without the constant and the line, which do not bend
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])])
    return _Splines(BSpline(knots, vectors * signs, 3), np.sqrt(energies[0] / energies))


def _width(factor: Factor, order: int) -> int:
    """Return the number of a factor's functions in products."""
    return len(factor.choices) - 1 if isinstance(factor, Categorical) else order


def _pair_strengths(factor: Factor, order: int) -> Array:
    """Return the multipliers of a factor's functions in products."""
    if isinstance(factor, Categorical):
        return np.ones(len(factor.choices) - 1)
    # The strengths of curves are in the functions already.
    return np.concatenate([[1.0], np.full(order - 1, CURVE_SHARE)])
