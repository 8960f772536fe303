"""Starts of episodes, trials and agents. A trial starts from a copy of its episode's start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.angles import wrap
from roadworthy.sim.rules.collision import collides
from roadworthy.sim.rules.events import judge_start
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.routes import trace_route
from roadworthy.sim.rules.spawn import spawn, stop_motion
from roadworthy.sim.state import Maps, Params, Scenarios, Starts, Worlds

TRAFFIC_RETURNS_EVERY = 10  # steps after which reactive traffic that left an open world is spawned again
_TERMS, _FACTORS = len(state.REWARD_TERMS), len(state.HIDDEN_FACTORS)
_VEHICLE = int(AgentType.VEHICLE)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@rule
def start_episode(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Start the episode of world w, whose SCENARIO, MAP and seed are set."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    agents[:] = _ZERO
    flags[:] = 0
    set_clock(worlds, scenarios, w, p)
    count, driven = clock[state.AGENT_COUNT], clock[state.DRIVEN_COUNT]
    for a in range(count):
        init_agent(worlds, scenarios, w, a, p)
    if p.is_open:
        start_agents(worlds, starts, maps, scenarios, w, p)
    else:
        for a in range(count):
            place_recorded(worlds, maps, scenarios, w, a)
    for a in range(driven):
        flags[state.IS_DRIVING, a] = flags[state.IS_PRESENT, a]
        judge_start(agents, flags, a, count, maps, clock[state.MAP], scenarios.dt[clock[state.SCENARIO]], p)
    clock[state.IS_STARTING] = 0
    _copy(agents, starts.agents[w])
    _copy(flags, starts.agent_flags[w])


@rule
def set_clock(worlds: Worlds, scenarios: Scenarios, w: int, p: Params) -> None:
    """Initialize the clock, the hidden factors and the number of agents of an episode."""
    clock, seed = worlds.clocks[w], worlds.seeds[w]
    clock[state.STEP] = clock[state.TRIAL] = clock[state.EPISODE_STEP] = 0
    clock[state.TRIAL_ENDED] = clock[state.EPISODE_ENDED] = clock[state.FAILED_SPAWNS] = 0
    clock[state.IS_STARTING] = 1
    for f in range(_FACTORS):
        low, high = p.hidden_low[f], p.hidden_high[f]
        worlds.hidden[w, f] = low + (high - low) * draws.uniform(seed, draws.WORLD, f, draws.HIDDEN)
    clock[state.COPLAYER_POLICY] = draws.choose(seed, draws.WORLD, _FACTORS, draws.HIDDEN, p.partner_count)
    if p.is_open:
        clock[state.DRIVEN_COUNT], clock[state.AGENT_COUNT] = p.open_agents, p.open_agents + p.open_traffic
    else:
        counts = scenarios.counts[clock[state.SCENARIO]]
        clock[state.DRIVEN_COUNT] = counts[state.SELECTED_DRIVEN]
        clock[state.AGENT_COUNT] = counts[state.SELECTED_COUNT]


@rule
def place_recorded(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int) -> None:
    """Place agent a at the start of its recording."""
    agents, flags = worlds.agents[w], worlds.agent_flags[w]
    replay(agents, flags, a, scenarios, worlds.clocks[w, state.SCENARIO], 0)
    _init_accelerations(agents, flags, a, scenarios, worlds.clocks[w, state.SCENARIO])
    if flags[state.ROLE, a] == state.IDM:
        trace_route(worlds, maps, scenarios, w, a)
    elif flags[state.ROLE, a] == state.STATIC:
        stop_motion(agents, a)


@rule
def start_agents(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Start the agents that are due, one after another: each needs a place that those before it left free."""
    for a in range(worlds.clocks[w, state.AGENT_COUNT]):
        if _is_due(worlds, w, a, p):
            _start_agent(worlds, starts, maps, scenarios, w, a, p)


@rule
def _is_due(worlds: Worlds, w: int, a: int, p: Params) -> bool:
    """Return whether agent a starts now: all agents at the start, then waiting agents and traffic that left."""
    flags, clock = worlds.agent_flags[w], worlds.clocks[w]
    if clock[state.IS_STARTING] != 0:
        return True
    if a < clock[state.DRIVEN_COUNT]:
        return flags[state.IS_WAITING, a] != 0
    return p.is_open != 0 and flags[state.IS_PRESENT, a] == 0 and clock[state.STEP] % TRAFFIC_RETURNS_EVERY == 0


