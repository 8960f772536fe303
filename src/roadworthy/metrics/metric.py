"""Declarations of metrics: column, kind, unit, what they count per, and version.

A metric reads one column of a table of rows (agents or trials), or two columns for a ratio. Rows are clustered by
scenario. The version of a metric increases whenever the same rows would give another figure.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roadworthy.statistics import Clusters, Interval, mean, rate, ratio

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Better = Literal["higher", "lower", ""]


class Kind(Enum):
    """The kind of figure, which decides its interval."""

    RATE = "rate"  # the share of rows with a value above 0
    SHARE = "share"  # the mean of values from 0 to 1
    MEAN = "mean"
    RATIO = "ratio"  # the sum of one column over the sum of another


@dataclass(frozen=True)
class Metric:
    """The declaration of one figure."""

    name: str
    kind: Kind
    column: str  # a figure of rows
    unit: str
    per: str  # what it counts: "trial" reads rows of trials, anything else rows of agents
    what: str  # a description for reports
    over: str = ""  # the column in the denominator of a ratio
    scale: float = 1.0  # of the denominator of a ratio, as for meters to kilometers
    is_inverse: bool = False  # whether a ratio is inverted: distance per event instead of events per distance
    is_per_scenario: bool = False  # whether the figure is the mean over scenarios, each of which counts once
    version: int = 1
    better: Better = ""  # the direction of improvement; "": there is none
    bounds: tuple[float, float] | None = None  # the least and the greatest value of a row; None: it has no bounds
    failed: float | None = None  # the value of an episode that crashed or timed out; None: it has no data

    def __post_init__(self) -> None:
        if self.kind in (Kind.RATE, Kind.SHARE) and self.bounds is None:
            object.__setattr__(self, "bounds", (0.0, 1.0))


class Rows:
    """The input of figures: n rows of a table, clustered by scenario."""

    def __init__(self, table: pa.Table, clusters: Clusters) -> None:
        self.clusters = clusters
        self._columns = dict(zip(table.column_names, table.columns, strict=True))
        self._chosen: Flags | None = None  # the selected rows of the table; None: all

    def __len__(self) -> int:
        return len(self.clusters.codes)

    def column(self, figure: str) -> Array:
        """Return a figure, (n,), NaN for no data; all NaN if no row has it."""
        name = f"figures.{figure}"
        return self._values(name) if name in self._columns else np.full(len(self), np.nan)

    def has(self, figure: str) -> bool:
        """Return whether the table has a figure, with or without data."""
        return f"figures.{figure}" in self._columns

    def numbers(self, column: str) -> NDArray[np.int64]:
        """Return a column of whole numbers, such as the trial, (n,)."""
        return self._values(column).astype(np.int64)

    def where(self, rows: Flags) -> Rows:
        """Return some of these rows; all of them return this object."""
        if rows.all():
            return self
        some = copy(self)
        some.clusters = self.clusters.chosen(rows)
        if self._chosen is None:
            some._chosen = rows
        else:
            some._chosen = np.zeros(len(self._chosen), np.bool_)
            some._chosen[np.flatnonzero(self._chosen)[rows]] = True
        return some

    def _values(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = self._columns[name].to_numpy()
        return values if self._chosen is None else values[self._chosen]


def figure(metric: Metric, rows: Rows, *, per_scenario: bool = False) -> dict[str, Any]:
    """Return a figure for metrics.json; per_scenario: the mean over scenarios, each of which counts once."""
    each_once = per_scenario or metric.is_per_scenario
    values = row_values(metric, rows)
    if metric.kind is Kind.RATIO:
        return as_figure(_ratio(metric, values, rows), metric.name, metric.per, metric)
    if metric.kind is Kind.RATE:
        found = rate(values, rows.clusters, each_once=each_once)
    else:
        found = mean(values, rows.clusters, is_share=metric.kind is Kind.SHARE, each_once=each_once)
    if each_once:
        name = metric.name if metric.is_per_scenario else f"{metric.name}_per_scenario"
        return as_figure(replace(found, n=found.clusters), name, "scenario", metric)
    return as_figure(found, metric.name, metric.per, metric)


def row_values(metric: Metric, rows: Rows) -> Array:
    """Return the value of each row, (n,): for rates 1 where it happened, else 0; NaN for no data."""
    values = rows.column(metric.column)
    return np.where(np.isnan(values), np.nan, values > 0.0) if metric.kind is Kind.RATE else values


def as_figure(found: Interval, name: str, per: str, metric: Metric) -> dict[str, Any]:
    """Return an interval as a figure for metrics.json."""
    return {"name": name, **vars(found), "per": per, "unit": metric.unit, "version": metric.version}


def _ratio(metric: Metric, values: Array, rows: Rows) -> Interval:
    """Return a sum over a sum, or its inverse; n is the sum of what it counts per."""
    over = np.where(np.isnan(values), np.nan, rows.column(metric.over) * metric.scale)
    found = ratio(values, over, rows.clusters)
    if not metric.is_inverse:
        return replace(found, n=round(float(np.nansum(over)), 3))
    found = replace(found, n=round(float(np.nansum(values)), 3))
    if found.value is None or found.value == 0.0:
        return replace(found, value=None, note="no data: it never happened" if found.value == 0.0 else found.note)
    if found.low is None or found.high is None:
        return replace(found, value=1.0 / found.value)
    if found.low <= 0.0:
        note = "not enough data: the rate may be zero"
        return replace(found, value=1.0 / found.value, low=None, high=None, level=None, method=None, note=note)
    return replace(found, value=1.0 / found.value, low=1.0 / found.high, high=1.0 / found.low)
