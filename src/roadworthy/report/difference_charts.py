"""Charts of comparisons as inline SVG: intervals of differences, and both runs side by side for each cluster."""

from __future__ import annotations

from collections.abc import Sequence

from roadworthy.comparison.compare import Dot
from roadworthy.comparison.difference import Difference
from roadworthy.comparison.ranking import Ranking
from roadworthy.report import difference_words as words
from roadworthy.report.charts import BAR_PX, MARGIN_PX, Scale
from roadworthy.report.markup import Html, tag
from roadworthy.report.words import many, number, plain_name

WIDTH_PX = 1080.0
DOTS_HEIGHT_PX = 230.0
_LEFT_PX = 46.0
MOST_APART_PX = 44.0  # between clusters

STYLE = """
.worst-case { stroke: var(--accent); stroke-width: 9; opacity: 0.22; }
.margin { fill: var(--good); opacity: 0.13; }
.better-side { stroke: var(--good); }
.up { --accent: var(--good); }
.down { --accent: var(--bad); }
.flat { --accent: var(--soft); }
.pair { stroke: var(--accent); stroke-width: 2; }
.pairs-chart { max-width: 100%; height: auto; }
.pairs-chart g:hover .pair { stroke-width: 4; }
.verdict-cell { white-space: nowrap; font-weight: 600; }
.differences td { vertical-align: middle; }
.differences td:first-child { min-width: 9rem; }
.flips td:first-child, .flips .key { overflow-wrap: anywhere; }
.flips .key { color: var(--soft); display: block; }
.tile .verdict { display: block; min-width: 0; }
.data { margin-top: 2rem; }
.narrow { display: none; }
@media (max-width: 44rem) {
  .differences td, .differences th { white-space: normal; overflow-wrap: break-word; }
  .differences td:first-child { min-width: 5.5rem; }
  .differences .optional, .differences .meaning { display: none; }
  .differences .narrow { display: block; }
  .scroll:has(.pairs-chart) .pairs-chart { max-width: none; }
}
"""


def difference_scale(found: Sequence[Difference], width_px: float = BAR_PX[0]) -> Scale:
    """Return the scale that differences of one unit share: symmetric around 0."""
    ends = [
        abs(value)
        for each in found
        for value in (
            each.interval.value,
            each.interval.low,
            each.interval.high,
            each.interval.worst_low,
            each.interval.worst_high,
            each.margin,
        )
        if value is not None
    ]
    reach = max(ends, default=0.0) * 1.05 or 1.0
    return Scale(-reach, reach, MARGIN_PX, width_px - MARGIN_PX)


def difference_bar(found: Difference, scale: Scale) -> Html:
    """Draw a difference as a dot on its interval, with the margin as a band and worst-case bounds as a lighter bar."""
    width, height = scale.end_px + MARGIN_PX, BAR_PX[1]
    middle, interval = height / 2.0, found.interval
    parts: list[Html] = []
    if found.margin > 0.0 and found.metric.better:
        sign = -1.0 if found.metric.better == "higher" else 1.0
        low, high = sorted((scale(0.0), scale(sign * found.margin)))
        parts.append(tag("rect", x=low, y=0, width=high - low, height=height, class_="margin"))
    for tick in scale.ticks():
        kind = "zero" if abs(tick) < 1e-12 else "grid"
        parts.append(tag("line", x1=scale(tick), x2=scale(tick), y1=0, y2=height, class_=kind))
    if interval.missing and interval.worst_low is not None and interval.worst_high is not None:
        ends = {"x1": scale(interval.worst_low), "x2": scale(interval.worst_high)}
        parts.append(tag("line", **ends, y1=middle, y2=middle, class_="worst-case"))
    if interval.low is not None and interval.high is not None:
        ends = {"x1": scale(interval.low), "x2": scale(interval.high)}
        parts.append(tag("line", **ends, y1=middle, y2=middle, class_="range"))
        parts += [
            tag("line", x1=scale(e), x2=scale(e), y1=middle - 4, y2=middle + 4, class_="end")
            for e in (interval.low, interval.high)
        ]
    if interval.value is not None:
        kind = "dot" if interval.low is not None else "hollow"
        parts.append(tag("circle", cx=scale(interval.value), cy=middle, r=4.5, class_=kind))
    label = f"{words.name(found)} {found.part}: {words.change(found)}, {words.interval(found)}"
    shade = {"good": "up", "bad": "down"}.get(words.SHADES.get(found.verdict, ""), "")
    shade = shade if found.verdict.value in ("better", "worse") else ""
    return _svg(width, height, *parts, label=label, class_=f"bar {shade}".strip())


