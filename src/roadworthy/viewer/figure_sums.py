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
from roadworthy.metrics.outcomes import UNITS

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
        values = {"name": metric.name, "kind": metric.kind.value, "unit": metric.unit, "what": metric.what}
        values |= {"version": metric.version}
        return values | {"per": metric.per, "isInverse": metric.is_inverse, "isPerScenario": metric.is_per_scenario}


def declared(names: Mapping[str, Sequence[str]], is_driving: bool, rates: frozenset[str] = frozenset()) -> list[Declared]:
    """Return the metrics of a run whose sums are computed.

    Args:
        names: The columns of each table.
        is_driving: Whether egos drove scenarios; otherwise every outcome is a metric.
        rates: The outcomes that are rates, of a run that did not drive.
    """
    if not is_driving:
        outcomes = [name.removeprefix("outcomes.") for name in names["episodes"] if name.startswith("outcomes.")]
        return [Declared(_outcome(name, name in rates), "episodes") for name in sorted(outcomes)]
    found = [Declared(metric, "trials") for metric in (*TRIAL_METRICS, *TRACE_METRICS)]
    found += [Declared(metric, "agents") for metric in (*AGENT_METRICS, *RATIO_METRICS)]
    return [entry for entry in found if set(entry.columns) <= set(names[entry.table])]


def episode_sums(metric: Metric, columns: Sequence[Array], episodes: NDArray[np.int64], count: int) -> tuple[Array, ...]:
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
    return total, weight, rows


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


def _outcome(name: str, is_rate: bool) -> Metric:
    unit = "share" if is_rate else next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")
    return Metric(name, Kind.RATE if is_rate else Kind.MEAN, name, unit, "episode", "")
