"""Limits of the design of an experiment: confounded factors, empty regions, missing densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chisquare

from roadworthy.sensitivity.basis import contrasts
from roadworthy.sensitivity.factors import Categorical, Factor
from roadworthy.sensitivity.rows import Rows

Array = NDArray[np.float64]

PARTLY_CONFOUNDED, FULLY_CONFOUNDED = 0.25, 0.80  # share of a factor's variance that another one explains
BINS_ALONE, BINS_OF_TWO = 8, 4
LEAST_EXPECTED = 3.0  # expected rows under uniform sampling; with fewer, a bin may be empty by chance
FEW_PER_CHOICE = 10
UNEVEN_LEVEL = 1e-3
MOST_DISTINCT = 0.98  # among very many rows, 31-bit seeds may agree by chance


@dataclass(frozen=True)
class DesignWarning:
    """A caveat about the figures."""

    kind: str  # confounded, empty, uneven, few, repeated, same seeds, steep
    factors: tuple[str, ...]
    message: str


def design_warnings(rows: Rows) -> list[DesignWarning]:
    """Return all caveats about the sampling of these rows."""
    return [*_confounded(rows), *_empty(rows), *_few(rows), *_uneven(rows), *_repeated(rows), *_same_seeds(rows)]


def explained_share(rows: Rows, target: int, source: int) -> float:
    """Return the share of a factor's variance that any curve of the other explains (adjusted R²)."""
    dependent, features = _coded(rows, target), _steps(rows, source)
    dependent = dependent - dependent.mean(axis=0)
    features = features - features.mean(axis=0)
    left = dependent - features @ np.linalg.lstsq(features, dependent, rcond=None)[0]
    freedom = np.linalg.matrix_rank(features) if features.size else 0
    total = np.square(dependent).sum()
    if total == 0.0 or len(rows) <= freedom + 1:
        return 0.0
    return float(1.0 - np.square(left).sum() / total * (len(rows) - 1) / (len(rows) - 1 - freedom))


def _confounded(rows: Rows) -> Iterator[DesignWarning]:
    for first, second in combinations(range(len(rows.factors)), 2):
        share = max(explained_share(rows, first, second), explained_share(rows, second, first))
        names = (rows.factors[first].name, rows.factors[second].name)
        if share >= FULLY_CONFOUNDED:
            yield DesignWarning(
                "confounded",
                names,
                f"{names[0]} and {names[1]} are confounded (one explains {share:.0%} of the other): their effects "
                "can't be separated. Run episodes in which they vary independently.",
            )
        elif share >= PARTLY_CONFOUNDED:
            yield DesignWarning(
                "confounded",
                names,
                f"{names[0]} and {names[1]} are partly confounded (one explains {share:.0%} of the other): the results "
                "for each of them are less certain than they look.",
            )


def _empty(rows: Rows) -> Iterator[DesignWarning]:
    numbers = [_binned(factor, rows.units[:, j], BINS_ALONE) for j, factor in enumerate(rows.factors)]
    bare = set()
    for j, factor in enumerate(rows.factors):
        count = _bin_count(factor, BINS_ALONE)
        if len(rows) / count < LEAST_EXPECTED:
            continue
        missing = np.flatnonzero(np.bincount(numbers[j], minlength=count) == 0)
        if len(missing):
            bare.add(j)
            where = " and ".join(_runs(factor, missing, count))
            yield DesignWarning(
                "empty", (factor.name,), f"no row has {factor.name} {where}: the surface there is an extrapolation."
            )
    for first, second in combinations(range(len(rows.factors)), 2):
        if first in bare or second in bare:
            continue  # already reported
        yield from _empty_pair(rows, first, second)


def _empty_pair(rows: Rows, first: int, second: int) -> Iterator[DesignWarning]:
    one, two = rows.factors[first], rows.factors[second]
    counts = _bin_count(one, BINS_OF_TWO), _bin_count(two, BINS_OF_TWO)
    if len(rows) / (counts[0] * counts[1]) < LEAST_EXPECTED:
        return
    cells = np.zeros(counts, np.intp)
    np.add.at(cells, (_binned(one, rows.units[:, first], counts[0]), _binned(two, rows.units[:, second], counts[1])), 1)
    missing = np.argwhere(cells == 0)
    if len(missing):
        row, column = missing[0]
        example = f"{one.name} {_runs(one, [row], counts[0])[0]} with {two.name} {_runs(two, [column], counts[1])[0]}"
        yield DesignWarning(
            "empty",
            (one.name, two.name),
            f"{len(missing)} of {cells.size} combinations of {one.name} and {two.name} have no row, such as {example}: "
            "the map is an extrapolation there.",
        )


