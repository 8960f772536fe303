"""The rows of two runs that are compared as independent samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadworthy.comparison.matching import clusters_of
from roadworthy.comparison.planned import State
from roadworthy.comparison.row_values import RowValues, ValueReader, each_once
from roadworthy.metrics.metric import Kind, Metric
from roadworthy.statistics import Clusters

Inputs = tuple[RowValues, RowValues, tuple[Clusters, Clusters], tuple[float, float]]


def unpaired_inputs(metric: Metric, readers: tuple[ValueReader, ValueReader]) -> Inputs:
    """Return the rows of candidate and baseline, their clusters, and the shares of rows without a result."""
    first, second = (_rows(metric, reader) for reader in readers)
    return first[0], second[0], (first[1], second[1]), (first[2], second[2])


def _rows(metric: Metric, reader: ValueReader) -> tuple[RowValues, Clusters, float]:
    """Return the rows of a run with those of episodes without a result, as many as other episodes have on average.

    A metric for which each scenario counts once has one row per scenario, without places.
    """
    rows = reader.values(metric)
    planned = reader.planned
    lost = np.flatnonzero(planned.states != State.COMPLETED)
    completed = len(planned) - len(lost)
    each = max(round(len(rows.values) / completed), 1) if completed else 1
    share = len(lost) * each / max(len(rows.values) + len(lost) * each, 1)
    if lost.size and metric.failed is not None and metric.kind is not Kind.RATIO:
        places = np.concatenate([rows.places, np.repeat(lost, each)])
        values = np.concatenate([rows.values, np.full(len(lost) * each, metric.failed)])
        parts = np.concatenate([rows.parts, np.zeros(len(lost) * each, np.int64)])
        rows = replace(rows, places=places, values=values, parts=parts)
    clusters = clusters_of(planned.clusters, rows.places)
    if metric.is_per_scenario:
        values, clusters = each_once(rows.values, clusters_of(planned.column("scenario_id"), rows.places), clusters)
        rows = RowValues(rows.places[:0], rows.parts[:0], values, None)
    return rows, clusters, share
