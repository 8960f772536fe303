"""Where each value of a section came from, and what it lies on top of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roadworthy.evaluation.config import leaves
from roadworthy.evaluation.sections import Section

DEFAULT = "default"


@dataclass(frozen=True)
class Explained:
    """One setting of a section."""

    key: str
    value: Any  # in words, numbers and lists
    source: str
    covered: tuple[tuple[str, Any], ...]  # sources whose values it replaced, nearest first, with these values


def explain(section: Section) -> list[Explained]:
    """Every setting of a section, in the order of the dataclasses; the section's fault is raised where it has one."""
    config, resolved = section.config, section.resolved
    origins = resolved.origins if resolved is not None else {}
    told = []
    for key, value in leaves(config.as_plain()):
        source = origins.get(key, DEFAULT)
        if key == "env.hidden.partners" and config.coplayers:
            source = origins["coplayers"]  # it is their number
        found = [(layer.source, _at(layer.values, key)) for layer in reversed(section.layers)]
        given = [(name, lower) for name, lower in found if lower is not None]
        told.append(Explained(key, value, source, tuple(given[1:])))
    return told


def _at(values: Any, key: str) -> Any:
    """The value of a dotted key, None where there is none; a table is none either."""
    for name in key.split("."):
        if not isinstance(values, Mapping) or name not in values:
            return None
        values = values[name]
    return None if isinstance(values, Mapping) else values
