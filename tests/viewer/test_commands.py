"""Commands that pages offer run where the viewer was started; imported logs get none that would fail."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import roadworthy as rw
from roadworthy.record import Run
from roadworthy.viewer.catalog import Catalog
from roadworthy.viewer.site import Site
from tests.results import made_up_logs as logs
from tests.viewer.made_up import results, write_run


def open_page(page: Any, base: str, name: str, key: str, more: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{base}#/{name}/{key}{more}")
    page.wait_for_selector(f"html[data-ready={name}]")


def printed(page: Any) -> list[list[str]]:
    """Return the words of all commands on the page."""
    return [shlex.split(text) for text in page.locator("main pre").all_text_contents()]


@pytest.mark.row("UI-2")
def test_commands_name_folders_as_they_were_given(
    page: Any, served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = write_run(Path("my runs"), results(4))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    base, key = served(Path("my runs")), str(run.header["run_id"])
    open_page(page, base, "run", key)
    found = printed(page)
    assert [words[1] for words in found] == ["report", "render", "audit", "rescore"]
    assert all(Run(words[2]).header["run_id"] == key for words in found)
    open_page(page, base, "sensitivity", key)
    assert [Run(words[2]).header["run_id"] for words in printed(page)] == [key]
    open_page(page, base, "episode", key, "/0")
    page.get_by_role("button", name="Copy replay command").click()
    page.locator(".copied", has_text="copied").wait_for()
    assert Run(shlex.split(page.evaluate("navigator.clipboard.readText()"))[2]).header["run_id"] == key


@pytest.mark.row("UI-2")
def test_a_run_folder_that_was_given_is_named_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "runs", results(2))
    monkeypatch.chdir(tmp_path)
    given = run.folder.relative_to(tmp_path)
    (place,) = Catalog([given]).runs.values()
    assert place.command_path == str(given)
    (place,) = Site([run.folder]).catalog.runs.values()  # of a bundle
    assert place.command_path == run.folder.name


@pytest.mark.row("UI-2")
def test_a_bundle_says_where_the_paths_of_its_commands_begin(page: Any, bundled: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs", results(4))
    open_page(page, bundled(tmp_path / "runs"), "run", str(run.header["run_id"]))
    path = run.folder.relative_to(tmp_path / "runs").as_posix()
    assert {words[2] for words in printed(page)} == {path}
    assert "folder that this bundle was made from" in str(page.locator(".provenance").text_content())


@pytest.mark.row("STAT-5")
def test_imported_logs_show_their_file_and_no_command_that_needs_a_simulator(
    page: Any, served: Any, tmp_path: Path
) -> None:
    (run,) = rw.import_results(logs.ALL["arena"](tmp_path), out=tmp_path / "runs")
    open_page(page, served(tmp_path / "runs"), "run", str(run.header["run_id"]))
    assert [words[:2] for words in printed(page)] == [["roadworthy", "report"]]
    origin = page.locator(".provenance table.origin").first
    heads = origin.locator("th").all_text_contents()
    assert "imported from" in heads
    assert "code" not in heads
    assert run.header["import"]["file"] in str(origin.text_content())
    assert run.header["import"]["sha256"] in str(origin.text_content())
