"""Rows grouped by the scenario that they come from: sums per cluster, which is all that the estimates need.

Rows of one scenario are alike: five replicates of it tell less than five scenarios. Every estimate here is a ratio of
two sums over clusters (a mean is values over their number), and every variance the spread of the clusters' own parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """Which cluster each row belongs to: n rows, numbers from 0 up to `count`."""

    codes: NDArray[np.int64]  # (n,)
    count: int

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(count,) how many rows each has."""
        return np.bincount(self.codes, minlength=self.count)

    @classmethod
    def of(cls, names: Sequence[str] | NDArray[Any]) -> Clusters:
        """Clusters by name, numbered in the order of their names, so that the order of rows has no influence."""
        unique, codes = np.unique(np.asarray(names), return_inverse=True)
        return cls(codes.reshape(-1).astype(np.int64), len(unique))

    def chosen(self, rows: NDArray[np.bool_]) -> Clusters:
        """The clusters of some rows; those without any are gone."""
        codes = self.codes if rows.all() else self.codes[rows]
        used = np.bincount(codes, minlength=self.count) > 0
        numbers = np.cumsum(used) - 1
        return Clusters(codes if used.all() else numbers[codes], int(used.sum()))


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of each of G clusters; rows without data are left out, and so are clusters without rows."""

    total: Array  # (G,) of the values
    weight: Array  # (G,) of what they are counted per: rows, or metres
    rows: int
    minority: Array  # (G,) of rates: of what is rarer, yes or no
    is_one_each: bool  # every cluster has one row

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return len(self.total)

    @cached_property
    def value(self) -> float | None:
        """The estimate: sum over sum; None where the denominator is zero."""
        weight = float(self.weight.sum())
        return float(self.total.sum()) / weight if weight > 0.0 else None

    @cached_property
    def standard_error(self) -> float:
        """Of the estimate, by linearisation."""
        return float(np.sqrt(self.count / (self.count - 1) * (self.parts**2).sum()))

    @property
    def parts(self) -> Array:
        """(G,) what each cluster has beyond the estimate, as a share of the denominator; they sum to 0."""
        value = self.value
        assert value is not None
        return (self.total - value * self.weight) / self.weight.sum()

    def each_once(self) -> Sums:
        """The clusters' own means instead of their sums: every cluster counts the same, however many rows it has."""
        return replace(self, total=self.total / self.weight, weight=np.ones(self.count))

    def jackknife_variance(self) -> float:
        """Of the estimate, from what it would be without each cluster in turn."""
        leverage = 1.0 - self.weight / self.weight.sum()
        parts = self.parts[leverage > 0.0] / leverage[leverage > 0.0]
        return (self.count - 1) / self.count * float((parts**2).sum())


def sums(values: Array, clusters: Clusters, weights: Array | None = None) -> Sums:
    """Sum values (n,), and weights (1 by default), over clusters; NaN and rows with a NaN weight are no data."""
    values = np.asarray(values, np.float64)
    if values.shape != clusters.codes.shape:
        raise UsageError(f"{values.shape} values were given for {clusters.codes.shape} rows; expected one each")
    is_missing = np.isnan(values) if weights is None else np.isnan(values) | np.isnan(weights)
    given = None if weights is None else np.asarray(weights, np.float64)
    codes, rows = clusters.codes, clusters.sizes
    if is_missing.any():
        has_data = ~is_missing
        codes, values, given = codes[has_data], values[has_data], None if given is None else given[has_data]
        rows = np.bincount(codes, minlength=clusters.count)
    used = rows > 0
    total: Array = np.bincount(codes, values, clusters.count)[used].astype(np.float64)
    weight: Array = (rows if given is None else np.bincount(codes, given, clusters.count))[used].astype(np.float64)
    is_mostly_yes = total.sum() > 0.5 * weight.sum()
    return Sums(total, weight, len(values), weight - total if is_mostly_yes else total, bool((rows[used] == 1).all()))
