"""docs/viewer.md documents every option and every page, and names what comes from other projects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from roadworthy.cli.main import app

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")
STATIC = ROOT / "src" / "roadworthy" / "viewer" / "static"


@pytest.mark.row("UI-6")
def test_every_option_is_documented() -> None:
    command = typer.main.get_command(app).commands["view"]  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    named = set(re.findall(r"--[a-z-]+", DOCS))
    assert {option for option in options if option.startswith("--")} - {"--help"} <= named
    assert "FOLDER..." in DOCS
    rerun = typer.main.get_command(app).commands["export"].commands["rerun"]  # type: ignore[attr-defined]
    assert {option for parameter in rerun.params for option in parameter.opts if option[:2] == "--"} <= named


@pytest.mark.row("UI-2")
def test_every_file_of_another_project_is_listed_with_its_license() -> None:
    listed = (STATIC / "vendor" / "VENDORED.txt").read_text()
    for path in (STATIC / "vendor").glob("*.js"):
        assert path.name in listed
        assert path.name in DOCS
        assert (STATIC / "vendor" / f"{path.stem}.LICENSE.txt").is_file()


@pytest.mark.row("SEC-2")
def test_no_module_makes_markup_from_text_or_asks_other_hosts() -> None:
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://")
    for path in STATIC.rglob("*"):
        if path.suffix in (".js", ".html", ".css") and "vendor" not in path.parts:
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert [word for word in (*forbidden, "https://") if word in text] == [], path


def test_pictures_exist() -> None:
    pictures = re.findall(r"\((pictures/[\w.-]+)\)", DOCS)
    assert len(pictures) >= 4
    for name in pictures:
        assert (ROOT / "docs" / name).is_file(), name
