"""Checks of a surface: predictions of held-out rows, and simulated experiments ("twins") whose truth is known.

Held-out: the rows are split into folds, and each fold is predicted by a surface that was fitted without it. Twins: a
draw of the surface is the truth, outcomes are drawn from it at the same units, a surface is fitted to them, and its
bands should cover the truth at their nominal rate. Twins have the design of the rows but assume the surface's form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import t

from roadworthy.sensitivity.averages import reference_units
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, refit
from roadworthy.statistics.intervals import normal_quantile, wilson

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
    """1 minus the squared error relative to predicting the mean; below 0 the surface is worse than the mean."""
    bins_within: int
    """The number of bins whose mean prediction is inside the interval of the observations."""


@dataclass(frozen=True)
class TwinCoverage:
    """The coverage of bands in experiments like this one."""

    twins: int
    points: float | None  # share of covered points of the surface; None if no twin had outcomes that differ
    curves: float | None  # share of covered points of the averaged curves
    whole_curves: float | None  # share of averaged curves that the simultaneous band covers everywhere
    promised: float


def calibrate(rows: Rows, surface: Surface) -> Calibration:
    """Predict every row by a surface fitted without it; rows of one seed or scenario stay together."""
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
    """Simulate experiments like this one, whose truth is a draw of the surface, and return the coverage of bands."""
    rng = np.random.default_rng((surface.config.seed, 2))
    places = reference_units(rows.factors, TWIN_POINTS, seed=11)
    chosen = rng.choice(len(surface.weights), twins, replace=twins > len(surface.weights))
    at_rows, at_places = surface.sample(rows.units), surface.sample(places)
    curves = [surface.marginal_draws(number) for number in range(len(rows.factors))]
    points_held, curves_held, whole_held = [], [], []
    for number, truth in enumerate(chosen):
        if rows.is_binary:
            outcome = (_row_draws(rows, surface.mode.correlation, rng) < at_rows[truth]).astype(np.float64)
        else:
            noise = _alike(rows, surface.mode.correlation, rng)
            outcome = at_rows[truth] + surface.spread * surface.mode.noise * noise
        if np.ptp(outcome) == 0.0:
            continue  # all outcomes are equal, so there is nothing to analyze
        twin = refit(replace(rows, outcome=outcome), replace(surface.config, draws=150), surface.basis)
        band = twin.predict(places)
        points_held.append(np.mean((band.low <= at_places[truth]) & (at_places[truth] <= band.high)))
        for factor, curve in enumerate(curves):
            band = twin.marginal(factor)
            curves_held.append(np.mean((band.low <= curve[truth]) & (curve[truth] <= band.high)))
            band = twin.simultaneous(factor)
            whole_held.append(np.mean(((band.low <= curve[truth]) & (curve[truth] <= band.high)).all()))
        if report:
            report(number + 1, twins)
    return TwinCoverage(
        len(points_held), _mean(points_held), _mean(curves_held), _mean(whole_held), surface.config.band
    )


def observed_interval(rate: float, count: float) -> tuple[float, float]:
    """Return the 90% interval of an observed rate."""
    return wilson(rate, count, normal_quantile(0.9))


def _alike(rows: Rows, correlation: float, rng: np.random.Generator) -> Array:
    """Return standard Normal numbers, (n,), correlated within clusters."""
    own = rng.standard_normal(len(rows))
    if rows.groups is None:
        return own
    common: Array = rng.standard_normal(int(rows.groups.max()) + 1)[rows.groups]
    return np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own


def _row_draws(rows: Rows, correlation: float, rng: np.random.Generator) -> Array:
    """Return uniform numbers, (n,), which rows of one seed share, and that are alike within clusters."""
    if rows.groups is not None:
        # The correlation of events with a probability of 1/2, from that of Normal variables (Sheppard 1899).
        draws: Array = ndtr(_alike(rows, float(np.sin(0.5 * np.pi * correlation)), rng))
        return draws
    if rows.seeds is None:
        return rng.random(len(rows))
    _, number = np.unique(np.array(rows.seeds), return_inverse=True)
    shared: Array = rng.random(int(number.max()) + 1)[number]
    return shared


def _folds(rows: Rows, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the fold of each row, (n,), stratified by the outcome if rows are independent."""
    repeats_seeds = rows.seeds is not None and (rows.scenarios is None or len(set(rows.scenarios)) == len(rows))
    shared = rows.clusters or (rows.seeds if repeats_seeds else rows.scenarios)
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
        low, high = observed_interval(mean, count)
    else:
        half = float(t.ppf(0.95, max(count - 1, 1)) * observed.std(ddof=min(1, count - 1)) / np.sqrt(count))
        low, high = mean - half, mean + half
    return Bin(count, float(predicted.mean()), mean, low, high)


def _mean(shares: list[np.floating]) -> float | None:
    return float(np.mean(shares)) if shares else None
