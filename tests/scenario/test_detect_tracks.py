"""Tracks: the lanes of agents, the traffic ahead of the car, and the properties of the map's lanes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.lanes.network import LaneNetwork
from roadworthy.scenario.schema import AgentType, LaneType
from tests.scenario.example import map_of
from tests.scenario.synthetic import (
    RED,
    STEPS,
    WIDTH,
    Agent,
    Roads,
    crossing,
    freeway_with_ramp,
    make_scenario,
    profile,
    ring,
    sideways,
    straight,
    two_lane_road,
)


def lanes_of(tracks: Tracks, roads: Roads, agent: int = 0) -> list[str]:
    """Return the names of an agent's lanes in driving order."""
    names = list(roads.lanes)
    numbers = tracks.lane[agent]
    return [names[n] if n >= 0 else "none" for n in numbers[np.flatnonzero(np.diff(numbers, prepend=-2))]]


@pytest.mark.parametrize("entry", range(4))
@pytest.mark.parametrize(("way", "leaves"), [("ahead", 0), ("left", 1), ("right", 3)])
def test_lanes_across_a_junction_are_those_that_were_driven(entry: int, way: str, leaves: int) -> None:
    roads = crossing()
    route = [f"in {entry}", f"{way} {entry}", f"out {(entry + leaves) % 4}"]
    wander = 0.3 * np.sin(np.arange(STEPS) / 9)
    tracks = Tracks.of(make_scenario(roads, Agent(roads.line(*route), 60, 7.0, wander)))
    assert lanes_of(tracks, roads) == route
    assert np.abs(tracks.offset[0] - wander).max() < 0.1
    station = tracks.station[0]
    assert np.abs(np.diff(station) - 0.7).max() < 0.06


def test_offsets_are_the_distances_from_the_lane() -> None:
    roads = ring()
    route = ("in", "entry", "ring 0", "ring 1", "exit", "out")
    tracks = Tracks.of(make_scenario(roads, Agent(roads.line(*route), 30, 8.0, sideways((1, 3, 0.8), (5, 7, -1.4)))))
    for step in range(STEPS):
        lane = shapely.LineString(list(roads.lanes.values())[tracks.lane[0, step]])
        place = shapely.Point(tracks.x[0, step], tracks.y[0, step])
        assert abs(tracks.offset[0, step]) == pytest.approx(lane.distance(place), abs=0.05)
        assert tracks.arc[0, step] == pytest.approx(lane.project(place), abs=0.05)
    assert tracks.offset[0, 40] > 0.7
    assert tracks.offset[0, -1] < -0.5


def test_a_lane_change_is_detected_where_the_center_crosses_the_line() -> None:
    roads = two_lane_road()
    offset = sideways((2, 6, WIDTH))
    tracks = Tracks.of(make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, 12.0, offset)))
    (change,) = tracks.lane_changes(0)
    assert abs(change.step - int(np.argmax(offset > WIDTH / 2))) <= 1
    assert [list(roads.lanes)[n] for n in (change.origin, change.target)] == ["right 0", "left 0"]
    assert tracks.shift[0].sum() == 1
    back = Tracks.of(make_scenario(roads, Agent(roads.line("left 0", "left 1"), 20, 12.0, -offset)))
    assert back.shift[0].sum() == -1


def test_touching_the_line_is_not_a_lane_change() -> None:
    roads = two_lane_road()
    tracks = Tracks.of(
        make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, 12.0, sideways((2, 4, 1.8), (4, 6, -1.8))))
    )
    assert tracks.lane_changes(0) == []


def test_oncoming_and_parked_cars_and_pedestrians_are_on_no_lane() -> None:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    tracks = Tracks.of(
        make_scenario(
            roads,
            Agent(lane, 20, 8.0),
            Agent(lane[::-1], 20, 8.0),
            Agent(lane, 60, 0.0, -2.8),
            Agent(lane, 80, 1.0, kind=AgentType.PEDESTRIAN),
        )
    )
    assert (tracks.lane[0] >= 0).all()
    assert (tracks.lane[1:] == -1).all()
    assert tracks.never_moves.tolist() == [False, False, True, False]


def test_bike_lanes_are_for_cyclists() -> None:
    roads = Roads(
        lanes={"road": straight(0, 0, 200, 0), "bike": straight(0, -1.5, 200, -1.5)},
        types={"bike": LaneType.BIKE_LANE},
    )
    by_the_side = {"speed": 6.0, "offset": -1.2, "line": roads.line("road"), "start": 10.0}
    cyclist = Agent(**by_the_side, kind=AgentType.CYCLIST)  # type: ignore[arg-type]
    tracks = Tracks.of(make_scenario(roads, Agent(**by_the_side), cyclist))  # type: ignore[arg-type]
    assert lanes_of(tracks, roads, 0) == ["road"]
    assert lanes_of(tracks, roads, 1) == ["bike"]


