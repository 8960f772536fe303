"""Measure the gate by simulation: wrong decisions, power, episodes and time; writes the tables of docs/gate.md.

A stream is 2,000 clusters of pairs with a known true difference. The gate looks after each cluster and stops at the
first decision, which is the most favorable of 2,000 looks for whoever wants one.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.gate_methods import METHODS, Forecast, forecasts, mean_clusters
from benchmarks.gate_tables import write_tables
from benchmarks.runner import Measurements, Sizes
from roadworthy.statistics.sequential import ERROR, ConfidenceSequence, bets

Array = NDArray[np.float64]
FULL = 10_000  # the number of streams for which the document is written
AT_ONCE = 500  # streams in memory
LOOKS = 2000
FIRST_FIXED = 20  # pairs before the first test of the other designs
GROUPS = 10  # looks of the group-sequential design
MARGINS = (0.02, 0.05)
WORSE = 0.03  # below the margin


@dataclass(frozen=True)
class Case:
    """A distribution of pairs: how sums of differences of clusters are drawn when the true difference is known."""

    name: str
    pairs: int  # in a cluster, on average
    draw: Callable[[np.random.Generator, tuple[int, int], float], Array]
    # Of (streams, looks) and the difference: sums of clusters as a share of the largest size.


def _pairs(rng: np.random.Generator, size: tuple[int, ...], wins: float, losses: float) -> Array:
    """Draw differences of two binary outcomes."""
    uniform = rng.random(size, np.float32)
    return (uniform < wins).astype(np.float64) - (uniform >= np.float32(1.0 - losses))


def independent(rng: np.random.Generator, size: tuple[int, ...], difference: float) -> Array:
    """Draw two outcomes that say nothing about each other: 0.8, and 0.8 plus the difference."""
    better = 0.8 + difference
    return _pairs(rng, size, better * 0.2, (1.0 - better) * 0.8)


def correlated(rng: np.random.Generator, size: tuple[int, ...], difference: float) -> Array:
    """Draw pairs of which 10% differ."""
    return _pairs(rng, size, (0.1 + difference) / 2.0, (0.1 - difference) / 2.0)


def near_one(rng: np.random.Generator, size: tuple[int, ...], difference: float) -> Array:
    """Draw outcomes with a rate of 0.98 of the baseline: it fails alone in 1%, or so often as the difference asks."""
    wins = max(0.01, difference)
    return _pairs(rng, size, wins, wins - difference)


def clustered(rng: np.random.Generator, size: tuple[int, int], difference: float) -> Array:
    """Draw means of clusters of 5 correlated pairs: in half of the clusters all five are equal."""
    each = correlated(rng, (*size, 5), difference)
    return np.where(rng.random(size) < 0.5, each[..., 0], each.mean(axis=-1))


def unequal(rng: np.random.Generator, size: tuple[int, int], difference: float) -> Array:
    """Draw sums of clusters of 1 to 9 pairs, of which 20% differ.

    A pair's mean difference is in proportion to the size of its cluster. The result holds the sizes as well:
    (streams, looks, 2). In half of the clusters all pairs are equal.
    """
    counts = rng.integers(1, 10, size)
    losses = 0.1 - 0.5 * difference * counts * (5.0 / (95.0 / 3.0))  # E[n] / E[n^2]
    wins = 0.2 - losses
    won = rng.binomial(counts, wins)
    lost = rng.binomial(counts - won, losses / (1.0 - wins))
    uniform = rng.random(size)
    alike = counts * ((uniform < wins) * 1.0 - (uniform >= 1.0 - losses))
    return np.stack([np.where(rng.random(size) < 0.5, alike, won - lost), counts], axis=-1) / 9.0


def continuous(rng: np.random.Generator, size: tuple[int, ...], difference: float) -> Array:
    """Draw differences of scores from 0 to 1: the candidate's is half the baseline's, and half its own."""
    ours, theirs = rng.beta(8.0 * (0.8 + 2.0 * difference), 8.0 * (0.2 - 2.0 * difference), size), rng.beta(8, 2, size)
    return 0.5 * (ours - theirs)


CASES = (
    Case("independent pairs, 0.8", 1, independent),
    Case("correlated pairs, 10% differ", 1, correlated),
    Case("rates near 0.98", 1, near_one),
    Case("clusters of 5, half alike", 5, clustered),
    Case("clusters of 1 to 9, half alike", 5, unequal),
    Case("continuous scores", 1, continuous),
)


def gate(found: Measurements, sizes: Sizes) -> None:
    """Simulate every case; write the document if there are enough streams."""
    streams = sizes["streams"]
    wrong = []
    for margin in MARGINS:
        for case in CASES:
            with found.stage("wrong decisions"):
                wrong.append(measure_wrong(case, margin, streams))
            for name, value in wrong[-1].shares.items():
                found.figures[f"{case.name}, margin {margin:g}: {name}, %"] = round(100.0 * value, 2)
    power = []
    for case in CASES:
        for difference in (0.0, -MARGINS[1] - WORSE):
            with found.stage("power"):
                power.append(measure_power(case, MARGINS[1], difference, max(streams // 5, 1)))
    for row in power:
        found.figures[f"{row.case.name}, {row.difference:g}: decided, %"] = round(100.0 * row.decided, 1)
        found.figures[f"{row.case.name}, {row.difference:g}: mean pairs"] = round(row.pairs)
    looks = [measure_look(found, pairs) for pairs in ((1, 1), (5, 5), (1, 20))]
    with found.stage("methods"):
        methods = [measure_methods(case, MARGINS[1], max(streams // 10, 1)) for case in CASES]
    if streams >= FULL:
        write_tables(wrong, power, looks, methods, streams, MARGINS[1])


@dataclass(frozen=True)
class Wrong:
    """How often the gate was wrong at some look."""

    case: Case
    margin: float
    shares: dict[str, float]  # by what was wrong, at which true difference


def measure_wrong(case: Case, margin: float, streams: int) -> Wrong:
    """Return the shares of streams with a wrong decision at the most favorable look."""
    shares = {}
    for name, difference in differences(margin).items():
        passes = regressions = uncorrected = 0
        for values in _streams(case, difference, streams, name):
            passes += int((first_decision(values, margin, 1.0) <= LOOKS).sum())
            regressions += int((first_decision(values, margin, -1.0) <= LOOKS).sum())
            if difference == -margin:
                statistic = _statistic(values, margin)[:, FIRST_FIXED - 1 :]
                uncorrected += int((statistic.max(axis=1) > _quantile(1)).sum())
        if difference <= -margin:
            shares[f"pass at {name}"] = passes / streams
        if difference >= -margin:
            shares[f"regression at {name}"] = regressions / streams
        if difference == -margin:
            shares["uncorrected pass at -m"] = uncorrected / streams
    return Wrong(case, margin, shares)


def differences(margin: float) -> dict[str, float]:
    """Return the true differences that are simulated, by name."""
    return {"-m - 0.03": -margin - WORSE, "-m": -margin, "-m/2": -margin / 2.0, "0": 0.0}


def first_decision(values: Array, margin: float, side: float) -> NDArray[np.int64]:
    """Return the first look at which capital decides, from 1 on, in each stream; LOOKS + 1 if it never does.

    values: sums of clusters (streams, looks), or with sizes (streams, looks, 2), as shares of the largest size; side: 1
    for a pass, -1 for a regression. The definition of the capital is written out here, for all streams at once, without
    the grid of ConfidenceSequence.
    """
    amounts, shares = bets(margin)
    gains = side * _above(values, margin)
    capital = np.zeros(gains.shape)
    factors = np.empty(gains.shape)
    for amount, share in zip(np.minimum(amounts, 0.9 / (1.0 - side * margin)), shares, strict=True):
        np.multiply(gains, amount, out=factors)
        factors += 1.0
        np.cumprod(factors, axis=1, out=factors)  # a bet that has lost almost everything may become 0
        capital += share * factors
    hits = capital >= 1.0 / ERROR
    return np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, LOOKS + 1)


def _above(values: Array, margin: float) -> Array:
    """Return how far clusters are above a mean difference of -margin, (streams, looks)."""
    return values + margin if values.ndim == 2 else values[..., 0] + margin * values[..., 1]


@dataclass(frozen=True)
class Power:
    """What the gate and two other designs decided on the same streams."""

    case: Case
    margin: float
    difference: float
    decided: float  # the share of streams in which the gate decided as it should
    pairs: float  # the mean number of pairs until it decided or the stream ended
    fixed_pairs: int | None  # the smallest fixed number of pairs with the same power; None: more than a stream has
    group_decided: float
    group_pairs: float


def measure_power(case: Case, margin: float, difference: float, streams: int) -> Power:
    """Return the power and the mean number of pairs of the gate and of the other designs."""
    side = 1.0 if difference > -margin else -1.0
    firsts, groups, fixed = [], [], np.zeros(LOOKS)
    stops = np.linspace(LOOKS // GROUPS, LOOKS, GROUPS).astype(int)
    for values in _streams(case, difference, streams, "power"):
        firsts.append(first_decision(values, margin, side))
        statistic = side * _statistic(values, margin)
        fixed += (statistic > _quantile(1)).sum(axis=0)
        hits = statistic[:, stops - 1] > _quantile(GROUPS)
        groups.append(np.where(hits.any(axis=1), stops[hits.argmax(axis=1)], LOOKS + 1))
    first, group = np.concatenate(firsts), np.concatenate(groups)
    decided = float((first <= LOOKS).mean())
    enough = np.flatnonzero(fixed[FIRST_FIXED - 1 :] >= decided * len(first))
    return Power(
        case,
        margin,
        difference,
        decided,
        case.pairs * float(np.minimum(first, LOOKS).mean()),
        case.pairs * int(enough[0] + FIRST_FIXED) if enough.size else None,
        float((group <= LOOKS).mean()),
        case.pairs * float(np.minimum(group, LOOKS).mean()),
    )


@dataclass(frozen=True)
class Methods:
    """The mean number of pairs that ways to bet need for equal policies, and how good the forecast is."""

    case: Case
    pairs: dict[str, float]  # by method
    forecast: Forecast | None  # None for clusters of unequal size


def measure_methods(case: Case, margin: float, streams: int) -> Methods:
    """Return the mean number of pairs of each method at a true difference of 0."""

    def gains() -> Iterator[Array]:
        return (_above(values, margin) for values in _streams(case, 0.0, streams, "methods"))

    stops = [first_decision(values, margin, 1.0) for values in _streams(case, 0.0, streams, "methods")]
    first = np.concatenate(stops)
    pairs = {"the gate": case.pairs * float(np.minimum(first, LOOKS).mean())}
    pairs |= {name: case.pairs * mean_clusters(gains(), method) for name, method in METHODS.items()}
    values = next(_streams(case, 0.0, streams, "methods"))
    forecast = forecasts(values[:200], first[:200], margin) if values.ndim == 2 and streams >= 100 else None
    return Methods(case, pairs, forecast)


def _statistic(values: Array, margin: float) -> Array:
    """Return the statistic of a fixed test of non-inferiority after each cluster, (streams, looks).

    For pairs of binary outcomes it is Tango's score statistic, the non-inferiority form of McNemar's test; else the
    distance of the mean from -margin in standard errors.
    """
    n = np.arange(1.0, values.shape[1] + 1.0)
    is_binary = values.ndim == 2 and np.isin(values[:1], (-1.0, 0.0, 1.0)).all()
    values = values if is_binary else _above(values, margin)
    total, squares = np.cumsum(values, axis=1), np.cumsum(values * values, axis=1)
    if is_binary:
        wins, losses = (squares + total) / 2.0, (squares - total) / 2.0
        b = -(2.0 * n - wins + losses) * margin - wins - losses
        rate = (np.sqrt(np.maximum(b * b - 8.0 * n * losses * margin * (1.0 + margin), 0.0)) - b) / (4.0 * n)
        variance = n * (2.0 * rate - margin * (1.0 + margin))
        return (total + n * margin) / np.sqrt(np.maximum(variance, 1e-9))
    mean = total / n
    variance = np.maximum(squares / n - mean**2, 1e-12) * n / np.maximum(n - 1.0, 1.0)
    return mean / np.sqrt(variance / n)


def _quantile(looks: int) -> float:
    """Return the critical value of a one-sided test at `looks` looks, by Bonferroni's correction."""
    return float(special.ndtri(1.0 - ERROR / looks))


