"""The reward: a weighted sum of named terms, with the agent's own weights."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules.applicable_rules import keeps_to_road
from roadworthy.sim.state import (
    EVENT_COLLISION,
    EVENT_GOAL,
    EVENT_OFF_ROAD,
    EVENT_ON_LANE,
    EVENT_RED_LIGHT,
    EVENT_STOP_SIGN,
    EVENT_UNCOMFORTABLE,
    EVENT_WRONG_WAY,
    EVENTS,
    LANE,
    LANE_COS,
    LANE_OFFSET,
    PROGRESS,
    REWARD_TERMS,
    WEIGHTS,
)

# Lines of the weights, in the order of REWARD_TERMS.
(
    _GOAL,
    _COLLISION,
    _OFF_ROAD,
    _RED_LIGHT,
    _STOP_SIGN,
    _COMFORT,
    _LANE_CENTER,
    _LANE_ALIGN,
    _WRONG_WAY,
    _PROGRESS,
    _TIME,
) = range(WEIGHTS, WEIGHTS + len(REWARD_TERMS))
_NOTHING, _ONE = np.float32(0.0), np.float32(1.0)
_PER_METER_OFF_CENTER = np.float32(0.5)


@rule(inline=True)
def reward(agents: Floats, flags: Ints, a: int) -> float:
    """What the step just made is worth to agent a."""
    events = flags[EVENTS, a]
    total = agents[_TIME, a] + agents[_PROGRESS, a] * agents[PROGRESS, a]
    if events & EVENT_GOAL:
        total += agents[_GOAL, a]
    if events & EVENT_COLLISION:
        total += agents[_COLLISION, a]
    if events & EVENT_OFF_ROAD:
        total += agents[_OFF_ROAD, a]
    if events & EVENT_RED_LIGHT:
        total += agents[_RED_LIGHT, a]
    if events & EVENT_STOP_SIGN:
        total += agents[_STOP_SIGN, a]
    if events & EVENT_UNCOMFORTABLE:
        total += agents[_COMFORT, a]
    if events & EVENT_WRONG_WAY:
        total += agents[_WRONG_WAY, a]
    if events & EVENT_ON_LANE:
        total += agents[_LANE_ALIGN, a] * agents[LANE_COS, a]
    if flags[LANE, a] >= 0 and keeps_to_road(flags, a):
        total += agents[_LANE_CENTER, a] * max(_ONE - abs(agents[LANE_OFFSET, a]) * _PER_METER_OFF_CENTER, _NOTHING)
    return total
