"""Scenarios for tests of realism: hand-made ones, and crowded random ones with unusual road edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.metrics.realism import Rollouts, task_agents
from roadworthy.scenario.schema import AgentType, EdgeType, FeatureKind, LaneType, LightState, RoadMap, Scenario
from tests.scenario.example import map_of

STEPS = 31
CURRENT = 10
SQUARE = [[40, 40], [-40, 40], [-40, -40], [40, -40], [40, 40]]  # the road within, its edge going round to port


def with_heights(road_map: RoadMap, heights: ArrayLike) -> RoadMap:
    """The same map with a height for each point."""
    points = road_map.points.copy()
    points[:, 2] = heights
    return replace(road_map, points=points)


def edge(points: ArrayLike) -> tuple[FeatureKind, int, ArrayLike]:
    return FeatureKind.ROAD_EDGE, EdgeType.BOUNDARY, points


def lane(points: ArrayLike, type: LaneType = LaneType.SURFACE_STREET) -> tuple[FeatureKind, int, ArrayLike]:
    return FeatureKind.LANE, type, points


def scenario_of(
    positions: ArrayLike,
    headings: ArrayLike,
    road_map: RoadMap | None = None,
    valid: NDArray[np.bool_] | None = None,
    types: Sequence[AgentType] | None = None,
    sizes: ArrayLike = (4.5, 1.8, 1.6),
    predict: Sequence[int] | None = None,
    lights: Sequence[tuple[int, ArrayLike, ArrayLike]] = (),
) -> Scenario:
    """Agents at positions (A, T, 3); agent 0 is the self-driving car; lights are (lane, stop point, states)."""
    places = np.asarray(positions, np.float32)
    agents, steps = places.shape[:2]
    is_there = np.ones((agents, steps), np.bool_) if valid is None else valid
    scenario = Scenario(
        id="made",
        source="handmade",
        tags=(),
        dt=0.1,
        current_step=CURRENT,
        map=road_map or map_of([edge(SQUARE)]),
        agent_ids=np.arange(agents)[::-1] * 7 + 3,
        agent_types=np.array(types if types is not None else [AgentType.VEHICLE] * agents, np.uint8),
        sizes=np.broadcast_to(np.asarray(sizes, np.float32), (agents, 3)).copy(),
        positions=np.where(is_there[..., None], places, np.float32(0)),
        headings=np.where(is_there, np.broadcast_to(np.asarray(headings, np.float32), is_there.shape), np.float32(0)),
        velocities=np.zeros((agents, steps, 2), np.float32),
        valid=is_there,
        sdc=0,
        predict=np.array(predict if predict is not None else range(agents), np.int32),
        light_lanes=np.array([light[0] for light in lights], np.int32),
        light_stops=np.array([light[1] for light in lights], np.float32).reshape(-1, 3),
        light_states=np.array([light[2] for light in lights], np.uint8).reshape(-1, steps),
    )
    scenario.require_sound()
    return scenario


def recorded_future(scenario: Scenario, count: int = 1) -> Rollouts:
    """The recording itself, several times."""
    agents, _ = task_agents(scenario)
    future = scenario.positions[None, agents, CURRENT + 1 :].repeat(count, axis=0)
    headings = scenario.headings[None, agents, CURRENT + 1 :].repeat(count, axis=0)
    return Rollouts.from_scenario_frame(scenario, agents, future, headings)


def random_scenario(seed: int) -> Scenario:
    """Agents close together, some gone for a while, on a map of arcs, loops, doubled and single points and a bridge."""
    rng = np.random.default_rng(seed)
    agents = 9
    time = np.arange(STEPS) * 0.1
    speeds, turns = rng.uniform(0, 15, (agents, 1)), rng.uniform(-0.7, 0.7, (agents, 1))
    headings = rng.uniform(-np.pi, np.pi, (agents, 1)) + turns * time
    steps = np.stack([np.cos(headings), np.sin(headings)], axis=-1) * speeds[..., None] * 0.1
    positions = np.concatenate(
        [
            rng.uniform(-20, 20, (agents, 1, 2)) + steps.cumsum(axis=1) + rng.normal(0, 0.01, steps.shape),
            rng.normal(1.0, 0.3, (agents, STEPS, 1)),
        ],
        axis=-1,
    )
    valid = rng.random((agents, STEPS)) > 0.1
    valid[: agents - 1, CURRENT] = True
    valid[2, :CURRENT] = False  # first there at the current step
    features = [edge(_arc(rng, rng.integers(2, 30))) for _ in range(6)]
    loop = _arc(rng, 12)
    features += [edge([*loop, loop[0]]), edge([*loop[::-1], loop[-1] + 0.3]), edge([[3.0, 4.0]])]
    features += [edge(np.repeat(_arc(rng, 5), 2, axis=0)), lane(_arc(rng, 20), LaneType.FREEWAY), lane([[5.0, 5.0]])]
    features += [lane(_arc(rng, rng.integers(2, 25))) for _ in range(6)]
    road_map = map_of(features)
    road_map = with_heights(road_map, rng.choice([0.0, 0.3, 6.0], len(road_map.points)))
    states = rng.choice(
        [0, LightState.STOP, LightState.ARROW_STOP, LightState.GO, LightState.FLASHING_STOP], (8, STEPS)
    )
    shift = np.array([30.0, -20.0, 0.0])
    lights = [(number, road_map.polyline(number)[0] + 0.4, states[number]) for number in range(8)]
    return scenario_of(
        positions + shift,
        (headings + np.pi) % (2 * np.pi) - np.pi,
        replace(road_map, points=(road_map.points + shift).astype(np.float32)),
        valid,
        types=rng.choice([AgentType.VEHICLE, AgentType.CYCLIST, AgentType.PEDESTRIAN], agents).tolist(),
        sizes=np.stack([rng.uniform(0.5, 9, agents), rng.uniform(0.5, 3, agents), rng.uniform(1, 3, agents)], axis=-1),
        predict=[1, 2, 5],
        lights=[(number, stop + shift, shown) for number, stop, shown in lights],
    )


def random_rollouts(scenario: Scenario, count: int, seed: int) -> Rollouts:
    """The recording with noise that grows, sometimes far."""
    rng = np.random.default_rng(seed)
    recorded = recorded_future(scenario, count)
    growth = np.linspace(0, 1, recorded.steps) * rng.choice([0.1, 2.0, 50.0], (count, len(recorded.agent_ids), 1))
    moved = [
        values + growth * rng.normal(size=(count, len(recorded.agent_ids), 1)) for values in (recorded.x, recorded.y)
    ]
    return Rollouts.of(recorded.agent_ids, *moved, recorded.z, recorded.heading + 0.02 * growth)


def _arc(rng: np.random.Generator, count: int | np.integer) -> NDArray[np.float64]:
    """(count, 2) points on a part of a circle."""
    angles = rng.uniform(0, 6) + np.arange(count) * rng.uniform(0.02, 0.5) * rng.choice([-1, 1])
    return rng.uniform(-25, 25, 2) + rng.uniform(5, 30) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
