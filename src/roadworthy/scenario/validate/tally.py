"""Counts of faults by severity and rule, for a pack of any size."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from roadworthy.scenario.validate.finding import Severity


@dataclass
class Kind:
    """Faults of one severity and rule."""

    severity: Severity
    rule: str
    example: str  # the first, with where it is
    count: int = 0
    places: int = 0  # scenarios, maps or files in which it occurs
    last_place: str = field(default="", repr=False)


class Tally:
    """Counts faults as they come, those of one place together; keeps an example of each kind."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Severity, str], Kind] = {}
        self.severities: Counter[Severity] = Counter()

    def add(self, where: str, severity: Severity, rule: str, message: str) -> None:
        """Count one fault."""
        kind = self._kinds.setdefault((severity, rule), Kind(severity, rule, f"{where}: {message}"))
        kind.count += 1
        kind.places += kind.last_place != where
        kind.last_place = where
        self.severities[severity] += 1

    @property
    def kinds(self) -> list[Kind]:
        """Every kind that occurs: the most severe first, then the most frequent."""
        order = list(Severity)
        return sorted(self._kinds.values(), key=lambda kind: (order.index(kind.severity), -kind.count, kind.rule))

    @property
    def total(self) -> int:
        return sum(self.severities.values())

    def describe(self) -> str:
        """Such as `2 errors, 0 warnings, 351 notes`."""
        counts = [(self.severities[severity], severity.value) for severity in Severity]
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts)
