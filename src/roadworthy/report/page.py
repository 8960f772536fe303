"""The report of one or several runs: one HTML file that needs no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roadworthy import __version__
from roadworthy.errors import UsageError
from roadworthy.metrics.headlines import GAIN, headline, main_columns
from roadworthy.metrics.roll_up import Part, part_of, roll_up
from roadworthy.record import Run
from roadworthy.record.files import write_whole
from roadworthy.report import closed_loop, figures, provenance, realism, references
from roadworthy.report.charts import bar_axis, bar_scale, small_bar_px
from roadworthy.report.episodes import cards, draw, episode_table, failed_episodes
from roadworthy.report.facts import RunFacts
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag, void
from roadworthy.report.pictures import STRIP_BYTES, VIDEO_BYTES, Pictures
from roadworthy.report.style import SCRIPT, STYLE
from roadworthy.report.words import duration, many, moment, plain_name, roll_up_words

FOLDER, FILE = "report", "report.html"
FOLDED = ("config", "origin", "commands")  # sections that are folded where there are several runs
BESIDE_GAIN = 3  # columns of the summary before the gain of the last trial

Section = tuple[str, str, Html | None]  # id within the run, title, content


def write_report(
    runs: Sequence[Run], path: str | Path, *, strip_bytes: int = STRIP_BYTES, video_bytes: int = VIDEO_BYTES
) -> Path:
    """Write the report of some runs, atomically, and return its path.

    Args:
        runs: One or more runs.
        path: The HTML file to write.
        strip_bytes: The total size of filmstrips in the page; further ones are left out.
        video_bytes: The total size of videos in the page; further ones are linked.
    """
    if not runs:
        raise UsageError("a report needs at least one run; name a run folder")
    path = Path(path)
    text = report_page([RunFacts(run) for run in runs], Pictures(path, strip_bytes, video_bytes))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())
    return path


def report_page(runs: Sequence[RunFacts], pictures: Pictures) -> Html:
    """Return the whole page."""
    if len(runs) == 1:
        title, body = f"{runs[0].name}, {runs[0].policy}", _one_run(runs[0], pictures)
    else:
        title, body = _title(runs), _several_runs(runs, pictures)
    head = (
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title}: evaluation report"),
        tag("style", Html(STYLE)),
    )
    how_to_read = HOW_TO_READ_DRIVING if any(facts.is_driving for facts in runs) else HOW_TO_READ
    foot = tag("footer", f"Written by Roadworthy {__version__} from run folders alone. ", how_to_read, class_="note")
    whole = tag("html", tag("head", *head), tag("body", *body, foot, tag("script", Html(SCRIPT))), lang="en")
    return Html(f"<!doctype html>\n{whole}\n")


HOW_TO_READ = (
    "A dot is an estimate, and the line is its interval. A hollow dot has no interval, because there are not enough "
    "data for one that holds its level. n is the number of observations behind a figure."
)
HOW_TO_READ_DRIVING = (
    f"{HOW_TO_READ} Intervals are clustered by scenario: egos and replicates of one scenario resemble each other, so "
    "they count for less than the same number from different scenarios."
)


def _one_run(facts: RunFacts, pictures: Pictures) -> list[Html]:
    sections = _sections(facts, pictures)
    nav = tag("nav", *(tag("a", title, href=f"#{facts.anchor}-{id}") for id, title, content in sections if content))
    return [
        tag("div", "Evaluation report", class_="over"),
        tag("h1", facts.name, " ", _status(facts), id=facts.anchor),
        _lead(facts),
        nav,
        *_opening(facts),
        *_contents(facts, sections, "h2"),
    ]


def _several_runs(runs: Sequence[RunFacts], pictures: Pictures) -> list[Html]:
    body: list[Html | None] = [
        tag("div", "Evaluation report", class_="over"),
        tag("h1", _title(runs)),
        tag("p", _counts(runs), class_="lead"),
        _roll_up(runs),
        _summary_table(runs),
        *_compared_realism(runs),
        *_compared_closed_loop(runs),
    ]
    for facts in runs:
        body += [tag("h2", facts.name, " ", _status(facts), id=facts.anchor), _lead(facts), *_opening(facts)]
        body += _contents(facts, _sections(facts, pictures.shared(len(runs))), "h3", FOLDED)
    return [part for part in body if part is not None]


def _sections(facts: RunFacts, pictures: Pictures) -> list[Section]:
    """Return the sections of a run's report in their order; empty ones are None."""
    return [
        ("errors", "What ended the run", provenance.errors(facts)),
        ("realism", "Realism", realism.section(facts)),
        ("references", "Floor and ceiling", references.section(facts)),
        ("closed-loop", "Closed-loop score", closed_loop.section(facts)),
        ("figures", "Figures", figures.all_figures(facts) if facts.figures else None),
        ("trials", "Over trials", figures.by_trial(facts)),
        ("classes", "By class", figures.by_class(facts)),
        ("scenarios", "By scenario", figures.by_scenario(facts)),
        ("failed", "Episodes without a result", failed_episodes(facts)),
        ("episodes", _episodes_title(facts), _episodes(facts, pictures)),
        ("artifacts", "Missing files", provenance.artifact_errors(facts)),
        ("config", "Settings", provenance.config(facts)),
        ("origin", "Provenance", provenance.origin(facts)),
        ("commands", "Next steps", provenance.commands(facts) if facts.episodes and facts.run.pack.exists() else None),
    ]


