"""The style of plots, and figures as files. Matplotlib is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, QUIET = "#333333", "#9a9a9a"
BLUE, GREEN, OCHRE, RED = "#2f5d8a", "#2a7f62", "#c2912b", "#b3472d"
STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.hashsalt": "roadworthy",  # names within an SVG file are random without one
}
DOTS_PER_INCH = 120


# Suffixes of figure files, and the metadata to remove: names of software and times.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    ".svg": {"Creator": None, "Date": None},
}
FIGURE_SUFFIXES = tuple(_METADATA)


def png(draw: Callable[[Figure], None], inches: tuple[float, float]) -> bytes:
    """Draw a figure of this size in the package's style, without a display, as a PNG file."""
    return figure_file(draw, inches, ".png")


def figure_file(draw: Callable[[Figure], None], inches: tuple[float, float], suffix: str) -> bytes:
    """Draw a figure as the bytes of a file with this suffix, one of `FIGURE_SUFFIXES`."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]  # its stubs list every key
        figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        target = BytesIO()
        # Without the name of the software, the same data give the same bytes with any version.
        figure.savefig(target, format=suffix.removeprefix("."), metadata=_METADATA[suffix])
    return target.getvalue()
