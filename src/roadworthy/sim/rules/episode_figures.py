"""Figures: what an attempt and an episode come to, and each row's moving average over its episodes.

The score, in words: an attempt is a success (1, else 0) if at least the config's share of the agent's goals was
reached, and it had no collision that counts and did not leave the road. `score.collisions` says which collisions count:
those that the agent is at fault for (at_fault.py), or all. The share comes from `score.goal_shares`, a ladder by
number of goals. With `new_goal` only as many goals are asked for as it started with: further ones that it reaches count
in the place of these, and are never demanded. An episode's score is the mean over its trials.

Rates of an episode are over its trials. Comfort and centring are shares of the steps driven; alignment and wrong way of
those on a lane and moving. A share of nothing is NaN, which is left out of every mean.

An agent that starts at its goal (`starts_at_goal`) has shown nothing by reaching it: its score, whether it reached its
goals and whether it was timed out are NaN. So is what a road user of its kind is not judged by (see kinds.py).
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim.rules.applicable_rules import keeps_to_road, uses_lanes
from roadworthy.sim.state import (
    ALIGNED,
    AT_FAULT_COLLISIONS,
    CENTERED,
    COLLISIONS,
    DEPARTURES,
    DISTANCE,
    DRIVEN,
    EPISODE_STEP,
    FIRST_STEP,
    GOALS_REACHED,
    GOALS_REQUIRED,
    ON_LANE,
    RED_LIGHTS,
    RETURN,
    STARTS_AT_GOAL,
    STEP,
    STOP_SIGNS,
    UNCOMFORTABLE,
    WRONG_WAY,
    Logs,
    Params,
    Worlds,
)

# Figures of a trial.
TRIAL_FIGURES = (
    "score goal_reached timed_out first_step last_step length goals_reached goals collisions departures red_lights "
    "stop_signs distance_m return comfortable_steps centred_steps lane_steps aligned_steps wrong_way_steps "
    "starts_at_goal at_fault_collisions"
).split()
(
    _SCORE,
    _GOAL_REACHED,
    _TIMED_OUT,
    _FIRST_STEP,
    _LAST_STEP,
    _LENGTH,
    _REACHED,
    _GOALS,
    _COLLISIONS,
    _DEPARTURES,
    _RED_LIGHTS,
    _STOP_SIGNS,
    _DISTANCE,
    _RETURN,
    _COMFORTABLE,
    _CENTERED,
    _ON_LANE,
    _ALIGNED,
    _WRONG_WAY,
    _STARTS_AT_GOAL,
    _AT_FAULT,
) = range(len(TRIAL_FIGURES))

# Figures of an episode; those of its trials follow where there are several.
EPISODE_FIGURES = (
    "score goal_rate completion_rate collision_rate off_road_rate red_light_rate collisions departures red_lights "
    "stop_signs comfort lane_aligned lane_centred wrong_way distance_m infractions return length timed_out_rate "
    "starts_at_goal at_fault_collision_rate at_fault_collisions"
).split()
_EPISODE_FIGURES = len(EPISODE_FIGURES)
_ZERO, _ONE, _NONE = np.float32(0.0), np.float32(1.0), np.float32(np.nan)


def figure_names(trials: int) -> tuple[str, ...]:
    """The figures of an episode of so many trials."""
    if trials == 1:
        return tuple(EPISODE_FIGURES)
    return (
        *EPISODE_FIGURES,
        "n_trials_completed",
        "n_trials_goal_reached",
        "n_trials_timed_out",
        "trial_mean_length",
        "trial_goal_reach_rate",
        *(f"trial_{k}_score" for k in range(trials)),
        *(f"ada_delta_trial_{k}_minus_0" for k in range(1, trials)),
    )


@rule
def score(goals_reached: int, goals: int, collisions: int, departures: int, p: Params) -> float:
    """1 if at least the config's share of the goals was reached without collision and off-road, else 0.

    collisions: how many that count.
    """
    needed = p.goal_shares[min(goals, len(p.goal_shares) - 1)]
    is_success = (
        goals > 0 and collisions == 0 and departures == 0 and np.float32(goals_reached) >= needed * np.float32(goals)
    )
    return _ONE if is_success else _ZERO


@rule
def write_trial_figures(worlds: Worlds, logs: Logs, w: int, a: int, trial: int, is_timed_out: bool, p: Params) -> None:
    """Write down the attempt of row a that ends now, as trial number `trial` of its episode."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    out = logs.trials[w, a, trial]
    reached, goals = flags[GOALS_REACHED, a], flags[GOALS_REQUIRED, a]
    collisions, departures, at_fault = flags[COLLISIONS, a], flags[DEPARTURES, a], flags[AT_FAULT_COLLISIONS, a]
    driven = agents[DRIVEN, a]
    tells_goals = flags[STARTS_AT_GOAL, a] == 0
    is_on_road, is_on_lanes = keeps_to_road(flags, a), uses_lanes(flags, a)
    first = np.float32(clock[EPISODE_STEP] - clock[STEP] + flags[FIRST_STEP, a])
    counted = collisions if p.scores_all_collisions else at_fault
    out[_SCORE] = _if_known(tells_goals, score(reached, goals, counted, departures, p))
    out[_GOAL_REACHED] = _if_known(tells_goals, goals > 0 and reached >= goals)
    out[_TIMED_OUT] = _if_known(tells_goals, is_timed_out)
    out[_FIRST_STEP] = first
    out[_LAST_STEP] = first + driven - _ONE
    out[_LENGTH] = driven
    out[_REACHED] = reached
    out[_GOALS] = goals
    out[_COLLISIONS] = collisions
    out[_DEPARTURES] = _if_known(is_on_road, departures)
    out[_RED_LIGHTS] = _if_known(is_on_lanes, flags[RED_LIGHTS, a])
    out[_STOP_SIGNS] = _if_known(is_on_lanes, flags[STOP_SIGNS, a])
    out[_DISTANCE] = agents[DISTANCE, a]
    out[_RETURN] = agents[RETURN, a]
    out[_COMFORTABLE] = driven - agents[UNCOMFORTABLE, a]
    out[_CENTERED] = _if_known(is_on_road, agents[CENTERED, a])
    out[_ON_LANE] = _if_known(is_on_lanes, agents[ON_LANE, a])
    out[_ALIGNED] = _if_known(is_on_lanes, agents[ALIGNED, a])
    out[_WRONG_WAY] = _if_known(is_on_lanes, agents[WRONG_WAY, a])
    out[_STARTS_AT_GOAL] = flags[STARTS_AT_GOAL, a]
    out[_AT_FAULT] = at_fault


