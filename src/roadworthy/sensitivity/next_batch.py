"""The next episodes to run: those after which the surface will be known best.

An episode's outcome is unknown, but how much it would narrow the surface is not: in the Gaussian picture of the
posterior it depends on the place alone. Places are chosen one after the other, each for the largest fall of the
variance of the chance of success, averaged over all places, given the ones chosen before it. So a batch spreads out
by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from roadworthy.errors import UsageError
from roadworthy.sensitivity.surface import Surface, reference_units

Array = NDArray[np.float64]

CANDIDATES, AVERAGED = 1024, 512


def suggest(surface: Surface, count: int, seed: int = 0) -> Array:
    """(count, factors): units of the episodes that would teach most."""
    if count < 1:
        raise UsageError(f"the next batch has {count} episodes, expected 1 or more")
    candidates = reference_units(surface.factors, CANDIDATES, seed=(3, seed))
    places = reference_units(surface.factors, AVERAGED, seed=(4, seed))
    covariance = _covariance(surface)
    at_candidates, at_places = surface.basis.features(candidates), surface.basis.features(places)
    # Per unit of the predictor: what an episode tells at a candidate, and how much the outcome moves at a place.
    told, moved = _slopes(surface, candidates), _slopes(surface, places)
    told = told if surface.is_binary else np.full(CANDIDATES, surface.mode.noise**-2.0)
    loadings = at_candidates @ covariance
    own = np.einsum("ij,ij->i", loadings, at_candidates)
    shared = moved[:, None] * (at_places @ loadings.T)  # (places, candidates)
    chosen: list[int] = []
    for _ in range(min(count, CANDIDATES)):
        gain = told * np.square(shared).sum(axis=0) / (1.0 + told * own)
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        # A rank-one update of the covariance, seen from candidates and places.
        scale = told[best] / (1.0 + told[best] * own[best])
        between = loadings @ at_candidates[best]
        shared -= scale * np.outer(shared[:, best], between)
        loadings = loadings - scale * np.outer(between, loadings[best])
        own -= scale * np.square(between)
    return candidates[chosen]


def as_values(surface: Surface, units: Array) -> list[dict[str, Any]]:
    """Suggestions in the factors' own values, one dict per episode."""
    return [
        {factor.name: factor.value(unit) for factor, unit in zip(surface.factors, row, strict=True)} for row in units
    ]


def _covariance(surface: Surface) -> Array:
    """Of the coefficients, at scales that the posterior holds on average rather than at its mode.

    At the mode the scales of blocks that were not needed so far are nearly 0: nothing would be left to learn there.
    """
    precision = np.full(surface.weights.shape[1], 1.0 / surface.weights[:, 0].var())
    for block in surface.basis.blocks:
        precision[block.columns] = 1.0 / np.maximum(np.square(surface.weights[:, block.columns]).mean(), 1e-8)
    factor = cho_factor(surface.mode.curvature + np.diag(precision), lower=True)
    covariance: Array = cho_solve(factor, np.eye(len(precision)))
    return covariance


def _slopes(surface: Surface, units: Array) -> Array:
    """(n,): how far the outcome moves with the predictor, on average over draws."""
    if not surface.is_binary:
        return np.ones(len(units))
    chance = surface.sample(units)
    slopes: Array = (chance * (1.0 - chance)).mean(axis=0)
    return slopes
