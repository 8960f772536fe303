"""Read files with sections: TOML or ini files of the user, or a shipped suite by its name."""

from __future__ import annotations

import configparser
import re
import tomllib
from importlib.resources import files
from pathlib import Path

from roadworthy.config import Layer, parse_overrides, read
from roadworthy.errors import ConfigError
from roadworthy.plugins import nearest

_INI = (".ini", ".cfg")
_SUITES = files("roadworthy.evaluation") / "suites"


def suite_names() -> tuple[str, ...]:
    """Return the names of the suites that come with Roadworthy."""
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in _SUITES.iterdir() if entry.name.endswith(".toml"))
    )


def read_file(source: str | Path) -> Layer:
    """Read all values of a file, unchecked. A word without a dot or slash names a suite, unless it is a file."""
    path = Path(source).expanduser()
    if path.suffix.lower() in _INI:
        return _read_ini(path)
    if path.suffix or path.parent != Path() or path.is_file():
        return read(path)
    if str(source) not in suite_names():
        raise ConfigError(f"{str(source)!r} is neither a file nor a suite; {nearest(str(source), suite_names())}")
    text = (_SUITES / f"{source}.toml").read_text(encoding="utf-8")
    return Layer(f"suite {source}", tomllib.loads(text))


def _read_ini(path: Path) -> Layer:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case, as in TOML
    try:
        parser.read_string(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"can't read config file {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"config file {str(path)!r} is not UTF-8 text (byte {error.start})") from error
    except configparser.Error as error:
        raise ConfigError(f"{path}: {' '.join(error.message.split())}") from error
    pairs = [f"{name}.{key}={_bare(text)}" for name in parser.sections() for key, text in parser.items(name)]
    empty = [f"{name}={{}}" for name in parser.sections() if not parser.options(name)]
    return parse_overrides([*empty, *pairs], str(path))


def _bare(text: str) -> str:
    """Return a value on one line without its comment; a valid TOML value is returned as it is."""
    text = " ".join(text.split("\n"))
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return re.split(r"\s[#;]", text, maxsplit=1)[0].strip()
    return text
