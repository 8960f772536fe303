"""The floor and the ceiling of a run in a report: policies that must fail and policies that must pass its episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadworthy.metrics.headlines import HEADLINES
from roadworthy.record import Run
from roadworthy.record.references import CEILING, FLOOR, best
from roadworthy.report.charts import bar_axis, bar_scale, small_bar_px
from roadworthy.report.facts import RunFacts
from roadworthy.report.figures import figure_cells
from roadworthy.report.markup import Html, join, number_cell, row, table, tag
from roadworthy.report.words import Figure, plain_name, value_of

MOST_COLUMNS = 3
_OWN_SECTION = ("realism", "min_average_displacement_error")  # figures of runs that are compared elsewhere
NOTE = (
    "The same episodes with policies that must fail (floor) and policies that must pass (ceiling). A benchmark that a "
    "floor passes, or that a ceiling fails, says little about the policy between them."
)


def section(facts: RunFacts) -> Html | None:
    """Return a row per policy: floors, the policy of the run, ceilings."""
    if not facts.references or not facts.figures:
        return None
    named = [(run.header["role"], str(run.header["policy_spec"]), _figures(run)) for run in facts.references]
    lines = [line for line in named if line[0] == FLOOR]
    lines += [("", facts.policy, facts.figures)]
    lines += [line for line in named if line[0] == CEILING]
    columns = [name for name in HEADLINES if name in facts.figures and name not in _OWN_SECTION][:MOST_COLUMNS]
    width_px = small_bar_px(len(columns))
    scales = {name: bar_scale([f[name] for _, _, f in lines if name in f], width_px) for name in columns}
    head: list[object] = ["", "policy", *(tag("th", plain_name(name), colspan=2) for name in columns)]
    rows = []
    for role, policy, figures in lines:
        cells: list[object] = [role, policy if role else tag("b", policy)]
        for name in columns:
            cells += figure_cells(figures.get(name), scales[name])
        rows.append(row(*cells))
    axes = [bar_axis(scales[name], str(facts.figures[name]["unit"])) for name in columns]
    foot = row("", "", *(tag("td", axis, colspan=2, class_="plot") for axis in axes))
    return join((tag("p", NOTE, class_="note"), table(head, rows, foot, class_="compact")))


def cells(facts: RunFacts, figure: str) -> list[Html]:
    """Return the best floor and the best ceiling of a figure, for tables of several runs."""
    return [
        number_cell(value_of(_figures(found).get(figure)) if found is not None else "–")
        for role in (FLOOR, CEILING)
        for found in (best(facts.references, role, figure),)
    ]


def _figures(run: Run) -> Mapping[str, Figure]:
    metrics: Mapping[str, Any] = run.metrics or {}
    figures: Sequence[Figure] = metrics.get("figures", ())
    return {str(figure["name"]): figure for figure in figures}
