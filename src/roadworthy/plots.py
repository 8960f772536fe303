"""How the package's plots look, and a figure as a PNG file. Matplotlib is imported when something is drawn."""

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
}
DOTS_PER_INCH = 120


def png(draw: Callable[[Figure], None], inches: tuple[float, float]) -> bytes:
    """A figure of this size, drawn in the package's style, without any display."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]  # its stubs list every key
        figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        target = BytesIO()
        # Without the name of the software in it, the same data give the same bytes under any version number.
        figure.savefig(target, format="png", metadata={"Software": None})
    return target.getvalue()
