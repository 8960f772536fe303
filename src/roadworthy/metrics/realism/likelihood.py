"""The likelihood of the recording under the distribution of the rollouts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.metrics.realism.config import Event, Histogram
from roadworthy.scenario.schema import Bools, Floats


def histogram_likelihood(
    histogram: Histogram, log: Floats, simulated: Floats, counted: Bools, pooled: bool = False
) -> float:
    """Geometric mean of the probabilities of an agent's recorded values (E, S), where they count; NaN if none does.

    The probabilities come from the agent's own simulated values (R, E, S), all steps alike; if they are pooled, from
    those of all agents.
    """
    bins = np.zeros(log.shape, np.int64)
    _find_bins(log, bin_edges(histogram), bins)
    counts = histogram_counts(histogram, simulated)
    if pooled:
        counts = np.broadcast_to(counts.sum(axis=0), counts.shape)
    counts = counts + histogram.pseudocount
    log_probability = np.log(counts / counts.sum(axis=1, keepdims=True))
    chosen = np.take_along_axis(log_probability, bins, axis=1)[counted]
    return float(np.exp(chosen.mean())) if chosen.size else float("nan")


def event_likelihood(event: Event, log: Bools, simulated: Bools) -> float:
    """Geometric mean over agents of the probability of what each did (E,), from what it did in the rollouts (R, E).

    If the event is pooled, from what all of them did.
    """
    happening = np.count_nonzero(simulated, axis=0)
    rollouts = len(simulated)
    if event.pooled:
        happening, rollouts = np.full(happening.shape, happening.sum()), simulated.size
    agreeing = np.where(log, happening, rollouts - happening)
    probability = (agreeing + event.pseudocount) / (rollouts + 2 * event.pseudocount)
    return float(np.exp(np.log(probability).mean()))


def bin_edges(histogram: Histogram) -> Floats:
    """(bins + 1,) in float32 throughout, the last one exact."""
    low, high = np.float32(histogram.low), np.float32(histogram.high)
    width = (high - low) / np.float32(histogram.bins)
    edges = low + width * np.arange(histogram.bins + 1, dtype=np.float32)
    edges[-1] = high
    return edges


def histogram_counts(histogram: Histogram, simulated: Floats) -> NDArray[np.float64]:
    """(E, bins) how many of an agent's simulated values (R, E, S) lie in each bin."""
    counts = np.zeros((simulated.shape[1], histogram.bins))
    _count(simulated, bin_edges(histogram), counts)
    return counts


@kernel
def _bin(value: np.float32, edges: Floats) -> int:
    """Half-open bins; what lies outside belongs to the first or the last, and NaN to the last."""
    place = 0
    while place < len(edges) - 2 and not value < edges[place + 1]:
        place += 1
    return place


@kernel
def _find_bins(values: Floats, edges: Floats, bins: NDArray[np.int64]) -> None:
    for agent in range(values.shape[0]):
        for step in range(values.shape[1]):
            bins[agent, step] = _bin(values[agent, step], edges)


@kernel
def _count(values: Floats, edges: Floats, counts: NDArray[np.float64]) -> None:
    for rollout in range(values.shape[0]):
        for agent in range(values.shape[1]):
            for step in range(values.shape[2]):
                counts[agent, _bin(values[rollout, agent, step], edges)] += 1.0
