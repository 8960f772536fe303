"""`multi_scenario`: every scenario equally often, open or replayed."""

from __future__ import annotations

from roadworthy.evaluation.evaluators.driving import DrivingEvaluator


class MultiScenario(DrivingEvaluator):
    """Drives each of the scenarios `replicates` times, in the worlds that the section describes."""
