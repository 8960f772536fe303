"""The built-in evaluators, and some bad ones, declared where a test's own processes find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin_package import install

HOME = "roadworthy.evaluation.evaluators"
EVALUATORS = {
    "multi_scenario": f"{HOME}.multi_scenario:MultiScenario",
    "human_replay": f"{HOME}.human_replay:HumanReplay",
    "behavior_class": f"{HOME}.behavior_class:BehaviorClass",
    "bad_metric": "bad_evaluators:BadMetric",
}
CODE = """
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator

class BadMetric(DrivingEvaluator):
    def metrics(self, run):
        raise ZeroDivisionError("a metric of mine")
"""


def declare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the evaluators known to this process; another one needs the folder in its PYTHONPATH."""
    install(folder, monkeypatch, "roadworthy.evaluators", EVALUATORS, CODE, name="bad_evaluators")
    return folder
