"""Panels of pictures: curves, distributions, maps, bars, calibration, suggestions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from roadworthy.plots import BLUE, GREEN, INK, OCHRE, QUIET, RED
from roadworthy.sensitivity.analysis import Analysis
from roadworthy.sensitivity.averages import Band
from roadworthy.sensitivity.calibration import observed_interval
from roadworthy.sensitivity.curves import along, around, name_axis, pair_title, short
from roadworthy.sensitivity.factors import Categorical, Factor
from roadworthy.sensitivity.importance import SMALL_SHARE, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Panel = Callable[["Axes"], None]

SUCCESS, FAILURE, CURVE = GREEN, RED, BLUE
VERDICT_COLORS = {Verdict.MATTERS: CURVE, Verdict.IRRELEVANT: QUIET, Verdict.UNDECIDED: OCHRE}
OBSERVED_BINS = 8
MAP_BINS = 6
MOST_TICKS = 400  # rows drawn as ticks under a curve


def curve_panel(analysis: Analysis, number: int) -> Panel:
    """Return a panel of the outcome along one factor, with its band, observed means and rows."""

    def panel(axes: Axes) -> None:
        surface = analysis.surface
        factor, band, grid = surface.factors[number], surface.marginal(number), surface.grid(number)
        around(axes, factor, grid, surface.simultaneous(number), CURVE)
        along(axes, factor, grid, band, CURVE)
        _observed(axes, analysis, number)
        axes.set_title(f"{short(factor.name, 24)}: {analysis.importance[number].verdict.value}")
        axes.set_ylabel(_outcome_label(analysis))
        axes.axhline(float(surface.rate().mean), color=QUIET, lw=0.8, ls=":")
        if surface.is_binary:
            _rows_under(axes, analysis, number)
            axes.set_ylim(-0.13, 1.05)
            axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
            _look_closer(axes, analysis)

    return panel


def _look_closer(axes: Axes, analysis: Analysis) -> None:
    """Zoom to the range of all curves if nearly all outcomes are equal, with one scale for all factors."""
    bands = [analysis.surface.marginal(number) for number in range(len(analysis.surface.factors))]
    share = analysis.rows.outcome.mean()
    if share < 0.1:
        room = 1.3 * max(0.02, *(float(band.high.max()) for band in bands))
        axes.set_ylim(-0.13 * room, room)
    elif share > 0.9:
        room = 1.3 * max(0.02, *(1.0 - float(band.low.min()) for band in bands))
        axes.set_ylim(1.0 - 1.13 * room, 1.0 + 0.05 * room)
    if not 0.1 <= share <= 0.9:
        axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))


def given_panel(analysis: Analysis, number: int) -> Panel:
    """Return a panel of the distributions of one factor given success and failure."""

    def panel(axes: Axes) -> None:
        surface = analysis.surface
        factor, grid = surface.factors[number], surface.grid(number)
        for is_success, color, word in ((True, SUCCESS, "given success"), (False, FAILURE, "given failure")):
            shift = 0.12 if is_success else -0.12
            along(axes, factor, grid, surface.given(number, is_success), color, word, shift)
        axes.axhline(1.0, color=QUIET, lw=0.8, ls=":")
        axes.set_ylim(bottom=0.0, top=1.25 * axes.get_ylim()[1])
        axes.set_title(short(factor.name))
        axes.set_ylabel("density / even density")
        axes.legend(loc="upper left", ncols=2)

    return panel


def neural_panel(analysis: Analysis, number: int) -> Panel:
    """Return a panel of the neural posterior of one factor, beside the surface."""

    def panel(axes: Axes) -> None:
        surface, neural = analysis.surface, analysis.neural
        assert neural is not None
        factor, grid = surface.factors[number], surface.grid(number)
        words = ("failure", "success") if surface.is_binary else tuple(f"{value:.3g}" for value in neural.outcomes)
        for outcome, word, color, shift in zip(neural.outcomes, words, (FAILURE, SUCCESS), (-0.12, 0.12), strict=True):
            if surface.is_binary:
                along(axes, factor, grid, surface.given(number, outcome == 1.0), color, f"given {word}", shift)
            density = neural.distribution(number, outcome)
            name = f"{neural.method} given {word}"
            if isinstance(factor, Categorical):
                axes.plot(np.arange(len(density)) + 2.0 * shift, density, "x", color=color, ms=6, mew=1.6, label=name)
                name_axis(axes.xaxis, factor)
            else:
                edges = factor.placed(np.linspace(0.0, 1.0, len(density) + 1))
                axes.stairs(density, edges, color=color, lw=1.1, ls="--", baseline=None, label=name)
        axes.axhline(1.0, color=QUIET, lw=0.8, ls=":")
        axes.set_ylim(bottom=0.0, top=1.35 * axes.get_ylim()[1])
        apart = next((found for found in analysis.neural_distances if found.factor == factor.name), None)
        axes.set_title(f"{short(factor.name)}: {apart.larger:.2f} apart" if apart else short(factor.name))
        axes.set_ylabel("density / even density")
        axes.legend(loc="upper left", ncols=2, fontsize=7)

    return panel


def pair_panel(analysis: Analysis, first: int, second: int, band: Band) -> Panel:
    """Return a panel of the outcome over two factors: a curve per choice, or a map with empty cells crossed out."""
    one, two = analysis.surface.factors[first], analysis.surface.factors[second]
    if isinstance(one, Categorical) != isinstance(two, Categorical):
        if isinstance(one, Categorical):
            turned = Band(band.mean.T, band.low.T, band.high.T)
            return _curve_per_choice(analysis, second, first, turned)
        return _curve_per_choice(analysis, first, second, band)

    def panel(axes: Axes) -> None:
        surface, rows = analysis.surface, analysis.rows
        mean = band.mean
        limits = (0.0, 1.0) if surface.is_binary and mean.max() > 0.2 else (float(mean.min()), float(mean.max()))
        _map(axes, analysis, first, second, mean, limits, "viridis", _outcome_label(analysis))
        cells, edges = _cell_counts(analysis, first, second)
        for i, j in np.argwhere(cells == 0):
            (x0, x1), (y0, y1) = edges[0][i : i + 2], edges[1][j : j + 2]
            axes.plot([x0, x1], [y0, y1], color="white", lw=0.8)
            axes.plot([x0, x1], [y1, y0], color="white", lw=0.8)
        axes.plot(*_scattered(rows.units, first, second, one, two), ".", color="white", ms=1.2, alpha=0.5)

    return panel


def _curve_per_choice(analysis: Analysis, number: int, split: int, band: Band) -> Panel:
    """Return a panel of the outcome along a range, for each choice of another factor."""

    def panel(axes: Axes) -> None:
        factor, other = analysis.surface.factors[number], analysis.surface.factors[split]
        assert isinstance(other, Categorical)
        grid = analysis.surface.grid(number, len(band.mean))
        for k, choice in enumerate(other.choices):
            part = Band(band.mean[:, k], band.low[:, k], band.high[:, k])
            along(axes, factor, grid, part, f"C{k}", str(choice))
        axes.set_title(pair_title(factor.name, other.name))
        axes.set(xlabel=short(factor.name, 40), ylabel=_outcome_label(analysis))
        if analysis.surface.is_binary and band.high.max() > 0.2:
            axes.set_ylim(0.0, 1.0)
        axes.legend(loc="best", ncols=2 if len(other.choices) > 3 else 1)

    return panel


def lone_next_panel(analysis: Analysis) -> Panel:
    """Return a panel of the curve of the only factor, with the suggested episodes."""

    def panel(axes: Axes) -> None:
        factor, band = analysis.surface.factors[0], analysis.surface.marginal(0)
        along(axes, factor, analysis.surface.grid(0), band, CURVE)
        places = factor.placed(_suggested(analysis)[:, 0])
        axes.plot(places, np.full(len(places), band.low.min()), "*", color=FAILURE, ms=7)
        axes.set_title(short(factor.name))

    return panel


def _suggested(analysis: Analysis) -> Array:
    """(suggestions, factors) in units."""
    factors = analysis.surface.factors
    return np.array([[factor.unit(row[factor.name]) for factor in factors] for row in analysis.suggestions])


def next_panel(analysis: Analysis, first: int, second: int, band: Band) -> Panel:
    """Return a panel of the width of the band over two factors, with the suggested episodes."""

    def panel(axes: Axes) -> None:
        one, two = analysis.surface.factors[first], analysis.surface.factors[second]
        units = _suggested(analysis)
        width = band.high - band.low
        _map(axes, analysis, first, second, width, (0.0, float(width.max())), "Blues", "width of the band")
        axes.plot(*_scattered(units, first, second, one, two), "*", color=FAILURE, ms=8, mec="white", mew=0.5)

    return panel


def _map(
    axes: Axes,
    analysis: Analysis,
    first: int,
    second: int,
    values: Array,
    limits: tuple[float, float],
    colors: str,
    label: str,
) -> None:
    one, two = analysis.surface.factors[first], analysis.surface.factors[second]
    x, y = (f.placed(analysis.surface.grid(n, 17)) for f, n in ((one, first), (two, second)))
    shown = axes.pcolormesh(x, y, values.T, cmap=colors, vmin=limits[0], vmax=limits[1], shading="nearest")
    axes.figure.colorbar(shown, ax=axes, label=label)
    for axis, factor in ((axes.xaxis, one), (axes.yaxis, two)):
        name_axis(axis, factor)
        axis.set_label_text(short(factor.name, 40))
    axes.set_title(pair_title(one.name, two.name))


def importance_panel(analysis: Analysis) -> Panel:
    """Return a panel with bars of total and first-order indices with intervals, and the largest irrelevant share."""

    def panel(axes: Axes) -> None:
        ranking = analysis.ranking
        for place, number in enumerate(reversed(ranking)):
            found = analysis.importance[number]
            color = VERDICT_COLORS[found.verdict]
            axes.barh(place, found.total.mean, height=0.62, color=color, alpha=0.35)
            axes.barh(place, found.first_order.mean, height=0.62, color=color, alpha=0.75)
            axes.plot([found.total.low, found.total.high], [place, place], color=INK, lw=1.4)
            text = f"{found.verdict.value}   p = {found.p_value:.3f}"
            axes.text(max(found.total.high, SMALL_SHARE) + 0.015, place, text, va="center", fontsize=8, color=INK)
        axes.axvline(SMALL_SHARE, color=INK, lw=0.8, ls=":")
        axes.set_yticks(range(len(ranking)), [short(analysis.importance[n].factor) for n in reversed(ranking)])
        axes.set_xlim(0.0, 1.25)
        axes.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
        axes.set_xlabel(
            "share of the surface's variance: dark alone, light with interactions\n"
            "line: interval; irrelevant only if it ends left of the dots, and the swing is small"
        )

    return panel


def calibration_panel(analysis: Analysis) -> Panel:
    """Return a panel of predicted and observed outcomes of held-out rows."""

    def panel(axes: Axes) -> None:
        bins = analysis.calibration.bins
        predicted, observed = np.array([b.predicted for b in bins]), np.array([b.observed for b in bins])
        low, high = np.array([b.low for b in bins]), np.array([b.high for b in bins])
        ends = min(predicted.min(), low.min()), max(predicted.max(), high.max())
        axes.plot(ends, ends, color=QUIET, lw=0.8, ls=":")
        axes.vlines(predicted, low, high, color=CURVE, lw=1.4)
        axes.plot(predicted, observed, "o", color=CURVE, ms=5)
        axes.set(xlabel=f"predicted {_outcome_label(analysis)}", ylabel="observed, with 90% intervals")
        axes.set_title("held-out rows")

    return panel


def _observed(axes: Axes, analysis: Analysis, number: int) -> None:
    """Draw weighted means of the rows in bins."""
    rows, factor = analysis.rows, analysis.surface.factors[number]
    units, count = rows.units[:, number], OBSERVED_BINS
    if isinstance(factor, Categorical):
        count = len(factor.choices)
        bins, shift = units.astype(np.intp), 0.15
        middles = np.arange(count, dtype=np.float64)
    else:
        bins, shift = np.minimum((units * count).astype(np.intp), count - 1), 0.0
        middles = (np.arange(count) + 0.5) / count
    for middle, number_of_bin in zip(factor.placed(middles) + shift, range(count), strict=True):
        inside = bins == number_of_bin
        if inside.sum() < 3:
            continue
        weights = rows.weights[inside]
        mean = float(np.average(rows.outcome[inside], weights=weights))
        size = float(weights.sum() ** 2 / np.square(weights).sum())  # effective sample size
        if rows.is_binary:
            low, high = observed_interval(mean, size)
        else:
            half = 1.645 * float(rows.outcome[inside].std()) / np.sqrt(size)
            low, high = mean - half, mean + half
        axes.vlines(middle, low, high, color=INK, lw=0.7, alpha=0.6)
        axes.plot(middle, mean, "o", color=INK, ms=2.6, alpha=0.7)


def _rows_under(axes: Axes, analysis: Analysis, number: int) -> None:
    """Draw a tick per row under the curve: successes above failures."""
    rows, factor = analysis.rows, analysis.surface.factors[number]
    shown = np.random.default_rng(0).permutation(len(rows))[:MOST_TICKS]
    x = factor.placed(rows.units[shown, number])
    if isinstance(factor, Categorical):
        x = x + np.random.default_rng(1).uniform(-0.3, 0.3, len(x))
    for value, color, height in ((1.0, SUCCESS, 0.075), (0.0, FAILURE, 0.03)):
        chosen = x[rows.outcome[shown] == value]
        heights = np.full(len(chosen), height)
        axes.plot(chosen, heights, "|", color=color, ms=4, mew=0.5, alpha=0.7, transform=axes.get_xaxis_transform())


def _cell_counts(analysis: Analysis, first: int, second: int) -> tuple[NDArray[np.intp], tuple[Array, Array]]:
    edges: list[Any] = []
    columns: list[Any] = []
    for number in (first, second):
        factor = analysis.surface.factors[number]
        if isinstance(factor, Categorical):
            edges.append(np.arange(len(factor.choices) + 1) - 0.5)
        else:
            edges.append(factor.placed(np.linspace(0.0, 1.0, MAP_BINS + 1)))
        columns.append(factor.placed(analysis.rows.units[:, number]))
    counts: NDArray[np.intp] = np.histogram2d(columns[0], columns[1], bins=edges)[0].astype(np.intp)
    return counts, (edges[0], edges[1])


def _scattered(units: Array, first: int, second: int, one: Factor, two: Factor) -> tuple[Array, Array]:
    """Return the positions of rows on a map, with jitter for choices."""
    rng = np.random.default_rng(0)
    places = []
    for number, factor in ((first, one), (second, two)):
        place = factor.placed(units[:, number])
        places.append(place + rng.uniform(-0.3, 0.3, len(place)) if isinstance(factor, Categorical) else place)
    return places[0], places[1]


def _outcome_label(analysis: Analysis) -> str:
    name = analysis.rows.outcome_name
    return f"probability of {name}" if analysis.surface.is_binary else f"mean {name}"
