"""The end of a step: statistics, rewards, termination of agents, and the ends of trials and episodes.

With one trial (k = 1):
  An agent reaches its last goal, or is stopped or removed: trial_ended and episode_ended for it at once. It is
  inactive until the world's next episode; with `respawn` it is active again as soon as its place is free.
  The time is up, or every ego is done: both signals for all agents that were still driving; timed_out if time is up.
With several trials (k > 1):
  An agent is done: no signal; it is inactive until the trial ends.
  The time is up, or every ego is done: trial_ended for all rows, timed_out for those that were not done;
  episode_ended too after the last trial.
With `continue` nothing ends at a goal: an agent that has reached all its goals drives until the time is up, and is not
timed_out then. It is done only if an infraction stops or removes it.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.episode_figures import average_episode, write_episode_figures, write_trial_figures
from roadworthy.sim.rules.episode_start import start_agents, start_trial
from roadworthy.sim.rules.goals import distance_to_goal
from roadworthy.sim.rules.reward import reward
from roadworthy.sim.rules.spawn import new_goal, stop_motion
from roadworthy.sim.state import Logs, Maps, Params, Rows, Scenarios, Starts, Worlds

_ZERO, _ONE, _NAN = np.float32(0.0), np.float32(1.0), np.float32(np.nan)


@rule(inline=True)
def update_rewards_and_stats(agents: Floats, flags: Ints, a: int, p: Params) -> float:
    """Update the statistics of a driving agent with this step's events, set its TERMINATION and return its reward."""
    events = flags[state.EVENTS, a]
    step_reward = reward(agents, flags, a)
    dx, dy = agents[state.X, a] - agents[state.PREVIOUS_X, a], agents[state.Y, a] - agents[state.PREVIOUS_Y, a]
    # Read everything before writing anything: a GPU would wait for each number in turn.
    returned, distance = agents[state.RETURN, a], agents[state.DISTANCE, a]
    driven, on_lane = agents[state.DRIVEN, a], agents[state.ON_LANE, a]
    aligned, centered, wrong_way = agents[state.ALIGNED, a], agents[state.CENTERED, a], agents[state.WRONG_WAY, a]
    uncomfortable = agents[state.UNCOMFORTABLE, a]
    reached, collisions = flags[state.GOALS_REACHED, a], flags[state.COLLISIONS, a]
    departures = flags[state.DEPARTURES, a]
    red_lights, stop_signs = flags[state.RED_LIGHTS, a], flags[state.STOP_SIGNS, a]
    goal, goal_count = flags[state.GOAL, a], flags[state.GOAL_COUNT, a]

    agents[state.RETURN, a] = returned + step_reward
    agents[state.DISTANCE, a] = distance + np.sqrt(dx * dx + dy * dy)
    agents[state.DRIVEN, a] = driven + _ONE
    agents[state.ON_LANE, a] = on_lane + _one_if(events & state.EVENT_ON_LANE)
    agents[state.ALIGNED, a] = aligned + _one_if(events & state.EVENT_ALIGNED)
    agents[state.CENTERED, a] = centered + _one_if(events & state.EVENT_CENTERED)
    agents[state.WRONG_WAY, a] = wrong_way + _one_if(events & state.EVENT_WRONG_WAY)
    agents[state.UNCOMFORTABLE, a] = uncomfortable + _one_if(events & state.EVENT_UNCOMFORTABLE)
    flags[state.GOALS_REACHED, a] = reached + ((events & state.EVENT_GOAL) != 0)
    flags[state.COLLISIONS, a] = collisions + ((events & state.EVENT_COLLISION) != 0)
    flags[state.DEPARTURES, a] = departures + ((events & state.EVENT_OFF_ROAD) != 0)
    flags[state.RED_LIGHTS, a] = red_lights + ((events & state.EVENT_RED_LIGHT) != 0)
    flags[state.STOP_SIGNS, a] = stop_signs + ((events & state.EVENT_STOP_SIGN) != 0)

    # IGNORE, HALT and REMOVE have the numbers of NOT_TERMINATED, STOPPED and REMOVED.
    termination = state.NOT_TERMINATED
    if events & state.EVENT_COLLISION:
        termination = max(termination, p.on_collision)
    if events & state.EVENT_OFF_ROAD:
        termination = max(termination, p.on_off_road)
    if events & state.EVENT_RED_LIGHT:
        termination = max(termination, p.on_red_light)
    if events & state.EVENT_GOAL:
        goal += 1
        flags[state.GOAL, a] = goal
    # An agent that should have got another goal, and has none a step later, is at the end of the road.
    is_done = 0 < goal_count <= goal and (p.at_goal != state.NEW_GOAL or not events & state.EVENT_GOAL)
    if is_done and p.at_goal != state.CONTINUE:
        termination = max(termination, state.STOPPED if p.at_goal == state.STOP else state.REMOVED)
    flags[state.TERMINATION, a] = termination
    return step_reward


@rule(inline=True)
def _one_if(bits: int) -> float:
    return _ONE if bits else _ZERO


@rule
def finish_step(worlds: Worlds, logs: Logs, rows: Rows, w: int, p: Params) -> None:
    """Detect whether the trial and the episode of world w end with this step, and write signals and figures."""
    flags, clock = worlds.agent_flags[w], worlds.clocks[w]
    row_count = logs.trials.shape[1]
    is_ego_left = False
    for a in range(clock[state.DRIVEN_COUNT]):
        is_ego_left |= keeps_trial_running(flags, a)
    is_over = is_trial_over(clock, is_ego_left, p)
    for a in range(row_count):
        row = w * row_count + a
        write_row_results(worlds, logs, rows, w, a, row, is_over, p)
        # Roles are drawn again for each episode: an episode as a co-player enters no figure of an ego.
        if rows.episode_ended[row] and flags[state.ROLE, a] == state.EGO:
            average_episode(logs, w, a, p)
    update_clock(clock, is_over, p)


