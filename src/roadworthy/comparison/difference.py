"""The difference of one metric between two runs: its interval, p-values, flips, and what they allow to conclude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from roadworthy.comparison.pairs import Pairs
from roadworthy.comparison.row_values import RowValues, each_once
from roadworthy.metrics.metric import Array, Kind, Metric
from roadworthy.statistics import LEVEL, Clusters, Interval, paired_rate
from roadworthy.statistics.clusters import sums
from roadworthy.statistics.differences import Tested, paired_difference, unpaired_difference
from roadworthy.statistics.flips import mcnemar, sign_flips
from roadworthy.statistics.paired import newcombe_paired, one_pair_per_cluster
from roadworthy.statistics.unpaired import unpaired_rate


class Verdict(Enum):
    """What an interval of a difference and a margin allow to conclude."""

    BETTER = "better"
    NOT_WORSE = "not worse"  # than the margin
    WORSE = "worse"
    UNDECIDED = "undecided"
    EQUAL = "equal"  # no pair differs
    HIGHER = "higher"  # of a metric without a direction
    LOWER = "lower"


@dataclass(frozen=True)
class Difference:
    """Candidate minus baseline for one metric, over pairs or over independent rows."""

    metric: Metric
    part: str  # what it covers: "" for everything, else a class, a bin of a factor or a trial
    candidate: float | None
    baseline: float | None
    interval: Interval  # of the difference, with the share of missing rows and worst-case bounds
    is_paired: bool
    p: float | None = None  # of no difference; None: not enough data
    p_holm: float | None = None  # corrected for the metrics of its family
    gains: int = 0  # for rates over pairs: the candidate alone succeeded ("it happened" for rates of infractions)
    losses: int = 0
    equal: bool = False  # whether no pair differs
    margin: float = 0.0
    verdict: Verdict = Verdict.UNDECIDED
    more: Mapping[str, Any] | None = None  # other methods: exact p-values, Newcombe's interval
    run: str = ""  # the candidate's label
    section: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON has it."""
        metric = self.metric
        interval = {key: value for key, value in asdict(self.interval).items() if key not in ("value", "n")}
        return {
            "section": self.section,
            "run": self.run,
            "metric": metric.name,
            "part": self.part,
            "unit": metric.unit,
            "better": metric.better,
            "candidate": self.candidate,
            "baseline": self.baseline,
            "difference": self.interval.value,
            "paired": self.is_paired,
            "n": self.interval.n,
            **interval,
            "p": self.p,
            "p_holm": self.p_holm,
            "gains": self.gains,
            "losses": self.losses,
            "margin": self.margin,
            "verdict": self.verdict.value,
            **(self.more or {}),
        }


def paired(pairs: Pairs, part: str = "", level: float = LEVEL) -> Difference:
    """Return the difference over pairs; episodes without a result count as the metric says, see Pairs.counted."""
    metric = pairs.metric
    shown = pairs.counted()
    tested, more = _tested(shown, level)
    interval = _with_missing(tested.interval, pairs, level)
    differences = shown.differences
    known = ~np.isnan(differences)
    gains, losses = int((differences > 0.0).sum()), int((differences < 0.0).sum())
    is_rate = metric.kind is Kind.RATE
    is_equal = bool(known.any()) and gains == losses == 0 and not _ratio_differs(shown)
    values = [_value(shown, values, weights, known) for values, weights in _sides(shown)]  # of the same rows
    return Difference(
        metric,
        part,
        values[0],
        values[1],
        interval,
        True,
        p=tested.p,
        gains=gains if is_rate else 0,
        losses=losses if is_rate else 0,
        equal=is_equal and not pairs.missing,
        more=more,
    )


def unpaired(
    metric: Metric,
    candidate: RowValues,
    baseline: RowValues,
    clusters: tuple[Clusters, Clusters],
    missing: tuple[float, float] = (0.0, 0.0),
    part: str = "",
    level: float = LEVEL,
) -> Difference:
    """Return the difference over independent rows; the values have one row per scenario where each counts once."""
    if metric.kind is Kind.RATE and not metric.is_per_scenario:
        tested = unpaired_rate(candidate.values, baseline.values, clusters, level)
    else:
        first, second = candidate.weights, baseline.weights
        weights = None if first is None or second is None else (first, second)
        tested = unpaired_difference(candidate.values, baseline.values, clusters, weights, level)
    interval = replace(_bounded(tested.interval, metric), missing=max(missing))
    interval = replace(interval, worst_low=interval.low, worst_high=interval.high)
    if max(missing) and metric.bounds is not None and interval.low is not None and interval.high is not None:
        # Rows without a result could all have been at one end, which moves a mean by at most its share of the range.
        low, high = metric.bounds
        reach = sum(missing) * (high - low)
        interval = replace(
            interval, worst_low=max(interval.low - reach, low - high), worst_high=min(interval.high + reach, high - low)
        )
    sides = zip((candidate, baseline), clusters, strict=True)
    values = [sums(rows.values, own, rows.weights).value for rows, own in sides]
    return Difference(metric, part, values[0], values[1], interval, False, p=tested.p)


def judged(found: Difference, margin: float, alpha: float) -> Difference:
    """Return the difference with its verdict.

    better      the interval is above 0, and the corrected p-value is below alpha
    not worse   the interval is above -margin
    worse       the interval is below 0, and the corrected p-value is below alpha
    undecided   none of these

    "Above" means: on the side of better values. Where the metric does not say what an episode without a result counts
    as, the worst-case bounds decide.
    """
    interval, metric = found.interval, found.metric
    low, high = interval.low, interval.high
    if interval.missing and metric.failed is None:
        low, high = interval.worst_low, interval.worst_high
    verdict = Verdict.UNDECIDED
    if found.equal:
        verdict = Verdict.EQUAL
    elif low is not None and high is not None:
        if metric.better == "lower":
            low, high = -high, -low
        p = found.p if found.p_holm is None else found.p_holm
        is_significant = p is not None and p < alpha
        up, down = (Verdict.BETTER, Verdict.WORSE) if metric.better else (Verdict.HIGHER, Verdict.LOWER)
        if low > 0.0 and is_significant:
            verdict = up
        elif metric.better and margin > 0.0 and low > -margin:
            verdict = Verdict.NOT_WORSE
        elif high < 0.0 and is_significant:
            verdict = down
    return replace(found, margin=margin, verdict=verdict)


