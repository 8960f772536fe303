"""Figures of trials and episodes, and each row's moving average over its episodes.

Rates of an episode are over its trials. Comfort and lane centering are shares of the steps driven; alignment and wrong
way are shares of the steps on a lane and moving. A share of nothing is NaN, and every mean leaves NaN out.

An agent that starts at its goal (`starts_at_goal`) shows nothing by reaching it: its score, its goals and its timeouts
are NaN. So are the figures of rules that do not apply to its type (applicable_rules.py).
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim import state
from roadworthy.sim.rules.applicable_rules import keeps_to_road, uses_lanes
from roadworthy.sim.rules.score import score
from roadworthy.sim.state import Logs, Params, Worlds

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

# Figures of an episode; figures of its trials follow if there are several.
EPISODE_FIGURES = (
    "score goal_rate completion_rate collision_rate off_road_rate red_light_rate collisions departures red_lights "
    "stop_signs comfort lane_aligned lane_centred wrong_way distance_m infractions return length timed_out_rate "
    "starts_at_goal at_fault_collision_rate at_fault_collisions"
).split()
(
    _MEAN_SCORE,
    _GOAL_RATE,
    _COMPLETION_RATE,
    _COLLISION_RATE,
    _OFF_ROAD_RATE,
    _RED_LIGHT_RATE,
    _ALL_COLLISIONS,
    _ALL_DEPARTURES,
    _ALL_RED_LIGHTS,
    _ALL_STOP_SIGNS,
    _COMFORT,
    _LANE_ALIGNED,
    _LANE_CENTERED,
    _WRONG_WAY_SHARE,
    _DISTANCE_M,
    _INFRACTIONS,
    _ALL_RETURN,
    _ALL_STEPS,
    _TIMED_OUT_RATE,
    _STARTED_AT_GOAL,
    _AT_FAULT_RATE,
    _ALL_AT_FAULT,
    # With several trials these follow, then the score of each trial and the gains over the first one.
    _COMPLETED,
    _GOALS_REACHED_IN,
    _TIMED_OUT_IN,
    _MEAN_LENGTH,
    _REACH_RATE,
    _TRIAL_SCORES,
) = range(len(EPISODE_FIGURES) + 6)
_ZERO, _ONE, _NONE = np.float32(0.0), np.float32(1.0), np.float32(np.nan)


def figure_names(trials: int) -> tuple[str, ...]:
    """Return the names of the figures of an episode with this many trials."""
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
def write_trial_figures(worlds: Worlds, logs: Logs, w: int, a: int, trial: int, is_timed_out: bool, p: Params) -> None:
    """Write the figures of row a's trial that ends now."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    out = logs.trials[w, a, trial]
    reached, goals = flags[state.GOALS_REACHED, a], flags[state.GOALS_REQUIRED, a]
    collisions, departures = flags[state.COLLISIONS, a], flags[state.DEPARTURES, a]
    at_fault = flags[state.AT_FAULT_COLLISIONS, a]
    driven = agents[state.DRIVEN, a]
    tells_goals = flags[state.STARTS_AT_GOAL, a] == 0
    is_on_road, is_on_lanes = keeps_to_road(flags, a), uses_lanes(flags, a)
    first = np.float32(clock[state.EPISODE_STEP] - clock[state.STEP] + flags[state.FIRST_STEP, a])
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
    out[_RED_LIGHTS] = _if_known(is_on_lanes, flags[state.RED_LIGHTS, a])
    out[_STOP_SIGNS] = _if_known(is_on_lanes, flags[state.STOP_SIGNS, a])
    out[_DISTANCE] = agents[state.DISTANCE, a]
    out[_RETURN] = agents[state.RETURN, a]
    out[_COMFORTABLE] = driven - agents[state.UNCOMFORTABLE, a]
    out[_CENTERED] = _if_known(is_on_road, agents[state.CENTERED, a])
    out[_ON_LANE] = _if_known(is_on_lanes, agents[state.ON_LANE, a])
    out[_ALIGNED] = _if_known(is_on_lanes, agents[state.ALIGNED, a])
    out[_WRONG_WAY] = _if_known(is_on_lanes, agents[state.WRONG_WAY, a])
    out[_STARTS_AT_GOAL] = flags[state.STARTS_AT_GOAL, a]
    out[_AT_FAULT] = at_fault


