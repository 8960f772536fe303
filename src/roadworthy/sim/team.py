"""Threads that run a rule together: one on a CPU, and on a GPU as many as move in step (see cuda_team.py).

All members of a team run the same lines. They share out what can be done side by side, a member every `size()`-th part
of it, and then agree on what to do next. What one has written, others read after they have waited for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.compile import inlined


@inlined
def size() -> Any:
    """Members of the team."""
    return np.int64(1)


@inlined
def member() -> Any:
    """Which of them this is: 0 and up."""
    return np.int64(0)


@inlined
def column(a: int) -> Any:
    """Where a member writes the route that it tries for agent a: who is alone does so where the agent's own belongs."""
    return np.int64(a)


@inlined
def wait() -> None:
    """Wait until all have come here."""


@inlined
def lowest(number: int) -> Any:
    """The lowest of the whole numbers that the members name."""
    return np.int64(number)


@inlined
def is_any(is_so: bool) -> bool:
    """Whether any member says so."""
    return bool(is_so)
