"""Contact with road edges, moves across them and lanes, against shapely and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from roadworthy.kernels import entry
from roadworthy.scenario.generate.scenarios import build_place
from roadworthy.scenario.grid import CELL_M
from roadworthy.scenario.prepare import LISTED_M, MapTables, prepare
from roadworthy.scenario.schema import EdgeType, FeatureKind, Floats, Ints, LaneType, RoadMap
from roadworthy.sim.maps.road_points import entry_major
from roadworthy.sim.rules.roads import edge_contact, locate_on_lane
from roadworthy.sim.state import (
    COS,
    HEADING,
    LANE,
    LANE_COS,
    LANE_LIMIT,
    LANE_OFFSET,
    LANE_SIN,
    LENGTH,
    PREVIOUS_X,
    PREVIOUS_Y,
    SIN,
    WIDTH,
    Maps,
    X,
    Y,
)
from tests.scenario.example import map_of, straight
from tests.sim.arena import agents_at, maps_of, maps_of_tables

Doubles = NDArray[np.float64]
DOUBTFUL_M = 1e-3


@entry
def contacts(maps, m, agents, contacts_out):
    for a in range(agents.shape[1]):
        contacts_out[a, 0], contacts_out[a, 1] = edge_contact(maps, m, agents, a)


@entry
def locate_all(maps, m, agents, flags):
    for a in range(agents.shape[1]):
        locate_on_lane(maps, m, agents, flags, a)


def contact(maps: Maps, m: int, agents: Floats) -> Ints:
    """(agents, 2) touches and crossing; the same whether edges lie line by line or piece by piece in memory."""
    edges = entry_major(maps.edges.shape)
    edges[...] = maps.edges
    found = np.full((2, agents.shape[1], 2), 77, np.int32)
    contacts(maps._replace(edges=np.ascontiguousarray(maps.edges)), m, agents, found[0])
    contacts(maps._replace(edges=edges), m, agents, found[1])
    assert np.array_equal(found[0], found[1])
    return found[0]


def located(maps: Maps, m: int, agents: Floats, flags: Ints) -> None:
    agents[[LANE_OFFSET, LANE_COS, LANE_SIN, LANE_LIMIT]] = np.nan
    locate_all(maps, m, agents, flags)


@pytest.fixture(scope="module", params=["line by line", "piece by piece"])
def towns(request: pytest.FixtureRequest) -> tuple[Maps, list[tuple[RoadMap, MapTables]]]:
    """Road networks with roundabouts, crossings and a highway, their lane pieces in memory in either way."""
    road_maps = [build_place(5, behavior, 0).road_map for behavior in ("roundabout", "unprotected_left", "merge")]
    prepared = [(road_map, prepare(road_map)) for road_map in road_maps]
    maps = maps_of_tables(prepared)
    if request.param == "piece by piece":
        lane_points = entry_major(maps.lane_points.shape)
        lane_points[...] = maps.lane_points
        maps = maps._replace(lane_points=lane_points)
    return maps, prepared


def around(rng: np.random.Generator, x: Floats, y: Floats, count: int, spread_m: float) -> Doubles:
    """(2, count) places near given ones."""
    near = rng.integers(0, len(x), count)
    return np.stack([x[near], y[near]]).astype(np.float64) + rng.normal(0, spread_m, (2, count))


def box(agents: Floats, grow_m: float) -> NDArray[np.object_]:
    x, y, cos, sin, length, width = agents[[X, Y, COS, SIN, LENGTH, WIDTH]].astype(np.float64)
    corners = [
        (x + u * cos - v * sin, y + u * sin + v * cos)
        for u, v in (
            (su * (length / 2 + grow_m), sv * (width / 2 + grow_m)) for su, sv in ((1, 1), (-1, 1), (-1, -1), (1, -1))
        )
    ]
    return shapely.polygons(np.moveaxis(np.array(corners), -1, 0))


def crossings(tables: MapTables, agents: Floats) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Net crossings of each move, from where move and segment meet, and whether none of them is doubtful."""
    px, py, x, y = (agents[line].astype(np.float64)[:, None] for line in (PREVIOUS_X, PREVIOUS_Y, X, Y))
    ax, ay = tables.edge_x0.astype(np.float64), tables.edge_y0.astype(np.float64)
    dx, dy = tables.edge_x1 - ax, tables.edge_y1 - ay
    mx, my = x - px, y - py
    turn = mx * dy - my * dx  # positive: the segment goes to the left of the move, so the move goes to its right
    with np.errstate(divide="ignore", invalid="ignore"):
        along_move = ((ax - px) * dy - (ay - py) * dx) / turn
        along_segment = ((ax - px) * my - (ay - py) * mx) / turn
    inside = (along_move > 0) & (along_move < 1) & (along_segment > 0) & (along_segment < 1)
    margin_move = np.minimum(np.abs(along_move), np.abs(along_move - 1)) * np.hypot(mx, my)
    margin_segment = np.minimum(np.abs(along_segment), np.abs(along_segment - 1)) * np.hypot(dx, dy)
    meets = (along_move > -1e-3) & (along_move < 1.001) & (along_segment > -1e-3) & (along_segment < 1.001)
    doubtful = meets & ((margin_move < 1e-6) | (margin_segment < 1e-6))
    return np.sum(np.sign(turn) * inside, axis=1).astype(np.int64), ~doubtful.any(axis=1)


