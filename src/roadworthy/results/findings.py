"""What a check of results can find, each with its numbers, in plain words, and with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

from roadworthy.statistics import Interval


class Severity(IntEnum):
    """How much a finding matters."""

    OK = 0  # was checked, and nothing is wrong
    NOTE = 1  # worth knowing
    WARNING = 2  # the plain estimate is biased, or says less than it seems to

    @property
    def word(self) -> str:
        """The name in files and on the terminal."""
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    check: str  # the name of the check
    severity: Severity
    title: str  # in a few words
    text: str  # with the numbers, and what they mean
    advice: str = ""  # what to do
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**asdict(self), "severity": self.severity.word, "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Estimate:
    """An estimate of the outcome from some of the episodes."""

    name: str
    which: str  # episodes it is from
    interval: Interval

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        found = self.interval
        numbers = {"value": found.value, "n": found.n, "low": found.low, "high": found.high, "method": found.method}
        return {"name": self.name, "which": self.which, **numbers}


@dataclass(frozen=True)
class Report:
    """The check of one evaluation of one policy."""

    name: str
    outcome: str
    episodes: int
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...]  # the worst first

    @property
    def worst(self) -> Severity:
        """The severity of the worst finding."""
        return max((finding.severity for finding in self.findings), default=Severity.OK)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "episodes": self.episodes,
            "worst": self.worst.word,
            "estimates": [estimate.as_json() for estimate in self.estimates],
            "findings": [finding.as_json() for finding in self.findings],
        }
