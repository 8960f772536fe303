"""How episodes, trials and single agents start: always from the same code, and a trial from the episode's own start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.angles import wrap
from roadworthy.sim.rules.collision import collides
from roadworthy.sim.rules.events import judge_start
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.routes import trace_route
from roadworthy.sim.rules.spawn import spawn
from roadworthy.sim.state import (
    ACCELERATION,
    AGENT_COUNT,
    BODY_GOAL_X,
    BODY_GOAL_Y,
    BODY_LENGTH,
    BODY_WIDTH,
    COPLAYER,
    COPLAYER_POLICY,
    DRIVEN_COUNT,
    EGO,
    EPISODE_ENDED,
    EPISODE_STEP,
    FAILED_SPAWNS,
    FIRST_STEP,
    FRAME_COUNT,
    GOAL_COUNT,
    GOALS,
    GOALS_REQUIRED,
    HIDDEN_FACTORS,
    IDM,
    IS_DRIVING,
    IS_PRESENT,
    IS_STARTING,
    IS_WAITING,
    JERK,
    LANE,
    LANE_COS,
    LATERAL,
    LENGTH,
    MAP,
    MOTION_HEADING,
    MOTION_SPEED,
    RADIUS,
    REWARD_TERMS,
    ROLE,
    SCENARIO,
    SELECTED_COUNT,
    SELECTED_DRIVEN,
    SIGN_AHEAD,
    SOURCE,
    SPAWNS,
    SPEED,
    STATIC,
    STEERING,
    STEP,
    TRIAL,
    TRIAL_ENDED,
    TYPE,
    WEIGHTS,
    WIDTH,
    Maps,
    Params,
    Scenarios,
    Starts,
    Worlds,
)

TRAFFIC_RETURNS_EVERY = 10  # steps: reactive traffic that left an open world is spawned again
_TERMS, _FACTORS = len(REWARD_TERMS), len(HIDDEN_FACTORS)
_VEHICLE = int(AgentType.VEHICLE)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@rule
def start_episode(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Begin the episode of world w; its clock's SCENARIO and MAP and its seed are set."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    agents[:] = _ZERO
    flags[:] = 0
    set_clock(worlds, scenarios, w, p)
    count, driven = clock[AGENT_COUNT], clock[DRIVEN_COUNT]
    for a in range(count):
        init_agent(worlds, scenarios, w, a, p)
    if p.is_open:
        start_agents(worlds, starts, maps, scenarios, w, p)
    else:
        for a in range(count):
            place_recorded(worlds, maps, scenarios, w, a)
    for a in range(driven):
        flags[IS_DRIVING, a] = flags[IS_PRESENT, a]
        judge_start(agents, flags, a, count, maps, clock[MAP], scenarios.dt[clock[SCENARIO]], p)
    clock[IS_STARTING] = 0
    _copy(agents, starts.agents[w])
    _copy(flags, starts.agent_flags[w])


@rule
def set_clock(worlds: Worlds, scenarios: Scenarios, w: int, p: Params) -> None:
    """The clock at the start of an episode, its hidden factors and how many agents it has."""
    clock, seed = worlds.clocks[w], worlds.seeds[w]
    clock[STEP] = clock[TRIAL] = clock[EPISODE_STEP] = clock[TRIAL_ENDED] = clock[EPISODE_ENDED] = clock[
        FAILED_SPAWNS
    ] = 0
    clock[IS_STARTING] = 1
    for f in range(_FACTORS):
        low, high = p.hidden_low[f], p.hidden_high[f]
        worlds.hidden[w, f] = low + (high - low) * draws.uniform(seed, draws.WORLD, f, draws.HIDDEN)
    clock[COPLAYER_POLICY] = draws.choose(seed, draws.WORLD, _FACTORS, draws.HIDDEN, p.partner_count)
    if p.is_open:
        clock[DRIVEN_COUNT], clock[AGENT_COUNT] = p.open_agents, p.open_agents + p.open_traffic
    else:
        counts = scenarios.counts[clock[SCENARIO]]
        clock[DRIVEN_COUNT], clock[AGENT_COUNT] = counts[SELECTED_DRIVEN], counts[SELECTED_COUNT]


@rule
def place_recorded(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int) -> None:
    """Let agent a start where its recording does."""
    agents, flags = worlds.agents[w], worlds.agent_flags[w]
    replay(agents, flags, a, scenarios, worlds.clocks[w, SCENARIO], 0)
    _init_accelerations(agents, flags, a, scenarios, worlds.clocks[w, SCENARIO])
    if flags[ROLE, a] == IDM:
        trace_route(worlds, maps, scenarios, w, a)
    elif flags[ROLE, a] == STATIC:
        stop_motion(agents, a)


@rule
def start_agents(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Start those for whom it is time, one after another: each needs a place that those before have left free."""
    for a in range(worlds.clocks[w, AGENT_COUNT]):
        if _is_due(worlds, w, a, p):
            _start_agent(worlds, starts, maps, scenarios, w, a, p)


@rule
def _is_due(worlds: Worlds, w: int, a: int, p: Params) -> bool:
    """Whether agent a is to start now: all are when an open world begins, then who waits, and traffic that has left."""
    flags, clock = worlds.agent_flags[w], worlds.clocks[w]
    if clock[IS_STARTING] != 0:
        return True
    if a < clock[DRIVEN_COUNT]:
        return flags[IS_WAITING, a] != 0
    return p.is_open != 0 and flags[IS_PRESENT, a] == 0 and clock[STEP] % TRAFFIC_RETURNS_EVERY == 0


