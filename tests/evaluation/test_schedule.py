"""Evaluations beside training: what is skipped while another one runs, and that the last one never is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from roadworthy.evaluation import schedule as schedules
from roadworthy.evaluation.schedule import Schedule
from roadworthy.evaluation.sections import read_sections
from roadworthy.policy.checkpoint_files import ABOUT, WEIGHTS
from roadworthy.sinks import Sinks
from tests.evaluation.built_in import declare

SECTION = """
[eval.beside]
type = "multi_scenario"
scenarios = "nowhere.pack"
interval = 1
engine = "workers"
workers = 1
busy = "{busy}"
"""


@pytest.mark.row("EVAL-3")
@pytest.mark.parametrize("busy", ["skip", "queue", "wait"])
def test_the_last_evaluation_runs_though_the_one_before_it_is_not_through(
    busy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(tmp_path / "site", monkeypatch)
    (tmp_path / "suite.toml").write_text(SECTION.format(busy=busy))
    checkpoint, may_end, evaluated = tmp_path / "step_0", threading.Event(), []
    checkpoint.mkdir()
    for name in (WEIGHTS, ABOUT):
        (checkpoint / name).write_text("")

    def slow(sections: Any, policy: str, out: Path, *, epoch: int, **_: Any) -> None:
        may_end.wait(60.0)
        evaluated.append(epoch)

    monkeypatch.setattr(schedules, "evaluate_sections", slow)
    said: list[str] = []
    with Schedule(
        read_sections(tmp_path / "suite.toml"), tmp_path / "out", Sinks({}, tmp_path), said.append
    ) as schedule:
        schedule.run(1, 100, lambda: checkpoint)
        if busy != "wait":  # which would stand still
            schedule.run(2, 200, lambda: checkpoint)
        schedule.run(3, 300, lambda: checkpoint, True)
        assert evaluated == []
        may_end.set()
    assert evaluated == {"skip": [1, 3], "queue": [1, 2, 3], "wait": [1, 3]}[busy]
    assert len(said) == (1 if busy == "skip" else 0)
