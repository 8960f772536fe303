"""Validate packs: find the faults of the file and of every scenario, and count them by severity and rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from roadworthy.errors import PackError
from roadworthy.scenario.pack import Pack, inspect
from roadworthy.scenario.validate.finding import Severity
from roadworthy.scenario.validate.profile import profile_named, profile_of
from roadworthy.scenario.validate.scenario import faults

Progress = Callable[[int, int], None]


class PackFault(NamedTuple):
    """A fault of a pack."""

    where: str  # the file, its index, a map or a scenario
    severity: Severity
    rule: str
    message: str
    agent: int | None = None
    step: int | None = None


@dataclass
class FaultKind:
    """Faults of one severity and rule."""

    severity: Severity
    rule: str
    example: str  # the first fault, with its place
    count: int = 0
    places: int = 0  # scenarios, maps or files in which it occurs
    last_place: str = field(default="", repr=False)


class FaultCounts:
    """Counts of faults, with an example of each kind."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Severity, str], FaultKind] = {}
        self.severities: Counter[Severity] = Counter()
        self.profiles: Counter[str] = Counter()  # scenarios that were validated, by profile

    def add(self, fault: PackFault) -> None:
        """Count a fault. The faults of one place must follow each other."""
        example = f"{fault.where}: {fault.message}"
        kind = self._kinds.setdefault((fault.severity, fault.rule), FaultKind(fault.severity, fault.rule, example))
        kind.count += 1
        kind.places += kind.last_place != fault.where
        kind.last_place = fault.where
        self.severities[fault.severity] += 1

    @property
    def kinds(self) -> list[FaultKind]:
        """Return the kinds that occur, the most severe first, then the most frequent."""
        order = list(Severity)
        return sorted(self._kinds.values(), key=lambda kind: (order.index(kind.severity), -kind.count, kind.rule))

    @property
    def total(self) -> int:
        return self.severities.total()

    def describe(self) -> str:
        """Return a summary such as `2 errors, 0 warnings, 351 notes`."""
        counts = [(self.severities[severity], severity.value) for severity in Severity]
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts)


def validate_pack(
    path: Path,
    profile_name: str | None = None,
    *,
    on_fault: Callable[[PackFault], None] | None = None,
    progress: Progress | None = None,
) -> FaultCounts:
    """Find all faults of a pack: damaged bytes, arrays that do not fit together, impossible motion.

    Args:
        path: The pack.
        profile_name: The profile that rates faults; by default that of each scenario's source.
        on_fault: A function that is called with every fault.
        progress: A function that is called with finished and total counts: of blocks, then of scenarios.

    Returns:
        Counts of the faults. The pack is sound if there are no faults of Severity.ERROR.

    Example:
        >>> validate_pack(Path("town.pack")).describe()
        '0 errors, 0 warnings, 0 notes'
    """
    counts = FaultCounts()
    for fault in _faults(path, profile_name, counts.profiles, progress or (lambda *_: None)):
        counts.add(fault)
        if on_fault is not None:
            on_fault(fault)
    return counts


def _faults(path: Path, profile_name: str | None, profiles: Counter[str], progress: Progress) -> Iterator[PackFault]:
    """Yield the faults of the file, then those of every scenario that can be read; count profiles."""
    if not path.exists():
        raise PackError(f"{path}: there is no such file")
    damage = inspect(path, progress)
    for found in damage:
        yield PackFault(found.where, Severity.ERROR, "integrity", found.what)
    damaged = {found.where for found in damage}
    if damaged & {"file", "index"}:
        return
    with Pack(path) as pack:
        for number, name in enumerate(pack.ids):
            where = f"scenario {name!r}"
            if where not in damaged:
                scenario = pack[number]
                profile = profile_named(profile_name) if profile_name else profile_of(scenario)
                profiles[profile.name] += 1
                for fault in faults(scenario, profile):
                    yield PackFault(where, fault.severity, fault.rule, fault.message, fault.agent, fault.step)
            progress(number + 1, len(pack))
