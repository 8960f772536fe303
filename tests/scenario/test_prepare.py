"""The tables of a map, compared with plain NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.scenario.grid import (
    CELL_M,
    TOUCH_M,
    cell_along,
    list_segments,
    mark_near,
    nearest_marked,
    nearest_points,
)
from roadworthy.scenario.prepare import LISTED_M, PIECE_M, MapTables, prepare
from roadworthy.scenario.schema import EdgeType, FeatureKind, RoadMap
from tests.scenario.example import Feature, differences, example_map, map_of, pairs, straight

POISON = -77


def wandering_map(seed: int, lanes: int = 12, edges: int = 10, size_m: float = 120.0) -> RoadMap:
    """Return random polylines that turn and cross, some long, some of a single segment."""
    random = np.random.default_rng(seed)
    features: list[Feature] = []
    for kind, count in ((FeatureKind.LANE, lanes), (FeatureKind.ROAD_EDGE, edges)):
        for _ in range(count):
            steps = random.integers(1, 30)
            heading = random.uniform(0, 2 * np.pi) + np.cumsum(random.normal(0, 0.2, steps))
            length = random.choice([0.0, 0.7, 2.5, 4.0, 9.0], steps, p=[0.05, 0.2, 0.5, 0.2, 0.05])
            line = np.cumsum(np.column_stack([np.cos(heading), np.sin(heading)]) * length[:, None], axis=0)
            start = random.uniform(-size_m / 2, size_m / 2, 2)
            features.append((kind, int(random.integers(0, 3)), np.vstack([start, start + line])))
    return map_of(features)


def middles(tables: MapTables) -> NDArray[np.float64]:
    """Return (cells, 2) the center of every cell."""
    row, column = np.divmod(np.arange(tables.cell_count), tables.columns)
    return np.column_stack([tables.x0 + (column + 0.5) * CELL_M, tables.y0 + (row + 0.5) * CELL_M])


def squared_distances(
    places: NDArray[np.float64], x: NDArray[np.float32], y: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(places, points)"""
    dx, dy = x.astype(np.float64) - places[:, :1], y.astype(np.float64) - places[:, 1:]
    return dx * dx + dy * dy


def cells_along(positions: NDArray[np.float32], origin: float, count: int) -> list[int]:
    return [cell_along(np.float32(position), np.float32(origin), count) for position in positions]


@pytest.mark.row("SCEN-6")
@pytest.mark.parametrize("seed", range(6))
def test_nearest_lists_are_those_of_brute_force(seed: int) -> None:
    tables = prepare(wandering_map(seed, lanes=(12, 1)[seed % 2], edges=(10, 0, 40)[seed % 3]))
    centers = middles(tables)
    to_lanes = squared_distances(centers, tables.lane_point_x, tables.lane_point_y)
    to_edges = squared_distances(centers, tables.edge_point_x, tables.edge_point_y)
    nearest = np.concatenate([to_lanes, to_edges], axis=1).min(axis=1)
    listed = np.flatnonzero(nearest <= LISTED_M**2)
    assert len(listed) == len(tables.lane_lists) == len(tables.edge_lists)
    for lists, distances in ((tables.lane_lists, to_lanes), (tables.edge_lists, to_edges)):
        # A stable sort puts the lower number first in case of a tie.
        expected = np.argsort(distances[listed], axis=1, kind="stable")[:, :64]
        found = lists.astype(np.int16)
        np.testing.assert_array_equal(found[:, : expected.shape[1]], expected)
        assert (found[:, expected.shape[1] :] == -1).all()

    away = squared_distances(centers, *(np.float32(centers[listed]).T))
    np.testing.assert_array_equal(tables.cell_lists, away.argmin(axis=1))
    assert list(tables.check()) == []


def test_kernels_write_every_output() -> None:
    road_map = wandering_map(3)
    tables = prepare(road_map)
    x, y, order = tables.lane_point_x, tables.lane_point_y, np.arange(len(tables.lane_point_x), dtype=np.int32)
    # All points are in the only cell of the grid, so the search must sort them all the same.
    cells, starts = np.zeros(1, np.int64), np.array([0, len(x)], np.int32)
    results = []
    for poison in (POISON, 5):
        numbers = np.full((1, len(x) + 3), poison, np.int32)
        nearest_points(cells, order, starts, x, y, 0.0, 0.0, 1, 1, numbers)
        results.append(numbers[0].tolist())
    distances = squared_distances(np.array([[2.5, 2.5]]), x, y)[0]
    assert results[0] == results[1] == [*np.argsort(distances, kind="stable").tolist(), -1, -1, -1]

    marked = np.full((4, 5), -1, np.int32)
    marked[0, 0], marked[3, 1] = 0, 1
    filled = np.full((4, 5), POISON, np.int32)
    nearest_marked(marked, filled)
    assert filled.tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]

    edges = np.full(tables.cell_edge_starts[-1], POISON, np.int32)
    segments = (tables.edge_x0, tables.edge_y0, tables.edge_x1, tables.edge_y1)
    cursors = tables.cell_edge_starts[:-1].copy()
    list_segments(*segments, tables.x0, tables.y0, tables.columns, tables.rows, cursors, edges)
    np.testing.assert_array_equal(edges, tables.cell_edges)
    np.testing.assert_array_equal(cursors, tables.cell_edge_starts[1:])


