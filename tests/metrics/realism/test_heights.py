"""Heights of agents with planar motion: they follow their lanes up and down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike

from roadworthy.metrics.realism.heights import ride_heights
from roadworthy.scenario.schema import FeatureKind, LaneType, RoadMap, Scenario
from tests.scenario.example import Feature, map_of, straight
from tests.sim.scenes import Actor, scene

ABOVE = 0.9  # m, of the middle of a box over its lane
STEPS = 40


def lanes(*lines: ArrayLike, heights: list[ArrayLike]) -> RoadMap:
    """A map of lanes with these points in the plane, and their heights."""
    features: list[Feature] = [(FeatureKind.LANE, LaneType.SURFACE_STREET, line) for line in lines]
    flat = map_of(features)
    points = flat.points.copy()
    points[:, 2] = np.concatenate([np.asarray(height, np.float32) for height in heights])
    return replace(flat, points=points)


def on(road_map: RoadMap, *actors: Actor, z: ArrayLike = ABOVE) -> Scenario:
    """Agents that stand this high at all steps: what follows the current one must not be known."""
    found = scene(*actors, road_map=road_map)
    positions = found.positions.copy()
    positions[..., 2] = np.reshape(np.asarray(z, np.float32), (-1, 1))
    return replace(found, positions=positions)


def way_of(scenario: Scenario, agent: int, speed: float, cos: float = 1.0, sin: float = 0.0) -> np.ndarray:
    """(1, 1, S, 2) straight on from where the agent is at the current step."""
    start = scenario.positions[agent, scenario.current_step, :2]
    along = 0.1 * speed * np.arange(1, STEPS + 1)
    return (start + along[:, None] * np.array([cos, sin])).astype(np.float32)[None, None]


def test_on_a_flat_map_everybody_keeps_its_height() -> None:
    scenario = on(
        lanes(straight(0, 0, 200, 0), heights=[np.full(81, 3.0)]), Actor(5.0, 0.0), Actor(9.0, 50.0), z=[4, 7]
    )
    ways = np.concatenate([way_of(scenario, 0, 10.0), way_of(scenario, 1, 5.0, 0.0, 1.0)], axis=1)
    heights = ride_heights(scenario, np.array([0, 1]), ways.repeat(3, axis=0))
    np.testing.assert_array_equal(heights, np.broadcast_to(np.float32([[4], [7]]), (3, 2, STEPS)))


@pytest.mark.parametrize("offset", [0.0, 2.5])
def test_on_a_hill_an_agent_climbs_as_its_lane_does(offset: float) -> None:
    line = straight(0, 0, 200, 0)
    scenario = on(lanes(line, heights=[0.05 * line[:, 0]]), Actor(0.0, offset, speed=10.0), z=0.05 * 10.0 + ABOVE)
    way = way_of(scenario, 0, 12.0)
    heights = ride_heights(scenario, np.array([0]), way)
    np.testing.assert_allclose(heights, 0.05 * way[..., 0] + ABOVE, atol=1e-4)


def test_agents_on_and_below_a_bridge_stay_on_their_level() -> None:
    street, bridge = straight(0, 0, 200, 0), straight(60, -100, 60, 100)
    road_map = lanes(street, bridge, heights=[0.01 * street[:, 0], np.full(len(bridge), 6.0)])
    below, above = Actor(0.0, 0.0, speed=10.0), Actor(60.0, -30.0, speed=10.0, heading=np.pi / 2)
    scenario = on(road_map, below, above, z=[0.1 + ABOVE, 6.0 + ABOVE])
    ways = np.concatenate([way_of(scenario, 0, 20.0), way_of(scenario, 1, 10.0, 0.0, 1.0)], axis=1)
    assert ways[0, 0, -1, 0] > 60.0, "it passes below the bridge"
    assert ways[0, 1, -1, 1] > 0.0, "it passes over the street"
    heights = ride_heights(scenario, np.array([0, 1]), ways)
    np.testing.assert_allclose(heights[0, 0], 0.01 * ways[0, 0, :, 0] + ABOVE, atol=1e-4)
    np.testing.assert_allclose(heights[0, 1], 6.0 + ABOVE, atol=1e-4)


def test_far_from_all_lanes_an_agent_keeps_its_height() -> None:
    line = straight(0, 0, 50, 0)
    scenario = on(lanes(line, heights=[0.2 * line[:, 0]]), Actor(500.0, 500.0), z=1.5)
    np.testing.assert_array_equal(ride_heights(scenario, np.array([0]), way_of(scenario, 0, 10.0)), 1.5)
