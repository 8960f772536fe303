"""Plots of the measured distributions, with published figures of human driving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
import numpy as np

from roadworthy import plots
from roadworthy.plots import INK
from roadworthy.scenario.statistics.crossings import critical_gap
from roadworthy.scenario.statistics.published import HIGHD_LANE_CHANGES_PER_KM, figures_of
from roadworthy.scenario.statistics.published import Figure as Published
from roadworthy.scenario.statistics.sample import QUANTITIES, Sample
from roadworthy.scenario.statistics.summary import GAP_KINDS, UNCHECKED, compare, lane_change_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, OURS_LINE, SECOND = "#9db8d2", "#2f5d8a", "#c98b5e"
PUBLISHED = ("#b3472d", "#5a8f3c", "#7b5aa6", "#c2912b")
FAINT = "#d9d9d9"
STYLE: Any = plots.STYLE | {"axes.axisbelow": True, "legend.fontsize": 7.5}
PANEL_INCHES = (4.6, 3.4)
DOTS_PER_INCH = 110
LINE_SHARE = 0.066  # of a panel's height is taken by one line of its legend
LABEL_BOX = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
LEAST_SHOWN = 5  # fewer observations say nothing about a distribution

Panel = Callable[["Axes", Sample], None]


def draw(sample: Sample, folder: Path) -> list[Path]:
    """Write the pictures into a folder and return their paths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    written = []
    for name, panels in PICTURES.items():
        columns = 3 if len(panels) > 4 else 2
        rows = -(-len(panels) // columns)
        with matplotlib.rc_context(STYLE):
            size = (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows)
            figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
            FigureCanvasAgg(figure)
            for axes, panel in zip(figure.subplots(rows, columns).flat, panels, strict=True):
                panel(axes, sample)
            path = folder / f"traffic_{name}.png"
            # Without the name of the software, equal data give equal bytes under any version.
            figure.savefig(path, metadata={"Software": None})
            written.append(path)
    return written


def _histogram(name: str, low: float, high: float, bins: int = 40, log: bool = False) -> Panel:
    """Return a panel with the distribution of a quantity between two limits, and all published figures of it."""

    def panel(axes: Axes, sample: Sample) -> None:
        values, quantity = sample.of(name), QUANTITIES[name]
        _frame(axes, quantity.title, quantity.unit, f"n = {len(values):,}, one per {quantity.per}")
        axes.set(xlim=(low, high), ylabel="% of observations" + (" (log)" if log else ""))
        figures = figures_of(name)
        if len(values) >= LEAST_SHOWN:
            edges = np.linspace(low, high, bins + 1)
            heights = np.histogram(np.clip(values, low, high), edges)[0] * (100.0 / len(values))
            least, most = heights[heights > 0.0].min(), heights.max()
            if log:
                axes.set_yscale("log")
            axes.set_ylim(0.7 * least if log else 0.0, (1.4 if log else 1.05) * most)
            axes.stairs(heights, edges, baseline=0.7 * least if log else 0.0, fill=True, color=OURS)
            top = _leave_room(axes, lines=1 + len(figures) + len(axes.get_legend_handles_labels()[0]))
            middle = float(np.median(values))
            axes.axvline(middle, ymax=top, color=OURS_LINE, lw=1.6, label=f"ours: median {middle:.2f}")
        else:
            top = 1.0
        for figure in figures:
            ours = f", ours {compare(figure, sample)}" if len(values) >= LEAST_SHOWN else ""
            _mark(axes, figure, figures.index(figure), top, ours)
        _legend(axes)

    return panel


def _lane_changes(axes: Axes, sample: Sample) -> None:
    """Plot durations of lane changes and their number per kilometer."""
    rate = lane_change_rate(sample, "freeway")
    if rate is not None:
        axes.plot([], [], " ", label=f"per freeway km: highD {HIGHD_LANE_CHANGES_PER_KM:.2f}, ours {rate:.2f}")
    _histogram("lane_change_duration", 0.0, 10.0)(axes, sample)


def _gaps_by_speed(axes: Axes, sample: Sample) -> None:
    """Plot gaps to the leader against speed, on both kinds of road, with lines of equal time."""
    counts = f"n = {len(sample.of('gap_freeway')):,} and {len(sample.of('gap_street')):,}"
    _frame(axes, "gap to the leader by speed", "speed, m/s", f"{counts}, one per follower and leader")
    for road, color in (("freeway", OURS_LINE), ("street", SECOND)):
        speed, gap = sample.of(f"gap_{road}_speed"), sample.of(f"gap_{road}")
        axes.scatter(speed, gap, s=2, color=color, alpha=0.25, lw=0, label=f"ours: {road}s")
    fastest, widest = 38.0, 100.0
    for seconds in (1.0, 2.0, 3.0):
        end = min(fastest, widest / seconds)
        axes.plot([0, end], [0, seconds * end], color=INK, lw=0.8, ls=":")
        axes.annotate(f"{seconds:.0f} s", (0.93 * end, 0.93 * seconds * end), fontsize=8, ha="center", bbox=LABEL_BOX)
    axes.set(xlim=(0, fastest), ylim=(0, widest), ylabel="gap, m")
    _legend(axes, "upper left", marker_scale=5)


def _bends(axes: Axes, sample: Sample) -> None:
    """Plot peak lateral acceleration of each bend against the speed there, with lines of equal radius."""
    lateral, speed = sample.of("bend_lateral"), sample.of("bend_speed")
    _frame(axes, "peak lateral acceleration in bends", "speed, m/s", f"n = {len(lateral):,}, one per bend")
    axes.scatter(speed, lateral, s=3, color=OURS_LINE, alpha=0.25, lw=0, label="ours")
    fastest, strongest = 24.0, 6.0
    for radius in (10, 30, 100):
        end = min(fastest, np.sqrt(4.6 * radius))
        along = np.linspace(0.0, end, 60)
        axes.plot(along, along**2 / radius, color=INK, lw=0.7, ls=":")
        axes.annotate(f"{radius} m", (end, end**2 / radius), fontsize=7.5, ha="center", va="center", bbox=LABEL_BOX)
    for figure in figures_of("bend_lateral"):
        label = f"{figure.source}: {figure.low:.0f} to {figure.high:.0f}, ours {compare(figure, sample)}"
        axes.axhspan(figure.low, figure.high, color=PUBLISHED[0], alpha=0.12, lw=0, label=label)
    axes.set(xlim=(0, fastest), ylim=(0, strongest), ylabel="lateral acceleration, m/s²")
    _legend(axes, "upper right", marker_scale=5)


def _gap_acceptance(kind: str) -> Panel:
    """Plot Raff's curves: the number of accepted gaps that are shorter, and of rejected ones that are longer."""

    def panel(axes: Axes, sample: Sample) -> None:
        accepted, rejected = sample.of(f"accepted_{kind}"), sample.of(f"rejected_{kind}")
        counts = f"n = {len(accepted):,} accepted, {len(rejected):,} rejected"
        _frame(axes, f"gaps at {GAP_KINDS[kind]}", "gap, s", counts)
        axes.set(xlim=(0, 8), ylabel="number of gaps")
        size = np.linspace(0.0, max(accepted.max(initial=0.0), rejected.max(initial=0.0), 1.0), 300)
        shorter = np.searchsorted(np.sort(accepted), size, side="left")
        longer = len(rejected) - np.searchsorted(np.sort(rejected), size, side="right")
        axes.plot(size, shorter, color=OURS_LINE, lw=1.6, label="ours: accepted ones that are shorter")
        axes.plot(size, longer, color=SECOND, lw=1.6, label="ours: rejected ones that are longer")
        gap, figures = critical_gap(accepted, rejected), figures_of(kind)
        axes.set_ylim(0, max(shorter.max(), longer.max(), 1) * 1.05)
        top = _leave_room(axes, lines=2 + (gap is not None) + len(figures))
        if gap is not None:
            axes.axvline(gap, ymax=top, color=OURS_LINE, lw=1.0, ls=":", label=f"ours: critical gap {gap:.1f}")
        for figure in figures:
            _mark(axes, figure, figures.index(figure), top)
        _legend(axes)

    return panel


def _mark(axes: Axes, figure: Published, number: int, top: float, ours: str = "") -> None:
    """Plot a published figure as a line or a band."""
    color = PUBLISHED[number % len(PUBLISHED)]
    size = f"{figure.low:.2f}" if figure.low == figure.high else f"{figure.low:.1f} to {figure.high:.1f}"
    what = figure.statistic.value if figure.share is None else f"{figure.share:.0%} above"
    label = f"{figure.source}: {what} {size}{'' if figure.is_checked else f' {UNCHECKED}'}{ours}"
    if figure.low == figure.high:
        axes.axvline(figure.low, ymax=top, color=color, lw=1.4, ls="--", label=label)
    else:
        axes.axvspan(figure.low, figure.high, ymax=top, color=color, alpha=0.18, lw=0, label=label)


def _leave_room(axes: Axes, lines: int) -> float:
    """Make room for a legend of this many lines above the data; return the share of the height left for the data."""
    share = 1.0 - LINE_SHARE * lines - 0.04
    low, high = axes.get_ylim()
    is_log = axes.get_yscale() == "log"
    top = low * (high / low) ** (1.0 / share) if is_log else low + (high - low) / share
    axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= high])
    if is_log:
        axes.minorticks_off()
    axes.set_ylim(low, top)
    return share


