"""Rollouts from traces: what the simulator's agents did after the current step, in the form that is scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.metrics.realism.heights import ride_heights
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.metrics.realism.scene import task_agents
from roadworthy.record.traces import Trace
from roadworthy.scenario.schema import Bools, Floats, Scenario
from roadworthy.sim.state import EVENT_GOAL

LOG_EXPERT = "expert:log"  # the policy that drives every agent along its own track
GONE_M = np.float32(100_000.0)  # how far east of its last place an agent is that has left the world


def traced_rollouts(scenario: Scenario, traces: Sequence[Trace], policy: str = "") -> Rollouts:
    """Make one rollout of each trace, all of which start at the scenario's current step.

    An episode that ended before its time, because all agents stood where their recordings end, continues so. If the
    policy drives agents along their tracks, an agent whose track ends leaves the world: rollouts know no absence, so
    it is put where no other agent and no road is.
    """
    agents, _ = task_agents(scenario)
    steps = scenario.steps - 1 - scenario.current_step
    motions = [_future(scenario, agents, trace, steps) for trace in traces]
    ways, headings = (np.stack(parts) for parts in zip(*motions, strict=True))
    heights = ride_heights(scenario, agents, ways)
    if policy == LOG_EXPERT:
        ways[..., 0] += np.where(has_left(scenario)[agents], GONE_M, np.float32(0.0))
    return Rollouts.from_scenario_frame(
        scenario, agents, np.concatenate([ways, heights[..., None]], axis=3), np.ascontiguousarray(headings)
    )


def has_left(scenario: Scenario) -> Bools:
    """(A, S) whether the track of each agent has ended at each step after the current one."""
    valid = scenario.valid[:, scenario.current_step + 1 :]
    return ~np.logical_or.accumulate(valid[:, ::-1], axis=1)[:, ::-1]


def _future(scenario: Scenario, agents: NDArray[np.int64], trace: Trace, steps: int) -> tuple[Floats, Floats]:
    """(A, S, 2) and (A, S) the positions and headings of these agents after the trace's start."""
    columns = _columns(scenario, agents, trace)
    last = trace.frame_count - 1
    is_under_way = trace.active[last] & (trace.events[last] & EVENT_GOAL == 0)
    if last > steps or (last < steps and is_under_way.any()):
        raise ScenarioError(
            f"scenario {scenario.id!r}: its recording goes on for {steps} steps after step {scenario.current_step}, "
            f"the rollouts for {last}; set episode.trial_steps to {steps}"
        )
    if not trace.present[:, columns].all():
        raise ScenarioError(f"scenario {scenario.id!r}: an agent left the world in episode {trace.episode_id!r}")
    frames = np.minimum(np.arange(1, steps + 1), last)
    x, y, heading = (values[frames][:, columns].T for values in (trace.x, trace.y, trace.heading))
    return np.stack([x, y], axis=-1), heading


def _columns(scenario: Scenario, agents: NDArray[np.int64], trace: Trace) -> NDArray[np.int64]:
    """Where each of these agents stands in a trace; all of them are driven."""
    places = {int(source): column for column, source in enumerate(trace.sources) if trace.active[0, column]}
    undriven = [int(scenario.agent_ids[agent]) for agent in agents if int(agent) not in places]
    if undriven:
        shown = ", ".join(map(str, undriven[:5])) + (", ..." if len(undriven) > 5 else "")
        raise ScenarioError(
            f"scenario {scenario.id!r}: nobody drove {len(undriven)} of its {len(agents)} agents (number {shown}); "
            f"env.control.rows must be at least {len(agents)}"
        )
    return np.array([places[int(agent)] for agent in agents], np.int64)