def _streams(case: Case, difference: float, count: int, what: str) -> Iterator[Array]:
    """Yield streams in parts, the same ones in every run."""
    rng = np.random.default_rng(zlib.crc32(f"{case.name} {difference:g} {what}".encode()))
    for start in range(0, count, AT_ONCE):
        yield case.draw(rng, (min(AT_ONCE, count - start), LOOKS), difference)


@dataclass(frozen=True)
class LookTime:
    """The time of a look."""

    sizes: tuple[int, int]  # the least and the most pairs of a cluster
    clusters: int
    milliseconds: float


def measure_look(found: Measurements, sizes: tuple[int, int]) -> LookTime:
    """Time a look after 100 more pairs, when the gate has 100,000 continuous ones."""
    rng = np.random.default_rng(0)
    sequence = ConfidenceSequence(0.02, sizes[1])

    def clusters(pairs: int) -> tuple[Array, NDArray[np.int64]]:
        counts = rng.integers(sizes[0], sizes[1] + 1, max(2 * pairs // sum(sizes), 1))
        return np.clip(rng.normal(-0.019, 0.3, len(counts)), -1.0, 1.0) * counts, counts

    sequence.add(*clusters(100_000))
    sequence.bounds()
    taken = []
    for _ in range(20):
        block = clusters(100)
        begin = time.perf_counter()
        sequence.add(*block)
        sequence.bounds()
        taken.append(time.perf_counter() - begin)
    found.seconds[f"look, {sizes[0]} to {sizes[1]} pairs each"] = taken
    return LookTime(sizes, sequence.clusters, 1000.0 * float(np.median(taken)))
