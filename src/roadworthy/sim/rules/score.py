"""The score: whether an attempt is a success.

An attempt is a success if at least the config's share of the agent's goals was reached, without a collision that counts
and without leaving the road. `score.collisions` says which collisions count: those for which the agent is at fault
(at_fault.py), or all. `score.goal_shares` gives the share by the number of goals. With `new_goal` only the goals that
the agent started with are required, and further goals count in their place. An episode's score is the mean over its
trials.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.sim.state import Params

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@rule
def score(goals_reached: int, goals: int, collisions: int, departures: int, p: Params) -> float:
    """Return 1 for a success, else 0. collisions: how many count."""
    needed = p.goal_shares[min(goals, len(p.goal_shares) - 1)]
    is_success = (
        goals > 0 and collisions == 0 and departures == 0 and np.float32(goals_reached) >= needed * np.float32(goals)
    )
    return _ONE if is_success else _ZERO
