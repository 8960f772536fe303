"""`behavior_class`: scenarios of one behaviour class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from roadworthy.errors import ConfigError
from roadworthy.evaluate.config import EvaluatorConfig
from roadworthy.evaluate.evaluator import DrivingEvaluator


@dataclass(frozen=True, kw_only=True)
class BehaviorClassConfig(EvaluatorConfig):
    """The class is the tag of the scenarios."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source.tag is None:
            raise ConfigError('tag is missing, expected a behaviour class, as in tag = "hard_stop"')


class BehaviorClass(DrivingEvaluator):
    """Drives scenarios of one class. A sample of them is drawn by the section's name, and is the same every time."""

    config_type: ClassVar[type[EvaluatorConfig]] = BehaviorClassConfig