@pytest.mark.row("SIM-6")
def test_contact_with_road_edges_is_what_shapely_finds(towns):
    maps, prepared = towns
    rng = np.random.default_rng(1)
    for m, (_, tables) in enumerate(prepared):
        x, y = around(rng, tables.edge_x0, tables.edge_y0, 1500, 3.0)
        agents, _ = agents_at(
            x, y, rng.uniform(-np.pi, np.pi, 1500), rng.uniform(0.4, 18, 1500), rng.uniform(0.4, 3, 1500)
        )
        ends = np.stack([tables.edge_x0, tables.edge_y0, tables.edge_x1, tables.edge_y1], axis=1).astype(np.float64)
        tree = shapely.STRtree(shapely.linestrings(ends.reshape(-1, 2, 2)))
        outer, inner = np.zeros(1500, bool), np.zeros(1500, bool)
        outer[tree.query(box(agents, DOUBTFUL_M), predicate="intersects")[0]] = True
        inner[tree.query(box(agents, -DOUBTFUL_M), predicate="intersects")[0]] = True
        is_clear = inner == outer
        found = contact(maps, m, agents)
        np.testing.assert_array_equal(found[is_clear, 0], inner[is_clear])
        assert not found[:, 1].any()  # nobody moved
        assert np.count_nonzero(~is_clear) < 30
        assert 0.2 < inner.mean() < 0.9


@pytest.mark.row("SIM-6")
def test_moves_across_road_edges_are_counted_by_direction(towns):
    maps, prepared = towns
    rng = np.random.default_rng(2)
    for m, (_, tables) in enumerate(prepared):
        x, y = around(rng, tables.edge_x0, tables.edge_y0, 2000, 3.0)
        agents, _ = agents_at(x, y, rng.uniform(-np.pi, np.pi, 2000), move=rng.uniform(-12, 12, 2000))
        # Half of the moves are short and not along the heading.
        agents[PREVIOUS_X, ::2] = agents[X, ::2] + rng.normal(0, 0.5, 1000)
        agents[PREVIOUS_Y, ::2] = agents[Y, ::2] + rng.normal(0, 0.5, 1000)
        expected, is_clear = crossings(tables, agents)
        np.testing.assert_array_equal(contact(maps, m, agents)[is_clear, 1], np.sign(expected)[is_clear])
        assert np.count_nonzero(~is_clear) < 10
        assert min(np.count_nonzero(expected > 0), np.count_nonzero(expected < 0)) > 100


# A road whose edge is one closed line with whole-numbered corners: sharp, blunt, along cell borders and across cells.
RING = [(0, 0), (40, -5), (80, 0), (80, 35), (45, 30), (40, 60), (35, 30), (20, 30), (20, 45), (5, 45), (10, 20)]
ROAD = shapely.Polygon(RING)