def _few(rows: Rows) -> Iterator[DesignWarning]:
    for j, factor in enumerate(rows.factors):
        if isinstance(factor, Categorical):
            counts = np.bincount(rows.units[:, j].astype(np.intp), minlength=len(factor.choices))
            for choice, count in zip(factor.choices, counts, strict=True):
                if 0 < count < FEW_PER_CHOICE:
                    yield DesignWarning("few", (factor.name,), f"only {count} rows have {factor.name} {choice}.")
    if rows.is_binary:
        rarer = int(min(rows.outcome.sum(), len(rows) - rows.outcome.sum()))
        if rarer < 5 * len(rows.factors):
            name = "successes" if rows.outcome.mean() < 0.5 else "failures"
            yield DesignWarning(
                "few",
                (),
                f"there are only {rarer} {name} among {len(rows)} rows, which is few for {len(rows.factors)} factors.",
            )


def _uneven(rows: Rows) -> Iterator[DesignWarning]:
    if rows.density is not None:
        return
    for j, factor in enumerate(rows.factors):
        count = _bin_count(factor, BINS_ALONE)
        if len(rows) / count >= 5.0:
            counts = np.bincount(_binned(factor, rows.units[:, j], BINS_ALONE), minlength=count)
            if chisquare(counts).pvalue < UNEVEN_LEVEL:
                yield DesignWarning(
                    "uneven",
                    (factor.name,),
                    f"{factor.name} was not sampled evenly, and the rows do not record its sampling density. Curves "
                    "and distributions of the surface are still valid; the neural posterior is not.",
                )


def _repeated(rows: Rows) -> Iterator[DesignWarning]:
    if rows.scenarios is not None:
        count = len(set(rows.scenarios))
        if count < 0.8 * len(rows):
            yield DesignWarning(
                "repeated",
                (),
                f"{len(rows)} rows come from {count} scenarios. Rows of one scenario, or of scenarios with one map, "
                "count as far as they are independent, which is estimated from the rows. The neural posterior and the "
                "dots beside curves treat rows as independent.",
            )


def _same_seeds(rows: Rows) -> Iterator[DesignWarning]:
    if rows.seeds is not None:
        count = len(set(rows.seeds))
        if count < MOST_DISTINCT * len(rows):
            yield DesignWarning(
                "same seeds",
                (),
                f"{len(rows)} rows come from {count} distinct seeds, so many of them repeat the same random draws. "
                f"Rows of one seed count as one here: bands are as wide as for {count} independent episodes. Run jobs "
                "without a seed, or give each job a different one. The neural posterior and the dots beside curves "
                "treat rows as independent.",
            )


def _coded(rows: Rows, column: int) -> Array:
    factor, units = rows.factors[column], rows.units[:, column]
    if isinstance(factor, Categorical):
        return contrasts(len(factor.choices))[units.astype(np.intp)]
    return units[:, None]


def _steps(rows: Rows, column: int) -> Array:
    """Return indicators of choices, or a line and indicators of eighths of a range, which can fit any dependence."""
    factor, units = rows.factors[column], rows.units[:, column]
    count = _bin_count(factor, BINS_ALONE)
    steps = (_binned(factor, units, BINS_ALONE)[:, None] == np.arange(count)).astype(np.float64)
    return steps if isinstance(factor, Categorical) else np.column_stack([units, steps])


def _bin_count(factor: Factor, bins: int) -> int:
    return len(factor.choices) if isinstance(factor, Categorical) else bins


def _binned(factor: Factor, units: Array, bins: int) -> NDArray[np.intp]:
    if isinstance(factor, Categorical):
        return units.astype(np.intp)
    return np.minimum((units * bins).astype(np.intp), bins - 1)


def _runs(factor: Factor, numbers: NDArray[np.intp] | list[np.intp], count: int) -> list[str]:
    """Describe bins in words; adjacent bins are one range."""
    if isinstance(factor, Categorical):
        return [str(factor.choices[number]) for number in numbers]
    groups = np.split(np.asarray(numbers), np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [f"{factor.value(group[0] / count):g} to {factor.value((group[-1] + 1) / count):g}" for group in groups]