def _episodes_title(facts: RunFacts) -> str:
    return "Scenarios, least realistic first" if facts.realism else "Episodes, worst first"


def _compared_realism(runs: Sequence[RunFacts]) -> list[Html]:
    """Return realism side by side if several runs have it."""
    compared = realism.side_by_side(runs)
    return [] if compared is None else [tag("h2", "Realism side by side"), compared]


def _compared_closed_loop(runs: Sequence[RunFacts]) -> list[Html]:
    """Return closed-loop scores side by side if several runs have one."""
    compared = closed_loop.side_by_side(runs)
    return [] if compared is None else [tag("h2", "Closed-loop scores side by side"), compared]


def _episodes(facts: RunFacts, pictures: Pictures) -> Html | None:
    if not facts.episodes:
        return None
    drawn = draw(facts, pictures)
    return join((cards(facts, drawn), episode_table(facts, drawn)))


def _contents(facts: RunFacts, sections: Sequence[Section], heading: str, folds: Sequence[str] = ()) -> list[Html]:
    return [
        tag(
            "section",
            *((folded(title, content),) if id in folds else (tag(heading, title), content)),
            id=f"{facts.anchor}-{id}",
        )
        for id, title, content in sections
        if content
    ]


def _opening(facts: RunFacts) -> list[Html]:
    """Return the top of a run's report: the main figures and what to know before believing them."""
    found = provenance.warnings(facts)
    items = tag("ul", *(tag("li", line) for line in found))
    return [
        *([figures.headlines(facts)] if facts.figures else []),
        *([tag("div", tag("b", "Before you believe it"), items, class_="warnings")] if found else []),
    ]


def _status(facts: RunFacts) -> Html:
    return tag("span", facts.status, class_=f"status {facts.status}")


def _lead(facts: RunFacts) -> Html:
    step = facts.header.get("step")
    parts = [f"policy {facts.policy}"] + ([f"step {step:,}"] if step else [])
    if facts.metrics:
        episodes = many(facts.metrics["num_episodes"], "episode")
        if facts.is_driving:
            parts.append(f"{episodes} of {many(facts.metrics['num_scenarios'], 'scenario')}")
            parts.append(many(facts.metrics["num_agents_evaluated"], "ego"))
        else:
            parts.append(episodes)
    parts.append(moment(facts.header.get("created")))
    parts += [] if facts.seconds is None else [f"took {duration(facts.seconds)}"]
    return tag("p", " · ".join(parts), class_="lead")


