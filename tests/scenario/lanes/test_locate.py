"""The lanes of one car agree with the compiled search for all agents, and with the roads."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.detect.tracks import Tracks
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.lanes.locate import locate
from roadworthy.scenario.lanes.network import LaneNetwork
from tests.metrics.closed_loop.roads import Lane, road_map
from tests.scenario.synthetic import WIDTH, Agent, make_scenario, profile, sideways, two_lane_road


@pytest.mark.parametrize("behavior", BEHAVIORS[::3])
def test_every_vehicle_is_where_the_compiled_search_finds_it(behavior: str) -> None:
    tracks = Tracks.of(generate_scenario(11, behavior, 0))
    looked_at = 0
    for agent in np.flatnonzero((tracks.types == 1) & tracks.valid.all(axis=1)).tolist():
        x, y, heading = (line[agent].astype(np.float64) for line in (tracks.x, tracks.y, tracks.heading))
        places = locate(tracks.network, x, y, heading, tracks.dt)
        assert (places.lane == tracks.lane[agent]).all()
        assert (places.shift == tracks.shift[agent]).all()
        on_lane = places.lane >= 0
        np.testing.assert_allclose(places.offset[on_lane], tracks.offset[agent][on_lane], atol=1e-3)
        np.testing.assert_allclose(places.arc[on_lane], tracks.arc[agent][on_lane], atol=1e-2)
        looked_at += int(on_lane.any())
    assert looked_at > 5


def test_a_lane_change_is_found_where_the_center_crosses_the_line() -> None:
    roads = two_lane_road()
    scenario = make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, 12.0, sideways((2, 6, WIDTH))))
    x, y = scenario.positions[0, :, :2].astype(np.float64).T
    places = locate(LaneNetwork.of(scenario.map), x, y, scenario.headings[0].astype(np.float64), 0.1)
    (step,) = np.flatnonzero(places.shift)
    assert places.shift[step] == 1
    assert abs(y[step] - WIDTH / 2) < 0.2
    assert abs(places.offset[0]) < 0.01
    assert abs(places.offset[-1]) < 0.01
    assert abs(places.angle).max() > 0.1


def test_a_car_that_stands_off_the_road_is_on_no_lane() -> None:
    roads = two_lane_road()
    scenario = make_scenario(roads, Agent(roads.line("right 0"), 20, profile((0, 0)), -6.0))
    x, y = scenario.positions[0, :, :2].astype(np.float64).T
    places = locate(LaneNetwork.of(scenario.map), x, y, scenario.headings[0].astype(np.float64), 0.1)
    assert (places.lane == -1).all()


def test_a_lane_whose_points_coincide_holds_no_car() -> None:
    road = road_map([Lane([(0, 0), (100, 0)]), Lane([(50, 0), (50, 0)])])
    x = np.linspace(10.0, 90.0, 20)
    places = locate(LaneNetwork.of(road), x, np.zeros(20), np.zeros(20), 0.1)
    assert (places.lane == 0).all()
