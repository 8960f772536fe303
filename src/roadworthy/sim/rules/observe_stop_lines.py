"""Observation block `lights`: the stop lines ahead, of traffic lights and stop signs, nearest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, bits_of, eight_of, intrinsic, load_lines, lowest_bit, spread_each, types
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, Floats, LightState
from roadworthy.sim import state
from roadworthy.sim.layout import COUNTS_BLOCK, FAR_M, LIGHT, LIGHTS_BLOCK, LIGHTS_COUNT
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.observation import drop, share, zero
from roadworthy.sim.rules.traffic_lights import light_state
from roadworthy.sim.state import Maps, Params, Pose, Real, Scenarios, Whole

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
LIGHT_SIZE = len(LIGHT)
_FAR = np.float32(1.0 / FAR_M)
# A stop line is ahead if it is in front of the agent's center and within this distance, and its direction of travel is
# within 60 degrees of the agent's heading.
_LINE_RANGE_2 = np.float32(100.0**2)
_SAME_WAY = np.float32(0.5)
# Features of the block that hold the squared distance and the number while lines are listed.
_LINE_DISTANCE, _LINE_NUMBER = 2, 3
_BATCH = 64  # stop lines whose flags fit into one integer
_RED = sum(1 << shown for shown in RED_STATES)
_AMBER = sum(1 << s for s in (LightState.ARROW_CAUTION, LightState.CAUTION, LightState.FLASHING_CAUTION))
_GREEN = sum(1 << shown for shown in GREEN_STATES)


@rule(inline=True)
def observe_stop_lines(
    agents: Floats,
    a: Whole,
    maps: Maps,
    m: Whole,
    scenarios: Scenarios,
    s: Whole,
    step: Whole,
    seed: Any,
    p: Params,
    row: Floats,
) -> None:
    """Write the block for agent a, with dropout."""
    at, n = p.block_starts[LIGHTS_BLOCK], p.lights
    zero(row, at, at + LIGHT_SIZE * n)
    count = 0
    if n > 0:
        x, y, cos, sin = pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
        lights, signs, lines = scenarios.counts[s, state.LIGHT_COUNT], maps.signs[m], scenarios.lights[s]
        count = list_lines(lines, lights, 0, pose, 0, row, at, n)
        count = list_lines(signs, maps.sizes[m, state.SIGN_COUNT], lights, pose, count, row, at, n)
        for k in range(count):
            number = int(row[at + _LINE_NUMBER * n + k])
            if number < lights:
                dx, dy = lines[state.LINE_X, number] - x, lines[state.LINE_Y, number] - y
                shown = light_state(scenarios, s, number, step, seed, p)
            else:
                dx, dy = signs[state.LINE_X, number - lights] - x, signs[state.LINE_Y, number - lights] - y
                shown = 0
            ahead, left = dx * cos + dy * sin, dy * cos - dx * sin
            write_line(ahead, left, shown, number >= lights, row, at + k, n)
    row[p.block_starts[COUNTS_BLOCK] + LIGHTS_COUNT] = share(count, n)
    if p.dropout > _ZERO:
        drop(draws.draw(seed, a, step, draws.DROPOUT), LIGHTS_COUNT, p.dropout, row, at, LIGHT_SIZE, count, n)


@rule(inline=True)
def write_line(ahead: Real, left: Real, shown: Whole, is_sign: bool, row: Floats, at: Whole, n: Whole) -> None:
    """Write one stop line at a position in the agent's frame, in m: feature f goes to row[at + f * n]."""
    row[at] = ahead * _FAR
    row[at + n] = left * _FAR
    row[at + 2 * n] = np.float32((_RED >> shown) & 1)
    row[at + 3 * n] = np.float32((_AMBER >> shown) & 1)
    row[at + 4 * n] = np.float32((_GREEN >> shown) & 1)
    row[at + 5 * n] = _ONE if is_sign else _ZERO


@rule(inline=True)
def list_lines(
    lines: Floats, line_count: Whole, offset: Whole, pose: Pose, count: Whole, row_out: Floats, at: Whole, n: Whole
) -> Any:
    """Add the stop lines ahead to the list in the block, nearest first, and return how many it holds.

    Line k gets the number k + offset.
    """
    x, y, cos, sin = pose
    if line_count < EIGHT:
        for line in range(line_count):
            dx, dy = lines[state.LINE_X, line] - x, lines[state.LINE_Y, line] - y
            if is_ahead(dx, dy, lines[state.LINE_COS, line], lines[state.LINE_SIN, line], cos, sin):
                count = enter_line(dx * dx + dy * dy, line + offset, count, row_out, at, n)
        return count
    for start in range(0, line_count, _BATCH):
        # Test a whole batch first and then visit the hits: alternating would mispredict a branch at every hit.
        ahead = np.int64(0)
        for k in range(start, min(start + _BATCH, line_count), EIGHT):
            first = min(k, line_count - EIGHT)
            found = eight_ahead(lines, first, pose) >> (k - first)
            ahead |= found << (k - start)
        while ahead != 0:
            line = start + lowest_bit(ahead)
            ahead &= ahead - 1
            dx, dy = lines[state.LINE_X, line] - x, lines[state.LINE_Y, line] - y
            count = enter_line(dx * dx + dy * dy, line + offset, count, row_out, at, n)
    return count


@rule(inline=True)
def is_ahead(dx: Real, dy: Real, line_cos: Real, line_sin: Real, cos: Real, sin: Real) -> bool:
    """Return whether a stop line at an offset from an agent is ahead, in range and for its direction."""
    is_same_way = line_cos * cos + line_sin * sin > _SAME_WAY
    return bool((dx * cos + dy * sin > _ZERO) & is_same_way & (dx * dx + dy * dy <= _LINE_RANGE_2))


@rule(inline=True)
def enter_line(distance: Real, number: Whole, count: Whole, row_out: Floats, at: Whole, n: Whole) -> Any:
    """Insert a stop line in the sorted list unless n are nearer, and return how many it holds."""
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
def eight_ahead(typing_context, lines, k, pose):
    """Return which of the stop lines k to k + 7 are ahead, as bit i for line k + i.

    lines: (4 or more, count), each line contiguous.
    """
    signature = types.int64(lines, types.intp, pose)

    def generate(context, builder, signature, args):
        table = context.make_array(signature.args[0])(context, builder, args[0])
        line_x, line_y, line_cos, line_sin = load_lines(builder, table, args[1], 4)
        x, y, cos, sin = spread_each(builder, args[2])
        dx, dy = builder.fsub(line_x, x), builder.fsub(line_y, y)

        def dot(a: Any, b: Any, c: Any, d: Any) -> Any:
            return builder.fadd(builder.fmul(a, b), builder.fmul(c, d))

        is_ahead = builder.fcmp_ordered(">", dot(dx, cos, dy, sin), eight_of(0.0))
        is_near = builder.fcmp_ordered("<=", dot(dx, dx, dy, dy), eight_of(_LINE_RANGE_2))
        is_same_way = builder.fcmp_ordered(">", dot(line_cos, cos, line_sin, sin), eight_of(_SAME_WAY))
        return bits_of(builder, builder.and_(builder.and_(is_ahead, is_near), is_same_way))

    return signature, generate
