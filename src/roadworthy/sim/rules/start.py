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
from roadworthy.sim.rules.judge import judge_start
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.routes import trace_route
from roadworthy.sim.rules.spawn import spawn
from roadworthy.sim.state import (
    ACCELERATION,
    AGENT_COUNT,
    CAST_COUNT,
    CAST_DRIVEN,
    CAST_GOAL_X,
    CAST_GOAL_Y,
    CAST_LENGTH,
    CAST_WIDTH,
    COPLAYER,
    DRIVEN_COUNT,
    EGO,
    EPISODE_STEP,
    FAILED_SPAWNS,
    FIRST_STEP,
    FRAME_COUNT,
    GOAL_COUNT,
    GOALS,
    GOALS_ASKED,
    HAS_ENDED,
    HIDDEN_FACTORS,
    IDM,
    IS_BEGINNING,
    IS_DRIVING,
    IS_OVER,
    IS_PRESENT,
    IS_WAITING,
    JERK,
    LANE,
    LANE_COS,
    LATERAL,
    LENGTH,
    LINE,
    MAP,
    MOTION_HEADING,
    MOTION_SPEED,
    PARTNER,
    RADIUS,
    REWARD_TERMS,
    ROLE,
    SCENARIO,
    SOURCE,
    SPAWNS,
    SPEED,
    STATIC,
    STEERING,
    STEP,
    TRIAL,
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
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    agents[:] = _ZERO
    marks[:] = 0
    set_clock(worlds, scenarios, w, p)
    count, driven = clock[AGENT_COUNT], clock[DRIVEN_COUNT]
    for a in range(count):
        cast(worlds, scenarios, w, a, p)
    if p.is_open:
        start_agents(worlds, starts, maps, scenarios, w, p)
    else:
        for a in range(count):
            place_recorded(worlds, maps, scenarios, w, a)
    for a in range(driven):
        marks[IS_DRIVING, a] = marks[IS_PRESENT, a]
        judge_start(agents, marks, a, count, maps, clock[MAP], scenarios.dt[clock[SCENARIO]], p)
    clock[IS_BEGINNING] = 0
    _copy(agents, starts.agents[w])
    _copy(marks, starts.marks[w])


@rule
def set_clock(worlds: Worlds, scenarios: Scenarios, w: int, p: Params) -> None:
    """The clock at the start of an episode, its hidden factors and how many agents it has."""
    clock, seed = worlds.clocks[w], worlds.seeds[w]
    clock[STEP] = clock[TRIAL] = clock[EPISODE_STEP] = clock[IS_OVER] = clock[HAS_ENDED] = clock[FAILED_SPAWNS] = 0
    clock[IS_BEGINNING] = 1
    for f in range(_FACTORS):
        low, high = p.hidden_low[f], p.hidden_high[f]
        worlds.hidden[w, f] = low + (high - low) * draws.uniform(seed, draws.WORLD, f, draws.HIDDEN)
    clock[PARTNER] = draws.choose(seed, draws.WORLD, _FACTORS, draws.HIDDEN, p.partner_count)
    if p.is_open:
        clock[DRIVEN_COUNT], clock[AGENT_COUNT] = p.open_agents, p.open_agents + p.open_traffic
    else:
        counts = scenarios.counts[clock[SCENARIO]]
        clock[DRIVEN_COUNT], clock[AGENT_COUNT] = counts[CAST_DRIVEN], counts[CAST_COUNT]


@rule
def place_recorded(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int) -> None:
    """Let agent a start where its recording does."""
    agents, marks = worlds.agents[w], worlds.marks[w]
    replay(agents, marks, a, scenarios, worlds.clocks[w, SCENARIO], 0)
    _take_up_motion(agents, marks, a, scenarios, worlds.clocks[w, SCENARIO])
    if marks[ROLE, a] == IDM:
        trace_route(worlds, maps, scenarios, w, a)
    elif marks[ROLE, a] == STATIC:
        stand(agents, a)


@rule
def start_agents(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Start those for whom it is time, one after another: each needs a place that those before have left free."""
    for a in range(worlds.clocks[w, AGENT_COUNT]):
        if _is_due(worlds, w, a, p):
            _start_agent(worlds, starts, maps, scenarios, w, a, p)


@rule
def _is_due(worlds: Worlds, w: int, a: int, p: Params) -> bool:
    """Whether agent a is to start now: all are when an open world begins, then who waits, and traffic that has left."""
    marks, clock = worlds.marks[w], worlds.clocks[w]
    if clock[IS_BEGINNING] != 0:
        return True
    if a < clock[DRIVEN_COUNT]:
        return marks[IS_WAITING, a] != 0
    return p.is_open != 0 and marks[IS_PRESENT, a] == 0 and clock[STEP] % TRAFFIC_RETURNS_EVERY == 0


@rule
def _start_agent(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Give agent a a start, if its place is free (replay) or a free place is found (open); else it stays away."""
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    if marks[IS_WAITING, a] != 0:
        spawns = marks[SPAWNS, a]
        for line in range(agents.shape[0]):
            agents[line, a] = starts.agents[w, line, a]
        for line in range(marks.shape[0]):
            marks[line, a] = starts.marks[w, line, a]
        marks[SPAWNS, a] = spawns
    if p.is_open:
        is_placed = spawn(worlds, maps, scenarios, w, a, p)
    else:
        is_placed = not collides(agents, marks, a, clock[AGENT_COUNT])
    if a >= clock[DRIVEN_COUNT]:
        return
    if clock[IS_BEGINNING] != 0:
        clock[FAILED_SPAWNS] += not is_placed
    elif is_placed:
        marks[IS_DRIVING, a] = 1
        marks[FIRST_STEP, a] = clock[STEP]
        dt = scenarios.dt[clock[SCENARIO]]
        judge_start(agents, marks, a, clock[AGENT_COUNT], maps, clock[MAP], dt, p)
    else:
        marks[IS_PRESENT, a], marks[IS_DRIVING, a], marks[IS_WAITING, a] = 0, 0, 1


@rule
def start_trial(worlds: Worlds, starts: Starts, w: int) -> None:
    """Begin a trial: every line of every agent as it was at the start of the episode."""
    _copy(starts.agents[w], worlds.agents[w])
    _copy(starts.marks[w], worlds.marks[w])
    worlds.clocks[w, STEP] = 0


@rule
def _copy(lines: NDArray[Any], lines_out: NDArray[Any]) -> None:
    for line in range(lines.shape[0]):
        for a in range(lines.shape[1]):
            lines_out[line, a] = lines[line, a]


@rule
def stand(agents: Floats, a: int) -> None:
    """Let an agent stand where it is."""
    agents[SPEED, a] = agents[ACCELERATION, a] = agents[LATERAL, a] = agents[JERK, a] = agents[STEERING, a] = _ZERO


@rule
def cast(worlds: Worlds, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """What agent a is, wherever it starts."""
    agents, marks, clock, seed = worlds.agents[w], worlds.marks[w], worlds.clocks[w], worlds.seeds[w]
    s, driven = clock[SCENARIO], clock[DRIVEN_COUNT]
    marks[LANE, a] = marks[LINE, a] = -1
    agents[LANE_COS, a] = _ONE
    for k in range(_TERMS):
        low, high = p.weight_low[k], p.weight_high[k]
        agents[WEIGHTS + k, a] = low + (high - low) * draws.uniform(seed, a, k, draws.WEIGHT)
    if p.is_open:
        marks[TYPE, a] = _VEHICLE
        marks[ROLE, a] = EGO if a < driven else IDM
        marks[SOURCE, a] = -1
    else:
        marks[TYPE, a] = scenarios.cast_types[s, a]
        marks[ROLE, a] = scenarios.cast_roles[s, a]
        marks[SOURCE, a] = scenarios.cast_sources[s, a]
        length, width = scenarios.cast[s, CAST_LENGTH, a], scenarios.cast[s, CAST_WIDTH, a]
        agents[LENGTH, a], agents[WIDTH, a] = length, width
        agents[RADIUS, a] = _HALF * np.sqrt(length * length + width * width)
        agents[GOALS, a] = scenarios.cast[s, CAST_GOAL_X, a]
        agents[GOALS + 1, a] = scenarios.cast[s, CAST_GOAL_Y, a]
        marks[GOAL_COUNT, a] = marks[GOALS_ASKED, a] = 1
    if a < driven and not _is_ego(a, driven, seed, p):
        marks[ROLE, a] = COPLAYER


@rule
def _take_up_motion(agents: Floats, marks: Ints, a: int, scenarios: Scenarios, s: int) -> None:
    """Let agent a start with the accelerations of its recording's first step: from none, the first jerk would be wrong.

    Speed and heading are all that is recorded, so they are what changes from the first frame to the second.
    """
    if marks[IS_PRESENT, a] == 0 or scenarios.counts[s, FRAME_COUNT] < 2 or scenarios.valid[s, 1, a] == 0:
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