@rule
def _start_agent(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Start agent a if its place is free (replay) or a free place is found (open)."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    if flags[state.IS_WAITING, a] != 0:
        spawns = flags[state.SPAWNS, a]
        for line in range(agents.shape[0]):
            agents[line, a] = starts.agents[w, line, a]
        for line in range(flags.shape[0]):
            flags[line, a] = starts.agent_flags[w, line, a]
        flags[state.SPAWNS, a] = spawns
    if p.is_open:
        is_placed = spawn(worlds, maps, scenarios, w, a, p)
    else:
        is_placed = not collides(agents, flags, a, clock[state.AGENT_COUNT])
    if a >= clock[state.DRIVEN_COUNT]:
        return
    if clock[state.IS_STARTING] != 0:
        clock[state.FAILED_SPAWNS] += not is_placed
    elif is_placed:
        flags[state.IS_DRIVING, a] = 1
        flags[state.FIRST_STEP, a] = clock[state.STEP]
        dt = scenarios.dt[clock[state.SCENARIO]]
        judge_start(agents, flags, a, clock[state.AGENT_COUNT], maps, clock[state.MAP], dt, p)
    else:
        flags[state.IS_PRESENT, a], flags[state.IS_DRIVING, a], flags[state.IS_WAITING, a] = 0, 0, 1


@rule
def start_trial(worlds: Worlds, starts: Starts, w: int) -> None:
    """Start a trial: copy every line of every agent from the start of the episode."""
    _copy(starts.agents[w], worlds.agents[w])
    _copy(starts.agent_flags[w], worlds.agent_flags[w])
    worlds.clocks[w, state.STEP] = 0


@rule
def _copy(lines: NDArray[Any], lines_out: NDArray[Any]) -> None:
    for line in range(lines.shape[0]):
        for a in range(lines.shape[1]):
            lines_out[line, a] = lines[line, a]


@rule
def init_agent(worlds: Worlds, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Set the type, role, size, goal and reward weights of agent a."""
    agents, flags, clock, seed = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], worlds.seeds[w]
    s, driven = clock[state.SCENARIO], clock[state.DRIVEN_COUNT]
    flags[state.LANE, a] = flags[state.SIGN_AHEAD, a] = -1
    agents[state.LANE_COS, a] = _ONE
    for k in range(_TERMS):
        low, high = p.weight_low[k], p.weight_high[k]
        agents[state.WEIGHTS + k, a] = low + (high - low) * draws.uniform(seed, a, k, draws.WEIGHT)
    if p.is_open:
        flags[state.TYPE, a] = _VEHICLE
        flags[state.ROLE, a] = state.EGO if a < driven else state.IDM
        flags[state.SOURCE, a] = -1
    else:
        flags[state.TYPE, a] = scenarios.agent_types[s, a]
        flags[state.ROLE, a] = scenarios.agent_roles[s, a]
        flags[state.SOURCE, a] = scenarios.agent_sources[s, a]
        length, width = scenarios.bodies[s, state.BODY_LENGTH, a], scenarios.bodies[s, state.BODY_WIDTH, a]
        agents[state.LENGTH, a], agents[state.WIDTH, a] = length, width
        agents[state.RADIUS, a] = _HALF * np.sqrt(length * length + width * width)
        agents[state.GOALS, a] = scenarios.bodies[s, state.BODY_GOAL_X, a]
        agents[state.GOALS + 1, a] = scenarios.bodies[s, state.BODY_GOAL_Y, a]
        flags[state.GOAL_COUNT, a] = flags[state.GOALS_REQUIRED, a] = 1
    if a < driven and not _is_ego(a, driven, seed, p):
        flags[state.ROLE, a] = state.COPLAYER


@rule
def _init_accelerations(agents: Floats, flags: Ints, a: int, scenarios: Scenarios, s: int) -> None:
    """Give agent a the accelerations of its recording's first step; starting at 0 would make the first jerk wrong.

    Recordings have only speed and heading, so the accelerations are the changes from the first frame to the second.
    """
    if flags[state.IS_PRESENT, a] == 0 or scenarios.counts[s, state.FRAME_COUNT] < 2 or scenarios.valid[s, 1, a] == 0:
        return
    motion, dt = scenarios.motion[s], scenarios.dt[s]
    speed, next_speed = motion[state.MOTION_SPEED, 0, a], motion[state.MOTION_SPEED, 1, a]
    turn = wrap(motion[state.MOTION_HEADING, 1, a] - motion[state.MOTION_HEADING, 0, a])
    agents[state.ACCELERATION, a] = (next_speed - speed) / dt
    agents[state.LATERAL, a] = _HALF * (speed + next_speed) * turn / dt


@rule
def _is_ego(a: int, driven: int, seed: int, p: Params) -> bool:
    """Return whether a driven agent is an ego: a share of them are, at least one."""
    egos = max(int(np.float32(driven) * p.ego_share + _HALF), 1)
    if egos >= driven:
        return True
    own = draws.draw(seed, a, 0, draws.EGO)
    before = 0
    for other in range(driven):
        before += draws.draw(seed, other, 0, draws.EGO) < own
    return before < egos
