"""The code of docs/extending.md runs, block by block, in an empty folder."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.plugin_package import PROJECT, install_own
from tests.test_example_package import KINDS

TEXT = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    install_own(tmp_path / "own", monkeypatch)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    known = set(sys.modules)
    ran = 0
    for language, code in BLOCKS:
        assert language in ("python", "toml"), language
        named = re.match(r"# (\w+\.(py|toml))\n", code)
        if named:
            (folder / named[1]).write_text(code)
        else:
            exec(compile(code, "docs/extending.md", "exec"), {})
            ran += 1
    assert ran >= 5
    assert re.search(r"^> first/top_speed: \d", capsys.readouterr().out, re.MULTILINE)
    for name in set(sys.modules) - known:  # modules of the folder
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_every_file_is_used_and_every_kind_is_named() -> None:
    names = [found[1] for _, code in BLOCKS if (found := re.match(r"# (\w+)\.(?:py|toml)\n", code))]
    assert all(len(re.findall(rf"\b{name}[.:]", TEXT)) >= 2 for name in names), names
    declared = set(tomllib.loads(PROJECT.read_text())["project"]["entry-points"])
    for group in declared | {f"roadworthy.{kind}" for kind in KINDS}:
        assert f"`{group}`" in TEXT, group
