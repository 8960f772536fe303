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
    """The evaluator fixes which agents the policy controls, whatever the training config says."""

    fixed: ClassVar[Mapping[str, Any]] = {
        "env": {"mode": "replay", "control": {"who": "sdc", "others": "replay", "ego_share": 1.0}}
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coplayers:
            raise ConfigError(
                f"coplayers is {list(self.coplayers)}, but in human_replay all other agents are recorded; leave it "
                "out, or use the evaluator multi_scenario"
            )


class HumanReplay(DrivingEvaluator):
    """The policy drives the self-driving car; all other agents move as recorded."""

    config_type: ClassVar[type[EvaluatorConfig]] = HumanReplayConfig