def ring_map(corners: ArrayLike = RING) -> RoadMap:
    points = np.asarray(corners, np.float64)
    middle = points.mean(axis=0)
    return map_of(
        [
            (FeatureKind.ROAD_EDGE, EdgeType.BOUNDARY, np.concatenate([points, points[:1]])),
            (FeatureKind.LANE, LaneType.SURFACE_STREET, straight(*(middle - 20), *(middle + 20))),
        ]
    )


RING_MAPS = maps_of(ring_map())
halves = st.tuples(st.integers(-20, 190), st.integers(-30, 140)).map(lambda place: (place[0] / 2, place[1] / 2))
steps = st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(lambda step: (step[0] / 2, step[1] / 2))


def moved(before: tuple[float, float], step: tuple[float, float]) -> Floats:
    agents, _ = agents_at(before[0] + step[0], before[1] + step[1], 0.0)
    agents[PREVIOUS_X], agents[PREVIOUS_Y] = before
    return agents


def is_on_edge(place: tuple[float, float]) -> bool:
    return ROAD.exterior.distance(shapely.Point(place)) < 1e-9


@given(halves, steps)
def test_a_move_leaves_the_road_exactly_if_it_begins_inside_and_ends_outside(before, step):
    after = (before[0] + step[0], before[1] + step[1])
    assume(not is_on_edge(before) and not is_on_edge(after))
    expected = int(ROAD.contains(shapely.Point(before))) - int(ROAD.contains(shapely.Point(after)))
    assert contact(RING_MAPS, 0, moved(before, step))[0, 1] == expected


@pytest.mark.parametrize("corner", RING)
def test_a_move_through_a_corner_counts_once(corner):
    seen = set()
    for step in ((x, y) for x in range(-8, 9) for y in range(-8, 9) if (x, y) != (0, 0)):
        before, after = (corner[0] - step[0], corner[1] - step[1]), (corner[0] + step[0], corner[1] + step[1])
        if is_on_edge(before) or is_on_edge(after):
            continue
        expected = int(ROAD.contains(shapely.Point(before))) - int(ROAD.contains(shapely.Point(after)))
        assert contact(RING_MAPS, 0, moved(before, (2 * step[0], 2 * step[1])))[0, 1] == expected, (corner, step)
        seen.add(expected)
    assert {1, -1} <= seen


def test_who_stops_on_an_edge_has_not_left_until_it_goes_on():
    assert contact(RING_MAPS, 0, moved((75.0, 20.0), (5.0, 0.0))).tolist() == [[1, 0]]
    assert contact(RING_MAPS, 0, moved((80.0, 20.0), (1.0, 0.0))).tolist() == [[1, 1]]
    assert contact(RING_MAPS, 0, moved((81.0, 20.0), (-1.0, 0.0))).tolist() == [[1, -1]]
    assert contact(RING_MAPS, 0, moved((80.0, 20.0), (-5.0, 0.0))).tolist() == [[0, 0]]


def test_a_segment_listed_in_several_cells_counts_once():
    # Two roads with a gap of half a metre between them; the first one's edge runs along a border of cells.
    road_map = map_of(
        [
            (FeatureKind.ROAD_EDGE, EdgeType.MEDIAN, [[100, 10], [0, 10]]),
            (FeatureKind.ROAD_EDGE, EdgeType.MEDIAN, [[0, 10.5], [100, 10.5]]),
        ]
    )
    agents = np.concatenate([moved((50.0, y), step) for y, step in ((8, (3, 4)), (8, (0, 2.25)), (10.25, (0, -1)))], 1)
    agents[LENGTH] = 30.0
    assert contact(maps_of(road_map), 0, agents)[:, 1].tolist() == [0, 1, -1]


@pytest.mark.row("SIM-12")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e6])
def test_agents_at_no_place_or_far_outside_touch_nothing_and_are_on_no_lane(bad):
    for lines in ([X], [Y], [X, Y], [X, Y, PREVIOUS_X, PREVIOUS_Y]):
        agents, flags = agents_at(40.0, 15.0)
        agents[lines] = bad
        assert contact(RING_MAPS, 0, agents).tolist() == [[0, 0]]
        located(RING_MAPS, 0, agents, flags)
        assert flags[LANE, 0] == -1
        assert agents[[LANE_OFFSET, LANE_COS, LANE_SIN, LANE_LIMIT], 0].tolist() == [0, 1, 0, 0]


