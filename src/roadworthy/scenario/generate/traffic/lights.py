"""Lights and stop signs: when a driver must stop at the line."""

from __future__ import annotations

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.network import Control
from roadworthy.scenario.schema import LightState

FIRM_BRAKING = 2.6  # m/s2, acceptable braking for a light that turns yellow
HARD_BRAKING = 5.0  # m/s2, braking that may be needed in the end to stop for one
STANDING_ROOM_M = 3.0  # a driver that stands this close to the place to stop does not creep closer

_STOP = int(Control.STOP)
_RED, _ARROW_RED = int(LightState.STOP), int(LightState.ARROW_STOP)
_YELLOW, _ARROW_YELLOW = int(LightState.CAUTION), int(LightState.ARROW_CAUTION)
_FLASHING = int(LightState.FLASHING_CAUTION)


@kernel
def is_red(shown):
    return shown in (_RED, _ARROW_RED)


@kernel
def is_yellow(shown):
    return shown in (_YELLOW, _ARROW_YELLOW)


@kernel
def is_flashing(tables, lights, step, lane):
    """Return whether a lane's light permits driving after yielding."""
    light = tables.lanes[lane].light
    return light >= 0 and lights[light, step] == _FLASHING


@kernel
def light_stops(tables, state, lights, step, i, lane, to_line):
    """Return whether a driver with `to_line` m to go stops for the light of a lane."""
    light = tables.lanes[lane].light
    if light < 0:
        return False
    shown = lights[light, step]
    if is_yellow(shown):
        # A driver that has started to stop for a yellow light continues to, even if it takes firm braking.
        needed = state[i].v * state[i].v / (2.0 * max(to_line, 0.1))
        return needed < (HARD_BRAKING if state[i].held else FIRM_BRAKING)
    return is_red(shown)


@kernel
def sign_stops(tables, state, step, i, lane, to_line):
    """Return whether a driver must still halt at the stop sign of a lane, and record the halt."""
    me = state[i]
    if tables.lanes[lane].control != _STOP or me.halted_lane == lane:
        return False
    if to_line < STANDING_ROOM_M and me.v < 0.3:
        me.halted_lane = lane
        me.halted_step = step
        return False
    return True
