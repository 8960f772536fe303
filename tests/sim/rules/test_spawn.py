"""Open worlds: places that are free, goals along the way."""

from __future__ import annotations

import numpy as np
import pytest
from shapely import Polygon

from roadworthy.kernels import entry
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import LaneType
from roadworthy.sim import state
from roadworthy.sim.config import Mode, OpenConfig, SimConfig
from roadworthy.sim.maps.scenario_store import ScenarioStore
from roadworthy.sim.rules.idm import braking_range, reaction
from roadworthy.sim.rules.right_of_way import conflict_range, route_box
from roadworthy.sim.rules.route_geometry import FAR, Road
from roadworthy.sim.rules.spawn_in_traffic import list_neighbors
from roadworthy.sim.rules.stop_ahead import stop_ahead
from roadworthy.sim.state import GOALS
from tests.sim.arena import maps_of, scenarios_of
from tests.sim.streets import add_goal, along, drive, open_params, put, route_of, spawn_all, streets, worlds_of

NO_LIGHTS = scenarios_of(np.zeros((5, 0)))
COUNT = 24


@pytest.fixture(scope="module")
def spawned(towns: Pack):
    """Worlds with agents just spawned: store, worlds and the number of each town."""
    config = SimConfig(mode=Mode.OPEN, open=OpenConfig(agents=COUNT))
    worlds_of_towns = []
    for number in range(len(towns)):
        store = ScenarioStore(towns, config, 1)
        worlds = worlds_of(COUNT, seeds=[number + 11])
        worlds.clocks[0, [state.SCENARIO, state.MAP]] = store.load(0, number)
        placed = spawn_all(worlds, store.maps, store.scenarios, open_params(COUNT))
        assert placed == worlds.agent_flags[0, state.IS_PRESENT].sum()
        worlds_of_towns.append((store, worlds, number))
    return worlds_of_towns


def box(worlds, a):
    agents = worlds.agents[0, :, a].astype(np.float64)
    half = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * agents[[state.LENGTH, state.WIDTH]] / 2
    heading = agents[state.HEADING]
    turn = [[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]]
    return Polygon(half @ turn + agents[[state.X, state.Y]])


@pytest.mark.row("SIM-4")
def test_spawned_boxes_keep_the_gap(spawned):
    for _, worlds, _ in spawned:
        present = np.flatnonzero(worlds.agent_flags[0, state.IS_PRESENT])
        assert len(present) >= COUNT - 4
        boxes = [box(worlds, a) for a in present]
        nearest = min(one.distance(other) for k, one in enumerate(boxes) for other in boxes[:k])
        assert nearest >= 6.0


@pytest.mark.row("SIM-4")
def test_spawned_agents_stand_on_lanes_for_cars_with_every_line_set(spawned, towns: Pack):
    lines = [state.X, state.Y, state.HEADING, state.COS, state.SIN, state.SPEED, state.ACCELERATION, state.LATERAL]
    lines += [state.JERK, state.STEERING, state.LENGTH, state.WIDTH, state.RADIUS, state.PREVIOUS_X, state.PREVIOUS_Y]
    lines += [state.ALONG, state.ACROSS, state.LANE_OFFSET, state.LANE_COS, state.LANE_SIN, state.LANE_LIMIT]
    lines += [state.PATH_ARC, state.PATH_OFFSET, state.GOAL_DISTANCE, state.SLOWEST, *range(GOALS, GOALS + 6)]
    for store, worlds, number in spawned:
        present = np.flatnonzero(worlds.agent_flags[0, state.IS_PRESENT])
        agents, flags = worlds.agents[0][:, present], worlds.agent_flags[0][:, present]
        assert np.isfinite(agents[lines]).all()
        assert (flags[state.SPAWNS] == 1).all()
        types = towns[number].map.types
        m = worlds.clocks[0, state.MAP]
        for k, a in enumerate(present):
            route = route_of(worlds, a)
            assert flags[state.LANE, k] == route[0]
            assert types[route[0]] != LaneType.BIKE_LANE
            x, y, heading = along(store.maps, m, route, agents[state.PATH_ARC, k])
            np.testing.assert_allclose(agents[[state.X, state.Y], k], [x, y], atol=2e-3)
            assert np.cos(agents[state.HEADING, k] - heading) > 0.98
        np.testing.assert_allclose(agents[state.COS], np.cos(agents[state.HEADING]), atol=1e-5)
        np.testing.assert_array_equal(agents[[state.PREVIOUS_X, state.PREVIOUS_Y]], agents[[state.X, state.Y]])
        np.testing.assert_allclose(
            agents[state.RADIUS], np.hypot(agents[state.LENGTH], agents[state.WIDTH]) / 2, rtol=1e-5
        )
        assert ((agents[state.LENGTH] >= 4.2) & (agents[state.LENGTH] <= 5.2)).all()
        assert ((agents[state.WIDTH] >= 1.8) & (agents[state.WIDTH] <= 2.1)).all()
        assert (agents[state.SPEED] >= 0).all()
        assert agents[state.SPEED].max() > 5.0


