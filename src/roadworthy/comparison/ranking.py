"""Rank several runs by one metric, with the ranks that the data allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np

from roadworthy.comparison.matching import match
from roadworthy.comparison.pairs import Pairs, pair_rows
from roadworthy.comparison.planned import Numbers, Planned
from roadworthy.comparison.row_values import ROW_BITS, ValueReader
from roadworthy.comparison.unpaired import unpaired_inputs
from roadworthy.metrics.metric import Array, Kind, Metric
from roadworthy.record import Run
from roadworthy.statistics import LEVEL, Clusters
from roadworthy.statistics.multiple import Ranked, ranks


@dataclass(frozen=True)
class Ranking:
    """Runs ordered by one metric."""

    section: str
    metric: Metric
    labels: tuple[str, ...]  # best first
    ranked: tuple[Ranked, ...]
    is_paired: bool
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the ranking as JSON has it."""
        rows = [{"run": name, **asdict(found)} for name, found in zip(self.labels, self.ranked, strict=True)]
        return {
            "section": self.section,
            "metric": self.metric.name,
            "paired": self.is_paired,
            "note": self.note,
            "runs": rows,
        }


def rank_runs(
    section: str,
    names: Sequence[str],
    runs: Sequence[Run],
    metric: Metric,
    *,
    paired: bool = True,
    level: float = LEVEL,
) -> Ranking:
    """Rank runs by a metric: over the rows that all share, or as independent samples if they share none.

    The note of a ranking says which episodes count, unless all episodes of all runs do.
    """
    if metric.kind is Kind.RATIO or not metric.better:
        reason = "is a ratio" if metric.kind is Kind.RATIO else "has no direction of improvement"
        return Ranking(section, metric, (), (), False, f"not ranked: {metric.name} {reason}")
    values, clusters, episodes = _shared(runs, metric) if paired else ([], [], 0)
    is_paired = bool(values) and len(values[0]) > 0
    if not is_paired:
        for run in runs:
            reader = ValueReader(Planned(run))
            rows, _, own, _ = unpaired_inputs(metric, (reader, reader))
            values.append(rows.values)
            clusters.append(own[0])
        values, clusters = values[-len(runs) :], clusters[-len(runs) :]
    if min(own.count for own in clusters) < 2:
        return Ranking(section, metric, (), (), is_paired, "not ranked: not enough data")
    found = ranks(values, clusters, is_paired=is_paired, higher_is_better=metric.better == "higher", level=level)
    order = np.argsort([each.rank for each in found], kind="stable").tolist()
    note = _note(names, runs, is_paired, asked=not paired, episodes=episodes)
    return Ranking(section, metric, tuple(names[k] for k in order), tuple(found[k] for k in order), is_paired, note)


def _note(names: Sequence[str], runs: Sequence[Run], is_paired: bool, *, asked: bool, episodes: int) -> str:
    """Return which episodes count; asked: whether independent samples were asked for."""
    sizes = [len(Planned(run)) for run in runs]
    listed = ", ".join(f"{size:,} of {name}" for name, size in zip(names, sizes, strict=True))
    if not is_paired:
        why = "this was asked for" if asked else "no episode is in all runs"
        return (
            f"each run is ranked over its own episodes ({listed}), because {why}: ranks may differ because the "
            "episodes do"
        )
    if set(sizes) == {episodes}:
        return ""
    return f"ranked over the {_episodes(episodes)} that all runs share, out of {listed}"


def _episodes(count: int) -> str:
    """Return a number of episodes in words."""
    return f"{count:,} episode{'s' if count != 1 else ''}"


def _shared(runs: Sequence[Run], metric: Metric) -> tuple[list[Array], list[Clusters], int]:
    """Return the values of all runs for the rows that all share, their clusters, and the number of shared episodes."""
    matchings = [match(run, runs[0]) for run in runs[1:]]
    found = [pair_rows(matching, metric).counted() for matching in matchings]
    keys = [_keys(pairs) for pairs in found]
    shared = reduce(np.intersect1d, keys)
    if not shared.size:
        return [], [], 0
    orders = [np.argsort(own, kind="stable") for own in keys]
    places = [order[np.searchsorted(own[order], shared)] for own, order in zip(keys, orders, strict=True)]
    values = [pairs.candidate[place] for pairs, place in zip(found, places, strict=True)]
    names = found[0].episodes.clusters.codes[found[0].episode[places[0]]]
    clusters = Clusters(names, found[0].episodes.clusters.count).chosen(np.ones(len(names), np.bool_))
    episodes = reduce(np.intersect1d, [matching.baseline_places for matching in matchings])
    return [found[0].baseline[places[0]], *values], [clusters] * len(runs), len(episodes)


def _keys(pairs: Pairs) -> Numbers:
    """Return what identifies each row among the runs that are compared with one reference."""
    assert pairs.parts is not None
    return (pairs.episodes.baseline_places[pairs.episode] << ROW_BITS) | pairs.parts
