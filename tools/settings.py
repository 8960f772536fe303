"""Write the tables of settings into the docs, from the comments in the configs: `python -m tools.settings`."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.sim.config import SimConfig
from roadworthy.training.config import TrainConfig

DOCS = Path(__file__).parent.parent / "docs"
_TABLE = re.compile(r"(?<=^## Every setting\n)((?:(?!\|).*\n)*)((?:\|.*\n)+)", re.M)
_SIMULATION = "The simulation: see [simulator.md](simulator.md)."
_UNSET = object()


@dataclass(frozen=True)
class Document:
    """A file of the docs with the table of a config under the heading `Every setting`."""

    name: str
    config: type
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    # Sections that another document describes, with the line that replaces each, or an empty string.

    @property
    def path(self) -> Path:
        return DOCS / self.name

    def table(self) -> str:
        """Return the table with a row per setting: dotted key, default and meaning."""
        lines = ["| setting | default | meaning |", "|---|---|---|", *_lines(self.config, _UNSET, "", self.elsewhere)]
        return "\n".join(lines) + "\n"

    def written(self) -> str:
        """Return the content of the file with the current table."""
        text = self.path.read_text(encoding="utf-8")
        found = _TABLE.search(text)
        if found is None:
            raise LookupError(f"{self.path} has no table below the heading 'Every setting'")
        return text[: found.start(2)] + self.table() + text[found.end(2) :]


SIMULATOR = Document("simulator.md", SimConfig)
TRAINING = Document("training.md", TrainConfig, {"env": f"| `env.*` | | {_SIMULATION} |"})
EVALUATION = Document(
    "evaluation-config.md",
    EvaluatorConfig,
    {"env": f"| `env.*`, `episode.*` | the training's | {_SIMULATION} |", "episode": ""},
)


def _lines(cls: Any, base: Any, prefix: str, elsewhere: Mapping[str, str]) -> list[str]:
    """Return the rows of a config; base: its default in the outer config, if there is one."""
    notes, hints = _notes(cls), get_type_hints(cls)
    lines: list[str] = []
    for one in fields(cls):
        default = _default(one) if base is _UNSET or base is None else getattr(base, one.name)
        key, section = f"{prefix}{one.name}", _section(hints[one.name])
        if key in elsewhere:
            lines += [elsewhere[key]] if elsewhere[key] else []
        elif section is not None:
            lines += _lines(section, default, f"{key}.", elsewhere)
        else:
            lines.append(f"| `{key}` | {_shown(default)} | {notes[one.name]}{_choices(default, notes[one.name])} |")
    return lines


def _section(hint: Any) -> Any:
    """Return the config class of a field, also if it is optional; None for a plain value."""
    of_union = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return next((kind for kind in of_union if is_dataclass(kind)), None)


def _notes(cls: type) -> dict[str, str]:
    """Return the comment below each field."""
    found = re.findall(r"^    (\w+): [^\n]*\n((?:    # [^\n]*\n)+)", inspect.getsource(cls), re.M)
    return {name: " ".join(line.strip("# ").strip() for line in note.splitlines()) for name, note in found}


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _shown(value: Any) -> str:
    """Return a default as in a config file."""
    if value is MISSING:
        return "(required)"
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _choices(value: Any, note: str) -> str:
    """Return the allowed words of a choice, unless the note lists them."""
    words = [str(member.value) for member in type(value)] if isinstance(value, Enum) else []
    return f" One of: {', '.join(words)}." if not all(word in note for word in words) else ""


def main() -> None:
    for document in (SIMULATOR, TRAINING, EVALUATION):
        document.path.write_text(document.written(), encoding="utf-8")


if __name__ == "__main__":
    main()
