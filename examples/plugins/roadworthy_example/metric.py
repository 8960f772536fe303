"""Metric `hard_braking`: how much of a trial the agent brakes hard."""

from __future__ import annotations

import numpy as np

from roadworthy.record.traces import Trace
from roadworthy.scenario.schema import Scenario

HARD_MPS2 = 4.0


def hard_braking(trace: Trace, scenario: Scenario, agent: int, trial: int) -> float | None:
    """Share of the steps of a trial in which the agent brakes with more than 4 m/s2."""
    steps = trace.trial(trial)
    speed = trace.speed[steps, agent][trace.present[steps, agent]]
    if len(speed) < 2:
        return None  # no data
    return float(np.mean(np.diff(speed) / scenario.dt < -HARD_MPS2))
