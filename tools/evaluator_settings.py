"""Writes the tables of an evaluator's settings into docs/evaluation-config.md, from the configs' own comments."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, fields
from enum import Enum
from pathlib import Path
from typing import Any

from roadworthy.evaluate.config import EvaluatorConfig, SummaryConfig
from roadworthy.render.config import RenderConfig

DOCUMENT = Path(__file__).parent.parent / "docs" / "evaluation-config.md"
BEGIN, END = "<!-- settings, written by python -m tools.evaluator_settings -->\n", "<!-- end of settings -->\n"
_PARTS = {"summary": SummaryConfig, "render": RenderConfig}
_ELSEWHERE = ("env", "episode")  # in docs/simulator.md


def table() -> str:
    """One line per setting: its dotted key, default and meaning."""
    lines = ["| setting | default | meaning |", "|---|---|---|", *_lines(EvaluatorConfig, "")]
    lines += ["| `env.*`, `episode.*` | the training's | The simulation: see [simulator.md](simulator.md). |"]
    return "\n".join(lines) + "\n"


def _lines(cls: Any, prefix: str) -> list[str]:
    notes = _notes(cls)
    lines: list[str] = []
    for field in fields(cls):
        if field.name in _PARTS and not prefix:
            lines += _lines(_PARTS[field.name], f"{field.name}.")
        elif field.name not in _ELSEWHERE or prefix:
            lines.append(f"| `{prefix}{field.name}` | {_default(field)} | {notes[field.name]} |")
    return lines


def _notes(cls: type) -> dict[str, str]:
    """The comment under each field."""
    found = re.findall(r"^    (\w+): [^\n]*\n((?:    # [^\n]*\n)+)", inspect.getsource(cls), re.M)
    return {name: " ".join(line.strip("# ").strip() for line in note.splitlines()) for name, note in found}


def _default(field: Field[Any]) -> str:
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    if value is MISSING:
        return "(required)"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool | None):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def main() -> None:
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(before + BEGIN + table() + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
