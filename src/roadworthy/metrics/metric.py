"""Metrics as declarations: what is taken from which rows, its unit, what it counts per, and its version.

A metric reads one column of a table of rows (agents, or trials), some a second one. Rows are clustered by scenario.
The version of a metric goes up whenever the same rows would give another figure.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roadworthy.statistics import Clusters, Interval, mean, rate, ratio

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Kind(Enum):
    """What kind of figure a metric is, which decides its interval."""

    RATE = "rate"  # the share of rows in which something happened: above 0
    SHARE = "share"  # the mean of shares, from 0 to 1
    MEAN = "mean"
    RATIO = "ratio"  # the sum of one column over that of another


@dataclass(frozen=True)
class Metric:
    """One figure, declared."""

    name: str
    kind: Kind
    column: str  # figure of a row
    unit: str
    per: str
    what: str
    over: str = ""  # the denominator of a ratio
    scale: float = 1.0  # of a ratio's denominator, as in metres to kilometres
    is_inverse: bool = False  # of a ratio: how much per one, not how many per so much
    is_per_scenario: bool = False  # the figure is the mean over scenarios, each of which counts once
    version: int = 1


class Rows:
    """Rows of a table that figures are made of: n rows, clustered by scenario."""

    def __init__(self, table: pa.Table, clusters: Clusters) -> None:
        self.clusters = clusters
        self._columns = dict(zip(table.column_names, table.columns, strict=True))
        self._chosen: Flags | None = None  # which rows of the table; None: all of them

    def __len__(self) -> int:
        return len(self.clusters.codes)

    def column(self, figure: str) -> Array:
        """(n,) a figure, NaN for no data; all NaN where no row has it."""
        name = f"figures.{figure}"
        return self._values(name) if name in self._columns else np.full(len(self), np.nan)

    def has(self, figure: str) -> bool:
        """Return whether the table has a figure, with or without data."""
        return f"figures.{figure}" in self._columns

    def numbers(self, column: str) -> NDArray[np.int64]:
        """(n,) a column of whole numbers, such as the trial."""
        return self._values(column).astype(np.int64)

    def where(self, rows: Flags) -> Rows:
        """Some of these rows; where that is all of them, these themselves."""
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
    """A figure as metrics.json has it; per_scenario: the mean over scenarios, each of which counts once."""
    each_once = per_scenario or metric.is_per_scenario
    values = row_values(metric, rows)
    if metric.kind is Kind.RATIO:
        return told(_ratio(metric, values, rows), metric.name, metric.per, metric)
    if metric.kind is Kind.RATE:
        found = rate(values, rows.clusters, each_once=each_once)
    else:
        found = mean(values, rows.clusters, is_share=metric.kind is Kind.SHARE, each_once=each_once)
    if each_once:
        name = metric.name if metric.is_per_scenario else f"{metric.name}_per_scenario"
        return told(replace(found, n=found.clusters), name, "scenario", metric)
    return told(found, metric.name, metric.per, metric)


def row_values(metric: Metric, rows: Rows) -> Array:
    """(n,) what each row adds to a metric: for rates 1 where it happened, else 0; NaN for no data."""
    values = rows.column(metric.column)
    return np.where(np.isnan(values), np.nan, values > 0.0) if metric.kind is Kind.RATE else values


def told(found: Interval, name: str, per: str, metric: Metric) -> dict[str, Any]:
    """An interval as metrics.json has it."""
    return {"name": name, **vars(found), "per": per, "unit": metric.unit, "version": metric.version}


def _ratio(metric: Metric, values: Array, rows: Rows) -> Interval:
    """A sum over a sum, or the other way round; n is the sum of what it counts per."""
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
        note = "not enough data: it may be that it never happens"
        return replace(found, value=1.0 / found.value, low=None, high=None, level=None, method=None, note=note)
    return replace(found, value=1.0 / found.value, low=1.0 / found.high, high=1.0 / found.low)
