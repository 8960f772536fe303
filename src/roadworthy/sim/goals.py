"""Goals: when one is reached, and which comes next. A goal is counted once, by the first step that reaches it."""

from __future__ import annotations

import numpy as np

from roadworthy.compile import inlined
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import EVENT_GOAL, GOAL, GOAL_COUNT, GOAL_DISTANCE, GOALS, SPEED, Params, X, Y

_NOWHERE = np.float32(0.0)


@inlined
def distance_to_goal(agents: Floats, marks: Ints, a: int, p: Params) -> float:
    """Metres to the next goal; 0 where there is none."""
    if marks[GOAL, a] >= marks[GOAL_COUNT, a]:
        return _NOWHERE
    line = GOALS + 2 * (marks[GOAL, a] % p.goal_count)
    dx = agents[line, a] - agents[X, a]
    dy = agents[line + 1, a] - agents[Y, a]
    return np.sqrt(dx * dx + dy * dy)


@inlined
def goal_event(agents: Floats, marks: Ints, a: int, p: Params) -> int:
    """EVENT_GOAL if the step just made reached the next goal (GOAL_DISTANCE is up to date), else 0."""
    has_goal = marks[GOAL, a] < marks[GOAL_COUNT, a]
    if has_goal and agents[GOAL_DISTANCE, a] <= p.goal_radius and abs(agents[SPEED, a]) <= p.goal_speed:
        return EVENT_GOAL
    return 0
