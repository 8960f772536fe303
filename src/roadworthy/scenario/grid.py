"""The grid over a map, and kernels that find what lies in and near its cells.

Cells are squares of CELL_M. Cell (row, column) has the number row * columns + column, and covers x from x0 + column *
CELL_M and y from y0 + row * CELL_M. Kernels write into arrays of the caller (`_out`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel

CELL_M = 5.0
_CELL = np.float32(CELL_M)
# A segment is listed in every cell that is this close to it, so that rounding a query to float32 misses none.
TOUCH_M = 1e-3
# The largest error of a rounded cell border, in the search for nearest points.
_ROUNDING_M = 1e-6

Array = NDArray[Any]


@kernel
def cell_along(position: float, origin: float, count: int) -> int:
    """Return the column of an x, or the row of a y. Positions outside get the nearest one, NaN gets 0."""
    cells = (np.float32(position) - np.float32(origin)) / _CELL
    if not cells > np.float32(0.0):
        return 0
    if cells >= np.float32(count):
        return count - 1
    return int(cells)


@kernel
def list_segments(
    x0: Array,
    y0: Array,
    x1: Array,
    y1: Array,
    origin_x: float,
    origin_y: float,
    columns: int,
    rows: int,
    cursors_out: Array,
    numbers_out: Array,
) -> None:
    """Write each segment's number at the cursor of every cell that it touches, and advance the cursor.

    If numbers_out is empty, only the cursors advance: starting at zero, they become the number of segments per cell.
    """
    for segment in range(len(x0)):
        ax, ay = float(x0[segment]), float(y0[segment])
        bx, by = float(x1[segment]), float(y1[segment])
        first_row = max(int((min(ay, by) - TOUCH_M - origin_y) / CELL_M), 0)
        last_row = min(int((max(ay, by) + TOUCH_M - origin_y) / CELL_M), rows - 1)
        for row in range(first_row, last_row + 1):
            # The part of the segment in this row spans these x.
            enter, leave = 0.0, 1.0
            if ay != by:
                bottom = (origin_y + row * CELL_M - TOUCH_M - ay) / (by - ay)
                top = (origin_y + (row + 1) * CELL_M + TOUCH_M - ay) / (by - ay)
                enter = min(max(min(bottom, top), 0.0), 1.0)
                leave = max(min(max(bottom, top), 1.0), 0.0)
            enter_x, leave_x = ax + enter * (bx - ax), ax + leave * (bx - ax)
            first = max(int((min(enter_x, leave_x) - TOUCH_M - origin_x) / CELL_M), 0)
            last = min(int((max(enter_x, leave_x) + TOUCH_M - origin_x) / CELL_M), columns - 1)
            for cell in range(row * columns + first, row * columns + last + 1):
                if len(numbers_out):
                    numbers_out[cursors_out[cell]] = segment
                cursors_out[cell] += 1


@kernel
def mark_near(
    x: Array, y: Array, radius: float, origin_x: float, origin_y: float, columns: int, rows: int, is_near_out: Array
) -> None:
    """Set is_near_out of every cell whose center is within the radius of a point."""
    for point in range(len(x)):
        # In units of cells, so that the center of cell k is at k.
        column = (float(x[point]) - origin_x) / CELL_M - 0.5
        row = (float(y[point]) - origin_y) / CELL_M - 0.5
        reach = radius / CELL_M
        for r in range(max(int(np.ceil(row - reach)), 0), min(int(np.floor(row + reach)), rows - 1) + 1):
            for c in range(max(int(np.ceil(column - reach)), 0), min(int(np.floor(column + reach)), columns - 1) + 1):
                if (r - row) ** 2 + (c - column) ** 2 <= reach * reach:
                    is_near_out[r * columns + c] = True


@kernel
def nearest_marked(numbers: Array, numbers_out: Array) -> None:
    """Give every cell the number of the nearest cell that has one (not -1), the lower number in case of a tie.

    numbers, numbers_out: (rows, columns). Numbers ascend with the cell; at least one cell must have one.
    """
    rows, columns = numbers.shape
    # First along each column: the row of the nearest numbered cell of the same column, -1 if there is none.
    nearest_row = np.full((rows, columns), -1, np.int64)
    for column in range(columns):
        below = -1
        for row in range(rows):
            if numbers[row, column] >= 0:
                below = row
            nearest_row[row, column] = below
        above = -1
        for row in range(rows - 1, -1, -1):
            if numbers[row, column] >= 0:
                above = row
            below = nearest_row[row, column]
            if above >= 0 and (below < 0 or above - row < row - below):
                nearest_row[row, column] = above
    # Then along each row: columns that are farther away than the best result cannot hold a nearer cell.
    for row in range(rows):
        for column in range(columns):
            best, number = np.int64(rows * rows + columns * columns), -1
            for away in range(columns):
                if away * away > best:
                    break
                for other in (column - away, column + away):
                    if other < 0 or other >= columns or nearest_row[row, other] < 0:
                        continue
                    candidate = numbers[nearest_row[row, other], other]
                    distance = away * away + (nearest_row[row, other] - row) ** 2
                    if distance < best or (distance == best and (number < 0 or candidate < number)):
                        best, number = distance, candidate
            numbers_out[row, column] = number


@kernel
def _insert_nearest(
    first: int,
    last: int,
    order: Array,
    x: Array,
    y: Array,
    middle_x: float,
    middle_y: float,
    distances: Array,
    numbers: Array,
    count: int,
) -> int:
    """Insert the points order[first:last] into a list that is sorted by distance, and return its length."""
    room = len(numbers)
    for place in range(first, last):
        point = order[place]
        dx, dy = float(x[place]) - middle_x, float(y[place]) - middle_y
        distance = dx * dx + dy * dy
        if count < room:
            slot = count
            count += 1
        else:
            slot = room - 1
            if distance > distances[slot] or (distance == distances[slot] and point > numbers[slot]):
                continue
        while slot > 0 and (
            distance < distances[slot - 1] or (distance == distances[slot - 1] and point < numbers[slot - 1])
        ):
            distances[slot], numbers[slot] = distances[slot - 1], numbers[slot - 1]
            slot -= 1
        distances[slot], numbers[slot] = distance, point
    return count


@kernel
def nearest_points(
    cells: Array,
    order: Array,
    starts: Array,
    x: Array,
    y: Array,
    origin_x: float,
    origin_y: float,
    columns: int,
    rows: int,
    numbers_out: Array,
) -> None:
    """Find the points nearest to the center of each given cell, nearest first, the lower number first in case of a tie.

    order: point numbers sorted by cell; cell c owns order[starts[c]:starts[c + 1]], and x and y have the same order.
    numbers_out: (cells, list length), -1 after the last point.
    """
    room = numbers_out.shape[1]
    wanted = min(room, len(order))
    distances = np.empty(room, np.float64)
    for k in range(len(cells)):
        row, column = cells[k] // columns, cells[k] % columns
        middle_x, middle_y = origin_x + (column + 0.5) * CELL_M, origin_y + (row + 0.5) * CELL_M
        numbers = numbers_out[k]
        numbers[:] = -1
        count = 0
        for ring in range(max(columns, rows)):
            left, right = max(column - ring, 0), min(column + ring, columns - 1)
            for r in range(max(row - ring, 0), min(row + ring, rows - 1) + 1):
                base = r * columns
                is_end_row = abs(r - row) == ring
                for side in (column - ring, column + ring):
                    first, last = (left, right) if is_end_row else (side, side)
                    if first >= 0 and last < columns:
                        begin, end = starts[base + first], starts[base + last + 1]
                        count = _insert_nearest(begin, end, order, x, y, middle_x, middle_y, distances, numbers, count)
                    if is_end_row:
                        break
            # Everything beyond this ring is at least this far away.
            beyond = (ring + 0.5) * CELL_M - _ROUNDING_M
            if count == len(order) or (count == wanted and distances[wanted - 1] < beyond * beyond):
                break
