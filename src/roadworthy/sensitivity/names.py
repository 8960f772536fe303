"""Find a factor in a row by its name, at any depth and under any prefix.

The same quantity is `light_intensity` in an episode summary, `arguments.light_intensity` in the settings of a run
folder, `arena_env_args.light_intensity` in a table of columns and `light.intensity` among an environment's variations.
A name can be the whole path, its suffix, or either with underscores for dots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tables = Mapping[str, Mapping[str, Any]]


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested table by dotted name; the numbers of a vector are `name[k]`."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flattened(value, f"{name}.")
        elif isinstance(value, list | tuple):
            yield from ((f"{name}[{k}]", part) for k, part in enumerate(value))
        else:
            yield name, value


def find(name: str, tables: Tables) -> Any:
    """Return the value of a name in the first table that has it; None if there is none.

    Raises:
        ValueError: if the name is ambiguous: a suffix of several names of a table with different values.
    """
    for table in tables.values():
        if table.get(name) is not None:
            return table[name]
    for label, table in tables.items():
        found = {key: value for key, value in flattened(table) if value is not None and is_called(name, label, key)}
        whole = [key for key in found if name in (key, f"{label}.{key}")]
        if whole:
            return found[whole[0]]
        if found:
            if any(value != next(iter(found.values())) for value in found.values()):
                raise ValueError(f"factor {name!r} is ambiguous: {', '.join(sorted(found))}; use a longer name")
            return next(iter(found.values()))
    return None


def is_called(name: str, label: str, key: str) -> bool:
    """Return whether a name is a suffix of a dotted key, or the key with its table's label."""
    parts = key.split(".")
    ends = [f"{label}.{key}", *(".".join(parts[k:]) for k in range(len(parts)))]
    return name in ends or name in [end.replace(".", "_") for end in ends]
