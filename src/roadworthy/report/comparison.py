"""The page of a comparison: one HTML file that needs no other, with the data behind it as .json and .csv beside it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from roadworthy import __version__
from roadworthy.comparison.compare import Comparison, Versus
from roadworthy.comparison.difference import Difference
from roadworthy.comparison.parts import Flip
from roadworthy.comparison.ranking import Ranking
from roadworthy.metrics.headlines import HEADLINES
from roadworthy.record.files import write_json, write_whole
from roadworthy.report import difference_charts as charts
from roadworthy.report import difference_words as words
from roadworthy.report.charts import Scale
from roadworthy.report.figures import MEANINGS
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag, void
from roadworthy.report.style import SCRIPT, STYLE
from roadworthy.report.words import many, number, plain_name

FOLDED_AFTER = 10  # rows of a table of flips
MOST_TILES = 4
HOW_TO_READ = (
    "A difference is a run's figure minus that of the reference. A dot is the difference, the line its interval; a "
    "hollow dot has no interval, because there are not enough data. A lighter bar shows how far missing episodes could "
    "move the interval; a green band is the margin within which a run is not worse. Intervals take account of "
    "clusters: episodes that share a scenario, a map or a log count for less than independent ones."
)


def write_comparison(found: Comparison, path: Path) -> Path:
    """Write the page, and its data as .json and .csv beside it; return the path of the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = found.to_dict()
    write_json(path.with_suffix(".json"), data)
    write_whole(path.with_suffix(".csv"), _csv(found).encode())
    write_whole(path, comparison_page(found, path, json.dumps(data)).encode())
    return path


def comparison_page(found: Comparison, path: Path, data: str) -> Html:
    """Return the whole page; data: JSON to embed."""
    head = (
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{words.title(found)}: comparison"),
        tag("style", Html(STYLE + charts.STYLE)),
    )
    several = len(found.versus) > 1
    body: list[object] = [
        tag("div", "Comparison", class_="over"),
        tag("h1", words.title(found)),
        *(tag("p", words.conclusion(versus), class_="lead") for versus in found.versus[:6]),
        tag("p", f"Left out, because not all have them: {', '.join(found.left_out)}", class_="note")
        if found.left_out
        else None,
        _overview(found) if several else None,
        *(_ranking(ranking) for ranking in found.rankings),
    ]
    for number_, versus in enumerate(found.versus):
        body += _versus(found, versus, f"c{number_}", path, several)
    body.append(_data(path))
    body.append(
        tag("footer", f"Written by Roadworthy {__version__} from run folders alone. ", HOW_TO_READ, class_="note")
    )
    # A "<" could end the element early.
    embedded = tag("script", Html(data.replace("<", "\\u003c")), type="application/json", id="data")
    whole = tag("html", tag("head", *head), tag("body", *body, embedded, tag("script", Html(SCRIPT))), lang="en")
    return Html(f"<!doctype html>\n{whole}\n")


def _versus(found: Comparison, versus: Versus, anchor: str, path: Path, several: bool) -> list[object]:
    """Return the sections of one candidate."""
    sections: list[tuple[str, str, Html | None]] = [
        ("metrics", "Difference by metric", _metrics(versus, found.level)),
        ("pairs", f"{_capital(words.name(versus.main))} in pairs", _pairs(versus, versus.reference_label)),
        ("flips", "Episodes that changed", _flips(versus, versus.reference_label, path)),
        ("classes", "Difference by class", _parts(versus.by_class, "class", found.level)),
        ("trials", "Difference by trial", _parts(versus.by_trial, "trial", found.level)),
        ("factors", "Difference by factor", _factors(versus, found.level)),
    ]
    shown = [section for section in sections if section[2]]
    heading = "h3" if several else "h2"
    title = f"{versus.section}: {versus.label}" if several else ""
    nav = tag("nav", *(tag("a", title, href=f"#{anchor}-{id}") for id, title, _ in shown))
    return [
        tag("h2", title, id=anchor) if several else None,
        tag("p", " ".join(filter(None, (words.sample(versus), words.flipped(versus))))),
        nav,
        _tiles(versus),
        _warnings(versus),
        *(tag("section", tag(heading, name), content, id=f"{anchor}-{id}") for id, name, content in shown),
    ]