def _frame(axes: Axes, title: str, x_label: str, count: str) -> None:
    axes.set_title(title, pad=16)
    axes.set_xlabel(x_label)
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.annotate(
        count, (0.0, 1.0), (0, 4), xycoords="axes fraction", textcoords="offset points", fontsize=8, color="#777777"
    )


def _legend(axes: Axes, place: Literal["upper left", "upper right"] = "upper left", marker_scale: float = 1.0) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc=place, handlelength=1.4, labelspacing=0.3, borderpad=0.2, markerscale=marker_scale)


PICTURES: dict[str, tuple[Panel, ...]] = {
    "speeds": (
        _histogram("speed_freeway", 0.0, 42.0),
        _histogram("speed_street", 0.0, 24.0),
        _histogram("free_speed_freeway", 0.6, 1.5, 45),
        _histogram("free_speed_street", 0.6, 1.5, 45),
    ),
    "following": (
        _histogram("headway_freeway", 0.0, 4.5, 45),
        _histogram("headway_street", 0.0, 4.5, 45),
        _gaps_by_speed,
        _histogram("standing_gap", 0.0, 8.0),
    ),
    "accelerations": (
        _histogram("acceleration", -7.0, 4.0, 44, log=True),
        _histogram("jerk", 0.0, 6.0, log=True),
        _bends,
        _histogram("stop_deceleration", 0.0, 7.0, 42),
        _histogram("stop_peak_deceleration", 0.0, 8.0),
        _histogram("start_acceleration", 0.0, 4.0),
    ),
    "maneuvers": (
        _lane_changes,
        _gap_acceptance("roundabout"),
        _gap_acceptance("junction"),
        _histogram("encroachment", -1.0, 8.0, 36),
        _histogram("walking_speed", 0.4, 2.6, 44),
        _histogram("cycling_speed", 0.0, 10.0),
    ),
}
