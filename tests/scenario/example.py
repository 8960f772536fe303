"""Small hand-made maps and scenarios for tests, and a function that compares them.

The example: a road of two lanes to the east, each made of two lane features that meet at x = 50, with a light (right
lane), a stop sign (left lane) and a crosswalk beyond it; road edges with the road on their left. One car drives in the
right lane, another is present in the left one for a while, and a pedestrian crosses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.scenario.schema import (
    AgentType,
    EdgeType,
    FeatureKind,
    LaneType,
    LightState,
    LineType,
    RoadMap,
    Scenario,
)

LANE_WIDTH_M = 3.5
STEPS = 91
DT = 0.1

Feature = tuple[FeatureKind, int, ArrayLike]


def pairs(*given: tuple[int, int]) -> NDArray[np.int32]:
    """Return (k, 2) numbers, also for k = 0."""
    return np.array(given, np.int32).reshape(-1, 2)


def map_of(features: Sequence[Feature], **others: Any) -> RoadMap:
    """Return a map of (kind, type, points with x and y) in any order; fields that are not given are empty."""
    features = sorted(features, key=lambda feature: feature[0])
    lines = [np.asarray(points, np.float32).reshape(-1, 2) for _, _, points in features]
    lanes = sum(kind == FeatureKind.LANE for kind, _, _ in features)
    xy = np.concatenate([*lines, np.zeros((0, 2), np.float32)])
    given: dict[str, Any] = {
        "origin": np.zeros(3),
        "points": np.column_stack([xy, np.zeros(len(xy), np.float32)]),
        "starts": np.cumsum([0, *map(len, lines)], dtype=np.int32),
        "kinds": np.array([kind for kind, _, _ in features], np.uint8),
        "types": np.array([type for _, type, _ in features], np.uint8),
        "ids": np.arange(len(features), dtype=np.int64) + 100,
        "speed_limits": np.full(lanes, 13.9, np.float32),
        "lane_widths": np.full(lanes, LANE_WIDTH_M, np.float32),
        "stop_lines": np.zeros((0, 2, 2), np.float32),
        "stop_line_lanes": np.zeros(0, np.int32),
    }
    given |= dict.fromkeys(("successors", "left_neighbors", "right_neighbors", "yields", "stop_signs"), pairs())
    return RoadMap(**(given | others))


def straight(x0: float, y0: float, x1: float, y1: float, spacing: float = 2.5) -> NDArray[np.float64]:
    """Return (n, 2) points from one place to another."""
    count = max(round(np.hypot(x1 - x0, y1 - y0) / spacing), 1) + 1
    return np.column_stack([np.linspace(x0, x1, count), np.linspace(y0, y1, count)])


def example_map(shift_m: float = 0.0) -> RoadMap:
    """Return the road, 100 m long; another shift in x makes another map."""
    right, left, side = -LANE_WIDTH_M / 2, LANE_WIDTH_M / 2, LANE_WIDTH_M
    a, b, c = shift_m, shift_m + 50.0, shift_m + 100.0
    lane, line, edge = FeatureKind.LANE, FeatureKind.ROAD_LINE, FeatureKind.ROAD_EDGE
    features: list[Feature] = [
        (lane, LaneType.SURFACE_STREET, straight(a, right, b, right)),
        (lane, LaneType.SURFACE_STREET, straight(b, right, c, right)),
        (lane, LaneType.SURFACE_STREET, straight(a, left, b, left)),
        (lane, LaneType.SURFACE_STREET, straight(b, left, c, left)),
        (line, LineType.BROKEN_SINGLE_WHITE, straight(a, 0, c, 0)),
        (edge, EdgeType.BOUNDARY, straight(a, -side, c, -side)),
        (edge, EdgeType.MEDIAN, straight(c, side, a, side, spacing=10)),
        (FeatureKind.CROSSWALK, 0, [[b + 2, -side], [b + 5, -side], [b + 5, side], [b + 2, side]]),
        (FeatureKind.STOP_SIGN, 0, [[b, side + 1]]),
    ]
    return map_of(
        features,
        origin=np.array([4_000_000.5, 12.25, 3.0]),
        speed_limits=np.array([13.9, 13.9, np.nan, 13.9], np.float32),
        successors=pairs((0, 1), (2, 3)),
        left_neighbors=pairs((0, 2), (1, 3)),
        right_neighbors=pairs((2, 0), (3, 1)),
        yields=pairs((2, 0)),
        stop_signs=pairs((8, 2)),
        stop_lines=np.array([[[b, 0], [b, -side]], [[b, side], [b, 0]]], np.float32),
        stop_line_lanes=np.array([0, 2], np.int32),
    )


def example_scenario(
    id: str = "example", tags: tuple[str, ...] = ("merge",), road_map: RoadMap | None = None, steps: int = STEPS
) -> Scenario:
    """Return two cars and a pedestrian. The second car is present from a tenth to four fifths of the time."""
    road_map = road_map or example_map()
    x0 = float(road_map.points[0, 0])
    time = np.arange(steps) * DT
    starts = np.array([[x0 + 10, -LANE_WIDTH_M / 2], [x0 + 60, LANE_WIDTH_M / 2], [x0 + 53.5, -5.0]])
    speeds = np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 1.1]])
    valid = np.ones((3, steps), np.bool_)
    valid[1, : steps // 10] = valid[1, steps * 4 // 5 :] = False
    positions = np.zeros((3, steps, 3), np.float32)
    positions[:, :, :2] = starts[:, None] + speeds[:, None] * time[:, None]
    positions[:, :, 2] = 0.8
    headings = np.repeat(np.array([[0.0], [0.0], [np.pi / 2]], np.float32), steps, axis=1)
    velocities = np.repeat(speeds[:, None].astype(np.float32), steps, axis=1)
    for motion in (positions, headings, velocities):
        motion[~valid] = 0
    lights = np.full((1, steps), LightState.STOP, np.uint8)
    lights[0, steps // 2 :] = LightState.GO
    return Scenario(
        id=id,
        source="handmade",
        tags=tags,
        dt=DT,
        current_step=min(10, steps - 1),
        map=road_map,
        agent_ids=np.array([7, 8, 9], np.int64),
        agent_types=np.array([AgentType.VEHICLE, AgentType.VEHICLE, AgentType.PEDESTRIAN], np.uint8),
        sizes=np.array([[4.5, 1.8, 1.6], [4.8, 1.9, 1.7], [0.6, 0.6, 1.75]], np.float32),
        positions=positions,
        headings=headings,
        velocities=velocities,
        valid=valid,
        sdc=0,
        predict=np.array([0, 2], np.int32),
        light_lanes=np.array([0], np.int32),
        light_stops=np.array([[x0 + 50, -LANE_WIDTH_M / 2, 0]], np.float32),
        light_states=lights,
    )


def differences(one: Any, other: Any) -> list[str]:
    """Return the names of the fields in which two maps, tables or scenarios differ, in type, shape or any bit."""
    found = []
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, RoadMap):
            found += [f"map.{name}" for name in differences(a, b)]
        elif isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
                found.append(field.name)
        elif type(a) is not type(b) or a != b:
            found.append(field.name)
    return found
