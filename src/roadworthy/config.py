"""Parse TOML into frozen dataclasses, strictly, and record the source of each value.

A config is built from layers, lowest first: files, then `--set key=value`, then flags. Each layer is a tree of plain
values with the name of its source; `resolve` merges the layers, checks every value against the dataclass and records
its source. All errors of a config are reported at once, each with its source and its dotted key.

Fields may be bool, int, float, str, Path, an Enum or a Literal (words in files), `X | None` (the word "none"),
`tuple[X, ...]`, `tuple[X, Y]`, `dict[str, X]` and further dataclasses.

A dataclass may name its deprecated keys and values: `renamed_keys: ClassVar = {"old": "new"}` and
`renamed_values: ClassVar = {"key": {"old": "new"}}`. They keep working, with a warning that names the new word.
"""

from __future__ import annotations

import os
import re
import tomllib
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from roadworthy.errors import ConfigError, DeprecatedNameWarning, UsageError
from roadworthy.spelling import closest

Config = TypeVar("Config")

_FEW = 16  # errors list up to this many known names; of more, they give only the nearest
_UNSET = object()


@dataclass(frozen=True)
class Layer:
    """Values from one source: a file, `--set`, or a flag."""

    source: str
    values: Mapping[str, Any]
    is_record: bool = False  # written by an earlier version, perhaps: deprecated names are read without a warning


@dataclass(frozen=True)
class Resolved(Generic[Config]):
    """A config, and the source of each value that is not a default, by dotted key."""

    config: Config
    origins: Mapping[str, str]


def load(path: str | Path, cls: type[Config], overrides: Iterable[str] = (), section: str | None = None) -> Config:
    """Read a TOML file, or one section of it (a dotted key), with `key=value` overrides on top."""
    return resolve(cls, [read(path, section), parse_overrides(overrides)]).config


def parse(mapping: Mapping[str, Any], cls: type[Config], source: str = "config", *, is_record: bool = False) -> Config:
    """Check plain values, such as those of a parsed file, and build the dataclass from them."""
    return resolve(cls, [Layer(source, mapping, is_record)]).config


def read(path: str | Path, section: str | None = None) -> Layer:
    """Read a TOML file, or one section of it, without checking its values."""
    path = Path(path)
    try:
        values: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"can't read config file {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"config file {str(path)!r} is not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_fault(str(path), error)) from error
    key = ""
    for name in section.split(".") if section else []:
        if name not in values:
            raise ConfigError(f"{path}: there is no section [{section}]; {_known(name, values, key)}")
        key, values = _join(key, name), values[name]
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {key} is {_given(values)}, expected a section")
    return Layer(f"{path} [{section}]" if section else str(path), values)


def parse_overrides(overrides: Mapping[str, Any] | Iterable[str], source: str = "--set") -> Layer:
    """Read overrides into a layer.

    Args:
        overrides: Strings `a.b=c`, read as TOML; what is not a TOML value is taken as text, so that words need no
            quotes. Or a mapping of dotted keys to values, which gets the source "set".
        source: What errors and origins call the strings.
    """
    values: dict[str, Any] = {}
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            value = str(value) if isinstance(value, Path) else value
            for name in reversed(key.split(".")):
                value = {name: value}
            values = _merged(values, value)
        return Layer("set", values)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or "\n" in override or not key.strip():
            raise ConfigError(f"{source} {override!r} is not of the form key=value, as in {source} traffic.density=0.5")
        try:
            parsed = tomllib.loads(f"{key} = {text}")
        except tomllib.TOMLDecodeError:
            try:
                parsed = _with_leaf(tomllib.loads(f"{key} = 0"), text.strip())
            except tomllib.TOMLDecodeError as error:
                raise ConfigError(
                    f"{source} {override!r}: {key.strip()!r} is not a key, as in traffic.density"
                ) from error
        values = _merged(values, parsed)
    return Layer(source, values)


def resolve(cls: type[Config], layers: Iterable[Layer]) -> Resolved[Config]:
    """Merge layers, of which later ones override earlier ones, check every value and build the dataclass."""
    layers = [
        Layer(layer.source, _with_new_names(cls, layer.values, layer.source, "", is_record=layer.is_record))
        for layer in layers
    ]
    origins: dict[str, str] = {}
    values: dict[str, Any] = {}
    for layer in layers:
        values = _merged(values, layer.values)
        for key in _leaves(layer.values):
            origins = {old: source for old, source in origins.items() if not _overlap(old, key)}
            origins[key] = layer.source
    builder = _Builder(origins, " and ".join(dict.fromkeys(layer.source for layer in layers if layer.values)))
    config = builder.section(cls, values, "", _UNSET)
    if builder.faults:
        raise ConfigError("\n".join(builder.faults))
    return Resolved(config, origins)


