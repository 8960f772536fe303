"""`human_replay`: the self-driving car among recorded traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from roadworthy.errors import ConfigError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator


@dataclass(frozen=True, kw_only=True)
class HumanReplayConfig(EvaluatorConfig):
    """The worlds are what the evaluator's name says, whatever the training's were."""

    fixed: ClassVar[Mapping[str, Any]] = {
        "env": {"mode": "replay", "control": {"who": "sdc", "others": "replay", "ego_share": 1.0}}
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coplayers:
            raise ConfigError(
                f"coplayers is {list(self.coplayers)}, but in human_replay everybody else is recorded; leave it out, "
                "or take the type multi_scenario"
            )


class HumanReplay(DrivingEvaluator):
    """The policy drives the self-driving car alone; everybody else moves as recorded."""

    config_type: ClassVar[type[EvaluatorConfig]] = HumanReplayConfig
