"""What to generate."""

from __future__ import annotations

from dataclasses import dataclass

from roadworthy.errors import ConfigError
from roadworthy.scenario.detect import BEHAVIORS

DEFAULT_STEPS = 91  # 1.1 s of history and 8 s of future at 10 Hz
EXAM_STEPS = 161  # 1.1 s of history and 15 s of future


@dataclass(frozen=True)
class GenerateConfig:
    """What to generate."""

    count: int = 1200
    # How many scenarios.
    seed: int = 0
    # The same seed gives the same bytes.
    steps: int = DEFAULT_STEPS
    # Steps of 0.1 s in each scenario: 11 of history, the rest is future. The behavior is shown, and the self-driving
    # car is there, in the first 161 (or all, if fewer). From 161 on, every scenario qualifies for its class's exam.
    classes: tuple[str, ...] = BEHAVIORS
    # Behavior classes, in turn.

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"count is {self.count}, expected at least 1")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, expected 0 or more")
        if self.steps < DEFAULT_STEPS:
            raise ConfigError(f"steps is {self.steps}, expected at least {DEFAULT_STEPS}: behaviors take time")
        unknown = [name for name in self.classes if name not in BEHAVIORS]
        if unknown or not self.classes:
            raise ConfigError(
                f"class {', '.join(map(repr, unknown)) or '(none)'} is unknown; known: {', '.join(BEHAVIORS)}"
            )
        if len(set(self.classes)) < len(self.classes):
            raise ConfigError(f"classes name one class twice: {', '.join(self.classes)}")