def _tiles(versus: Versus) -> Html:
    tiles = [
        tag(
            "div",
            tag("div", words.name(each), class_="tile-name"),
            tag("div", words.change(each), class_="tile-value"),
            tag("div", words.interval(each), class_="tile-range", title=each.interval.method or each.interval.note),
            tag("div", words.verdict(each), class_=f"verdict {words.SHADES.get(each.verdict, '')}"),
            tag(
                "div", f"{words.value(each, each.baseline)} to {words.value(each, each.candidate)}", class_="tile-count"
            ),
            class_="tile",
        )
        for each in versus.shown[:MOST_TILES]
    ]
    return tag("div", *tiles, class_="tiles")


def _warnings(versus: Versus) -> Html | None:
    lines = [*versus.notes, *words.alone(versus), *filter(None, map(words.missing, versus.shown))]
    if not versus.is_paired:
        lines.insert(0, words.sample(versus))
    if not lines:
        return None
    items = tag("ul", *(tag("li", _capital(line)) for line in lines))
    return tag("div", tag("b", "Before you believe it"), items, class_="warnings")


def _metrics(versus: Versus, level: float) -> Html:
    """Return a forest of all metrics: the headlines first, the others folded."""
    others = [each for each in versus.differences if each not in versus.shown]
    forest = _forest(versus.shown, "metric", level, words.name)
    if not others:
        return forest
    note = "Their p-values are corrected for all metrics together, those of the figures above for each other alone."
    title = f"{many(len(others), 'other metric')}"
    return join((forest, folded(title, tag("p", note, class_="note"), _forest(others, "metric", level, words.name))))


def _parts(found: Sequence[Difference], title: str, level: float) -> Html | None:
    if not found:
        return None
    sign = -1.0 if found[0].metric.better == "lower" else 1.0
    ordered = found if title == "trial" else sorted(found, key=lambda each: sign * (each.interval.value or 0.0))
    return _forest(ordered, title, level, lambda each: each.part.replace("_", " "))


def _factors(versus: Versus, level: float) -> Html | None:
    parts = [
        join((tag("p", tag("b", name.replace("_", " "))), _forest(found, "values", level, lambda each: each.part)))
        for name, found in versus.by_factor.items()
    ]
    return join(parts) if parts else None


def _forest(found: Sequence[Difference], title: str, level: float, name: Callable[[Difference], str]) -> Html:
    """Return a table of differences; those of one unit share a scale."""
    units: dict[str, list[Difference]] = {}
    for each in found:
        units.setdefault(each.metric.unit, []).append(each)
    head = [
        tag("th", title),
        *(tag("th", word, class_="number optional") for word in ("reference", "run")),
        tag("th", "", class_="optional"),
        tag("th", "change", class_="number"),
        tag("th", f"{level:.0%} interval", class_="number"),
        tag("th", "p (Holm)", class_="number optional"),
        tag("th", "verdict"),
    ]
    rows: list[Html] = []
    for unit, part in units.items():
        scale = charts.difference_scale(part)
        rows += [_row(each, name(each), scale) for each in part]
        axis = tag("td", charts.difference_axis(scale, unit), class_="plot optional")
        empty = tag("td", class_="optional")
        rows.append(row("", empty, empty, axis, "", "", empty, "", class_="axis-row"))
    return table(head, rows, class_="forest differences")