def test_cells_are_marked_up_to_the_radius_and_no_further() -> None:
    is_near = np.zeros(25, np.bool_)
    mark_near(np.array([12.5], np.float32), np.array([12.5], np.float32), 5.0, 0.0, 0.0, 5, 5, is_near)
    assert np.flatnonzero(is_near).tolist() == [7, 11, 12, 13, 17]


@pytest.mark.parametrize("seed", range(4))
def test_a_cell_lists_every_edge_segment_that_touches_it_and_no_other(seed: int) -> None:
    tables = prepare(wandering_map(seed))
    begin = np.column_stack([tables.edge_x0, tables.edge_y0]).astype(np.float64)
    end = np.column_stack([tables.edge_x1, tables.edge_y1]).astype(np.float64)
    lines = shapely.linestrings(np.stack([begin, end], axis=1))
    centers = middles(tables)
    for cell, (x, y) in enumerate(centers):
        square = shapely.box(x - CELL_M / 2, y - CELL_M / 2, x + CELL_M / 2, y + CELL_M / 2)
        listed = tables.cell_edges[tables.cell_edge_starts[cell] : tables.cell_edge_starts[cell + 1]]
        assert (np.diff(listed) > 0).all()
        distances = shapely.distance(lines, square)
        assert set(np.flatnonzero(distances == 0)) <= set(listed.tolist())
        # Both borders are moved outward by TOUCH_M, so a slanting segment may be listed from slightly farther away.
        assert distances[listed].max(initial=0) <= 4 * TOUCH_M


def test_a_box_of_cells_is_one_range_per_row() -> None:
    tables = prepare(wandering_map(1))
    starts, columns = tables.cell_edge_starts, tables.columns
    for row, first, last in ((3, 2, 7), (0, 0, columns - 1), (tables.rows - 1, 5, 5)):
        one_range = tables.cell_edges[starts[row * columns + first] : starts[row * columns + last + 1]]
        by_cell = [
            tables.cell_edges[starts[cell] : starts[cell + 1]]
            for cell in range(row * columns + first, row * columns + last + 1)
        ]
        np.testing.assert_array_equal(one_range, np.concatenate(by_cell))


def test_the_grid_covers_the_map_with_a_cell_to_spare() -> None:
    road_map = map_of([(FeatureKind.LANE, 0, [[-10.0, 3.0], [-6.0, 3.0], [5.0, 7.0]])])
    tables = prepare(road_map)
    assert (tables.x0, tables.y0, tables.columns, tables.rows) == (-15.0, -5.0, 6, 4)


@settings(deadline=None)
@given(st.floats(width=32), st.integers(-100, 100).map(lambda n: n * 5.0), st.integers(1, 500))
def test_every_position_has_a_valid_cell(position: float, origin: float, count: int) -> None:
    cell = cell_along(np.float32(position), np.float32(origin), count)
    assert 0 <= cell < count
    if origin + 0.01 < position < origin + count * CELL_M - 0.01:
        assert cell == pytest.approx((position - origin) / CELL_M - 0.5, abs=0.51)


def test_positions_outside_get_the_nearest_cell_and_nan_the_first() -> None:
    positions = np.array([-1e30, -np.inf, 9.99, 10.0, 14.99, 15.0, 29.99, 30.0, 31.0, np.inf, np.nan], np.float32)
    assert cells_along(positions, 10.0, 4) == [0, 0, 0, 0, 0, 1, 3, 3, 3, 3, 0]