@pytest.mark.row("SIM-12")
def test_a_jump_crosses_nothing():
    for before in ((-60.0, 15.0), (np.nan, 15.0), (40.0, np.inf), (40.0, -1e30)):
        agents, _ = agents_at(40.0, 15.0)
        agents[PREVIOUS_X], agents[PREVIOUS_Y] = before
        assert contact(RING_MAPS, 0, agents).tolist() == [[0, 0]]


@pytest.mark.row("SIM-12")
def test_agents_on_the_border_of_the_grid_are_judged_like_others():
    tables = prepare(ring_map())
    east, north = tables.x0 + 5 * tables.columns, tables.y0 + 5 * tables.rows
    places = [(x, y) for x in (tables.x0, 80.0, east) for y in (tables.y0, 20.0, north)]
    agents, _ = agents_at(*np.array(places).T)
    touches = [int(box(agents[:, [a]], 0.0)[0].intersects(ROAD.exterior)) for a in range(len(places))]
    assert contact(RING_MAPS, 0, agents)[:, 0].tolist() == touches
    assert sum(touches) == 1


@given(halves, steps, headings := st.floats(-3.1, 3.1), st.integers(-60, 60), st.integers(-60, 60))
def test_a_shift_by_whole_cells_changes_nothing(before, step, heading, columns, rows):
    agents, flags = agents_at(before[0] + step[0], before[1] + step[1], heading)
    agents[PREVIOUS_X], agents[PREVIOUS_Y] = before
    shift = 5.0 * np.array([columns, rows])
    shifted, shifted_flags = agents.copy(), flags.copy()
    shifted[[X, PREVIOUS_X]] += shift[0]
    shifted[[Y, PREVIOUS_Y]] += shift[1]
    other = maps_of(ring_map(np.array(RING) + shift))
    np.testing.assert_array_equal(contact(other, 0, shifted), contact(RING_MAPS, 0, agents))
    located(RING_MAPS, 0, agents, flags)
    located(other, 0, shifted, shifted_flags)
    np.testing.assert_array_equal(shifted_flags, flags)
    np.testing.assert_allclose(shifted[LANE_OFFSET:LANE_LIMIT], agents[LANE_OFFSET:LANE_LIMIT], atol=1e-4)


TURNED = np.stack([-np.array(RING)[:, 1], np.array(RING)[:, 0]], axis=1)
MIRRORED = (np.array(RING) * [1, -1])[::-1]
OTHER_MAPS = {"quarter turn": maps_of(ring_map(TURNED)), "mirror": maps_of(ring_map(MIRRORED))}


@given(halves, steps, headings, st.sampled_from(list(OTHER_MAPS)))
def test_turning_or_mirroring_the_world_changes_nothing(before, step, heading, how):
    agents, _ = agents_at(before[0] + step[0], before[1] + step[1], heading)
    agents[PREVIOUS_X], agents[PREVIOUS_Y] = before
    assume(not is_on_edge(before) and not is_on_edge((agents[X, 0], agents[Y, 0])))
    touching = [box(agents, grow)[0].intersects(ROAD.exterior) for grow in (-DOUBTFUL_M, DOUBTFUL_M)]
    assume(touching[0] == touching[1])
    other = agents.copy()
    if how == "quarter turn":
        for x, y in ((X, Y), (PREVIOUS_X, PREVIOUS_Y), (COS, SIN)):
            other[[x, y]] = np.stack([-agents[y], agents[x]])
    else:
        other[[Y, PREVIOUS_Y, SIN]] *= -1
    np.testing.assert_array_equal(contact(OTHER_MAPS[how], 0, other), contact(RING_MAPS, 0, agents))


