"""The config as numbers for the rules. Rules read settings from here only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.sim import state
from roadworthy.sim.config import Actions, AtGoal, CollisionsScored, Mode, Model, OnInfraction, Range, SimConfig
from roadworthy.sim.layout import BLOCKS, layout
from roadworthy.sim.rules.dynamics import ACTION_CHOICES
from roadworthy.sim.state import Params

MOST_GOALS = 16
_AT_GOAL = {at_goal: getattr(state, at_goal.name) for at_goal in AtGoal}
_ON_INFRACTION = {OnInfraction.IGNORE: state.IGNORE, OnInfraction.STOP: state.HALT, OnInfraction.REMOVE: state.REMOVE}


def params(config: SimConfig) -> Params:
    """Return the settings of a config as numbers."""
    disturb = config.disturb
    strength = np.float32(0.0 if disturb.clean else 1.0)
    weights = [weight_range(getattr(config.reward, term)) for term in state.REWARD_TERMS]
    hidden = [getattr(config.hidden, factor) for factor in state.HIDDEN_FACTORS]
    is_open = config.mode is Mode.OPEN
    along, across = ACTION_CHOICES[config.model]
    return Params(
        is_open=np.int32(is_open),
        is_jerk=np.int32(config.model is Model.JERK),
        is_continuous=np.int32(config.actions is Actions.CONTINUOUS),
        choices_along=np.int32(along),
        choices_across=np.int32(across),
        trials=np.int32(config.episode.trials),
        trial_steps=np.int32(config.episode.trial_steps),
        at_goal=np.int32(_AT_GOAL[config.goal.at_goal]),
        goal_radius=np.float32(config.goal.radius_m),
        goal_speed=np.float32(config.goal.speed_mps),
        goal_count=np.int32(config.open.goals if is_open else 1),
        on_collision=np.int32(_ON_INFRACTION[config.infraction.collision]),
        on_off_road=np.int32(_ON_INFRACTION[config.infraction.off_road]),
        on_red_light=np.int32(_ON_INFRACTION[config.infraction.red_light]),
        scores_all_collisions=np.int32(config.score.collisions is CollisionsScored.ALL),
        open_agents=np.int32(config.open.agents),
        open_traffic=np.int32(config.open.traffic),
        goal_spacing=np.float32(config.open.goal_spacing_m),
        spawn_gap=np.float32(config.open.spawn_gap_m),
        ego_share=np.float32(config.control.ego_share),
        partners=np.int32(config.observe.partners),
        partner_range=np.float32(config.observe.partner_range_m),
        lanes=np.int32(config.observe.lanes),
        edges=np.int32(config.observe.edges),
        lights=np.int32(config.observe.lights),
        block_starts=np.array([block.start for block in layout(config).blocks[: len(BLOCKS)]], np.uint32),
        keeps_final=np.int32(config.observe.final),
        blind_rate=strength * np.float32(disturb.blind_rate),
        blind_s=np.float32(disturb.blind_s),
        phantom_rate=strength * np.float32(disturb.phantom_brake_rate),
        phantom_s=np.float32(disturb.phantom_brake_s),
        phantom_mps2=np.float32(disturb.phantom_brake_mps2),
        dropout=strength * np.float32(disturb.dropout),
        action_noise=strength * np.float32(disturb.action_noise),
        partner_count=np.int32(config.hidden.partners),
        ema_alpha=np.float32(config.log.ema_alpha),
        goal_shares=_ladder(config.score.goal_shares),
        weight_low=np.array([low for low, _ in weights], np.float32),
        weight_high=np.array([high for _, high in weights], np.float32),
        hidden_low=np.array([low for low, _ in hidden], np.float32),
        hidden_high=np.array([high for _, high in hidden], np.float32),
    )


def weight_range(weight: float | Range) -> Range:
    """Return the lowest and the highest weight of a term."""
    return weight if isinstance(weight, tuple) else (weight, weight)


def _ladder(rungs: tuple[tuple[int, float], ...]) -> NDArray[np.float32]:
    """Return the share of goals that a success needs, by the number of goals."""
    shares = np.zeros(MOST_GOALS + 1, np.float32)
    for count, share in rungs:
        shares[min(count, MOST_GOALS) :] = share
    return shares