@rule
def write_episode_figures(logs: Logs, w: int, a: int, trials: int, p: Params) -> None:
    """Write the figures of row a's episode from its ended trials."""
    ended = logs.trials[w, a, :trials]
    out = logs.episodes[w, a]
    count = np.float32(trials)
    driven, on_lane = _total(ended, _LENGTH), _total(ended, _ON_LANE)
    collisions, departures = _total(ended, _COLLISIONS), _total(ended, _DEPARTURES)
    red_lights = _total(ended, _RED_LIGHTS)
    out[_MEAN_SCORE] = _total(ended, _SCORE) / count
    out[_GOAL_RATE] = _goal_rate(ended)
    out[_COMPLETION_RATE] = _total(ended, _GOAL_REACHED) / count
    out[_COLLISION_RATE] = _how_many(ended, _COLLISIONS) / count
    out[_OFF_ROAD_RATE] = _how_many(ended, _DEPARTURES) / count
    out[_RED_LIGHT_RATE] = _how_many(ended, _RED_LIGHTS) / count
    out[_ALL_COLLISIONS] = collisions
    out[_ALL_DEPARTURES] = departures
    out[_ALL_RED_LIGHTS] = red_lights
    out[_ALL_STOP_SIGNS] = _total(ended, _STOP_SIGNS)
    out[_COMFORT] = _share(_total(ended, _COMFORTABLE), driven)
    out[_LANE_ALIGNED] = _share(_total(ended, _ALIGNED), on_lane)
    out[_LANE_CENTERED] = _share(_total(ended, _CENTERED), driven)
    out[_WRONG_WAY_SHARE] = _share(_total(ended, _WRONG_WAY), on_lane)
    out[_DISTANCE_M] = _total(ended, _DISTANCE)
    counted = collisions if p.scores_all_collisions else _total(ended, _AT_FAULT)
    out[_INFRACTIONS] = counted + _or_zero(departures) + _or_zero(red_lights)
    out[_ALL_RETURN] = _total(ended, _RETURN)
    out[_ALL_STEPS] = driven
    out[_TIMED_OUT_RATE] = _total(ended, _TIMED_OUT) / count
    out[_STARTED_AT_GOAL] = ended[0, _STARTS_AT_GOAL]
    out[_AT_FAULT_RATE] = _how_many(ended, _AT_FAULT) / count
    out[_ALL_AT_FAULT] = _total(ended, _AT_FAULT)
    if p.trials > 1:
        out[_COMPLETED] = count
        out[_GOALS_REACHED_IN] = _total(ended, _GOAL_REACHED)
        out[_TIMED_OUT_IN] = _total(ended, _TIMED_OUT)
        out[_MEAN_LENGTH] = driven / count
        out[_REACH_RATE] = _total(ended, _GOAL_REACHED) / count
        for k in range(p.trials):
            out[_TRIAL_SCORES + k] = ended[k, _SCORE] if k < trials else _NONE
        for k in range(1, p.trials):
            out[_TRIAL_SCORES + p.trials + k - 1] = out[_TRIAL_SCORES + k] - out[_TRIAL_SCORES]


@rule
def average_episode(logs: Logs, w: int, a: int, p: Params) -> None:
    """Update the row's moving average with the episode that just ended; the first one initializes it."""
    for f in range(logs.episodes.shape[2]):
        average_figure(logs, w, a, f, p)
    logs.episode_counts[w, a] += 1


@rule(inline=True)
def average_figure(logs: Logs, w: int, a: int, f: int, p: Params) -> None:
    """Update the moving average of one figure; NaN leaves it unchanged."""
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
    """Return in how many trials it happened at least once; NaN where that is unknown."""
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
    """Return the share of the required goals that was reached; NaN for an agent that starts at its goal."""
    if trials[0, _STARTS_AT_GOAL] > _ZERO:
        return _NONE
    reached = _ZERO
    for k in range(trials.shape[0]):
        reached += min(trials[k, _REACHED], trials[k, _GOALS])
    return _share(reached, _total(trials, _GOALS))


@rule(inline=True)
def _if_known(is_known: bool, value: float) -> float:
    """Return a figure, or NaN without data."""
    return np.float32(value) if is_known else _NONE


@rule(inline=True)
def _or_zero(value: float) -> float:
    return _ZERO if np.isnan(value) else value
