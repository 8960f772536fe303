"""The page of a gate: the verdict, and the confidence sequence over episodes beside the margin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from roadworthy import __version__
from roadworthy.comparison.gate import GateDecision, Look
from roadworthy.record.files import write_whole
from roadworthy.report.charts import Scale
from roadworthy.report.markup import Html, join, number_cell, row, table, tag, void
from roadworthy.report.style import STYLE
from roadworthy.report.words import many, number, plain_name
from roadworthy.statistics.sequential import Verdict

SIZE_PX = (860.0, 340.0)
CLASSES = {Verdict.PASS: "good", Verdict.REGRESSION: "bad", Verdict.UNDECIDED: "middling"}
_STYLE = """
.band { fill: var(--accent); opacity: 0.18; }
.margin { stroke: var(--bad); stroke-width: 1.8; stroke-dasharray: 6 4; }
.sequence { width: 100%; min-width: 34rem; max-width: 54rem; height: auto; }
.big { font-size: 2rem; font-weight: 650; margin: 0.6rem 0; }
"""
HOW_TO_READ = (
    "The line is the difference after each block of episodes; the band holds the true difference. Each edge of the "
    "band is right at all looks together with the stated probability, so looking often does not weaken it. The dashed "
    "line is the margin: a band that is wholly on its good side is a pass, wholly on the other side a regression. The "
    "bets behind the band are chosen for the margin, so another margin gives another band: it is made for the decision."
)


def write_gate_page(decision: GateDecision, candidate: str, baseline: str, path: str | Path) -> Path:
    """Write the page of a decision, one file that needs no other; candidate, baseline: their names."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gate_page(decision, candidate, baseline).encode())
    return path


def gate_page(decision: GateDecision, candidate: str, baseline: str) -> Html:
    """Return the whole page."""
    title = f"{decision.verdict.value}: {plain_name(decision.metric.name)} of {candidate}"
    head = (
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(STYLE + _STYLE)),
    )
    body = [
        tag("div", "Gate", class_="over"),
        tag("h1", f"{candidate} against {baseline}"),
        tag("p", decision.verdict.value.upper(), class_=f"big {CLASSES[decision.verdict]}"),
        *(tag("p", line, class_="lead") for line in decision_lines(decision)),
        tag("div", sequence_chart(decision), class_="scroll", tabindex="0"),
        tag("p", HOW_TO_READ, class_="note"),
    ]
    if decision.notes:
        items = tag("ul", *(tag("li", note) for note in decision.notes))
        body.append(tag("div", tag("b", "Before you believe it"), items, class_="warnings"))
    body += [tag("h2", "Looks"), _looks(decision)]
    foot = tag("footer", f"Written by Roadworthy {__version__} from run folders alone.", class_="note")
    return Html(f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *body, foot), lang='en')}\n")


def decision_lines(decision: GateDecision) -> list[str]:
    """Return the decision in words: the rule, the difference with its bounds, the episodes, and what is missing."""
    unit, level = decision.metric.unit, f"{1.0 - decision.error:.0%}"
    shown = [number(value, unit, signed=True) for value in (decision.difference, decision.low, decision.high)]
    direction = "" if decision.metric.better == "higher" else ", lower is better"
    lines = [
        f"{RULES[decision.verdict].format(name=plain_name(decision.metric.name))} "
        f"(margin {number(decision.margin, unit)})",
        f"difference {shown[0]} (candidate minus baseline{direction}), at least {shown[1]}, at most {shown[2]}; "
        f"each bound holds at all looks with {level} confidence",
        f"{many(decision.episodes, 'pair')} of episodes in {many(decision.clusters, 'cluster')}",
    ]
    if decision.verdict is Verdict.UNDECIDED:
        lines.append(more_words(decision))
    return lines


RULES = {
    Verdict.PASS: "{name} is not worse than the baseline by the margin or more",
    Verdict.REGRESSION: "{name} is worse than the baseline by more than the margin",
    Verdict.UNDECIDED: "{name} may be worse than the baseline by more than the margin, or not",
}


def more_words(decision: GateDecision) -> str:
    """Return how many more episodes would decide, with the assumption."""
    if decision.more is None:
        return "no number of episodes would decide while the difference stays where it is, near the margin"
    return f"about {decision.more:,} more episodes would decide if they are like those so far"


def sequence_chart(decision: GateDecision) -> Html:
    """Draw the difference and its bounds over episodes, with the margin."""
    width, height = SIZE_PX
    looks, unit = decision.looks, decision.metric.unit
    span = _range(looks, decision.threshold)
    across = Scale(0.0, max((look.episodes for look in looks), default=1) or 1, 64.0, width - 16.0)
    up = Scale(*span, height - 40.0, 16.0)
    parts: list[Html] = []
    for t in up.ticks(36.0):
        kind = "zero" if abs(t) < 1e-9 else "grid"
        parts.append(tag("line", x1=across.start_px, x2=across.end_px, y1=up(t), y2=up(t), class_=kind))
        label = number(t, unit, signed=True)
        parts.append(tag("text", label, x=58, y=up(t) + 4, class_="axis", text_anchor="end"))
    for t in across.ticks(90.0):
        parts.append(tag("text", f"{t:,.0f}", x=across(t), y=height - 20, class_="axis", text_anchor="middle"))
    parts.append(tag("text", "pairs of episodes", x=across.end_px, y=height - 4, class_="axis", text_anchor="end"))
    known = [look for look in looks if look.difference is not None]
    if known:
        edges = [(look.episodes, look.high) for look in known] + [(look.episodes, look.low) for look in known[::-1]]
        parts.append(tag("polygon", points=_points(edges, across, up), class_="band"))
        line = [(look.episodes, look.difference or 0.0) for look in known]
        parts.append(tag("polyline", points=_points(line, across, up), class_="curve"))
        last = known[-1]
        at = across(last.episodes)
        parts.append(tag("line", x1=at, x2=at, y1=up(last.low), y2=up(last.high), class_="range"))
        parts.append(tag("circle", cx=at, cy=up(last.difference or 0.0), r=4.5, class_="dot"))
    level = up(decision.threshold)
    parts.append(tag("line", x1=across.start_px, x2=across.end_px, y1=level, y2=level, class_="margin"))
    parts.append(tag("text", "margin", x=across.start_px + 6, y=level - 5, class_="axis"))
    label = f"Confidence sequence of the difference over {len(looks)} looks; {'; '.join(decision_lines(decision))}"
    size: dict[str, float | str] = {"width": width, "height": height, "viewBox": f"0 0 {width:g} {height:g}"}
    return tag("svg", join(parts), **size, class_="sequence", role="img", aria_label=label)


def _range(looks: Sequence[Look], threshold: float) -> tuple[float, float]:
    """Return the values to show: the later half of the bounds, zero and the margin, with some space."""
    later = looks[len(looks) // 2 :]
    values = [0.0, threshold, *(v for look in later for v in (look.low, look.high))]
    low, high = min(values), max(values)
    space = 0.08 * max(high - low, 1e-9)
    return low - space, high + space


def _points(values: Sequence[tuple[float, float]], across: Scale, up: Scale) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in values)


def _looks(decision: GateDecision) -> Html:
    unit = decision.metric.unit
    rows = [
        row(
            number_cell(f"{look.episodes:,}"),
            *(number_cell(number(value, unit, signed=True)) for value in (look.difference, look.low, look.high)),
        )
        for look in decision.looks
    ]
    head = [tag("th", word, class_="number") for word in ("pairs", "difference", "at least", "at most")]
    return table(head, rows, class_="compact")
