"""Hardness: how often a policy fails in each scenario, from its runs; as a CSV, and as a pack of the hardest.

An episode counts as the share of its egos' trials that failed. The interval is Wilson's over episodes: of numbers from
0 to 1 with a given mean, those that are 0 or 1 vary most, so it is wide enough for shares too.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from roadworthy.errors import UsageError
from roadworthy.record import Run
from roadworthy.record.origin import copy_scenarios
from roadworthy.scenario.pack import Pack
from roadworthy.statistics.intervals import LEVEL, normal_quantile, wilson


@dataclass(frozen=True)
class Hardness:
    """How often a policy fails in a scenario."""

    id: str
    n: int
    # Completed episodes.
    rate: float
    # Share that failed.
    low: float
    high: float
    # Its interval, 95%.


COLUMNS = tuple(f.name for f in fields(Hardness))


def hardness_of(runs: Iterable[Run]) -> list[Hardness]:
    """Return the hardness of every scenario that these runs of one policy have completed, hardest first."""
    failures: dict[str, list[float]] = defaultdict(list)
    policies: dict[str, Path] = {}
    for run in runs:
        policy = str(run.header.get("checkpoint_hash") or run.header["policy"])
        policies.setdefault(policy, run.folder)
        table = run.episodes(["scenario_id", "status", "outcomes.score"])
        for row in table.to_pylist():
            if row["status"] == "completed" and row["outcomes.score"] is not None:
                failures[row["scenario_id"]].append(1.0 - row["outcomes.score"])
    if len(policies) > 1:
        one, other = list(policies.values())[:2]
        raise UsageError(f"{one} and {other} are runs of different policies; give runs of one policy")
    if not failures:
        raise UsageError("no episode was completed, so the hardness of scenarios can't be measured")
    return hardest(_hardness(name, shares) for name, shares in failures.items())


def hardest(scenarios: Iterable[Hardness]) -> list[Hardness]:
    """Sort scenarios, hardest first; among equal rates, the one with the highest lower bound first."""
    return sorted(scenarios, key=lambda scenario: (-scenario.rate, -scenario.low, scenario.id))


def write_hardness(path: Path, scenarios: Sequence[Hardness]) -> None:
    """Write a CSV: id, n, rate, low, high."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([getattr(scenario, name) for name in COLUMNS] for scenario in scenarios)


def read_hardness(path: Path) -> list[Hardness]:
    """Read a CSV with these columns, from any source; return the hardest first."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise UsageError(f"{path} has no column {missing[0]!r}; expected {', '.join(COLUMNS)}")
        return hardest(_read_row(path, number, row) for number, row in enumerate(reader, 2))


def write_hardest(source: Path, scenarios: Sequence[Hardness], count: int, target: Path) -> list[str]:
    """Write a pack of the hardest scenarios of a pack; return their ids."""
    with Pack(source) as pack:
        there = set(pack.ids)
        names = [scenario.id for scenario in scenarios if scenario.id in there][:count]
        if len(names) < count:
            raise UsageError(
                f"{count} scenarios were asked for, but {source} has {len(names)} of the {len(scenarios)} scored ones"
            )
        numbers = [pack.number(name) for name in names]
    copy_scenarios(source, numbers, target)
    return names


def _hardness(name: str, shares: Sequence[float]) -> Hardness:
    rate = sum(shares) / len(shares)
    low, high = wilson(rate, len(shares), normal_quantile(LEVEL))
    return Hardness(name, len(shares), rate, low, high)


def _read_row(path: Path, number: int, row: dict[str, str | None]) -> Hardness:
    try:
        given = [row[name] or "" for name in COLUMNS]
        scenario = Hardness(given[0], int(given[1]), *map(float, given[2:]))
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: {error}; expected {', '.join(COLUMNS)}") from None
    if not (scenario.id and scenario.n >= 1 and 0.0 <= scenario.low <= scenario.rate <= scenario.high <= 1.0):
        raise UsageError(f"{path}, line {number}: expected an id, n of at least 1, and 0 <= low <= rate <= high <= 1")
    return scenario
