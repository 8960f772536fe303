"""A scenario of cars on a road with one straight lane, for the importer."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.scenario.schema import AgentType, FeatureKind, LaneType, RoadMap, Scenario

CAR_M = (4.5, 1.8, 1.5)  # length, width, height
DT = 0.1
NO_PAIRS = np.zeros((0, 2), np.int32)


def road_along(x: float, y: float, heading: float) -> RoadMap:
    """Return a lane from 50 m behind a place to 400 m ahead of it."""
    along = np.arange(-50.0, 400.0, 5.0)[:, None] * [np.cos(heading), np.sin(heading), 0.0]
    empty: dict[str, Any] = dict.fromkeys(
        ("successors", "left_neighbors", "right_neighbors", "yields", "stop_signs"), NO_PAIRS
    )
    return RoadMap(
        origin=np.zeros(3),
        points=(np.array([x, y, 0.0]) + along).astype(np.float32),
        starts=np.array([0, len(along)], np.int32),
        kinds=np.array([FeatureKind.LANE], np.uint8),
        types=np.array([LaneType.SURFACE_STREET], np.uint8),
        ids=np.zeros(1, np.int64),
        speed_limits=np.full(1, np.nan, np.float32),
        lane_widths=np.full(1, 3.5, np.float32),
        stop_lines=np.zeros((0, 2, 2), np.float32),
        stop_line_lanes=np.zeros(0, np.int32),
        **empty,
    )


def cars_on(road: RoadMap, name: str, tracks: Any, valid: Any) -> Scenario:
    """Return a scenario of cars. tracks: (agents, steps, 4) x, y, heading and speed; valid: (agents, steps)."""
    (count, steps), (x, y, heading, speed) = valid.shape, np.moveaxis(tracks, -1, 0)
    return Scenario(
        id=name,
        source="track_table",
        tags=(),
        dt=DT,
        current_step=min(10, steps - 1),
        map=road,
        agent_ids=np.arange(count, dtype=np.int64),
        agent_types=np.full(count, AgentType.VEHICLE, np.uint8),
        sizes=np.tile(np.float32(CAR_M), (count, 1)),
        positions=np.stack([x, y, np.zeros_like(x)], -1),
        headings=np.ascontiguousarray(heading),
        velocities=np.stack([speed * np.cos(heading), speed * np.sin(heading)], -1),
        valid=valid,
        sdc=0,
        predict=np.zeros(0, np.int32),
        light_lanes=np.zeros(0, np.int32),
        light_stops=np.zeros((0, 3), np.float32),
        light_states=np.zeros((0, steps), np.uint8),
    )
