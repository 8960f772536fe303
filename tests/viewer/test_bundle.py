"""Bundles: the same pages as plain files, without a server of ours, ranges or a network."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from roadworthy.errors import UsageError
from roadworthy.record import Run, RunWriter
from roadworthy.viewer.bundle import embed, write_bundle
from roadworthy.viewer.site import Site
from roadworthy.viewer.view import view
from tests.record.made_up import HEADER, ids, ledger, result
from tests.test_light_core import COMMAND, WITHOUT_DRIVE
from tests.viewer.conftest import start_files
from tests.viewer.made_up import results, write_run, write_training


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        write_run(root, results(60, seed=seed), policy=f"policy-{seed}")
    write_training(root / "training")
    return root


@pytest.mark.row("UI-2")
def test_a_bundle_is_the_same_site_on_a_plain_file_server_and_offline(page: Any, bundled: Any, root: Path) -> None:
    page.context.route("**/*", lambda route: route.continue_() if "127.0.0.1" in route.request.url else route.abort())
    page.goto(bundled(root))
    page.locator("tr[data-run]").first.wait_for()
    assert page.locator(".live").inner_text() == "static"
    page.locator("tr[data-run] a").first.click()
    page.wait_for_selector("html[data-ready=run]")
    page.get_by_label("Filter by").select_option("tags")
    page.get_by_role("button", name="Add").click()
    page.locator("p.selected", has_text="10 episodes selected of 60").wait_for()
    page.locator("[role=gridcell] a").first.click()
    page.wait_for_selector("html[data-ready=episode]")
    first, second = (path.name[-8:] for path in sorted((root / "town").iterdir()))
    page.evaluate(f"location.hash = '#/compare/{first}/{second}'")
    page.locator(".verdict-line", has_text="over 60 pairs of episodes").wait_for()


@pytest.mark.row("UI-2")
def test_a_bundle_holds_what_a_server_answers(root: Path, tmp_path: Path) -> None:
    written = write_bundle([root], tmp_path / "site")
    site = Site([root], level=6)
    paths = [
        path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*") if path.is_file()
    ]
    assert sorted(paths) == sorted({*site.paths(), "README.txt"})
    assert written.files == len(paths) - 1
    for path in site.paths():
        body = site.get(path).body
        assert isinstance(body, bytes)
        assert (tmp_path / "site" / path).read_bytes() == body, path
    assert "python -m http.server" in (tmp_path / "site" / "README.txt").read_text()


@pytest.mark.row("UI-2")
def test_a_bundle_names_no_folder_of_this_machine(root: Path, tmp_path: Path) -> None:
    write_bundle([root], tmp_path / "site")
    for path in (tmp_path / "site" / "data").rglob("*.json"):
        assert str(root) not in path.read_text(), path


TRACE = """
async ([key, number]) => {
  const { Source } = await import("./app/source.js");
  const trace = await (await new Source("").open()).trace(key, number);
  return [trace.episodeId, trace.frames, trace.agents];
}
"""


@pytest.mark.row("UI-2")
def test_an_embedded_page_reads_motion_from_where_it_is(page: Any, tmp_path: Path) -> None:
    names = ledger(3)
    with RunWriter.start(tmp_path / "runs", "town", "best", HEADER, names) as writer:
        for id in ids(names):
            writer.append(result(id))
    written = embed(tmp_path / "runs")
    assert written.folder == tmp_path / "runs" / "viewer"
    assert not any("trace" in path.name for path in written.folder.rglob("*.trace"))
    (tmp_path / "runs").rename(tmp_path / "moved")
    with ExitStack() as stack:
        page.goto(start_files(stack, tmp_path / "moved") + "viewer/")
        page.locator("tr[data-run] a").click()
        page.wait_for_selector("html[data-ready=run]")
        key = Run(next((tmp_path / "moved").glob("town/*"))).header["run_id"]
        assert page.evaluate(TRACE, [key, 1]) == ["town-1-r0", 9, 3]
    with pytest.raises(UsageError, match="name one folder and no bundle"):
        view([tmp_path / "moved", tmp_path], embed=True)


@pytest.mark.row("UI-2")
def test_a_bundle_replaces_an_earlier_one_and_nothing_else(root: Path, tmp_path: Path) -> None:
    write_bundle([root], tmp_path / "site")
    (tmp_path / "site" / "data" / "old.json").write_text("{}")
    write_bundle([root], tmp_path / "site")
    assert not (tmp_path / "site" / "data" / "old.json").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds other files; give a new or an empty folder"):
        write_bundle([root], tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.row("UI-7")
def test_bundles_are_written_without_the_extras(root: Path, tmp_path: Path) -> None:
    blocked = WITHOUT_DRIVE.replace('"sbi"}', '"sbi", "starlette", "uvicorn"}')
    words = [sys.executable, "-c", blocked + COMMAND, "view", str(root), "--bundle", str(tmp_path / "site"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] > 20
    words[words.index("--bundle") :] = ["--no-browser"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr.rstrip().endswith("install it with: pip install 'roadworthy[view]'")
