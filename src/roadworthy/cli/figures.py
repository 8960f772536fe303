"""Tables of figures with their intervals that fit a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadworthy.cli.output import new_table
from roadworthy.metrics.headlines import GAIN, HEADLINES, headline, later_trial, main_columns
from roadworthy.record.references import ROLES, best

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.record import Run

HEADINGS = {"at_fault_collision_rate": "at-fault collisions"}  # shorter than the names
MOST_LINES = 18
MOST_WITH_REFERENCES = 2  # runs whose references have a line each in the table of closed-loop scores


def figures_table(
    name: str, metrics: Mapping[str, Any], references: Sequence[Run] = (), headline: str = "score"
) -> Table:
    """Return the figures of one run, a line each, beside its best floor and ceiling by the headline."""
    counts = f"{metrics['num_episodes']} episodes of {metrics['num_scenarios']} scenarios"
    if metrics.get("num_clusters", metrics["num_scenarios"]) < metrics["num_scenarios"]:
        counts += f" on {metrics['num_clusters']} maps"
    failed = metrics.get("num_failed_episodes") or 0
    failures = f", {failed} failed" if failed else ""
    table = _table(f"{name}: {counts}{failures}, {metrics['eval_seconds']:.1f} s")
    captions = [f"{_free(free)}; they are left out of the score"] if (free := metrics.get("num_free_successes")) else []
    if missing := _missing(metrics, headline):
        captions.append(missing)
    if captions:
        table.caption = "\n".join(captions)
    table.add_column("figure", no_wrap=True)
    for column in ("value", f"{'from':>7} {'to':>7}", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    beside = [found for role in ROLES if (found := best(references, role, headline)) is not None]
    others = [{figure["name"]: figure for figure in (run.metrics or {})["figures"]} for run in beside]
    for run in beside:
        table.add_column(f"{run.header['role']}\n{run.header['policy_spec']}", justify="right", overflow="fold")
    if not beside:
        table.add_column("per", no_wrap=True)
    for figure in _chosen(metrics):
        interval = f"{shown(figure, 'low'):>7} {shown(figure, 'high'):>7}"
        if figure["low"] is None:
            interval = (figure.get("note") or "–").partition(":")[0]  # how much would be enough is in metrics.json
        last = [shown(other[figure["name"]], "value") if figure["name"] in other else "–" for other in others]
        cells = (figure["name"], shown(figure, "value"), interval, f"{figure['n']:,g}")
        table.add_row(*cells, *(last or [figure["per"]]))
    return table


def sections_table(
    runs: Mapping[str, Mapping[str, Any]],
    references: Mapping[str, Sequence[Run]] | None = None,
    main: Mapping[str, str] | None = None,
) -> Table:
    """Return the main figures of several runs, a line each; the first one beside its floor and ceiling.

    main: the figure of each run that stands first, where that is not the one that most have.
    """
    table = _table("figures with their 95% intervals; more are in metrics.json of each run")
    named = {name: {figure["name"]: figure for figure in metrics["figures"]} for name, metrics in runs.items()}
    columns = main_columns((name for figures in named.values() for name in figures), beside_gain=2)
    table.add_column("evaluator", overflow="fold")  # a long name takes two lines, so that no figure is cut
    table.add_column("n", justify="right", no_wrap=True)
    roles = ROLES if columns and any((references or {}).values()) else ()
    columns = columns[: 2 if roles else None]  # what a screen has room for
    headlines = {
        name: wanted if (wanted := (main or {}).get(name, "")) in figures else headline(figures, columns)
        for name, figures in named.items()
    }
    for column in columns:
        words = dict.fromkeys(headlines.values()) if column == columns[0] else [column]
        table.add_column(" or ".join(map(_heading, words)), justify="right", no_wrap=True)
        for role in roles if column == columns[0] else ():
            table.add_column(role, justify="right", no_wrap=True)
    free = {name: metrics.get("num_free_successes") for name, metrics in runs.items()}
    if any(free.values()):
        counts = ", ".join(f"{name}: {count}" for name, count in free.items() if count)
        table.caption = f"started at the goal, left out of the score: {counts}"
    for name, figures in named.items():
        own = [headlines[name], *columns[1:]]
        cells = [with_interval(figures[column]) if column in figures else "–" for column in own]
        cells[1:1] = [_of_reference((references or {}).get(name, ()), role, own[0]) for role in roles]
        n = next((f"{figures[column]['n']:,g}" for column in own if column in figures), "–")  # of the first figure
        table.add_row(name, n, *cells)
    return table


def _missing(metrics: Mapping[str, Any], headline: str) -> str | None:
    """Return how much is missing, and what it would do to the headline at worst; None if nothing is missing."""
    named = {figure["name"]: figure for figure in metrics["figures"]}
    figure = named.get(headline) or next((f for name in HEADLINES if (f := named.get(name))), None)
    if figure is None or not figure.get("missing"):
        return None
    words = f"{100.0 * figure['missing']:.1f}% of the data are missing"
    if figure.get("worst_low") is None or figure.get("worst_high") is None:
        return words
    return f"{words}; worst case of {figure['name']}: {shown(figure, 'worst_low')} to {shown(figure, 'worst_high')}"


def _free(count: int) -> str:
    return f"{count:,} {'ego' if count == 1 else 'egos'} started at the goal"


def _of_reference(references: Sequence[Run], role: str, figure: str) -> str:
    found = best(references, role, figure)
    figures = (found.metrics or {})["figures"] if found is not None else ()
    return next((f"{f['value']:.2f}" for f in figures if f["name"] == figure), "–")


# The columns of the table of closed-loop scores, in so few letters that 80 columns hold a long name beside them.
CLOSED_LOOP = {
    "closed_loop_score": "score",
    "no_at_fault_collision": "coll",
    "drivable_area": "area",
    "making_progress": "move",
    "driving_direction": "dir",
    "progress": "prog",
    "time_to_collision": "ttc",
    "speed_limit": "spd",
    "comfort_in_bounds": "comf",
}


def closed_loop_table(runs: Mapping[str, tuple[Run, Sequence[Run]]]) -> Table | None:
    """Return the closed-loop scores of runs with all parts; None if no run has one.

    Of one or two runs, those of the references stand below each.
    """
    lines: list[tuple[str, Mapping[str, Mapping[str, Any]]]] = []
    for name, (run, references) in runs.items():
        shown_below = references if len(runs) <= MOST_WITH_REFERENCES else ()
        beside = [(f"  {other.header['role']} {other.header['policy_spec']}", other) for other in shown_below]
        lines += [(label, _named(one)) for label, one in ((name, run), *beside)]
    lines = [(label, figures) for label, figures in lines if next(iter(CLOSED_LOOP)) in figures]
    if not lines:
        return None
    table = _table("closed-loop score = coll*area*move*dir*(5 prog + 5 ttc + 4 spd + 2 comf)/16")
    table.add_column("evaluator", overflow="fold")
    for heading in CLOSED_LOOP.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for label, figures in lines:
        values = (figures[column]["value"] if column in figures else None for column in CLOSED_LOOP)
        table.add_row(label, *("–" if value is None else f"{value:.2f}" for value in values))
    return table


def _named(run: Run) -> dict[str, Mapping[str, Any]]:
    return {figure["name"]: figure for figure in (run.metrics or {}).get("figures", ())}


def _heading(name: str) -> str:
    return (
        f"gain by trial {later_trial(name) + 1}"
        if name.startswith(GAIN)
        else HEADINGS.get(name, name.replace("_", " "))
    )


def with_interval(figure: Mapping[str, Any]) -> str:
    """Return a rate or a gain with its interval, for one cell."""
    if figure["value"] is None:
        return "–"
    sign, between = ("+", " ") if str(figure["name"]).startswith(GAIN) else ("", "–")
    value = f"{figure['value']:{sign}.2f}"
    return value if figure["low"] is None else f"{value} {figure['low']:{sign}.2f}{between}{figure['high']:{sign}.2f}"


def shown(figure: Mapping[str, Any], part: str) -> str:
    """Return a number of a figure with a suitable number of digits."""
    value = figure[part]
    if value is None:
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def _chosen(metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    by_name = {figure["name"]: figure for figure in metrics["figures"]}
    names = [name for name in HEADLINES if name in by_name]
    names += [name for name in by_name if name.startswith(("trial_", GAIN)) and name not in names]
    if len(names) > MOST_LINES:  # of many trials, the last gains say what came of all
        names = names[: MOST_LINES // 2] + names[-MOST_LINES // 2 :]
    return [by_name[name] for name in names] or list(metrics["figures"])[:MOST_LINES]


def _table(title: str) -> Table:
    table = new_table(title=title)
    table.caption_justify, table.collapse_padding = "left", True
    return table
