"""Prefetching of map data, so that the rules that follow do not wait for memory."""

from __future__ import annotations

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, prefetch_eight, prefetch_entry
from roadworthy.scenario.grid import cell_along
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import COLUMNS, RADIUS, ROWS, Maps, X, Y


@rule(inline=True)
def prefetch_map(maps: Maps, m: int, agents: Floats, count: int, lists: Ints) -> None:
    """Prefetch the map around the first `count` agents for the judge stage.

    Each pass reads, for all agents, what the pass before has prefetched.

    lists: scratch space for `count` numbers.
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
    """Prefetch the lists of road points around the first `count` agents."""
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
    """Return the south-west cell of agent a's box, at most in the second-to-last row."""
    x, y, radius = agents[X, a], agents[Y, a], agents[RADIUS, a]
    row = min(cell_along(y - radius, south, rows), max(rows - 2, 0))
    return row * columns + cell_along(x - radius, west, columns)
