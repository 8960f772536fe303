"""Draw curves and bands along a factor: lines over a range, points for choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.averages import Band
from roadworthy.sensitivity.factors import Categorical, Factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def short(name: str, most: int = 28) -> str:
    """Shorten a name to this many characters from the left, because the end of a dotted name is most specific."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def along(
    axes: Axes, factor: Factor, grid: Array, band: Band, color: str, label: str | None = None, shift: float = 0.0
) -> None:
    """Draw a curve with its band, or a point with its interval for every choice."""
    x = factor.placed(grid)
    if isinstance(factor, Categorical):
        axes.vlines(x + shift, band.low, band.high, color=color, lw=5, alpha=0.3)
        axes.plot(x + shift, band.mean, "o", color=color, ms=6, label=label)
        axes.set_xlim(-0.5, len(x) - 0.5)
    else:
        axes.fill_between(x, band.low, band.high, color=color, alpha=0.22, lw=0)
        axes.plot(x, band.mean, color=color, lw=1.8, label=label)
        axes.set_xlim(factor.low, factor.high)
    name_axis(axes.xaxis, factor)


def around(axes: Axes, factor: Factor, grid: Array, band: Band, color: str) -> None:
    """Draw the lighter, outer band that holds a whole curve."""
    x = factor.placed(grid)
    if isinstance(factor, Categorical):
        axes.vlines(x, band.low, band.high, color=color, lw=5, alpha=0.13)
    else:
        axes.fill_between(x, band.low, band.high, color=color, alpha=0.12, lw=0)


def name_axis(axis: Any, factor: Factor) -> None:
    """Label the choices of a categorical factor on an axis."""
    if isinstance(factor, Categorical):
        axis.set_ticks(range(len(factor.choices)), [str(choice) for choice in factor.choices])
