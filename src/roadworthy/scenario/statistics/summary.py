"""The measured distributions in numbers, next to published figures: for programs, and as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.scenario.statistics.crossings import critical_gap
from roadworthy.scenario.statistics.published import HIGHD_LANE_CHANGES_PER_KM, Figure, Statistic, figures_of
from roadworthy.scenario.statistics.sample import QUANTITIES, Sample

PERCENTILES = (5, 15, 50, 85, 95)
GAP_KINDS = {"roundabout": "roundabout entries", "junction": "unsignalized turns and crossings"}
UNCHECKED = "†"


def summarize(sample: Sample) -> dict[str, Any]:
    """Return all statistics as numbers; they are null without observations, not 0."""
    quantities = {}
    for name, quantity in QUANTITIES.items():
        values = sample.of(name)
        points = np.percentile(values, PERCENTILES) if len(values) else [None] * len(PERCENTILES)
        quantities[name] = {
            "unit": quantity.unit,
            "per": quantity.per,
            "n": len(values),
            "mean": _rounded(values.mean() if len(values) else None),
            **{f"p{p}": _rounded(value) for p, value in zip(PERCENTILES, points, strict=True)},
        }
    return {
        "scenarios": sample.scenario_count,
        "quantities": quantities,
        "critical_gap_s": {
            kind: _rounded(critical_gap(sample.of(f"accepted_{kind}"), sample.of(f"rejected_{kind}")))
            for kind in GAP_KINDS
        },
        "kilometers": {road: round(sample.totals[f"{road}_km"], 1) for road in ("freeway", "street")},
        "lane_changes_per_km": {road: _rounded(lane_change_rate(sample, road)) for road in ("freeway", "street")},
    }


def markdown(sample: Sample) -> str:
    """Return a table: quantity, our value, count, and each published figure with the same statistic of our data."""
    lines = [
        "| quantity | ours: median (5 % to 95 %) | n | published | ours by the same measure |",
        "|---|---|---|---|---|",
    ]
    for name, quantity in QUANTITIES.items():
        values, figures = sample.of(name), figures_of(name)
        ours = "no observations"
        if len(values):
            low, middle, high = np.percentile(values, (5, 50, 95))
            ours = f"{middle:.2f} ({low:.2f} to {high:.2f}) {quantity.unit}"
        theirs = "<br>".join(describe(figure, quantity.unit) for figure in figures)
        same = "<br>".join(compare(figure, sample) for figure in figures)
        lines.append(f"| {quantity.title} | {ours} | {len(values):,} (per {quantity.per}) | {theirs} | {same} |")
    for kind, where in GAP_KINDS.items():
        gap = critical_gap(sample.of(f"accepted_{kind}"), sample.of(f"rejected_{kind}"))
        count = len(sample.of(f"accepted_{kind}")) + len(sample.of(f"rejected_{kind}"))
        theirs = "<br>".join(describe(figure, "s") for figure in figures_of(kind))
        ours = "too few observations" if gap is None else f"{gap:.1f} s"
        lines.append(f"| critical gap (Raff), {where} | {ours} | {count:,} (per gap) | {theirs} | {ours} |")
    rate = lane_change_rate(sample, "freeway")
    ours = "no driving" if rate is None else f"{rate:.2f} per km"
    km, changes = sample.totals["freeway_km"], sample.totals["freeway_lane_changes"]
    theirs = f"{HIGHD_LANE_CHANGES_PER_KM:.2f} per km (Krajewski et al. 2018, highD)"
    lines.append(f"| lane changes, freeways | {ours} | {changes:.0f} on {km:.0f} km | {theirs} | {ours} |")
    return "\n".join(lines) + "\n"


def describe(figure: Figure, unit: str) -> str:
    """Return a published figure as text."""
    size = f"{figure.low:.2g}" if figure.low == figure.high else f"{figure.low:.2g} to {figure.high:.2g}"
    mark = "" if figure.is_checked else UNCHECKED
    note = f", {figure.note}" if figure.note else ""
    if figure.statistic is Statistic.ABOVE:
        share = f" {figure.share:.0%}" if figure.share is not None else ""
        return f"share above {size} {unit}{share} ({figure.source}{note}){mark}"
    return f"{figure.statistic.value} {size} {unit} ({figure.source}{note}){mark}"


def compare(figure: Figure, sample: Sample) -> str:
    """Return our value of a published statistic."""
    ours = figure.ours(sample.of(figure.quantity))
    if ours is None:
        return "–"
    match figure.statistic:
        case Statistic.RANGE:
            return f"{ours:.0%} within"
        case Statistic.BELOW:
            return f"{ours:.0%} below"
        case Statistic.ABOVE:
            return f"{ours:.0%} above"
        case _:
            return f"{ours:.2f}"


def lane_change_rate(sample: Sample, road: str) -> float | None:
    """Return lane changes per kilometer, None without driving."""
    kilometers = sample.totals[f"{road}_km"]
    return sample.totals[f"{road}_lane_changes"] / kilometers if kilometers > 0.0 else None


def _rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 4)