def difference_axis(scale: Scale, unit: str) -> Html:
    """Draw the axis below a column of differences."""
    width, height = scale.end_px + MARGIN_PX, BAR_PX[1]
    labels = [
        tag("text", _tick(tick, unit), x=scale(tick), y=13, class_="axis", text_anchor="middle")
        for tick in scale.ticks()
    ]
    return _svg(width, height, *labels, label="axis", class_="bar")


def pairs_chart(dots: Sequence[Dot], difference: Difference, reference: str, candidate: str) -> Html:
    """Draw both runs for each cluster, largest losses first: hollow for the reference, filled for the candidate."""
    sign = -1.0 if difference.metric.better == "lower" else 1.0
    ordered = sorted(dots, key=lambda dot: (sign * (dot.candidate - dot.baseline), dot.name))
    values = [value for dot in dots for value in (dot.candidate, dot.baseline)]
    low, high = min(values), max(values)
    if difference.metric.bounds is not None:
        low, high = difference.metric.bounds
    high = high if high > low else low + 1.0
    height = DOTS_HEIGHT_PX
    step = min((WIDTH_PX - _LEFT_PX - 10.0) / max(len(ordered), 1), MOST_APART_PX)
    width = max(_LEFT_PX + step * len(ordered) + 10.0, 320.0)
    up = Scale(low, high, height - 14.0, 14.0)
    unit = difference.metric.unit
    parts: list[Html] = []
    for tick in up.ticks(34.0):
        parts.append(tag("line", x1=_LEFT_PX, x2=width, y1=up(tick), y2=up(tick), class_="grid"))
        text = number(tick, unit).replace(".0%", "%")
        parts.append(tag("text", text, x=_LEFT_PX - 6, y=up(tick) + 4, class_="axis", text_anchor="end"))
    radius = min(4.5, max(step / 2.4, 1.6))
    for place, dot in enumerate(ordered):
        x = _LEFT_PX + step * (place + 0.5)
        gain = sign * (dot.candidate - dot.baseline)
        shade = "flat" if gain == 0.0 or not difference.metric.better else "up" if gain > 0.0 else "down"
        text = (
            f"{dot.name}: {reference} {number(dot.baseline, unit)}, {candidate} {number(dot.candidate, unit)}; "
            f"{many(dot.rows, 'pair')}"
        )
        drawn = [
            tag("title", text),
            tag("rect", x=x - step / 2, y=0, width=step, height=height, class_="air"),
            tag("line", x1=x, x2=x, y1=up(dot.baseline), y2=up(dot.candidate), class_="pair"),
            tag("circle", cx=x, cy=up(dot.baseline), r=radius, class_="hollow"),
            tag("circle", cx=x, cy=up(dot.candidate), r=radius, class_="dot"),
        ]
        parts.append(tag("g", *drawn, class_=shade))
    label = f"{words.name(difference)} of {reference} and {candidate} in {many(len(dots), 'cluster')}"
    return _svg(width, height, *parts, label=label, class_="pairs-chart")


def rank_bar(ranking: Ranking, place: int) -> Html:
    """Draw the ranks that the data allow."""
    count, found = len(ranking.ranked), ranking.ranked[place]
    scale = Scale(1.0, max(float(count), 2.0), MARGIN_PX, 200.0 - MARGIN_PX)
    middle = BAR_PX[1] / 2.0
    parts = [tag("line", x1=scale(k), x2=scale(k), y1=0, y2=BAR_PX[1], class_="grid") for k in range(1, count + 1)]
    parts.append(tag("line", x1=scale(found.best), x2=scale(found.worst), y1=middle, y2=middle, class_="range"))
    parts.append(tag("circle", cx=scale(found.rank), cy=middle, r=4.5, class_="dot"))
    label = f"{ranking.labels[place]}: rank {found.rank}, possible {words.rank_text(ranking, place)}"
    return _svg(200.0, BAR_PX[1], *parts, label=f"{plain_name(ranking.metric.name)}, {label}", class_="bar")


def _tick(value: float, unit: str) -> str:
    if unit == "share":
        return f"{100.0 * value:+.3g}".replace("+0", "0") if value else "0"
    return f"{value:+,.3g}" if value else "0"


def _svg(width: float, height: float, *parts: Html, label: str, class_: str) -> Html:
    size: dict[str, float | str] = {"width": width, "height": height, "viewBox": f"0 0 {width:g} {height:g}"}
    return tag("svg", *parts, **size, class_=class_, role="img", aria_label=label)
