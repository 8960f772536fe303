"""What pages say first of an episode, and which columns they leave out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import roadworthy as rw
from tests.results import made_up_logs as logs
from tests.viewer.made_up import results, write_run
from tests.viewer.test_commands import open_page


@pytest.mark.row("UI-2")
@pytest.mark.parametrize(("passed", "words"), [(0.0, "not passed"), (1.0, "passed")])
def test_an_exam_that_was_failed_is_said_beside_the_status(
    page: Any, served: Any, tmp_path: Path, passed: float, words: str
) -> None:
    (row,) = results(1)
    outcomes = {"score": 1.0, "distance_m": 10.0, "passed": passed, "exam_progress": 1.0, "exam_yields": passed}
    run = write_run(tmp_path, [replace(row, episode=replace(row.episode, outcomes=outcomes))])
    open_page(page, served(tmp_path), "episode", str(run.header["run_id"]), "/0")
    assert page.locator("h1 .status").all_inner_texts() == [words, "completed"]
    columns = page.locator("section[aria-label=Outcomes] tr[data-column]")
    names = [columns.nth(k).get_attribute("data-column") for k in range(columns.count())]
    others = sorted(f"outcomes.{name}" for name in outcomes if name != "passed")
    if passed == 0.0:
        others.sort(key=lambda name: name != "outcomes.exam_yields")
    assert names == ["outcomes.passed", *others]


@pytest.mark.row("STAT-5")
def test_columns_without_values_are_left_out(page: Any, served: Any, tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.ALL["csv"](tmp_path), out=tmp_path / "runs")
    assert all(not tags for tags in run.episodes(["tags"])["tags"].to_pylist())
    base, key = served(tmp_path / "runs"), str(run.header["run_id"])
    open_page(page, base, "run", key)
    chosen = page.get_by_label("Column to filter by")
    assert chosen.input_value() == "outcomes.success"
    offered = chosen.locator("option").all_text_contents()
    assert not {"class", "wall time", "error"} & set(offered)
    assert "success" in offered
    open_page(page, base, "sensitivity", key)
    assert "class" not in page.locator("figcaption").all_text_contents()
    open_page(page, base, "episode", key, "/0")
    heads = page.locator("section[aria-label='About the episode'] th").all_text_contents()
    assert "scenario" in heads
    assert not {"class", "wall time"} & set(heads)