def plain(config: Any) -> Any:
    """Return a config as tables, lists and words for TOML and JSON: the inverse of `parse`. None is the word "none"."""
    if is_dataclass(config):
        return {f.name: plain(getattr(config, f.name)) for f in fields(config) if f.init}
    if isinstance(config, Mapping):
        return {key: plain(value) for key, value in config.items()}
    if isinstance(config, tuple):
        return [plain(value) for value in config]
    if isinstance(config, Enum):
        return _word(config)
    if isinstance(config, Path):
        return str(config)
    return "none" if config is None else config


class _Builder:
    """Builds dataclasses from plain values, and collects errors."""

    def __init__(self, origins: Mapping[str, str], source: str) -> None:
        self.origins = origins
        self.source = source
        self.faults: list[str] = []

    def fault(self, key: str, message: str) -> Any:
        """Record an error with the sources of the key, or of the keys below it."""
        sources = [source for known, source in self.origins.items() if _overlap(known, key)] if key else []
        where = " and ".join(dict.fromkeys(sources)) or self.source
        self.faults.append(f"{where}: {message}" if where else message)
        return _UNSET

    def section(self, cls: Any, values: Any, key: str, base: Any) -> Any:
        """Build a dataclass; missing values come from base, the outer default, if there is one."""
        if not isinstance(values, Mapping):
            return self.fault(key, f"{key} is {_given(values)}, expected a section with {_names(cls)}")
        hints = get_type_hints(cls)
        known = {f.name: f for f in fields(cls) if f.init}
        fault_count = len(self.faults)
        for name in values:
            if name not in known:
                path = _join(key, name)
                self.fault(path, f"{path} is unknown; {_known(name, known, key)}")
        arguments = {}
        for name, f in known.items():
            default = _default(f) if base is _UNSET else getattr(base, name)
            if is_dataclass(hints[name]) and (name in values or default is _UNSET):
                path, given = _join(key, name), values.get(name, {})
                arguments[name] = (
                    self.section(hints[name], given, path, default)
                    if isinstance(given, Mapping)
                    else self.fault(path, _not_a_section(path, given, hints[name], known))
                )
            elif name in values:
                arguments[name] = self.value(hints[name], values[name], _join(key, name))
            elif default is _UNSET:
                self.fault(key, f"{_join(key, name)} is missing, expected {_expected(hints[name])}")
            else:
                arguments[name] = default
        if len(self.faults) > fault_count:
            return _UNSET
        try:
            return cls(**arguments)
        except (UsageError, ValueError) as error:
            return self.fault(key, f"{key}: {error}" if key else str(error))

    def value(self, kind: Any, value: Any, key: str, expected: str = "") -> Any:
        """Check one value against its declared type; expected: what errors say is allowed."""
        origin, arguments = get_origin(kind), get_args(kind)
        if is_dataclass(kind):
            return self.section(kind, value, key, _UNSET)
        if origin in (Union, types.UnionType):
            return self.alternatives(arguments, value, key, kind)
        if origin is tuple and isinstance(value, (list, tuple)):
            return self.items(arguments, value, key, kind)
        if origin in (dict, Mapping):
            if isinstance(value, Mapping):
                return {name: self.value(arguments[1], item, _join(key, name)) for name, item in value.items()}
        elif origin is Literal:
            if any(value == choice and type(value) is type(choice) for choice in arguments):
                return value
        elif kind is Any:
            return value
        elif isinstance(kind, type):
            if issubclass(kind, Enum):
                chosen = [member for member in kind if _word(member) == value]
                if chosen:
                    return chosen[0]
            elif kind is float and type(value) is int:
                return float(value)
            elif kind is int and type(value) is float and value.is_integer():
                return int(value)
            elif kind is str and isinstance(value, Path):
                return str(value)
            elif kind is Path and isinstance(value, (str, Path)):
                return self.path(str(value), key)
            elif type(value) is kind:
                return value
        return self.fault(key, f"{key} is {_given(value)}, expected {expected or _expected(kind)}")

    def alternatives(self, kinds: tuple[Any, ...], value: Any, key: str, kind: Any) -> Any:
        """Return the value for the first alternative that fits; TOML has no null, so None is the word "none"."""
        if type(None) in kinds and (value is None or value == "none"):
            return None
        others = [alternative for alternative in kinds if alternative is not type(None)]
        for alternative in others[:-1]:
            trial = _Builder(self.origins, self.source)
            result = trial.value(alternative, value, key)
            if not trial.faults:
                return result
        return self.value(others[-1], value, key, expected=_expected(kind))

    def items(self, kinds: tuple[Any, ...], values: Any, key: str, kind: Any) -> Any:
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            kinds = (kinds[0],) * len(values)
        if len(kinds) != len(values):
            return self.fault(key, f"{key} is {_given(values)} with {len(values)} items, expected {_expected(kind)}")
        return tuple(self.value(k, v, f"{key}[{i}]") for i, (k, v) in enumerate(zip(kinds, values, strict=True)))

    def path(self, text: str, key: str) -> Any:
        """Expand ~ and $VAR. An undefined variable is an error: it would silently name another path."""
        for match in re.finditer(r"\$(?:\{(\w+)\}|(\w+))", text):
            name = match[1] or match[2]
            if name not in os.environ:
                return self.fault(key, f"{key} is {text!r}, but the variable {name} is not defined; set it first")
        expanded = os.path.expanduser(os.path.expandvars(text))
        if expanded.startswith("~"):
            return self.fault(key, f"{key} is {text!r}, but there is no user {expanded[1:].split('/')[0]!r}")
        return Path(expanded)


