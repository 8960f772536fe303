"""The order of the rules on a GPU, as kernels.

A thread block serves a world, and a thread an agent. The end of a kernel or a barrier separates writes of one thread
from reads of another. cuda_observe.py has the kernels for observations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import cuda_kernel
from roadworthy.kernels.cuda import cuda, float32, int32, natural
from roadworthy.scenario.schema import Floats, Ints, Longs
from roadworthy.sim import state
from roadworthy.sim.backends.episode_queue import EpisodeQueue, Seeds, take_episode
from roadworthy.sim.maps.scenario_store import MOST_AGENTS
from roadworthy.sim.rules import events, idm, trial_end
from roadworthy.sim.rules.disturbances import apply_action
from roadworthy.sim.rules.dynamics import is_allowed
from roadworthy.sim.rules.dynamics import move as drive
from roadworthy.sim.rules.episode_figures import average_figure
from roadworthy.sim.rules.episode_start import init_agent, place_recorded, set_clock, start_agents
from roadworthy.sim.rules.observe_partners import update_appearance
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.routes import place_on_route
from roadworthy.sim.state import Logs, Maps, Rows, Scenarios, Starts, Worlds

_ZERO = np.float32(0.0)
Settings = NDArray[np.void]

AGENTS_PER_BLOCK, QUESTIONS = 32, 4  # agents that a thread block judges, and thread blocks for each group of agents
# For planning traffic: pairs that are processed together, a box for each agent, and registers per thread.
_PAIRS, _BOXES, _REGISTERS = 512, (4, MOST_AGENTS), 128
# Entries of EndedRows.counts.
ENDED, STEPS, BAD_ACTIONS, BAD_ROW = range(4)


class EndedRows(NamedTuple):
    """EndedRows episodes of single rows, in any order, until the host reads them. Room for n of them."""

    counts: Longs  # (4,) episodes ended since the last read; steps made; invalid actions; the row of one of them
    steps: Longs  # (n,) step at which each one ended
    rows: Ints  # (n,)
    numbers: Longs  # (n,) Episode.number
    slots: Ints  # (n,) slot of its scenario
    seeds: Seeds  # (n,)
    is_ego: Ints  # (n,)
    is_cut: Ints  # (n,)
    figures: Floats  # (n, F)
    trials: Floats  # (n, K, len(TRIAL_FIGURES))


@cuda_kernel
def place_driven(worlds: Worlds, maps: Maps, settings: Settings) -> None:
    """Update the places on their routes of policy-driven agents, which traffic uses to predict them."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    clock = worlds.clocks[w]
    if (
        clock[state.SCENARIO] >= 0
        and a < clock[state.DRIVEN_COUNT] < clock[state.AGENT_COUNT]
        and worlds.agent_flags[w, state.IS_DRIVING, a]
    ):
        place_on_route(worlds, maps, w, a)


@cuda_kernel(registers=_REGISTERS)
def plan_traffic(worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: Settings) -> None:
    """Decide what reactive agents do, from the current state of all agents.

    Few pairs of agents interact, and those take long. So pairs that interact are listed first and then distributed over
    the threads: if each thread handled all pairs of its agent, all threads would wait for the slowest.
    """
    w, thread, threads = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x), natural(cuda.blockDim.x)
    agents, flags, clock, p = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], settings[0]
    wanted = cuda.shared.array(MOST_AGENTS, float32)
    reach = cuda.shared.array(MOST_AGENTS, float32)
    stop = cuda.shared.array(MOST_AGENTS, float32)
    boxes = cuda.shared.array(_BOXES, float32)
    pairs = cuda.shared.array(_PAIRS, int32)
    listed = cuda.shared.array(1, int32)
    first, count = natural(clock[state.DRIVEN_COUNT]), natural(clock[state.AGENT_COUNT])
    if clock[state.SCENARIO] < 0 or first >= count:
        return
    for a in range(first + thread, count, threads):
        box = idm.NO_BOX
        if _is_traffic(worlds, w, a):
            wanted[a], reach[a], stop[a], box = idm.plan_alone(worlds, maps, scenarios, w, a, p)
        boxes[0, a], boxes[1, a], boxes[2, a], boxes[3, a] = box
    for start in range(first * count, count * count, _PAIRS):
        if thread == 0:
            listed[0] = 0
        cuda.syncthreads()
        for pair in range(start + thread, min(start + _PAIRS, count * count), threads):
            a, b = pair // count, pair % count
            if idm.may_interact(agents, flags, a, b, (boxes[0, a], boxes[1, a], boxes[2, a], boxes[3, a])):
                pairs[cuda.atomic.add(listed, 0, 1)] = pair
        cuda.syncthreads()
        for k in range(thread, listed[0], threads):
            a, b = natural(pairs[k]) // count, natural(pairs[k]) % count
            box = (boxes[0, a], boxes[1, a], boxes[2, a], boxes[3, a])
            because = idm.reaction(worlds, maps, scenarios, w, a, b, reach[a], stop[a], box, p)
            cuda.atomic.min(wanted, a, because)
        cuda.syncthreads()
    for a in range(first + thread, count, threads):
        if _is_traffic(worlds, w, a):
            agents[state.ALONG, a] = max(wanted[a], -idm.HARDEST_MPS2)


