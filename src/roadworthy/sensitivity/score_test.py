"""Test whether a factor explains anything that the other factors do not, by flipping the signs of residuals.

A surface is fitted without the factor. The score of each function of the factor is the sum over rows of its values,
without what the other factors explain of them, times the residuals. Under the null hypothesis the contributions of
clusters to the scores are as likely with the opposite sign (Hemerik, Goeman and Finos 2020), whatever the variance of
the residuals and however alike the rows of one cluster are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from roadworthy.sensitivity.basis import Block, SplineBasis
from roadworthy.sensitivity.hierarchy import Regression, find_mode
from roadworthy.sensitivity.rows import Rows

Array = NDArray[np.float64]

ROUNDS = 12
LEVEL = 0.05  # the false positive rate


def p_value(rows: Rows, factor: int, flips: int, seed: int = 0) -> float:
    """Return the probability that a factor without effect explains as much of the residuals, given the others.

    Args:
        rows: The rows, whose clusters change sign as a whole.
        factor: The number of the factor.
        flips: The number of random signs.
        seed: The seed of the signs.
    """
    null, tested = _without(Regression.of(rows, SplineBasis.of(rows.factors)), factor)  # whatever the surface's form
    residuals, values = _residuals(null, tested.features)
    units = rows.groups if rows.groups is not None else _numbers_of_seeds(rows)
    contributions = values * residuals[:, None]  # (n, functions)
    if units is not None:
        order = np.argsort(units, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(units))[:-1]])
        contributions = np.add.reduceat(contributions[order], starts, axis=0)
    rng = np.random.default_rng((seed, factor))
    signs = rng.choice((-1.0, 1.0), (flips, len(contributions)))
    scores = np.vstack([contributions.sum(axis=0), signs @ contributions])  # (1 + flips, functions)
    extremes = _combined(_statistics(scores, tested.blocks))
    return float((extremes <= extremes[0]).mean())


@dataclass(frozen=True)
class _Tested:
    """The functions of one factor, alone and with others."""

    features: Array  # (n, functions)
    blocks: tuple[Block, ...]  # slices of these functions


def _without(data: Regression, factor: int) -> tuple[Regression, _Tested]:
    """Split a regression into the part that does not involve the factor, and the factor's functions."""
    kept: list[NDArray[np.intp]] = [np.zeros(1, np.intp)]
    taken: list[NDArray[np.intp]] = []
    kept_blocks: list[Block] = []
    taken_blocks: list[Block] = []
    for block in data.blocks:
        columns = np.arange(block.columns.start, block.columns.stop)
        is_tested = factor in block.factors
        side, blocks = (taken, taken_blocks) if is_tested else (kept, kept_blocks)
        start = sum(map(len, side))
        blocks.append(replace(block, columns=slice(start, start + len(columns))))
        side.append(columns)
    null = replace(data, features=np.asfortranarray(data.features[:, np.concatenate(kept)]), blocks=tuple(kept_blocks))
    return null, _Tested(data.features[:, np.concatenate(taken)], tuple(taken_blocks))


def residuals_without(rows: Rows, factor: int) -> Array:
    """Return what the other factors do not explain of the outcome, (n,)."""
    null, _ = _without(Regression.of(rows, SplineBasis.of(rows.factors)), factor)
    predictor = null.features @ find_mode(null, ROUNDS).weights
    return null.outcome - (expit(predictor) if null.is_binary else predictor)


def _residuals(null: Regression, values: Array) -> tuple[Array, Array]:
    """Return the residuals of the fit without the factor, and the functions without what that fit explains of them."""
    mode = find_mode(null, ROUNDS)
    predictor = null.features @ mode.weights
    counted = np.ones(len(predictor)) if null.shares is None else null.shares
    if null.is_binary:
        chance = expit(predictor)
        residuals, weight = counted * (null.outcome - chance), counted * chance * (1.0 - chance)
    else:
        residuals, weight = counted * (null.outcome - predictor) / mode.noise**2, counted / mode.noise**2
    weighted = null.features * weight[:, None]
    precision = weighted.T @ null.features + np.diag(null.prior_precision(mode.scales))
    return residuals, values - null.features @ cho_solve(cho_factor(precision), weighted.T @ values)


def _statistics(scores: Array, blocks: tuple[Block, ...]) -> Array:
    """Return the size of scores, (statistics, 1 + flips), in three ways, each of which sees other effects best.

    Smooth effects of the factor alone, any effects of the factor alone, and interactions.
    """
    smooth, abrupt, together = (np.zeros(len(scores)) for _ in range(3))
    for block in blocks:
        squares = np.square(scores[:, block.columns])
        if len(block.factors) == 1:
            smooth += block.spread**2 * squares.sum(axis=1)
            abrupt += (squares / np.maximum(squares.mean(axis=0), 1e-300)).sum(axis=1)
        else:
            together += block.spread**2 * squares.sum(axis=1)
    return np.stack([part for part in (smooth, abrupt, together) if part.any()])


def _combined(statistics: Array) -> Array:
    """Return how extreme every flip is by its most extreme statistic, (1 + flips,): the smallest share above it."""
    ranks = np.stack([_share_above(part) for part in statistics])
    smallest: Array = ranks.min(axis=0)
    return smallest


def _share_above(values: Array) -> Array:
    """Return the share of values that are as large or larger, for every value; nearly equal ones count as equal."""
    order = np.sort(values)
    share: Array = 1.0 - np.searchsorted(order, values * (1.0 - 1e-9), side="left") / len(values)
    return share


def _numbers_of_seeds(rows: Rows) -> NDArray[np.intp] | None:
    """Return the number of each row's seed; None if no seeds repeat."""
    return None if rows.seeds is None else np.unique(np.array(rows.seeds), return_inverse=True)[1]
