"""Agents that follow their recording: there at its valid frames, absent before, between and after them."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules.angles import sine_cosine
from roadworthy.sim.state import (
    ACCELERATION,
    COS,
    FRAME_COUNT,
    HEADING,
    IS_PRESENT,
    MOTION_HEADING,
    MOTION_SPEED,
    MOTION_X,
    MOTION_Y,
    PREVIOUS_X,
    PREVIOUS_Y,
    SIN,
    SPEED,
    Scenarios,
    X,
    Y,
)

_ZERO = np.float32(0.0)


@rule(inline=True)
def replay(agents: Floats, flags: Ints, a: int, scenarios: Scenarios, s: int, frame: int) -> None:
    """Put agent a where its recording says, at a frame counted from the start of the trial."""
    was_present = flags[IS_PRESENT, a] != 0
    if frame >= scenarios.counts[s, FRAME_COUNT] or scenarios.valid[s, frame, a] == 0:
        flags[IS_PRESENT, a] = 0
        return
    motion = scenarios.motion[s]
    speed = motion[MOTION_SPEED, frame, a]
    agents[ACCELERATION, a] = (speed - agents[SPEED, a]) / scenarios.dt[s] if was_present and frame > 0 else _ZERO
    agents[SPEED, a] = speed
    agents[PREVIOUS_X, a] = agents[X, a] if was_present else motion[MOTION_X, frame, a]
    agents[PREVIOUS_Y, a] = agents[Y, a] if was_present else motion[MOTION_Y, frame, a]
    agents[X, a] = motion[MOTION_X, frame, a]
    agents[Y, a] = motion[MOTION_Y, frame, a]
    heading = motion[MOTION_HEADING, frame, a]
    if heading != agents[HEADING, a] or not was_present:
        agents[HEADING, a] = heading
        agents[SIN, a], agents[COS, a] = sine_cosine(heading)
    flags[IS_PRESENT, a] = 1
