"""Read a whole log once: check every value and every name, and keep a few numbers per episode.

The numbers decide what the run folders need to know before they are written: the repetitions of equal episodes, and
the names that the log uses twice. They take some 70 bytes per episode, whatever the size of the log.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import RecordError, UsageError
from roadworthy.record.readers.conversion import Episode
from roadworthy.record.readers.log import Role
from roadworthy.record.readers.mapping import ColumnMapping

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

MOST_RUNS = 256
MOST_ENVIRONMENTS = 100_000
_REPORT_EVERY = 20_000


@dataclass
class Scan:
    """The episodes of a log as arrays, in its order."""

    mapping: ColumnMapping
    runs: list[tuple[str, str]]  # job and policy of each run
    environments: list[str]
    run: Codes  # (n,) the run of each episode
    environment: Codes  # (n,) -1: none
    success: Array  # (n,) NaN: no data
    length: Array  # (n,) NaN: no data
    order: Array  # (n,) NaN: not recorded
    seed: Array  # (n,) NaN: none; as float64, for comparisons only
    scenario: Codes  # (n,) a hash of run and scenario
    key: Codes  # (n,) a hash of run, scenario, seed and factors
    row: Codes  # (n,) a hash of everything in the record except its place in time
    replicate: Codes  # (n,)
    has_crashed: NDArray[np.bool_]  # (n,)
    has_plain_ids: bool = True  # whether scenario and replicate name an episode within its run
    factor_names: dict[str, bool] = field(default_factory=dict)  # name: whether its values are words
    outcome_names: set[str] = field(default_factory=set)
    is_partial: bool = False  # whether some success is neither 0 nor 1
    skipped: list[str] = field(default_factory=list)  # why rows were left out
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.run)

    @property
    def success_name(self) -> str:
        """The outcome that success becomes: `score` with values between 0 and 1."""
        return "score" if self.is_partial else "success"

    @cached_property
    def finish_rank(self) -> Codes:
        """The place of each episode among all, in the order in which they finished, (n,)."""
        known = ~np.isnan(self.order)
        keys = self.order if known.all() else np.arange(len(self), dtype=np.float64)
        ranks = np.empty(len(self), np.int64)
        ranks[np.argsort(keys, kind="stable")] = np.arange(len(self))
        return ranks


def scan(mapping: ColumnMapping, progress: Callable[[int, int], None] | None = None) -> Scan:
    """Read all episodes of a log; raise RecordError at the first one that is wrong."""
    codes: dict[tuple[str, str], int] = {}
    environments: dict[str, int] = {}
    columns: dict[str, array[Any]] = {name: array(kind) for name, kind in _KINDS.items()}
    factors: dict[str, bool] = {}
    outcomes: set[str] = set()
    is_partial, has_ids = False, mapping.name(Role.ID) is not None
    identity = [name for name, role in mapping.roles.items() if role is not Role.ORDER]
    number = -1
    for number, (record, episode) in enumerate(mapping.episodes()):
        if progress is not None and number % _REPORT_EVERY == 0:
            progress(number, number + 1)
        names = (episode.job, episode.policy)
        run = codes.setdefault(names, len(codes))
        if len(codes) > MOST_RUNS:
            raise UsageError(
                f"{mapping.log.path}, {record.place}: there are more than {MOST_RUNS} jobs and policies, and each "
                "becomes a run; give --map COLUMN=factor or --map COLUMN=cluster for the column that differs"
            )
        environment = -1
        if episode.environment is not None:
            environment = environments.setdefault(episode.environment, len(environments))
            if environment >= MOST_ENVIRONMENTS:
                raise UsageError(
                    f"{mapping.log.path}, {record.place}: there are more than {MOST_ENVIRONMENTS} environments; is "
                    f"{mapping.name(Role.ENVIRONMENT)!r} the name of the episode? Give --map COLUMN=id"
                )
        success = episode.success
        is_partial = is_partial or (success is not None and success not in (0.0, 1.0))
        for name, value in episode.factors.items():
            factors[name] = factors.get(name, False) or isinstance(value, str)
        outcomes.update(episode.outcomes)
        values = record.values
        for name, item in (
            ("run", run),
            ("environment", environment),
            ("success", np.nan if success is None or episode.error is not None else success),
            ("length", np.nan if episode.length is None else episode.length),
            ("order", np.nan if episode.order is None else episode.order),
            ("seed", np.nan if episode.seed is None else episode.seed),
            ("scenario", hash((run, episode.scenario))),
            ("key", _key(run, episode)),
            ("row", hash(tuple(values.get(name) for name in identity))),
            ("replicate", -1 if episode.replicate is None else episode.replicate),
            ("has_crashed", episode.error is not None),
            ("id", hash((run, episode.id)) if has_ids else 0),
        ):
            columns[name].append(item)
    if number < 0:
        raise RecordError(f"{mapping.log.path}: holds no episodes")
    arrays = {name: np.frombuffer(column, dtype=column.typecode) for name, column in columns.items()}
    if has_ids:
        _require_unique(mapping, arrays["id"], Role.ID)
    replicate = _replicates(mapping, arrays["key"], arrays["replicate"].astype(np.int64))
    found = Scan(
        mapping,
        list(codes),
        list(environments),
        arrays["run"].astype(np.int64),
        arrays["environment"].astype(np.int64),
        arrays["success"],
        arrays["length"],
        arrays["order"],
        arrays["seed"],
        arrays["scenario"],
        arrays["key"],
        arrays["row"],
        replicate,
        arrays["has_crashed"].astype(np.bool_),
        factor_names=factors,
        outcome_names=outcomes,
        is_partial=is_partial,
    )
    names = arrays["scenario"] ^ (replicate * np.int64(0x9E3779B97F4A7C1 | 1))
    found.has_plain_ids = len(np.unique(names)) == len(names)
    found.notes = [*mapping.log.notes, *mapping.notes, *_notes(found)]
    return found


_KINDS = {
    **dict.fromkeys(("run", "environment", "replicate"), "i"),
    **dict.fromkeys(("success", "length", "order", "seed"), "d"),
    **dict.fromkeys(("scenario", "key", "row", "id"), "q"),
    "has_crashed": "b",
}


def _key(run: int, episode: Episode) -> int:
    return hash((run, episode.scenario, episode.seed, tuple(sorted(episode.factors.items()))))


def _replicates(mapping: ColumnMapping, keys: Codes, given: Codes) -> Codes:
    """Return the number of each repetition of equal episodes, counted in the order of the log unless it is given."""
    if (given >= 0).all():
        pairs = keys ^ (given * np.int64(0x1000193))
        _require_unique(mapping, pairs, Role.REPLICATE)
        return given
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(np.append(starts, len(keys)))
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(starts, counts)
    return found


def _require_unique(mapping: ColumnMapping, hashes: NDArray[Any], role: Role) -> None:
    """Raise RecordError if two episodes have the same name."""
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if not len(same):
        return
    first, second = sorted(order[same[0] : same[0] + 2].tolist())
    places, name = [], ""
    for number, (record, episode) in enumerate(mapping.episodes()):
        if number in (first, second):
            places.append(record.place)
            name = str(episode.id) if role is Role.ID else f"{episode.scenario}, replicate {episode.replicate}"
        if number == second:
            break
    column = mapping.name(role)
    raise mapping.log.error(
        places[1],
        f"{column}: the episode {name!r} was already in {places[0]}; {len(same)} ids "
        f"occur again; remove what is there twice, or give --map {column}=ignore to number repetitions in their order",
    )


def _notes(found: Scan) -> list[str]:
    """Return what the user should know about the log as a whole."""
    notes = []
    missing = int((np.isnan(found.success) & ~found.has_crashed).sum())
    if missing and found.mapping.name(Role.SUCCESS) is not None:
        notes.append(f"{missing} of {len(found)} episodes have no success: they count as missing")
    if found.has_crashed.any():
        notes.append(f"{int(found.has_crashed.sum())} of {len(found)} episodes crashed: they count as failures")
    if found.is_partial:
        notes.append("success has values between 0 and 1, so the outcome is called score")
    reported = found.mapping.log.reported
    known = ~np.isnan(found.success) | found.has_crashed
    if reported is not None and known.any():
        ours = float(np.nan_to_num(found.success[known]).mean())
        if abs(ours - reported) > 1e-3:
            notes.append(f"the log itself states a rate of {reported:.4g}, but its episodes give {ours:.4g}")
    return notes
