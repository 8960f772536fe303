"""Pages follow runs and trainings that are being written; only new rows travel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadworthy.metrics.driving import driving_metrics
from roadworthy.record import RunWriter
from tests.report.made_up import HEADER
from tests.viewer.made_up import ledger_of, results, write_training


@pytest.mark.row("UI-2")
def test_a_running_evaluation_appears_grows_and_ends(page: Any, served: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    page.goto(served(tmp_path / "runs"))
    page.locator("text=There are no runs").wait_for()
    rows = results(40)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with RunWriter.start(tmp_path / "runs", "town", "best", HEADER, ledger_of(rows)) as writer:
        for row in rows[:10]:
            writer.append(row)
        page.locator("tr[data-run] >> text=10 of 40").wait_for()
        page.locator("tr[data-run] a").click()
        page.locator("text=10 of 40 episodes have ended").wait_for()
        for row in rows[10:25]:
            writer.append(row)
        page.locator("text=25 of 40 episodes have ended").wait_for()
        assert "25 episodes" in page.locator(".explorer-episodes [role=status]").inner_text()
        for row in rows[25:]:
            writer.append(row)
        writer.seal(driving_metrics)
    page.locator(".status", has_text="completed").first.wait_for()
    page.locator("text=episodes have ended").wait_for(state="detached")
    ranges = [url.rpartition("/")[2] for url in asked if "/episodes/" in url]
    assert ranges[:2] == ["0-10.cols", "10-25.cols"]
    assert ranges[-1] == "0-40.cols"  # sealed: the order is that of the ledger


@pytest.mark.row("UI-2")
def test_a_training_grows(page: Any, served: Any, tmp_path: Path) -> None:
    training = write_training(tmp_path / "training", updates=5)
    page.goto(served(tmp_path))
    page.get_by_role("link", name="training").click()
    page.locator("text=5 updates").wait_for()
    line = {
        "update": 6,
        "step": 60_000,
        "steps": 50_000,
        "seconds": 12.0,
        "steps_per_s": 5000.0,
        "losses": {},
        "figures": {},
    }
    with open(training / "progress.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    page.locator("text=6 updates").wait_for()
