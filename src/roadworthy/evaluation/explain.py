"""Explain where each value of a section comes from, and which values it overrides."""

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
    value: Any  # a word, number or list
    source: str
    overridden: tuple[tuple[str, Any], ...]  # sources whose values it overrides, nearest first, with these values


def explain(section: Section) -> list[Explained]:
    """Explain every setting of a section, in the order of the dataclasses. Raises the error of a faulty section."""
    config, resolved = section.config, section.resolved
    origins = resolved.origins if resolved is not None else {}
    settings = []
    for key, value in leaves(config.as_plain()):
        source = origins.get(key, DEFAULT)
        if key == "env.hidden.partners" and config.coplayers:
            source = origins["coplayers"]  # the number of co-players
        found = [(layer.source, _at(layer.values, key)) for layer in reversed(section.layers)]
        given = [(name, lower) for name, lower in found if lower is not None]
        settings.append(Explained(key, value, source, tuple(given[1:])))
    return settings


def _at(values: Any, key: str) -> Any:
    """Return the value of a dotted key; None if it is missing or a table."""
    for name in key.split("."):
        if not isinstance(values, Mapping) or name not in values:
            return None
        values = values[name]
    return None if isinstance(values, Mapping) else values