@cuda_kernel
def move(worlds: Worlds, rows: Rows, scenarios: Scenarios, ended: EndedRows, settings: Settings) -> None:
    """Move all agents but reactive ones; policy-driven agents follow their actions."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    p, clock = settings[0], worlds.clocks[w]
    s = clock[state.SCENARIO]
    if s < 0:
        return
    agents, flags, dt, step = worlds.agents[w], worlds.agent_flags[w], scenarios.dt[s], clock[state.STEP]
    if a < clock[state.DRIVEN_COUNT]:
        if flags[state.IS_DRIVING, a]:
            row = w * (rows.active.size // worlds.clocks.shape[0]) + a
            action = rows.actions[row]
            if not is_allowed(action, p):
                cuda.atomic.add(ended.counts, BAD_ACTIONS, 1)
                cuda.atomic.max(ended.counts, BAD_ROW, row)
                action[0] = action[1] = _ZERO
            flags[state.EVENTS, a] = 0
            apply_action(agents, flags, a, action, worlds.seeds[w], step, dt, p)
            drive(agents, flags, a, dt, worlds.hidden[w], p)
    elif a < clock[state.AGENT_COUNT] and flags[state.ROLE, a] == state.REPLAYED:
        replay(agents, flags, a, scenarios, s, step + 1)
    cuda.syncthreads()
    if a == 0:
        clock[state.STEP] += 1
        clock[state.EPISODE_STEP] += 1


@cuda_kernel
def move_traffic(worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: Settings) -> None:
    """Move reactive agents."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    if _is_traffic(worlds, w, a):
        idm.move(worlds, maps, w, a, scenarios.dt[worlds.clocks[w, state.SCENARIO]], settings[0])


@cuda_kernel
def judge(worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: Settings) -> None:
    """Detect what happened to each agent, as bits of EVENTS that `finish_step` classifies.

    Thread block (w, y, q) checks one of QUESTIONS for AGENTS_PER_BLOCK agents of world w. Blocks start in that order,
    so that those that run at the same time execute the same instructions: mixed, they would wait for instructions a
    third of the time.
    """
    w, question = natural(cuda.blockIdx.x), cuda.blockIdx.z
    a, p = natural(cuda.blockIdx.y) * AGENTS_PER_BLOCK + natural(cuda.threadIdx.x), settings[0]
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    if clock[state.SCENARIO] < 0 or a >= clock[state.DRIVEN_COUNT] or flags[state.IS_DRIVING, a] == 0:
        return
    m, s, found = natural(clock[state.MAP]), natural(clock[state.SCENARIO]), 0
    if question == 0:
        found = events.detect_off_road(agents, flags, a, maps, m)
    elif question == 1:
        found = events.detect_lane(agents, flags, a, maps, m)
    elif question == 2:
        found = events.detect_line_crossings(
            agents, flags, a, maps, m, scenarios, s, clock[state.STEP], worlds.seeds[w], p
        )
    else:
        found = events.detect_collision(agents, flags, a, natural(clock[state.AGENT_COUNT]), maps, m)
    if found != 0:
        cuda.atomic.or_(flags, (state.EVENTS, a), np.int32(found))