def _tested(pairs: Pairs, level: float) -> tuple[Tested, dict[str, Any]]:
    """Return the interval, the p-value and the results of other methods."""
    metric = pairs.metric
    if metric.kind is Kind.RATIO:
        assert pairs.weights_candidate is not None
        assert pairs.weights_baseline is not None
        weights = (pairs.weights_candidate, pairs.weights_baseline)
        return paired_difference(pairs.candidate, pairs.baseline, pairs.clusters, weights, level), {}
    if metric.is_per_scenario:
        known = ~np.isnan(pairs.differences)
        some = pairs.where(known)
        first, clusters = each_once(some.candidate, some.scenarios, some.clusters)
        second, _ = each_once(some.baseline, some.scenarios, some.clusters)
        return _mean(first, second, clusters, metric, level), {}
    if metric.kind is Kind.RATE:
        return _rate(pairs, level)
    return _mean(pairs.candidate, pairs.baseline, pairs.clusters, metric, level), {}


def _rate(pairs: Pairs, level: float) -> tuple[Tested, dict[str, Any]]:
    """Return Tango's interval with McNemar's mid-p value, or their clustered forms."""
    units = pairs.scenarios if pairs.clusters.count < len(pairs) else None  # of scenarios on maps; else as clusters
    interval = paired_rate(pairs.candidate, pairs.baseline, pairs.clusters, level, units=units)
    if interval.low is None:
        interval = one_pair_per_cluster(pairs.differences, pairs.clusters, level)
    given = sums(pairs.differences, pairs.clusters)
    if not given.rows:
        return Tested(interval, None), {}
    if given.is_one_each:
        gains, losses = int((given.total > 0).sum()), int((given.total < 0).sum())
        found = mcnemar(gains, losses)
        both = int((pairs.candidate + pairs.baseline == 2.0).sum())
        newcombe = newcombe_paired(both, gains, losses, given.rows - both - gains - losses, level)
        more: dict[str, Any] = {"newcombe": list(newcombe), "p_method": "McNemar mid-p"}
    else:
        found = sign_flips(given.total)
        more = {"p_method": "sign flips by cluster, mid-p"}
    return Tested(interval, found.mid if interval.low is not None else None), {**more, "p_exact": found.exact}


def _mean(first: Array, second: Array, clusters: Clusters, metric: Metric, level: float) -> Tested:
    """Return the bootstrap over pairs, or a wider interval of a bounded metric where few clusters differ."""
    tested = paired_difference(first, second, clusters, None, level)
    if tested.interval.low is None and metric.bounds is not None:
        width = metric.bounds[1] - metric.bounds[0]
        wide = one_pair_per_cluster((first - second) / width, clusters, level)
        if wide.low is not None and wide.high is not None:
            interval = replace(wide, value=tested.interval.value, low=wide.low * width, high=wide.high * width)
            return Tested(interval, 1.0 if interval.value == 0.0 else None)
    return Tested(_bounded(tested.interval, metric), tested.p)


def _bounded(interval: Interval, metric: Metric) -> Interval:
    """Return an interval within what differences of a bounded metric can be."""
    if metric.bounds is None or metric.kind is Kind.RATIO or interval.low is None or interval.high is None:
        return interval
    width = metric.bounds[1] - metric.bounds[0]
    return replace(interval, low=max(interval.low, -width), high=min(interval.high, width))


def _with_missing(interval: Interval, pairs: Pairs, level: float) -> Interval:
    """Return the interval with the share of rows without a result, and the bounds that their worst values give."""
    share = pairs.missing
    if not share:
        return replace(interval, missing=0.0, worst_low=interval.low, worst_high=interval.high)
    bounds = pairs.metric.bounds
    if bounds is None or pairs.metric.kind is Kind.RATIO:
        return replace(interval, missing=share, worst_low=None, worst_high=None)
    low, high = bounds
    worst = _tested(pairs.filled(low, high), level)[0].interval.low
    best = _tested(pairs.filled(high, low), level)[0].interval.high
    return replace(interval, missing=share, worst_low=worst, worst_high=best)


def _sides(pairs: Pairs) -> tuple[tuple[Array, Array | None], tuple[Array, Array | None]]:
    return (pairs.candidate, pairs.weights_candidate), (pairs.baseline, pairs.weights_baseline)


def _value(pairs: Pairs, values: Array, weights: Array | None, known: Any) -> float | None:
    """Return the figure of one side over the rows that both sides have."""
    if weights is not None:
        for _, each in _sides(pairs):
            known = known & ~np.isnan(weights if each is None else each)
        total = float(weights[known].sum())
        return float(values[known].sum()) / total if total > 0.0 else None
    if not known.any():
        return None
    if pairs.metric.is_per_scenario:
        some = pairs.where(known)
        return float(each_once(values[known], some.scenarios, some.clusters)[0].mean())
    return float(values[known].mean())


def _ratio_differs(pairs: Pairs) -> bool:
    if pairs.weights_candidate is None or pairs.weights_baseline is None:
        return False
    return not np.array_equal(pairs.weights_candidate, pairs.weights_baseline, equal_nan=True)
