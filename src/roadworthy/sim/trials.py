"""What a step's events lead to: tallies, rewards, who is done, when a trial and an episode end.

With one trial (k = 1):
  an agent reached its last goal, or was stopped or removed: trial_ended and episode_ended for it, there and then. It is
  inactive until the world's next episode; with `respawn` it is active again as soon as a place is free.
  The time is up, or every ego is done: both for all that were still driving; timed_out if it was the time.
With several (k > 1):
  an agent is done: no signal; it is inactive ("in limbo") until the trial ends.
  The time is up, or every ego is done: trial_ended for all rows, timed_out for those that were not done; after the last
  trial episode_ended too.
"""

from __future__ import annotations

import numpy as np

from roadworthy.compile import inlined, rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.goals import distance_to_goal
from roadworthy.sim.logs import average_episode, close_episode, close_trial
from roadworthy.sim.reward import reward
from roadworthy.sim.spawn import new_goal, spawn
from roadworthy.sim.start import stand, start_anew, start_trial
from roadworthy.sim.state import (
    AGENT_COUNT,
    ALIGNED,
    CENTRED,
    COLLISIONS,
    DEPARTURES,
    DISTANCE,
    DRIVEN,
    DRIVEN_COUNT,
    DRIVES_ON,
    EGO,
    EVENT_ALIGNED,
    EVENT_CENTRED,
    EVENT_COLLISION,
    EVENT_GOAL,
    EVENT_OFF_ROAD,
    EVENT_ON_LANE,
    EVENT_RED_LIGHT,
    EVENT_STOP_SIGN,
    EVENT_UNCOMFORTABLE,
    EVENT_WRONG_WAY,
    EVENTS,
    FATE,
    GOAL,
    GOAL_COUNT,
    GOAL_DISTANCE,
    GOALS_REACHED,
    HAS_ENDED,
    IS_DONE,
    IS_DRIVING,
    IS_OVER,
    IS_PRESENT,
    IS_WAITING,
    LEAVES,
    NEW_GOAL,
    ON_LANE,
    PREVIOUS_X,
    PREVIOUS_Y,
    RED_LIGHTS,
    RESPAWN,
    RETURN,
    ROLE,
    STANDS,
    STEP,
    STOP,
    STOP_SIGNS,
    TRIAL,
    UNCOMFORTABLE,
    WRONG_WAY,
    Logs,
    Maps,
    Params,
    Rows,
    Scenarios,
    Starts,
    Worlds,
    X,
    Y,
)

TRAFFIC_RETURNS_EVERY = 10  # steps: reactive traffic that left an open world is spawned again
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@inlined
def settle(agents: Floats, marks: Ints, a: int, p: Params) -> float:
    """Tally this step's events for a driving agent, decide its FATE and return its reward."""
    events = marks[EVENTS, a]
    gained = reward(agents, marks, a)
    agents[RETURN, a] += gained
    dx, dy = agents[X, a] - agents[PREVIOUS_X, a], agents[Y, a] - agents[PREVIOUS_Y, a]
    agents[DISTANCE, a] += np.sqrt(dx * dx + dy * dy)
    agents[DRIVEN, a] += _ONE
    agents[ON_LANE, a] += _one_if(events & EVENT_ON_LANE)
    agents[ALIGNED, a] += _one_if(events & EVENT_ALIGNED)
    agents[CENTRED, a] += _one_if(events & EVENT_CENTRED)
    agents[WRONG_WAY, a] += _one_if(events & EVENT_WRONG_WAY)
    agents[UNCOMFORTABLE, a] += _one_if(events & EVENT_UNCOMFORTABLE)
    marks[GOALS_REACHED, a] += (events & EVENT_GOAL) != 0
    marks[COLLISIONS, a] += (events & EVENT_COLLISION) != 0
    marks[DEPARTURES, a] += (events & EVENT_OFF_ROAD) != 0
    marks[RED_LIGHTS, a] += (events & EVENT_RED_LIGHT) != 0
    marks[STOP_SIGNS, a] += (events & EVENT_STOP_SIGN) != 0

    # What is done about an infraction (IGNORE, HALT, REMOVE) is numbered as the fates are (DRIVES_ON, STANDS, LEAVES).
    fate = DRIVES_ON
    if events & EVENT_COLLISION:
        fate = max(fate, p.on_collision)
    if events & EVENT_OFF_ROAD:
        fate = max(fate, p.on_off_road)
    if events & EVENT_RED_LIGHT:
        fate = max(fate, p.on_red_light)
    if events & EVENT_GOAL:
        marks[GOAL, a] += 1
    # Who was to get another goal and has none a step later came to the end of the road.
    if 0 < marks[GOAL_COUNT, a] <= marks[GOAL, a] and (p.at_goal != NEW_GOAL or not events & EVENT_GOAL):
        fate = max(fate, STANDS if p.at_goal == STOP else LEAVES)
    marks[FATE, a] = fate
    return gained


