"""The closed-loop score in a report: its parts as bars, for one run or several side by side, and its substitutes."""

from __future__ import annotations

from collections.abc import Sequence

from roadworthy.metrics.closed_loop.figures import MULTIPLIERS, SCORE, SUBSTITUTES, WEIGHTS
from roadworthy.metrics.closed_loop.metrics import CLOSED_LOOP_METRICS
from roadworthy.report.charts import BAR_PX, COLORS, bar_axis, bar_scale, filled_bars
from roadworthy.report.facts import RunFacts
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag
from roadworthy.report.words import Figure, counted, interval_of, many, plain_name, value_of

COMPARED_PX = 230.0  # the width of bars where several runs have their columns beside them
NOTE = (
    "The score of a scenario is the product of the multipliers times the weighted mean of the graded parts, as nuPlan "
    "defines them. Every figure is the mean over scenarios. Scores on different scenarios or maps are not comparable, "
    "nor are they comparable with nuPlan's leaderboard."
)
_MEANINGS = {metric.name: metric.what for metric in CLOSED_LOOP_METRICS}


def is_of_closed_loop(figure: Figure) -> bool:
    """Return whether a figure is shown in the section about the closed-loop score."""
    return figure["name"] in _MEANINGS


def section(facts: RunFacts) -> Html | None:
    """Return the closed-loop score of one run, with its parts; None where it has none."""
    if not _has_score(facts):
        return None
    beside = [facts, *(found for run in facts.references if _has_score(found := RunFacts(run)))]
    compared = folded("Beside floor and ceiling", _parts(beside)) if len(beside) > 1 else None
    return join((tag("p", NOTE, class_="note"), _parts([facts]), _substitutes(facts), compared))


def side_by_side(runs: Sequence[RunFacts]) -> Html | None:
    """Return the parts of several runs side by side; None for fewer than two, and for too many."""
    runs = [facts for facts in runs if _has_score(facts)]
    return join((tag("p", NOTE, class_="note"), _parts(runs))) if 1 < len(runs) <= COLORS else None


def _has_score(facts: RunFacts) -> bool:
    return SCORE in facts.figures and facts.figures[SCORE]["value"] is not None


def _parts(runs: Sequence[RunFacts]) -> Html:
    """Return a table with a line for each part and a bar for each run."""
    scale = bar_scale([{"unit": "share", "value": 1.0}], BAR_PX[0] if len(runs) == 1 else COMPARED_PX)
    labels = _labels(runs)
    head: list[object] = ["", tag("th", "counts as", class_="number"), tag("th", "")]
    for place, label in enumerate(labels):
        key = (tag("i", class_=f"swatch c{place % COLORS}"), " ") if len(runs) > 1 else ()
        head.append(tag("th", *key, label if len(runs) > 1 else "value", class_="number"))
    head += [tag("th", word, class_="number") for word in ("95% interval", "n")] if len(runs) == 1 else []
    counts_as = {SCORE: ""} | dict.fromkeys(MULTIPLIERS, "multiplier")
    counts_as |= {name: f"weight {weight:g}" for name, weight in WEIGHTS.items()}
    rows = []
    for name, role in counts_as.items():
        figures = {label: facts.figures.get(name) for label, facts in zip(labels, runs, strict=True)}
        meaning = _MEANINGS[name].partition(": ")[2] or _MEANINGS[name]
        words = tag("td", tag("b", plain_name(name)), tag("div", meaning, class_="meaning"))
        cells: list[object] = [words, number_cell(role), tag("td", filled_bars(figures, scale), class_="plot")]
        cells += [number_cell(tag("b", value_of(figure))) for figure in figures.values()]
        if len(runs) == 1:
            figure = runs[0].figures.get(name)
            cells += [tag("td", interval_of(figure), class_="number"), number_cell(counted(figure) if figure else "")]
        rows.append(row(*cells))
    rows.append(row("", "", tag("td", bar_axis(scale, "share"), class_="plot"), *[""] * (len(head) - 3)))
    return table(head, rows, class_="forest likelihoods")


def _labels(runs: Sequence[RunFacts]) -> list[str]:
    """Return labels that distinguish runs: evaluators, policies, or both."""
    names, policies = [facts.name for facts in runs], [facts.policy for facts in runs]
    if len(set(policies)) == 1:
        labels = names
    elif len(set(names)) == 1:
        labels = policies
    else:
        labels = [f"{name}, {policy}" for name, policy in zip(names, policies, strict=True)]
    return [label if labels.count(label) == 1 else f"{label} ({k + 1})" for k, label in enumerate(labels)]


def _substitutes(facts: RunFacts) -> Html | None:
    """Return how often a substitute for missing map data was used."""
    counts = facts.metrics.get("closed_loop") or {}
    found = [f"{what}: {counts[name]}" for name, what in SUBSTITUTES.items() if counts.get(name)]
    if not counts:
        return None
    text = "; ".join(found) if found else "no counted substitute affected a part"
    return tag("p", f"Of {many(counts['num_trials'], 'trial')}: {text}.", class_="note")
