"""Turn the records of a log into episodes, by the role of each column."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from roadworthy.errors import RecordError, UsageError
from roadworthy.plugins import nearest
from roadworthy.record.readers.guess import Column, declared, guess_roles, head, is_missing, number_of, plain, profile
from roadworthy.record.readers.guess import rest_role as _rest_role
from roadworthy.record.readers.log import Log, Record, Role, printable
from roadworthy.record.readers.success import Success, wrong_success

SECONDS = ("s", "sec", "secs", "second", "seconds", "time", "duration")
_CRASHED = ("failed", "crashed", "crash", "error", "errored", "exception", "aborted", "killed", "cancelled", "oom")
_MOST_SEED = 2**64
_SINGLE = (Role.SUCCESS, Role.SEED, Role.LENGTH, Role.ENVIRONMENT, Role.ORDER, Role.ID, Role.STATUS, Role.ERROR)


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


@dataclass
class ColumnMapping:
    """The roles of the columns of a log."""

    log: Log
    columns: dict[str, Column]  # by their first records
    roles: dict[str, Role]
    given: Mapping[str, Role]  # by the user
    success: Success | None
    is_word: dict[str, bool] = field(default_factory=dict)  # of factors: whether their values are words
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, log: Log, given: Mapping[str, Role] | None = None) -> ColumnMapping:
        """Guess the roles from the first records; the user's come first, then those of the format."""
        given = dict(given or {})
        columns = profile(head(log.records()))
        if not columns:
            raise RecordError(f"{log.path}: holds no episodes")
        for name in given:
            if not any(declared(column, {name: Role.IGNORE}) for column in columns):
                raise UsageError(f"{log.path}: has no column {name!r}; {nearest(name, list(columns)[:60])}")
        roles = guess_roles(columns, {**log.roles, **given})
        for name, role in given.items():
            if role in _SINGLE:  # the user's choice replaces the guess
                for other in [other for other, had in roles.items() if had is role and declared(other, given) is None]:
                    roles[other] = _without(role, columns[other])
        for role in _SINGLE:
            several = [name for name, had in roles.items() if had is role]
            if len(several) > 1:
                names = " and ".join(map(repr, several[:3]))
                raise UsageError(f"{log.path}: {names} both have the role {role.value}; one column can have it")
        mapping = cls(log, columns, roles, given, None)
        mapping._find_success()
        mapping.is_word = {name: not columns[name].is_numeric for name in mapping.names(Role.FACTOR) if name in columns}
        return mapping

    def _find_success(self) -> None:
        """Find out how success is written; raise if no column says it and no outcome was asked for."""
        name = self.name(Role.SUCCESS)
        if name is None:
            if Role.OUTCOME in self.given.values():
                return
            some = "; ".join(f"{column.name[:40]} ({column.described()})" for column in list(self.columns.values())[:12])
            raise UsageError(
                f"{self.log.path}: no column says whether an episode succeeded: {printable(some)}. Name it with --map "
                "COLUMN=success; with --map COLUMN=outcome the log is imported without success"
            )
        column = self.columns[name]
        self.success = Success.mostly(column)
        if self.success is None:
            raise UsageError(
                f"{self.log.path}: {name!r} does not say whether an episode succeeded: {column.described()}; expected "
                "true and false, numbers from 0 to 1, percentages, words such as success and failed, or letters of "
                "one set (C/I/P/N, P/F, T/F, Y/N); name another column with --map COLUMN=success"
            )

    def names(self, role: Role) -> list[str]:
        """Return the columns with a role."""
        return [name for name, had in self.roles.items() if had is role]

    def name(self, role: Role) -> str | None:
        """Return the first column with a role."""
        return next(iter(self.names(role)), None)

    @property
    def length_unit(self) -> str:
        """The unit of the length by the name of its column: steps, s, or nothing without a length."""
        name = self.name(Role.LENGTH)
        if name is None:
            return ""
        return "s" if set(plain(name).split("_")) & set(SECONDS) else "steps"

    @cached_property
    def outcome_names(self) -> dict[str, str]:
        """The names of outcomes by column, without the name of the table that holds them."""
        columns = [*self.names(Role.OUTCOME), *self.names(Role.LENGTH)]
        short = {name: _short(name, Role.OUTCOME) for name in columns}
        taken = [*short.values(), "success", "score"]
        return {name: printable(word if taken.count(word) == 1 else name) for name, word in short.items()}

    @cached_property
    def factor_names(self) -> dict[str, str]:
        """The names of factors by column, without the name of the table that holds them."""
        short = {name: _short(name, Role.FACTOR) for name in self.names(Role.FACTOR)}
        taken = list(short.values())
        return {name: printable(word if taken.count(word) == 1 else name) for name, word in short.items()}

    def episodes(self) -> Iterator[tuple[Record, Episode]]:
        """Yield all episodes of the log in its order; raise RecordError for a value that its role does not allow."""
        return _Converter(self).run()

    def role_of(self, record: Record, name: str) -> Role:
        """Return the role of a column, also of one that none of the first records has."""
        role = self.roles.get(name)
        if role is None:
            role = declared(name, {**self.log.roles, **self.given})
            if role is None or role in _SINGLE:
                column = Column(name)
                column.add(record.values[name])
                role = role or _rest_role(column)
                role = Role.IGNORE if role in _SINGLE or role is Role.FACTOR and "." not in name else role
            self.roles[name] = role
            for names in ("outcome_names", "factor_names"):
                self.__dict__.pop(names, None)
        return role


