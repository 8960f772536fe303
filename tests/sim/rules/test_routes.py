"""Routes: connected lanes, drawn at forks or traced along recordings, and the geometry along them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from shapely import LineString, Point, Polygon

from roadworthy.kernels import entry
from roadworthy.scenario.lanes.network import LaneNetwork
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, LaneType
from roadworthy.sim import state
from roadworthy.sim.config import ControlConfig, Others, SimConfig
from roadworthy.sim.maps.scenario_store import ScenarioStore
from roadworthy.sim.rules.replay import replay
from roadworthy.sim.rules.route_geometry import FAR, Road, first_contact, nearest_place, route_pose
from roadworthy.sim.rules.routes import advance_place, draw_route, extend_route, place_on_route, route_key
from roadworthy.sim.state import ROUTE_LANES
from tests.sim.arena import maps_of
from tests.sim.streets import along, put, route_of, streets, trace_all, worlds_of


@pytest.fixture(scope="module")
def town(towns: Pack):
    """A map with junctions, and its arrays."""
    number = next(n for n in range(len(towns)) if len(towns[n].map.stop_lines))
    return towns[number].map, maps_of(towns[number].map)


@entry
def draw_many(worlds, maps, lanes, at_first):
    for a in range(len(lanes)):
        key = route_key(worlds.seeds[0], worlds.agent_flags[0, state.SPAWNS, a])
        draw_route(maps, 0, worlds.agent_flags[0], a, lanes[a], key, 0, at_first)
        extend_route(maps, 0, worlds.agent_flags[0], a, key, 0, ROUTE_LANES)


def drawn_routes(maps, lanes, seed=5, kind=AgentType.VEHICLE, spawns=0, at_first=ROUTE_LANES):
    worlds = worlds_of(len(lanes), seeds=[seed])
    worlds.agent_flags[0, state.TYPE], worlds.agent_flags[0, state.SPAWNS] = kind, spawns
    draw_many(worlds, maps, np.asarray(lanes), at_first)
    return [route_of(worlds, a) for a in range(len(lanes))]


@pytest.mark.row("SIM-4")
def test_drawn_routes_are_connected_lanes_for_vehicles_that_lead_on_where_they_can(town):
    road_map, maps = town
    is_bike = road_map.types[: road_map.lane_count] == LaneType.BIKE_LANE
    follow = {lane: [] for lane in range(road_map.lane_count)}
    for lane, after in road_map.successors.tolist():
        if not is_bike[after]:
            follow[lane].append(after)
    onward = {lane: 2 if any(follow[k] for k in after) else bool(after) for lane, after in follow.items()}
    starts = np.flatnonzero(~is_bike)
    forks = 0
    for start, route in zip(starts, drawn_routes(maps, starts), strict=True):
        assert route[0] == start
        assert len(route) == ROUTE_LANES or not follow[route[-1]]
        for lane, after in itertools.pairwise(route):
            assert after in follow[lane]
            assert onward[after] == max(onward[k] for k in follow[lane])
            forks += len(follow[lane]) > 1
    assert forks > 100


@pytest.mark.row("SIM-4")
def test_few_routes_leave_the_map_where_another_way_continues():
    """A ring of four lanes. After the last one an exit begins, which ends only after three lanes."""
    ring = [[[0, 0], [50, 0]], [[50, 0], [50, 50]], [[50, 50], [0, 50]], [[0, 50], [0, 0]]]
    out = [[[0, -30 * k], [0, -30 * (k + 1)]] for k in range(3)]
    successors = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6)]
    maps = maps_of(streets(*ring, *out, successors=successors))
    routes = drawn_routes(maps, np.zeros(200, np.int64))
    # At each of five forks every second draw leads out: without further tries one route of 32 would stay inside.
    assert np.mean([len(route) == ROUTE_LANES for route in routes]) > 0.5
    assert {route[-1] for route in routes if len(route) < ROUTE_LANES} <= {6}
    dead_end = drawn_routes(maps, [4])
    assert dead_end == [[4, 5, 6]]


@pytest.mark.row("SIM-4")
def test_routes_depend_on_the_seed_the_agent_and_how_often_it_was_spawned(town):
    road_map, maps = town
    starts = np.full(20, road_map.successors[0, 0])
    first = drawn_routes(maps, starts)
    assert drawn_routes(maps, starts) == first
    assert len({tuple(route) for route in first}) > 1
    assert drawn_routes(maps, starts, seed=6) != first
    assert drawn_routes(maps, starts, spawns=1) != first
    assert drawn_routes(maps, starts, at_first=2) == first


@entry
def ask(worlds, maps, ahead, boxes, points, poses_out, contacts_out, places_out):
    """For agent a: poses at distances ahead, first contacts with boxes, places of points."""
    flags, agents = worlds.agent_flags[0], worlds.agents[0]
    road = Road(maps.lanes[0], maps.lane_points[0], maps.lane_lengths[0])
    zero, far = np.float32(0), np.float32(60)
    for a in range(len(ahead)):
        place, arc = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a]
        for k in range(ahead.shape[1]):
            pose = route_pose(road, flags, a, place, arc, ahead[a, k])
            poses_out[a, k, 0], poses_out[a, k, 1], poses_out[a, k, 2], poses_out[a, k, 3] = pose
        for k in range(boxes.shape[1]):
            x, y, cos, sin, half_length, half_width = boxes[a, k]
            box, side = (x, y, cos, sin, half_length, half_width), np.float32(1.2)
            contacts_out[a, k] = first_contact(road, flags, a, place, arc, zero, far, side, box)
        for k in range(points.shape[1]):
            found = nearest_place(road, flags, a, place, arc, zero, far, points[a, k, 0], points[a, k, 1])
            places_out[a, k, 0], places_out[a, k, 1], places_out[a, k, 2], places_out[a, k, 3] = found


@pytest.fixture(scope="module")
def questions(town):
    """Routes through a town, with the rules' results, written to poisoned outputs."""
    road_map, maps = town
    rng = np.random.default_rng(3)
    starts = np.flatnonzero(road_map.types[: road_map.lane_count] != LaneType.BIKE_LANE)[:40]
    worlds = worlds_of(len(starts))
    for a, route in enumerate(drawn_routes(maps, starts)):
        put(worlds, maps, a, route, float(rng.uniform(0, maps.lane_lengths[0, route[0]])))
    ahead = np.sort(rng.uniform(0, 60, (len(starts), 30)).astype(np.float32), axis=1)
    boxes = np.zeros((len(starts), 30, 6), np.float32)
    for a in range(len(starts)):
        for k in range(30):
            x, y, _ = along(maps, 0, route_of(worlds, a), worlds.agents[0, state.PATH_ARC, a] + rng.uniform(0, 60))
            angle = rng.uniform(-np.pi, np.pi)
            x, y = np.array([x, y]) + rng.normal(0, 3.5, 2)
            boxes[a, k] = [x, y, np.cos(angle), np.sin(angle), rng.uniform(0.3, 3), rng.uniform(0.3, 1.2)]
    poses = np.full((*ahead.shape, 4), np.nan, np.float32)
    contacts, places = np.full(boxes.shape[:2], np.nan, np.float32), np.full((*boxes.shape[:2], 4), np.nan, np.float32)
    ask(worlds, maps, ahead, boxes, boxes[:, :, :2].copy(), poses, contacts, places)
    return maps, worlds, ahead, boxes, poses, contacts, places


