"""Finding a factor in a row by its name, however deep and under whatever prefix the row has it.

The same quantity is `light_intensity` in an episode summary, `arguments.light_intensity` in the settings of a run
folder, `arena_env_args.light_intensity` in a table of columns and `light.intensity` among an environment's variations.
A name finds all of them: the whole path, its end, or either with underscores for dots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tables = Mapping[str, Mapping[str, Any]]


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested table by their dotted names; of a vector, every number as `name[k]`."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flattened(value, f"{name}.")
        elif isinstance(value, list | tuple):
            yield from ((f"{name}[{k}]", part) for k, part in enumerate(value))
        else:
            yield name, value


def find(name: str, tables: Tables) -> Any:
    """Find the value that a name stands for in the first table that has it; None where none has.

    Raises:
        ValueError: if the name is the end of several names of a table, and their values differ.
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
                raise ValueError(
                    f"factor {name!r} stands for several: {', '.join(sorted(found))}; write which is meant"
                )
            return next(iter(found.values()))
    return None


def is_called(name: str, label: str, key: str) -> bool:
    """Say whether a name is the end of a dotted key, or the key with its table's label."""
    parts = key.split(".")
    ends = [f"{label}.{key}", *(".".join(parts[k:]) for k in range(len(parts)))]
    return name in ends or name in [end.replace(".", "_") for end in ends]
