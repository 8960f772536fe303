"""Figures on a terminal: the ones that say most, on one screen."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from roadworthy.cli.figures import MOST_LINES, figures_table, sections_table
from tests.report.made_up import drive, make_run


def screen(table: Any) -> list[str]:
    """What a terminal of 80 columns shows of a table."""
    console = Console(width=80, file=StringIO())
    with console.capture() as shown:
        console.print(table)
    return shown.get().splitlines()


@pytest.fixture
def metrics(tmp_path: Path) -> dict[str, Any]:
    """Of a run with twelve trials, the last of which go better."""
    found = make_run(tmp_path, [drive(k, [[float(k % 3 == 0)] * 6 + [1.0] * 6]) for k in range(40)]).metrics
    assert found is not None
    return found


def test_many_trials_fit_a_screen_and_the_last_gain_is_among_them(metrics: dict[str, Any]) -> None:
    lines = screen(figures_table("adaptation", metrics))
    assert len(lines) <= MOST_LINES + 6
    assert any("ada_delta_trial_11_minus_0" in line for line in lines)
    assert any(line.split()[:1] == ["score"] for line in lines)
    assert not any("…" in line for line in lines), "nothing is cut off"


def test_a_table_of_runs_has_the_gain_of_the_last_trial_with_its_sign(metrics: dict[str, Any]) -> None:
    lines = screen(sections_table({"adaptation": metrics}))
    head, line = (line for line in lines if "gain by" in line or "adaptation" in line)
    assert "gain by trial 12" in head
    gain = next(figure for figure in metrics["figures"] if figure["name"] == "ada_delta_trial_11_minus_0")
    assert f"{gain['value']:+.2f} {gain['low']:+.2f} {gain['high']:+.2f}" in line


def test_a_long_name_cuts_no_figure_off(metrics: dict[str, Any]) -> None:
    counts = {"figures": [{**figure, "n": 7_680} for figure in metrics["figures"]]}
    lines = screen(sections_table({"a_name_that_takes_much_of_the_screen": counts}))
    assert not any("…" in line for line in lines)
    assert any("7,680" in line for line in lines)


def test_figures_that_nobody_knows_have_columns_too() -> None:
    lifted = {"name": "lifted", "value": 0.5, "low": None, "high": None, "n": 3, "per": "episode"}
    lines = screen(sections_table({"robot": {"figures": [lifted]}}))
    assert any("lifted" in line for line in lines)
    assert any("robot" in line and "0.50" in line for line in lines)


@pytest.mark.row("CL-4")
def test_free_successes_are_told_where_there_are_any(metrics: dict[str, Any]) -> None:
    free = {**metrics, "num_free_successes": 3}
    one, several = screen(figures_table("town", free)), screen(sections_table({"town": free, "other": metrics}))
    assert "3 egos started at the goal" in one[-1]
    assert "town: 3" in several[-1]
    none = "\n".join([*screen(figures_table("town", metrics)), *screen(sections_table({"town": metrics}))])
    assert "started at the goal" not in none


def test_runs_without_exams_stand_beside_runs_with_exams_by_their_score() -> None:
    def figure(name: str, value: float) -> dict[str, Any]:
        return {"name": name, "value": value, "low": 0.1, "high": 0.9, "n": 12, "per": "agent"}

    exam = {"figures": [figure("score", 0.2), figure("passed", 0.5), figure("at_fault_collision_rate", 0.3)]}
    town = {"figures": [figure("score", 0.7), figure("at_fault_collision_rate", 0.4)]}
    lines = screen(sections_table({"hard_stop": exam, "town": town}))
    assert any("passed or score" in line for line in lines)
    assert any("hard_stop" in line and "0.50 0.10–0.90" in line for line in lines)
    assert any("town" in line and "0.70 0.10–0.90" in line for line in lines)


@pytest.mark.row("STAT-4")
def test_missing_data_and_shared_maps_are_said_beside_the_figures(metrics: dict[str, Any]) -> None:
    changes = {"missing": 0.125, "worst_low": 0.25, "worst_high": 0.5}
    figures = [{**f, **changes} if f["name"] == "score" else f for f in metrics["figures"]]
    shown = " ".join(
        "\n".join(screen(figures_table("town", {**metrics, "figures": figures, "num_clusters": 8}))).split()
    )
    assert "40 episodes of 40 scenarios on 8 maps" in shown
    assert "12.5% of the data are missing; worst case of score: 0.250 to 0.500" in shown
    assert "missing" not in "\n".join(screen(figures_table("town", metrics)))
