"""Leaving the road: whether a box touches a road edge, and whether a move crosses one."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, lowest_bit
from roadworthy.scenario.grid import cell_along
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.maps.road_points import is_entry_major
from roadworthy.sim.rules.off_road_simd import eight_contacts, one_contact
from roadworthy.sim.state import Maps

_ZERO, _HALF = np.float32(0.0), np.float32(0.5)
# These two limit the number of cells that are searched. A longer move is not driving and crosses nothing; an agent that
# is larger than twice the second is treated as if it had that size.
LONGEST_MOVE_M = np.float32(30.0)
_LONGEST_REACH = np.float32(30.0)
# Added to a rough test, so that rounding never excludes a segment from the exact one.
_SLACK_M = np.float32(0.01)
_GRID_STEPS_PER_M = np.float32(4096.0)


@rule(inline=True)
def edge_contact(maps: Maps, m: int, agents: Floats, a: int) -> tuple[int, int]:
    """Return whether agent a's box touches a road edge (1, 0) and whether its move left the road (1) or returned (-1).

    The move is that of its center in the last step. It leaves the road where it crosses an edge from the left to the
    right; several crossings in one move are summed. A position on an edge counts as left of it, and a crossing at the
    point where two segments meet counts for only one of them.
    """
    x, y, cos, sin = pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    half_length, half_width = half = _HALF * agents[state.LENGTH, a], _HALF * agents[state.WIDTH, a]
    before_x, before_y = agents[state.PREVIOUS_X, a], agents[state.PREVIOUS_Y, a]
    move_x, move_y = x - before_x, y - before_y
    if not move_x * move_x + move_y * move_y <= LONGEST_MOVE_M * LONGEST_MOVE_M:
        before_x, before_y, move_x, move_y = x, y, _ZERO, _ZERO
    reach_x = min(abs(cos) * half_length + abs(sin) * half_width, _LONGEST_REACH)
    reach_y = min(abs(sin) * half_length + abs(cos) * half_width, _LONGEST_REACH)

    columns, rows = maps.sizes[m, state.COLUMNS], maps.sizes[m, state.ROWS]
    west, south = maps.origins[m, 0], maps.origins[m, 1]
    first_column = cell_along(min(x - reach_x, before_x), west, columns)
    last_column = cell_along(max(x + reach_x, before_x), west, columns)
    first_row = cell_along(min(y - reach_y, before_y), south, rows)
    last_row = cell_along(max(y + reach_y, before_y), south, rows)

    starts, numbers, edges = maps.cell_edge_starts[m], maps.cell_edges[m], maps.edges[m]
    move = x + before_x, y + before_y, abs(move_x) + _SLACK_M, abs(move_y) + _SLACK_M
    takes_eight = len(numbers) >= EIGHT and is_entry_major(edges)
    touches, crossings = 0, 0
    for row in range(first_row, last_row + 1):
        place, end = starts[row * columns + first_column], starts[row * columns + last_column + 1]
        while place < end:
            first = place
            if takes_eight:
                first = min(place, len(numbers) - EIGHT)
                contact, near = eight_contacts(edges, numbers, first, place, end, pose, half, move)
                place += EIGHT
            else:
                contact, near = one_contact(edges, numbers[place], pose, half, move)
                place += 1
            touches |= contact
            while near != 0:  # rare
                found = first + lowest_bit(near)
                near &= near - 1
                k = numbers[found]
                crossing = _crossing(edges, k, before_x, before_y, x, y)
                if crossing != 0 and not _is_listed_before(
                    starts, numbers, found, row, first_row, first_column, last_column, columns
                ):
                    crossings += crossing
    return int(touches), int(crossings > 0) - int(crossings < 0)


@rule(inline=True)
def _crossing(edges: Floats, k: int, before_x: float, before_y: float, x: float, y: float) -> int:
    """Return +1 if a move crosses segment k from left to right, -1 from right to left, else 0.

    The side of a point must be the same for both segments that end there, and the same in the next step: a departure
    that is missed once is missed for good. So it is computed exactly in integers (quarters of a millimeter), with equal
    results on every device.
    """
    x0, y0 = edges[state.EDGE_X0, k], edges[state.EDGE_Y0, k]
    x1, y1 = edges[state.EDGE_X1, k], edges[state.EDGE_Y1, k]
    starts_left = _is_left(x0, y0, x1, y1, before_x, before_y)
    ends_left = _is_left(x0, y0, x1, y1, x, y)
    if starts_left == ends_left:
        return 0
    if _is_left(before_x, before_y, x, y, x0, y0) == _is_left(before_x, before_y, x, y, x1, y1):
        return 0
    return 1 if starts_left else -1


@rule(inline=True)
def _is_left(x0: float, y0: float, x1: float, y1: float, x: float, y: float) -> bool:
    """Return whether a point is to the left of the line through two others, or on it."""
    ax, ay = _grid_steps(x0), _grid_steps(y0)
    return bool((_grid_steps(x1) - ax) * (_grid_steps(y) - ay) >= (_grid_steps(y1) - ay) * (_grid_steps(x) - ax))


@rule(inline=True)
def _grid_steps(place: float) -> Any:
    return np.int64(np.rint(place * _GRID_STEPS_PER_M))


@rule(inline=True)
def _is_listed_before(
    starts: Ints, numbers: Ints, place: int, row: int, first_row: int, first_column: int, last_column: int, columns: int
) -> bool:
    """Return whether these cells list the segment at a place earlier too: each segment counts once."""
    for r in range(first_row, row + 1):
        end = starts[r * columns + last_column + 1]
        for earlier in range(starts[r * columns + first_column], min(end, place)):
            if numbers[earlier] == numbers[place]:
                return True
    return False