def _row(each: Difference, name: str, scale: Scale) -> Html:
    meaning = MEANINGS.get(each.metric.name, "") if not each.part else ""
    if not each.part and each.metric.better:
        meaning = "; ".join(filter(None, (meaning, f"{each.metric.better} is better")))
    both = f"{words.value(each, each.baseline)} to {words.value(each, each.candidate)}"
    lost = f"{each.interval.missing:.1%} missing" if each.interval.missing else ""
    under = [tag("div", text, class_="meaning") for text in (meaning, lost) if text]
    has_interval = each.interval.low is not None
    interval = tag(
        "td",
        words.interval(each),
        class_="number" if has_interval else "number muted",
        title=each.interval.method or each.interval.note,
    )
    return row(
        tag("td", tag("b", name), *under, tag("div", both, class_="narrow meaning")),
        tag("td", words.value(each, each.baseline), class_="number optional"),
        tag("td", words.value(each, each.candidate), class_="number optional"),
        tag("td", charts.difference_bar(each, scale), class_="plot optional"),
        number_cell(tag("b", words.change(each)), each.interval.value),
        interval,
        tag("td", words.p_value(each.p_holm), class_="number optional", title=f"uncorrected: {words.p_value(each.p)}"),
        tag("td", words.verdict(each), class_=f"verdict-cell {words.SHADES.get(each.verdict, '')}"),
    )


def _pairs(versus: Versus, reference: str) -> Html | None:
    if not versus.dots:
        return None
    total = versus.main.interval.clusters
    some = f", a random {len(versus.dots):,} of {total:,}" if len(versus.dots) < total else ""
    note = (
        f"Each column is a cluster of episodes{some}: hollow for {reference}, filled for {versus.label}, largest "
        "losses first. Hover over a column for its name."
    )
    chart = charts.pairs_chart(versus.dots, versus.main, reference, versus.label)
    return join((tag("p", note, class_="note"), tag("div", chart, class_="scroll", tabindex="0")))


def _flips(versus: Versus, reference: str, path: Path) -> Html | None:
    """Return the episodes that changed, for the worse and for the better."""
    if not versus.flips.listed:
        return None
    good = ("worse", "better") if versus.main.metric.better else ("lower", "higher")
    lost = [flip for flip in versus.flips.listed if flip.change < 0]
    gained = [flip for flip in versus.flips.listed if flip.change > 0][::-1]
    parts = []
    for word, flips, count in ((good[0], lost, versus.flips.lost), (good[1], gained, versus.flips.gained)):
        if flips:
            title = f"{many(count, 'episode')} went {word}"
            listed = f"the {len(flips)} largest changes are listed" if len(flips) < count else None
            parts.append(tag("p", tag("b", title), f": {listed}" if listed else None))
            parts.append(_flip_table(flips[:FOLDED_AFTER], versus, reference, path))
            if len(flips) > FOLDED_AFTER:
                rest = flips[FOLDED_AFTER:]
                parts.append(folded(f"{len(rest)} more", _flip_table(rest, versus, reference, path)))
    commands = [command for flip in versus.flips.listed for command in flip.commands[:1]]
    if commands:
        note = f"RUN is {versus.run.folder} here; for the reference use {versus.reference.folder}."
        parts.append(tag("p", note, class_="note"))
    return join(parts)


def _flip_table(flips: Sequence[Flip], versus: Versus, reference: str, path: Path) -> Html:
    unit = versus.main.metric.unit
    has_tags, has_links = any(flip.tags for flip in flips), any(flip.commands or flip.videos for flip in flips)
    head = [
        tag("th", "episode"),
        *([tag("th", "class", class_="optional")] if has_tags else []),
        tag("th", reference, class_="number"),
        tag("th", versus.label, class_="number"),
        *([tag("th", "look at it", class_="optional")] if has_links else []),
    ]
    rows = [
        row(
            tag(
                "td", flip.episode_id, tag("div", "no result in one run", class_="meaning") if flip.is_missing else None
            ),
            *([tag("td", ", ".join(flip.tags).replace("_", " "), class_="optional")] if has_tags else []),
            number_cell(number(flip.baseline, unit), flip.baseline),
            number_cell(number(flip.candidate, unit), flip.candidate),
            *([tag("td", join(_links(flip, versus, path), " "), class_="optional")] if has_links else []),
        )
        for flip in flips
    ]
    return table(head, rows, class_="differences flips", is_sortable=True)