@rule
def write_episode_figures(logs: Logs, w: int, a: int, trials: int, p: Params) -> None:
    """Work out the figures of row a's episode from its ended trials."""
    ended = logs.trials[w, a, :trials]
    out = logs.episodes[w, a]
    count = np.float32(trials)
    driven, on_lane = _total(ended, _LENGTH), _total(ended, _ON_LANE)
    collisions, departures = _total(ended, _COLLISIONS), _total(ended, _DEPARTURES)
    red_lights = _total(ended, _RED_LIGHTS)
    out[0] = _total(ended, _SCORE) / count
    out[1] = _goal_rate(ended)
    out[2] = _total(ended, _GOAL_REACHED) / count
    out[3] = _how_many(ended, _COLLISIONS) / count
    out[4] = _how_many(ended, _DEPARTURES) / count
    out[5] = _how_many(ended, _RED_LIGHTS) / count
    out[6] = collisions
    out[7] = departures
    out[8] = red_lights
    out[9] = _total(ended, _STOP_SIGNS)
    out[10] = _share(_total(ended, _COMFORTABLE), driven)
    out[11] = _share(_total(ended, _ALIGNED), on_lane)
    out[12] = _share(_total(ended, _CENTERED), driven)
    out[13] = _share(_total(ended, _WRONG_WAY), on_lane)
    out[14] = _total(ended, _DISTANCE)
    counted = collisions if p.scores_all_collisions else _total(ended, _AT_FAULT)
    out[15] = counted + _or_zero(departures) + _or_zero(red_lights)
    out[16] = _total(ended, _RETURN)
    out[17] = driven
    out[18] = _total(ended, _TIMED_OUT) / count
    out[19] = ended[0, _STARTS_AT_GOAL]
    out[20] = _how_many(ended, _AT_FAULT) / count
    out[21] = _total(ended, _AT_FAULT)
    if p.trials > 1:
        out[_EPISODE_FIGURES] = count
        out[_EPISODE_FIGURES + 1] = _total(ended, _GOAL_REACHED)
        out[_EPISODE_FIGURES + 2] = _total(ended, _TIMED_OUT)
        out[_EPISODE_FIGURES + 3] = driven / count
        out[_EPISODE_FIGURES + 4] = _total(ended, _GOAL_REACHED) / count
        scores = _EPISODE_FIGURES + 5
        for k in range(p.trials):
            out[scores + k] = ended[k, _SCORE] if k < trials else _NONE
        for k in range(1, p.trials):
            out[scores + p.trials + k - 1] = out[scores + k] - out[scores]


@rule
def average_episode(logs: Logs, w: int, a: int, p: Params) -> None:
    """Let the episode that just ended enter the row's moving average; the first one seeds it."""
    for f in range(logs.episodes.shape[2]):
        average_figure(logs, w, a, f, p)
    logs.episode_counts[w, a] += 1


@rule(inline=True)
def average_figure(logs: Logs, w: int, a: int, f: int, p: Params) -> None:
    """Let one figure of the episode enter its average; NaN, which is no data, leaves it as it was."""
    figure, average = logs.episodes[w, a, f], logs.averages[w, a, f]
    if np.isnan(average):
        logs.averages[w, a, f] = figure
    elif not np.isnan(figure):
        logs.averages[w, a, f] = p.ema_alpha * average + (_ONE - p.ema_alpha) * figure


@rule
def _total(trials: Floats, figure: int) -> float:
    total = _ZERO
    for k in range(trials.shape[0]):
        total += trials[k, figure]
    return total


@rule
def _how_many(trials: Floats, figure: int) -> float:
    """In how many trials it happened at all; NaN where that is not known."""
    count = _ZERO
    for k in range(trials.shape[0]):
        if np.isnan(trials[k, figure]):
            return _NONE
        if trials[k, figure] > _ZERO:
            count += _ONE
    return count


@rule
def _share(part: float, whole: float) -> float:
    return part / whole if whole > _ZERO else _NONE


@rule
def _goal_rate(trials: Floats) -> float:
    """Which share of the goals that were asked for was reached; NaN for an agent that starts at its goal."""
    if trials[0, _STARTS_AT_GOAL] > _ZERO:
        return _NONE
    reached = _ZERO
    for k in range(trials.shape[0]):
        reached += min(trials[k, _REACHED], trials[k, _GOALS])
    return _share(reached, _total(trials, _GOALS))


@rule(inline=True)
def _if_known(is_known: bool, value: float) -> float:
    """A figure, or NaN for no data."""
    return np.float32(value) if is_known else _NONE


@rule(inline=True)
def _or_zero(value: float) -> float:
    return _ZERO if np.isnan(value) else value
