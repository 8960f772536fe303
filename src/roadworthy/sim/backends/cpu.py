"""The order of the rules, worlds in parallel on the cores.

`step` makes one step of every world; `begin` starts an episode in some of them. Within a world each stage runs over all
agents before the next one begins, so that nobody sees half of a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import entry, kernel, rule
from roadworthy.kernels.threads import prange
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules import traffic
from roadworthy.sim.rules.disturb import obey
from roadworthy.sim.rules.dynamics import move as drive
from roadworthy.sim.rules.judge import conclude, find_contact, find_edges, find_lane, find_lines
from roadworthy.sim.rules.observe import (
    is_somewhere,
    look_at_lights,
    look_at_partners,
    look_at_roads,
    look_at_self,
    show_agents,
)
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.roads import fetch_lists, fetch_roads
from roadworthy.sim.rules.routes import place_on_route
from roadworthy.sim.rules.start import start_episode
from roadworthy.sim.rules.trials import carry_on, close, cut_row, settle
from roadworthy.sim.state import (
    AGENT_COUNT,
    DRIVEN_COUNT,
    EPISODE_STEP,
    EVENTS,
    HAS_ENDED,
    IDM,
    IS_DRIVING,
    IS_PRESENT,
    MAP,
    REPLAYED,
    ROLE,
    SCENARIO,
    STEP,
    Logs,
    Maps,
    Params,
    Rows,
    Scenarios,
    Starts,
    Worlds,
)

# Stages of a step, as bits, so that a benchmark can run them one by one.
PLAN, MOVE, JUDGE, SETTLE, CARRY_ON, OBSERVE = 1, 2, 4, 8, 16, 32
ALL_STAGES = 63
UNTIL_SETTLED = PLAN | MOVE | JUDGE | SETTLE  # after these, what ended is still where it ended
STAGES = {"plan": PLAN, "move": MOVE, "judge": JUDGE, "settle": SETTLE, "carry on": CARRY_ON, "observe": OBSERVE}

_ZERO = np.float32(0.0)


@entry(parallel=True)
def step(
    worlds: Worlds,
    starts: Starts,
    logs: Logs,
    rows: Rows,
    maps: Maps,
    scenarios: Scenarios,
    settings: NDArray[np.void],
    stages: int,
) -> None:
    """One step of every world that is not idle."""
    for number in prange(len(worlds.clocks)):
        w, p = np.int64(number), settings[0]
        if worlds.clocks[w, SCENARIO] < 0:
            _rest(rows, w, logs.trials.shape[1])
            continue
        if stages & PLAN:
            _plan(worlds, rows, maps, scenarios, w, p)
        if stages & MOVE:
            _move(worlds, maps, scenarios, w, p)
        if stages & JUDGE:
            _judge(worlds, maps, scenarios, w, p)
        if stages & SETTLE:
            _settle(worlds, logs, rows, w, p)
        if stages & CARRY_ON:
            if p.keeps_final:
                _observe(worlds, rows, maps, scenarios, w, p, True)
            carry_on(worlds, starts, maps, scenarios, w, p)
        if stages & OBSERVE:
            _observe(worlds, rows, maps, scenarios, w, p, False)


@entry(parallel=True)
def begin(
    numbers: Ints,
    worlds: Worlds,
    starts: Starts,
    rows: Rows,
    maps: Maps,
    scenarios: Scenarios,
    settings: NDArray[np.void],
) -> None:
    """Start the episode that is set for each of these worlds (none where SCENARIO is -1) and observe it."""
    for k in prange(len(numbers)):
        w, p = np.int64(numbers[k]), settings[0]
        if worlds.clocks[w, SCENARIO] >= 0:
            start_episode(worlds, starts, maps, scenarios, w, p)
        _observe(worlds, rows, maps, scenarios, w, p, False)


@kernel
def cut(
    numbers: NDArray[np.int64],
    worlds: Worlds,
    logs: Logs,
    settings: NDArray[np.void],
    is_cut_out: NDArray[np.bool_],
) -> None:
    """Close the episodes under way in these worlds before their time, and mark whose they were.

    is_cut_out: (worlds, slots)
    """
    for w in numbers:
        for a in range(logs.trials.shape[1]):
            is_cut_out[w, a] = cut_row(worlds, logs, w, a, settings[0])


@rule
def _plan(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """What every agent wants to do, from where all of them are."""
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    first_row = w * rows_per_world(worlds, rows)
    dt = scenarios.dt[clock[SCENARIO]]
    for a in range(clock[DRIVEN_COUNT]):
        if marks[IS_DRIVING, a]:
            obey(agents, marks, a, rows.actions[first_row + a], worlds.seeds[w], clock[STEP], dt, p)
    if clock[AGENT_COUNT] > clock[DRIVEN_COUNT]:
        # Traffic judges those whom policies drive by their places on their routes.
        for a in range(clock[DRIVEN_COUNT]):
            if marks[IS_DRIVING, a]:
                place_on_route(worlds, maps, w, a)
    for a in range(clock[DRIVEN_COUNT], clock[AGENT_COUNT]):
        if marks[ROLE, a] == IDM and marks[IS_PRESENT, a]:
            traffic.plan(worlds, maps, scenarios, w, a, p)


@rule
def _move(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Everybody moves at once."""
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    s = clock[SCENARIO]
    dt = scenarios.dt[s]
    clock[STEP] += 1
    clock[EPISODE_STEP] += 1
    for a in range(clock[DRIVEN_COUNT]):
        if marks[IS_DRIVING, a]:
            drive(agents, marks, a, dt, worlds.hidden[w], p)
    for a in range(clock[DRIVEN_COUNT], clock[AGENT_COUNT]):
        if marks[ROLE, a] == REPLAYED:
            replay(agents, marks, a, scenarios, s, clock[STEP])
        elif marks[ROLE, a] == IDM and marks[IS_PRESENT, a]:
            traffic.move(worlds, maps, w, a, dt, p)