@rule(inline=True)
def keeps_trial_running(flags: Ints, a: int) -> bool:
    """Return whether agent a keeps its trial running."""
    return (
        flags[state.ROLE, a] == state.EGO
        and flags[state.IS_DRIVING, a] != 0
        and flags[state.TERMINATION, a] == state.NOT_TERMINATED
    )


@rule(inline=True)
def is_trial_over(clock: Ints, is_ego_left: bool, p: Params) -> bool:
    """Return whether the trial ends with this step: the time is up, or no ego is left (with respawn one always is)."""
    return clock[state.STEP] >= p.trial_steps or (p.at_goal != state.RESPAWN and not is_ego_left)


@rule(inline=True)
def write_row_results(
    worlds: Worlds, logs: Logs, rows: Rows, w: int, a: int, row: int, is_over: bool, p: Params
) -> None:
    """Write the signals of a row, and the figures of its trial and episode if they end."""
    flags, clock = worlds.agent_flags[w], worlds.clocks[w]
    has_ended, is_timed_out = False, False
    is_last_trial = clock[state.TRIAL] + 1 >= p.trials
    if a < clock[state.DRIVEN_COUNT]:
        is_driving = flags[state.IS_DRIVING, a] != 0
        is_done = flags[state.IS_DONE, a] != 0 or flags[state.TERMINATION, a] != state.NOT_TERMINATED
        # With one trial, an agent that is done ends at once; with several, all end together.
        if p.trials == 1:
            has_ended = is_driving and (is_done or is_over)
        else:
            has_ended = is_over and (is_driving or flags[state.IS_DONE, a] != 0)
        is_timed_out = has_ended and clock[state.STEP] >= p.trial_steps and not is_done and not has_arrived(flags, a, p)
    rows.trial_ended[row] = has_ended
    rows.episode_ended[row] = has_ended and is_last_trial
    rows.timed_out[row] = is_timed_out
    if has_ended:
        write_trial_figures(worlds, logs, w, a, clock[state.TRIAL], is_timed_out, p)
        if is_last_trial:
            write_episode_figures(logs, w, a, clock[state.TRIAL] + 1, p)


@rule(inline=True)
def has_arrived(flags: Ints, a: int, p: Params) -> bool:
    """Return whether agent a has reached all its goals and continues; then the end of the time is not a failure."""
    return p.at_goal == state.CONTINUE and 0 < flags[state.GOAL_COUNT, a] <= flags[state.GOAL, a]


@rule(inline=True)
def update_clock(clock: Ints, is_over: bool, p: Params) -> None:
    """Write whether the trial ended, and whether it was the last one."""
    clock[state.TRIAL_ENDED] = is_over
    clock[state.EPISODE_ENDED] = is_over and clock[state.TRIAL] + 1 >= p.trials


@rule
def cut_row(worlds: Worlds, logs: Logs, w: int, a: int, p: Params) -> bool:
    """Cut short the episode of row a; return False if there is none in progress."""
    flags, clock = worlds.agent_flags[w], worlds.clocks[w]
    if a >= clock[state.DRIVEN_COUNT] or clock[state.EPISODE_STEP] == 0:
        return False
    if flags[state.IS_DRIVING, a] == 0 and (p.trials == 1 or flags[state.IS_DONE, a] == 0):
        return False
    write_trial_figures(worlds, logs, w, a, clock[state.TRIAL], False, p)
    write_episode_figures(logs, w, a, clock[state.TRIAL] + 1, p)
    for k in range(clock[state.TRIAL] + 1, logs.trials.shape[2]):
        for f in range(logs.trials.shape[3]):
            logs.trials[w, a, k, f] = _NAN
    return True


@rule
def advance_trial(worlds: Worlds, starts: Starts, maps: Maps, scenarios: Scenarios, w: int, p: Params) -> None:
    """Apply terminations, and start the next trial, or the agents that wait for a start."""
    clock = worlds.clocks[w]
    for a in range(clock[state.DRIVEN_COUNT]):
        apply_termination(worlds, maps, w, a, p)
    if clock[state.TRIAL_ENDED] and not clock[state.EPISODE_ENDED]:
        clock[state.TRIAL] += 1
        start_trial(worlds, starts, w)
    elif not clock[state.TRIAL_ENDED]:
        start_agents(worlds, starts, maps, scenarios, w, p)


@rule
def apply_termination(worlds: Worlds, maps: Maps, w: int, a: int, p: Params) -> None:
    """Apply what this step's events mean for agent a: its termination or its next goal."""
    agents, flags = worlds.agents[w], worlds.agent_flags[w]
    if flags[state.IS_DRIVING, a] == 0:
        return
    if flags[state.TERMINATION, a] != state.NOT_TERMINATED:
        flags[state.IS_DRIVING, a] = 0
        flags[state.IS_DONE, a] = 1
        stop_motion(agents, a)
        if flags[state.TERMINATION, a] == state.REMOVED or p.at_goal == state.RESPAWN:
            flags[state.IS_PRESENT, a] = 0
        flags[state.IS_WAITING, a] = p.at_goal == state.RESPAWN
    elif flags[state.EVENTS, a] & state.EVENT_GOAL:
        if p.at_goal == state.NEW_GOAL and flags[state.GOAL, a] >= flags[state.GOAL_COUNT, a]:
            new_goal(worlds, maps, w, a, p)
        agents[state.GOAL_DISTANCE, a] = distance_to_goal(agents, flags, a, p)
