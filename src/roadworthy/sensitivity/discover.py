"""Infer factors without a factors file: the quantities that differ between rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.sensitivity.driving import START
from roadworthy.sensitivity.factors import Categorical, Continuous, Factor
from roadworthy.sensitivity.names import flattened, is_called
from roadworthy.sensitivity.sources import factor_tables, table_of

MOST_CHOICES = 50
USUAL_OUTCOMES = ("success", "score")
EXAMPLE = """factors:
  light: {type: continuous, range: [0, 2000]}
  object: {type: categorical, choices: [box, ball]}"""


def discovered(rows: Iterable[Mapping[str, Any]]) -> tuple[Factor, ...]:
    """Return the factors of rows: numbers over their observed range, words and booleans as choices.

    Constant quantities are left out, and what driving runs have without naming it where some rows lack it. A factor is
    named by the shortest unique suffix of its dotted name.

    Raises:
        UsageError: if nothing differs, or a factor mixes numbers with words or has too many different words.
    """
    seen: dict[str, list[Any]] = {}
    lacking: set[str] = set()
    for row in rows:
        values = _values(row)
        for name, value in values.items():
            seen.setdefault(name, []).append(value)
        if table_of(row, "outcomes"):  # otherwise the row can't be used anyway
            lacking.update(name for name in START if name not in values)
    seen = {name: values for name, values in seen.items() if name not in lacking}
    factors = [
        factor for name, values in seen.items() if (factor := _factor(_shortest(name, list(seen)), values)) is not None
    ]
    if not factors:
        reason = f"the same in all rows: {', '.join(seen)}" if seen else "the rows have none"
        raise UsageError(
            f"no factor differs between the rows ({reason}); name the factors with --factors FILE, a file as\n{EXAMPLE}"
        )
    return tuple(factors)


def usual_outcome(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the outcome to explain if none is named: success, or the score of driving runs, which have no success."""
    names = {name for row in rows for name in table_of(row, "outcomes")}
    return next((name for name in USUAL_OUTCOMES if name in names), USUAL_OUTCOMES[0])


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    try:
        tables = factor_tables(row)
    except ValueError:  # the row is rejected later
        return {}
    table = next((table for table in tables.values() if table), {})
    return {name: value for name, value in flattened(table) if isinstance(value, bool | int | float | str)}


def _shortest(name: str, names: list[str]) -> str:
    """Return the shortest dotted suffix of a name that is unique."""
    parts = name.split(".")
    ends = (".".join(parts[k:]) for k in range(len(parts) - 1, -1, -1))
    return next(end for end in ends if end == name or sum(is_called(end, "", other) for other in names) == 1)


def _factor(name: str, values: list[Any]) -> Factor | None:
    is_number = {isinstance(value, int | float) and not isinstance(value, bool) for value in values}
    if len(is_number) > 1:
        raise UsageError(f"factor {name!r} is a number in some rows and a word in others; name it with --factors FILE")
    if is_number == {True}:
        low, high = min(values), max(values)
        return Continuous(name, float(low), float(high)) if low < high else None
    choices = sorted(set(values), key=str)
    if len(choices) > MOST_CHOICES:
        raise UsageError(f"factor {name!r} has {len(choices)} different words; name the factors with --factors FILE")
    return Categorical(name, tuple(choices)) if len(choices) > 1 else None
