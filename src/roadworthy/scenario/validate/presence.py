"""Rules about the presence of agents, their distance from the map, and their size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.validate.finding import Finding
from roadworthy.scenario.validate.limits import Limits


def presence_faults(scenario: Scenario) -> Iterator[Finding]:
    """Yield a finding for each agent that is never present, and one if the car is absent at the current step."""
    absent = np.flatnonzero(~scenario.valid.any(axis=1)).tolist()
    for agent in absent:
        yield Finding("presence", agent, -1, f"agent {agent} is at no step")
    sdc, now = scenario.sdc, scenario.current_step
    if sdc >= 0 and sdc not in absent and not scenario.valid[sdc, now]:
        yield Finding("start", sdc, now, f"the self-driving car (agent {sdc}) is missing")


def size_faults(scenario: Scenario, limits: Limits) -> Iterator[Finding]:
    """Yield at most one finding per agent that is present at some step."""
    for agent in np.flatnonzero(scenario.valid.any(axis=1)).tolist():
        length, width = scenario.sizes[agent, :2].tolist()
        box = f"the box of agent {agent} is {length:.2f} m long and {width:.2f} m wide"
        if not (length > 0.0 and width > 0.0):
            yield Finding("box", agent, -1, f"{box}, expected more than 0")
        elif length > limits.longest_m or width > limits.widest_m:
            what = f"{box}, allowed {limits.longest_m:g} and {limits.widest_m:g}"
            yield Finding("size", agent, -1, what)


def far_faults(scenario: Scenario, limits: Limits) -> Iterator[Finding]:
    """Yield at most one finding per agent, and none if there is no map."""
    points = scenario.map.points[:, :2].astype(np.float64)
    if not len(points):
        return
    places = scenario.positions[:, :, :2].astype(np.float64)
    beyond = np.maximum(points.min(axis=0) - places, places - points.max(axis=0)).max(axis=2)
    is_far = (beyond > limits.far_m) & scenario.valid
    for agent in np.flatnonzero(is_far.any(axis=1)).tolist():
        step = int(np.argmax(np.where(is_far[agent], beyond[agent], -np.inf)))
        what = f"agent {agent} is {beyond[agent, step]:.0f} m outside the box around the map"
        yield Finding("far", agent, step, what, int(is_far[agent].sum()))
