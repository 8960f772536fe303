"""Guess what the columns of a plain table mean, from their names and their first values."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roadworthy.record.readers.log import MOST_COLUMNS, Log, Role

HEAD = 2000  # records that are looked at
MISSING_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "?"))
MOST_WORDS = 20  # different words of a column that is taken for a factor
_LONGEST_EXAMPLE = 32  # characters
_SHOWN = 40  # different values that are counted

# Names of columns by role, most telling first; compared in lower case, with underscores for all other characters.
NAMES: Mapping[Role, tuple[str, ...]] = {
    Role.SUCCESS: (
        *("success", "is_success", "succeeded", "task_success", "episode_success", "solved", "passed", "pass"),
        *("correct", "is_correct", "goal_reached", "reached_goal", "success_rate", "pc_success", "outcome", "result"),
        *("score", "accuracy"),
    ),
    Role.SEED: ("seed", "episode_seed", "env_seed", "rng_seed", "random_seed", "eval_seed"),
    Role.LENGTH: (
        *("episode_length", "ep_length", "ep_len", "length", "steps", "num_steps", "n_steps", "episode_steps"),
        *("timesteps", "duration_s", "duration", "duration_sec", "elapsed_s", "elapsed_sec", "time_s", "seconds"),
        *("episode_seconds", "total_time"),
    ),
    Role.ENVIRONMENT: ("env_id", "env", "env_idx", "env_index", "environment_id", "env_num", "worker", "slot"),
    Role.ORDER: ("finish_order", "finished_at", "completed_at", "end_time", "ended", "timestamp", "order"),
    Role.JOB: ("job_name", "job", "benchmark", "suite", "task_suite", "experiment", "evaluator"),
    Role.POLICY: ("policy", "policy_name", "policy_type", "model", "model_name", "checkpoint", "agent", "method"),
    Role.CLUSTER: ("cluster", "task", "task_name", "task_id", "map", "town", "location", "log_id", "category"),
    Role.SCENARIO: ("scenario_id", "scenario", "scene_id", "scene", "sample_id", "problem_id", "instance", "level"),
    Role.REPLICATE: ("replicate", "repeat", "repetition", "trial", "epoch", "attempt"),
    Role.ID: ("episode_id", "episode_name", "uuid", "id", "episode", "episode_idx", "episode_ix", "episode_index"),
    Role.STATUS: ("status", "state"),
    Role.ERROR: ("error", "exception", "failure_reason", "error_message"),
}
_ONE_EACH = (Role.SUCCESS, Role.SEED, Role.LENGTH, Role.ENVIRONMENT, Role.ORDER, Role.ID, Role.STATUS, Role.ERROR)
PREFIXES: Mapping[str, Role] = {
    **dict.fromkeys(("factors", "factor", "variations", "variation", "params", "arena_env_args"), Role.FACTOR),
    **dict.fromkeys(("outcomes", "outcome", "metrics", "results", "scores", "progress"), Role.OUTCOME),
    **dict.fromkeys(("density", "artifacts", "artifact_errors", "agent_rows", "trial_rows"), Role.IGNORE),
}
# Fields of a run's own episode rows that say where and when an episode ran.
_PLACE = ("world", "slot", "first_step", "last_step", "trials", "wall_s", "schema_version", "evaluator")


@dataclass
class Column:
    """The first values of a column."""

    name: str
    count: int = 0  # of values that are there
    missing: int = 0
    flags: int = 0
    numbers: int = 0
    numerals: int = 0  # texts that are numbers
    words: int = 0
    low: float = math.inf
    high: float = -math.inf
    different: dict[Any, int] = field(default_factory=dict)  # up to _SHOWN

    def add(self, value: Any) -> None:
        """Add a value."""
        if is_missing(value):
            self.missing += 1
            return
        self.count += 1
        if value in self.different:
            self.different[value] += 1
        elif len(self.different) < _SHOWN:
            self.different[value] = 1
        if isinstance(value, bool):
            self.flags += 1
            return
        number = number_of(value)
        if number is None:
            self.words += 1
            return
        if isinstance(value, str):
            self.numerals += 1
        else:
            self.numbers += 1
        self.low, self.high = min(self.low, number), max(self.high, number)

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers, as numbers or as text."""
        return self.count > 0 and self.numbers + self.numerals == self.count

    @property
    def is_mostly_numeric(self) -> bool:
        """Whether at least half of the values are numbers: the others are then errors."""
        return self.count > 0 and 2 * (self.numbers + self.numerals) >= self.count

    @property
    def is_constant(self) -> bool:
        """Whether there is one value only."""
        return self.count > 1 and len(self.different) == 1

    def described(self) -> str:
        """Return the values in a few words."""
        from roadworthy.record.readers.log import printable

        rest = f", {self.missing} missing" if self.missing else ""
        if not self.count:
            return f"no values{rest}"
        if len(self.different) == 1:
            (value,) = self.different
            return f"always {printable(str(value))[:40]}{rest}"
        if self.flags == self.count:
            return f"{self.different.get(True, 0)} true, {self.different.get(False, 0)} false{rest}"
        if self.is_numeric:
            return f"{self.low:g} to {self.high:g}{rest}"
        if len(self.different) <= 4:
            return ", ".join(f"{printable(str(value))[:16]} ({n})" for value, n in self.different.items()) + rest
        more = "over " if len(self.different) >= _SHOWN else ""
        return f"{more}{len(self.different)} different, such as {_example(next(iter(self.different)))}{rest}"


