"""Realism in a report: likelihoods as bars, for one run or several side by side, and the histograms behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadworthy.report.charts import BAR_PX, COLORS, bar_axis, bar_scale, filled_bars, histogram
from roadworthy.report.facts import RunFacts
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag
from roadworthy.report.words import LIKELIHOOD, NONE, Figure, counted, interval_of, many, number, plain_name, value_of

REALISM = "realism"
UNITS = {
    "linear_speed": "m/s",
    "linear_acceleration": "m/s²",
    "angular_speed": "rad/s",
    "angular_acceleration": "rad/s²",
    "distance_to_nearest_object": "m",
    "time_to_collision": "s",
    "distance_to_road_edge": "m, off road above 0",
}
BUCKETS = ("kinematic_metrics", "interactive_metrics", "map_based_metrics")  # the groups of the leaderboard
OTHERS = (
    "average_displacement_error",
    "min_average_displacement_error",
    "simulated_collision_rate",
    "simulated_offroad_rate",
    "simulated_traffic_light_violation_rate",
)
MOST_NAMED = 3  # features that made a scenario unlikely
COMPARED_PX = 230.0  # the width of bars where several runs have their columns beside them

NOTE = (
    "The likelihood of the recording under the distribution of the rollouts: 1 means certain. Realism is the weighted "
    "sum; figures are plain means over scenarios, as in the Sim Agents challenge of {}. They are not comparable with "
    "its leaderboard, because policies see goals here, which are where the recordings end."
)
HISTOGRAM_NOTE = (
    "The share of values in each bin, over the valid steps of the evaluated agents: {} the rollouts, the line the "
    "recordings. Values outside of the range are in the first or the last bin."
)


def likelihoods(facts: RunFacts) -> list[str]:
    """Return the names of the likelihoods in realism, highest weight first."""
    parts = sorted(facts.realism.get("parts", ()), key=lambda part: -part["weight"])
    return [f"{part['name']}_{LIKELIHOOD}" for part in parts]


def is_of_realism(figure: Figure) -> bool:
    """Return whether a figure is shown in the section about realism."""
    return figure["name"] in (REALISM, *OTHERS) or figure["unit"] == LIKELIHOOD


def section(facts: RunFacts) -> Html | None:
    """Return the realism of one run; None where it has none."""
    if not facts.realism:
        return None
    parts: Sequence[Mapping[str, Any]] = facts.realism["parts"]
    charts = [
        histogram(f"{plain_name(part['name'])}, {UNITS[part['name']]}", part["edges"], part["log"], part["simulated"])
        for part in parts
        if part["edges"]
    ]
    before, after = HISTOGRAM_NOTE.split("{}")
    return join(
        (
            tag("p", NOTE.format(facts.realism["challenge"]), class_="note"),
            _unscored(facts),
            _likelihoods([facts]),
            tag("p", before, tag("i", class_="swatch"), after, class_="note"),
            tag("div", *charts, class_="charts"),
        )
    )


def side_by_side(runs: Sequence[RunFacts]) -> Html | None:
    """Return the realism of several runs, feature by feature; None if fewer than two have any."""
    runs = [facts for facts in runs if facts.realism]
    return _likelihoods(runs) if len(runs) > 1 else None


def losses(facts: RunFacts, scenario_id: str) -> str | None:
    """Return the likelihoods of a scenario that lower its realism most, compared with the run's mean."""
    own = facts.scenario_figures.get(scenario_id, {})
    lost = []
    for part in facts.realism.get("parts", ()):
        name = f"{part['name']}_{LIKELIHOOD}"
        value, mean = own.get(name), facts.figures[name]["value"]
        if value is not None and mean is not None and value < mean:
            lost.append((part["weight"] * (mean - value), plain_name(name), value))
    shown = [f"{name} {value:.3f}" for _, name, value in sorted(lost, reverse=True)[:MOST_NAMED]]
    return f"least likely: {', '.join(shown)}" if shown else None


def _likelihoods(runs: Sequence[RunFacts]) -> Html:
    """Return a table with a row per feature and a bar per run, and the other figures below."""
    scale = bar_scale([{"unit": LIKELIHOOD, "value": 1.0}], BAR_PX[0] if len(runs) == 1 else COMPARED_PX)
    labels = _labels(runs)
    head: list[object] = ["", tag("th", "weight", class_="number"), tag("th", "")]
    for place, label in enumerate(labels):
        key = (tag("i", class_=f"swatch c{place % COLORS}"), " ") if len(runs) > 1 else ()
        head.append(tag("th", *key, label if len(runs) > 1 else "likelihood", class_="number"))
    head += [tag("th", word, class_="number") for word in ("95% interval", "n")] if len(runs) == 1 else []
    rows = [_line(runs, labels, REALISM, 1.0, None, scale)]
    known = [name for name in BUCKETS if any(name in facts.figures for facts in runs)]
    rows += [_line(runs, labels, name, None, None, scale) for name in known]
    for part in runs[0].realism["parts"]:
        rows.append(_line(runs, labels, f"{part['name']}_{LIKELIHOOD}", part["weight"], part, scale))
    rows.append(row("", "", tag("td", bar_axis(scale, LIKELIHOOD), class_="plot"), *[""] * (len(head) - 3)))
    rows += [_line(runs, labels, name, None, None, None) for name in OTHERS]
    return table(head, rows, class_="forest likelihoods")


def _line(
    runs: Sequence[RunFacts],
    labels: Sequence[str],
    name: str,
    weight: float | None,
    part: Mapping[str, Any] | None,
    scale: Any,
) -> Html:
    figures = [facts.figures.get(name) for facts in runs]
    words = [tag("b", plain_name(name))]
    if part is not None and part["edges"] is None and len(runs) == 1:
        words.append(tag("div", _rates(part), class_="meaning"))
    bars = filled_bars(dict(zip(labels, figures, strict=True)), scale) if scale is not None else None
    cells = [number_cell(tag("span", value_of(f), title=interval_of(f)), f["value"] if f else None) for f in figures]
    if len(runs) == 1 and figures[0] is not None:
        has_interval = figures[0].get("low") is not None
        cells.append(tag("td", interval_of(figures[0]), class_="number" if has_interval else "number muted"))
        cells.append(number_cell(counted(figures[0])))
    shown = "" if weight is None else f"{weight:.2f}"
    return row(tag("td", *words), number_cell(shown), tag("td", bars, class_="plot"), *cells)


def _labels(runs: Sequence[RunFacts]) -> list[str]:
    """Return labels that distinguish runs: policies if they differ, else evaluators, else numbers."""
    for names in ([facts.policy for facts in runs], [facts.name.replace("_", " ") for facts in runs]):
        if len(set(names)) == len(runs):
            return names
    return [f"{place + 1}. {facts.policy}" for place, facts in enumerate(runs)]


def _rates(part: Mapping[str, Any]) -> str:
    """Return how often an event happens in the recordings and in the rollouts."""
    shares = []
    for what in ("log", "simulated"):
        without, with_it = part[what]
        share = with_it / (without + with_it) if without + with_it else None
        shares.append(NONE if share is None else number(share, "share"))
    return f"of evaluated agents: recorded {shares[0]}, in rollouts {shares[1]}"


def _unscored(facts: RunFacts) -> Html | None:
    found: Sequence[Mapping[str, str]] = facts.realism["unscored"]
    if not found:
        return None
    rows = [row(entry["scenario_id"], entry["reason"]) for entry in found]
    return folded(
        f"{many(len(found), 'scenario')} could not be scored", table(["scenario", "reason"], rows), is_open=True
    )
