"""The clusters of two runs in random order: what a gate looks at, one block after another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from roadworthy.comparison.matching import Matching
from roadworthy.comparison.pairs import Pairs, pair_rows
from roadworthy.comparison.planned import Flags, Numbers, State
from roadworthy.errors import RecordError, UsageError
from roadworthy.metrics.metric import Array, Metric
from roadworthy.record import Run


@dataclass(frozen=True)
class Stream:
    """The clusters of two runs in random order; differences are shares of the range, positive if better."""

    totals: Array  # (c,) sums of differences
    best: Array  # (c,) with the most favorable values of what is unknown
    sizes: Numbers  # (c,) episodes with data
    planned: Numbers  # (c,) episodes
    largest: int  # the largest possible size
    crashed: tuple[int, int]  # episodes without a result, of the candidate and the baseline
    left: int  # planned episodes that are not counted yet

    @property
    def count(self) -> int:
        """The number of episodes."""
        return int(self.planned.sum())

    def blocks(self, block: int) -> Iterator[slice]:
        """Yield consecutive clusters with at least `block` episodes together."""
        start = 0
        for end in boundaries(self.planned.tolist(), block):
            yield slice(start, end)
            start = end

    def ended_by(self, clusters: slice) -> int:
        """Return the number of episodes with data up to the end of some clusters."""
        return int(self.sizes[: clusters.stop].sum())


def boundaries(sizes: Sequence[int], block: int) -> Iterator[int]:
    """Yield the ends of blocks of whole clusters that have at least `block` episodes each; the last may have fewer."""
    episodes = 0
    for number, size in enumerate(sizes, 1):
        episodes += size
        if episodes >= block or number == len(sizes):
            yield number
            episodes = 0


def place_of_cluster(seed: int, cluster: str) -> bytes:
    """Return a key that sorts clusters into random order, whatever their names and the order of the ledger."""
    return hashlib.blake2b(json.dumps([seed, cluster]).encode(), digest_size=16).digest()


def make_stream(matched: Matching, metric: Metric, seed: int, first: int | None) -> Stream:
    """Return the clusters that count, in the order of the gate."""
    candidate, baseline = matched.candidate.run, matched.baseline.run
    codes = matched.clusters.codes
    if "gate" in candidate.header:  # its ledger is in random order, cluster by cluster
        rank = np.empty(len(matched), np.int64)
        rank[np.argsort(matched.candidate_places)] = np.arange(len(matched))
        firsts = np.full(matched.clusters.count, len(matched), np.int64)
        np.minimum.at(firsts, codes, rank)
    else:
        firsts = np.empty(matched.clusters.count, np.int64)
        keys = [place_of_cluster(seed, name) for name in matched.cluster_names]
        firsts[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    order = np.argsort(firsts)  # clusters
    sizes = matched.clusters.sizes
    ended = _ended(matched)
    complete = np.bincount(codes[ended], minlength=len(sizes)) == sizes
    used = int(np.argmin(complete[order])) if not complete.all() else len(order)
    if used < len(order) and not ("gate" in candidate.header or "gate" in baseline.header):
        raise UsageError(_incomplete(matched))
    if first is not None:
        used = min(used, int(np.searchsorted(np.cumsum(sizes[order]), first, side="right")))
    order = order[:used]
    is_used = np.isin(codes, order)
    totals, best, has_data = _differences(pair_rows(matched, metric), metric, is_used)
    counted = np.bincount(codes, has_data & is_used, len(sizes)).astype(np.int64)
    crashed = tuple(int((states == State.FAILED)[is_used].sum()) for states in _states(matched))
    return Stream(
        np.bincount(codes, totals, len(sizes)).astype(np.float64)[order],
        np.bincount(codes, best, len(sizes)).astype(np.float64)[order],
        counted[order],
        sizes[order],
        _largest(candidate, sizes),
        (crashed[0], crashed[1]),
        int((~is_used).sum()),
    )


def _differences(pairs: Pairs, metric: Metric, is_used: Flags) -> tuple[Array, Array, Flags]:
    """Return the difference of each shared episode, its most favorable value, and whether it has data.

    A crash counts as what the metric declares. Otherwise the candidate gets the worst value, and the baseline's unknown
    value is the best one for the first result and the worst one for the second.
    """
    assert metric.bounds is not None
    low, high = metric.bounds
    worst, top = (low, high) if metric.better == "higher" else (high, low)
    known = pairs.counted()
    if metric.failed is None:
        known, favorable = pairs.filled(worst, top), pairs.filled(worst, worst)
    else:
        favorable = known
    _require_bounds(pairs, low, high)
    sign = (1.0 if metric.better == "higher" else -1.0) / (high - low)
    count = len(pairs.episodes)
    results = []
    has_data = np.zeros(count, np.bool_)
    for given in (known, favorable):
        is_known = ~np.isnan(given.differences) & is_used[given.episode]
        rows = np.bincount(given.episode[is_known], minlength=count)
        totals = np.bincount(given.episode[is_known], sign * given.differences[is_known], count)
        has_data = rows > 0
        results.append(totals / np.maximum(rows, 1))
    return results[0], results[1], has_data


def _require_bounds(pairs: Pairs, low: float, high: float) -> None:
    """Raise RecordError if a value is outside of the bounds of its metric: then no decision is valid."""
    for role, values in (("candidate", pairs.candidate), ("baseline", pairs.baseline)):
        outside = np.flatnonzero((values < low) | (values > high))
        if outside.size:
            row = int(outside[0])
            raise RecordError(
                f"{pairs.metric.name} of the {role} is {values[row]:g} in episode {pairs.episode_ids[row]!r}, outside "
                f"of its bounds {low:g} to {high:g}; give bounds that hold for every episode"
            )


def _states(matched: Matching) -> tuple[Numbers, Numbers]:
    """Return what became of each shared episode in both runs."""
    return (
        matched.candidate.states[matched.candidate_places].astype(np.int64),
        matched.baseline.states[matched.baseline_places].astype(np.int64),
    )


def _ended(matched: Matching) -> Flags:
    """Return whether each shared episode has ended in both runs."""
    ours, theirs = _states(matched)
    ended: Flags = (ours != State.NEVER_RAN) & (theirs != State.NEVER_RAN)
    return ended


def _incomplete(matched: Matching) -> str:
    """Return why runs with episodes that have not run can't be judged."""
    for planned, states in zip((matched.candidate, matched.baseline), _states(matched), strict=True):
        left = int((states == State.NEVER_RAN).sum())
        if left:
            return (
                f"{planned.run.folder}: {left:,} planned episodes have not ended, and those that ended first are not "
                "a fair sample; resume the run with the command that started it"
            )
    raise AssertionError("every episode has ended")


def _largest(candidate: Run, sizes: Numbers) -> int:
    """Return the largest number of planned episodes of a cluster, whether or not it was needed."""
    largest = int(sizes.max())
    if candidate.decided is None or "cluster" not in candidate.whole_ledger.column_names:
        return largest
    ledger = candidate.whole_ledger
    names = pc.coalesce(ledger["cluster"], ledger["scenario_id"])
    return max(largest, int(pc.max(pc.value_counts(names).field("counts")).as_py()))
