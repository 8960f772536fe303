"""Traffic lights: what a light shows."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import RED_STATES, LightState
from roadworthy.sim.rules import draws
from roadworthy.sim.state import FRAME_COUNT, Params, Scenarios

# The program of an open world's lights: each of two phases shows green, amber, then red to all, in seconds.
GREEN_S, AMBER_S, ALL_RED_S = np.float32(12.0), np.float32(3.0), np.float32(2.0)
PHASE_S = np.float32(GREEN_S + AMBER_S + ALL_RED_S)
CYCLE_S = np.float32(2 * PHASE_S)
_GO_UNTIL_S, _AMBER_UNTIL_S = GREEN_S, np.float32(GREEN_S + AMBER_S)

_UNKNOWN, _GO = int(LightState.UNKNOWN), int(LightState.GO)
_CAUTION, _STOP = int(LightState.CAUTION), int(LightState.STOP)
_RED_BITS = sum(1 << int(state) for state in RED_STATES)
_LIGHTS, _WORLD = draws.LIGHTS, draws.WORLD


@rule(inline=True)
def light_state(scenarios: Scenarios, s: int, light: int, step: int, seed: int, p: Params) -> int:
    """Return what a light shows (a LightState) a number of steps after the start of the trial.

    Replay worlds show what was recorded, and UNKNOWN before and after the recording. In open worlds the lights of a
    junction share a program of two phases, and each light is green in one of them. The episode's seed determines where
    in the program a trial starts.
    """
    if not p.is_open:
        if step < 0 or step >= scenarios.counts[s, FRAME_COUNT]:
            return _UNKNOWN
        return int(scenarios.light_states[s, step, light])
    drawn = draws.uniform(seed, _WORLD + scenarios.light_junctions[s, light], 0, _LIGHTS)
    cycles = np.float32(step) * scenarios.dt[s] / CYCLE_S + drawn
    time = (cycles - np.floor(cycles)) * CYCLE_S
    phase = 0
    if time >= PHASE_S:
        phase, time = 1, time - PHASE_S
    if phase != scenarios.light_phases[s, light] or time >= _AMBER_UNTIL_S:
        return _STOP
    return _GO if time < _GO_UNTIL_S else _CAUTION


@rule(inline=True)
def is_red(state: int) -> bool:
    """Return whether a LightState means stop."""
    return (_RED_BITS >> state) & 1 != 0
