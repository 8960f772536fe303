"""The order of the rules on a CPU, with worlds in parallel on its cores.

`step` makes one step of every world; `begin` starts an episode in some of them. Within a world each stage runs over all
agents before the next one begins, so that no agent observes half of a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import entry, kernel, rule
from roadworthy.kernels.threads import prange
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.layout import EGO_BLOCK, GOAL_BLOCK, WEIGHTS_BLOCK
from roadworthy.sim.rules import events, idm
from roadworthy.sim.rules.disturbances import apply_action
from roadworthy.sim.rules.dynamics import move as drive
from roadworthy.sim.rules.episode_start import start_episode
from roadworthy.sim.rules.map_prefetch import prefetch_lists, prefetch_map
from roadworthy.sim.rules.observation import has_valid_pose
from roadworthy.sim.rules.observe_conditioning import write_weights
from roadworthy.sim.rules.observe_ego import write_ego
from roadworthy.sim.rules.observe_goals import write_goals
from roadworthy.sim.rules.observe_partners import observe_partners, update_appearances
from roadworthy.sim.rules.observe_roads import observe_roads
from roadworthy.sim.rules.observe_stop_lines import observe_stop_lines
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.routes import place_on_route
from roadworthy.sim.rules.trial_end import advance_trial, cut_row, finish_step, update_rewards_and_stats
from roadworthy.sim.state import Logs, Maps, Params, Rows, Scenarios, Starts, Worlds

# Stages of a step, as bits, so that callers can run them one by one.
PLAN, MOVE, JUDGE, REWARD, ADVANCE, OBSERVE = 1, 2, 4, 8, 16, 32
ALL_STAGES = 63
MOTION = PLAN | MOVE
BEFORE_REWARD = MOTION | JUDGE
BEFORE_RESET = BEFORE_REWARD | REWARD  # after these stages, trials that ended still have their last state
STAGES = {"plan": PLAN, "move": MOVE, "judge": JUDGE, "reward": REWARD, "advance": ADVANCE, "observe": OBSERVE}

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
    """Make one step of every world that is not idle."""
    for number in prange(len(worlds.clocks)):
        w, p = np.int64(number), settings[0]
        if worlds.clocks[w, state.SCENARIO] < 0:
            _clear_outputs(rows, w, logs.trials.shape[1])
            continue
        if stages & PLAN:
            _plan(worlds, rows, maps, scenarios, w, p)
        if stages & MOVE:
            _move(worlds, maps, scenarios, w, p)
        if stages & JUDGE:
            _judge(worlds, maps, scenarios, w, p)
        if stages & REWARD:
            _reward(worlds, logs, rows, w, p)
        if stages & ADVANCE:
            if p.keeps_final:
                _observe(worlds, rows, maps, scenarios, w, p, True)
            advance_trial(worlds, starts, maps, scenarios, w, p)
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
        if worlds.clocks[w, state.SCENARIO] >= 0:
            start_episode(worlds, starts, maps, scenarios, w, p)
        _observe(worlds, rows, maps, scenarios, w, p, False)


@kernel
def cut(
    numbers: NDArray[np.int64], worlds: Worlds, logs: Logs, settings: NDArray[np.void], is_cut_out: NDArray[np.bool_]
) -> None:
    """Cut short the episodes in progress in these worlds, and report their rows.

    is_cut_out: (worlds, slots)
    """
    for w in numbers:
        for a in range(logs.trials.shape[1]):
            is_cut_out[w, a] = cut_row(worlds, logs, w, a, settings[0])


@rule
def _plan(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Decide what every agent does, from the current state of all agents."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    first_row = w * rows_per_world(worlds, rows)
    dt = scenarios.dt[clock[state.SCENARIO]]
    for a in range(clock[state.DRIVEN_COUNT]):
        if flags[state.IS_DRIVING, a]:
            apply_action(agents, flags, a, rows.actions[first_row + a], worlds.seeds[w], clock[state.STEP], dt, p)
    if clock[state.AGENT_COUNT] > clock[state.DRIVEN_COUNT]:
        # Traffic predicts policy-driven agents by their places on their routes.
        for a in range(clock[state.DRIVEN_COUNT]):
            if flags[state.IS_DRIVING, a]:
                place_on_route(worlds, maps, w, a)
    for a in range(clock[state.DRIVEN_COUNT], clock[state.AGENT_COUNT]):
        if flags[state.ROLE, a] == state.IDM and flags[state.IS_PRESENT, a]:
            idm.plan(worlds, maps, scenarios, w, a, p)


@rule
def _move(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Move all agents."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    s = clock[state.SCENARIO]
    dt = scenarios.dt[s]
    clock[state.STEP] += 1
    clock[state.EPISODE_STEP] += 1
    for a in range(clock[state.DRIVEN_COUNT]):
        if flags[state.IS_DRIVING, a]:
            drive(agents, flags, a, dt, worlds.hidden[w], p)
    for a in range(clock[state.DRIVEN_COUNT], clock[state.AGENT_COUNT]):
        if flags[state.ROLE, a] == state.REPLAYED:
            replay(agents, flags, a, scenarios, s, clock[state.STEP])
        elif flags[state.ROLE, a] == state.IDM and flags[state.IS_PRESENT, a]:
            idm.move(worlds, maps, w, a, dt, p)


@rule
def _judge(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    agents, flags, clock, seed = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], worlds.seeds[w]
    s, m, count, step = clock[state.SCENARIO], clock[state.MAP], clock[state.AGENT_COUNT], clock[state.STEP]
    driven = clock[state.DRIVEN_COUNT]
    prefetch_map(maps, m, agents, driven, worlds.order[w])
    # One rule at a time for all agents, which is faster. EVENTS holds the findings until all are complete.
    for a in range(driven):
        if flags[state.IS_DRIVING, a]:
            flags[state.EVENTS, a] = events.detect_collision(agents, flags, a, count, maps, m)
    for a in range(driven):
        if flags[state.IS_DRIVING, a]:
            flags[state.EVENTS, a] |= events.detect_off_road(agents, flags, a, maps, m)
    for a in range(driven):
        if flags[state.IS_DRIVING, a]:
            flags[state.EVENTS, a] |= events.detect_line_crossings(
                agents, flags, a, maps, m, scenarios, s, step, seed, p
            )
    for a in range(driven):
        if flags[state.IS_DRIVING, a]:
            flags[state.EVENTS, a] |= events.detect_lane(agents, flags, a, maps, m)
    for a in range(driven):
        if flags[state.IS_DRIVING, a]:
            events.classify_events(agents, flags, a, flags[state.EVENTS, a], p)


@rule
def _reward(worlds: Worlds, logs: Logs, rows: Rows, w: int, p: Params) -> None:
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    first_row = w * logs.trials.shape[1]
    for a in range(clock[state.DRIVEN_COUNT]):
        rows.rewards[first_row + a] = (
            update_rewards_and_stats(agents, flags, a, p) if flags[state.IS_DRIVING, a] else _ZERO
        )
    for row in range(first_row + clock[state.DRIVEN_COUNT], first_row + logs.trials.shape[1]):
        rows.rewards[row] = _ZERO
    finish_step(worlds, logs, rows, w, p)


@rule
def _observe(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, w: int, p: Params, is_last: bool) -> None:
    """Write every row; inactive rows are zero.

    is_last: write the final observations of rows whose trial ended instead, before anything is reset.
    """
    row_count = rows_per_world(worlds, rows)
    agents, flags, clock, seed = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], worlds.seeds[w]
    appearance, order = worlds.appearance[w], worlds.order[w]
    s, m, count, step = clock[state.SCENARIO], clock[state.MAP], clock[state.AGENT_COUNT], clock[state.STEP]
    driven = clock[state.DRIVEN_COUNT] if s >= 0 and (is_last or not clock[state.EPISODE_ENDED]) else 0
    first, rows_out = w * row_count, rows.final_observations if is_last else rows.observations
    update_appearances(worlds, w)
    for a in range(row_count):
        row = first + a
        is_active = a < driven and flags[state.IS_DRIVING, a] != 0
        if not is_last:
            if rows.active[row] and not is_active:
                rows_out[row] = _ZERO
            rows.active[row] = is_active
        if is_active and (rows.trial_ended[row] or not is_last) and not has_valid_pose(agents, a):
            rows_out[row] = _ZERO
    if driven > 0:
        prefetch_lists(maps, m, agents, driven)
    # One block at a time for all agents: a single loop over agents takes 20% longer.
    for a in range(driven):
        if _is_observing(agents, flags, rows, a, first + a, is_last):
            write_ego(agents, flags, a, rows_out[first + a], p.block_starts[EGO_BLOCK])
            write_goals(agents, flags, a, p, rows_out[first + a], p.block_starts[GOAL_BLOCK])
            write_weights(agents, a, rows_out[first + a], p.block_starts[WEIGHTS_BLOCK])
    for a in range(driven):
        if _is_observing(agents, flags, rows, a, first + a, is_last):
            observe_partners(
                agents, flags, appearance, order, count, a, scenarios.dt[s], step, seed, p, rows_out[first + a]
            )
    for a in range(driven):
        if _is_observing(agents, flags, rows, a, first + a, is_last):
            observe_roads(agents, a, maps, m, step, seed, p, rows_out[first + a])
    for a in range(driven):
        if _is_observing(agents, flags, rows, a, first + a, is_last):
            observe_stop_lines(agents, a, maps, m, scenarios, s, step, seed, p, rows_out[first + a])


@rule(inline=True)
def _is_observing(agents: Floats, flags: Ints, rows: Rows, a: int, row: int, is_last: bool) -> bool:
    """Return whether a driven agent's row is to be written."""
    is_asked = flags[state.IS_DRIVING, a] != 0 and (rows.trial_ended[row] or not is_last)
    return is_asked and has_valid_pose(agents, a)


@rule(inline=True)
def _clear_outputs(rows: Rows, w: int, row_count: int) -> None:
    """Clear the rewards and signals of an idle world."""
    for row in range(w * row_count, (w + 1) * row_count):
        rows.rewards[row] = _ZERO
        rows.trial_ended[row] = rows.episode_ended[row] = rows.timed_out[row] = False


@rule(inline=True)
def rows_per_world(worlds: Worlds, rows: Rows) -> int:
    return len(rows.active) // len(worlds.clocks)
