"""Parts that are found by name: classes that any installed package declares as entry points, built-in ones as well."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from roadworthy.errors import ConfigError


def known(group: str) -> dict[str, EntryPoint]:
    """The declared parts of a group by name, in alphabetical order, none of them loaded."""
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigError(
                f"{group} {entry.name!r} is declared twice, as {other.value} by {_owner(other)} and as {entry.value} "
                f"by {_owner(entry)}; uninstall one of the two packages"
            )
    return found


def load(group: str, name: str, what: str) -> Any:
    """The part with this name; `what` says in errors what kind of thing it is, as in "evaluator"."""
    parts = known(group)
    if name not in parts:
        hint = nearest(name, parts)
        if not parts:
            hint += " (Roadworthy itself declares some: it is not installed; run pip install in its folder)"
        raise ConfigError(f"{what} {name!r} is unknown; {hint}")
    try:
        return parts[name].load()
    except Exception as error:  # whatever a foreign module does when it is imported
        raise ConfigError(
            f"{what} {name!r} can't be loaded from {parts[name].value} of {_owner(parts[name])}: "
            f"{type(error).__name__}: {error}"
        ) from error


def nearest(name: str, names: Iterable[str]) -> str:
    """What a wrong name may have meant, for the end of an error."""
    names = list(names)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"{f'did you mean {near[0]}? ' if near else ''}known: {', '.join(names) or 'none'}"


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown package"
