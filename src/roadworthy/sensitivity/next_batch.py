"""Suggest the next episodes: those that reduce the uncertainty of the surface most.

The reduction does not depend on the outcome of an episode. Over posterior draws, the probability at a point x covaries
with the outcome y of an episode at c, and observing y reduces the variance at x by cov(x, y)² / var(y), exactly so on
average for a binary y. Episodes are chosen greedily, each for the largest reduction averaged over all points given the
previous ones (where the rule is the best linear one), so a batch spreads out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.sensitivity.averages import reference_units
from roadworthy.sensitivity.surface import Surface

Array = NDArray[np.float64]

CANDIDATES, AVERAGED = 1024, 512


def suggest(surface: Surface, count: int, seed: int = 0) -> Array:
    """Return the units of the most informative episodes, (count, factors)."""
    if count < 1:
        raise UsageError(f"the next batch has {count} episodes, expected 1 or more")
    candidates = reference_units(surface.factors, CANDIDATES, seed=(3, seed))
    places = reference_units(surface.factors, AVERAGED, seed=(4, seed))
    at_candidates, at_places = surface.sample(candidates), surface.sample(places)
    chance = _noise(surface, at_candidates)  # variance of an outcome beyond that of its expectation
    at_candidates = at_candidates - at_candidates.mean(axis=0)
    draws = len(at_candidates)
    between = at_candidates.T @ at_candidates / (draws - 1)  # covariance of candidates with each other
    shared = at_places.T @ at_candidates / (draws - 1)  # and of places with candidates
    chosen: list[int] = []
    for _ in range(min(count, CANDIDATES)):
        gain = np.square(shared).sum(axis=0) / (chance + np.diag(between))
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        with_best, variance = between[:, best].copy(), chance[best] + between[best, best]
        shared -= np.outer(shared[:, best], with_best / variance)
        between -= np.outer(with_best, with_best / variance)
    return candidates[chosen]


def as_values(surface: Surface, units: Array) -> list[dict[str, Any]]:
    """Return suggestions as values of the factors, one dict per episode."""
    return [
        {factor.name: factor.value(unit) for factor, unit in zip(surface.factors, row, strict=True)} for row in units
    ]


def _noise(surface: Surface, expected: Array) -> Array:
    """Return the variance of an outcome around its expectation (draws, n), averaged over draws, (n,)."""
    if surface.is_binary:
        noise: Array = (expected * (1.0 - expected)).mean(axis=0)
        return noise
    return np.full(expected.shape[1], (surface.spread * surface.mode.noise) ** 2)