def _with_new_names(cls: Any, values: Any, source: str, prefix: str, *, is_record: bool) -> Any:
    """Replace the deprecated keys and values of a dataclass and of those within it, each with a warning."""
    if not isinstance(values, Mapping):
        return values
    keys: Mapping[str, str] = getattr(cls, "renamed_keys", {})
    words: Mapping[str, Mapping[str, str]] = getattr(cls, "renamed_values", {})
    kinds = get_type_hints(cls)
    result: dict[str, Any] = {}
    for name, value in values.items():
        new = keys.get(name, name)
        if new != name:
            if new in values:
                raise ConfigError(
                    f"{source}: {_join(prefix, name)} is the deprecated name of {new}, and both are given; "
                    f"keep {_join(prefix, new)}"
                )
            if not is_record:
                _warn_of(f"{source}: {_join(prefix, name)} is deprecated; use {_join(prefix, new)}")
        word = words.get(new, {}).get(value) if isinstance(value, str) else None
        if word is not None:
            if not is_record:
                _warn_of(f"{source}: {_join(prefix, new)} = {value!r} is deprecated; use {word!r}")
            value = word
        inner = next((kind for kind in (kinds.get(new), *get_args(kinds.get(new))) if is_dataclass(kind)), None)
        result[new] = (
            value if inner is None else _with_new_names(inner, value, source, _join(prefix, new), is_record=is_record)
        )
    return result


def _warn_of(message: str) -> None:
    warnings.warn(message, DeprecatedNameWarning, stacklevel=2)


def _merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(lower)
    for key, value in upper.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = _merged(result[key], value) if both else value
    return result


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        key = _join(prefix, name)
        if isinstance(value, Mapping):
            yield from _leaves(value, key)
        else:
            yield key


def _with_leaf(tree: dict[str, Any], leaf: str) -> dict[str, Any]:
    return {key: _with_leaf(value, leaf) if isinstance(value, dict) else leaf for key, value in tree.items()}


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _not_a_section(key: str, given: Any, cls: Any, known: Iterable[str]) -> str:
    """Return the error for a value in place of a section; a setting with nearly the same name may have been meant."""
    prefix, _, name = key.rpartition(".")
    near = closest(name, [other for other in known if other != name])
    hint = f"; did you mean {_join(prefix, near)}?" if near and near.startswith(name) else ""
    return f"{key} is {_given(given)}, expected a section with {_names(cls)}{hint}"


def _overlap(one: str, other: str) -> bool:
    """Return whether two keys are equal, or one is inside the other."""
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def _default(f: Field[Any]) -> Any:
    if f.default_factory is not MISSING:
        return f.default_factory()
    return _UNSET if f.default is MISSING else f.default


def _word(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name.lower()


def _names(cls: Any) -> str:
    return ", ".join(f.name for f in fields(cls) if f.init)


def _known(name: str, names: Iterable[str], prefix: str) -> str:
    names = list(names)
    nearest = closest(name, names)
    hints = [f"did you mean {_join(prefix, nearest)}?"] if nearest else []
    if len(names) <= _FEW or not nearest:
        hints.append(f"known: {', '.join(names) or 'none'}")
    return " ".join(hints)


_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    dict: "a table",
    list: "a list",
}


def _given(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value)
    name = _TYPE_NAMES.get(type(value), type(value).__name__)
    return f"{shown if len(shown) <= 60 else shown[:57] + '...'} ({name})"


def _expected(kind: Any) -> str:
    """Describe a declared type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join('"none"' if a is type(None) else _expected(a) for a in arguments)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"a list, each item {_expected(arguments[0])}"
        return f"a list of {len(arguments)}: " + ", ".join(map(_expected, arguments))
    if origin is not None:
        return f"a table, each value {_expected(arguments[1])}"
    if is_dataclass(kind):
        return f"a section with {_names(kind)}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(map(_word, kind))
    return _TYPE_NAMES.get(kind, str(getattr(kind, "__name__", kind)))


def _syntax_fault(source: str, error: tomllib.TOMLDecodeError) -> str:
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
    return f"{source}, line {match[2]}, column {match[3]}: {match[1]}" if match else f"{source}: {error}"
