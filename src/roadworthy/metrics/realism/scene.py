"""The recorded and the simulated motion of a scenario's agents at the same steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.scenario.schema import AgentType, Bools, Floats, Longs, Scenario
from roadworthy.scenario.source_values import source_motion

STEP_S = 0.1  # the challenge's time step, whatever the timestamps of a scenario


class Motion(NamedTuple):
    """R versions of how A agents move over T steps, history included.

    Where an agent is not valid, its numbers are those of the source, which are 0 or anything else.
    """

    x: Floats  # (R, A, T) m
    y: Floats  # (R, A, T)
    z: Floats  # (R, A, T)
    heading: Floats  # (R, A, T) rad
    cos: Floats  # (R, A, T) of the heading
    sin: Floats  # (R, A, T)
    valid: Bools  # (A, T) whether the agent is present; a simulated agent always is


@dataclass(frozen=True, eq=False)
class Scene:
    """A scenario's recording and its rollouts. The first E of the A agents are evaluated, in the order of their ids.

    Coordinates are float32 in the source's frame, as the reference has them: at some kilometers from the origin their
    rounding shows in speeds, and would differ in another frame.
    """

    agent_ids: Longs  # (A,)
    evaluated: int  # E
    is_vehicle: Bools  # (E,)
    length: Floats  # (A,) m, at the current step, as are all sizes
    width: Floats  # (A,)
    height: Floats  # (A,)
    first: int  # the first step that is simulated and scored
    log: Motion  # R = 1
    simulated: Motion

    @property
    def log_valid(self) -> Bools:
        """Whether each evaluated agent is recorded at each scored step, (E, S)."""
        return self.log.valid[: self.evaluated, self.first :]


def task_agents(scenario: Scenario) -> tuple[Longs, int]:
    """Return the agents to simulate: those present at the current step, the evaluated ones first, sorted by id.

    The self-driving car and the agents to predict are evaluated; their number is returned too.
    """
    is_there = scenario.valid[:, scenario.current_step]
    chosen = np.unique(np.append(scenario.predict, [scenario.sdc] if scenario.sdc >= 0 else []).astype(np.int64))
    where = f"scenario {scenario.id!r}"
    if not chosen.size:
        raise ScenarioError(
            f"{where}: no agent to evaluate: there is no self-driving car, and no agent is to be predicted"
        )
    if not is_there[chosen].all():
        absent = scenario.agent_ids[chosen[~is_there[chosen]][0]]
        raise ScenarioError(
            f"{where}: agent {absent} is to be evaluated, but is not valid at step {scenario.current_step}"
        )
    chosen = chosen[np.argsort(scenario.agent_ids[chosen], kind="stable")]
    others = np.setdiff1d(np.flatnonzero(is_there), chosen)
    return np.concatenate([chosen, others]), len(chosen)


def set_scene(scenario: Scenario, rollouts: Rollouts) -> Scene:
    """Align the recording and the rollouts, whose agents may be in any order."""
    agents, evaluated = task_agents(scenario)
    first = scenario.current_step + 1
    ids = scenario.agent_ids[agents]
    if rollouts.steps != scenario.steps - first:
        raise UsageError(
            f"scenario {scenario.id!r}: the rollouts have {rollouts.steps} steps, expected "
            f"{scenario.steps - first}: all that follow step {scenario.current_step}"
        )
    rollouts = rollouts.for_agents(ids, scenario.id)
    valid = scenario.valid[agents]
    positions, headings = source_motion(scenario)
    log = [*np.moveaxis(positions[agents], -1, 0), headings[agents]]
    simulated = [
        np.concatenate([np.broadcast_to(past[:, :first], (rollouts.count, len(agents), first)), future], axis=2)
        for past, future in zip(log, (rollouts.x, rollouts.y, rollouts.z, rollouts.heading), strict=True)
    ]
    length, width, height = np.ascontiguousarray(scenario.sizes[agents].T)
    return Scene(
        agent_ids=ids,
        evaluated=evaluated,
        is_vehicle=scenario.agent_types[agents[:evaluated]] == AgentType.VEHICLE,
        length=length,
        width=width,
        height=height,
        first=first,
        log=_motion([values[None] for values in log], valid),
        simulated=_motion(simulated, np.ones_like(valid)),
    )


def _motion(columns: list[Floats], valid: Bools) -> Motion:
    x, y, z, heading = (np.ascontiguousarray(values) for values in columns)
    angle = heading.astype(np.float64)  # so that the rounding of sines does not depend on the machine
    return Motion(x, y, z, heading, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), valid)
