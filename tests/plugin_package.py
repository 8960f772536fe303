"""Packages with entry points that a test installs for itself: metadata in a folder on the path, as pip leaves them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, parts: Mapping[str, str], code: str, name: str = "parts"
) -> None:
    """Put a module `name` with this code and its entry points where Python finds them."""
    _declare(folder, monkeypatch, name, {group: parts})
    (folder / f"{name}.py").write_text(code)


def install_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare what pyproject.toml declares, so that a checkout that was not installed finds its own parts."""
    _declare(folder, monkeypatch, "roadworthy", _entry_points(PROJECT))


def install_project(folder: Path, monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Put the modules beside a pyproject.toml on the path, and declare its entry points in a folder."""
    name = tomllib.loads(project.read_text())["project"]["name"]
    _declare(folder, monkeypatch, name, _entry_points(project))
    monkeypatch.syspath_prepend(project.parent)


def _entry_points(project: Path) -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = tomllib.loads(project.read_text())["project"].get("entry-points", {})
    return found


def _declare(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line for group, parts in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in parts.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(folder)
