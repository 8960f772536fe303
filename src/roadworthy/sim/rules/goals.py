"""Goals: when one is reached, and which comes next. A goal is counted once, by the first step that reaches it.

Goals are numbered from 0 on. There is room for the last `Params.goal_count` of them: goal k is in place k modulo that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import COS, EVENT_GOAL, GOAL, GOAL_COUNT, GOAL_DISTANCE, GOALS, SIN, SPEED, Params, X, Y

_NOWHERE = np.float32(0.0)


@rule(inline=True)
def goal_line(goal: Any, p: Params) -> Any:
    """The line of `agents` that has the x of a goal, by the goal's number; the next line has its y."""
    return GOALS + 2 * (goal % p.goal_count)


@rule(inline=True)
def distance_to_goal(agents: Floats, flags: Ints, a: int, p: Params) -> float:
    """Metres to the next goal; 0 where there is none."""
    if flags[GOAL, a] >= flags[GOAL_COUNT, a]:
        return _NOWHERE
    line = goal_line(flags[GOAL, a], p)
    dx = agents[line, a] - agents[X, a]
    dy = agents[line + 1, a] - agents[Y, a]
    return np.sqrt(dx * dx + dy * dy)


@rule(inline=True)
def goal_event(agents: Floats, flags: Ints, a: int, p: Params) -> int:
    """EVENT_GOAL if the step just made reached the next goal (GOAL_DISTANCE is up to date), else 0."""
    has_goal = flags[GOAL, a] < flags[GOAL_COUNT, a]
    if has_goal and agents[GOAL_DISTANCE, a] <= p.goal_radius and abs(agents[SPEED, a]) <= p.goal_speed:
        return EVENT_GOAL
    return 0


@rule(inline=True)
def starts_at_goal(agents: Floats, flags: Ints, a: int, dt: float, p: Params) -> bool:
    """Whether agent a, where it starts, reaches all its goals without driving.

    That is: at no more than the goals' speed, all of them lie within their radius of where it starts, or of where its
    speed and heading bring it in the first step, before any action tells.
    """
    speed = agents[SPEED, a]
    if flags[GOAL_COUNT, a] < 1 or abs(speed) > p.goal_speed:
        return False
    is_there, is_there_next = True, True
    for goal in range(flags[GOAL_COUNT, a]):
        line = goal_line(goal, p)
        dx, dy = agents[line, a] - agents[X, a], agents[line + 1, a] - agents[Y, a]
        is_there &= dx * dx + dy * dy <= p.goal_radius * p.goal_radius
        dx, dy = dx - speed * dt * agents[COS, a], dy - speed * dt * agents[SIN, a]
        is_there_next &= dx * dx + dy * dy <= p.goal_radius * p.goal_radius
    return is_there or is_there_next
