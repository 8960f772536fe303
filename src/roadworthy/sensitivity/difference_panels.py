"""Panels of the difference of two runs: curves with bands, and maps with outlines where it is certain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadworthy.plots import BLUE, GREEN, INK, QUIET, RED
from roadworthy.sensitivity.averages import MAP_POINTS, Band
from roadworthy.sensitivity.curves import along, around, name_axis, pair_title, short
from roadworthy.sensitivity.difference import Difference
from roadworthy.sensitivity.factors import Categorical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Panel = Callable[["Axes"], None]

OBSERVED_BINS = 8
FEWEST_PER_BIN = 5
_MOST_LETTERS = 22  # of both names beside the axis of a panel


def difference_panel(difference: Difference, number: int) -> Panel:
    """Return a panel of the difference along one factor, with both bands and the regions where it is certain."""

    def panel(axes: Axes) -> None:
        factor, grid = difference.factors[number], difference.grid(number)
        axes.axhline(0.0, color=INK, lw=0.8)
        around(axes, factor, grid, difference.simultaneous(number), BLUE)
        along(axes, factor, grid, difference.marginal(number), BLUE)
        _observed(axes, difference, number)
        for region in difference.regions:
            if region.factor == number:
                ends = factor.placed(grid[[region.first, region.last]])
                reach = 0.3 if isinstance(factor, Categorical) else 0.0
                axes.plot(
                    [ends[0] - reach, ends[1] + reach],
                    [0.02, 0.02],
                    color=RED if region.is_lower else GREEN,
                    lw=5,
                    solid_capstyle="butt",
                    transform=axes.get_xaxis_transform(),
                )
        axes.set_title(short(factor.name))
        axes.set_ylabel(_label(difference))
        axes.set_ylim(*_ends(difference))

    return panel


def difference_pair_panel(difference: Difference, first: int, second: int) -> Panel:
    """Return a panel of the difference over two factors: a curve per choice, or a map."""
    one, two = difference.factors[first], difference.factors[second]
    band = difference.simultaneous_map(first, second)
    if isinstance(one, Categorical) and not isinstance(two, Categorical):
        turned = Band(band.mean.T, band.low.T, band.high.T)
        return _curve_per_choice(difference, second, first, turned)
    if isinstance(two, Categorical) and not isinstance(one, Categorical):
        return _curve_per_choice(difference, first, second, band)

    def panel(axes: Axes) -> None:
        x, y = (f.placed(difference.grid(n, MAP_POINTS)) for f, n in ((one, first), (two, second)))
        most = max(float(np.abs(band.mean).max()), 0.05)
        shown = axes.pcolormesh(x, y, band.mean.T, cmap="RdBu", vmin=-most, vmax=most, shading="nearest")
        axes.figure.colorbar(shown, ax=axes, label=_label(difference))
        certain = ((band.high < 0.0) | (band.low > 0.0)).T
        places = np.argwhere(certain)
        axes.plot(x[places[:, 1]], y[places[:, 0]], ".", color=INK, ms=2.5)
        for axis, factor in ((axes.xaxis, one), (axes.yaxis, two)):
            name_axis(axis, factor)
            axis.set_label_text(short(factor.name, 40))
        axes.set_title(pair_title(one.name, two.name))

    return panel


def _curve_per_choice(difference: Difference, number: int, split: int, band: Band) -> Panel:
    def panel(axes: Axes) -> None:
        factor, other = difference.factors[number], difference.factors[split]
        assert isinstance(other, Categorical)
        grid = difference.grid(number, len(band.mean))
        axes.axhline(0.0, color=INK, lw=0.8)
        for k, choice in enumerate(other.choices):
            along(axes, factor, grid, Band(band.mean[:, k], band.low[:, k], band.high[:, k]), f"C{k}", str(choice))
        axes.set_title(pair_title(factor.name, other.name))
        axes.set(xlabel=short(factor.name, 40), ylabel=_label(difference))
        axes.legend(loc="best", ncols=2 if len(other.choices) > 3 else 1)

    return panel


def _observed(axes: Axes, difference: Difference, number: int) -> None:
    """Draw the mean differences of pairs in bins."""
    rows, factor = difference.paired, difference.factors[number]
    if rows is None:
        return
    units, count = rows.units[:, number], OBSERVED_BINS
    middles: Array = (np.arange(count, dtype=np.float64) + 0.5) / count
    bins = np.minimum((units * count).astype(np.intp), count - 1)
    if isinstance(factor, Categorical):
        count = len(factor.choices)
        bins, middles = units.astype(np.intp), np.arange(count, dtype=np.float64) + 0.15
    for k, place in enumerate(factor.placed(middles)):
        inside = rows.outcome[bins == k]
        if len(inside) >= FEWEST_PER_BIN:
            axes.plot(place, inside.mean(), "o", color=QUIET, ms=3)


def _ends(difference: Difference) -> tuple[float, float]:
    """Return the same limits for all factors, so that the eye can compare them."""
    bands = [difference.simultaneous(number) for number in range(len(difference.factors))]
    low = min(-0.05, *(float(band.low.min()) for band in bands))
    high = max(0.05, *(float(band.high.max()) for band in bands))
    return low - 0.1 * (high - low), high + 0.05 * (high - low)


def _label(difference: Difference) -> str:
    """Return what is shown: the names of the runs if they are short, else letters, which the title explains."""
    first, second = difference.names
    return f"{second} minus {first}" if has_short_names(difference) else "B minus A"


def has_short_names(difference: Difference) -> bool:
    """Return whether the names of both runs fit beside an axis; otherwise panels call them A and B."""
    return sum(map(len, difference.names)) <= _MOST_LETTERS


def legend(difference: Difference) -> str:
    """Return which runs A and B are; empty if panels name them."""
    return "" if has_short_names(difference) else f"A: {difference.names[0]}\nB: {difference.names[1]}"
