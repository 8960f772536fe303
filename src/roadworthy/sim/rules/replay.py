"""Replayed agents: present in the valid frames of their recording, absent in all others."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.angles import sine_cosine
from roadworthy.sim.state import Scenarios

_ZERO = np.float32(0.0)


@rule(inline=True)
def replay(agents: Floats, flags: Ints, a: int, scenarios: Scenarios, s: int, frame: int) -> None:
    """Put agent a where its recording says, at a frame counted from the start of the trial."""
    was_present = flags[state.IS_PRESENT, a] != 0
    if frame >= scenarios.counts[s, state.FRAME_COUNT] or scenarios.valid[s, frame, a] == 0:
        flags[state.IS_PRESENT, a] = 0
        return
    motion = scenarios.motion[s]
    speed = motion[state.MOTION_SPEED, frame, a]
    agents[state.ACCELERATION, a] = (
        (speed - agents[state.SPEED, a]) / scenarios.dt[s] if was_present and frame > 0 else _ZERO
    )
    agents[state.SPEED, a] = speed
    agents[state.PREVIOUS_X, a] = agents[state.X, a] if was_present else motion[state.MOTION_X, frame, a]
    agents[state.PREVIOUS_Y, a] = agents[state.Y, a] if was_present else motion[state.MOTION_Y, frame, a]
    agents[state.X, a] = motion[state.MOTION_X, frame, a]
    agents[state.Y, a] = motion[state.MOTION_Y, frame, a]
    heading = motion[state.MOTION_HEADING, frame, a]
    if heading != agents[state.HEADING, a] or not was_present:
        agents[state.HEADING, a] = heading
        agents[state.SIN, a], agents[state.COS, a] = sine_cosine(heading)
    flags[state.IS_PRESENT, a] = 1