def _title(runs: Sequence[RunFacts]) -> str:
    """Return a title for several runs: what they have in common."""
    policies = list(dict.fromkeys(facts.policy for facts in runs))
    evaluators = list(dict.fromkeys(facts.name for facts in runs))
    what = evaluators[0] if len(evaluators) == 1 else f"{len(evaluators)} evaluators"
    return f"{policies[0]} in {what}" if len(policies) == 1 else f"{len(policies)} policies in {what}"


def _counts(runs: Sequence[RunFacts]) -> str:
    statuses = [facts.status for facts in runs]
    counts = [f"{statuses.count(s)} {s}" for s in dict.fromkeys(("completed", *statuses)) if s in statuses]
    return f"{many(len(runs), 'run')}: {', '.join(counts)}; {many(sum(f.episode_count for f in runs), 'episode')}"


def _summary_table(runs: Sequence[RunFacts]) -> Html:
    """Return a row per run, in the given order."""
    columns = main_columns((name for facts in runs for name in facts.figures), BESIDE_GAIN)
    width_px = small_bar_px(len(columns) + 1)
    scales = {name: bar_scale([f.figures[name] for f in runs if name in f.figures], width_px) for name in columns}
    has_policies = len({facts.policy for facts in runs}) > 1
    head: list[object] = ["evaluator", *(["policy"] if has_policies else []), tag("th", "episodes", class_="number")]
    has_references = bool(columns) and any(facts.references for facts in runs)
    headlines = {facts.anchor: headline(facts.figures, columns) for facts in runs}
    for name in columns:
        words = dict.fromkeys(headlines.values()) if name == columns[0] else [name]
        head.append(tag("th", " or ".join(map(plain_name, words)), colspan=2))
        if has_references and name == columns[0]:
            head += [tag("th", "floor", class_="number"), tag("th", "ceiling", class_="number")]
    rows = []
    for facts in runs:
        cells: list[object] = [tag("a", facts.name, href=f"#{facts.anchor}"), *([facts.policy] if has_policies else [])]
        cells.append(number_cell(f"{facts.episode_count:,}"))
        if facts.figures:
            for name in columns:
                own = headlines[facts.anchor] if name == columns[0] else name
                cells += figures.figure_cells(facts.figures.get(own), scales[name])
                cells += references.cells(facts, own) if has_references and name == columns[0] else []
        else:
            cells.append(tag("td", _status(facts), colspan=2 * len(columns) + 2 * has_references or 1))
        rows.append(row(*cells))
    before = len(head) - len(columns) - 2 * has_references
    axes = [bar_axis(scales[name], _unit(runs, name), signed=name.startswith(GAIN)) for name in columns]
    feet = [tag("td", axis, colspan=2, class_="plot") for axis in axes]
    feet[1:1] = [tag("td", colspan=2)] if has_references else []
    foot = row(*([""] * before), *feet)
    return table(head, rows, foot if columns else None, class_="compact")


def _unit(runs: Sequence[RunFacts], name: str) -> str:
    return next(str(facts.figures[name]["unit"]) for facts in runs if name in facts.figures)


def _roll_up(runs: Sequence[RunFacts]) -> Html | None:
    """Return the summary over all evaluators, if the runs that count are of one policy and of different evaluators."""
    parts = [_part(facts) for facts in runs]
    counting = [facts for facts, part in zip(runs, parts, strict=True) if part.weight > 0.0]
    if len({facts.policy for facts in counting}) > 1 or len({facts.name for facts in counting}) < len(counting):
        return None
    summary = roll_up(parts)
    missing = ", ".join(summary["missing"])
    value = f"no value, because these have none: {missing}" if summary["value"] is None else f"{summary['value']:.4f}"
    around = roll_up_words(summary)
    what = ", ".join(dict.fromkeys(plain_name(part["figure"]) for part in summary["parts"]))
    return (
        tag("p", "eval_summary ", tag("b", value), f"{around}, the weighted mean of: {what}")
        if summary["parts"]
        else None
    )


def _part(facts: RunFacts) -> Part:
    summary: Mapping[str, Any] = facts.settings.get("summary") or {}
    name = str(summary.get("figure", "score"))
    return part_of(facts.name, name, float(summary.get("weight", 1.0)), facts.metrics)
