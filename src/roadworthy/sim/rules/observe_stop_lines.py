"""The stop lines that an agent sees: those ahead, of lights and of stop signs, nearest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, bits_of, eight_of, intrinsic, load_lines, lowest_bit, spread, types
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, Floats, LightState
from roadworthy.sim.layout import FAR_M
from roadworthy.sim.maps.road_points import Real, Whole
from roadworthy.sim.rules.lights import light_state
from roadworthy.sim.state import (
    COS,
    LIGHT_COUNT,
    LINE_COS,
    LINE_SIN,
    LINE_X,
    LINE_Y,
    SIGN_COUNT,
    SIN,
    Maps,
    Params,
    Scenarios,
    X,
    Y,
)

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR = np.float32(1.0 / FAR_M)
# A stop line is ahead if it is, as seen from the agent's middle, within this distance, and is crossed in about the
# direction in which the agent points (60 degrees).
_LINE_RANGE_2 = np.float32(100.0**2)
_SAME_WAY = np.float32(0.5)
# Working lines of the block of lights while they are listed: squared distance, and number.
_LINE_DISTANCE, _LINE_NUMBER = 2, 3
_TOGETHER = 64  # stop lines whose bits fit into a number
_RED = sum(1 << state for state in RED_STATES)
_AMBER = sum(1 << s for s in (LightState.ARROW_CAUTION, LightState.CAUTION, LightState.FLASHING_CAUTION))
_GREEN = sum(1 << state for state in GREEN_STATES)


@rule(inline=True)
def write_stop_lines(
    agents: Floats,
    a: Whole,
    maps: Maps,
    m: Whole,
    scenarios: Scenarios,
    s: Whole,
    step: Whole,
    seed: Whole,
    p: Params,
    row: Floats,
    at: Whole,
) -> Any:
    """The stop lines ahead, of lights and of stop signs, nearest first; returns how many were written."""
    n = p.lights
    if n == 0:
        return 0
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    lights, signs, lines = scenarios.counts[s, LIGHT_COUNT], maps.signs[m], scenarios.lights[s]
    count = list_lines(lines, lights, 0, x, y, cos, sin, 0, row, at, n)
    count = list_lines(signs, maps.sizes[m, SIGN_COUNT], lights, x, y, cos, sin, count, row, at, n)
    for k in range(count):
        number = int(row[at + _LINE_NUMBER * n + k])
        if number < lights:
            dx, dy = lines[LINE_X, number] - x, lines[LINE_Y, number] - y
            state = light_state(scenarios, s, number, step, seed, p)
        else:
            dx, dy = signs[LINE_X, number - lights] - x, signs[LINE_Y, number - lights] - y
            state = 0
        ahead, left = dx * cos + dy * sin, dy * cos - dx * sin
        write_line(ahead, left, state, number >= lights, row, at + k, n)
    return count


@rule(inline=True)
def write_line(ahead: Real, left: Real, state: Whole, is_sign: bool, row: Floats, at: Whole, n: Whole) -> None:
    """One stop line, so many metres ahead and to the left: feature f goes to row[at + f * n]."""
    row[at] = ahead * _FAR
    row[at + n] = left * _FAR
    row[at + 2 * n] = np.float32((_RED >> state) & 1)
    row[at + 3 * n] = np.float32((_AMBER >> state) & 1)
    row[at + 4 * n] = np.float32((_GREEN >> state) & 1)
    row[at + 5 * n] = _ONE if is_sign else _ZERO


@rule(inline=True)
def list_lines(
    lines: Floats,
    line_count: Whole,
    offset: Whole,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    count: Whole,
    row_out: Floats,
    at: Whole,
    n: Whole,
) -> Any:
    """Enter the stop lines ahead into the working lines of the block, nearest first; returns how many there are.

    Line k has the number k + offset.
    """
    if line_count < EIGHT:
        for line in range(line_count):
            dx, dy = lines[LINE_X, line] - x, lines[LINE_Y, line] - y
            if is_ahead(dx, dy, lines[LINE_COS, line], lines[LINE_SIN, line], cos, sin):
                count = enter_line(dx * dx + dy * dy, line + offset, count, row_out, at, n)
        return count
    for start in range(0, line_count, _TOGETHER):
        # First all of them, then those found: going to and fro, the processor would guess wrong at every one.
        ahead = np.int64(0)
        for k in range(start, min(start + _TOGETHER, line_count), EIGHT):
            first = min(k, line_count - EIGHT)
            found = eight_ahead(lines, first, x, y, cos, sin, _LINE_RANGE_2, _SAME_WAY) >> (k - first)
            ahead |= found << (k - start)
        while ahead != 0:
            line = start + lowest_bit(ahead)
            ahead &= ahead - 1
            dx, dy = lines[LINE_X, line] - x, lines[LINE_Y, line] - y
            count = enter_line(dx * dx + dy * dy, line + offset, count, row_out, at, n)
    return count


@rule(inline=True)
def is_ahead(dx: Real, dy: Real, line_cos: Real, line_sin: Real, cos: Real, sin: Real) -> bool:
    """Whether a stop line, so far from an agent with this heading, is ahead of it, in range and crossed its way."""
    is_same_way = line_cos * cos + line_sin * sin > _SAME_WAY
    return bool((dx * cos + dy * sin > _ZERO) & is_same_way & (dx * dx + dy * dy <= _LINE_RANGE_2))


@rule(inline=True)
def enter_line(distance: Real, number: Whole, count: Whole, row_out: Floats, at: Whole, n: Whole) -> Any:
    """Enter a stop line at its place among those listed, unless n are nearer; returns how many there are."""
    distances, numbers = at + _LINE_DISTANCE * n, at + _LINE_NUMBER * n
    place = min(count, n - 1)
    if place < count and not distance < row_out[distances + place]:
        return count
    while place > 0 and distance < row_out[distances + place - 1]:
        row_out[distances + place] = row_out[distances + place - 1]
        row_out[numbers + place] = row_out[numbers + place - 1]
        place -= 1
    row_out[distances + place] = distance
    row_out[numbers + place] = np.float32(number)
    return min(count + 1, n)


@intrinsic
def eight_ahead(typing_context, lines, k, x, y, cos, sin, range_2, same_way):
    """Which of the stop lines k to k + 7 lie ahead of an agent, in range and crossed its way: bit i for line k + i.

    lines: (4 or more, count), each line contiguous. In range is a squared distance of at most range_2, its way a cosine
    of the angle between the two directions above same_way.
    """
    signature = types.int64(lines, types.intp, *[types.float32] * 6)

    def generate(context, builder, signature, args):
        table = context.make_array(signature.args[0])(context, builder, args[0])
        line_x, line_y, line_cos, line_sin = load_lines(builder, table, args[1], 4)
        x, y, cos, sin, range_2, same_way = (spread(builder, value) for value in args[2:])
        dx, dy = builder.fsub(line_x, x), builder.fsub(line_y, y)

        def dot(a: Any, b: Any, c: Any, d: Any) -> Any:
            return builder.fadd(builder.fmul(a, b), builder.fmul(c, d))

        is_ahead = builder.fcmp_ordered(">", dot(dx, cos, dy, sin), eight_of(0.0))
        is_near = builder.fcmp_ordered("<=", dot(dx, dx, dy, dy), range_2)
        is_same_way = builder.fcmp_ordered(">", dot(line_cos, cos, line_sin, sin), same_way)
        return bits_of(builder, builder.and_(builder.and_(is_ahead, is_near), is_same_way))

    return signature, generate
