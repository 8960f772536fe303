"""The files of the page itself: modules and styles of the folder `static`, and what they share with the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from roadworthy.metrics.adaptation import COUNTS, MEAN_LENGTH, REACH_RATE
from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRACE_METRICS, TRIAL_METRICS
from roadworthy.metrics.headlines import COLUMNS, GAIN, HEADLINES
from roadworthy.report.facts import FAULTS, MAIN_OUTCOMES
from roadworthy.report.realism import NOTE, UNITS
from roadworthy.report.style import STYLE
from roadworthy.report.words import LIKELIHOOD, NONE, PLAIN, PLURALS, UNIT_SUFFIXES

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_STATIC = files("roadworthy.viewer") / "static"
_INDEX, _STYLE, _WORDS = "index.html", "app/report.css", "app/words.json"


def paths() -> Iterator[str]:
    """Yield the addresses of all files of the page."""
    yield _INDEX
    yield _STYLE
    yield _WORDS
    yield from (f"app/{name}" for name in _names(_STATIC) if name != _INDEX)


def content(path: str) -> tuple[bytes, str] | None:
    """Return a file of the page and its media type; None if there is none."""
    if path == _STYLE:
        return STYLE.encode(), KINDS[".css"]
    if path == _WORDS:
        return json.dumps(words(), ensure_ascii=False).encode(), KINDS[".json"]
    is_index = path == _INDEX
    parts = path.split("/") if is_index else path.split("/")[1:]
    suffix = path[path.rfind(".") :]
    is_one = is_index or (path.startswith("app/") and parts != [_INDEX])
    if not is_one or suffix not in KINDS or not all(part.strip(".") for part in parts):
        return None
    place = _STATIC.joinpath(*parts)
    return (place.read_bytes(), KINDS[suffix]) if place.is_file() else None


def words() -> dict[str, Any]:
    """Return the words that the page shares with the report."""
    metrics = (*TRIAL_METRICS, *TRACE_METRICS, *AGENT_METRICS, *RATIO_METRICS, *COUNTS, MEAN_LENGTH, REACH_RATE)
    return {
        "plain": PLAIN,
        "plurals": PLURALS,
        "unitSuffixes": UNIT_SUFFIXES,
        "none": NONE,
        "likelihood": LIKELIHOOD,
        "gain": GAIN,
        "headlines": HEADLINES,
        "columns": COLUMNS,
        "mainOutcomes": MAIN_OUTCOMES,
        "faults": FAULTS,
        "realismNote": NOTE,
        "realismUnits": UNITS,
        "meanings": {metric.name: metric.what for metric in metrics if metric.what},
    }


def _names(folder: Traversable, prefix: str = "") -> Iterator[str]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _names(entry, f"{prefix}{entry.name}/")
        elif "." in entry.name and entry.name[entry.name.rindex(".") :] in KINDS:
            yield f"{prefix}{entry.name}"
