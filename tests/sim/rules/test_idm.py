"""Reactive traffic: it keeps its distance, obeys lights and signs, gives way, and keeps to its lanes."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.kernels import entry
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import LightState
from roadworthy.sim import state
from roadworthy.sim.config import Mode, OpenConfig, SimConfig
from roadworthy.sim.maps.scenario_store import ScenarioStore
from roadworthy.sim.params import params
from roadworthy.sim.rules.idm import ACCELERATION_MPS2, BRAKING_MPS2, HARDEST_MPS2, LATERAL_MPS2, idm_acceleration
from tests.sim.arena import maps_of, scenarios_of
from tests.sim.streets import TRACKED, crossing, drive, open_params, put, spawn_all, streets, worlds_of

X, Y, HEADING, SPEED, ALONG, LATERAL, OFFSET = range(len(TRACKED))
DT = 0.1
NO_LIGHTS = scenarios_of(np.zeros((5, 0)))
REPLAY = params(SimConfig())


def long_street(limit: float = 12.0):
    return maps_of(streets([[0, 0], [400, 0]], speed_limits=np.array([limit], np.float32)))


@entry
def follow_all(given, out):
    for k in range(len(given)):
        out[k] = idm_acceleration(given[k, 0], given[k, 1], given[k, 2], given[k, 3], given[k, 4])


@pytest.mark.row("SIM-3")
def test_following_is_the_intelligent_driver_model_where_no_urgency_overrides_it():
    rng = np.random.default_rng(1)
    low, high = [0, 0.05, -3, 0.5, 0.5], [30, 120, 30, 2, 4]
    given = rng.uniform(low, high, (2000, 5)).astype(np.float32)
    out = np.full(len(given), np.nan, np.float32)
    follow_all(given, out)
    speed, gap, theirs, headway, standing = given.astype(np.float64).T
    gap = np.maximum(gap, 0.1)
    acceleration, braking = float(ACCELERATION_MPS2), float(BRAKING_MPS2)
    wanted_gap = standing + np.maximum(
        speed * headway + speed * (speed - theirs) / (2 * np.sqrt(acceleration * braking)), 0
    )
    model = acceleration * (1 - (wanted_gap / gap) ** 2)
    room = np.maximum(gap - standing / 2 + np.maximum(theirs, 0) ** 2 / (2 * float(HARDEST_MPS2)), 0.1)
    needed = speed**2 / (2 * room)
    expected = np.where(needed > 3.0, np.minimum(model, -needed), model)
    is_clear = abs(needed - 3.0) > 1e-3
    assert is_clear.mean() > 0.99
    assert (expected > 0).any()
    assert (expected < -3).any()
    np.testing.assert_allclose(out[is_clear], expected[is_clear], rtol=2e-4, atol=2e-4)


@pytest.mark.row("SIM-3")
@pytest.mark.parametrize("braking", [2.0, 5.0, 8.0])
def test_nobody_rear_ends_a_leader_that_brakes_to_a_stop(braking):
    maps, worlds = long_street(), worlds_of(4)
    speeds = np.concatenate([np.full(60, 12.0), np.maximum(12.0 - braking * DT * np.arange(1, 201), 0.0)])
    x = 100 + np.cumsum(speeds) * DT
    script = np.stack([x, np.zeros_like(x), speeds], axis=-1)[:, None]
    for a, arc in enumerate([100.0, 78.0, 56.0, 34.0]):
        put(worlds, maps, a, [0], arc, speed=12.0)
    track, _, collided = drive(worlds, maps, NO_LIGHTS, REPLAY, 260, script)
    assert not collided.any()
    gaps = track[-1, X, :-1] - track[-1, X, 1:] - 4.5
    assert (track[-1, SPEED] < 0.2).all()
    assert (gaps > 1.0).all()
    assert (gaps < 4.0).all()


@pytest.mark.row("SIM-3")
def test_a_red_light_stops_and_a_green_one_lets_go():
    maps = maps_of(streets([[0, 0], [60, 0]], [[60, 0], [90, 0]], [[90, 0], [300, 0]], successors=[(0, 1), (1, 2)]))
    shown = np.full((300, 1), LightState.STOP)
    shown[150:] = LightState.GO
    lights = scenarios_of([[60.0], [0.0], [1.0], [0.0], [1.8]], shown, lanes=[1])
    worlds = worlds_of(2)
    put(worlds, maps, 0, [0, 1, 2], 25.0, speed=9.0)
    put(worlds, maps, 1, [0, 1, 2], 10.0, speed=9.0)
    track, _, collided = drive(worlds, maps, lights, REPLAY, 300)
    front = track[:, X, 0] + 2.25
    assert front[149] < 60.0
    assert front[149] > 57.5
    assert track[149, SPEED, 0] < 0.1
    assert front[149:].max() > 100.0
    assert track[-1, X, 1] > 60.0
    assert not collided.any()


@pytest.mark.row("SIM-3")
@pytest.mark.parametrize(("start", "stops"), [(5.0, True), (48.0, False)])
def test_amber_stops_only_who_can_stop_in_comfort(start, stops):
    maps = maps_of(streets([[0, 0], [60, 0]], [[60, 0], [300, 0]], successors=[(0, 1)]))
    lights = scenarios_of([[60.0], [0.0], [1.0], [0.0], [1.8]], np.full((200, 1), LightState.CAUTION), lanes=[1])
    worlds = worlds_of(1)
    put(worlds, maps, 0, [0, 1], start, speed=10.0)
    track, _, _ = drive(worlds, maps, lights, REPLAY, 100)
    assert (track[-1, X, 0] + 2.25 < 60.0) == stops


@pytest.mark.row("SIM-3")
def test_at_a_stop_sign_one_stops_and_then_goes():
    road = streets([[0, 0], [60, 0]], [[60, 0], [90, 0]], [[90, 0], [300, 0]], successors=[(0, 1), (1, 2)])
    maps = maps_of(road)
    sizes = maps.sizes.copy()
    sizes[0, state.SIGN_COUNT] = 1
    line = np.array([60, 0, 1, 0, 1.8], np.float32).reshape(1, 5, 1)
    maps = maps._replace(sizes=sizes, signs=line, sign_lanes=np.zeros((1, 1), np.int32))
    worlds = worlds_of(1)
    put(worlds, maps, 0, [0, 1, 2], 20.0, speed=9.0)
    track, _, _ = drive(worlds, maps, NO_LIGHTS, REPLAY, 250)
    before = track[:, X, 0] + 2.25 < 60.0
    assert track[before, SPEED, 0].min() < 0.5
    assert track[-1, X, 0] > 90.0


@pytest.mark.row("SIM-3")
def test_bends_are_taken_slowly_and_on_the_lane():
    angles = np.linspace(0, np.pi / 2, 40)
    bend = np.stack([100 + 10 * np.sin(angles), 10 - 10 * np.cos(angles)], axis=-1)
    road = streets([[0, 0], [100, 0]], bend, [[110, 10], [110, 150]], successors=[(0, 1), (1, 2)])
    maps, worlds = maps_of(road), worlds_of(1)
    put(worlds, maps, 0, [0, 1, 2], 10.0, speed=12.0, offset=0.8)
    track, present, _ = drive(worlds, maps, NO_LIGHTS, REPLAY, 300)
    inside = (track[:, X, 0] > 100.5) & (track[:, Y, 0] < 9.5) & present[:, 0]
    assert inside.sum() > 10
    assert np.abs(track[inside, LATERAL, 0]).max() < 1.2 * float(LATERAL_MPS2)
    assert np.abs(track[:, OFFSET, 0][inside]).max() < 0.05
    radius = np.hypot(track[inside, X, 0] - 100.0, track[inside, Y, 0] - 10.0)
    np.testing.assert_allclose(radius, 10.0, atol=0.05)
    turning = np.unwrap(track[inside, HEADING, 0])
    assert (np.diff(turning) > 0).all()
    assert np.diff(turning).max() < 0.12


@pytest.mark.row("SIM-3")
def test_at_a_dead_end_an_agent_leaves():
    maps, worlds = maps_of(streets([[0, 0], [50, 0]])), worlds_of(1)
    put(worlds, maps, 0, [0], 20.0, speed=10.0)
    track, present, _ = drive(worlds, maps, NO_LIGHTS, REPLAY, 60)
    assert present[0, 0]
    assert not present[-1, 0]
    assert 49.0 < track[present[:, 0], X, 0][-1] <= 50.0


@pytest.mark.row("SIM-3")
def test_an_agent_without_a_route_stands():
    maps, worlds = long_street(), worlds_of(1)
    put(worlds, maps, 0, [0], 20.0, speed=10.0)
    worlds.agent_flags[0, state.ROUTE_LENGTH] = 0
    track, present, _ = drive(worlds, maps, NO_LIGHTS, REPLAY, 10)
    assert present.all()
    assert (track[:, X] == 20.0).all()
    assert (track[:, SPEED] == 0.0).all()


@pytest.mark.row("SIM-3")
def test_a_pedestrian_who_walks_onto_the_road_is_let_pass():
    maps, worlds = long_street(), worlds_of(2)
    y = -8 + 1.4 * DT * np.arange(1, 201)
    script = np.stack([np.full(200, 60.0), y, np.full(200, 1.4)], axis=-1)[:, None]
    put(worlds, maps, 0, [0], 60.0, speed=1.4, size=(0.5, 0.5))
    worlds.agents[0, [state.HEADING, state.COS, state.SIN, state.Y], 0] = [np.pi / 2, 0.0, 1.0, -8.0]
    worlds.agent_flags[0, [state.ROLE, state.ROUTE_LENGTH], 0] = [state.REPLAYED, 0]
    put(worlds, maps, 1, [0], 10.0, speed=10.0)
    track, _, collided = drive(worlds, maps, NO_LIGHTS, REPLAY, 200, script)
    assert not collided.any()
    assert track[-1, X, 1] > 70.0  # and afterwards one drives on


@pytest.mark.row("SIM-3")
@pytest.mark.parametrize("other", [60.0, 70.0, 78.0, 85.0])
def test_two_that_would_meet_at_a_crossing_pass_one_after_the_other(other):
    maps, worlds = maps_of(crossing()), worlds_of(2)
    put(worlds, maps, 0, [0, 1, 2], 78.0, speed=9.0)
    put(worlds, maps, 1, [3, 4, 5], other, speed=9.0)
    track, _, collided = drive(worlds, maps, NO_LIGHTS, REPLAY, 150)
    assert not collided.any()
    assert track[-1, X, 0] > 30.0
    assert track[-1, Y, 1] > 30.0


@pytest.mark.row("SIM-3")
def test_nobody_waits_for_ever_where_four_queues_meet():
    maps, worlds = maps_of(crossing()), worlds_of(8)
    for k in range(4):
        put(worlds, maps, 2 * k, [0, 1, 2], 104.0 - 7 * k)
        put(worlds, maps, 2 * k + 1, [3, 4, 5], 104.0 - 7 * k)
    track, _, collided = drive(worlds, maps, NO_LIGHTS, REPLAY, 600)
    assert not collided.any()
    assert (np.maximum(track[-1, X], track[-1, Y]) > 20.0).all()


@pytest.mark.row("SIM-3")
def test_room_is_made_in_time_for_an_ego_whose_route_merges():
    """It is ahead but not in the way yet. Where nobody knows its route, it is minded only once it is in the way."""
    cos, sin = np.cos(np.deg2rad(25)), np.sin(np.deg2rad(25))
    ramp, limits = [[-100 * cos, -100 * sin], [0, 0]], np.full(3, 12.0, np.float32)
    road = streets([[-100, 0], [0, 0]], ramp, [[0, 0], [300, 0]], successors=[(0, 2), (1, 2)], speed_limits=limits)
    driven = 65 + 10.0 * DT * np.arange(1, 101)
    on_ramp, on_road = np.minimum(driven - 100, 0), np.maximum(driven - 100, 0)
    script = np.stack([on_ramp * cos + on_road, on_ramp * sin, np.full(100, 10.0)], axis=-1)[:, None]
    speeds = []
    for has_route in (True, False):
        maps, worlds = maps_of(road), worlds_of(2)
        put(worlds, maps, 0, [1, 2], 65.0, speed=10.0)
        put(worlds, maps, 1, [0, 2], 48.0, speed=10.0)
        worlds.agent_flags[0, state.ROLE, 0] = state.EGO
        if not has_route:
            worlds.agent_flags[0, state.ROUTE_LENGTH, 0] = 0
        track, _, collided = drive(worlds, maps, NO_LIGHTS, REPLAY, 100, script)
        assert not collided.any()
        speeds.append(track[driven < 85, SPEED, 1][-1])
    assert speeds[0] < 10.0 < speeds[1]


@pytest.mark.row("TRIAL-9")
def test_traffic_in_haste_is_faster_and_keeps_closer():
    gaps = []
    for haste in (0.7, 1.3):
        maps, worlds = long_street(), worlds_of(2, haste=haste)
        x = 60 + 6.0 * DT * np.arange(1, 301)
        script = np.stack([x, np.zeros(300), np.full(300, 6.0)], axis=-1)[:, None]
        put(worlds, maps, 0, [0], 60.0, speed=6.0)
        put(worlds, maps, 1, [0], 5.0, speed=8.0)
        track, _, _ = drive(worlds, maps, NO_LIGHTS, REPLAY, 300, script)
        gaps.append(track[-1, X, 0] - track[-1, X, 1] - 4.5)
    assert gaps[0] > 1.5 * gaps[1]

    maps, alone = long_street(), worlds_of(1, haste=1.3)
    put(alone, maps, 0, [0], 5.0, speed=8.0)
    track, _, _ = drive(alone, maps, NO_LIGHTS, REPLAY, 200)
    assert track[-1, SPEED, 0] == pytest.approx(1.3 * 12.0, rel=0.05)


def test_an_agent_at_no_place_disturbs_nobody():
    tracks = []
    for is_there in (False, True):
        maps, worlds = long_street(), worlds_of(2)
        put(worlds, maps, 0, [0], 10.0, speed=5.0)
        if is_there:
            put(worlds, maps, 1, [0], 30.0)
            worlds.agents[0, [state.X, state.Y], 1] = np.nan
            worlds.agent_flags[0, [state.ROUTE_LENGTH, state.ROLE], 1] = [0, state.STATIC]
        track, _, _ = drive(worlds, maps, NO_LIGHTS, REPLAY, 30)
        tracks.append(track[:, :, 0])
    np.testing.assert_array_equal(tracks[0], tracks[1])


@pytest.mark.row("SIM-3")
def test_thirty_agents_drive_through_a_town_for_half_a_minute_without_a_collision(towns: Pack):
    config = SimConfig(mode=Mode.OPEN, open=OpenConfig(agents=30))
    p = open_params(30)
    for number in range(len(towns)):
        if not len(towns[number].map.stop_lines):
            continue  # a freeway, where places for so many are few
        store = ScenarioStore(towns, config, 1)
        worlds = worlds_of(30, seeds=[number])
        worlds.clocks[0, [state.SCENARIO, state.MAP]] = store.load(0, number)
        assert spawn_all(worlds, store.maps, store.scenarios, p) == 30
        track, present, collided = drive(worlds, store.maps, store.scenarios, p, 300)
        assert not collided.any()
        assert track[:, SPEED][present].mean() > 3.0
        assert np.isfinite(track[:, :ALONG].transpose(0, 2, 1)[present]).all()
        assert track[:, ALONG][present].min() >= -float(HARDEST_MPS2)