def test_absent_steps_have_no_lane_and_accelerations_stop_at_them() -> None:
    roads = two_lane_road()
    speed = profile((0, 5), (9, 14))
    tracks = Tracks.of(make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, speed, present=(10, 60))))
    assert (tracks.lane[0] >= 0).tolist() == tracks.valid[0].tolist()
    assert tracks.acceleration[0, 10:60] == pytest.approx(1.0, abs=0.02)
    assert not tracks.acceleration[0, :10].any()
    assert not tracks.acceleration[0, 60:].any()


def test_gaps_count_from_bumper_to_bumper_along_the_path() -> None:
    roads = crossing()
    route = roads.line("in 0", "left 0", "out 1")
    tracks = Tracks.of(
        make_scenario(
            roads, Agent(route, 60, 6.0), Agent(route, 85, 6.0), Agent(route, 40, 6.0), Agent(route, 100, 6.0)
        )
    )
    assert tracks.leader_gap == pytest.approx(25 - 4.6, abs=0.3)
    assert (tracks.leader == 1).all()
    assert np.isinf(tracks.gap[[0, 2]]).all()


def test_a_car_parked_half_in_the_lane_is_not_a_leader() -> None:
    roads = two_lane_road()
    lane = roads.line("right 0", "right 1")
    tracks = Tracks.of(make_scenario(roads, Agent(lane, 20, 5.0), Agent(lane, 90, 0.0, -1.9)))
    assert (tracks.lane[1] >= 0).all()
    assert (tracks.leader == -1).all()


def test_the_path_continues_straight_beyond_the_last_step() -> None:
    roads = crossing()
    tracks = Tracks.of(
        make_scenario(roads, Agent(roads.line("in 0"), 40, profile((0, 8), (4, 0))), lights={"ahead 0": RED})
    )
    assert [list(roads.lanes)[n] for n in tracks.path.lanes] == ["in 0", "ahead 0", "out 0"]
    assert tracks.red_light_within(40.0, STEPS - 1)
    assert not tracks.red_light_within(25.0, STEPS - 1)


def test_a_window_shares_the_arrays_of_the_whole() -> None:
    tracks = Tracks.of(make_scenario(two_lane_road(), Agent(two_lane_road().line("right 0"), 20, 8.0)))
    window = tracks.window(20, 60)
    assert window.steps == 40
    assert np.shares_memory(window.lane, tracks.lane)
    assert window.x[0, 0] == tracks.x[0, 20]


@pytest.mark.parametrize("dt", [0.05, 0.2])
def test_times_are_seconds_at_any_step_length(dt: float) -> None:
    tracks = Tracks.of(replace(make_scenario(two_lane_road(), Agent(two_lane_road().line("right 0"), 20, 8.0)), dt=dt))
    assert tracks.steps_of(0.5) == round(0.5 / dt)


def named(roads: Roads, flags: np.ndarray) -> set[str]:
    return {name for name, flag in zip(roads.lanes, flags, strict=True) if flag}


def test_rings_junctions_and_ending_lanes_are_known() -> None:
    roundabout = ring()
    network = LaneNetwork.of(roundabout.map())
    assert named(roundabout, network.is_ring) == {"ring 0", "ring 1", "ring 2", "ring 3"}
    assert named(roundabout, network.touches_ring) == {"entry", "exit"}

    crossroads = crossing()
    network = LaneNetwork.of(crossroads.map())
    ways = {f"{way} {k}" for way in ("ahead", "left", "right") for k in range(4)}
    assert named(crossroads, network.is_junction) == ways
    assert network.turn[crossroads.number("left 2")] == pytest.approx(np.pi / 2, abs=0.1)
    assert not network.is_ring.any()

    freeway = freeway_with_ramp()
    network = LaneNetwork.of(freeway.map())
    assert named(freeway, network.is_ending) == {"acceleration"}
    assert not LaneNetwork.of(two_lane_road().map()).is_ending.any()


def test_an_acceleration_lane_of_two_pieces_ends_as_a_whole() -> None:
    roads = freeway_with_ramp()
    roads.lanes["acceleration"] = straight(100, -WIDTH, 200, -WIDTH)
    roads.lanes["last piece"] = straight(200, -WIDTH, 300, -WIDTH)
    roads.follows.append(("acceleration", "last piece"))
    roads.beside.append(("last piece", "right 0"))
    assert named(roads, LaneNetwork.of(roads.map()).is_ending) == {"acceleration", "last piece"}


def test_on_a_map_without_lanes_agents_have_none() -> None:
    tracks = Tracks.of(make_scenario(map_of([]), Agent(straight(0, 0, 100, 0), 0, 8.0)))
    assert (tracks.lane == -1).all()
    assert tracks.path.lanes == ()
