"""Writes the table of a training run's settings into docs/training.md, from the configs' own comments."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from roadworthy.train.config import TrainConfig
from tools.settings import _notes, _shown

DOCUMENT = Path(__file__).parent.parent / "docs" / "training.md"
HEADING = "## Every setting\n"
_ELSEWHERE = "| `env.*` | | The simulation: see [simulator.md](simulator.md). |"


def table() -> str:
    """One line per setting: its dotted key, default and meaning."""
    lines = ["| setting | default | meaning |", "|---|---|---|", *_lines(TrainConfig(), "")]
    return "\n".join(lines) + "\n"


def _lines(config: Any, prefix: str) -> list[str]:
    notes = _notes(type(config))
    lines: list[str] = []
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name == "env":
            lines.append(_ELSEWHERE)
        elif is_dataclass(value):
            lines += _lines(value, f"{prefix}{field.name}.")
        else:
            default = "none" if value == () else _shown(value)
            lines.append(f"| `{prefix}{field.name}` | {default} | {notes[field.name]}{_choices(value)} |")
    return lines


def _choices(value: Any) -> str:
    """The words that a choice is made among."""
    return f" One of: {', '.join(str(member.value) for member in type(value))}." if isinstance(value, Enum) else ""


def main() -> None:
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[: text.index(HEADING) + len(HEADING)] + table())


if __name__ == "__main__":
    main()
