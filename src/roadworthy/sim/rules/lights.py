"""Stop lines: what their lights show, who runs a red one, and who passes a stop sign without stopping.

A line has a middle, a direction of travel and half a width (lines LINE_... of state.py). How far an agent's front is
from a line is how far its middle is, along the line's direction, less half its length. Where an agent stands at an
angle to the line, that is between where the middle of its bumper is and where its foremost corner is. It depends on
the place alone, so that the front's way over one step begins where the step before has ended: a turn can neither
carry the front over a line unseen nor twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, bits_of, eight_of, intrinsic, load_lines, size_of, spread, types
from roadworthy.scenario.schema import RED_STATES, Floats, Ints, LightState
from roadworthy.sim.rules import draws
from roadworthy.sim.state import (
    COS,
    FRAME_COUNT,
    LENGTH,
    LIGHT_COUNT,
    LINE_COS,
    LINE_HALF,
    LINE_SIN,
    LINE_X,
    LINE_Y,
    PREVIOUS_X,
    PREVIOUS_Y,
    SIGN_AHEAD,
    SIGN_COUNT,
    SIN,
    SLOWEST,
    SPEED,
    Maps,
    Params,
    Scenarios,
    X,
    Y,
)

# The program of an open world's lights: each of two phases shows green, amber, then red to all, in seconds.
GREEN_S, AMBER_S, ALL_RED_S = np.float32(12.0), np.float32(3.0), np.float32(2.0)
PHASE_S = np.float32(GREEN_S + AMBER_S + ALL_RED_S)
CYCLE_S = np.float32(2 * PHASE_S)
_GO_UNTIL_S, _AMBER_UNTIL_S = GREEN_S, np.float32(GREEN_S + AMBER_S)

ALONG_COS = np.float32(np.cos(np.pi / 3))  # an agent within 60 degrees of a line's direction drives across it
APPROACH_M = np.float32(8.0)  # before a stop sign's line: here one has to stop
STOPPED_MPS = np.float32(0.5)  # slower than this is a stop
# Lights whose lines are this much further to the side than the nearest hang for the same lane.
_SAME_LANE_M = np.float32(0.5)

_ZERO, _HALF = np.float32(0.0), np.float32(0.5)
_FAR = np.float32(1e9)
# Added to a rough test, so that rounding never keeps a line from the exact one.
_SLACK_M = np.float32(0.01)
_UNKNOWN, _GO = int(LightState.UNKNOWN), int(LightState.GO)
_CAUTION, _STOP = int(LightState.CAUTION), int(LightState.STOP)
_RED_BITS = sum(1 << int(state) for state in RED_STATES)
_LIGHTS, _WORLD = draws.LIGHTS, draws.WORLD


@rule(inline=True)
def light_state(scenarios: Scenarios, s: int, light: int, step: int, seed: int, p: Params) -> int:
    """What a light shows (a LightState) a number of steps after the start of the trial.

    In replay worlds it is what was recorded, UNKNOWN before and after the recording. In open worlds the lights of a
    junction share a program of two phases, of which each light goes in one; where in the program the trial starts is
    drawn from the episode's seed.
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
    """Whether a LightState means stop."""
    return (_RED_BITS >> state) & 1 != 0


@rule(inline=True)
def runs_red_light(agents: Floats, a: int, scenarios: Scenarios, s: int, step: int, seed: int, p: Params) -> bool:
    """Whether agent a's front went over a stop line in the last step, in its direction, while the light is red.

    Several lights may hang at one line, one for each way on from there; who crosses it may go if any of them lets it.
    """
    count = scenarios.counts[s, LIGHT_COUNT]
    if count == 0:
        return False
    lines = scenarios.lights[s]
    if not _is_any_close(lines, count, agents, a, _ZERO):
        return False
    nearest = _FAR
    for k in range(count):
        nearest = min(nearest, _crossed_at(lines, k, agents, a))
    if nearest == _FAR:
        return False
    may_go = False
    for k in range(count):
        if _crossed_at(lines, k, agents, a) <= nearest + _SAME_LANE_M:
            may_go |= not is_red(light_state(scenarios, s, k, step, seed, p))
    return not may_go