def lane_costs(tables: MapTables, agents: Floats, was_on: Ints) -> tuple[Doubles, Doubles]:
    """(agents, pieces) the measure of `locate_on_lane`, and the distances to the pieces."""
    x, y, heading = (agents[line].astype(np.float64)[:, None] for line in (X, Y, HEADING))
    cos, sin = tables.lane_point_cos.astype(np.float64), tables.lane_point_sin.astype(np.float64)
    dx, dy = x - tables.lane_point_x, y - tables.lane_point_y
    half = tables.lane_point_half_lengths.astype(np.float64)
    on_point = np.clip(dx * cos + dy * sin, -half, half)
    distance = np.hypot(dx - on_point * cos, dy - on_point * sin)
    cost = distance**2 + 2 * (1 - np.cos(heading - np.arctan2(sin, cos)))
    return cost - 0.04 * (tables.lane_point_lanes == was_on[:, None]), distance


@pytest.mark.row("SIM-6")
def test_an_agent_is_on_the_lane_that_the_measure_picks_out_of_the_whole_map(towns):
    maps, prepared = towns
    rng = np.random.default_rng(3)
    for m, (road_map, tables) in enumerate(prepared):
        count = 1200
        near = rng.integers(0, len(tables.lane_point_x), count)
        x, y = np.stack([tables.lane_point_x, tables.lane_point_y])[:, near] + rng.normal(0, 1.2, (2, count))
        direction = np.arctan2(tables.lane_point_sin, tables.lane_point_cos)[near]
        heading = direction + np.where(rng.random(count) < 0.7, rng.normal(0, 0.2, count), rng.uniform(-3, 3, count))
        agents, flags = agents_at(x, y, heading)
        flags[LANE] = np.where(rng.random(count) < 0.5, tables.lane_point_lanes[near], -1)
        cost, distance = lane_costs(tables, agents, flags[LANE])
        cost[distance > 8] = np.inf
        located(maps, m, agents, flags)

        least = cost.min(axis=1)
        on_lane = tables.lane_point_lanes == flags[LANE][:, None]
        own = np.where(on_lane, cost, np.inf)
        np.testing.assert_allclose(own.min(axis=1), least, atol=1e-3)
        point = own.argmin(axis=1)
        # Where two pieces of the lane are as good, at their joint, either may have been taken.
        own[np.arange(count), point] = np.inf
        is_clear = own.min(axis=1) > least + 1e-3
        assert is_clear.mean() > 0.6
        cos, sin = tables.lane_point_cos[point].astype(np.float64), tables.lane_point_sin[point].astype(np.float64)
        dx, dy = agents[X] - tables.lane_point_x[point], agents[Y] - tables.lane_point_y[point]
        angle = agents[HEADING] - np.arctan2(sin, cos)
        expected = np.stack([dy * cos - dx * sin, np.cos(angle), np.sin(angle)])
        found = agents[[LANE_OFFSET, LANE_COS, LANE_SIN]]
        np.testing.assert_allclose(found[:, is_clear], expected[:, is_clear], atol=1e-4)
        limits = np.nan_to_num(road_map.speed_limits)[flags[LANE]]
        np.testing.assert_array_equal(agents[LANE_LIMIT], limits)


@pytest.mark.row("SIM-6")
def test_off_the_lanes_the_measure_picks_out_of_the_whole_list_of_a_cell(towns):
    maps, prepared = towns
    rng = np.random.default_rng(4)
    for m, (_, tables) in enumerate(prepared):
        agents, flags = agents_at(
            *around(rng, tables.lane_point_x, tables.lane_point_y, 1500, 5.0), rng.uniform(-np.pi, np.pi, 1500)
        )
        # Cells with a list of their own; others use that of a cell nearby.
        column, row = np.floor((agents[X] - tables.x0) / CELL_M), np.floor((agents[Y] - tables.y0) / CELL_M)
        middle_x, middle_y = tables.x0 + (column + 0.5) * CELL_M, tables.y0 + (row + 0.5) * CELL_M
        is_listed = np.zeros(1500, bool)
        for x, y in ((tables.lane_point_x, tables.lane_point_y), (tables.edge_point_x, tables.edge_point_y)):
            is_listed |= np.hypot(x - middle_x[:, None], y - middle_y[:, None]).min(axis=1) < LISTED_M - 1e-3
        is_listed &= (np.minimum(column, row) >= 0) & (column < tables.columns) & (row < tables.rows)
        agents, flags = np.ascontiguousarray(agents[:, is_listed]), np.ascontiguousarray(flags[:, is_listed])
        cell = (row * tables.columns + column)[is_listed].astype(np.int64)

        cost, distance = lane_costs(tables, agents, flags[LANE])
        listed = np.zeros(cost.shape, bool)
        np.put_along_axis(listed, tables.lane_lists[tables.cell_lists[cell]].astype(np.int64), True, axis=1)
        cost[~listed | (distance > 8)] = np.inf
        least = cost.min(axis=1)
        located(maps, m, agents, flags)
        is_clear = np.abs(np.where(listed, distance, np.inf).min(axis=1) - 8) > DOUBTFUL_M
        np.testing.assert_array_equal((flags[LANE] >= 0)[is_clear], np.isfinite(least)[is_clear])
        found = np.isfinite(least) & (flags[LANE] >= 0)
        own = np.where(tables.lane_point_lanes == flags[LANE][:, None], cost, np.inf).min(axis=1)
        np.testing.assert_allclose(own[found], least[found], atol=1e-3)
        assert np.count_nonzero(least[found] > 9) > 50
        assert len(least) > 1000


