"""Invented runs for tests of reports, and a parser of pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa

from roadworthy.metrics.driving import driving_metrics
from roadworthy.record import EpisodeResult, Run, RunWriter
from roadworthy.report import write_report
from tests.metrics.driven import episode

HEADER: dict[str, Any] = {
    "config": {"type": "multi_scenario", "scenarios": "town.pack", "env": {"dt": 0.1, "goal": {"radius_m": 2.0}}},
    "carried_out": {"worlds": 32, "summary": {"weight": 1.0, "figure": "score"}},
    "origins": {"type": "suite town", "scenarios": "--set", "env.goal": "the checkpoint"},
    "checkpoint": {"path": "/models/best", "sha256": "ab" * 32},
    "policy_spec": "/models/best",
    "step": 1234567,
    "epoch": 12,
}
VOID = ("meta", "img")


def drive(number: int, scores: Sequence[Sequence[float]], tags: Sequence[str] = (), **changes: Any) -> EpisodeResult:
    """Return an episode of egos with these scores by trial; an ego without a success has a collision."""
    egos = [
        [
            {
                "score": score,
                "goal_reached": score,
                "goal_rate": score,
                "collisions": 1.0 - score,
                "infractions": 1.0 - score,
                "departures": 0.0,
                "distance_m": 100.0 + number,
                "comfort": 0.5,
            }
            for score in trials
        ]
        for trials in scores
    ]
    mean = sum(trials[0] for trials in scores) / len(scores)
    outcomes = {"score": mean, "infractions": 1.0 - mean, "goal_rate": mean, "distance_m": 100.0 + number}
    return episode(f"street-{number:03}", egos, tags=tags, outcomes=outcomes, **changes)


def failure(number: int, error: str) -> EpisodeResult:
    """Return an episode without a result."""
    return episode(f"street-{number:03}", [], status="failed", error=error, outcomes={})


def make_run(
    root: Path,
    results: Sequence[EpisodeResult],
    evaluator: str = "town",
    end: Callable[[RunWriter], object] = lambda writer: writer.seal(driving_metrics),
    owed: int = 0,
    **header: Any,
) -> Run:
    """Return a run of these episodes; end: ends it; owed: the number of planned episodes that have not ended."""
    rows = [result.episode for result in results]
    names = [(row.episode_id, row.scenario_id) for row in rows] + [(f"late-{k}-r0", f"late-{k}") for k in range(owed)]
    columns = [pa.array([name[place] for name in names], pa.string()) for place in range(2)]
    ledger = pa.table(columns, names=["episode_id", "scenario_id"])
    with RunWriter.start(root, evaluator, "best", {**HEADER, **header}, ledger) as writer:
        for result in results:
            writer.append(result)
        end(writer)
    return Run(writer.folder)


class Page(HTMLParser):
    """A page that was read: its elements, and its text without scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style") and data.strip():
            self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def attributes(self, name: str) -> list[str]:
        """Return all values of an attribute."""
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]


def page_of(folder: Path, *runs: Run, **options: int) -> Page:
    """The report of some runs, read again."""
    return Page(write_report(runs, folder / "report.html", **options).read_text(encoding="utf-8"))