@pytest.mark.row("SIM-4")
def test_goals_lie_along_the_route_at_the_spacing(spawned):
    full = 0
    for store, worlds, _ in spawned:
        m = worlds.clocks[0, state.MAP]
        for a in np.flatnonzero(worlds.agent_flags[0, state.IS_PRESENT]):
            route, arc = route_of(worlds, a), float(worlds.agents[0, state.PATH_ARC, a])
            room = sum(float(store.maps.lane_lengths[m, lane]) for lane in route) - arc
            room -= worlds.agents[0, state.LENGTH, a] / 2 + 1.0  # all of the car is to be before the road's end
            count = worlds.agent_flags[0, state.GOAL_COUNT, a]
            assert worlds.agent_flags[0, state.GOAL, a] == 0
            assert count == max(min(int(room / 40.0), 3), 1) or abs(room % 40.0) < 1e-2
            full += count == 3
            for g in range(count):
                x, y, _ = along(store.maps, m, route, arc + min(40.0 * (g + 1), room))
                np.testing.assert_allclose(worlds.agents[0, GOALS + 2 * g : GOALS + 2 * g + 2, a], [x, y], atol=5e-3)
            to_goal = np.hypot(*(worlds.agents[0, GOALS : GOALS + 2, a] - worlds.agents[0, [state.X, state.Y], a]))
            assert worlds.agents[0, state.GOAL_DISTANCE, a] == pytest.approx(to_goal, abs=1e-3)
    assert full > 0.7 * len(spawned) * COUNT


@pytest.mark.row("SIM-11")
def test_the_same_seed_gives_the_same_bytes_in_any_slot_and_another_seed_others(spawned):
    store, _, _ = spawned[0]
    worlds = worlds_of(COUNT, seeds=[4, 9, 4])
    scenarios = store.scenarios
    spawn_all(worlds, store.maps, scenarios, open_params(COUNT))
    assert worlds.agents[0].tobytes() == worlds.agents[2].tobytes()
    assert worlds.agent_flags[0].tobytes() == worlds.agent_flags[2].tobytes()
    assert worlds.agents[0].tobytes() != worlds.agents[1].tobytes()


@pytest.mark.row("SIM-4")
def test_spawned_again_an_agent_gets_another_place(spawned):
    store, first, _ = spawned[0]
    worlds = worlds_of(COUNT, seeds=[11])
    p = open_params(COUNT)
    spawn_all(worlds, store.maps, store.scenarios, p)
    before = worlds.agents[0, : state.Y + 1].copy()
    np.testing.assert_array_equal(before, first.agents[0, : state.Y + 1])
    worlds.agent_flags[0, state.IS_PRESENT] = 0
    spawn_all(worlds, store.maps, store.scenarios, p)
    assert (worlds.agent_flags[0, state.SPAWNS] == 2).all()
    assert (np.hypot(*(worlds.agents[0, : state.Y + 1] - before)) > 1.0).mean() > 0.9


@pytest.mark.row("SIM-4")
def test_where_the_road_is_full_an_agent_stays_away():
    maps, worlds = maps_of(streets([[0, 0], [60, 0]])), worlds_of(12)
    placed = spawn_all(worlds, maps, NO_LIGHTS, open_params(12))
    present = worlds.agent_flags[0, state.IS_PRESENT]
    assert 0 < placed < 12
    assert placed == present.sum()
    assert (worlds.agent_flags[0, state.ROUTE_LENGTH][present == 0] == 0).all()


@pytest.mark.row("SIM-4")
def test_nobody_has_to_brake_hard_for_who_was_spawned(spawned):
    for store, worlds, _ in spawned:
        copy = worlds._replace(
            agents=worlds.agents.copy(), agent_flags=worlds.agent_flags.copy(), clocks=worlds.clocks.copy()
        )
        track, present, collided = drive(copy, store.maps, store.scenarios, open_params(COUNT), 5)
        assert track[:, 4][present].min() > -4.5
        assert not collided.any()


@entry
def judge_pairs(worlds, maps, scenarios, p, settled, is_listed_out, reactions_out):
    """For each of the first `settled` agents, which stand on their routes: who is listed, and all reactions."""
    count, m = worlds.clocks[0, state.AGENT_COUNT], worlds.clocks[0, state.MAP]
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    agents, flags, haste = worlds.agents[0], worlds.agent_flags[0], worlds.hidden[0, state.HASTE]
    for a in range(settled):
        for k in range(list_neighbors(road, agents, flags, a, count, haste, worlds.order[0])):
            is_listed_out[a, worlds.order[0, k]] = True
        for b in range(count):
            if b != a and flags[state.IS_PRESENT, a] != 0 and flags[state.IS_PRESENT, b] != 0:
                reach = braking_range(agents, a, haste)
                stop = stop_ahead(worlds, maps, scenarios, 0, a, reach, p)
                way = route_box(road, agents, flags, a, max(reach, conflict_range(agents, a)))
                reactions_out[a, b] = reaction(worlds, maps, scenarios, 0, a, b, reach, stop, way, p)


