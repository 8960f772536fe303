"""Evaluator `crowded`: drives the scenarios with the most road users."""

from __future__ import annotations

from roadworthy.errors import UsageError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator
from roadworthy.scenario.pack import Pack


class Crowded(DrivingEvaluator):
    """Drives `episodes` scenarios of the pack, those with the most agents at the start."""

    def choose(self, pack: Pack, name: str, config: EvaluatorConfig) -> list[int]:
        """Return the numbers of the scenarios, in the order of the pack."""
        numbers = list(range(len(pack))) if config.source.tag is None else pack.select(config.source.tag).tolist()
        if not numbers:
            raise UsageError(f"{pack.path} has no scenario for {name!r}; choose another tag")
        crowds = {number: int(pack[number].valid[:, config.env.init_steps].sum()) for number in numbers}
        fullest = sorted(numbers, key=lambda number: (-crowds[number], pack.ids[number]))
        return sorted(fullest[: config.episodes])
