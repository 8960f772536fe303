"""Files on the command line: packs, and files to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.errors import UsageError

if TYPE_CHECKING:
    from roadworthy.scenario.pack import Pack
    from roadworthy.scenario.schema import Scenario

PackPath = Annotated[Path, typer.Argument(metavar="PACK", help="A pack file.")]


def chosen_scenario(pack: Pack, name: str) -> Scenario:
    """Return the scenario with this id, or else with this number, counted from 0."""
    return pack[int(name)] if name.isdecimal() and name not in pack.ids else pack.scenario(name)


def require_suffix(*suffixes: str) -> Callable[[Any], Any]:
    """Return a callback that checks the suffix of an output file, which decides its format."""

    def check(path: Path | None) -> Path | None:
        if path is not None and path.suffix.lower() not in suffixes:
            raise UsageError(f"{str(path)!r} ends in {path.suffix or 'nothing'!r}, expected {' or '.join(suffixes)}")
        return path

    return check


def make_folder(path: Path) -> Path:
    """Make the folder that a file goes into."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
