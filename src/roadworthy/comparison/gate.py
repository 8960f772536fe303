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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from roadworthy.comparison.gate_stream import Stream, make_stream
from roadworthy.comparison.margins import require_margin
from roadworthy.comparison.matching import Matching, Unmatched, match
from roadworthy.comparison.pairs import comparable_metrics
from roadworthy.errors import UsageError
from roadworthy.metrics.metric import Better, Kind, Metric
from roadworthy.plugins import nearest
from roadworthy.record import Run
from roadworthy.statistics.sequential import ERROR, Bounds, ConfidenceSequence, Verdict

BLOCK = 100  # episodes between looks
_MOST_LOOKS = 200  # of a path through recorded runs
_FEW = 5  # metrics that an error lists
SCORE, SUCCESS = "score", "success"  # the metrics of a gate that names none


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


def default_metric(known: Iterable[Metric]) -> str:
    """Return the metric of a gate that names none: score, or success where there is no score."""
    names = {metric.name for metric in known if metric.bounds is not None and metric.kind is not Kind.RATIO}
    return next((name for name in (SCORE, SUCCESS) if name in names), SCORE)


def _nothing_shared(candidate: Run, baseline: Run) -> str:
    """Return why two runs can't be compared by any metric."""
    sides = []
    for role, run in (("candidate", candidate), ("baseline", baseline)):
        names = [metric.name for metric in comparable_metrics(run, run)]
        more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
        listed = ", ".join(names[:_FEW]) or "none"
        sides.append(f"the {role} ({run.header.get('evaluator')}) has {listed}{more}")
    return f"the runs come from different evaluators and share no metric: {'; '.join(sides)}; give two runs of one"


def decide(
    candidate: Run,
    baseline: Run,
    metric: str | None = None,
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
        metric: The name of a metric that both runs have; by default score, or success where there is no score.
        margin: The largest acceptable loss, in the unit of the metric.
        bounds: The least and the greatest value of a row, for metrics that do not declare them.
        better: "higher" or "lower", for metrics that do not declare it.
        error: The probability that a decision in one direction is ever wrong.
        seed: The seed of the order of clusters, which only decides the looks; a run of a gate has its own order.
        block: The number of episodes between two looks.
        first: Only the first of the planned episodes of a gate's run count.
    """
    known = comparable_metrics(candidate, baseline)
    if not known:
        raise UsageError(_nothing_shared(candidate, baseline))
    chosen = gate_metric(metric or default_metric(known), known, bounds, better)
    matched = match(candidate, baseline)
    if not len(matched):
        raise UsageError(
            f"{candidate.folder.name} and {baseline.folder.name} share no episode: {matched.why_not}; run both with "
            "the same scenarios, seed and replicates"
        )
    stream = make_stream(matched, chosen, seed, first)
    span = chosen.bounds[1] - chosen.bounds[0] if chosen.bounds else 1.0
    require_margin(chosen, margin)
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
        sum(unmatched.count for unmatched in _unmatched(matched).values()),
        tuple(looks),
        tuple(_notes(stream, matched, found, chosen)),
    )


def _look(episodes: int, found: Bounds, span: float, metric: Metric) -> Look:
    """Return bounds in the unit of the metric, candidate minus baseline."""
    if metric.better == "lower":
        difference = None if found.estimate is None else -found.estimate * span
        return Look(episodes, difference, -found.high * span, -found.low * span)
    difference = None if found.estimate is None else found.estimate * span
    return Look(episodes, difference, found.low * span, found.high * span)


def _unmatched(matched: Matching) -> dict[str, Unmatched]:
    """Return the episodes without a partner by role, but for those that a gate did not need to run in the other."""
    ours, theirs = matched.candidate.run, matched.baseline.run
    found = {}
    if matched.unmatched_candidate.count and theirs.decided is None:
        found["candidate"] = matched.unmatched_candidate
    if matched.unmatched_baseline.count and ours.decided is None:
        found["baseline"] = matched.unmatched_baseline
    return found


def _notes(stream: Stream, matched: Matching, found: Bounds, metric: Metric) -> Iterator[str]:
    """Yield what a reader of the decision should know."""
    if found.clusters and found.pairs > found.clusters:
        yield (
            f"{found.pairs:,} episodes are in {found.clusters:,} clusters, each with a map, a recording or a scenario "
            "in common; more clusters say more than more episodes of these"
        )
    for role, unmatched in _unmatched(matched).items():
        yield f"{unmatched.count:,} episodes of the {role} have no partner and do not count: {unmatched}"
    if stream.count > found.pairs:
        yield f"{stream.count - found.pairs:,} pairs have no value of the metric in one of the runs and do not count"
    for role, crashed in zip(("candidate", "baseline"), stream.crashed, strict=True):
        if crashed:
            counts = "a failure" if metric.failed is not None else "the worst or the unknown value"
            yield f"{crashed:,} episodes of the {role} crashed or timed out, which counts as {counts}"
    if stream.left and found.verdict is Verdict.UNDECIDED:
        yield f"{stream.left:,} planned episodes have not run"
