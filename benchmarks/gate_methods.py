"""Compare ways to bet, and check the forecast of a gate, on the streams of benchmarks/gate.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from roadworthy.statistics.sequential import ERROR, ConfidenceSequence

Array = NDArray[np.float64]
_MOST = 0.5  # of adaptive bets, as the paper recommends
_FORECAST_AT = 0.4  # of the mean number of clusters that decide


def agrapa(gains: Array) -> Array:
    """Return the logarithm of the capital of bets that approximately maximize its growth so far, (streams, looks)."""
    mean, variance = _so_far(gains)
    bets = np.clip(mean / (variance + mean**2), 0.0, _MOST)
    return np.cumsum(np.log1p(bets * gains), axis=1)


def predictable_plugin(gains: Array) -> Array:
    """Return the logarithm of the capital of the predictable plug-in bets of empirical Bernstein type."""
    _, variance = _so_far(gains)
    look = np.arange(1.0, gains.shape[1] + 1.0)
    bets = np.clip(np.sqrt(2.0 * log(1.0 / ERROR) / (variance * look * np.log(look + 1.0))), 0.0, _MOST)
    return np.cumsum(np.log1p(bets * gains), axis=1)


def best_bet(gains: Array) -> Array:
    """Return the logarithm of the capital of the constant bet with the fastest growth, about, up to 0.9."""
    bet = min(float(gains.mean() / (gains**2).mean()), 0.9)
    return np.cumsum(np.log1p(bet * gains), axis=1)


METHODS: dict[str, Callable[[Array], Array]] = {
    "aGRAPA": agrapa,
    "predictable plug-in": predictable_plugin,
    "fastest constant bet": best_bet,
}


def mean_clusters(parts: Iterable[Array], method: Callable[[Array], Array]) -> float:
    """Return the mean number of clusters until a method decides, or the stream ends."""
    counts = []
    for gains in parts:
        hits = method(gains) >= log(1.0 / ERROR)
        counts.append(np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, gains.shape[1]))
    return float(np.concatenate(counts).mean())


@dataclass(frozen=True)
class Forecast:
    """The forecast number of clusters that decide, over the actual number: quantiles of streams with a forecast."""

    at: int  # clusters when it was made
    low: float  # the 10% quantile
    median: float
    high: float  # the 90% quantile
    none: float  # the share of streams without a forecast


def forecasts(values: Array, stops: NDArray[np.int64], margin: float) -> Forecast:
    """Compare forecasts with what happened; values: cluster means (streams, looks); stops: when the gate decided."""
    at = max(int(_FORECAST_AT * stops.mean()), 2)
    ratios, none = [], 0
    undecided = np.flatnonzero(stops > at)
    for stream in undecided:
        sequence = ConfidenceSequence(margin)
        sequence.add(values[stream, :at], [1] * at)
        more = sequence.bounds().more
        none += more is None
        ratios += [] if more is None else [(at + more) / stops[stream]]
    low, median, high = np.quantile(ratios, [0.1, 0.5, 0.9])
    return Forecast(at, float(low), float(median), float(high), none / len(undecided))


def _so_far(gains: Array) -> tuple[Array, Array]:
    """Return mean and variance before each look, with a prior observation of 0 and a variance of 1/4."""
    counts = np.arange(1.0, gains.shape[1] + 1.0)
    mean = (np.cumsum(gains, axis=1) - gains) / counts
    square = (np.cumsum(gains * gains, axis=1) - gains * gains + 0.25) / counts
    return mean, np.maximum(square - mean**2, 1e-6)
