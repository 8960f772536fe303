"""Who of several egos is worth following."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from roadworthy.render.tally import telling_agent
from roadworthy.sim.state import EGO, EVENT_COLLISION, REPLAYED


def test_an_ego_without_a_score_is_followed_only_where_nobody_did_worse() -> None:
    events = np.zeros((5, 4), np.int64)
    events[2, 1] = EVENT_COLLISION
    trace: Any = SimpleNamespace(roles=np.array([REPLAYED, EGO, EGO, EGO]), events=events)
    assert telling_agent(trace) == 1, "the earliest infraction"
    assert telling_agent(trace, {2: 1.0, 3: 0.5}) == 3, "the lowest score; agent 1 started at its goal and has none"
    assert telling_agent(trace, {2: 1.0}) == 2
