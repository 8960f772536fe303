"""Pairs: the values of a metric in two runs for the same episode, agent and trial.

matched = match(candidate, baseline)          # which episodes are shared, and why others are not
pairs = pair_rows(matched, metric)            # one row per value
pairs.counted()                               # crashed episodes count as failures
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from roadworthy.comparison.matching import Matching, match
from roadworthy.comparison.planned import Flags, Numbers, Planned, State
from roadworthy.comparison.row_values import (
    EPISODES,
    FIGURES,
    OUTCOMES,
    ROW_BITS,
    TRIALS,
    RowValues,
    ValueReader,
    declared_metrics,
    table_of,
    trial_of,
)
from roadworthy.errors import UsageError
from roadworthy.metrics.metric import Array, Kind, Metric
from roadworthy.metrics.outcomes import outcome_metric
from roadworthy.record import Run
from roadworthy.statistics import Clusters

_Columns = tuple[Array, Array, Array | None, Array | None]


@dataclass(frozen=True)
class Pairs:
    """The n values of a metric in two runs, row by row."""

    metric: Metric
    episodes: Matching  # the shared episodes
    episode: Numbers  # (n,) which of them
    candidate: Array  # (n,) NaN: no data
    baseline: Array  # (n,)
    clusters: Clusters  # (n,)
    missing_candidate: Flags  # (n,) no data because the episode crashed, timed out or never ran
    missing_baseline: Flags  # (n,)
    weights_candidate: Array | None = None  # (n,) the denominators of ratios
    weights_baseline: Array | None = None  # (n,)
    trials: Numbers | None = None  # (n,) the trial of each row, if it is of a trial
    parts: Numbers | None = None  # (n,) agent, attempt and trial as one number, see row_values
    unmatched_candidate: int = 0  # rows without a partner in completed episodes and episodes without a partner
    unmatched_baseline: int = 0

    def __len__(self) -> int:
        return len(self.candidate)

    @cached_property
    def episode_ids(self) -> NDArray[np.object_]:
        """The id of the baseline's episode of each row, (n,)."""
        return self.episodes.episode_ids(self.episode)

    @cached_property
    def scenarios(self) -> Clusters:
        """The scenario of each row, (n,)."""
        return _chosen(self.episodes.scenarios, self.episode)

    @cached_property
    def differences(self) -> Array:
        """Candidate minus baseline, (n,); NaN where either has no data."""
        return self.candidate - self.baseline

    @property
    def classes(self) -> Mapping[str, Flags]:
        """Whether each row has a tag, (n,), by tag."""
        return {name: flags[self.episode] for name, flags in self.episodes.classes.items()}

    @property
    def factors(self) -> Mapping[str, NDArray[Any]]:
        """The factors of each row, (n,), by name."""
        return {name: values[self.episode] for name, values in self.episodes.factors.items()}

    @property
    def missing(self) -> float:
        """The share of rows without data in either run because an episode has no result."""
        return float((self.missing_candidate | self.missing_baseline).mean()) if len(self) else 0.0

    def counted(self) -> Pairs:
        """Return the pairs with episodes without a result as failures, if the metric says what they count as."""
        if self.metric.failed is None or not self.missing:
            return self
        return self.filled(self.metric.failed, self.metric.failed)

    def filled(self, candidate: float, baseline: float) -> Pairs:
        """Return the pairs with these values where an episode has no result."""
        return replace(
            self,
            candidate=np.where(self.missing_candidate, candidate, self.candidate),
            baseline=np.where(self.missing_baseline, baseline, self.baseline),
        )

    def where(self, rows: Flags) -> Pairs:
        """Return some of the rows."""
        if rows.all():
            return self
        chosen: dict[str, Any] = {}
        for name in ("weights_candidate", "weights_baseline", "trials", "parts"):
            column = getattr(self, name)
            chosen[name] = None if column is None else column[rows]
        return replace(
            self,
            episode=self.episode[rows],
            candidate=self.candidate[rows],
            baseline=self.baseline[rows],
            clusters=self.clusters.chosen(rows),
            missing_candidate=self.missing_candidate[rows],
            missing_baseline=self.missing_baseline[rows],
            **chosen,
        )