@pytest.mark.row("SIM-4")
def test_nobody_who_matters_to_somebody_spawned_is_left_out_of_its_neighbours(spawned):
    rng, settled = np.random.default_rng(3), 2 * COUNT // 3
    matter = spared = 0
    for store, spawned_worlds, _ in spawned:
        for _ in range(4):
            worlds = spawned_worlds._replace(
                agents=spawned_worlds.agents.copy(), agent_flags=spawned_worlds.agent_flags.copy()
            )
            agents = worlds.agents[0]
            worlds.agent_flags[0, state.ROLE, settled:] = state.EGO
            agents[state.SPEED] = rng.uniform(0, 20, COUNT)
            # The others have left their routes, and head anywhere.
            heading = rng.uniform(-np.pi, np.pi, COUNT - settled)
            near = rng.integers(0, settled, COUNT - settled)
            agents[: state.Y + 1, settled:] = agents[: state.Y + 1, near] + rng.normal(0, 15, (2, COUNT - settled))
            agents[[state.COS, state.SIN], settled:] = np.cos(heading), np.sin(heading)
            is_listed, reactions = np.zeros((COUNT, COUNT), np.bool_), np.full((COUNT, COUNT), FAR, np.float32)
            judge_pairs(worlds, store.maps, store.scenarios, open_params(COUNT), settled, is_listed, reactions)
            one_way = reactions < FAR
            both_ways = one_way[:settled, :settled] | one_way[:settled, :settled].T
            assert not (one_way[:settled] & ~is_listed[:settled]).any()
            assert not (both_ways & ~is_listed[:settled, :settled]).any()
            matter, spared = matter + one_way.sum(), spared + (~is_listed[:settled]).sum()
    assert matter > 100
    assert spared > 1000


@pytest.mark.row("SIM-5")
def test_a_new_goal_lies_one_spacing_further_along_the_route(spawned):
    store, worlds, _ = spawned[0]
    m, p = worlds.clocks[0, state.MAP], open_params(COUNT)
    copy = worlds._replace(agents=worlds.agents.copy(), agent_flags=worlds.agent_flags.copy())
    judged = 0
    for a in np.flatnonzero(copy.agent_flags[0, state.GOAL_COUNT] == 3):
        route, arc = route_of(copy, a), float(copy.agents[0, state.PATH_ARC, a])
        room = sum(float(store.maps.lane_lengths[m, lane]) for lane in route) - arc
        if room < 165.0:  # the car's front is to be before the end, too
            continue
        judged += 1
        copy.agents[0, [state.X, state.Y], a] = copy.agents[0, GOALS + 4 : GOALS + 6, a]
        copy.agent_flags[0, state.GOAL, a] = 3
        add_goal(copy, store.maps, a, p)
        assert copy.agent_flags[0, state.GOAL_COUNT, a] == 4
        x, y, _ = along(store.maps, m, route, arc + 160.0)
        np.testing.assert_allclose(copy.agents[0, GOALS : GOALS + 2, a], [x, y], atol=0.05)  # goal 3 is in line 3 % 3
    assert judged > 5


@pytest.mark.row("SIM-5")
def test_without_a_route_a_new_goal_lies_along_a_lane_that_goes_the_same_way():
    maps, p = maps_of(streets([[0, 0], [100, 0]], [[100, 3.5], [0, 3.5]])), open_params(1, goals=1)
    worlds = worlds_of(1, goals=1)
    put(worlds, maps, 0, [0], 20.0, offset=2.5)
    worlds.agent_flags[0, [state.GOAL, state.GOAL_COUNT], 0] = 1
    worlds.agents[0, GOALS : GOALS + 2, 0] = [20.0, 2.5]
    worlds.agent_flags[0, [state.ROUTE_LENGTH, state.ROUTE_PLACE], 0] = 0
    assert add_goal(worlds, maps, 0, p)
    np.testing.assert_allclose(worlds.agents[0, GOALS : GOALS + 2, 0], [60.0, 0.0], atol=0.01)
    assert worlds.agent_flags[0, state.GOAL_COUNT, 0] == 2
    assert route_of(worlds, 0) == [0]


@pytest.mark.row("SIM-5")
@pytest.mark.parametrize("has_route", [True, False])
def test_where_the_road_ends_there_is_no_new_goal(has_route):
    maps, p = maps_of(streets([[0, 0], [100, 0]], [[100, 3.5], [0, 3.5]])), open_params(1, goals=1)
    for at, is_given in ((50.0, True), (60.0, False), (95.0, False)):  # the car ends 2.25 m ahead of its middle
        worlds = worlds_of(1, goals=1)
        put(worlds, maps, 0, [0], at)
        worlds.agent_flags[0, [state.GOAL, state.GOAL_COUNT], 0] = 1
        worlds.agents[0, GOALS : GOALS + 2, 0] = [at, 0.0]
        if not has_route:
            worlds.agent_flags[0, [state.ROUTE_LENGTH, state.ROUTE_PLACE], 0] = 0
        assert add_goal(worlds, maps, 0, p) == is_given
        assert worlds.agent_flags[0, state.GOAL_COUNT, 0] == 1 + is_given
