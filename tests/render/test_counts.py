"""The choice of the followed ego."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from roadworthy.render.counts import agent_to_follow
from roadworthy.sim.state import EGO, EVENT_COLLISION, REPLAYED


def test_an_ego_without_a_score_is_followed_last() -> None:
    events = np.zeros((5, 4), np.int64)
    events[2, 1] = EVENT_COLLISION
    trace: Any = SimpleNamespace(roles=np.array([REPLAYED, EGO, EGO, EGO]), events=events)
    assert agent_to_follow(trace) == 1, "the earliest infraction"
    assert agent_to_follow(trace, {2: 1.0, 3: 0.5}) == 3, "the lowest score; agent 1 started at its goal and has none"
    assert agent_to_follow(trace, {2: 1.0}) == 2
