"""Writes the table of the simulator's settings into docs/simulator.md, from the config's own comments."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from roadworthy.sim.config import SimConfig

DOCUMENT = Path(__file__).parent.parent / "docs" / "simulator.md"
HEADING = "## Every setting\n"


def table() -> str:
    """One line per setting: its dotted key, default and meaning."""
    lines = ["| setting | default | meaning |", "|---|---|---|", *_lines(SimConfig(), "")]
    return "\n".join(lines) + "\n"


def _lines(config: Any, prefix: str) -> list[str]:
    notes = _notes(type(config))
    lines: list[str] = []
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            lines += _lines(value, f"{prefix}{field.name}.")
        else:
            lines.append(f"| `{prefix}{field.name}` | {_shown(value)} | {notes[field.name]} |")
    return lines


def _notes(cls: type) -> dict[str, str]:
    """The comment under each field."""
    found = re.findall(r"^    (\w+): [^\n]*\n((?:    # [^\n]*\n)+)", inspect.getsource(cls), re.M)
    return {name: " ".join(line.strip("# ").strip() for line in note.splitlines()) for name, note in found}


def _shown(value: Any) -> str:
    return str(value.value) if isinstance(value, Enum) else str(value).replace("True", "true").replace("False", "false")


def main() -> None:
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[: text.index(HEADING) + len(HEADING)] + table())


if __name__ == "__main__":
    main()