def comparable_metrics(a: Run, b: Run) -> tuple[Metric, ...]:
    """Return the metrics that both runs have, in the order of reports."""
    readers = ValueReader(Planned(a)), ValueReader(Planned(b))
    if readers[0].is_driving != readers[1].is_driving:
        return ()
    if not readers[0].is_driving:
        return tuple(_outcome_metrics(a, b))
    known = [metric for metric in declared_metrics() if all(reader.has(metric) for reader in readers)]
    return (*known, *_own_metrics(a, {metric.name for metric in declared_metrics()}, readers))


def pair(candidate: Run, baseline: Run, metric: Metric) -> Pairs:
    """Pair the rows of two runs by episode, agent and trial; UsageError says why if they share no episode.

    Args:
        candidate: The run in question.
        baseline: The run that it is compared with.
        metric: One of `comparable_metrics`.
    """
    matched = match(candidate, baseline)
    if not len(matched):
        raise UsageError(
            f"{candidate.folder.name} and {baseline.folder.name} share no episode: {matched.why_not}; run both with "
            "the same scenarios, seed and replicates"
        )
    return pair_rows(matched, metric)


def pair_rows(matched: Matching, metric: Metric, readers: tuple[ValueReader, ValueReader] | None = None) -> Pairs:
    """Pair the rows of a metric; readers: of the candidate and the baseline, to read each column once."""
    ours, theirs = readers or (ValueReader(matched.candidate), ValueReader(matched.baseline))
    first = _placed(ours.values(metric), matched.candidate_places, len(matched.candidate))
    second = _placed(theirs.values(metric), matched.baseline_places, len(matched.baseline))
    lost = [
        planned.states[places] != State.COMPLETED
        for planned, places in (
            (matched.candidate, matched.candidate_places),
            (matched.baseline, matched.baseline_places),
        )
    ]
    extra = (matched.unmatched_candidate.count, matched.unmatched_baseline.count)
    if not (lost[0].any() or lost[1].any()) and np.array_equal(first.parts, second.parts):
        keys, columns = first.parts, (first.values, second.values, first.weights, second.weights)
    else:
        keys, columns, dropped = _joined(first, second, lost[0], lost[1])
        extra = (extra[0] + dropped[0], extra[1] + dropped[1])
    episode = keys >> ROW_BITS
    is_trial = table_of(metric, ours.is_driving) == TRIALS
    return Pairs(
        metric,
        matched,
        episode,
        columns[0],
        columns[1],
        _chosen(matched.clusters, episode),
        lost[0][episode],
        lost[1][episode],
        columns[2],
        columns[3],
        trials=trial_of(keys) if is_trial else None,
        parts=keys & ((1 << ROW_BITS) - 1),
        unmatched_candidate=extra[0],
        unmatched_baseline=extra[1],
    )


def _placed(rows: RowValues, places: Numbers, planned: int) -> RowValues:
    """Return the rows of shared episodes, sorted; `parts` is the whole key with the number of the shared episode."""
    shared = np.full(planned, -1, np.int64)
    shared[places] = np.arange(len(places))
    episodes = shared[rows.places]
    keys = (episodes << ROW_BITS) | rows.parts
    is_shared = episodes >= 0
    values, weights = rows.values, rows.weights
    if not is_shared.all():
        keys, values, episodes = keys[is_shared], values[is_shared], episodes[is_shared]
        weights = None if weights is None else weights[is_shared]
    if (np.diff(keys) < 0).any():
        order = np.argsort(keys, kind="stable")
        keys, values, episodes = keys[order], values[order], episodes[order]
        weights = None if weights is None else weights[order]
    return RowValues(episodes, keys, values, weights)


