"""Convert the records of a log to episodes, value by value, with errors that name the place and the column."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from roadworthy.record.readers.guess import is_missing, number_of, plain
from roadworthy.record.readers.log import Record, Role, printable
from roadworthy.record.readers.success import wrong_success

if TYPE_CHECKING:
    from roadworthy.record.readers.mapping import ColumnMapping

_CRASHED = ("failed", "crashed", "crash", "error", "errored", "exception", "aborted", "killed", "cancelled", "oom")
_MOST_SEED = 2**64
_LONGEST = 1e15


class Episode(NamedTuple):
    """An episode of a log."""

    job: str
    policy: str
    id: str | None  # as the log names it
    scenario: str
    cluster: str | None
    seed: int | None
    replicate: int | None
    environment: str | None
    order: float | None
    length: float | None  # in steps or seconds
    success: float | None  # from 0 to 1; None: no data
    error: str | None  # why it crashed
    factors: dict[str, float | str]
    outcomes: dict[str, float]


class Converter:
    """Converts the records of one pass over a log."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping, self._log = mapping, mapping.log
        self._first: frozenset[str] = frozenset()  # the columns of the first record
        self._file_job = mapping.log.job or mapping.log.path.stem
        self._in_environment: dict[tuple[str, str, str | None], int] = {}
        self._mark = ""
        seeds = mapping.columns.get(mapping.name(Role.SEED) or "")
        self._has_own_seeds = seeds is not None and not seeds.is_constant

    def run(self) -> Iterator[tuple[Record, Episode]]:
        for number, record in enumerate(self._log.records()):
            yield record, self._episode(record, number)

    def _episode(self, record: Record, number: int) -> Episode:
        mapping, values = self._mapping, record.values
        roles = mapping.roles
        by_role: dict[Role, list[tuple[str, Any]]] = {}
        for name, value in values.items():
            role = roles.get(name) or mapping.role_of(record, name)
            if role is not Role.IGNORE and not is_missing(value):
                by_role.setdefault(role, []).append((name, value))
        self._first = self._first or frozenset(values)
        if self._first.isdisjoint(values):
            raise self._log.error(
                record.place, "has none of the columns of the first episode; are two formats in one file?"
            )
        first = {role: parts[0] for role, parts in by_role.items()}
        job = self._joined(by_role.get(Role.JOB)) or self._file_job
        policy = self._joined(by_role.get(Role.POLICY)) or self._log.policy
        error = self._error(first)
        seed = self._whole(record, first.get(Role.SEED), _MOST_SEED)
        replicate = self._whole(record, first.get(Role.REPLICATE), 2**31)
        cluster = self._joined(by_role.get(Role.CLUSTER)) or None
        environment = self._joined(by_role.get(Role.ENVIRONMENT)) or None
        id = self._joined(by_role.get(Role.ID)) or None
        outcomes: dict[str, float] = {}
        for name, value in by_role.get(Role.OUTCOME, ()):
            outcomes[mapping.outcome_names[name]] = self._number(record, name, value)
        length = None
        if Role.LENGTH in first:
            name, value = first[Role.LENGTH]
            length = outcomes[mapping.outcome_names[name]] = self._number(record, name, value)
            if not 0.0 <= length < _LONGEST:
                raise self._log.error(record.place, f"{name} is {value!r}; a length is from 0 to {_LONGEST:g}")
        success = self._success(record, first.get(Role.SUCCESS))
        factors = {mapping.factor_names[n]: self._factor(record, n, v) for n, v in by_role.get(Role.FACTOR, ())}
        scenario = self._scenario(by_role.get(Role.SCENARIO), cluster, seed, id, (job, policy, environment), number)
        order = self._time(record, first.get(Role.ORDER))
        return Episode(
            *(job, policy, id, scenario, cluster, seed, replicate, environment, order, length),
            *(success, error, factors, outcomes),
        )

    def _scenario(
        self,
        parts: list[tuple[str, Any]] | None,
        cluster: str | None,
        seed: int | None,
        id: str | None,
        where: tuple[str, str, str | None],
        number: int,
    ) -> str:
        """Return a name for the situation that is the same in another policy's log of it."""
        if parts:
            if len(parts) == 1:
                return printable(_text(parts[0][1]))
            return ",".join(f"{plain(name)}={printable(_text(value))}" for name, value in parts)
        prefix = f"{cluster}," if cluster else ""
        if seed is not None and self._has_own_seeds:
            return f"{prefix}seed-{seed}"
        if id is not None:
            return f"{prefix}{id}"
        if where[2] is not None:
            place = self._in_environment[where] = self._in_environment.get(where, -1) + 1
            return f"{prefix}env-{where[2]}-episode-{place}"
        # Nothing says which episode of another log belongs to this one: a name that no other log has.
        self._mark = self._mark or file_hash(self._log.path)[:8]
        return f"{prefix}row-{number + 1}-of-{self._mark}"

    @staticmethod
    def _joined(parts: list[tuple[str, Any]] | None) -> str:
        return " ".join(printable(_text(value)) for _, value in parts) if parts else ""

    def _success(self, record: Record, part: tuple[str, Any] | None) -> float | None:
        if part is None:
            return None
        expected = self._mapping.success
        assert expected is not None
        value = expected.value(part[1])
        if value is None:
            raise self._log.error(record.place, f"{part[0]}: {wrong_success(part[1], expected)}")
        return value

    def _error(self, first: Mapping[Role, tuple[str, Any]]) -> str | None:
        if Role.ERROR in first and first[Role.ERROR][1] is not False:
            return printable(str(first[Role.ERROR][1]))
        status = first.get(Role.STATUS)
        if status is not None and plain(str(status[1])) in _CRASHED:
            # With a success beside it, `failed` is about the task, not about the program.
            if Role.SUCCESS not in first or plain(str(status[1])) not in ("failed", "aborted"):
                return f"{status[0]} is {printable(str(status[1]))}"
        return None

    def _whole(self, record: Record, part: tuple[str, Any] | None, below: int) -> int | None:
        if part is None:
            return None
        name, value = part
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, float | str):
            number = number_of(value)
            value = int(number) if number is not None and math.isfinite(number) and number % 1.0 == 0.0 else value
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below:
            raise self._log.error(
                record.place,
                f"{name} is {printable(repr(part[1]))[:60]}; expected a whole number from 0, below {below}; if it is "
                f"none, give --map {name}=scenario or --map {name}=ignore",
            )
        return value

    def _number(self, record: Record, name: str, value: Any) -> float:
        number = number_of(value)
        if number is None and isinstance(value, str) and self._mapping.success is not None:
            number = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}.get(value.strip().lower())
        if number is None or not math.isfinite(number):
            what = (
                "an infinite number" if number is not None else f"{type(value).__name__} {printable(repr(value))[:60]}"
            )
            raise self._log.error(
                record.place, f"{name} is {what}; expected a finite number or true/false, or give --map {name}=ignore"
            )
        return number

    def _factor(self, record: Record, name: str, value: Any) -> float | str:
        number = None if isinstance(value, str) and self._mapping.is_word.get(name, True) else number_of(value)
        if number is not None and not math.isfinite(number):
            raise self._log.error(
                record.place, f"{name} is an infinite number; correct it, or give --map {name}=ignore"
            )
        if isinstance(value, str) and number is None:
            self._mapping.is_word[name] = True
        return printable(str(value)) if number is None or self._mapping.is_word.get(name, False) else number

    def _time(self, record: Record, part: tuple[str, Any] | None) -> float | None:
        if part is None:
            return None
        number = number_of(part[1])
        if number is None:
            try:
                moment = datetime.fromisoformat(str(part[1]).strip())
                number = (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
                number -= moment.utcoffset().total_seconds() if moment.tzinfo else 0.0  # type: ignore[union-attr]
            except (ValueError, OverflowError):
                number = None
        if number is None or not math.isfinite(number):
            raise self._log.error(
                record.place,
                f"{part[0]} is {printable(repr(part[1]))[:60]}; expected a number or a time such as 2026-07-06T09:08; "
                f"or give --map {part[0]}=ignore",
            )
        return number


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder, of the logs in it."""
    found = hashlib.sha256()
    for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                found.update(block)
    return found.hexdigest()


def _text(value: Any) -> str:
    """Return a value as a part of a name: whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value).strip()
