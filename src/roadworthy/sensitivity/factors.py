"""Factors: named quantities that vary between episodes, read from a YAML or TOML file.

    factors:
      light: {type: continuous, range: [0, 2000]}
      object: {type: categorical, choices: [box, can, ball]}

Analyses use units instead of values: 0 to 1 over the range of a continuous factor, the index of the choice of a
categorical factor. Curves and distributions are averaged over uniform units.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ConfigError

Choice = str | int | float | bool


@dataclass(frozen=True)
class Continuous:
    """A factor that takes any value of a range. A type with another spacing of values extends this class."""

    kind: ClassVar[str] = "continuous"
    # The type in files.
    key: ClassVar[str] = "range"
    # The key of its values in files.

    name: str
    low: float
    high: float

    @classmethod
    def parse(cls, name: str, values: Sequence[Any]) -> Self:
        """Return the factor with these values of a file; ValueError says what is wrong with them."""
        if len(values) == 1 and isinstance(values[0], Sequence) and not isinstance(values[0], str):
            values = values[0]  # [[low, high]]: a one-dimensional factor in the format of other tools
        is_range = len(values) == 2 and all(
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values
        )
        if not is_range or values[0] >= values[1]:
            raise ValueError(
                f"range is {list(values)!r}, expected [low, high] with low below high; use one factor per dimension of "
                "a vector"
            )
        return cls(name, float(values[0]), float(values[1]))

    def table(self) -> dict[str, Any]:
        """Return the factor as a table of a file."""
        return {"type": self.kind, self.key: [self.low, self.high]}

    def unit(self, value: Any) -> float:
        """Return the position of a value in the range, 0 to 1; ValueError says why it has none."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{self.name} is {value!r}, expected a number")
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} is {value:g}, outside its range {self.low:g} to {self.high:g}")
        return (value - self.low) / (self.high - self.low)

    def value(self, unit: float) -> float:
        """Return the value at a position in the range."""
        return self.low + unit * (self.high - self.low)

    def placed(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the places of units on an axis of values."""
        return self.low + units * (self.high - self.low)

    @property
    def measure(self) -> float:
        """The factor that makes the density of uniform sampling 1."""
        return self.high - self.low


@dataclass(frozen=True)
class Categorical:
    """A factor that is one of several choices."""

    kind: ClassVar[str] = "categorical"
    key: ClassVar[str] = "choices"

    name: str
    choices: tuple[Choice, ...]

    @classmethod
    def parse(cls, name: str, values: Sequence[Any]) -> Self:
        """Return the factor with these values of a file; ValueError says what is wrong with them."""
        if len(values) < 2 or not all(isinstance(value, str | int | float) for value in values):
            raise ValueError(f"choices are {list(values)!r}, expected two or more words or numbers")
        if len({(value, isinstance(value, bool)) for value in values}) < len(values):
            raise ValueError(f"choices are {list(values)!r}, expected each of them once")
        return cls(name, tuple(values))

    def table(self) -> dict[str, Any]:
        """Return the factor as a table of a file."""
        return {"type": self.kind, self.key: list(self.choices)}

    def unit(self, value: Any) -> float:
        """Return the index of a choice; ValueError says why it has none."""
        for number, choice in enumerate(self.choices):
            if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                return float(number)
        raise ValueError(f"{self.name} is {value!r}, expected one of {', '.join(map(str, self.choices))}")

    def value(self, unit: float) -> Choice:
        """Return the choice with this index."""
        return self.choices[round(unit)]

    def placed(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the places of units on an axis of choices."""
        return units

    @property
    def measure(self) -> float:
        """The factor that makes the probability of uniform sampling 1."""
        return float(len(self.choices))


Factor = Continuous | Categorical
# The types of factors, by their words in files.
TYPES: dict[str, type[Factor]] = {cls.kind: cls for cls in (Continuous, Categorical)}


def read_factors(path: str | Path) -> tuple[Factor, ...]:
    """Read a factors file; its suffix says whether it is YAML or TOML."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"can't read factors file {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"factors file {str(path)!r} is not UTF-8 text (byte {error.start})") from error
    return parse_factors(_parsed(text, path), str(path))


def parse_factors(content: Any, source: str = "factors") -> tuple[Factor, ...]:
    """Check the content of a factors file; one error reports all faults."""
    table = content.get("factors") if isinstance(content, Mapping) else None
    if not isinstance(table, Mapping) or not table:
        raise ConfigError(
            f"{source}: expected a table 'factors' with an entry per factor, such as "
            "light: {type: continuous, range: [0, 2000]} or object: {type: categorical, choices: [box, can]}"
        )
    found: list[Factor] = []
    faults: list[str] = []
    for name, entry in table.items():
        try:
            found.append(_factor(str(name), entry))
        except ValueError as error:
            faults.append(f"{source}: factors.{name}: {error}")
    if faults:
        raise ConfigError("\n".join(faults))
    return tuple(found)


def spread_units(factors: Sequence[Factor], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn points of the unit cube (n, d) into units that are uniform over ranges and choices."""
    units = points.copy()
    for column, factor in enumerate(factors):
        if isinstance(factor, Categorical):
            count = len(factor.choices)
            units[:, column] = np.minimum(np.floor(points[:, column] * count), count - 1)
    return units


def _parsed(text: str, path: Path) -> Any:
    ending = path.suffix.lower()
    if ending == ".toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: {error}") from error
    if ending in (".yaml", ".yml"):
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: {' '.join(str(error).split())}") from error
    raise ConfigError(f"factors file {str(path)!r} ends in {ending or 'nothing'!r}, expected .yaml, .yml or .toml")


def _factor(name: str, entry: Any) -> Factor:
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {entry!r}, expected type: continuous with a range, or type: categorical with choices")
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise ValueError(f"type is {kind!r}, expected {' or '.join(TYPES)}")
    key = TYPES[kind].key
    for given in entry:
        if given not in ("type", key):
            near = get_close_matches(str(given), ["type", key], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"key {given!r} is unknown; a {kind} factor has type and {key}{hint}")
    values = entry.get(key)
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ValueError(f"{key} is {values!r}, expected a list")
    return TYPES[kind].parse(name, values)
