"""A log of another tool as a stream of flat records, one for each episode, whatever the format of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from roadworthy.errors import RecordError

# Limits that keep a damaged or hostile file from filling the memory.
MOST_COLUMNS = 2_000
DEEPEST = 8  # nested tables
LONGEST_VECTOR = 64
LONGEST_TEXT = 4_000  # characters of a value that is kept


class Role(StrEnum):
    """What a column of a log means."""

    SUCCESS = "success"
    OUTCOME = "outcome"
    FACTOR = "factor"
    SEED = "seed"
    SCENARIO = "scenario"
    CLUSTER = "cluster"
    REPLICATE = "replicate"
    LENGTH = "length"
    ENVIRONMENT = "environment"
    ORDER = "order"
    JOB = "job"
    POLICY = "policy"
    ID = "id"
    STATUS = "status"
    ERROR = "error"
    IGNORE = "ignore"


MEANINGS = {
    Role.SUCCESS: "whether the episode succeeded: true/false, 0/1, a share, a percentage, a word, or C/I/P/N",
    Role.OUTCOME: "another result of the episode, as a number or true/false",
    Role.FACTOR: "what was varied between episodes, as a number or a word",
    Role.SEED: "the seed of the episode's random draws, a whole number",
    Role.SCENARIO: "the situation; several columns together name it",
    Role.CLUSTER: "what several scenarios share, such as the map or the task; it widens intervals",
    Role.REPLICATE: "the number of the repetition of a scenario",
    Role.LENGTH: "how long the episode lasted, in steps or, by the name of the column, in seconds",
    Role.ENVIRONMENT: "the parallel environment that ran the episode",
    Role.ORDER: "when the episode finished: a number or a time",
    Role.JOB: "the evaluation; every job becomes a run of its own",
    Role.POLICY: "the policy; every policy becomes a run of its own",
    Role.ID: "the name of the episode",
    Role.STATUS: "completed, or a word for an episode that crashed",
    Role.ERROR: "why the episode crashed; empty if it did not",
    Role.IGNORE: "left out",
}


class Record(NamedTuple):
    """One episode as the log holds it."""

    place: str  # in the file, such as `line 12`, for errors
    values: dict[str, Any]  # by column: texts, numbers, booleans and None


@dataclass(frozen=True)
class Log:
    """An opened log: what the format says about it, and its records."""

    path: Path
    format: str
    records: Callable[[], Iterator[Record]]  # starts another pass over the file
    roles: Mapping[str, Role] = field(default_factory=dict)  # of columns; `name.*` is everything below a table
    job: str = ""  # of records without a job; "": the name of the file
    policy: str = ""
    planned: tuple[tuple[str, int], ...] = ()  # scenario and replicate of the episodes that the log should have
    has_plan: bool = False  # whether the tool fixes the number of episodes of each scenario before the first one
    reported: float | None = None  # the success rate that the log itself states
    facts: Mapping[str, Any] = field(default_factory=dict)  # more about the evaluation, kept in run.json
    notes: tuple[str, ...] = ()  # for the user

    def error(self, place: str, reason: str) -> RecordError:
        """Return the error for a place of the file."""
        return RecordError(f"{self.path}, {printable(place)}: {printable(reason)}")


def printable(text: str) -> str:
    """Return a text without control characters, which could change what a terminal shows; they are escaped."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}..."
    if text.isprintable():
        return text
    return "".join(part if part.isprintable() else repr(part)[1:-1] for part in text)


def flat(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a nested table with dotted names, vectors as `name[k]`; lists of tables and long lists are left out."""
    if not any(isinstance(value, dict | list) for value in values.values()):
        return dict(values)
    found: dict[str, Any] = {}
    _flatten(values, "", found, where, 0)
    return found


def _flatten(values: Mapping[str, Any], prefix: str, found: dict[str, Any], where: str, depth: int) -> None:
    if depth > DEEPEST:
        raise RecordError(f"{where}: {prefix.rstrip('.')[:80]!r} is nested more than {DEEPEST} tables deep")
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _flatten(value, f"{name}.", found, where, depth + 1)
        elif isinstance(value, list):
            if len(value) <= LONGEST_VECTOR and not any(isinstance(part, dict | list) for part in value):
                found.update((f"{name}[{number}]", part) for number, part in enumerate(value))
        else:
            found[name] = value
    if len(found) > MOST_COLUMNS:
        raise RecordError(f"{where}: has more than {MOST_COLUMNS} values; an episode has one row")
