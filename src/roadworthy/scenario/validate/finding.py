"""What a rule finds, and what it means for a scenario: how severe it is under a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a fault matters, the worst first."""

    ERROR = "error"  # the scenario is damaged or breaks a promise of its source: don't use it
    WARNING = "warning"  # it can be used, but figures that depend on this may mislead
    NOTE = "note"  # usual for data of this kind


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a scenario. Step and agents are the worst ones, -1 where there is none."""

    scenario_id: str
    rule: str
    severity: Severity
    agent: int
    step: int
    message: str
    other_agent: int = -1  # the second one, where two are involved


@dataclass(frozen=True)
class Finding:
    """What a rule finds, before a profile says how severe it is: where it is worst, and at how many steps it shows."""

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