def two_way_street() -> RoadMap:
    """Two lanes 3.5 m apart, to the east and to the west, and one that crosses them to the north at x = 50."""
    lane = FeatureKind.LANE
    lines = (straight(0, -1.75, 100, -1.75), straight(100, 1.75, 0, 1.75), straight(50, -50, 50, 50))
    return map_of([(lane, LaneType.SURFACE_STREET, line) for line in lines])


@pytest.mark.parametrize(
    ("x", "y", "heading", "lane"),
    [
        (20, -1.75, 0.0, 0),
        (20, -0.2, 0.1, 0),  # near the middle of the street, on its own side
        (20, 0.4, 0.0, 0),  # a little over the middle: still beside its own lane
        (20, 1.6, 0.0, 1),  # well on the other side: on the wrong lane
        (20, 1.6, np.pi, 1),
        (50, -1.2, 0.1, 0),  # on the crossing the lane that one drives along wins
        (50.6, -1.75, 1.5, 2),
        (20, -9.7, 0.0, 0),
        (20, -9.8, 0.0, -1),  # 8.05 m away
    ],
)
def test_the_lane_one_drives_along_wins_unless_another_is_much_nearer(x, y, heading, lane):
    agents, flags = agents_at(x, y, heading)
    located(maps_of(two_way_street()), 0, agents, flags)
    assert flags[LANE, 0] == lane
    if lane >= 0:
        direction = (0.0, np.pi, np.pi / 2)[lane]
        assert agents[LANE_COS, 0] == pytest.approx(np.cos(heading - direction), abs=1e-5)
        assert agents[LANE_SIN, 0] == pytest.approx(np.sin(heading - direction), abs=1e-5)
        assert agents[LANE_OFFSET, 0] == pytest.approx((y + 1.75, 1.75 - y, 50 - x)[lane], abs=1e-4)


def test_lanes_that_lie_on_each_other_do_not_take_turns():
    lane = FeatureKind.LANE
    twins = [(lane, LaneType.SURFACE_STREET, straight(0, 0, 100, side)) for side in (0.1, -0.1)]
    maps = maps_of(map_of(twins))
    for first in (0, 1):
        x = np.arange(1.0, 60.0, 0.7)
        agents, flags = agents_at(x, 0.1 * np.sin(x))
        for a in range(len(x)):
            flags[LANE, a] = flags[LANE, a - 1] if a else first
            one, one_flags = agents[:, [a]].copy(), flags[:, [a]].copy()
            located(maps, 0, one, one_flags)
            flags[LANE, a] = one_flags[LANE, 0]
        assert set(flags[LANE].tolist()) == {first}


def test_a_map_without_roads_has_neither_lanes_nor_edges():
    maps = maps_of(map_of([(FeatureKind.CROSSWALK, 0, [[0, 0], [5, 0], [5, 5], [0, 5]])]))
    agents, flags = agents_at([2.0, 300.0], 2.0, move=5.0)
    assert contact(maps, 0, agents).tolist() == [[0, 0], [0, 0]]
    located(maps, 0, agents, flags)
    assert flags[LANE].tolist() == [-1, -1]
