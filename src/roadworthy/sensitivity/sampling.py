"""Choose the factors of the episodes of a sweep."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ConfigError
from roadworthy.sensitivity.factors import Categorical, Factor, parse_factors, spread_units

Point = Mapping[str, Any]  # the value of each factor


def sweep_factors(tables: Mapping[str, Any]) -> tuple[Factor, ...]:
    """Return the factors of a sweep from their tables in a config file."""
    factors = parse_factors({"factors": tables}, "sweep")
    for factor in factors:
        if isinstance(factor, Categorical) and any(isinstance(choice, bool) for choice in factor.choices):
            raise ConfigError(f"sweep: factor {factor.name!r} has true or false among its choices; use words")
    return factors


def tables_of(factors: Sequence[Factor]) -> dict[str, Any]:
    """Return factors as tables of a config file."""
    return {factor.name: factor.table() for factor in factors}


def densities(factors: Sequence[Factor]) -> dict[str, float]:
    """Return how densely a sweep draws each factor: all values, or all choices, are equally likely."""
    return {factor.name: 1.0 / factor.measure for factor in factors}


def random_points(factors: Sequence[Factor], count: int, seed: Sequence[int]) -> list[Point]:
    """Return points that are drawn independently."""
    return _points(factors, np.random.default_rng(seed).random((count, len(factors))))


def sobol_points(factors: Sequence[Factor], count: int, seed: Sequence[int]) -> list[Point]:
    """Return the first points of a scrambled Sobol sequence, which cover the space evenly."""
    from scipy.stats import qmc  # takes as long to import as everything else

    # The sequence is balanced at powers of two.
    power = max(0, int(np.ceil(np.log2(count))))
    cube = qmc.Sobol(len(factors), scramble=True, rng=np.random.default_rng(seed)).random_base2(power)[:count]
    return _points(factors, cube)


def grid_points(factors: Sequence[Factor], levels: int, count: int | None) -> list[Point]:
    """Return all combinations of values, each equally often.

    Args:
        factors: The factors.
        levels: The number of values of a continuous factor.
        count: The number of points, a multiple of the number of combinations; None for each combination once.
    """
    axes = [
        range(len(factor.choices)) if isinstance(factor, Categorical) else np.linspace(0.0, 1.0, levels).tolist()
        for factor in factors
    ]
    points = [_values(factors, np.array(units, np.float64)) for units in itertools.product(*axes)]
    times, rest = divmod(count or len(points), len(points))
    if rest:
        raise ConfigError(
            f"the grid has {len(points)} points, and {count} episodes can't be shared evenly among them; "
            f"take {len(points)}, {2 * len(points)} or another multiple, or change `levels`"
        )
    return points * times


def _points(factors: Sequence[Factor], cube: NDArray[np.float64]) -> list[Point]:
    return [_values(factors, units) for units in spread_units(factors, cube)]


def _values(factors: Sequence[Factor], units: NDArray[np.float64]) -> Point:
    return {factor.name: factor.value(float(unit)) for factor, unit in zip(factors, units, strict=True)}