def _example(value: Any) -> str:
    """Return a value as an example, cut where it is longer than a time with its zone."""
    from roadworthy.record.readers.log import printable

    text = printable(str(value))
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 1]}…"


def is_missing(value: Any) -> bool:
    """Return whether a value is none: null, NaN, an empty text or a word for it."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in MISSING_WORDS
    return isinstance(value, float) and value != value


def number_of(value: Any) -> float | None:
    """Return a number, also one written as text; None for anything else."""
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if isinstance(value, str):
        try:
            return float(value) if "_" not in value else None
        except ValueError:
            return None
    return None


def profile(log: Log) -> dict[str, Column]:
    """Return the columns of the first records of a log, in the order in which they occur."""
    columns: dict[str, Column] = {}
    for record in itertools.islice(log.records(), HEAD):
        for name, value in record.values.items():
            if name not in columns:
                require_few_columns(len(columns), log, record.place)
                columns[name] = Column(name)
            columns[name].add(value)
    return columns


def require_few_columns(count: int, log: Log, place: str) -> None:
    """Raise RecordError if a log has more columns than any table of results."""
    if count >= MOST_COLUMNS:
        raise log.error(place, f"there are more than {MOST_COLUMNS} columns; expected a table with one row per episode")


def guess_roles(columns: Mapping[str, Column], fixed: Mapping[str, Role]) -> dict[str, Role]:
    """Return the role of each column; those in `fixed` are given, exactly or as `table.*`."""
    roles = {name: role for name in columns if (role := declared(name, fixed)) is not None}
    taken = set(roles.values())
    for role, names in NAMES.items():
        if role in _ONE_EACH and role in taken:
            continue
        for wanted in names:
            found = [name for name in columns if name not in roles and _last(name) == wanted]
            found = [name for name in found if _fits(role, columns[name])]
            if found and _may_be(role, found[0]):
                roles[found[0]] = role
                break
    for name, column in columns.items():
        if name not in roles:
            roles[name] = rest_role(column)
    return roles


def declared(name: str, fixed: Mapping[str, Role]) -> Role | None:
    """Return the role that is given for a column, or for a table that holds it."""
    if name in fixed:
        return fixed[name]
    table = name
    while "." in table:
        table = table.rpartition(".")[0]
        if f"{table}.*" in fixed:
            return fixed[f"{table}.*"]
    vector = name.partition("[")[0]
    return fixed.get(vector) if vector != name else None


def rest_role(column: Column) -> Role:
    """Return the role of a column whose name says nothing."""
    first = column.name.partition(".")[0].partition("[")[0]
    if "." in column.name and plain(first) in PREFIXES:
        role = PREFIXES[plain(first)]
        return Role.IGNORE if role is Role.OUTCOME and column.words else role
    if plain(column.name) in _PLACE or column.count == 0 or column.is_constant:
        return Role.IGNORE
    if column.flags == column.count or column.is_mostly_numeric:
        return Role.OUTCOME
    return Role.FACTOR if len(column.different) <= min(MOST_WORDS, max(column.count // 2, 1)) else Role.IGNORE


def plain(name: str) -> str:
    """Return a name in lower case with underscores."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


def _last(name: str) -> str:
    """Return the name of a column, without the name of a table of outcomes that holds it."""
    table, _, rest = name.rpartition(".")
    return plain(rest) if PREFIXES.get(plain(table)) is Role.OUTCOME else plain(name)


def _may_be(role: Role, name: str) -> bool:
    return "." not in name or role in (Role.SUCCESS, Role.LENGTH)


def _fits(role: Role, column: Column) -> bool:
    """Return whether the values of a column can have a role that its name suggests."""
    if not column.count:
        return False
    if role is Role.SUCCESS:
        from roadworthy.record.readers.success import Success

        return Success.mostly(column) is not None
    if role in (Role.SEED, Role.REPLICATE, Role.LENGTH):
        return column.is_mostly_numeric and column.low >= 0.0
    return True