@pytest.mark.row("SIM-3")
def test_a_pose_on_the_route_lies_on_its_points_and_turns_evenly(questions):
    maps, worlds, ahead, _, poses, _, _ = questions
    np.testing.assert_allclose(np.hypot(poses[:, :, 2], poses[:, :, 3]), 1.0, atol=1e-5)
    off_by = []
    for a in range(len(ahead)):
        route, arc = route_of(worlds, a), float(worlds.agents[0, state.PATH_ARC, a])
        total = sum(float(maps.lane_lengths[0, lane]) for lane in route)
        for k, distance in enumerate(ahead[a].tolist()):
            if arc + distance > total:
                continue
            x, y, heading = along(maps, 0, route, arc + distance)
            np.testing.assert_allclose(poses[a, k, :2], [x, y], atol=2e-3)
            off_by.append(abs(np.angle(np.exp(1j * (np.arctan2(poses[a, k, 3], poses[a, k, 2]) - heading)))))
    # At most halfway to the direction of the next point.
    assert len(off_by) > 500
    assert max(off_by) < 0.15
    assert max(off_by) > 1e-4


@pytest.mark.row("SIM-3")
def test_the_first_contact_with_a_box_is_where_shapely_finds_it(questions):
    maps, worlds, _, boxes, _, contacts, _ = questions
    points = maps.lane_points[0].astype(np.float64)
    hits, misses = 0, 0
    for a in range(len(boxes)):
        begin = worlds.agents[0, state.PATH_ARC, a]
        pieces, start = [], -float(begin)
        for lane in route_of(worlds, a):
            for i in range(*maps.lanes[0, state.LANE_POINT_START, lane : lane + 2]):
                x, y, cos, sin, half, arc = points[[0, 1, 2, 3, 4, state.POINT_ARC], i]
                low, high = max(start + arc - half, 0.0), min(start + arc + half, 60.0)
                if low < high:
                    pieces.append((low, high, x - (start + arc) * cos, y - (start + arc) * sin, cos, sin))
            start += float(maps.lane_lengths[0, lane])
        for k in range(boxes.shape[1]):
            x, y, cos, sin, half_length, half_width = boxes[a, k].astype(np.float64)
            corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * [half_length, half_width]
            box = Polygon(corners @ [[cos, sin], [-sin, cos]] + [x, y])
            expected = None
            for low, high, x0, y0, c, s in pieces:
                ends = np.array([[low, 1.2], [high, 1.2], [high, -1.2], [low, -1.2]])
                rectangle = Polygon(ends @ [[c, s], [-s, c]] + [x0, y0])
                if rectangle.intersects(box):
                    shadow = (np.asarray(box.exterior.coords) - [x0, y0]) @ [c, s]
                    expected = max(low, shadow.min())
                    depth = rectangle.intersection(box).area
                    break
            if expected is None:
                misses += 1
                assert contacts[a, k] == FAR
            elif depth > 1e-3:
                hits += 1
                assert contacts[a, k] == pytest.approx(expected, abs=5e-3)
    assert hits > 200
    assert misses > 50


