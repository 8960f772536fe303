"""A Gaussian process as the form of a surface: smooth in all factors together, with any interaction.

The kernel is a product over factors: Matérn 5/2 along a range, one correlation between any two choices. A Nyström
approximation turns it into features, so that the rest of the package sees a basis with one block. The correlation
lengths maximize the Laplace approximation of the evidence; they are not averaged over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from roadworthy.sensitivity.averages import reference_units
from roadworthy.sensitivity.basis import Block
from roadworthy.sensitivity.factors import Categorical, Factor
from roadworthy.sensitivity.hierarchy import Regression, find_mode, log_evidence
from roadworthy.sensitivity.rows import Rows

Array = NDArray[np.float64]

PLACES = 128
SPREAD = 2.0  # of the process on the logit scale, a priori
JITTER = 1e-6
LENGTHS = (0.1, 10.0)  # shortest and longest correlation length, in units of the range
TYPICAL_LENGTH, LENGTH_SPREAD = 1.0, 1.0  # log-normal prior of lengths
ROUNDS = 5  # iterations of the search for the mode at each set of lengths


@dataclass(frozen=True)
class ProcessBasis:
    """Features whose inner product is the kernel."""

    factors: tuple[Factor, ...]
    lengths: Array  # (factors,)
    places: Array  # (PLACES, factors)
    blocks: tuple[Block, ...]

    def features(self, units: Array) -> Array:
        """Return the features of units: (n, factors) to (n, 1 + PLACES)."""
        inner = kernel(self.factors, self.lengths, self.places, self.places) + JITTER * np.eye(len(self.places))
        across = kernel(self.factors, self.lengths, self.places, units)
        process = solve_triangular(cholesky(inner, lower=True), across, lower=True).T
        return np.column_stack([np.ones(len(units)), process])


def process_basis(rows: Rows) -> ProcessBasis:
    """Find the lengths that maximize the evidence of the rows."""
    places = reference_units(rows.factors, PLACES, seed=13)
    blocks = (Block(tuple(range(len(rows.factors))), slice(1, 1 + PLACES), SPREAD),)

    def basis(log_lengths: Sequence[float] | Array) -> ProcessBasis:
        return ProcessBasis(rows.factors, np.exp(log_lengths), places, blocks)

    def cost(log_lengths: Array) -> float:
        data = Regression.of(rows, basis(log_lengths))
        unlikely = 0.5 * np.square((log_lengths - np.log(TYPICAL_LENGTH)) / LENGTH_SPREAD).sum()
        return float(unlikely) - log_evidence(data, find_mode(data, ROUNDS))

    start = np.full(len(rows.factors), np.log(TYPICAL_LENGTH))
    bounds = [(np.log(LENGTHS[0]), np.log(LENGTHS[1]))] * len(start)
    found = minimize(cost, start, method="L-BFGS-B", bounds=bounds, options={"eps": 0.05, "maxiter": 12, "ftol": 1e-4})
    return basis(found.x)


def kernel(factors: Sequence[Factor], lengths: Array, first: Array, second: Array) -> Array:
    """Return the correlation of the process between two sets of units, (n, m)."""
    product = np.ones((len(first), len(second)))
    for column, (factor, length) in enumerate(zip(factors, lengths, strict=True)):
        distance = np.abs(first[:, column, None] - second[None, :, column])
        if isinstance(factor, Categorical):
            product *= np.where(distance > 0.0, np.exp(-1.0 / length), 1.0)
        else:
            scaled = np.sqrt(5.0) * distance / length
            product *= (1.0 + scaled + np.square(scaled) / 3.0) * np.exp(-scaled)
    return product
