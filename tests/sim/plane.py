"""Agents on an empty plane, and drivers that put them through the dynamics: what several tests of rules share."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.sim import state
from roadworthy.sim.config import Actions, Model, SimConfig
from roadworthy.sim.params import params
from roadworthy.sim.rules import dynamics
from roadworthy.sim.state import (
    COS,
    FLAG_LINES,
    GOALS,
    HEADING,
    JERK,
    LENGTH,
    PREVIOUS_X,
    PREVIOUS_Y,
    SIN,
    STEERING,
    TYPE,
)

DT = np.float32(0.1)
MODELS = [Model.BICYCLE, Model.JERK]


@kernel
def move_all(agents, flags, dt, hidden, p, steps):
    """hidden: (factors, agents)."""
    for _ in range(steps):
        for a in range(agents.shape[1]):
            dynamics.move(agents, flags, a, dt, hidden[:, a], p)


@kernel
def decode_all(actions, kinds, p, asked_out, again_out):
    """Decode each action for each kind, and encode what it asks for."""
    for k in range(len(kinds)):
        for i in range(len(actions)):
            along, across = dynamics.decode(actions[i, 0], actions[i, 1], kinds[k], p)
            asked_out[k, i] = along, across
            again_out[k, i] = dynamics.encode(along, across, kinds[k], p)


def params_of(model, actions=Actions.CONTINUOUS):
    return params(SimConfig(model=model, actions=actions))


def agents_of(kinds, **lines):
    """Agents, marks and hidden factors that change nothing; what is not given is 0, what a step only writes is NaN."""
    n = len(kinds)
    agents, flags = np.zeros((GOALS + 2, n), np.float32), np.zeros((FLAG_LINES, n), np.int32)
    agents[[JERK, STEERING, PREVIOUS_X, PREVIOUS_Y]] = np.nan
    agents[LENGTH] = 4.5
    for name, values in lines.items():
        agents[getattr(state, name.upper())] = values
    agents[COS], agents[SIN] = np.cos(agents[HEADING]), np.sin(agents[HEADING])
    flags[TYPE] = kinds
    return agents, flags, np.ones((4, n), np.float32)
