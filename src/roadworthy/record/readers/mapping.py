"""Turn the records of a log into episodes, by the role of each column."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from roadworthy.errors import RecordError, UsageError
from roadworthy.plugins import nearest
from roadworthy.record.readers.conversion import Converter, Episode
from roadworthy.record.readers.guess import Column, declared, guess_roles, plain, profile, require_few_columns
from roadworthy.record.readers.guess import rest_role as _rest_role
from roadworthy.record.readers.log import Log, Record, Role, printable
from roadworthy.record.readers.success import Success

SECONDS = ("s", "sec", "secs", "second", "seconds", "time", "duration")
_SINGLE = (Role.SUCCESS, Role.SEED, Role.LENGTH, Role.ENVIRONMENT, Role.ORDER, Role.ID, Role.STATUS, Role.ERROR)


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
        columns = profile(log)
        if not columns:
            raise RecordError(f"{log.path}: holds no episodes")
        unknown = [name for name in given if not any(declared(column, {name: Role.IGNORE}) for column in columns)]
        if unknown:
            raise UsageError(
                f"{log.path}: has no column {unknown[0]!r}; {printable(nearest(unknown[0], list(columns)[:60]))}"
            )
        roles = guess_roles(columns, {**log.roles, **given})
        for role in given.values():
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
            some = "; ".join(
                f"{column.name[:40]} ({column.described()})" for column in list(self.columns.values())[:12]
            )
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
        taken = Counter([*short.values(), "success", "score"])
        return {name: printable(word if taken[word] == 1 else name) for name, word in short.items()}

    @cached_property
    def factor_names(self) -> dict[str, str]:
        """The names of factors by column, without the name of the table that holds them."""
        short = {name: _short(name, Role.FACTOR) for name in self.names(Role.FACTOR)}
        taken = Counter(short.values())
        return {name: printable(word if taken[word] == 1 else name) for name, word in short.items()}

    def episodes(self) -> Iterator[tuple[Record, Episode]]:
        """Yield all episodes of the log in its order; raise RecordError for a value that its role does not allow."""
        return Converter(self).run()

    def role_of(self, record: Record, name: str) -> Role:
        """Return the role of a column, also of one that none of the first records has."""
        role = self.roles.get(name)
        if role is None:
            require_few_columns(len(self.roles), self.log, record.place)
            role = declared(name, {**self.log.roles, **self.given})
            if role is None or role in _SINGLE:
                column = Column(name)
                column.add(record.values[name])
                role = role or _rest_role(column)
                role = Role.IGNORE if role in _SINGLE or (role is Role.FACTOR and "." not in name) else role
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