def _joined(
    first: RowValues, second: RowValues, lost_first: Flags, lost_second: Flags
) -> tuple[Numbers, _Columns, tuple[int, int]]:
    """Return the keys of all rows, the values and weights of both sides, and how many rows of each were left out.

    An episode without a result has no rows: it gets those of its partner, or one row if the partner has none either.
    Rows that only one of two completed episodes has are left out.
    """
    both_lost = np.flatnonzero(lost_first & lost_second) << ROW_BITS
    keys = np.union1d(np.concatenate([first.parts, second.parts]), both_lost)
    places = [np.searchsorted(keys, side.parts) for side in (first, second)]
    episodes = keys >> ROW_BITS
    is_in = []
    for place in places:
        flags = np.zeros(len(keys), np.bool_)
        flags[place] = True
        is_in.append(flags)
    only_first = is_in[0] & ~is_in[1] & ~lost_second[episodes]
    only_second = is_in[1] & ~is_in[0] & ~lost_first[episodes]
    kept = ~(only_first | only_second)

    def spread(given: Array | None, place: Numbers) -> Array | None:
        """Return a column of one side for the kept rows, NaN where that side has no row."""
        if given is None:
            return None
        column = np.full(len(keys), np.nan)
        column[place] = given
        return column[kept]

    values = [spread(side.values, place) for side, place in zip((first, second), places, strict=True)]
    weights = [spread(side.weights, place) for side, place in zip((first, second), places, strict=True)]
    assert values[0] is not None
    assert values[1] is not None
    return keys[kept], (values[0], values[1], weights[0], weights[1]), (int(only_first.sum()), int(only_second.sum()))


def _chosen(clusters: Clusters, episode: Numbers) -> Clusters:
    """Return the clusters of rows from those of episodes."""
    codes = clusters.codes[episode]
    found = Clusters(codes, clusters.count)
    return found if (found.sizes > 0).all() else found.chosen(np.ones(len(codes), np.bool_))


def _outcome_metrics(a: Run, b: Run) -> Sequence[Metric]:
    """Return a metric for each outcome that both runs have: a rate if it is 0 or 1 in both, else a mean."""
    names = [name for name in a.column_names(EPISODES) if name.startswith(OUTCOMES)]
    shared = [name for name in names if name in b.column_names(EPISODES)]
    metrics = [outcome_metric(name.removeprefix(OUTCOMES), _is_binary(name, a, b)) for name in shared]
    # Successes first, then other rates, then means.
    return sorted(metrics, key=lambda metric: (metric.failed is None, metric.kind is not Kind.RATE, metric.name))


def _is_binary(name: str, *runs: Run) -> bool:
    """Return whether an outcome is 0 or 1 wherever it is known, and known anywhere."""
    found = False
    for run in runs:
        column = run.episodes([name])[name].drop_null()
        if not pc.all(pc.or_(pc.equal(column, 0.0), pc.equal(column, 1.0))).as_py() and len(column):
            return False
        found |= len(column) > 0
    return found


def _own_metrics(run: Run, known: set[str], readers: Sequence[ValueReader]) -> list[Metric]:
    """Return the metrics of a user's own code: those of metrics.json whose column the rows have under their name."""
    found = []
    for figure in (run.metrics or {}).get("figures", ()):
        name, per = str(figure["name"]), str(figure["per"])
        if name in known or name.endswith("_per_scenario") or per == "scenario":
            continue
        for table in (TRIALS, "agents"):
            if f"{FIGURES}{name}" in run.column_names(table):
                is_rate = "Wilson" in str(figure.get("method"))
                kind = Kind.RATE if is_rate else Kind.MEAN
                metric = Metric(name, kind, name, str(figure["unit"]), "trial" if table == TRIALS else "agent", "")
                found += [metric] if all(reader.has(metric) for reader in readers) else []
                break
    return found