@inlined
def _one_if(bits: int) -> float:
    return _ONE if bits else _ZERO


@rule
def close(worlds: Worlds, logs: Logs, rows: Rows, w: int, p: Params) -> None:
    """Find out whether the trial and the episode of world w end with this step; write signals and figures."""
    marks, clock = worlds.marks[w], worlds.clocks[w]
    driven = clock[DRIVEN_COUNT]
    first_row, row_count = w * logs.trials.shape[1], logs.trials.shape[1]
    is_time_up = clock[STEP] >= p.trial_steps
    is_last_trial = clock[TRIAL] + 1 >= p.trials
    is_trial_over = is_time_up or (p.at_goal != RESPAWN and _are_egos_done(marks, driven))
    for a in range(driven):
        row = first_row + a
        is_driving = marks[IS_DRIVING, a] != 0
        is_done = marks[IS_DONE, a] != 0 or marks[FATE, a] != DRIVES_ON
        # With one trial, who is done ends there and then and is out of the rest; with several, all end at once.
        if p.trials == 1:
            has_ended = is_driving and (is_done or is_trial_over)
        else:
            has_ended = is_trial_over and (is_driving or marks[IS_DONE, a] != 0)
        rows.trial_ended[row] = has_ended
        rows.episode_ended[row] = has_ended and is_last_trial
        rows.timed_out[row] = has_ended and is_time_up and not is_done
        if has_ended:
            close_trial(worlds, logs, w, a, clock[TRIAL], is_time_up and not is_done, p)
            if is_last_trial:
                close_episode(logs, w, a, clock[TRIAL] + 1, p)
                average_episode(logs, w, a, p)
    for row in range(first_row + driven, first_row + row_count):
        rows.trial_ended[row] = rows.episode_ended[row] = rows.timed_out[row] = False
    clock[HAS_ENDED] = is_trial_over and is_last_trial
    clock[IS_OVER] = is_trial_over


@rule
def _are_egos_done(marks: Ints, driven: int) -> bool:
    for a in range(driven):
        if marks[ROLE, a] == EGO and marks[IS_DRIVING, a] != 0 and marks[FATE, a] == DRIVES_ON:
            return False
    return True


@rule
def carry_on(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Let the fates come true, and start the next trial, or whoever waits for another start."""
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    for a in range(clock[DRIVEN_COUNT]):
        if marks[IS_DRIVING, a] == 0:
            continue
        if marks[FATE, a] != DRIVES_ON:
            marks[IS_DRIVING, a] = 0
            marks[IS_DONE, a] = 1
            stand(agents, a)
            if marks[FATE, a] == LEAVES or p.at_goal == RESPAWN:
                marks[IS_PRESENT, a] = 0
            marks[IS_WAITING, a] = p.at_goal == RESPAWN
        elif marks[EVENTS, a] & EVENT_GOAL:
            if marks[GOAL, a] >= marks[GOAL_COUNT, a]:
                new_goal(worlds, maps, w, a, p)
            agents[GOAL_DISTANCE, a] = distance_to_goal(agents, marks, a, p)
    if clock[IS_OVER] and not clock[HAS_ENDED]:
        clock[TRIAL] += 1
        start_trial(worlds, starts, w)
    elif not clock[IS_OVER]:
        if p.at_goal == RESPAWN:
            for a in range(clock[DRIVEN_COUNT]):
                if marks[IS_WAITING, a] != 0:
                    start_anew(worlds, starts, maps, scenarios, w, a, p)
        if p.is_open and clock[STEP] % TRAFFIC_RETURNS_EVERY == 0:
            for a in range(clock[DRIVEN_COUNT], clock[AGENT_COUNT]):
                if marks[IS_PRESENT, a] == 0:
                    spawn(worlds, maps, scenarios, w, a, p)
