"""Whether a surface can be trusted: predictions of rows that it has not seen, and twins whose truth is known.

Held-out: the rows are split into folds, each predicted by a surface that was fitted without it. Twins: a draw of the
surface is taken for the truth, outcomes are drawn from it at the very same places, a surface is fitted to them, and
its bands should hold the truth as often as they promise. Twins see the rows' own design (how many, where) but assume
the surface's form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, reference_units, refit

Array = NDArray[np.float64]

FOLDS = 5
BINS = 8
FEWEST_PER_BIN = 20
TWIN_POINTS = 128

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Bin:
    """Rows with similar predictions."""

    count: int
    predicted: float
    observed: float
    low: float  # of a 90% interval around the observed mean
    high: float


@dataclass(frozen=True)
class Calibration:
    """Predictions of rows that were held out."""

    bins: tuple[Bin, ...]
    skill: float
    """Share of the squared error of always predicting the mean that the surface takes away; below 0 it is worse."""
    bins_within: int
    """How many bins have their mean prediction inside the interval around what was observed."""


@dataclass(frozen=True)
class TwinCoverage:
    """How often bands held the truth in experiments like this one."""

    twins: int
    points: float | None  # share of places on the surface; None where no twin had outcomes that differ
    curves: float | None  # share of places on the averaged curves
    promised: float


def calibrate(rows: Rows, surface: Surface) -> Calibration:
    """Predict every row by a surface that has not seen it; rows of one seed or scenario stay together."""
    config = replace(surface.config, draws=100)
    fold = _folds(rows, np.random.default_rng(config.seed))
    predicted, naive = np.empty(len(rows)), np.empty(len(rows))
    for number in range(FOLDS):
        seen, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        naive[held] = rows.outcome[seen].mean()
        if np.ptp(rows.outcome[seen]) == 0.0:
            predicted[held] = naive[held]
        else:
            predicted[held] = refit(rows.chosen(seen), config, surface.basis).predict(rows.units[held]).mean
    error, naive_error = np.square(rows.outcome - predicted).mean(), np.square(rows.outcome - naive).mean()
    count = int(np.clip(len(rows) // FEWEST_PER_BIN, 1, BINS))
    bins = tuple(
        _bin(predicted[part], rows.outcome[part], rows.is_binary)
        for part in np.array_split(np.argsort(predicted, kind="stable"), count)
    )
    within = sum(bin.low <= bin.predicted <= bin.high for bin in bins)
    return Calibration(bins, float(1.0 - error / naive_error), within)


def twin_coverage(rows: Rows, surface: Surface, twins: int = 20, report: Report | None = None) -> TwinCoverage:
    """Fit experiments like this one, whose truth is a draw of the surface."""
    rng = np.random.default_rng((surface.config.seed, 2))
    places = reference_units(rows.factors, TWIN_POINTS, seed=11)
    chosen = rng.choice(len(surface.weights), twins, replace=twins > len(surface.weights))
    at_rows, at_places = surface.sample(rows.units), surface.sample(places)
    curves = [surface.marginal_draws(number) for number in range(len(rows.factors))]
    points_held, curves_held = [], []
    for number, truth in enumerate(chosen):
        if rows.is_binary:
            outcome = (_row_draws(rows, rng) < at_rows[truth]).astype(np.float64)
        else:
            outcome = at_rows[truth] + surface.spread * surface.mode.noise * rng.standard_normal(len(rows))
        if np.ptp(outcome) == 0.0:
            continue  # no episode of this twin differs: nobody would analyse it
        twin = refit(replace(rows, outcome=outcome), replace(surface.config, draws=150), surface.basis)
        band = twin.predict(places)
        points_held.append(np.mean((band.low <= at_places[truth]) & (at_places[truth] <= band.high)))
        for factor, curve in enumerate(curves):
            band = twin.marginal(factor)
            curves_held.append(np.mean((band.low <= curve[truth]) & (curve[truth] <= band.high)))
        if report:
            report(number + 1, twins)
    return TwinCoverage(len(points_held), _mean(points_held), _mean(curves_held), surface.config.band)


def wilson(successes: float, count: float, band: float = 0.9) -> tuple[float, float]:
    """The Wilson interval of a rate."""
    z = norm.ppf(0.5 + 0.5 * band)
    rate, shrink = successes / count, 1.0 + z**2 / count
    middle = (rate + z**2 / (2 * count)) / shrink
    half = z / shrink * np.sqrt(rate * (1.0 - rate) / count + z**2 / (4 * count**2))
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))


def _row_draws(rows: Rows, rng: np.random.Generator) -> Array:
    """(n,) uniform numbers, the same for rows of one seed: in a twin they share their draws as well."""
    if rows.seeds is None:
        return rng.random(len(rows))
    _, number = np.unique(np.array(rows.seeds), return_inverse=True)
    draws: Array = rng.random(int(number.max()) + 1)[number]
    return draws


def _folds(rows: Rows, rng: np.random.Generator) -> NDArray[np.intp]:
    """(n,) the fold of each row; every fold has its share of successes where rows are independent."""
    repeats_seeds = rows.seeds is not None and (rows.scenarios is None or len(set(rows.scenarios)) == len(rows))
    shared = rows.seeds if repeats_seeds else rows.scenarios
    if shared is not None:
        names, number = np.unique(np.array(shared), return_inverse=True)
        if len(names) >= FOLDS:
            return rng.permutation(len(names))[number] % FOLDS
    order = np.lexsort((rng.random(len(rows)), rows.outcome))
    fold = np.empty(len(rows), np.intp)
    fold[order] = np.arange(len(rows)) % FOLDS
    return fold


def _bin(predicted: Array, observed: Array, is_binary: bool) -> Bin:
    count, mean = len(observed), float(observed.mean())
    if is_binary:
        low, high = wilson(float(observed.sum()), count)
    else:
        half = float(t.ppf(0.95, max(count - 1, 1)) * observed.std(ddof=min(1, count - 1)) / np.sqrt(count))
        low, high = mean - half, mean + half
    return Bin(count, float(predicted.mean()), mean, low, high)


def _mean(shares: list[np.floating]) -> float | None:
    return float(np.mean(shares)) if shares else None