@pytest.mark.row("SIM-3")
def test_the_nearest_place_on_the_route_is_nearest_by_brute_force(questions):
    maps, worlds, _, boxes, _, _, places = questions
    for a in range(len(boxes)):
        route, begin = route_of(worlds, a), float(worlds.agents[0, state.PATH_ARC, a])
        lengths = np.array([maps.lane_lengths[0, lane] for lane in route], np.float64)
        room = min(60.0, lengths.sum() - begin)
        line = np.array([along(maps, 0, route, begin + d)[:2] for d in np.arange(0, room, 0.05)])
        for k in range(boxes.shape[1]):
            place, arc, offset, distance = places[a, k].astype(np.float64)
            nearest = np.hypot(*(line - boxes[a, k, :2]).T).min()
            assert distance <= nearest + 1e-3
            x, y, _ = along(maps, 0, route, lengths[: int(place)].sum() + arc)
            assert np.hypot(x - boxes[a, k, 0], y - boxes[a, k, 1]) == pytest.approx(distance, abs=5e-3)
            assert abs(offset) <= distance + 1e-3


@entry
def go(worlds, maps, steps, distance, on_it_out, poses_out):
    """Advance agent 0 on rails, and find agent 1 beside the same place."""
    agents, flags = worlds.agents[0], worlds.agent_flags[0]
    road = Road(maps.lanes[0], maps.lane_points[0], maps.lane_lengths[0])
    for k in range(steps):
        on_it_out[k] = advance_place(worlds, maps, 0, 0, distance)
        x, y, cos, sin = route_pose(
            road, flags, 0, flags[state.ROUTE_PLACE, 0], agents[state.PATH_ARC, 0], np.float32(0)
        )
        agents[state.X, 1], agents[state.Y, 1] = x - np.float32(0.7) * sin, y + np.float32(0.7) * cos
        poses_out[k, 2] = place_on_route(worlds, maps, 0, 1)
        poses_out[k, 0], poses_out[k, 1], poses_out[k, 3] = x, y, agents[state.PATH_OFFSET, 1]


