"""Where an agent is on the road: contact with road edges, moves across them, and the lane that it is on."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, lowest_bit, prefetch_eight, prefetch_entry
from roadworthy.scenario.grid import CELL_M, cell_along
from roadworthy.scenario.prepare import PIECE_M
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.maps.road_points import is_entry_major, nearest_of_eight
from roadworthy.sim.rules.off_road_simd import eight_contacts, one_contact
from roadworthy.sim.state import (
    COLUMNS,
    COS,
    EDGE_X0,
    EDGE_X1,
    EDGE_Y0,
    EDGE_Y1,
    LANE,
    LANE_COS,
    LANE_COUNT,
    LANE_LIMIT,
    LANE_OFFSET,
    LANE_POINT_COUNT,
    LANE_POINT_START,
    LANE_SIN,
    LENGTH,
    POINT_COS,
    POINT_HALF,
    POINT_LIMIT,
    POINT_SIN,
    POINT_X,
    POINT_Y,
    PREVIOUS_X,
    PREVIOUS_Y,
    RADIUS,
    ROWS,
    SIN,
    WIDTH,
    Maps,
    X,
    Y,
)

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# These two bound the number of cells that are looked at. A longer move is no driving and crosses nothing; an agent
# further across than twice the second is looked at as far as that.
LONGEST_MOVE_M = np.float32(30.0)
_LONGEST_REACH = np.float32(30.0)
# Added to a rough test, so that rounding never keeps a segment from the exact one.
_SLACK_M = np.float32(0.01)

# How far a lane may be away for an agent to be on it.
ON_LANE_M = np.float32(8.0)
_ON_LANE_SQUARE = np.float32(ON_LANE_M * ON_LANE_M)
# What driving at an angle to a lane counts, in square metres: a lane that one crosses at a right angle counts as if it
# were 1.4 m away, one that one drives against as if 2 m. Where two opposite lanes are 3.5 m apart, an agent within
# 1.2 m of the middle of the wrong one is on the wrong one.
_ANGLE_SQUARE = np.float32(2.0)
# How much nearer the lane that the agent was on counts, in square metres: lanes that lie on each other where a road
# forks don't take turns.
_STAY_SQUARE = np.float32(0.04)
_NO_COST = np.float32(1e9)
_CELL = np.float32(CELL_M)
_GRID_STEPS_PER_M = np.float32(4096.0)
_LONGEST_HALF_M = np.float32(PIECE_M / 2 + 0.01)  # of a piece, rounded up


@rule(inline=True)
def edge_contact(maps: Maps, m: int, agents: Floats, a: int) -> tuple[int, int]:
    """Whether agent a's box touches a road edge (1 or 0), and if its move left the road (1), came back (-1) or neither.

    The move is that of its middle in the last step. It leaves the road where it crosses an edge from the left to the
    right; several crossings in one move are summed. A place on an edge is left of it, and a crossing at the point
    where two segments meet is one of only one of them.
    """
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    half_length, half_width = _HALF * agents[LENGTH, a], _HALF * agents[WIDTH, a]
    before_x, before_y = agents[PREVIOUS_X, a], agents[PREVIOUS_Y, a]
    move_x, move_y = x - before_x, y - before_y
    if not move_x * move_x + move_y * move_y <= LONGEST_MOVE_M * LONGEST_MOVE_M:
        before_x, before_y, move_x, move_y = x, y, _ZERO, _ZERO
    reach_x = min(abs(cos) * half_length + abs(sin) * half_width, _LONGEST_REACH)
    reach_y = min(abs(sin) * half_length + abs(cos) * half_width, _LONGEST_REACH)

    columns, rows = maps.sizes[m, COLUMNS], maps.sizes[m, ROWS]
    west, south = maps.origins[m, 0], maps.origins[m, 1]
    first_column = cell_along(min(x - reach_x, before_x), west, columns)
    last_column = cell_along(max(x + reach_x, before_x), west, columns)
    first_row = cell_along(min(y - reach_y, before_y), south, rows)
    last_row = cell_along(max(y + reach_y, before_y), south, rows)

    starts, numbers, edges = maps.cell_edge_starts[m], maps.cell_edges[m], maps.edges[m]
    twice_x, twice_y = x + before_x, y + before_y
    span_x, span_y = abs(move_x) + _SLACK_M, abs(move_y) + _SLACK_M
    takes_eight = len(numbers) >= EIGHT and is_entry_major(edges)
    touches, crossings = 0, 0
    for row in range(first_row, last_row + 1):
        place, end = starts[row * columns + first_column], starts[row * columns + last_column + 1]
        while place < end:
            first = place
            if takes_eight:
                first = min(place, len(numbers) - EIGHT)
                contact, near = eight_contacts(
                    edges,
                    numbers,
                    first,
                    place,
                    end,
                    x,
                    y,
                    cos,
                    sin,
                    half_length,
                    half_width,
                    twice_x,
                    twice_y,
                    span_x,
                    span_y,
                )
                place += EIGHT
            else:
                k = numbers[place]
                contact, near = one_contact(
                    edges, k, x, y, cos, sin, half_length, half_width, twice_x, twice_y, span_x, span_y
                )
                place += 1
            touches |= contact
            while near != 0:  # hardly ever
                found = first + lowest_bit(near)
                near &= near - 1
                k = numbers[found]
                crossing = _crossing(
                    edges[EDGE_X0, k], edges[EDGE_Y0, k], edges[EDGE_X1, k], edges[EDGE_Y1, k], before_x, before_y, x, y
                )
                if crossing != 0 and not _is_listed_before(
                    starts, numbers, found, row, first_row, first_column, last_column, columns
                ):
                    crossings += crossing
    return int(touches), int(crossings > 0) - int(crossings < 0)


@rule(inline=True)
def _crossing(x0: float, y0: float, x1: float, y1: float, before_x: float, before_y: float, x: float, y: float) -> int:
    """+1 if a move crosses a segment from its left to its right, -1 from right to left, else 0.

    Which side of a line a point is on must come out the same for both segments that end there, and again in the next
    step: a departure that is missed is never made good. So it is worked out in whole numbers of a quarter of a
    millimetre, without any rounding, and alike on every device.
    """
    starts_left = _is_left(x0, y0, x1, y1, before_x, before_y)
    ends_left = _is_left(x0, y0, x1, y1, x, y)
    if starts_left == ends_left:
        return 0
    if _is_left(before_x, before_y, x, y, x0, y0) == _is_left(before_x, before_y, x, y, x1, y1):
        return 0
    return 1 if starts_left else -1


@rule(inline=True)
def _is_left(x0: float, y0: float, x1: float, y1: float, x: float, y: float) -> bool:
    """Whether a point is to the left of the line through two others, or on it."""
    ax, ay = _grid_steps(x0), _grid_steps(y0)
    return bool((_grid_steps(x1) - ax) * (_grid_steps(y) - ay) >= (_grid_steps(y1) - ay) * (_grid_steps(x) - ax))


@rule(inline=True)
def _grid_steps(place: float) -> Any:
    return np.int64(np.rint(place * _GRID_STEPS_PER_M))


@rule(inline=True)
def _is_listed_before(
    starts: Ints, numbers: Ints, place: int, row: int, first_row: int, first_column: int, last_column: int, columns: int
) -> bool:
    """Whether the segment listed at a place was already met in a query for these cells: each counts only once."""
    for r in range(first_row, row + 1):
        end = starts[r * columns + last_column + 1]
        for earlier in range(starts[r * columns + first_column], min(end, place)):
            if numbers[earlier] == numbers[place]:
                return True
    return False


@rule(inline=True)
def locate_on_lane(maps: Maps, m: int, agents: Floats, flags: Ints, a: int) -> None:
    """Write which lane agent a is on, and how it lies to it: LANE and the lines LANE_...

    That is the lane of the piece for which this is least, among those in the list of the agent's cell that are no
    further than ON_LANE_M: the square of the distance to the piece, plus 2 m2 * (1 - cosine of the angle between the
    heading and the piece), less 0.04 m2 if the agent was on this lane before. With none so near, it is on no lane.
    A cell far from roads uses the list of another; then a lane that is farther than the nearest may be found.
    """
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    columns, rows = maps.sizes[m, COLUMNS], maps.sizes[m, ROWS]
    west, south = maps.origins[m, 0], maps.origins[m, 1]
    column, row = cell_along(x, west, columns), cell_along(y, south, rows)
    entries = maps.lane_lists[m, maps.cell_lists[m, row * columns + column]]
    points, was_on = maps.lane_points[m], flags[LANE, a]
    # The pieces of the lane that it was on: numbers that follow each other.
    own, own_count = np.uint32(0), np.uint32(0)
    if was_on >= 0 and was_on < maps.sizes[m, LANE_COUNT]:
        own = np.uint32(maps.lanes[m, LANE_POINT_START, was_on])
        own_count = np.uint32(maps.lanes[m, LANE_POINT_START, was_on + 1] - own)
    px, py, pcos, psin, phalf = (
        points[POINT_X],
        points[POINT_Y],
        points[POINT_COS],
        points[POINT_SIN],
        points[POINT_HALF],
    )
    count = min(len(entries), maps.sizes[m, LANE_POINT_COUNT])
    middle_x = west + (np.float32(column) + _HALF) * _CELL
    middle_y = south + (np.float32(row) + _HALF) * _CELL
    off_middle = np.sqrt((x - middle_x) * (x - middle_x) + (y - middle_y) * (y - middle_y))

    # Eight entries are looked at before asking whether that was enough; it is for 95 of 100 agents.
    takes_eight = count >= EIGHT and is_entry_major(points)
    least, found = _NO_COST, -1
    for first in range(0, count, EIGHT):
        last = min(first + EIGHT, count)
        if takes_eight:
            begin = last - EIGHT
            cost, place = nearest_of_eight(
                points, entries, begin, x, y, cos, sin, own, own_count, _ON_LANE_SQUARE, _ANGLE_SQUARE, _STAY_SQUARE
            )
            if cost < least:
                least, found = cost, begin + place
        else:
            for place in range(first, last):
                k = np.uint32(entries[place])
                dx, dy, c, s = x - px[k], y - py[k], pcos[k], psin[k]
                beyond = max(abs(dx * c + dy * s) - phalf[k], _ZERO)
                across = dy * c - dx * s
                square = beyond * beyond + across * across
                # Below own, the difference wraps around.
                stays = _ZERO if np.uint32(k - own) < own_count else _STAY_SQUARE
                cost = square + _ANGLE_SQUARE * (_ONE - cos * c - sin * s) + stays
                if (square <= _ON_LANE_SQUARE) & (cost < least):
                    least, found = cost, place
        # Entries are in the order of their distance to the middle of the cell: what follows is at least so far away.
        k = entries[last - 1]
        dx, dy = px[k] - middle_x, py[k] - middle_y
        away = np.sqrt(dx * dx + dy * dy) - off_middle - _LONGEST_HALF_M
        if away > _ZERO and away * away > least:
            break
    if found < 0:
        flags[LANE, a] = -1
        agents[LANE_OFFSET, a], agents[LANE_COS, a], agents[LANE_SIN, a] = _ZERO, _ONE, _ZERO
        agents[LANE_LIMIT, a] = _ZERO
        return
    k = entries[found]
    c, s = pcos[k], psin[k]
    # Most agents stay on their lane; whose piece it is would have to be waited for.
    if not np.uint32(np.uint32(k) - own) < own_count:
        flags[LANE, a] = maps.lane_point_lanes[m, k]
    agents[LANE_OFFSET, a] = (y - py[k]) * c - (x - px[k]) * s
    agents[LANE_COS, a] = cos * c + sin * s
    agents[LANE_SIN, a] = sin * c - cos * s
    agents[LANE_LIMIT, a] = points[POINT_LIMIT, k]


@rule(inline=True)
def prefetch_map(maps: Maps, m: int, agents: Floats, count: int, lists: Ints) -> None:
    """Bring into the cache what is about to be read of the map around the first agents.

    Waiting for one thing after the other takes longer. Each pass reads what the one before has fetched, for all agents.

    lists: working space for count numbers.
    """
    columns, rows = maps.sizes[m, COLUMNS], maps.sizes[m, ROWS]
    west, south = maps.origins[m, 0], maps.origins[m, 1]
    starts, cell_lists, cell_edges = maps.cell_edge_starts[m], maps.cell_lists[m], maps.cell_edges[m]
    lanes, edges, points, segments = maps.lane_lists[m], maps.edge_lists[m], maps.lane_points[m], maps.edges[m]
    length, last = lanes.shape[1], len(cell_edges) - 1
    row_above = columns if rows > 1 else 0  # most boxes lie in two rows of cells
    for a in range(count):
        lists[a] = cell_along(agents[Y, a], south, rows) * columns + cell_along(agents[X, a], west, columns)
        prefetch_entry(cell_lists, lists[a])
        corner = _corner_cell(agents, a, west, south, columns, rows)
        prefetch_entry(starts, corner)
        prefetch_entry(starts, corner + row_above)
    for a in range(count):
        lists[a] = cell_lists[lists[a]]
        first = lists[a] * length
        prefetch_entry(lanes, first)
        prefetch_entry(lanes, first + length // 2)
        prefetch_entry(edges, first)
        prefetch_entry(edges, first + length // 2)
        corner = _corner_cell(agents, a, west, south, columns, rows)
        prefetch_entry(cell_edges, starts[corner])
        prefetch_entry(cell_edges, starts[corner + row_above])
    for a in range(count):
        prefetch_eight(points, lanes[lists[a]], 0)
        corner = _corner_cell(agents, a, west, south, columns, rows)
        prefetch_entry(segments, cell_edges[min(starts[corner], last)] * EIGHT)
        prefetch_entry(segments, cell_edges[min(starts[corner + row_above], last)] * EIGHT)


@rule(inline=True)
def prefetch_lists(maps: Maps, m: int, agents: Floats, count: int) -> None:
    """Bring into the cache which pieces of the map are around the first agents."""
    columns, rows = maps.sizes[m, COLUMNS], maps.sizes[m, ROWS]
    west, south = maps.origins[m, 0], maps.origins[m, 1]
    cell_lists, lanes, edges = maps.cell_lists[m], maps.lane_lists[m], maps.edge_lists[m]
    length = lanes.shape[1]
    for a in range(count):
        cell = cell_along(agents[Y, a], south, rows) * columns + cell_along(agents[X, a], west, columns)
        first = cell_lists[cell] * length
        prefetch_entry(lanes, first)
        prefetch_entry(lanes, first + length // 2)
        prefetch_entry(edges, first)
        prefetch_entry(edges, first + length // 2)


@rule(inline=True)
def _corner_cell(agents: Floats, a: int, west: float, south: float, columns: int, rows: int) -> int:
    """The cell that agent a's box reaches to in the south-west, in the last row but one at most."""
    x, y, radius = agents[X, a], agents[Y, a], agents[RADIUS, a]
    row = min(cell_along(y - radius, south, rows), max(rows - 2, 0))
    return row * columns + cell_along(x - radius, west, columns)