@cuda_kernel
def finish_step(
    worlds: Worlds, logs: Logs, rows: Rows, episode_queue: EpisodeQueue, ended: EndedRows, settings: Settings
) -> None:
    """Write rewards, signals and figures, and detect ends of trials and episodes."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    p, clock, flags, row_count = settings[0], worlds.clocks[w], worlds.agent_flags[w], logs.trials.shape[1]
    row = w * row_count + a
    if w == 0 and a == 0:
        ended.counts[STEPS] += 1
    if clock[state.SCENARIO] < 0:
        if a < row_count:
            rows.rewards[row] = _ZERO
            rows.trial_ended[row] = rows.episode_ended[row] = rows.timed_out[row] = False
        return
    is_driven = a < clock[state.DRIVEN_COUNT]
    step_reward = _ZERO
    if is_driven and flags[state.IS_DRIVING, a]:
        events.classify_events(worlds.agents[w], flags, a, flags[state.EVENTS, a], p)
        step_reward = trial_end.update_rewards_and_stats(worlds.agents[w], flags, a, p)
    is_ego_left = cuda.syncthreads_or(np.int32(is_driven and trial_end.keeps_trial_running(flags, a))) != 0
    is_over = trial_end.is_trial_over(clock, is_ego_left, p)
    if a < row_count:
        rows.rewards[row] = step_reward
        trial_end.write_row_results(worlds, logs, rows, w, a, row, is_over, p)
    cuda.syncthreads()
    if a == 0:
        trial_end.update_clock(clock, is_over, p)
    # Few episodes end in a step: all threads work on one after another.
    for slot in range(clock[state.DRIVEN_COUNT]):
        if rows.episode_ended[w * row_count + slot]:
            if worlds.agent_flags[w, state.ROLE, slot] == state.EGO:
                for f in range(a, logs.episodes.shape[2], cuda.blockDim.x):
                    average_figure(logs, w, slot, f, p)
                if a == 0:
                    logs.episode_counts[w, slot] += 1
            _record_ended(worlds, logs, episode_queue, ended, w, slot, a, False)


@cuda_kernel
def update_appearances(worlds: Worlds, settings: Settings) -> None:
    """Write what others observe of each agent, for final observations."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    if worlds.clocks[w, state.SCENARIO] >= 0 and a < worlds.clocks[w, state.AGENT_COUNT]:
        update_appearance(worlds.agents[w], worlds.agent_flags[w, state.TYPE], worlds.appearance[w], a)


@cuda_kernel
def advance_trial(worlds: Worlds, starts: Starts, maps: Maps, settings: Settings) -> None:
    """Apply terminations and start the next trial where one ended."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    clock = worlds.clocks[w]
    if clock[state.SCENARIO] < 0 or clock[state.EPISODE_ENDED]:
        return
    if clock[state.TRIAL_ENDED]:
        _copy_column(starts.agents[w], starts.agent_flags[w], worlds.agents[w], worlds.agent_flags[w], a)
        if a == 0:
            clock[state.TRIAL] += 1
            clock[state.STEP] = 0
    elif a < clock[state.DRIVEN_COUNT]:
        trial_end.apply_termination(worlds, maps, w, a, settings[0])


@cuda_kernel
def begin(worlds: Worlds, maps: Maps, scenarios: Scenarios, episode_queue: EpisodeQueue, settings: Settings) -> None:
    """Set up the next episode where one has ended. Recorded agents start here, others in `place_agents`."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    agents, flags, clock, p = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], settings[0]
    has_ended = clock[state.EPISODE_ENDED]
    cuda.syncthreads()
    if not has_ended:
        return
    if a == 0:
        take_episode(worlds, episode_queue, w)
        if clock[state.SCENARIO] >= 0:
            set_clock(worlds, scenarios, w, p)
    cuda.syncthreads()
    if clock[state.SCENARIO] < 0:
        return
    if a < agents.shape[1]:
        for line in range(agents.shape[0]):
            agents[line, a] = _ZERO
        for line in range(flags.shape[0]):
            flags[line, a] = 0
    if a < clock[state.AGENT_COUNT]:
        init_agent(worlds, scenarios, w, a, p)
        if not p.is_open:
            place_recorded(worlds, maps, scenarios, w, a)


@cuda_kernel(small=True)
def place_agents(
    worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, settings: Settings, is_step: bool
) -> None:
    """Find free places for agents that need one. They are found one after another, so a world has one thread.

    A thread block serves as many worlds as it has threads, so that all of them share the instruction fetches that a
    single thread would mostly wait for.
    is_step: also for agents that wait in a running world, not only where an episode starts.
    """
    w = natural(cuda.blockIdx.x) * natural(cuda.blockDim.x) + natural(cuda.threadIdx.x)
    if w < worlds.clocks.shape[0]:
        clock = worlds.clocks[w]
        if clock[state.SCENARIO] >= 0 and (clock[state.IS_STARTING] or (is_step and not clock[state.TRIAL_ENDED])):
            start_agents(worlds, starts, maps, scenarios, w, settings[0])