def _links(flip: Flip, versus: Versus, path: Path) -> list[Html]:
    """Return links to videos, or else the command that makes one."""
    found = []
    for side, video in flip.videos.items():
        link = quote(Path(os.path.relpath(video, path.absolute().parent)).as_posix())
        found.append(tag("a", f"▶ {side}", href=link, class_="video-link"))
    short = [command.replace(str(versus.run.folder), "RUN") for command in flip.commands[:1]]
    return found or [tag("span", command, class_="key") for command in short]


def _overview(found: Comparison) -> Html:
    """Return a table with a row per candidate and section."""
    names = list(dict.fromkeys(each.metric.name for versus in found.versus for each in versus.shown))
    names = sorted(names, key=lambda name: HEADLINES.index(name) if name in HEADLINES else len(HEADLINES))[:5]
    head = [tag("th", "run"), *(tag("th", plain_name(name), class_="number") for name in names)]
    rows = []
    for place, versus in enumerate(found.versus):
        by_name = {each.metric.name: each for each in versus.shown}
        cells = [
            tag(
                "td",
                tag("b", words.change(each)),
                tag("div", words.interval(each), class_="meaning"),
                tag("div", words.verdict(each), class_=words.SHADES.get(each.verdict, "")),
                class_="number",
            )
            if (each := by_name.get(name)) is not None
            else tag("td", "–", class_="number")
            for name in names
        ]
        rows.append(row(tag("td", tag("a", f"{versus.section}: {versus.label}", href=f"#c{place}")), *cells))
    return join((tag("h2", f"All differences to {found.reference}"), table(head, rows, class_="differences")))


def _ranking(ranking: Ranking) -> Html:
    title = tag(
        "h2", f"Ranking by {plain_name(ranking.metric.name)}{f' in {ranking.section}' if ranking.section else ''}"
    )
    if not ranking.ranked:
        return join((title, tag("p", ranking.note, class_="note")))
    note = "The line shows the ranks that the data allow, jointly for all runs: a run can be anywhere on it. " + (
        f"{_capital(ranking.note)}." if ranking.note else "All runs are compared over the same episodes."
    )
    head = [
        tag("th", "run"),
        *(tag("th", word, class_="number") for word in ("value", "rank")),
        tag("th", "", class_="optional"),
        *(tag("th", word, class_="number") for word in ("possible", "chance of best")),
    ]
    rows = [
        row(
            tag("td", label),
            number_cell(number(found.value, ranking.metric.unit), found.value),
            number_cell(found.rank, found.rank),
            tag("td", charts.rank_bar(ranking, place), class_="plot optional"),
            number_cell(words.rank_text(ranking, place)),
            number_cell(f"{found.chance_of_best:.0%}", found.chance_of_best),
        )
        for place, (label, found) in enumerate(zip(ranking.labels, ranking.ranked, strict=True))
    ]
    return join((title, tag("p", note, class_="note"), table(head, rows, class_="differences")))


def _data(path: Path) -> Html:
    links = [tag("a", path.with_suffix(end).name, href=quote(path.with_suffix(end).name)) for end in (".json", ".csv")]
    return tag(
        "p", "The data behind this page: ", join(links, ", "), ". It is also embedded in the page.", class_="data note"
    )


def _csv(found: Comparison) -> str:
    """Return every difference as a row: all metrics, and the main metric by class, trial and bin of a factor."""
    rows = []
    for versus in found.versus:
        rows += [{"kind": "metric", **each.to_dict()} for each in versus.differences]
        rows += [{"kind": "class", **each.to_dict()} for each in versus.by_class]
        rows += [{"kind": "trial", **each.to_dict()} for each in versus.by_trial]
        rows += [
            {"kind": f"factor {name}", **each.to_dict()} for name, part in versus.by_factor.items() for each in part
        ]
    columns = list(dict.fromkeys(key for each in rows for key in each))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