@rule
def _judge(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    agents, marks, clock, seed = worlds.agents[w], worlds.marks[w], worlds.clocks[w], worlds.seeds[w]
    s, m, count, step = clock[SCENARIO], clock[MAP], clock[AGENT_COUNT], clock[STEP]
    driven = clock[DRIVEN_COUNT]
    fetch_roads(maps, m, agents, driven, worlds.order[w])
    # Question by question, as `_observe` goes part by part. EVENTS holds what was found until all is.
    for a in range(driven):
        if marks[IS_DRIVING, a]:
            marks[EVENTS, a] = find_contact(agents, marks, a, count, maps, m)
    for a in range(driven):
        if marks[IS_DRIVING, a]:
            marks[EVENTS, a] |= find_edges(agents, marks, a, maps, m)
    for a in range(driven):
        if marks[IS_DRIVING, a]:
            marks[EVENTS, a] |= find_lines(agents, marks, a, maps, m, scenarios, s, step, seed, p)
    for a in range(driven):
        if marks[IS_DRIVING, a]:
            marks[EVENTS, a] |= find_lane(agents, marks, a, maps, m)
    for a in range(driven):
        if marks[IS_DRIVING, a]:
            conclude(agents, marks, a, marks[EVENTS, a], p)


@rule
def _settle(worlds: Worlds, logs: Logs, rows: Rows, w: int, p: Params) -> None:
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    first_row = w * logs.trials.shape[1]
    for a in range(clock[DRIVEN_COUNT]):
        rows.rewards[first_row + a] = settle(agents, marks, a, p) if marks[IS_DRIVING, a] else _ZERO
    for row in range(first_row + clock[DRIVEN_COUNT], first_row + logs.trials.shape[1]):
        rows.rewards[row] = _ZERO
    close(worlds, logs, rows, w, p)


@rule
def _observe(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, w: int, p: Params, is_last: bool) -> None:
    """Write every row; one that is not active is zero.

    is_last: keep what a row sees where its trial ends instead, before anything changes.
    """
    row_count = rows_per_world(worlds, rows)
    agents, marks, clock, seed = worlds.agents[w], worlds.marks[w], worlds.clocks[w], worlds.seeds[w]
    looks, order = worlds.looks[w], worlds.order[w]
    s, m, count, step = clock[SCENARIO], clock[MAP], clock[AGENT_COUNT], clock[STEP]
    driven = clock[DRIVEN_COUNT] if s >= 0 and (is_last or not clock[HAS_ENDED]) else 0
    first, rows_out = w * row_count, rows.final_observations if is_last else rows.observations
    show_agents(worlds, w)
    for a in range(row_count):
        row = first + a
        is_active = a < driven and marks[IS_DRIVING, a] != 0
        if not is_last:
            if rows.active[row] and not is_active:
                rows_out[row] = _ZERO
            rows.active[row] = is_active
        if is_active and (rows.trial_ended[row] or not is_last) and not is_somewhere(agents, a):
            rows_out[row] = _ZERO
    if driven > 0:
        fetch_lists(maps, m, agents, driven)
    # Part by part: all of it in one loop takes a fifth longer.
    for a in range(driven):
        if _is_looking(agents, marks, rows, a, first + a, is_last):
            look_at_self(agents, marks, a, p, rows_out[first + a])
    for a in range(driven):
        if _is_looking(agents, marks, rows, a, first + a, is_last):
            look_at_partners(agents, marks, looks, order, count, a, scenarios.dt[s], step, seed, p, rows_out[first + a])
    for a in range(driven):
        if _is_looking(agents, marks, rows, a, first + a, is_last):
            look_at_roads(agents, a, maps, m, step, seed, p, rows_out[first + a])
    for a in range(driven):
        if _is_looking(agents, marks, rows, a, first + a, is_last):
            look_at_lights(agents, a, maps, m, scenarios, s, step, seed, p, rows_out[first + a])


@rule(inline=True)
def _is_looking(agents: Floats, marks: Ints, rows: Rows, a: int, row: int, is_last: bool) -> bool:
    """Whether a driven agent's row is to be written."""
    is_asked = marks[IS_DRIVING, a] != 0 and (rows.trial_ended[row] or not is_last)
    return is_asked and is_somewhere(agents, a)


@rule(inline=True)
def _rest(rows: Rows, w: int, row_count: int) -> None:
    """An idle world: nothing happens."""
    for row in range(w * row_count, (w + 1) * row_count):
        rows.rewards[row] = _ZERO
        rows.trial_ended[row] = rows.episode_ended[row] = rows.timed_out[row] = False


@rule(inline=True)
def rows_per_world(worlds: Worlds, rows: Rows) -> int:
    return len(rows.active) // len(worlds.clocks)
