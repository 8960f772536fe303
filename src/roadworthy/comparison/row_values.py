"""The values of a metric in a run, row by row, with what identifies each row: episode, agent, attempt and trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roadworthy.comparison.planned import Numbers, Planned, State
from roadworthy.errors import RecordError
from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRACE_METRICS, TRIAL_METRICS
from roadworthy.metrics.metric import Array, Kind, Metric
from roadworthy.statistics import Clusters

EPISODES, AGENTS, TRIALS = "episodes", "agents", "trials"
OUTCOMES = "outcomes."
FIGURES = "figures."
# The bits of a row's key below the number of its episode.
_AGENT_BITS, _ATTEMPT_BITS, _TRIAL_BITS = 12, 12, 8
ROW_BITS = _AGENT_BITS + _ATTEMPT_BITS + _TRIAL_BITS
_OF_TRIALS = frozenset(metric.name for metric in (*TRIAL_METRICS, *TRACE_METRICS))


@dataclass(frozen=True)
class RowValues:
    """The n rows of a metric in the completed episodes of a run."""

    places: Numbers  # (n,) of their episode in the ledger
    parts: Numbers  # (n,) agent, attempt and trial as one number below 2**ROW_BITS
    values: Array  # (n,) NaN: no data
    weights: Array | None  # (n,) the denominators of a ratio


def table_of(metric: Metric, is_driving: bool) -> str:
    """Return the table that holds the column of a metric."""
    if not is_driving:
        return EPISODES
    return TRIALS if metric.per == "trial" or metric.name in _OF_TRIALS else AGENTS


def trial_of(parts: Numbers) -> Numbers:
    """Return the trial of each row."""
    return parts & ((1 << _TRIAL_BITS) - 1)


class ValueReader:
    """Reads the values of metrics of one run, column by column."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self._run = planned.run
        self._parts: dict[str, tuple[NDArray[np.bool_] | None, Numbers, Numbers]] = {}

    @cached_property
    def is_driving(self) -> bool:
        """Whether the run has rows of egos; otherwise its figures are the outcomes of its episodes."""
        return any(name.startswith(FIGURES) for name in self._run.column_names(TRIALS))

    def has(self, metric: Metric) -> bool:
        """Return whether the run has the columns of a metric."""
        table = table_of(metric, self.is_driving)
        prefix = FIGURES if self.is_driving else OUTCOMES
        columns = self._run.column_names(table)
        return all(f"{prefix}{name}" in columns for name in (metric.column, metric.over) if name)

    def values(self, metric: Metric) -> RowValues:
        """Return the rows of a metric."""
        table = table_of(metric, self.is_driving)
        chosen, places, parts = self._identity(table)
        values = self._column(table, metric.column, chosen)
        if metric.kind is Kind.RATE:
            values = np.where(np.isnan(values), np.nan, values > 0.0)
        weights = None
        if metric.kind is Kind.RATIO:
            weights = np.where(np.isnan(values), np.nan, self._column(table, metric.over, chosen) * metric.scale)
        return RowValues(places, parts, values, weights)

    def _column(self, table: str, name: str, chosen: NDArray[np.bool_] | None) -> Array:
        prefix = OUTCOMES if table == EPISODES else FIGURES
        rows = getattr(self._run, table)([f"{prefix}{name}"])
        values: Array = rows[f"{prefix}{name}"].to_numpy().astype(np.float64, copy=False)
        return values if chosen is None else values[chosen]

    def _identity(self, table: str) -> tuple[NDArray[np.bool_] | None, Numbers, Numbers]:
        """Return the rows of completed episodes (None: all), their episodes, and their parts of the key."""
        if table in self._parts:
            return self._parts[table]
        if table == EPISODES:
            places = self.planned.ended
            parts = np.zeros(len(places), np.int64)
        else:
            names = ["episode", "agent", "attempt", *(["trial"] if table == TRIALS else [])]
            rows = getattr(self._run, table)(names)
            numbers = {name: rows[name].to_numpy().astype(np.int64) for name in names}
            places = self.planned.ended[numbers["episode"]]
            parts = self._packed(numbers, table)
        is_completed = self.planned.states[places] == State.COMPLETED
        found: tuple[NDArray[np.bool_] | None, Numbers, Numbers]
        found = (
            (None, places, parts) if is_completed.all() else (is_completed, places[is_completed], parts[is_completed])
        )
        self._parts[table] = found
        return found

    def _packed(self, numbers: dict[str, Numbers], table: str) -> Numbers:
        parts: Numbers = np.zeros(len(numbers["agent"]), np.int64)
        for name, bits in (("agent", _AGENT_BITS), ("attempt", _ATTEMPT_BITS), ("trial", _TRIAL_BITS)):
            column = numbers.get(name)
            if column is not None and column.max(initial=0) >> bits:
                raise RecordError(
                    f"{self._run.folder / table}.parquet: {name} is {column.max()}; runs with numbers of at most "
                    f"{2**bits - 1} can be compared"
                )
            parts = (parts << bits) | (0 if column is None else column)
        return parts


def declared_metrics() -> Sequence[Metric]:
    """Return the metrics of driving runs that can be compared: a distance per event has no difference."""
    metrics = (*TRACE_METRICS, *TRIAL_METRICS, *AGENT_METRICS, *RATIO_METRICS)
    return [metric for metric in metrics if not metric.is_inverse]


def each_once(values: Array, scenarios: Clusters, clusters: Clusters) -> tuple[Array, Clusters]:
    """Return the mean of each scenario, and its cluster."""
    known = ~np.isnan(values)
    codes = scenarios.codes[known]
    sizes = np.bincount(codes, minlength=scenarios.count)
    totals = np.bincount(codes, values[known], scenarios.count)
    used = sizes > 0
    owners = np.zeros(scenarios.count, np.int64)
    owners[scenarios.codes] = clusters.codes
    return totals[used] / sizes[used], Clusters(owners, clusters.count).chosen(used)
