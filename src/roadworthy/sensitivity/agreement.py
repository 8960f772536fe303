"""The distance between the neural posterior and the surface, which estimate the same distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.factors import Categorical
from roadworthy.sensitivity.posterior import NeuralPosterior
from roadworthy.sensitivity.surface import Surface

# Mean error of a neural posterior's marginals with a known truth and even sampling: see docs/sensitivity.md.
USUAL_ERROR = 0.04


@dataclass(frozen=True)
class Distance:
    """The total variation distance for one factor: 0 if the two are equal, 1 if they are disjoint."""

    factor: str
    given_success: float
    given_failure: float

    @property
    def larger(self) -> float:
        return max(self.given_success, self.given_failure)


def distances(surface: Surface, neural: NeuralPosterior) -> tuple[Distance, ...]:
    """Return the distances in the order of the factors; none for a continuous outcome."""
    if not surface.is_binary:
        return ()
    return tuple(
        Distance(factor.name, _apart(surface, neural, number, True), _apart(surface, neural, number, False))
        for number, factor in enumerate(surface.factors)
    )


def _apart(surface: Surface, neural: NeuralPosterior, number: int, is_success: bool) -> float:
    learned = neural.distribution(number, float(is_success))
    smooth = surface.given(number, is_success).mean
    if not isinstance(surface.factors[number], Categorical):
        smooth = _in_bins(smooth, len(learned))
    return float(0.5 * np.abs(learned / learned.mean() - smooth / smooth.mean()).mean())


def _in_bins(curve: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Return the mean of a piecewise linear curve over 0 to 1 in each bin."""
    places = np.linspace(0.0, 1.0, len(curve))
    edges = np.linspace(0.0, 1.0, bins + 1)
    every = np.union1d(places, edges)
    values = np.interp(every, places, curve)
    areas = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(every) * (values[1:] + values[:-1]))])
    means: NDArray[np.float64] = np.diff(np.interp(edges, every, areas)) * bins
    return means
