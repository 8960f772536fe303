"""Hand-made scenes for tests of whole simulations: a straight road, and agents that drive along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roadworthy.scenario.pack import Pack, PackWriter
from roadworthy.scenario.schema import AgentType, EdgeType, FeatureKind, LaneType, LightState, RoadMap, Scenario
from tests.scenario.example import Feature, map_of, pairs, straight

DT = 0.1
HALF_LANE = 1.75


@dataclass(frozen=True)
class Actor:
    """An agent that moves at a constant speed along its heading, present from step `first` to before step `last`."""

    x: float
    y: float = -HALF_LANE
    speed: float = 10.0
    heading: float = 0.0
    kind: AgentType = AgentType.VEHICLE
    first: int = 0
    last: int = 10_000
    length: float = 4.5
    width: float = 1.8


def road(length: float = 400.0, *, has_sign: bool = False) -> RoadMap:
    """Two lanes to the east, the right one in two parts that meet at x = 100, edges 3.5 m to each side."""
    lane, edge = FeatureKind.LANE, FeatureKind.ROAD_EDGE
    features: list[Feature] = [
        (lane, LaneType.SURFACE_STREET, straight(0, -HALF_LANE, 100, -HALF_LANE)),
        (lane, LaneType.SURFACE_STREET, straight(100, -HALF_LANE, length, -HALF_LANE)),
        (lane, LaneType.SURFACE_STREET, straight(0, HALF_LANE, length, HALF_LANE)),
        (edge, EdgeType.BOUNDARY, straight(0, -3.5, length, -3.5)),
        (edge, EdgeType.BOUNDARY, straight(length, 3.5, 0, 3.5)),
        (FeatureKind.STOP_SIGN, 0, [[100, -5]]),
    ]
    return map_of(
        features,
        successors=pairs((0, 1)),
        stop_signs=pairs((5, 0)) if has_sign else pairs(),
        stop_lines=np.array([[[100, 0], [100, -3.5]]], np.float32),
        stop_line_lanes=np.array([0], np.int32),
    )


def scene(
    *actors: Actor,
    id: str = "scene",
    steps: int = 91,
    sdc: int = 0,
    predict: Sequence[int] = (),
    road_map: RoadMap | None = None,
    light: LightState | None = None,
) -> Scenario:
    """Return a scenario of these actors. A light, if given, stands at the end of lane 0 and never changes."""
    count = len(actors)
    time = np.arange(steps) * DT
    positions, headings = np.zeros((count, steps, 3), np.float32), np.zeros((count, steps), np.float32)
    velocities, valid = np.zeros((count, steps, 2), np.float32), np.zeros((count, steps), np.bool_)
    for k, actor in enumerate(actors):
        way = np.array([np.cos(actor.heading), np.sin(actor.heading)])
        positions[k, :, :2] = [actor.x, actor.y] + time[:, None] * actor.speed * way
        headings[k], velocities[k] = actor.heading, actor.speed * way
        valid[k, actor.first : actor.last] = True
    for motion in (positions, headings, velocities):
        motion[~valid] = 0
    lights = 0 if light is None else 1
    return Scenario(
        id=id,
        source="handmade",
        tags=(),
        dt=DT,
        current_step=min(10, steps - 1),
        map=road_map or road(),
        agent_ids=np.arange(count, dtype=np.int64),
        agent_types=np.array([actor.kind for actor in actors], np.uint8),
        sizes=np.array([[actor.length, actor.width, 1.5] for actor in actors], np.float32).reshape(-1, 3),
        positions=positions,
        headings=headings,
        velocities=velocities,
        valid=valid,
        sdc=sdc,
        predict=np.array(predict, np.int32),
        light_lanes=np.zeros(lights, np.int32),
        light_stops=np.array([[100.0, -HALF_LANE, 0.0]] * lights, np.float32).reshape(-1, 3),
        light_states=np.full((lights, steps), 0 if light is None else light, np.uint8),
    )


def pack_of(path: Path, *scenarios: Scenario) -> Pack:
    """Return a pack of these scenarios."""
    with PackWriter(path) as writer:
        for scenario in scenarios:
            writer.add(scenario)
    return Pack(path)