@rule(inline=True)
def _is_any_close(lines: Floats, count: int, agents: Floats, a: int, within: np.float32) -> bool:
    """Whether agent a's front is at most so far before a line, or has just crossed it; rather yes than no.

    For most agents this is all, so eight lines are looked at in one go.
    """
    x, y, half_length = agents[X, a], agents[Y, a], _HALF * agents[LENGTH, a]
    move_x, move_y = x - agents[PREVIOUS_X, a], y - agents[PREVIOUS_Y, a]
    furthest_back = -within - _SLACK_M
    # The front is at most half the length to the side of the middle, and has come at most this move from there.
    side = half_length + abs(move_x) + abs(move_y) + _SLACK_M
    if count < EIGHT:
        return bool(_close_one_by_one(lines, 0, count, x, y, half_length, move_x, move_y, furthest_back, side) != 0)
    close = 0
    for k in range(0, count, EIGHT):
        first = min(k, count - EIGHT)
        close |= eight_close(lines, first, x, y, half_length, move_x, move_y, furthest_back, side)
    return close != 0


@rule(inline=True)
def _close_one_by_one(
    lines: Floats,
    start: int,
    stop: int,
    x: float,
    y: float,
    half_length: float,
    move_x: float,
    move_y: float,
    furthest_back: Any,
    side: Any,
) -> int:
    """Whether a line from start up to stop is close (1 or 0)."""
    close = 0
    for k in range(start, stop):
        c, t, dx, dy = lines[LINE_COS, k], lines[LINE_SIN, k], x - lines[LINE_X, k], y - lines[LINE_Y, k]
        beyond = dx * c + dy * t + half_length
        is_close = (beyond >= furthest_back) & (beyond <= max(move_x * c + move_y * t, _ZERO) + _SLACK_M)
        is_close &= abs(dy * c - dx * t) <= lines[LINE_HALF, k] + side
        close |= int(is_close)
    return close


def _eight_close_one_by_one(
    lines: Floats,
    k: int,
    x: float,
    y: float,
    half_length: float,
    move_x: float,
    move_y: float,
    furthest_back: Any,
    side: Any,
) -> int:
    return _close_one_by_one(lines, k, k + EIGHT, x, y, half_length, move_x, move_y, furthest_back, side)


@rule(inline=True, cuda=_eight_close_one_by_one)
def eight_close(
    lines: Floats,
    k: int,
    x: float,
    y: float,
    half_length: float,
    move_x: float,
    move_y: float,
    furthest_back: Any,
    side: Any,
) -> int:
    """Whether any of the lines k to k + 7 is close (see `_is_any_close`): 0 if none is.

    lines: (5, count), each line contiguous.
    """
    return _eight_close(lines, k, x, y, half_length, move_x, move_y, furthest_back, side, _SLACK_M)


@intrinsic
def _eight_close(typing_context, lines, k, x, y, half_length, move_x, move_y, furthest_back, side, slack):
    signature = types.int64(lines, types.intp, *[types.float32] * 8)

    def generate(context, builder, signature, args):
        table = context.make_array(signature.args[0])(context, builder, args[0])
        line_x, line_y, line_cos, line_sin, line_half = load_lines(builder, table, args[1], 5)
        x, y, half_length, move_x, move_y, furthest_back, side, slack = (spread(builder, value) for value in args[2:])
        mul, add, sub = builder.fmul, builder.fadd, builder.fsub
        dx, dy = sub(x, line_x), sub(y, line_y)
        beyond = add(add(mul(dx, line_cos), mul(dy, line_sin)), half_length)
        moved = add(mul(move_x, line_cos), mul(move_y, line_sin))
        moved = builder.select(builder.fcmp_ordered(">", moved, eight_of(0.0)), moved, eight_of(0.0))
        across = size_of(builder, sub(mul(dy, line_cos), mul(dx, line_sin)))
        is_close = builder.fcmp_ordered(">=", beyond, furthest_back)
        is_close = builder.and_(is_close, builder.fcmp_ordered("<=", beyond, add(moved, slack)))
        is_close = builder.and_(is_close, builder.fcmp_ordered("<=", across, add(line_half, side)))
        return bits_of(builder, is_close)

    return signature, generate


