"""Rollouts from traces: the motion of simulated agents after the current step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.metrics.realism.heights import ride_heights
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.metrics.realism.scene import task_agents
from roadworthy.record.traces import Trace, TraceEvent
from roadworthy.scenario.schema import Bools, Floats, Scenario

LOG_EXPERT = "expert:log"  # the policy that drives every agent along its own track
GONE_M = np.float32(100_000.0)  # an agent that has left the world is put this far east of its last position


def traced_rollouts(scenario: Scenario, traces: Sequence[Trace], policy: str = "") -> Rollouts:
    """Make one rollout of each trace, all of which start at the scenario's current step.

    An episode that ended early, because all agents stood at the end of their recordings, is extended. If the policy
    drives agents along their tracks, an agent whose track ends leaves the world: rollouts have no absence, so it is
    moved far away from all agents and roads.
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
    """Return whether the track of each agent has ended at each step after the current one, (A, S)."""
    valid = scenario.valid[:, scenario.current_step + 1 :]
    return ~np.logical_or.accumulate(valid[:, ::-1], axis=1)[:, ::-1]


def _future(scenario: Scenario, agents: NDArray[np.int64], trace: Trace, steps: int) -> tuple[Floats, Floats]:
    """Return the positions (A, S, 2) and headings (A, S) of these agents after the start of the trace."""
    columns = _columns(scenario, agents, trace)
    last = trace.frame_count - 1
    is_under_way = trace.active[last] & (trace.events[last] & TraceEvent.GOAL == 0)
    if last > steps or (last < steps and is_under_way.any()):
        raise ScenarioError(
            f"scenario {scenario.id!r}: its recording has {steps} steps after step {scenario.current_step}, "
            f"the rollouts for {last}; set episode.trial_steps to {steps}"
        )
    if not trace.present[:, columns].all():
        raise ScenarioError(f"scenario {scenario.id!r}: an agent left the world in episode {trace.episode_id!r}")
    frames = np.minimum(np.arange(1, steps + 1), last)
    x, y, heading = (values[frames][:, columns].T for values in (trace.x, trace.y, trace.heading))
    return np.stack([x, y], axis=-1), heading


def _columns(scenario: Scenario, agents: NDArray[np.int64], trace: Trace) -> NDArray[np.int64]:
    """Return the columns of these agents in a trace; all of them must be driven."""
    places = {int(source): column for column, source in enumerate(trace.sources) if trace.active[0, column]}
    undriven = [int(scenario.agent_ids[agent]) for agent in agents if int(agent) not in places]
    if undriven:
        shown = ", ".join(map(str, undriven[:5])) + (", ..." if len(undriven) > 5 else "")
        raise ScenarioError(
            f"scenario {scenario.id!r}: no policy drove {len(undriven)} of its {len(agents)} agents (ids {shown}); "
            f"env.control.rows must be at least {len(agents)}"
        )
    return np.array([places[int(agent)] for agent in agents], np.int64)
