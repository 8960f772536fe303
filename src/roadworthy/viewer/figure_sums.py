"""Sums of figures per episode, from which the browser recomputes every figure and its interval for any selection.

All intervals depend on sums over clusters alone (statistics/clusters.py), and a cluster holds whole episodes. So per
episode and metric three numbers are enough: the sum of the values, the sum of the denominators (rows, or meters), and
the number of rows with data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRACE_METRICS, TRIAL_METRICS
from roadworthy.metrics.metric import Kind, Metric
from roadworthy.metrics.outcomes import outcome_metric

Array = NDArray[np.float64]
KINDS = ("total", "weight", "rows")


@dataclass(frozen=True)
class Declared:
    """A metric of a run, and the table that holds its column."""

    metric: Metric
    table: str  # "episodes", "agents" or "trials"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the metric reads."""
        prefix = "outcomes" if self.table == "episodes" else "figures"
        names = (self.metric.column, self.metric.over) if self.metric.over else (self.metric.column,)
        return tuple(f"{prefix}.{name}" for name in names)

    def plain(self) -> dict[str, Any]:
        """Return what the browser needs to know."""
        metric = self.metric
        return {
            "name": metric.name,
            "kind": metric.kind.value,
            "unit": metric.unit,
            "what": metric.what,
            "per": metric.per,
            "version": metric.version,
            "isInverse": metric.is_inverse,
            "isPerScenario": metric.is_per_scenario,
            "bounds": metric.bounds,
            "failed": metric.failed,
            "better": metric.better,
        }


def declared(
    names: Mapping[str, Sequence[str]], is_driving: bool, rates: frozenset[str] = frozenset()
) -> list[Declared]:
    """Return the metrics of a run whose sums are computed.

    Args:
        names: The columns of each table.
        is_driving: Whether egos drove scenarios; otherwise every outcome is a metric.
        rates: The outcomes that are rates, of a run that did not drive.
    """
    if not is_driving:
        outcomes = [name.removeprefix("outcomes.") for name in names["episodes"] if name.startswith("outcomes.")]
        return [Declared(outcome_metric(name, name in rates), "episodes") for name in sorted(outcomes)]
    found = [Declared(metric, "trials") for metric in (*TRIAL_METRICS, *TRACE_METRICS)]
    found += [Declared(metric, "agents") for metric in (*AGENT_METRICS, *RATIO_METRICS)]
    return [entry for entry in found if set(entry.columns) <= set(names[entry.table])]


def episode_sums(
    metric: Metric, columns: Sequence[Array], episodes: NDArray[np.int64], count: int
) -> tuple[Array, ...]:
    """Return the total, the weight and the rows of each episode, (count,) each.

    Args:
        metric: The metric.
        columns: Its columns, (n,) each.
        episodes: The episode of each row, (n,); -1 leaves the row out.
        count: The number of episodes.
    """
    values = columns[0]
    if metric.kind is Kind.RATE:
        values = np.where(np.isnan(values), np.nan, values > 0.0)
    weights = columns[1] * metric.scale if metric.kind is Kind.RATIO else np.ones(len(values))
    known = ~(np.isnan(values) | np.isnan(weights)) & (episodes >= 0)
    places = episodes[known]
    rows = np.bincount(places, minlength=count).astype(np.float64)
    total = np.bincount(places, values[known], count)
    weight = np.bincount(places, weights[known], count) if metric.kind is Kind.RATIO else rows
    return total.astype(np.float64), weight.astype(np.float64), rows


class Lacking:
    """The rows that failed episodes lack: as many as completed episodes of their scenario have on average.

    As in metrics.run_rows, a scenario of which no row has a figure would not have it in a failed episode either.
    """

    def __init__(self, episodes: pa.Table, egos: NDArray[np.int64]) -> None:
        """Take the episodes of a run, and the number of egos of each, (n,)."""
        self._is_completed = episodes["status"].to_numpy(zero_copy_only=False) == "completed"
        names, codes = np.unique(np.array(episodes["scenario_id"].to_pylist(), np.str_), return_inverse=True)
        self._scenarios, self._count = codes.reshape(-1), len(names)
        completed = self._sum(self._is_completed)
        found = self._sum(np.where(self._is_completed, egos, 0))
        usual = found.sum() / max(completed.sum(), 1)
        each = np.maximum(np.round(np.where(completed > 0, found / np.maximum(completed, 1), usual)), 1.0)
        self._egos = np.where(self._is_completed, 0.0, each[self._scenarios])

    @property
    def is_empty(self) -> bool:
        """Whether all episodes are completed."""
        return bool(self._is_completed.all())

    def of(self, rows: Array, egos: NDArray[np.int64] | None, trials: int) -> Array:
        """Return the number of rows that each episode lacks, (n,).

        Args:
            rows: The number of rows with data of each episode, (n,).
            egos: The number of rows with or without data of each episode, (n,); None: rows are episodes.
            trials: The rows of an ego.
        """
        with_data = self._sum(rows) > 0
        if egos is None:
            has_figure = np.full(self._count, bool(with_data.any()))
            return np.where(self._is_completed, 0.0, 1.0) * has_figure[self._scenarios]
        is_without = (self._sum(egos) > 0) & ~with_data
        if not with_data.any() and egos.any():
            return np.zeros(len(rows))
        return np.where(is_without[self._scenarios], 0.0, self._egos * trials)

    def _sum(self, values: NDArray[Any]) -> Array:
        return np.bincount(self._scenarios, values.astype(np.float64), self._count).astype(np.float64)


def column_values(table: pa.Table, name: str) -> Array:
    """Return a column of numbers, (n,), NaN for no data."""
    values: Array = table[name].to_numpy().astype(np.float64)
    return values


def rates_of(table: pa.Table) -> frozenset[str]:
    """Return the outcomes of episodes of which all known values are 0 or 1, and at least one is known."""
    found = []
    for name in table.column_names:
        if name.startswith("outcomes."):
            values = column_values(table, name)
            values = values[~np.isnan(values)]
            if values.size and ((values == 0.0) | (values == 1.0)).all():
                found.append(name.removeprefix("outcomes."))
    return frozenset(found)
