"""The next episodes to run: those after which the surface will be known best.

How much an episode would narrow the surface does not depend on how it ends. Over the posterior's draws, the chance at
any place x varies together with the outcome y of an episode at c, and once y is known the variance at x falls by
cov(x, y)² / var(y): exactly so on average, where y is yes or no. Episodes are chosen one after the other, each for the
largest fall averaged over all places, given the ones chosen before it (there the rule is the best linear one). So a
batch spreads out by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """Suggestions in the factors' own values, one dict per episode."""
    return [
        {factor.name: factor.value(unit) for factor, unit in zip(surface.factors, row, strict=True)} for row in units
    ]


def _noise(surface: Surface, expected: Array) -> Array:
    """(n,): the variance of an outcome around its expectation (draws, n), averaged over draws."""
    if surface.is_binary:
        noise: Array = (expected * (1.0 - expected)).mean(axis=0)
        return noise
    return np.full(expected.shape[1], (surface.spread * surface.mode.noise) ** 2)
