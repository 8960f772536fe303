"""Pictures of an analysis: which there are, and the layout of their panels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from roadworthy.plots import figure_file
from roadworthy.sensitivity.analysis import Analysis
from roadworthy.sensitivity.difference_panels import legend
from roadworthy.sensitivity.difference_report import difference_panels
from roadworthy.sensitivity.panels import (
    Panel,
    calibration_panel,
    curve_panel,
    given_panel,
    importance_panel,
    lone_next_panel,
    neural_panel,
    next_panel,
    pair_panel,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_INCHES = (3.7, 2.9)
COLUMNS = 3
MOST_PANELS = 9  # for the most important factors or pairs


def pictures(analysis: Analysis) -> dict[str, bytes]:
    """Draw all pictures as PNG files, by name."""
    ranking = analysis.ranking[:MOST_PANELS]
    pairs = _pairs(analysis)
    maps = {pair: analysis.surface.pairwise(*pair) for pair in pairs[:MOST_PANELS]}
    bars_height = 1.05 + 0.42 * len(analysis.importance)
    drawn = {"importance": _drawn(1, 1, [importance_panel(analysis)], size=(7.4, bars_height))}
    if analysis.difference is not None:
        title = legend(analysis.difference)
        differences = difference_panels(analysis.difference)
        drawn |= {name: _panels(panels, title=title) for name, panels in differences.items()}
    drawn["curves"] = _panels([curve_panel(analysis, number) for number in ranking])
    if analysis.surface.is_binary:
        drawn["given"] = _panels([given_panel(analysis, number) for number in ranking])
    if analysis.neural is not None:
        drawn["neural"] = _panels([neural_panel(analysis, number) for number in ranking])
    if pairs:
        drawn["pairs"] = _panels([pair_panel(analysis, *pair, maps[pair]) for pair in maps])
    drawn["calibration"] = _drawn(1, 1, [calibration_panel(analysis)], size=(4.6, 4.2))
    if analysis.suggestions:
        widths = [next_panel(analysis, *pair, band) for pair, band in list(maps.items())[:COLUMNS]]
        drawn["next"] = _panels(widths or [lone_next_panel(analysis)])
    return drawn


def main_figure(analysis: Analysis, suffix: str) -> bytes:
    """Draw the outcome along each factor, or the difference from another run, as a .png, .pdf or .svg file."""
    if analysis.difference is not None:
        panels = difference_panels(analysis.difference)["difference"]
        return _panels(panels, suffix, legend(analysis.difference))
    return _panels([curve_panel(analysis, number) for number in analysis.ranking[:MOST_PANELS]], suffix)


def _panels(panels: Sequence[Panel], suffix: str = ".png", title: str = "") -> bytes:
    columns = 2 if len(panels) == 4 else min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    size = PANEL_INCHES[0] * max(columns, 2), PANEL_INCHES[1] * rows
    return _drawn(rows, columns, panels, size, suffix, title)


def _drawn(
    rows: int, columns: int, panels: Sequence[Panel], size: tuple[float, float], suffix: str = ".png", title: str = ""
) -> bytes:
    def draw(figure: Figure) -> None:
        if title:
            figure.suptitle(title, fontsize=8, x=0.01, ha="left")
        places = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(places, panels, strict=False):
            panel(axes)
        for axes in places[len(panels) :]:
            axes.axis("off")

    return figure_file(draw, size, suffix)


def _pairs(analysis: Analysis) -> list[tuple[int, int]]:
    """Return pairs of factors, strongest interactions first."""
    return sorted(combinations(range(len(analysis.importance)), 2), key=lambda pair: -analysis.interactions[pair])
