"""The closed-loop score in a report and on a terminal: every part, with a bar, compared with floor and ceiling."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from roadworthy.cli.figures import CLOSED_LOOP, closed_loop_table
from roadworthy.metrics.closed_loop.figures import MULTIPLIERS, SCORE, SUBSTITUTES, WEIGHTS
from roadworthy.record import Run
from roadworthy.report import write_report
from roadworthy.report.words import plain_name
from tests.metrics.driven import episode
from tests.report.made_up import Page, make_run

PARTS = (SCORE, *MULTIPLIERS, *WEIGHTS)


def scored(root: Path, evaluator: str, score: float) -> Run:
    """A run of 12 scenarios whose parts all have this value; in half of them a default width decided."""
    results = []
    for k in range(12):
        substitutes = dict.fromkeys(SUBSTITUTES, 0.0) | {"default_width_decided": float(k % 2)}
        figures = {"score": 1.0, "distance_m": 10.0} | dict.fromkeys(PARTS, score) | substitutes
        results.append(episode(f"street-{k:03}", [[figures]], outcomes={"score": 1.0}))
    return make_run(root, results, evaluator=evaluator)


@pytest.mark.row("CL-2")
def test_the_page_shows_every_part_with_its_role_and_how_often_substitutes_decided(tmp_path: Path) -> None:
    run = scored(tmp_path, "closed_loop_nonreactive", 0.5)
    text = Page(write_report([run], tmp_path / "report.html").read_text()).text
    section = text[text.index("Closed-loop score") :]
    for name in PARTS:
        assert plain_name(name) in section
    assert section.count("multiplier") >= len(MULTIPLIERS)
    for weight in WEIGHTS.values():
        assert f"weight {weight:g}" in section
    assert "Of 12 trials: the default width of a lane affected a part: 6." in section


@pytest.mark.row("CL-2")
def test_reactive_and_nonreactive_traffic_stand_side_by_side(tmp_path: Path) -> None:
    runs = [scored(tmp_path, f"closed_loop_{kind}", v) for kind, v in (("nonreactive", 0.75), ("reactive", 0.25))]
    text = Page(write_report(runs, tmp_path / "report.html").read_text()).text
    compared = text[text.index("Closed-loop scores side by side") :]
    assert compared.index("75.0%") < compared.index("25.0%")


def test_a_run_without_the_score_has_no_such_section(tmp_path: Path) -> None:
    run = make_run(tmp_path, [episode("a", [[{"score": 1.0}]], outcomes={"score": 1.0})])
    assert "Closed-loop" not in write_report([run], tmp_path / "report.html").read_text()


@pytest.mark.row("CL-2")
def test_a_terminal_of_80_columns_shows_every_part_of_every_run(tmp_path: Path) -> None:
    runs = {f"closed_loop_{kind}": (scored(tmp_path, kind, 1.0), ()) for kind in ("nonreactive", "reactive")}
    console = Console(width=80, file=StringIO())
    with console.capture() as shown:
        console.print(closed_loop_table(runs))
    lines = shown.get().splitlines()
    assert tuple(CLOSED_LOOP) == PARTS
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    (head,) = (line for line in lines if line.split()[:1] == ["evaluator"])
    assert head.split()[1:] == list(CLOSED_LOOP.values())
    for name in runs:
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.split()[1:] == ["1.00"] * 9


def test_runs_without_the_score_have_no_such_table(tmp_path: Path) -> None:
    run = make_run(tmp_path, [episode("a", [[{"score": 1.0}]], outcomes={"score": 1.0})])
    assert closed_loop_table({"town": (run, ())}) is None