def parse_roles(words: Sequence[str]) -> dict[str, Role]:
    """Return the roles that the user gives as COLUMN=ROLE."""
    found: dict[str, Role] = {}
    known = {role.value: role for role in Role}
    for word in words:
        name, equals, role = word.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--map {word!r}: expected COLUMN=ROLE, such as reached_goal=success")
        if role not in known:
            raise UsageError(f"--map {word!r}: unknown role {role!r}; {nearest(role, known)}")
        if name in found and found[name] is not known[role]:
            raise UsageError(f"--map gives the column {name!r} two roles, {found[name].value} and {role}")
        found[name] = known[role]
    return found


def _without(role: Role, column: Column) -> Role:
    """Return the role of a column that lost a guessed one."""
    rest = _rest_role(column)
    return Role.OUTCOME if role in (Role.SUCCESS, Role.LENGTH) and rest is Role.OUTCOME else Role.IGNORE


def _short(name: str, role: Role) -> str:
    from roadworthy.record.readers.guess import PREFIXES

    table, dot, rest = name.partition(".")
    return rest if dot and PREFIXES.get(plain(table)) is role and plain(table) != "progress" else name


class _Converter:
    """Converts the records of one pass over a log."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping, self._log = mapping, mapping.log
        self._first: frozenset[str] = frozenset()  # the columns of the first record
        self._file_job = mapping.log.job or mapping.log.path.stem
        self._in_environment: dict[str | None, int] = {}
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
            if length < 0.0:
                raise self._log.error(record.place, f"{name} is {value!r}; a length can't be below 0")
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
            place = self._in_environment[where] = self._in_environment.get(where, -1) + 1  # type: ignore[index]
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
            what = "an infinite number" if number is not None else f"{type(value).__name__} {printable(repr(value))[:60]}"
            raise self._log.error(
                record.place, f"{name} is {what}; expected a finite number or true/false, or give --map {name}=ignore"
            )
        return number

    def _factor(self, record: Record, name: str, value: Any) -> float | str:
        number = None if isinstance(value, str) and self._mapping.is_word.get(name, True) else number_of(value)
        if number is not None and not math.isfinite(number):
            raise self._log.error(record.place, f"{name} is an infinite number; correct it, or give --map {name}=ignore")
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
                f"{part[0]} is {printable(repr(part[1]))[:60]}; expected a number or a time such as 2026-07-06T09:08:47; "
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


def rows_for_analysis(mapping: ColumnMapping, most: int | None = None) -> list[dict[str, Any]]:
    """Return the episodes as rows with factors and outcomes, as the other readers return them."""
    rows = []
    for number, (_, episode) in enumerate(itertools.islice(mapping.episodes(), most)):
        success = {} if episode.success is None else {"success": episode.success}
        row: dict[str, Any] = {
            "job_name": episode.job,
            "episode_id": episode.id or f"{episode.scenario}, row {number + 1}",
            "episode_idx": number,
            "scenario_id": episode.scenario,
            "factors": episode.factors,
            "outcomes": {**success, **episode.outcomes},
            "status": "completed" if episode.error is None else "failed",
        }
        row |= {"seed": episode.seed} if episode.seed is not None else {}
        row |= {"steps": int(episode.length)} if episode.length is not None and mapping.length_unit == "steps" else {}
        rows.append(row)
    return rows
