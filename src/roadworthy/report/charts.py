"""Charts of a report as inline SVG. They use the page's colors, so they adapt to dark mode and to print."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roadworthy.report.markup import Html, join, tag
from roadworthy.report.words import LIKELIHOOD, NONE, Figure, interval_of, missing_of, number, plain_name, value_of

BAR_PX = (280.0, 20.0)
SMALL_BAR_PX = 150.0  # the width in tables with several figures per row
_TABLE_PX = 830.0  # the width for bars and values in such a table
_VALUE_PX = 88.0  # the width of a value beside its bar
TICK_PX = 48.0  # about, between ticks
MARGIN_PX = 17.0  # space for half a number at both ends of an axis
LEVELS = 6  # shades between the worst and the best
CELL_PX = (1080.0, 21.0)  # the width of a strip, and the height of a row
MOST_CELLS = 400
COLORS = 5  # classes c0 to c4 of the page's style
HISTOGRAM_PX = (338.0, 168.0)
_LINE_PX = 28.0  # between numbers on a vertical axis
_FILLED_PX = 11.0  # the height of a filled bar
_LETTER_PX = 6.3  # about, the width of a letter


@dataclass(frozen=True)
class Scale:
    """Values along a line of pixels."""

    low: float
    high: float
    start_px: float
    end_px: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start_px + (self.end_px - self.start_px) * min(max(share, 0.0), 1.0)

    def ticks(self, apart_px: float = TICK_PX) -> list[float]:
        """Return round values within the scale, about `apart_px` apart."""
        rough = (self.high - self.low) / max(abs(self.end_px - self.start_px) / apart_px, 1.0)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * step for step in (1.0, 2.0, 5.0, 10.0) if power * step >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [step * k for k in range(first, last + 1)]


def bar_scale(figures: Sequence[Figure], width_px: float = BAR_PX[0]) -> Scale:
    """Return the scale that figures of one unit share: 0 to 1 for shares, around 0 for gains, from 0 for others."""
    ends = ("value", "low", "high", "worst_low", "worst_high")
    values = [v for f in figures for v in map(f.get, ends) if v is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if figures and all(figure["unit"] in ("share", LIKELIHOOD) for figure in figures):
        low, high = (0.0, 1.0) if low >= 0.0 else (-(size := max(-low, high, 0.1)), size)
    else:
        low = min(low, 0.0)
        high = high if high > low else low + 1.0
    return Scale(low, high, MARGIN_PX, width_px - MARGIN_PX)


def small_bar_px(columns: int) -> float:
    """Return the width of bars in a table with this many columns of figures, so that it fits a page."""
    return min(SMALL_BAR_PX, max(_TABLE_PX / max(columns, 1) - _VALUE_PX, 2.0 * MARGIN_PX + 20.0))


def interval_bar(figure: Figure, scale: Scale) -> Html:
    """Draw a figure as a dot on its interval; the dot is hollow where there is no interval.

    A wider, lighter bar is the interval in the worst case of missing data.
    """
    width, height = scale.end_px + MARGIN_PX, BAR_PX[1]
    middle = height / 2.0
    parts = [
        tag("line", x1=scale(t), x2=scale(t), y1=0, y2=height, class_=_tick_class(t, scale)) for t in scale.ticks()
    ]
    value, low, high = figure["value"], figure.get("low"), figure.get("high")
    parts += worst_range(figure, lambda value: {"x": scale(value), "y": middle})
    if low is not None and high is not None:
        parts.append(tag("line", x1=scale(low), x2=scale(high), y1=middle, y2=middle, class_="range"))
        parts += [
            tag("line", x1=scale(e), x2=scale(e), y1=middle - 4, y2=middle + 4, class_="end") for e in (low, high)
        ]
    if value is not None:
        parts.append(tag("circle", cx=scale(value), cy=middle, r=4.5, class_="dot" if low is not None else "hollow"))
    label = f"{plain_name(figure['name'])}: {value_of(figure)}, {interval_of(figure)}"
    missing = missing_of(figure)
    return _svg(width, height, *parts, label=f"{label}; {missing}" if missing else label, class_="bar")


def worst_range(figure: Figure, place: Callable[[float], Mapping[str, float]]) -> list[Html]:
    """Return the lighter bar of the worst case of missing data; nothing where no data are missing.

    place: gives the x and y of a value.
    """
    low, high = figure.get("worst_low"), figure.get("worst_high")
    if not figure.get("missing") or low is None or high is None:
        return []
    start, end = place(low), place(high)
    return [tag("line", x1=start["x"], x2=end["x"], y1=start["y"], y2=end["y"], class_="worst")]


def filled_bars(figures: Mapping[str, Figure | None], scale: Scale) -> Html:
    """Draw the same figure of several runs, by name, as bars with intervals."""
    width, height = scale.end_px + MARGIN_PX, _FILLED_PX * len(figures) + 4.0
    parts = [tag("line", x1=scale(t), x2=scale(t), y1=0, y2=height, class_="grid") for t in scale.ticks()]
    labels = []
    for place, (name, figure) in enumerate(figures.items()):
        labels.append(f"{name} {value_of(figure)}, {interval_of(figure)}" if figure else f"{name} {NONE}")
        if figure is None or figure["value"] is None:
            continue
        top, start = 2.0 + _FILLED_PX * place, scale(0.0)
        middle = top + (_FILLED_PX - 2.0) / 2.0
        at = {"x": start, "y": top, "width": scale(figure["value"]) - start, "height": _FILLED_PX - 2.0}
        bar = [tag("title", labels[-1]), tag("rect", **at, class_="filled")]
        if figure.get("low") is not None:
            bar.append(
                tag("line", x1=scale(figure["low"]), x2=scale(figure["high"]), y1=middle, y2=middle, class_="whisker")
            )
        parts.append(tag("g", *bar, class_=f"c{place % COLORS}"))
    return _svg(width, height, *parts, label="; ".join(labels), class_="bar")


def histogram(title: str, edges: Sequence[float], log: Sequence[float], simulated: Sequence[float]) -> Html:
    """Draw two histograms as shares: simulated values as filled bars, recorded values as a line."""
    width, height = HISTOGRAM_PX
    shares = [[count / total if (total := sum(counts)) else 0.0 for count in counts] for counts in (log, simulated)]
    across = Scale(edges[0], edges[-1], 38.0, width - 12.0)
    up = Scale(0.0, max(0.05, *shares[0], *shares[1]), height - 24.0, 26.0)
    parts = [tag("text", title, x=0, y=13, class_="title")]
    for t in up.ticks(_LINE_PX):
        parts.append(tag("line", x1=across.start_px, x2=across.end_px, y1=up(t), y2=up(t), class_="grid"))
        parts.append(tag("text", f"{100.0 * t:g}%", x=32, y=up(t) + 4, class_="axis", text_anchor="end"))
    for t in across.ticks():
        parts.append(tag("text", f"{t:g}", x=across(t), y=height - 8, class_="axis", text_anchor="middle"))
    outline = []
    for low, high, recorded, rolled in zip(edges, edges[1:], *shares, strict=False):
        left, right = across(low), across(high)
        label = f"{low:.3g} to {high:.3g}: recorded {recorded:.1%}, simulated {rolled:.1%}"
        at = {"x": left + 1.0, "y": up(rolled), "width": right - left - 2.0, "height": up(0.0) - up(rolled)}
        whole = {"x": left, "y": up.end_px, "width": right - left, "height": up(0.0) - up.end_px}
        parts.append(
            tag("g", tag("title", label), tag("rect", **whole, class_="air"), tag("rect", **at, class_="filled"))
        )
        outline += [f"{left:.1f},{up(recorded):.1f}", f"{right:.1f},{up(recorded):.1f}"]
    parts.append(tag("polyline", points=" ".join(outline), class_="recorded"))
    label = f"{title}: recorded {_listed(shares[0])}; simulated {_listed(shares[1])}"
    return _svg(width, height, *parts, label=label, class_="chart")


def bar_axis(scale: Scale, unit: str, *, signed: bool = False) -> Html:
    """Draw the axis below a column of bars."""
    width, height = scale.end_px + MARGIN_PX, BAR_PX[1]
    labels = [
        tag("text", _short(t, unit, signed), x=scale(t), y=13, class_="axis", text_anchor="middle")
        for t in scale.ticks()
    ]
    return _svg(width, height, *labels, label="axis", class_="bar")


@dataclass(frozen=True)
class Line:
    """One line of a chart over trials."""

    label: str
    figures: Sequence[Figure]
    color: str  # a class of the page's style


def trial_chart(lines: Sequence[Line], title: str) -> Html:
    """Draw shares over trials, each point with its interval."""
    width, height = 430.0, 250.0
    count = max(len(line.figures) for line in lines)
    across = Scale(0.0, max(count - 1.0, 1.0), 52.0, width - 24.0)
    up = Scale(0.0, 1.0, height - 34.0, 36.0)
    parts: list[Html] = [tag("text", title, x=4, y=15, class_="title")]
    for t in up.ticks():
        parts.append(tag("line", x1=across.start_px - 10, x2=width - 12, y1=up(t), y2=up(t), class_="grid"))
        parts.append(
            tag("text", number(t, "share").replace(".0%", "%"), x=36, y=up(t) + 4, class_="axis", text_anchor="end")
        )
    for k in range(count):
        parts.append(tag("text", f"trial {k + 1}", x=across(k), y=height - 14, class_="axis", text_anchor="middle"))
    for place, line in enumerate(lines):
        parts += _trial_line(line, across, up, 6.0 * (place - (len(lines) - 1) / 2.0))
    legend = 30.0 + 7.5 * len(title)
    for line in lines if len(lines) > 1 else ():
        parts.append(tag("circle", cx=legend, cy=11, r=4.5, class_=f"dot {line.color}"))
        parts.append(tag("text", line.label, x=legend + 9, y=15, class_="axis"))
        legend += 22.0 + 6.6 * len(line.label)
    label = f"{title}: " + "; ".join(f"{line.label} {', '.join(map(value_of, line.figures))}" for line in lines)
    return _svg(width, height, *parts, label=label, class_="chart")


def _trial_line(line: Line, across: Scale, up: Scale, shift_px: float) -> Iterator[Html]:
    points = [(across(k) + shift_px, f) for k, f in enumerate(line.figures) if f["value"] is not None]
    path = " ".join(f"{x:.1f},{up(figure['value']):.1f}" for x, figure in points)
    yield tag("polyline", points=path, class_=f"curve {line.color}")
    for x, figure in points:
        low, high = figure.get("low"), figure.get("high")
        yield from worst_range(figure, lambda value, x=x: {"x": x, "y": up(value)})  # type: ignore[misc]
        if low is not None and high is not None:
            yield tag("line", x1=x, x2=x, y1=up(low), y2=up(high), class_=f"range {line.color}")
        kind = "dot" if low is not None else "hollow"
        yield tag("circle", cx=x, cy=up(figure["value"]), r=4.5, class_=f"{kind} {line.color}")


@dataclass(frozen=True)
class Cell:
    """One scenario in a strip."""

    text: str
    link: str | None  # to an anchor in the page
    badness: Mapping[str, float | None]  # by row, from 0 (good) to 1 (bad)


def scenario_strip(cells: Sequence[Cell], rows: Mapping[str, str]) -> Html:
    """Draw scenarios side by side with a row for each figure, darker where it is worse; rows: figures with labels."""
    width, height = CELL_PX
    label_px = max(120.0, *(12.0 + _LETTER_PX * len(label) for label in rows.values()))
    step = min((width - label_px) / max(len(cells), 1), 26.0)
    gap = 1.0 if step >= 4.0 else 0.0
    parts: list[Html] = []
    for place, label in enumerate(rows.values()):
        parts.append(tag("text", label, x=0, y=place * height + 14, class_="axis"))
    for column, cell in enumerate(cells):
        boxes = []
        for place, name in enumerate(rows):
            value = cell.badness.get(name)
            shade = "none" if value is None else f"b{round(min(max(value, 0.0), 1.0) * (LEVELS - 1))}"
            at = {"x": label_px + column * step, "y": place * height + 1.0}
            boxes.append(tag("rect", **at, width=step - gap, height=height - 3.0, class_=shade))
        drawn = join((tag("title", cell.text), *boxes))
        parts.append(tag("a", drawn, href=cell.link) if cell.link else tag("g", drawn))
    return _svg(width, height * len(rows), *parts, label=f"{len(cells)} scenarios, worst first", class_="strip")


def _svg(width: float, height: float, *parts: Html, label: str, class_: str) -> Html:
    size: dict[str, float | str] = {"width": width, "height": height, "viewBox": f"0 0 {width:g} {height:g}"}
    return tag("svg", *parts, **size, class_=class_, role="img", aria_label=label)


def _listed(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.1%}" for share in shares)


def _tick_class(tick: float, scale: Scale) -> str:
    return "zero" if abs(tick) < 1e-9 and scale.low < 0.0 else "grid"


def _short(value: float, unit: str, signed: bool) -> str:
    if unit == "share":
        points = round(100.0 * value)
        return f"{points:+d}".replace("+0", "0") if signed else f"{points}%"
    return f"{value:,g}"
