"""`behavior_class`: scenarios of one behavior class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from roadworthy.errors import ConfigError
from roadworthy.evaluation.config import EvaluatorConfig, SummaryConfig
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator
from roadworthy.metrics.exams import PASSED, exam_figures
from roadworthy.metrics.trace_figures import TraceFigures
from roadworthy.scenario.exams import EXAMS
from roadworthy.sim.config import AtGoal, Mode

# By class, the policy that must fail its exam: it ignores other agents, lights and signs, and may keep its lane (CL-3).
FLOORS = {
    "hard_stop": "expert:lane_follower",
    "stop_and_go": "expert:lane_follower",
    "cut_in": "expert:lane_follower",
    "merge": "expert:lane_follower",
    "unprotected_left": "expert:lane_follower",
    "unprotected_right": "expert:lane_follower",
    "pedestrian_crossing": "expert:lane_follower",
    "nudge_parked": "expert:lane_follower",
    "lane_change": "expert:lane_keeper",
}


@dataclass(frozen=True, kw_only=True)
class BehaviorClassConfig(EvaluatorConfig):
    """The class is the tag of the scenarios."""

    summary: SummaryConfig = field(default_factory=lambda: SummaryConfig(figure=PASSED))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source.tag is None:
            raise ConfigError('tag is missing, expected a behavior class, as in tag = "hard_stop"')
        if self.summary.figure == PASSED and not self.is_exam:
            object.__setattr__(self, "summary", replace(self.summary, figure="score"))

    @property
    def is_exam(self) -> bool:
        """Whether the section's episodes have an exam: its tag is a class that has one, and its worlds are replayed."""
        is_replayed = self.env.mode is Mode.REPLAY and self.env.goal.at_goal is not AtGoal.RESPAWN
        return self.source.tag in EXAMS and is_replayed

    @property
    def more_floors(self) -> tuple[str, ...]:  # type: ignore[override]
        """The lane follower or lane keeper that must fail the exam of the class, if there is one."""
        floor = FLOORS.get(self.source.tag or "")
        return () if floor is None else (floor,)


class BehaviorClass(DrivingEvaluator):
    """Drives scenarios of one class, and judges each episode as the exam of that class.

    A sample of the scenarios is drawn by the section's name, and is the same every time.
    """

    config_type: ClassVar[type[EvaluatorConfig]] = BehaviorClassConfig

    def trace_figures(self, config: EvaluatorConfig) -> tuple[TraceFigures, ...]:
        """Return the functions that compute figures from traces: the exam of the class is one of them."""
        others = super().trace_figures(config)
        is_exam = isinstance(config, BehaviorClassConfig) and config.is_exam
        return (*others, partial(exam_figures, behavior=config.source.tag)) if is_exam else others
