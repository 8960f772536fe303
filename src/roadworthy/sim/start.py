"""How episodes, trials and single agents start: always from the same code, and a trial from the episode's own start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.compile import rule
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim import draws
from roadworthy.sim.collision import collides
from roadworthy.sim.dynamics import wrap
from roadworthy.sim.judge import judge_start
from roadworthy.sim.replay import replay
from roadworthy.sim.routes import trace_route
from roadworthy.sim.spawn import spawn
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
    HAS_ENDED,
    HIDDEN_FACTORS,
    IDM,
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

_TERMS, _FACTORS = len(REWARD_TERMS), len(HIDDEN_FACTORS)
_VEHICLE = int(AgentType.VEHICLE)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@rule
def start_episode(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Begin the episode of world w; its clock's SCENARIO and MAP and its seed are set."""
    agents, marks, clock, seed = worlds.agents[w], worlds.marks[w], worlds.clocks[w], worlds.seeds[w]
    s, m = clock[SCENARIO], clock[MAP]
    agents[:] = _ZERO
    marks[:] = 0
    clock[STEP] = clock[TRIAL] = clock[EPISODE_STEP] = clock[IS_OVER] = clock[HAS_ENDED] = clock[FAILED_SPAWNS] = 0
    for f in range(_FACTORS):
        low, high = p.hidden_low[f], p.hidden_high[f]
        worlds.hidden[w, f] = low + (high - low) * draws.uniform(seed, draws.WORLD, f, draws.HIDDEN)
    clock[PARTNER] = draws.choose(seed, draws.WORLD, _FACTORS, draws.HIDDEN, p.partner_count)

    if p.is_open:
        clock[DRIVEN_COUNT], clock[AGENT_COUNT] = p.open_agents, p.open_agents + p.open_traffic
    else:
        clock[DRIVEN_COUNT], clock[AGENT_COUNT] = scenarios.counts[s, CAST_DRIVEN], scenarios.counts[s, CAST_COUNT]
    count, driven = clock[AGENT_COUNT], clock[DRIVEN_COUNT]
    for a in range(count):
        _cast(agents, marks, a, scenarios, s, seed, driven, p)
    _choose_egos(marks, driven, seed, p)
    for a in range(count):
        if p.is_open:
            if not spawn(worlds, maps, scenarios, w, a, p):
                clock[FAILED_SPAWNS] += a < driven
        else:
            replay(agents, marks, a, scenarios, s, 0)
            _take_up_motion(agents, marks, a, scenarios, s)
            if marks[ROLE, a] == IDM:
                trace_route(worlds, maps, scenarios, w, a)
            elif marks[ROLE, a] == STATIC:
                stand(agents, a)
    for a in range(driven):
        marks[IS_DRIVING, a] = marks[IS_PRESENT, a]
        judge_start(agents, marks, a, count, maps, m, p)
    _copy(agents, starts.agents[w])
    _copy(marks, starts.marks[w])


@rule
def start_trial(worlds: Worlds, starts: Starts, w: int) -> None:
    """Begin a trial: every line of every agent as it was at the start of the episode."""
    _copy(starts.agents[w], worlds.agents[w])
    _copy(starts.marks[w], worlds.marks[w])
    worlds.clocks[w, STEP] = 0


@rule
def start_anew(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, a: int, p: Params) -> None:
    """Give an agent that waits another start, if its place is free (replay) or a free place is found (open)."""
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    spawns = marks[SPAWNS, a]
    for line in range(agents.shape[0]):
        agents[line, a] = starts.agents[w, line, a]
    for line in range(marks.shape[0]):
        marks[line, a] = starts.marks[w, line, a]
    marks[SPAWNS, a] = spawns
    if p.is_open:
        marks[IS_PRESENT, a] = 0
        is_placed = spawn(worlds, maps, scenarios, w, a, p)
    else:
        is_placed = not collides(agents, marks, a, clock[AGENT_COUNT])
    if not is_placed:
        marks[IS_PRESENT, a], marks[IS_DRIVING, a], marks[IS_WAITING, a] = 0, 0, 1
        return
    marks[IS_DRIVING, a] = 1
    marks[FIRST_STEP, a] = clock[STEP]
    judge_start(agents, marks, a, clock[AGENT_COUNT], maps, clock[MAP], p)


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
def _cast(agents: Floats, marks: Ints, a: int, scenarios: Scenarios, s: int, seed: int, driven: int, p: Params) -> None:
    """What an agent is, whatever place it starts at."""
    marks[LANE, a] = marks[LINE, a] = -1
    agents[LANE_COS, a] = _ONE
    for k in range(_TERMS):
        low, high = p.weight_low[k], p.weight_high[k]
        agents[WEIGHTS + k, a] = low + (high - low) * draws.uniform(seed, a, k, draws.WEIGHT)
    if p.is_open:
        marks[TYPE, a] = _VEHICLE
        marks[ROLE, a] = EGO if a < driven else IDM
        marks[SOURCE, a] = -1
        return
    marks[TYPE, a] = scenarios.cast_types[s, a]
    marks[ROLE, a] = scenarios.cast_roles[s, a]
    marks[SOURCE, a] = scenarios.cast_sources[s, a]
    length, width = scenarios.cast[s, CAST_LENGTH, a], scenarios.cast[s, CAST_WIDTH, a]
    agents[LENGTH, a], agents[WIDTH, a] = length, width
    agents[RADIUS, a] = _HALF * np.sqrt(length * length + width * width)
    agents[GOALS, a] = scenarios.cast[s, CAST_GOAL_X, a]
    agents[GOALS + 1, a] = scenarios.cast[s, CAST_GOAL_Y, a]
    marks[GOAL_COUNT, a] = 1


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
def _choose_egos(marks: Ints, driven: int, seed: int, p: Params) -> None:
    """Make a share of the driven agents egos, the others co-players; at least one is an ego."""
    egos = max(int(np.float32(driven) * p.ego_share + _HALF), 1)
    if egos >= driven:
        return  # they were cast as egos
    for a in range(driven):
        own = draws.draw(seed, a, 0, draws.EGO)
        before = 0
        for other in range(driven):
            before += draws.draw(seed, other, 0, draws.EGO) < own
        marks[ROLE, a] = EGO if before < egos else COPLAYER
