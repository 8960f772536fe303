"""Stop lines: how far an agent's front is from a line, and where it crosses it.

A line has a middle, a direction of travel and half a width (lines LINE_... of state.py). The distance of an agent's
front from a line is the distance of its center along the line's direction, less half its length. For an agent at an
angle to the line this lies between the middle of its bumper and its foremost corner. It depends on the position alone,
so the front continues in each step from where it was: a turn can neither carry it over a line unnoticed nor do so
twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, bits_of, eight_of, intrinsic, load_lines, size_of, spread_each, types
from roadworthy.scenario.schema import Floats
from roadworthy.sim import state
from roadworthy.sim.state import Real

ALONG_COS = np.float32(np.cos(np.pi / 3))  # an agent within 60 degrees of a line's direction drives across it
_ZERO, _HALF = np.float32(0.0), np.float32(0.5)
FAR = np.float32(1e9)
# Added to a rough test, so that rounding never excludes a line from the exact one.
_SLACK_M = np.float32(0.01)
# Of an agent: x, y, half its length, its last move along x and y, how far its front may be past a line (negative:
# before it), and how far to the side of its center.
Front = tuple[Real, Real, Real, Real, Real, Real, Real]


@rule(inline=True)
def is_any_close(lines: Floats, count: int, agents: Floats, a: int, within: np.float32) -> bool:
    """Return whether agent a's front may be within a distance before a line, or may have just crossed one.

    This rough test is all that most agents need, so it compares eight lines at once.
    """
    x, y, half_length = agents[state.X, a], agents[state.Y, a], _HALF * agents[state.LENGTH, a]
    move_x, move_y = x - agents[state.PREVIOUS_X, a], y - agents[state.PREVIOUS_Y, a]
    # The front is at most half the length to the side of the center, and moved at most as far as the center did.
    side = half_length + abs(move_x) + abs(move_y) + _SLACK_M
    front = x, y, half_length, move_x, move_y, -within - _SLACK_M, side
    if count < EIGHT:
        return bool(_close_one_by_one(lines, 0, count, front) != 0)
    close = 0
    for k in range(0, count, EIGHT):
        first = min(k, count - EIGHT)
        close |= eight_close(lines, first, front)
    return close != 0


@rule(inline=True)
def _close_one_by_one(lines: Floats, start: int, stop: int, front: Front) -> int:
    """Return 1 if a line from start to stop - 1 is close, else 0."""
    x, y, half_length, move_x, move_y, furthest_back, side = front
    close = 0
    for k in range(start, stop):
        c, t = lines[state.LINE_COS, k], lines[state.LINE_SIN, k]
        dx, dy = x - lines[state.LINE_X, k], y - lines[state.LINE_Y, k]
        beyond = dx * c + dy * t + half_length
        is_close = (beyond >= furthest_back) & (beyond <= max(move_x * c + move_y * t, _ZERO) + _SLACK_M)
        is_close &= abs(dy * c - dx * t) <= lines[state.LINE_HALF, k] + side
        close |= int(is_close)
    return close


def _eight_close_one_by_one(lines: Floats, k: int, front: Front) -> int:
    return _close_one_by_one(lines, k, k + EIGHT, front)


@rule(inline=True, cuda=_eight_close_one_by_one)
def eight_close(lines: Floats, k: int, front: Front) -> int:
    """Return 0 if none of the lines k to k + 7 is close (see `is_any_close`).

    lines: (5, count), each line contiguous.
    """
    return _eight_close(lines, k, front)


@intrinsic
def _eight_close(typing_context, lines, k, front):
    signature = types.int64(lines, types.intp, front)

    def generate(context, builder, signature, args):
        table = context.make_array(signature.args[0])(context, builder, args[0])
        line_x, line_y, line_cos, line_sin, line_half = load_lines(builder, table, args[1], 5)
        x, y, half_length, move_x, move_y, furthest_back, side = spread_each(builder, args[2])
        mul, add, sub = builder.fmul, builder.fadd, builder.fsub
        dx, dy = sub(x, line_x), sub(y, line_y)
        beyond = add(add(mul(dx, line_cos), mul(dy, line_sin)), half_length)
        moved = add(mul(move_x, line_cos), mul(move_y, line_sin))
        moved = builder.select(builder.fcmp_ordered(">", moved, eight_of(0.0)), moved, eight_of(0.0))
        across = size_of(builder, sub(mul(dy, line_cos), mul(dx, line_sin)))
        is_close = builder.fcmp_ordered(">=", beyond, furthest_back)
        is_close = builder.and_(is_close, builder.fcmp_ordered("<=", beyond, add(moved, eight_of(_SLACK_M))))
        is_close = builder.and_(is_close, builder.fcmp_ordered("<=", across, add(line_half, side)))
        return bits_of(builder, is_close)

    return signature, generate


@rule(inline=True)
def distance_past(lines: Floats, k: int, x: float, y: float, half_length: float) -> Any:
    """Return the distance (m) from a line to the front of an agent centered at (x, y), negative before the line."""
    return (
        (x - lines[state.LINE_X, k]) * lines[state.LINE_COS, k]
        + (y - lines[state.LINE_Y, k]) * lines[state.LINE_SIN, k]
        + half_length
    )


@rule(inline=True)
def is_along(lines: Floats, k: int, agents: Floats, a: int) -> bool:
    """Return whether agent a heads across a line in the direction of travel."""
    return bool(
        agents[state.COS, a] * lines[state.LINE_COS, k] + agents[state.SIN, a] * lines[state.LINE_SIN, k] >= ALONG_COS
    )


@rule(inline=True)
def offset_from_middle(lines: Floats, k: int, agents: Floats, a: int) -> Any:
    """Return how many meters agent a's front is to the left of a line's middle."""
    half_length = _HALF * agents[state.LENGTH, a]
    dx = agents[state.X, a] + half_length * agents[state.COS, a] - lines[state.LINE_X, k]
    dy = agents[state.Y, a] + half_length * agents[state.SIN, a] - lines[state.LINE_Y, k]
    return dy * lines[state.LINE_COS, k] - dx * lines[state.LINE_SIN, k]


@rule(inline=True)
def crossing_offset(lines: Floats, k: int, agents: Floats, a: int) -> Any:
    """Return how far from its middle agent a's front crossed a line in the last step; FAR if it did not."""
    x, y = agents[state.X, a], agents[state.Y, a]
    before_x, before_y = agents[state.PREVIOUS_X, a], agents[state.PREVIOUS_Y, a]
    half_length = _HALF * agents[state.LENGTH, a]
    beyond = distance_past(lines, k, x, y, half_length)
    before = distance_past(lines, k, before_x, before_y, half_length)
    if not (beyond > _ZERO and before <= _ZERO and is_along(lines, k, agents, a)):
        return FAR
    # Where the front is at the end of the step, less its sideways motion since it was on the line.
    moved = (y - before_y) * lines[state.LINE_COS, k] - (x - before_x) * lines[state.LINE_SIN, k]
    at = abs(offset_from_middle(lines, k, agents, a) - moved * beyond / (beyond - before))
    return at if at <= lines[state.LINE_HALF, k] else FAR