@cuda_kernel
def finish_start(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, settings: Settings) -> None:
    """Write what is true of agents at their start, the state that trials start from, and what others observe."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    is_beginning, count = clock[state.IS_STARTING], clock[state.AGENT_COUNT]
    if clock[state.SCENARIO] < 0:
        return
    if is_beginning:
        if a < clock[state.DRIVEN_COUNT]:
            flags[state.IS_DRIVING, a] = flags[state.IS_PRESENT, a]
            dt = scenarios.dt[clock[state.SCENARIO]]
            events.judge_start(agents, flags, a, count, maps, clock[state.MAP], dt, settings[0])
        _copy_column(agents, flags, starts.agents[w], starts.agent_flags[w], a)
    if a < count:
        update_appearance(agents, flags[state.TYPE], worlds.appearance[w], a)
    cuda.syncthreads()
    if a == 0:
        clock[state.IS_STARTING] = 0


@cuda_kernel
def cut(
    worlds: Worlds, logs: Logs, episode_queue: EpisodeQueue, ended: EndedRows, settings: Settings, is_cut: Ints
) -> None:
    """Cut short the episodes of the worlds that `is_cut` names; these worlds start another one with `begin`."""
    w, a = natural(cuda.blockIdx.x), natural(cuda.threadIdx.x)
    clock = worlds.clocks[w]
    if not is_cut[w]:
        return
    is_under_way = cuda.shared.array(MOST_AGENTS, int32)
    is_under_way[a] = (
        clock[state.SCENARIO] >= 0 and a < logs.trials.shape[1] and trial_end.cut_row(worlds, logs, w, a, settings[0])
    )
    cuda.syncthreads()
    for slot in range(logs.trials.shape[1]):
        if is_under_way[slot]:
            _record_ended(worlds, logs, episode_queue, ended, w, slot, a, True)
    if a == 0:
        clock[state.EPISODE_ENDED] = 1


@cuda_kernel(device=True)
def _is_traffic(worlds: Worlds, w: int, a: int) -> bool:
    clock, flags = worlds.clocks[w], worlds.agent_flags[w]
    if clock[state.SCENARIO] < 0 or a < clock[state.DRIVEN_COUNT] or a >= clock[state.AGENT_COUNT]:
        return False
    return flags[state.ROLE, a] == state.IDM and flags[state.IS_PRESENT, a] != 0


@cuda_kernel(device=True)
def _copy_column(agents: Floats, flags: Ints, agents_out: Floats, flags_out: Ints, a: int) -> None:
    if a < agents.shape[1]:
        for line in range(agents.shape[0]):
            agents_out[line, a] = agents[line, a]
        for line in range(flags.shape[0]):
            flags_out[line, a] = flags[line, a]


@cuda_kernel(device=True)
def _record_ended(
    worlds: Worlds,
    logs: Logs,
    episode_queue: EpisodeQueue,
    ended: EndedRows,
    w: int,
    slot: int,
    thread: int,
    is_cut: bool,
) -> None:
    """Keep the result of a row's episode until the host reads it; the newest ones stay. All threads take part."""
    place = cuda.shared.array(1, int32)
    if thread == 0:
        place[0] = cuda.atomic.add(ended.counts, ENDED, 1) % len(ended.rows)
    cuda.syncthreads()
    n = place[0]
    if thread == 0:
        ended.steps[n] = ended.counts[STEPS]
        ended.rows[n] = w * logs.trials.shape[1] + slot
        ended.numbers[n] = episode_queue.numbers[w]
        ended.slots[n] = worlds.clocks[w, state.SCENARIO]
        ended.seeds[n] = worlds.seeds[w]
        ended.is_ego[n] = worlds.agent_flags[w, state.ROLE, slot] == state.EGO
        ended.is_cut[n] = is_cut
    for f in range(thread, ended.figures.shape[1], cuda.blockDim.x):
        ended.figures[n, f] = logs.episodes[w, slot, f]
    for f in range(thread, ended.trials.shape[2], cuda.blockDim.x):
        for k in range(ended.trials.shape[1]):
            ended.trials[n, k, f] = logs.trials[w, slot, k, f]
    cuda.syncthreads()
