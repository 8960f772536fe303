"""Decide from two run folders whether a candidate is worse than a baseline by more than a margin.

An episode counts once: its difference is the mean over its egos and trials, candidate minus baseline. Clusters of
episodes are in random order, and a confidence sequence (statistics/sequential.py) bounds the mean difference.

pass          the lower bound is above -margin
regression    the upper bound is below -margin
undecided     neither

For metrics that are better when lower, differences change their sign before they are bounded, and back in what is
reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pyarrow.compute as pc

from roadworthy.comparison.matching import Matching, match
from roadworthy.comparison.pairs import Pairs, comparable_metrics, pair_rows
from roadworthy.comparison.planned import Flags, Numbers, State
from roadworthy.errors import RecordError, UsageError
from roadworthy.metrics.metric import Array, Better, Kind, Metric
from roadworthy.plugins import nearest
from roadworthy.record import Run
from roadworthy.statistics.sequential import ERROR, Bounds, ConfidenceSequence, Verdict

BLOCK = 100  # episodes between looks
_MOST_LOOKS = 200  # of a path through recorded runs


@dataclass(frozen=True)
class Look:
    """The difference and its bounds after some of the episodes, candidate minus baseline."""

    episodes: int
    difference: float | None
    low: float
    high: float


@dataclass(frozen=True)
class GateDecision:
    """What a gate decided, and on which data."""

    verdict: Verdict
    metric: Metric
    margin: float
    error: float
    difference: float | None  # candidate minus baseline; None: no data
    low: float
    high: float  # each bound holds at all looks with probability 1 - error
    episodes: int  # pairs of episodes with data
    clusters: int
    more: int | None  # episodes that would decide if they were like those so far; None: no number would
    crashed_candidate: int  # episodes without a result among those counted
    crashed_baseline: int
    without_data: int  # pairs of episodes that the metric says nothing about
    unmatched: int  # planned episodes of either run without a partner
    looks: tuple[Look, ...]
    notes: tuple[str, ...]

    @property
    def threshold(self) -> float:
        """The difference that separates a pass from a regression."""
        return self.margin if self.metric.better == "lower" else -self.margin

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        values = {key: value for key, value in vars(self).items() if key not in ("verdict", "metric", "looks", "more")}
        return {
            "verdict": self.verdict.value,
            "metric": self.metric.name,
            "better": self.metric.better,
            **values,
            "threshold": self.threshold,
            "more_episodes": self.more,
            "looks": [vars(look) for look in self.looks],
            "notes": list(self.notes),
        }


def gate_metric(
    name: str, known: Iterable[Metric], bounds: tuple[float, float] | None = None, better: Better = ""
) -> Metric:
    """Return the metric with a name, with declared bounds and direction; UsageError says what it lacks."""
    by_name = {metric.name: metric for metric in known}
    if name not in by_name:
        raise UsageError(f"both runs need the metric {name!r}; {nearest(name, by_name)}")
    metric = by_name[name]
    if metric.kind is Kind.RATIO:
        raise UsageError(
            f"the metric {name!r} is a ratio of two sums, whose rows have no bounds; a gate needs a rate, a share or a "
            "mean with bounds"
        )
    metric = replace(metric, bounds=bounds or metric.bounds, better=better or metric.better)
    if metric.bounds is None:
        raise UsageError(
            f"the metric {name!r} has no declared bounds, and without bounds no sequential decision is valid; give the "
            "least and the greatest value that an episode can have with --bounds LOW,HIGH, or use a rate or a share"
        )
    if not metric.bounds[0] < metric.bounds[1]:
        raise UsageError(f"the bounds are {metric.bounds[0]:g} and {metric.bounds[1]:g}; the first must be lower")
    if not metric.better:
        raise UsageError(f"the metric {name!r} does not say what is better; add --better higher or --better lower")
    return metric


def decide(
    candidate: Run,
    baseline: Run,
    metric: str = "score",
    margin: float = 0.02,
    *,
    bounds: tuple[float, float] | None = None,
    better: Better = "",
    error: float = ERROR,
    seed: int = 0,
    block: int = BLOCK,
    first: int | None = None,
) -> GateDecision:
    """Decide from two run folders.

    Args:
        candidate: The run in question.
        baseline: The run that it must not be worse than.
        metric: The name of a metric that both runs have.
        margin: The largest acceptable loss, in the unit of the metric.
        bounds: The least and the greatest value of a row, for metrics that do not declare them.
        better: "higher" or "lower", for metrics that do not declare it.
        error: The probability that a decision in one direction is ever wrong.
        seed: The seed of the order of clusters, which only decides the looks; a run of a gate has its own order.
        block: The number of episodes between two looks.
        first: Only the first of the planned episodes of a gate's run count.
    """
    chosen = gate_metric(metric, comparable_metrics(candidate, baseline), bounds, better)
    matched = match(candidate, baseline)
    if not len(matched):
        raise UsageError(
            f"{candidate.folder.name} and {baseline.folder.name} share no episode: {matched.why_not}; run both with "
            "the same scenarios, seed and replicates"
        )
    stream = _stream(matched, chosen, seed, first)
    span = chosen.bounds[1] - chosen.bounds[0] if chosen.bounds else 1.0
    if not 0.0 <= margin < span:
        raise UsageError(f"the margin is {margin:g}; allowed: from 0 to below {span:g}, the range of {metric!r}")
    sequence = ConfidenceSequence(margin / span, stream.largest, error)
    looks: list[Look] = []
    found = sequence.bounds()
    step = max(block, ceil(stream.count / _MOST_LOOKS)) if first is None else stream.count
    for clusters in stream.blocks(step):
        sequence.add(stream.totals[clusters], stream.sizes[clusters], stream.best[clusters])
        found = sequence.bounds()
        looks.append(_look(stream.ended_by(clusters), found, span, chosen))
    last = looks[-1] if looks else _look(0, found, span, chosen)
    more = None if found.more is None else ceil(found.more * found.pairs / max(found.clusters, 1))
    return GateDecision(
        found.verdict,
        chosen,
        margin,
        error,
        last.difference,
        last.low,
        last.high,
        found.pairs,
        found.clusters,
        more,
        stream.crashed[0],
        stream.crashed[1],
        stream.count - found.pairs,
        matched.unmatched_candidate.count + matched.unmatched_baseline.count,
        tuple(looks),
        tuple(_notes(stream, matched, found)),
    )


@dataclass(frozen=True)
class _Stream:
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


def _stream(matched: Matching, metric: Metric, seed: int, first: int | None) -> _Stream:
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
    return _Stream(
        np.bincount(codes, totals, len(sizes))[order],
        np.bincount(codes, best, len(sizes))[order],
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


def _look(episodes: int, found: Bounds, span: float, metric: Metric) -> Look:
    """Return bounds in the unit of the metric, candidate minus baseline."""
    if metric.better == "lower":
        difference = None if found.estimate is None else -found.estimate * span
        return Look(episodes, difference, -found.high * span, -found.low * span)
    difference = None if found.estimate is None else found.estimate * span
    return Look(episodes, difference, found.low * span, found.high * span)


def _notes(stream: _Stream, matched: Matching, found: Bounds) -> Iterator[str]:
    """Yield what a reader of the decision should know."""
    if found.clusters and found.pairs > found.clusters:
        yield (
            f"{found.pairs:,} episodes are in {found.clusters:,} clusters, which share a map, a recording or a scenario; "
            "other clusters inform more than more episodes of these"
        )
    for role, unmatched in (("candidate", matched.unmatched_candidate), ("baseline", matched.unmatched_baseline)):
        if unmatched.count:
            yield f"{unmatched.count:,} episodes of the {role} have no partner and do not count: {unmatched}"
    for role, crashed in zip(("candidate", "baseline"), stream.crashed, strict=True):
        if crashed:
            yield f"{crashed:,} episodes of the {role} crashed or timed out; a crash of the candidate counts as a failure"
    if stream.left and found.verdict is Verdict.UNDECIDED:
        yield f"{stream.left:,} planned episodes have not run"