def test_long_segments_are_cut_and_segments_of_zero_length_dropped() -> None:
    lane = [[0.0, 0.0], [3.0, 0.0], [3.0, 0.0], [3.0, 8.0], [3.0, 17.0]]
    tables = prepare(map_of([(FeatureKind.LANE, 0, lane)]))
    np.testing.assert_allclose(tables.lane_point_x, [1.5, 3, 3, 3, 3, 3])
    np.testing.assert_allclose(tables.lane_point_y, [0, 2, 6, 9.5, 12.5, 15.5])
    np.testing.assert_allclose(tables.lane_point_half_lengths, [1.5, 2, 2, 1.5, 1.5, 1.5])
    np.testing.assert_allclose(tables.lane_point_arcs, [1.5, 5, 9, 12.5, 15.5, 18.5])
    np.testing.assert_allclose(tables.lane_point_cos, [1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(tables.lane_point_sin, [0, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(tables.lane_arcs, [0, 3, 3, 11, 20])
    np.testing.assert_allclose(tables.lane_lengths, [20])


@pytest.mark.parametrize("seed", range(3))
def test_pieces_lie_on_their_lanes_and_add_up_to_them(seed: int) -> None:
    road_map = wandering_map(seed)
    tables = prepare(road_map)
    assert (tables.lane_point_half_lengths <= PIECE_M / 2 + 1e-5).all()
    for lane in range(road_map.lane_count):
        own = slice(*tables.lane_point_starts[lane : lane + 2])
        assert (tables.lane_point_lanes[own] == lane).all()
        line = shapely.LineString(road_map.polyline(lane)[:, :2])
        assert 2 * tables.lane_point_half_lengths[own].sum() == pytest.approx(line.length, abs=1e-3)
        assert tables.lane_lengths[lane] == pytest.approx(line.length, abs=1e-3)
        places = shapely.line_interpolate_point(line, tables.lane_point_arcs[own])
        np.testing.assert_allclose(shapely.get_x(places), tables.lane_point_x[own], atol=1e-3)
        np.testing.assert_allclose(shapely.get_y(places), tables.lane_point_y[own], atol=1e-3)


def test_edges_keep_their_direction_type_and_feature() -> None:
    tables = prepare(example_map())
    feature = tables.edge_features
    assert np.unique(feature).tolist() == [5, 6]
    assert (tables.edge_x1 > tables.edge_x0)[feature == 5].all()
    assert (tables.edge_x1 < tables.edge_x0)[feature == 6].all()
    on_left = tables.edge_point_y > 0
    assert (tables.edge_point_types[on_left] == EdgeType.MEDIAN).all()
    assert (tables.edge_point_types[~on_left] == EdgeType.BOUNDARY).all()
    np.testing.assert_array_equal(tables.edge_point_cos, np.where(on_left, -1, 1))


def test_the_lane_graph_keeps_the_order_of_the_map() -> None:
    lanes: list[Feature] = [(FeatureKind.LANE, 0, straight(0, y, 20, y)) for y in range(5)]
    graph = {"successors": pairs((2, 4), (0, 3), (2, 0), (0, 1)), "left_neighbors": pairs((1, 4), (1, 2), (3, 0))}
    tables = prepare(map_of(lanes, **graph))
    assert tables.successor_starts.tolist() == [0, 2, 2, 4, 4, 4]
    assert tables.successors.tolist() == [3, 1, 4, 0]
    assert tables.predecessor_starts.tolist() == [0, 1, 2, 2, 3, 4]
    assert tables.predecessors.tolist() == [2, 0, 0, 2]
    assert tables.left_neighbor.tolist() == [-1, 4, -1, 0, -1]
    assert tables.right_neighbor.tolist() == [-1] * 5


def test_the_cell_of_every_place_on_a_lane_is_listed() -> None:
    tables = prepare(wandering_map(2))
    centers = middles(tables)
    near = squared_distances(centers, tables.lane_point_x, tables.lane_point_y).min(axis=1) <= LISTED_M**2
    for side in (-1.8, 0.0, 1.8):
        x = tables.lane_point_x - side * tables.lane_point_sin
        y = tables.lane_point_y + side * tables.lane_point_cos
        column, row = cells_along(x, tables.x0, tables.columns), cells_along(y, tables.y0, tables.rows)
        assert near[np.array(row) * tables.columns + np.array(column)].all()


@pytest.mark.parametrize("features", [[], [(FeatureKind.STOP_SIGN, 0, [[3.0, 4.0]])]])
def test_a_map_without_roads_has_one_empty_list(features: list[Feature]) -> None:
    tables = prepare(map_of(features))
    assert tables.lane_lists.shape == tables.edge_lists.shape == (1, 64)
    assert (tables.lane_lists == 65535).all()
    assert (tables.cell_lists == 0).all()
    assert list(tables.check()) == []


def test_numbers_above_sixteen_bits_are_preserved() -> None:
    lanes: list[Feature] = [(FeatureKind.LANE, 0, straight(0, y, 60, y, spacing=0.1)) for y in range(110)]
    tables = prepare(map_of(lanes))
    assert len(tables.lane_point_x) == 66_000
    assert tables.lane_lists.dtype == tables.edge_lists.dtype == np.int32
    assert tables.lane_lists.max() > 65_535
    assert (tables.edge_lists == -1).all()
    assert list(tables.check()) == []


@pytest.mark.row("SCEN-6")
def test_the_same_map_gives_the_same_bytes() -> None:
    assert differences(prepare(wandering_map(5)), prepare(wandering_map(5))) == []


def test_a_map_too_large_for_a_grid_says_how_large_it_is() -> None:
    road_map = map_of([(FeatureKind.LANE, 0, [[0.0, 0.0], [1e6, 1e6]])])
    with pytest.raises(
        ScenarioError, match=r"spans 100001. m by 100001. m; a grid covers at most 100 square kilometers"
    ):
        prepare(road_map)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cell_lists", 10**6, "cell_lists are outside"),
        ("cell_edges", -1, "cell_edges are outside"),
        ("lane_lists", 60_000, "lane_lists name points outside"),
        ("successor_starts", 5, "successor_starts don't divide"),
        ("left_neighbor", -2, "left_neighbor are outside -1..3"),
    ],
)
def test_a_number_that_would_crash_a_kernel_is_found(name: str, value: int, words: str) -> None:
    tables = prepare(example_map())
    wrong = getattr(tables, name).copy()
    wrong.flat[0] = value
    assert any(words in fault for fault in replace(tables, **{name: wrong}).check())
