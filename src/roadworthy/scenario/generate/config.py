"""The settings of the generator."""

from __future__ import annotations

from dataclasses import dataclass

from roadworthy.checks import at_least
from roadworthy.errors import ConfigError
from roadworthy.scenario.detect import BEHAVIORS

DEFAULT_STEPS = 91  # 1.1 s of history and 8 s of future at 10 Hz
EXAM_STEPS = 161  # 1.1 s of history and 15 s of future


@dataclass(frozen=True)
class GenerateConfig:
    """The settings of the generator."""

    count: int = 1200
    # The number of scenarios.
    seed: int = 0
    # The seed of all random draws; equal settings give equal bytes.
    steps: int = DEFAULT_STEPS
    # The number of steps of 0.1 s in each scenario: 11 of history, and the future. The self-driving car is present and
    # shows the behavior in the first 161 steps (or in all, if there are fewer). From 161 on, every scenario qualifies
    # for the exam of its class.
    classes: tuple[str, ...] = BEHAVIORS
    # The behavior classes, which take turns.

    def __post_init__(self) -> None:
        at_least(self, 1, "count")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, expected 0 or more")
        if self.steps < DEFAULT_STEPS:
            raise ConfigError(f"steps is {self.steps}, expected at least {DEFAULT_STEPS}, the time that behaviors need")
        unknown = [name for name in self.classes if name not in BEHAVIORS]
        if unknown or not self.classes:
            raise ConfigError(
                f"class {', '.join(map(repr, unknown)) or '(none)'} is unknown; known: {', '.join(BEHAVIORS)}"
            )
        if len(set(self.classes)) < len(self.classes):
            raise ConfigError(f"classes name one class twice: {', '.join(self.classes)}")
