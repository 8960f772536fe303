"""The tables of a grid of training runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roadworthy.cli.output import new_table

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.training.grid import Outcome

FIGURES = ("score", "at_fault_collision_rate", "off_road_rate")


def grid_table(outcomes: Sequence[Outcome]) -> list[Table | str]:
    """Return a table with a line per run, and the errors of failed runs."""
    figures = _figures(outcomes)
    keys = list(outcomes[0].point.values)
    table = new_table(title="figures of the last episodes in training; grid.csv has all figures")
    table.collapse_padding = True
    for heading in ("run", *keys):
        table.add_column(heading, no_wrap=heading == "run")
    table.add_column("status", no_wrap=True)
    for heading in ("steps", *(_heading(name) for name in figures), "n"):
        table.add_column(heading, justify="right")
    for number, outcome in enumerate(outcomes):
        cells = [_shown(outcome.figures.get(name)) for name in figures]
        steps, n = f"{outcome.progress.get('step', 0):,}", f"{outcome.figures.get('n') or 0:,}"
        table.add_row(str(number), *outcome.point.values.values(), outcome.status.value, steps, *cells, n)
    failed = [f"run {k} failed: {outcome.error}" for k, outcome in enumerate(outcomes) if outcome.error]
    return [table, *failed]


def seeds_table(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return a table of means over seeds with the lowest and the highest value, if a grid has several seeds."""
    from roadworthy.training.grid import over_seeds

    groups = {name: over_seeds(outcomes, name) for name in _figures(outcomes)}
    settings = list(dict.fromkeys(setting for found in groups.values() for setting in found))
    most = max((len(values) for found in groups.values() for values in found.values()), default=0)
    if "seed" not in outcomes[0].point.values or most < 2:
        return []
    table = new_table(title="means over seeds, and the lowest and the highest")
    table.collapse_padding = True
    for key in outcomes[0].point.values:
        if key != "seed":
            table.add_column(key)
    table.add_column("seeds", justify="right")
    for name in groups:
        table.add_column(_heading(name), justify="right")
    for setting in settings:
        values = [found.get(setting, []) for found in groups.values()]
        table.add_row(*setting, str(max(map(len, values))), *map(_spread, values))
    return [table]


def _figures(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the figures that fit on a screen."""
    known = dict.fromkeys(name for outcome in outcomes for name in outcome.figures)
    deltas = [name for name in known if name.startswith("ada_delta")]
    return [*FIGURES, *deltas[-1:]]


def _heading(name: str) -> str:
    return name.replace("ada_delta_trial_", "delta ").replace("_", " ")


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{sum(values) / len(values):.3f} ({min(values):.3f}–{max(values):.3f})"
