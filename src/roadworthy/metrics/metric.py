"""Declarations of metrics: column, kind, unit, what they count per, and version.

A metric reads one column of a table of rows (agents or trials), or two columns for a ratio. Rows are clustered by what
their scenarios share. The version of a metric increases whenever the same rows would give another value.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roadworthy.statistics import Clusters, Interval, mean, rate, ratio, with_missing

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


@dataclass(frozen=True)
class MissingRows:
    """Rows that a table lacks, because their episode crashed, timed out or never ran; one entry per row."""

    clusters: NDArray[np.int64]  # (m,)
    scenarios: NDArray[np.int64]  # (m,)
    trials: NDArray[np.int64]  # (m,) the number of the trial

    def __len__(self) -> int:
        return len(self.clusters)

    def where(self, rows: Flags) -> MissingRows:
        """Return some of these rows."""
        return MissingRows(self.clusters[rows], self.scenarios[rows], self.trials[rows])


_NOTHING = np.zeros(0, np.int64)
NONE_MISSING = MissingRows(_NOTHING, _NOTHING, _NOTHING)


class Rows:
    """The input of figures: n rows of a table with their clusters and scenarios, and the rows that it lacks."""

    def __init__(
        self,
        table: pa.Table,
        clusters: Clusters,
        scenarios: Clusters | None = None,
        missing: MissingRows = NONE_MISSING,
    ) -> None:
        self.clusters = clusters
        self.scenarios = scenarios or clusters
        self.missing = missing
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

    def where(self, rows: Flags, missing: Flags | None = None) -> Rows:
        """Return some of these rows, and some of the missing ones (None: all); all of them return this object."""
        is_whole = missing is None or bool(missing.all())
        if rows.all() and is_whole:
            return self
        some = copy(self)
        some.missing = self.missing if missing is None or is_whole else self.missing.where(missing)
        some.clusters = Clusters(self.clusters.codes[rows], self.clusters.count)
        is_shared = self.scenarios is not self.clusters
        some.scenarios = Clusters(self.scenarios.codes[rows], self.scenarios.count) if is_shared else some.clusters
        if self._chosen is None:
            some._chosen = rows
        else:
            some._chosen = np.zeros(len(self._chosen), np.bool_)
            some._chosen[np.flatnonzero(self._chosen)[rows]] = True
        return some

    def of_trial(self, number: int) -> Rows:
        """Return the rows of one trial, with those that are missing in it."""
        return self.where(self.numbers("trial") == number, self.missing.trials == number)

    def missing_of(self, values: Array) -> MissingRows:
        """Return the missing rows that would have a figure, given its values (n,).

        A scenario in which no row has it, such as one without an exam, would not have it in a failed episode either.
        """
        if not len(self.missing):
            return self.missing
        has_value = ~np.isnan(values)
        if not has_value.any() and len(values):
            return NONE_MISSING
        codes, count = self.scenarios.codes, self.scenarios.count
        is_without = (np.bincount(codes, minlength=count) > 0) & (np.bincount(codes[has_value], minlength=count) == 0)
        return self.missing.where(~is_without[self.missing.scenarios])

    def _values(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = self._columns[name].to_numpy()
        return values if self._chosen is None else values[self._chosen]


def figure(metric: Metric, rows: Rows, *, per_scenario: bool = False) -> dict[str, Any]:
    """Return a figure for metrics.json; per_scenario: the mean over scenarios, each of which counts once."""
    each_once = per_scenario or metric.is_per_scenario
    values = row_values(metric, rows)
    if metric.kind is Kind.RATIO:
        return as_figure(_ratio(metric, values, rows), metric.name, metric.per, metric)
    missing = rows.missing_of(values)
    values, is_missing = with_room(values, len(missing))
    clusters = extended(rows.clusters, missing.clusters)
    units = extended(rows.scenarios, missing.scenarios) if rows.scenarios is not rows.clusters else None
    scenarios: Clusters | bool = (units or clusters) if each_once else False

    def estimate(given: Array) -> Interval:
        if metric.kind is Kind.RATE:
            return rate(given, clusters, each_once=scenarios, units=units)
        return mean(given, clusters, bounds=metric.bounds, each_once=scenarios, units=units)

    found = with_missing(estimate, values, is_missing, metric.failed, metric.bounds)
    if isinstance(scenarios, Clusters):
        name = metric.name if metric.is_per_scenario else f"{metric.name}_per_scenario"
        counted = ~np.isnan(values) | (is_missing if metric.failed is not None else False)
        count = int(np.count_nonzero(np.bincount(scenarios.codes[counted], minlength=scenarios.count)))
        return as_figure(replace(found, n=count), name, "scenario", metric)
    return as_figure(found, metric.name, metric.per, metric)


def row_values(metric: Metric, rows: Rows) -> Array:
    """Return the value of each row, (n,): for rates 1 where it happened, else 0; NaN for no data."""
    values = rows.column(metric.column)
    return np.where(np.isnan(values), np.nan, values > 0.0) if metric.kind is Kind.RATE else values


def with_room(values: Array, count: int) -> tuple[Array, Flags]:
    """Return values with this number of missing ones after them, and which are missing."""
    is_missing = np.arange(len(values) + count) >= len(values)
    return (np.append(values, np.full(count, np.nan)) if count else values), is_missing


def extended(clusters: Clusters, codes: NDArray[np.int64]) -> Clusters:
    """Return clusters of rows with those of further rows after them."""
    return Clusters(np.append(clusters.codes, codes), clusters.count) if len(codes) else clusters


def contributions(metric: Metric, rows: Rows) -> Array:
    """Return what each cluster contributes to the deviation of a figure, (clusters,), 0 for those without data."""
    values = row_values(metric, rows)
    if metric.kind is Kind.RATIO:
        weights = np.where(np.isnan(values), np.nan, rows.column(metric.over) * metric.scale)
        clusters = rows.clusters
    else:
        missing = rows.missing_of(values)
        values, is_missing = with_room(values, len(missing))
        values = np.where(is_missing, np.nan if metric.failed is None else metric.failed, values)
        clusters = extended(rows.clusters, missing.clusters)
        weights = np.ones(len(values))
        if metric.is_per_scenario:
            scenarios = extended(rows.scenarios, missing.scenarios)
            known = np.bincount(scenarios.codes[~np.isnan(values)], minlength=scenarios.count)
            values, weights = values.copy(), 1.0 / np.maximum(known, 1)[scenarios.codes]
            values *= weights
    known_rows = ~(np.isnan(values) | np.isnan(weights))
    codes = clusters.codes[known_rows]
    total = np.bincount(codes, values[known_rows], clusters.count)
    weight = np.bincount(codes, weights[known_rows], clusters.count)
    if weight.sum() <= 0.0:
        return np.zeros(clusters.count)
    parts: Array = (total - total.sum() / weight.sum() * weight) / weight.sum()
    return parts


def as_figure(found: Interval, name: str, per: str, metric: Metric) -> dict[str, Any]:
    """Return an interval as a figure for metrics.json."""
    return {"name": name, **vars(found), "per": per, "unit": metric.unit, "version": metric.version}


def _ratio(metric: Metric, values: Array, rows: Rows) -> Interval:
    """Return a sum over a sum, or its inverse; n is the sum of what it counts per."""
    over = np.where(np.isnan(values), np.nan, rows.column(metric.over) * metric.scale)
    missing = rows.missing_of(values)
    values, is_missing = with_room(values, len(missing))
    over = with_room(over, len(missing))[0]
    clusters = extended(rows.clusters, missing.clusters)
    units = extended(rows.scenarios, missing.scenarios) if rows.scenarios is not rows.clusters else None
    found = with_missing(lambda given: ratio(given, over, clusters, units=units), values, is_missing)
    if not metric.is_inverse:
        return replace(found, n=round(float(np.nansum(over)), 3))
    found = replace(found, n=round(float(np.nansum(values)), 3), worst_low=None, worst_high=None)
    if found.value is None or found.value == 0.0:
        note = "no data: it never happened" if found.value == 0.0 else found.note
        return replace(found, value=None, low=None, high=None, level=None, method=None, note=note)
    if found.low is None or found.high is None:
        return replace(found, value=1.0 / found.value)
    if found.low <= 0.0:
        note = "not enough data: the rate may be zero"
        return replace(found, value=1.0 / found.value, low=None, high=None, level=None, method=None, note=note)
    found = replace(found, value=1.0 / found.value, low=1.0 / found.high, high=1.0 / found.low)
    return found if found.missing else replace(found, worst_low=found.low, worst_high=found.high)
