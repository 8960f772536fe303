"""Observation block `conditioning`: the agent's own reward weights."""

from __future__ import annotations

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim.layout import CONDITIONING
from roadworthy.sim.state import WEIGHTS, Whole

WEIGHT_COUNT = len(CONDITIONING)


@rule(inline=True)
def write_weights(agents: Floats, a: Whole, row_out: Floats, at: Whole) -> None:
    """Write the agent's reward weights to row_out[at] and the numbers after it."""
    for k in range(WEIGHT_COUNT):
        row_out[at + k] = agents[WEIGHTS + k, a]