@rule
def _start_agent(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Give agent a a start, if its place is free (replay) or a free place is found (open); else it stays away."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    if flags[IS_WAITING, a] != 0:
        spawns = flags[SPAWNS, a]
        for line in range(agents.shape[0]):
            agents[line, a] = starts.agents[w, line, a]
        for line in range(flags.shape[0]):
            flags[line, a] = starts.agent_flags[w, line, a]
        flags[SPAWNS, a] = spawns
    if p.is_open:
        is_placed = spawn(worlds, maps, scenarios, w, a, p)
    else:
        is_placed = not collides(agents, flags, a, clock[AGENT_COUNT])
    if a >= clock[DRIVEN_COUNT]:
        return
    if clock[IS_STARTING] != 0:
        clock[FAILED_SPAWNS] += not is_placed
    elif is_placed:
        flags[IS_DRIVING, a] = 1
        flags[FIRST_STEP, a] = clock[STEP]
        dt = scenarios.dt[clock[SCENARIO]]
        judge_start(agents, flags, a, clock[AGENT_COUNT], maps, clock[MAP], dt, p)
    else:
        flags[IS_PRESENT, a], flags[IS_DRIVING, a], flags[IS_WAITING, a] = 0, 0, 1


@rule
def start_trial(worlds: Worlds, starts: Starts, w: int) -> None:
    """Begin a trial: every line of every agent as it was at the start of the episode."""
    _copy(starts.agents[w], worlds.agents[w])
    _copy(starts.agent_flags[w], worlds.agent_flags[w])
    worlds.clocks[w, STEP] = 0


@rule
def _copy(lines: NDArray[Any], lines_out: NDArray[Any]) -> None:
    for line in range(lines.shape[0]):
        for a in range(lines.shape[1]):
            lines_out[line, a] = lines[line, a]


@rule
def stop_motion(agents: Floats, a: int) -> None:
    """Let an agent stand where it is."""
    agents[SPEED, a] = agents[ACCELERATION, a] = agents[LATERAL, a] = agents[JERK, a] = agents[STEERING, a] = _ZERO


@rule
def init_agent(worlds: Worlds, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """What agent a is, wherever it starts."""
    agents, flags, clock, seed = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], worlds.seeds[w]
    s, driven = clock[SCENARIO], clock[DRIVEN_COUNT]
    flags[LANE, a] = flags[SIGN_AHEAD, a] = -1
    agents[LANE_COS, a] = _ONE
    for k in range(_TERMS):
        low, high = p.weight_low[k], p.weight_high[k]
        agents[WEIGHTS + k, a] = low + (high - low) * draws.uniform(seed, a, k, draws.WEIGHT)
    if p.is_open:
        flags[TYPE, a] = _VEHICLE
        flags[ROLE, a] = EGO if a < driven else IDM
        flags[SOURCE, a] = -1
    else:
        flags[TYPE, a] = scenarios.agent_types[s, a]
        flags[ROLE, a] = scenarios.agent_roles[s, a]
        flags[SOURCE, a] = scenarios.agent_sources[s, a]
        length, width = scenarios.bodies[s, BODY_LENGTH, a], scenarios.bodies[s, BODY_WIDTH, a]
        agents[LENGTH, a], agents[WIDTH, a] = length, width
        agents[RADIUS, a] = _HALF * np.sqrt(length * length + width * width)
        agents[GOALS, a] = scenarios.bodies[s, BODY_GOAL_X, a]
        agents[GOALS + 1, a] = scenarios.bodies[s, BODY_GOAL_Y, a]
        flags[GOAL_COUNT, a] = flags[GOALS_REQUIRED, a] = 1
    if a < driven and not _is_ego(a, driven, seed, p):
        flags[ROLE, a] = COPLAYER


@rule
def _init_accelerations(agents: Floats, flags: Ints, a: int, scenarios: Scenarios, s: int) -> None:
    """Let agent a start with the accelerations of its recording's first step: from none, the first jerk would be wrong.

    Speed and heading are all that is recorded, so they are what changes from the first frame to the second.
    """
    if flags[IS_PRESENT, a] == 0 or scenarios.counts[s, FRAME_COUNT] < 2 or scenarios.valid[s, 1, a] == 0:
        return
    motion, dt = scenarios.motion[s], scenarios.dt[s]
    speed, next_speed = motion[MOTION_SPEED, 0, a], motion[MOTION_SPEED, 1, a]
    turn = wrap(motion[MOTION_HEADING, 1, a] - motion[MOTION_HEADING, 0, a])
    agents[ACCELERATION, a] = (next_speed - speed) / dt
    agents[LATERAL, a] = _HALF * (speed + next_speed) * turn / dt


@rule
def _is_ego(a: int, driven: int, seed: int, p: Params) -> bool:
    """Whether a driven agent is an ego: a share of them is, and at least one."""
    egos = max(int(np.float32(driven) * p.ego_share + _HALF), 1)
    if egos >= driven:
        return True
    own = draws.draw(seed, a, 0, draws.EGO)
    before = 0
    for other in range(driven):
        before += draws.draw(seed, other, 0, draws.EGO) < own
    return before < egos