@pytest.mark.row("SIM-4")
def test_a_route_continues_as_long_as_the_road():
    angles = np.linspace(0, 2 * np.pi, 65)
    ring = np.stack([50 * np.cos(angles), 50 * np.sin(angles)], axis=-1)
    quarters = [ring[16 * k : 16 * k + 17] for k in range(4)]
    maps = maps_of(streets(*quarters, successors=[(0, 1), (1, 2), (2, 3), (3, 0)]))
    worlds = worlds_of(2)
    for a in range(2):
        put(worlds, maps, a, [0, 1, 2, 3] * (ROUTE_LANES // 4), 1.0)
    is_on_it, poses = np.zeros(3000, np.bool_), np.full((3000, 4), np.nan, np.float32)
    go(worlds, maps, 3000, np.float32(1.3), is_on_it, poses)
    assert is_on_it.all()  # 3.9 km, more than the 24 lanes with which it began
    np.testing.assert_allclose(np.hypot(poses[:, 0], poses[:, 1]), 50.0, atol=0.1)
    length = 4 * float(maps.lane_lengths[0, 0])
    x, y, _ = along(maps, 0, [0, 1, 2, 3], (1.0 + 1.3 * 3000) % length)
    np.testing.assert_allclose(poses[-1, :2], [x, y], atol=0.2)
    for a in range(2):
        route = route_of(worlds, a)
        assert all((after - lane) % 4 == 1 for lane, after in itertools.pairwise(route))
        assert len(route) - worlds.agent_flags[0, state.ROUTE_PLACE, a] > 8
    np.testing.assert_allclose(poses[:, 2], 0.7, atol=0.05)
    np.testing.assert_allclose(poses[:, 3], 0.7, atol=0.05)


@pytest.mark.row("SIM-4")
def test_a_route_ends_at_a_dead_end():
    maps, worlds = maps_of(streets([[0, 0], [30, 0]], [[30, 0], [50, 0]], successors=[(0, 1)])), worlds_of(2)
    for a in range(2):
        put(worlds, maps, a, [0, 1], 1.0)
    is_on_it, poses = np.zeros(60, np.bool_), np.full((60, 4), np.nan, np.float32)
    go(worlds, maps, 60, np.float32(1.0), is_on_it, poses)
    assert is_on_it[:49].all()
    assert not is_on_it[49:].any()


@entry
def begin_recordings(worlds, scenarios):
    for a in range(worlds.clocks[0, state.AGENT_COUNT]):
        replay(worlds.agents[0], worlds.agent_flags[0], a, scenarios, worlds.clocks[0, state.SCENARIO], 0)


@pytest.mark.row("SIM-3")
def test_traced_routes_go_where_the_recordings_went(towns: Pack):
    store = ScenarioStore(towns, SimConfig(control=ControlConfig(others=Others.IDM, rows=1)), 1)
    judged = near = walkers = 0
    for number in range(len(towns)):
        slot, m = store.load(0, number)
        scenarios, maps = store.scenarios, store.maps
        count = int(scenarios.counts[slot, state.SELECTED_COUNT])
        worlds = worlds_of(count)
        worlds.clocks[0, [state.SCENARIO, state.MAP]] = slot, m
        worlds.agent_flags[0, state.TYPE] = scenarios.agent_types[slot, :count]
        begin_recordings(worlds, scenarios)
        trace_all(worlds, maps, scenarios)
        frames = int(scenarios.counts[slot, state.FRAME_COUNT])
        is_ending = LaneNetwork.of(towns.map_of(number)).is_ending
        for a in range(count):
            route = route_of(worlds, a)
            if worlds.agent_flags[0, state.TYPE, a] == AgentType.PEDESTRIAN:
                walkers += 1
                assert not route
                continue
            valid = scenarios.valid[slot, :frames, a] != 0
            recorded = scenarios.motion[slot, :2, :frames, a].T[valid]
            if not valid[0] or np.hypot(*(recorded[-1] - recorded[0])) < 20.0:
                continue
            assert route
            if is_ending[route].any():
                continue  # its lane ends before the road does: the recording changes lanes, which no route does
            judged += 1
            total = sum(float(maps.lane_lengths[m, lane]) for lane in route)
            line = LineString([along(maps, m, route, d)[:2] for d in np.arange(0, min(total, 1500), 1.0)])
            furthest = max(line.distance(Point(place)) for place in recorded)
            near += furthest < 2.0
            assert furthest < 4.5
    assert walkers > 0
    assert judged > 80
    assert near / judged > 0.85  # the others change to the lane beside theirs
