"""Findings of rules, and faults: findings with a severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The severity of a fault, from the worst to the least."""

    ERROR = "error"  # the scenario is damaged or breaks a promise of its source: do not use it
    WARNING = "warning"  # the scenario is usable, but metrics that depend on this may mislead
    NOTE = "note"  # normal in data of this kind


@dataclass(frozen=True)
class Fault:
    """A fault of a scenario. The step and agents are those of the worst case, -1 if there is none."""

    scenario_id: str
    rule: str
    severity: Severity
    agent: int
    step: int
    message: str
    other_agent: int = -1  # the second agent, if two are involved


@dataclass(frozen=True)
class Finding:
    """A finding of a rule, without a severity: the worst case, and the number of steps."""

    rule: str
    agent: int
    step: int
    what: str
    count: int = 1
    other_agent: int = -1

    def fault(self, scenario_id: str, severity: Severity) -> Fault:
        at = f" at step {self.step}" if self.step >= 0 else ""
        further = f" (and at {self.count - 1} more step{'s' if self.count > 2 else ''})" if self.count > 1 else ""
        message = f"{self.what}{at}{further}"
        return Fault(scenario_id, self.rule, severity, self.agent, self.step, message, self.other_agent)