@rule(inline=True)
def _beyond(lines: Floats, k: int, x: float, y: float, half_length: float) -> Any:
    """Metres from a line to the front of an agent with its middle at (x, y), negative before the line."""
    return (x - lines[LINE_X, k]) * lines[LINE_COS, k] + (y - lines[LINE_Y, k]) * lines[LINE_SIN, k] + half_length


@rule(inline=True)
def _is_along(lines: Floats, k: int, agents: Floats, a: int) -> bool:
    """Whether agent a heads across a line in its direction."""
    return bool(agents[COS, a] * lines[LINE_COS, k] + agents[SIN, a] * lines[LINE_SIN, k] >= ALONG_COS)


@rule(inline=True)
def _sideways(lines: Floats, k: int, agents: Floats, a: int) -> Any:
    """Metres to the left of a line's middle at which agent a's front is."""
    half_length = _HALF * agents[LENGTH, a]
    dx = agents[X, a] + half_length * agents[COS, a] - lines[LINE_X, k]
    dy = agents[Y, a] + half_length * agents[SIN, a] - lines[LINE_Y, k]
    return dy * lines[LINE_COS, k] - dx * lines[LINE_SIN, k]


@rule(inline=True)
def _crossed_at(lines: Floats, k: int, agents: Floats, a: int) -> Any:
    """How far from a line's middle agent a's front went over it in the last step, in its direction; else far."""
    x, y, before_x, before_y = agents[X, a], agents[Y, a], agents[PREVIOUS_X, a], agents[PREVIOUS_Y, a]
    half_length = _HALF * agents[LENGTH, a]
    beyond, before = _beyond(lines, k, x, y, half_length), _beyond(lines, k, before_x, before_y, half_length)
    if not (beyond > _ZERO and before <= _ZERO and _is_along(lines, k, agents, a)):
        return _FAR
    # Where the front is at the end of the step, less what it moved to the side since it was on the line.
    moved = (y - before_y) * lines[LINE_COS, k] - (x - before_x) * lines[LINE_SIN, k]
    at = abs(_sideways(lines, k, agents, a) - moved * beyond / (beyond - before))
    return at if at <= lines[LINE_HALF, k] else _FAR


@rule(inline=True)
def passes_stop_sign(agents: Floats, flags: Ints, a: int, maps: Maps, m: int) -> bool:
    """Whether agent a's front went over a stop sign's line in the last step without a stop; keeps LINE and SLOWEST.

    A stop is a step that ends with the front within APPROACH_M before the line and a speed below STOPPED_MPS. Judge an
    agent once where it starts: one that starts at a line, standing, has stopped there.
    """
    count = maps.sizes[m, SIGN_COUNT]
    if count == 0:
        return False
    lines = maps.signs[m]
    if not _is_any_close(lines, count, agents, a, APPROACH_M):
        flags[SIGN_AHEAD, a] = -1
        return False

    half_length, was_at, slowest = _HALF * agents[LENGTH, a], flags[SIGN_AHEAD, a], agents[SLOWEST, a]
    has_passed, ahead, gap = False, -1, _FAR
    for k in range(count):
        if _crossed_at(lines, k, agents, a) < _FAR:
            has_passed |= not (k == was_at and slowest < STOPPED_MPS)
            continue
        to_line = -_beyond(lines, k, agents[X, a], agents[Y, a], half_length)
        is_ahead = to_line >= _ZERO and to_line <= APPROACH_M and to_line < gap
        if is_ahead and _is_along(lines, k, agents, a) and abs(_sideways(lines, k, agents, a)) <= lines[LINE_HALF, k]:
            ahead, gap = k, to_line
    speed = abs(agents[SPEED, a])
    if ahead >= 0:
        agents[SLOWEST, a] = min(slowest, speed) if ahead == was_at else speed
    flags[SIGN_AHEAD, a] = ahead
    return has_passed
