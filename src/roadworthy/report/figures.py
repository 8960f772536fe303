"""The figures of a run in a report: headlines, all figures with intervals, by trial, by class and by scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadworthy.metrics.adaptation import COUNTS, MEAN_LENGTH, REACH_RATE
from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRACE_METRICS, TRIAL_METRICS
from roadworthy.metrics.headlines import COLUMNS, GAIN, HEADLINES
from roadworthy.report.charts import (
    MOST_CELLS,
    Cell,
    Line,
    bar_axis,
    bar_scale,
    interval_bar,
    scenario_strip,
    small_bar_px,
    trial_chart,
)
from roadworthy.report.closed_loop import is_of_closed_loop
from roadworthy.report.facts import RunFacts
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag
from roadworthy.report.realism import REALISM, is_of_realism, likelihoods
from roadworthy.report.words import (
    Figure,
    counted,
    interval_of,
    is_gain,
    many,
    missing_of,
    number,
    plain_name,
    value_of,
    why_of,
)

_DECLARED = (*TRIAL_METRICS, *TRACE_METRICS, *AGENT_METRICS, *RATIO_METRICS, *COUNTS, MEAN_LENGTH, REACH_RATE)
MEANINGS = {metric.name: metric.what for metric in _DECLARED}
MOST_HEADLINES = 4
CLASS_COLUMNS = (*COLUMNS, "comfort")
# Rows of the strip of scenarios, and whether high values are good; the first one orders the scenarios.
STRIP_ROWS = {
    "passed": True,
    "score": True,
    "goal_rate": True,
    "at_fault_collision_rate": False,
    "collision_rate": False,
    "off_road_rate": False,
    "red_light_rate": False,
    "stop_sign_rate": False,
    "timed_out_rate": False,
}


def headlines(facts: RunFacts) -> Html:
    """Return the most important figures as tiles."""
    chosen = [facts.figures[name] for name in HEADLINES if name in facts.figures] or list(facts.figures.values())
    tiles = [
        tag(
            "div",
            tag("div", plain_name(figure["name"]), class_="tile-name"),
            tag("div", value_of(figure), class_="tile-value"),
            tag("div", interval_of(figure), class_="tile-range", title=why_of(figure)),
            tag("div", missing, class_="tile-range muted") if (missing := missing_of(figure)) else None,
            tag("div", counted(figure), class_="tile-count"),
            class_="tile",
        )
        for figure in chosen[:MOST_HEADLINES]
    ]
    return tag("div", *tiles, class_="tiles")


def all_figures(facts: RunFacts) -> Html:
    """Return every figure, except those of trials, realism and the closed-loop score, which have their own sections."""
    others = [f for f in facts.figures.values() if not (is_of_realism(f) or is_of_closed_loop(f))]
    plain = [f for f in others if f["per"] != "scenario" and not _is_of_trials(f)]
    if not plain:  # some runs only count scenarios
        plain, each_once = others, []
    else:
        each_once = [f for f in others if f["per"] == "scenario"]
    parts: list[object] = [_forest(plain, facts.unit)]
    if each_once:
        note = "The same figures with every scenario counted once, however many egos or replicates it had."
        table_of_them = _forest(each_once, facts.unit)
        parts.append(folded("With every scenario counted once", tag("p", note, class_="note"), table_of_them))
    return join(parts)


def by_trial(facts: RunFacts) -> Html | None:
    """Return curves over the trials of an episode, and the paired gains over the first trial."""
    trials: Sequence[Mapping[str, Any]] = facts.metrics.get("by_trial") or ()
    if len(trials) < 2:
        return None
    named = [{figure["name"]: figure for figure in trial["figures"]} for trial in trials]

    def line(name: str, color: str) -> Line:
        return Line(plain_name(name), [figures[name] for figures in named if name in figures], color)

    is_judged = any("at_fault_collision_rate" in figures for figures in named)
    collisions = "at_fault_collision_rate" if is_judged else "collision_rate"
    charts = [
        trial_chart([line("score", "c0"), line("completion_rate", "c1")], "Success"),
        trial_chart([line(collisions, "c2"), line("off_road_rate", "c3")], "Infractions"),
    ]
    gains = [figure for name, figure in facts.figures.items() if name.startswith(GAIN)]
    others = [f for f in facts.figures.values() if _is_of_trials(f) and not is_gain(f)]
    note = (
        "The trials of an episode start from the same state, and the policy keeps its memory between them. A gain is "
        "of the same ego in the same episode, so differences between scenarios do not widen its interval."
    )
    return join(
        (
            tag("p", note, class_="note"),
            tag("div", *charts, class_="charts"),
            tag("p", tag("b", _verdict(gains[-1]))) if gains else None,
            _forest(gains, facts.unit) if gains else None,
            folded("Figures of single trials", _forest(others, facts.unit)),
        )
    )


def by_class(facts: RunFacts) -> Html | None:
    """Return the main figures of each behavior class; None for a run of one class."""
    classes: Mapping[str, Any] = facts.metrics.get("by_class") or {}
    if len(classes) < 2:
        return None
    named = {name: {f["name"]: f for f in part["figures"]} for name, part in classes.items()}
    columns = [c for c in CLASS_COLUMNS if any(c in figures for figures in named.values())]
    width_px = small_bar_px(len(columns))
    scales = {c: bar_scale([figures[c] for figures in named.values() if c in figures], width_px) for c in columns}
    head: list[object] = ["class", tag("th", "episodes", class_="number")]
    for column in columns:
        head += [tag("th", plain_name(column), colspan=2, data_sort_column=2 + 2 * columns.index(column) + 1)]
    rows = []
    for name, part in sorted(classes.items(), key=lambda entry: _class_order(named[entry[0]])):
        cells: list[object] = [name.replace("_", " "), number_cell(f"{part['episodes']:,}", part["episodes"])]
        for column in columns:
            cells += figure_cells(named[name].get(column), scales[column])
        rows.append(row(*cells))
    units = {c: next(str(figures[c]["unit"]) for figures in named.values() if c in figures) for c in columns}
    foot = row("", "", *(tag("td", bar_axis(scales[c], units[c]), colspan=2, class_="plot") for c in columns))
    note = "Worst first. A scenario with several classes counts in each of them."
    return join((tag("p", note, class_="note"), table(head, rows, foot, class_="compact")))


def figure_cells(figure: Figure | None, scale: Any) -> tuple[Html, Html]:
    """Return a bar and a value, for tables with several figures per row."""
    if figure is None:
        return tag("td", ""), number_cell("–")
    words = (interval_of(figure), missing_of(figure), counted(figure))
    text = tag("span", value_of(figure), title="; ".join(filter(None, words)))
    return tag("td", interval_bar(figure, scale), class_="plot"), number_cell(text, figure["value"])


def by_scenario(facts: RunFacts) -> Html | None:
    """Return a strip with every scenario, worst first, each with a link to its worst episode."""
    columns: Mapping[str, Any] = facts.metrics.get("by_scenario") or {}
    ids: list[str] = columns.get("scenario_id") or []
    rows = {REALISM: True, **dict.fromkeys(likelihoods(facts), True)} if facts.realism else STRIP_ROWS
    main = next(iter(rows))
    if len(ids) < 2 or main not in columns["figures"]:
        return None
    figures: dict[str, list[float | None]] = columns["figures"]
    shown = {
        name: good
        for name, good in rows.items()
        if name in figures and (name == main or any(v is not None and v != float(good) for v in figures[name]))
    }
    unit = facts.figures[main]["unit"]
    links = {episode.scenario_id: f"#{episode.anchor}" for episode in reversed(facts.episodes)}
    cells = []
    for k, id in enumerate(ids):
        values = {name: figures[name][k] for name in shown}
        text = ", ".join(f"{plain_name(name)} {number(value, unit)}" for name, value in values.items())
        bad = {name: None if v is None else 1.0 - v if shown[name] else v for name, v in values.items()}
        cells.append(Cell(f"{id}: {text}; {many(columns['episodes'][k], 'episode')}", links.get(id), bad))
    cells.sort(key=lambda cell: tuple(-(v if (v := cell.badness[name]) is not None else -1.0) for name in shown))
    note = "Each column is a scenario, worst first"
    perfect = sum(score == 1.0 for score in figures[main])
    note += ". " if facts.realism else f"; {perfect} of {len(ids)} have a score of 100%. "
    if len(cells) > MOST_CELLS:
        note += f"The {MOST_CELLS} worst are shown. "
    names = {name: plain_name(name) for name in shown}
    return join(
        (
            tag("p", note, _legend(), class_="note"),
            tag("div", scenario_strip(cells[:MOST_CELLS], names), class_="scroll"),
        )
    )


def _legend() -> Html:
    return tag("span", "good ", *(tag("i", class_=f"b{k}") for k in range(6)), " bad", class_="legend")


def _forest(figures: Sequence[Figure], unit: str) -> Html:
    """Return figures with their intervals; shares and rates per kilometer have bars, on one scale each.

    unit: what intervals count, "map", "scenario" or "episode".
    """
    units: dict[tuple[str, bool], list[Figure]] = {}
    for figure in figures:
        units.setdefault((figure["unit"], is_gain(figure)), []).append(figure)
    drawn = {key: part for key, part in units.items() if key[0] in ("share", "1/km")}
    level = next((f"{f['level']:.0%} interval" for f in figures if f.get("level")), "interval")
    head = [tag("th", "figure"), tag("th", ""), *(tag("th", word, class_="number") for word in ("value", level, "n"))]
    rows: list[Html] = []
    for (measure, is_signed), part in drawn.items():
        scale = bar_scale(part)
        rows += [_forest_row(figure, interval_bar(figure, scale), unit) for figure in part]
        axis = tag("td", bar_axis(scale, measure, signed=is_signed), class_="plot")
        rows.append(row("", axis, "", "", "", class_="axis-row"))
    rows += [_forest_row(f, None, unit) for key, part in units.items() if key not in drawn for f in part]
    return table(head, rows, class_="forest")


def _forest_row(figure: Figure, bar: Html | None, unit: str) -> Html:
    meaning = MEANINGS.get(figure["name"].removesuffix("_per_scenario"), "") if unit != "episode" else ""
    meaning = "" if meaning in plain_name(figure["name"]) else meaning
    name = tag("td", tag("b", plain_name(figure["name"])), tag("div", meaning, class_="meaning") if meaning else None)
    has_interval = figure.get("low") is not None
    missing = missing_of(figure)
    below = tag("div", missing, class_="meaning", title="the interval in the worst case") if missing else None
    kind = "number" if has_interval else "number muted"
    interval = tag("td", interval_of(figure), below, class_=kind, title=why_of(figure))
    of = f" of {many(figure['clusters'], unit)}" if figure["per"] not in (unit, "environment", "infraction") else ""
    n = tag("td", counted(figure), tag("div", of.strip(), class_="meaning") if of else None, class_="number")
    return row(name, tag("td", bar, class_="plot"), number_cell(tag("b", value_of(figure))), interval, n)


def _verdict(gain: Figure) -> str:
    """Return a sentence about the gain of the last trial."""
    low, high = gain.get("low"), gain.get("high")
    text = f"{plain_name(gain['name'])}: {value_of(gain)}"
    if low is None or high is None:
        return f"There are not enough data to say whether later trials go better ({text})."
    if low > 0.0:
        return f"Later trials go better ({text}, {interval_of(gain)})."
    if high < 0.0:
        return f"Later trials go worse ({text}, {interval_of(gain)})."
    return f"These data show no difference between the last trial and the first ({text}, {interval_of(gain)})."


def _is_of_trials(figure: Figure) -> bool:
    name = str(figure["name"])
    return name.startswith(("trial_", "n_trials_", GAIN))


def _class_order(figures: Mapping[str, Figure]) -> tuple[float, float]:
    main = REALISM if REALISM in figures else "score"
    score = figures.get(main, {}).get("value")
    collisions = figures.get("at_fault_collision_rate", figures.get("collision_rate", {})).get("value")
    return (2.0 if score is None else score, -(collisions or 0.0))
