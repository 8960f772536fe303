"""Verdicts of the comparison page, the choice of runs, and moving between pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import roadworthy as rw
from tests.viewer.made_up import results, write_run
from tests.viewer.test_commands import open_page


@pytest.mark.row("UI-2")
def test_verdicts_are_those_of_compare_with_their_reason(page: Any, served: Any, tmp_path: Path) -> None:
    first = write_run(tmp_path, results(24), policy="first")
    same = write_run(tmp_path, results(24), policy="same")
    other = write_run(tmp_path, results(24, seed=5), policy="other", role="floor")
    base = served(tmp_path)
    keys = [str(run.header["run_id"]) for run in (first, same, other)]
    open_page(page, base, "compare", keys[0], f"/{keys[1]}")
    row = page.locator("section[aria-label=Differences] tr[data-part=score]").first
    assert row.locator("td").nth(4).inner_text() == "equal in every pair"
    page.evaluate("scrollTo(0, 300)")
    page.evaluate(f"location.hash = '#/compare/{keys[0]}/{keys[2]}'")
    page.locator(".head", has_text="other").wait_for()
    assert page.evaluate("scrollY") == 0
    expected = {one.metric.name: one for one in rw.compare(first, other).differences}
    found = expected["score"]
    row = page.locator("section[aria-label=Differences] tr[data-part=score]").first
    assert row.locator("td").nth(4).text_content().startswith(found.verdict.value)
    if found.verdict.value == "undecided":
        assert row.locator("td").nth(4).locator(".note").inner_text() != ""
    assert f"{found.interval.clusters} clusters" in row.locator("td.p").inner_text()
    assert f"raw {found.p:.2f}" in row.locator("td.p").inner_text()
    options = page.locator("select[name=a] option").all_text_contents()
    assert [option for option in options if option.endswith(", floor")] == [
        option for option in options if "other" in option
    ]
    page.get_by_role("button", name="Keyboard and help").click()
    text = page.locator("dialog").inner_text()
    assert "met every condition of its behavior class's exam" in text
    assert "reached the required share of its goals" in text
    assert "product of four multipliers" in text
