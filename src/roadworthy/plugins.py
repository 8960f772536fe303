"""Find extensions: entry points that installed packages declare (built-in ones too), or code named in a config file.

Every kind of extension is named in the same three ways: `name` of an entry point, `module:Name`, or `file.py:Name`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from roadworthy.errors import ConfigError
from roadworthy.spelling import closest

_DECLARED = "roadworthy.evaluators"  # a group of which Roadworthy itself declares members


def known(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in alphabetical order, without loading them."""
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigError(
                f"{group} {entry.name!r} is declared twice, as {other.value} by {_owner(other)} and as {entry.value} "
                f"by {_owner(entry)}; uninstall one of the two packages"
            )
    return found


def is_code(name: str) -> bool:
    """Return whether a name is `module:Name` or `file.py:Name`, and so runs code of the user's."""
    module, colon, attribute = name.rpartition(":")
    return bool(colon and module) and attribute.isidentifier()


def with_colon(name: str) -> str:
    """Return `module.Name` as `module:Name`, and any other name unchanged."""
    is_dotted = "." in name and all(part.isidentifier() for part in name.split("."))
    return ":".join(name.rsplit(".", 1)) if is_dotted else name


def load(group: str, name: str, what: str) -> Any:
    """Load the extension with this name.

    Args:
        group: The entry point group, as "roadworthy.evaluators".
        name: The name of an entry point, `module:Name` or `file.py:Name`.
        what: What the extension is, for errors, as "evaluator".
    """
    if is_code(name):
        return load_code(name, what)
    entries = known(group)
    if name not in entries:
        hint = nearest(name, entries)
        if not known(_DECLARED):
            hint += " (Roadworthy itself declares some: it is not installed; run pip install in its folder)"
        raise ConfigError(f"unknown {what} {name!r}; {hint}; or give your own as module:Name or file.py:Name")
    try:
        return entries[name].load()
    except Exception as error:  # importing a foreign module may raise anything
        raise ConfigError(
            f"can't load {what} {name!r} from {entries[name].value} of {_owner(entries[name])}: "
            f"{type(error).__name__}: {error}"
        ) from error


def load_code(name: str, what: str) -> Any:
    """Import `module:Name` or `file.py:Name`; modules in the current folder can be imported."""
    module_name, _, attribute = name.rpartition(":")
    try:
        module = _module_of_file(Path(module_name)) if module_name.endswith(".py") else _module(module_name)
        return getattr(module, attribute)
    except Exception as error:  # importing a foreign module may raise anything
        raise ConfigError(
            f"can't load {what} {name!r}: {type(error).__name__}: {error}; expected module:Name or file.py:Name"
        ) from error


def _module(name: str) -> ModuleType:
    """Import a module that is installed or lies in the current folder."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module(name)


def _module_of_file(path: Path) -> ModuleType:
    """Import a file once, under a name of its own in `sys.modules`."""
    path = path.expanduser().resolve()
    name = f"roadworthy_file:{path}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return what a wrong name may have meant, for the end of an error."""
    names = list(names)
    near = closest(name, names)
    return f"{f'did you mean {near}? ' if near else ''}known: {', '.join(names) or 'none'}"


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown package"
