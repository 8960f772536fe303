"""Running counts up to each frame of a trace: goals, infractions and distance, of one or several agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadworthy.sim import state

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace


@dataclass(frozen=True)
class Infraction:
    """A kind of infraction that pictures show."""

    name: str
    bit: int
    # The event bit of a step.
    unless: int = 0
    # Event bits that make it another kind.

    @property
    def is_fault(self) -> bool:
        """Whether the agent is at fault; otherwise it is a contact without fault."""
        return self.unless == 0

    def happened(self, events: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Return whether it started, for an array of events."""
        return ((events & self.bit) != 0) & ((events & self.unless) == 0)


_RULES = (
    Infraction("off road", state.EVENT_OFF_ROAD),
    Infraction("red light", state.EVENT_RED_LIGHT),
    Infraction("stop sign", state.EVENT_STOP_SIGN),
)
# Contacts without fault, or with an agent that was touched before, are shown apart from contacts at fault.
_JUDGED = (
    Infraction("at fault", state.EVENT_AT_FAULT),
    Infraction("contact", state.EVENT_COLLISION, state.EVENT_AT_FAULT),
    *_RULES,
)
_UNJUDGED = (Infraction("collision", state.EVENT_COLLISION), *_RULES)
# The events that mark the first infraction of an ego.
COUNTED_BITS = state.EVENT_COLLISION | state.EVENT_AT_FAULT | state.EVENT_OFF_ROAD | state.EVENT_RED_LIGHT
LONG_AGO = 1 << 30
NEVER = 1 << 30
_NO_SCORE = 2.0  # more than any score


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts at F frames, from the start of each frame's trial."""

    kinds: tuple[Infraction, ...]  # of infractions
    infractions: NDArray[np.int64]  # (F, len(kinds)) number so far
    since: NDArray[np.int64]  # (F, len(kinds)) frames since the last one, LONG_AGO for none
    goals: NDArray[np.int64]  # (F,) number reached so far
    goal_count: int
    distance_m: NDArray[np.float64]  # (F,) distance driven so far


def infractions_of(trace: Trace) -> tuple[Infraction, ...]:
    """Return the kinds of infractions of a trace; traces of earlier versions have no fault."""
    return _JUDGED if trace.judges_fault else _UNJUDGED


def count_events(trace: Trace, agents: NDArray[np.int64]) -> Counts:
    """Count the events of these agents together."""
    events, kinds = trace.events[:, agents], infractions_of(trace)
    begun = np.stack([kind.happened(events).sum(axis=1) for kind in kinds], axis=1)
    reached = ((events & state.EVENT_GOAL) != 0).sum(axis=1)
    steps = np.hypot(np.diff(trace.x[:, agents], axis=0), np.diff(trace.y[:, agents], axis=0)).astype(np.float64)
    meters = np.concatenate([[0.0], np.where(trace.active[1:, agents], steps, 0.0).sum(axis=1)])
    parts: list[tuple[NDArray[np.int64], ...]] = []
    distances = []
    for trial in range(trace.trial_count):
        frames = trace.trial(trial)
        driven = meters[frames].copy()
        driven[:1] = 0.0  # the jump from the end of a trial to the start of the next does not count
        distances.append(np.cumsum(driven))
        numbers = np.arange(len(driven))[:, None]
        last = np.maximum.accumulate(np.where(begun[frames] > 0, numbers, -LONG_AGO), axis=0)
        since = np.where(last < 0, LONG_AGO, numbers - last)
        parts.append((np.cumsum(begun[frames], axis=0), since, np.cumsum(reached[frames])))
    counts, since, goals = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Counts(kinds, counts, since, goals, int(trace.goal_counts[agents].sum()), np.concatenate(distances))


def egos(trace: Trace) -> NDArray[np.int64]:
    """Return the agents that the evaluated policy drives."""
    return np.flatnonzero(trace.roles == state.EGO)


def agent_to_follow(trace: Trace, scores: dict[int, float] | None = None) -> int:
    """Return the ego to follow: the lowest score, then the earliest infraction, then the lowest index."""
    candidates = egos(trace)
    if len(candidates) == 0:
        return 0
    bad = (trace.events[:, candidates] & COUNTED_BITS) != 0
    first = np.where(bad.any(axis=0), bad.argmax(axis=0), NEVER)
    without = _NO_SCORE if scores else 0.0  # an ego that started at its goal has no score
    order = [
        ((scores or {}).get(int(agent), without), int(frame), int(agent))
        for agent, frame in zip(candidates, first, strict=True)
    ]
    return min(order)[2]
