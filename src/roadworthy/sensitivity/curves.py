"""Draw curves and bands along a factor: lines over a range, points for choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.averages import Band
from roadworthy.sensitivity.factors import Categorical, Factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
_WIDE = 34  # characters in the title of a panel


def short(name: str, most: int = 28) -> str:
    """Shorten a name to this many characters from the left, because the end of a dotted name is most specific."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Shorten names to this many characters, so that they stay different: their ends, then beginnings and ends."""
    for keep in (most, *range(1, most - 1)):  # characters of the end; of most characters, all
        cut = [_cut(name, most, keep) for name in names]
        if len(set(cut)) == len(set(names)):
            return cut
    return list(names)


def _cut(name: str, most: int, end: int) -> str:
    """Leave out the middle of a long name, so that this many characters of its end stay."""
    if len(name) <= most:
        return name
    end = min(end, most - 1)
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def pair_title(first: str, second: str) -> str:
    """Return the title of a panel of two factors, on two lines if it is long."""
    title = f"{first} × {second}"
    return title if len(title) <= _WIDE else f"{short(first, _WIDE)}\n× {short(second, _WIDE)}"


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
