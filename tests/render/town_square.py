"""A hand-made scenario with every kind of map feature, light state and agent, to draw."""

from __future__ import annotations

import numpy as np

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

LANE = 3.5
REACH = 80.0  # how far the four arms of the crossing go
CORNER = 8.0  # radius of the curb at the corners
STEPS = 91


def _quarter_turn(line: np.ndarray, times: int) -> np.ndarray:
    cos, sin = [(1, 0), (0, 1), (-1, 0), (0, -1)][times % 4]
    return line @ np.array([[cos, sin], [-sin, cos]], float)


def _arc(center: tuple[float, float], radius: float, start: float, stop: float, points: int = 17) -> np.ndarray:
    angles = np.linspace(start, stop, points)
    return np.array(center) + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _straight(start: tuple[float, float], stop: tuple[float, float], points: int = 30) -> np.ndarray:
    return np.linspace(start, stop, points)


def build_map(offset: tuple[float, float] = (0.0, 0.0), with_edges: bool = True) -> RoadMap:
    """Two roads with two lanes each way that cross, each arm with its lines, stop line and crosswalk."""
    half, mouth = 2 * LANE, 2 * LANE + CORNER
    features: list[tuple[FeatureKind, int, np.ndarray]] = []
    for arm in range(4):
        for lane in (0.5, 1.5):  # towards the crossing from the east on the north side, and away on the south side
            inbound = _straight((REACH, lane * LANE), (mouth, lane * LANE))
            features.append((FeatureKind.LANE, LaneType.SURFACE_STREET, _quarter_turn(inbound, arm)))
            outbound = _straight((mouth, -lane * LANE), (REACH, -lane * LANE))
            features.append((FeatureKind.LANE, LaneType.SURFACE_STREET, _quarter_turn(outbound, arm)))
    for arm in range(4):  # through the crossing: straight on, left, right
        straight = _straight((mouth, 0.5 * LANE), (-mouth, 0.5 * LANE))
        left = _arc((mouth, -mouth), mouth + 0.5 * LANE, np.pi / 2, np.pi)
        right = _arc((mouth, mouth), mouth - 1.5 * LANE, -np.pi / 2, -np.pi)
        for line in (straight, left, right):
            features.append((FeatureKind.LANE, LaneType.SURFACE_STREET, _quarter_turn(line, arm)))
    middles = [
        LineType.SOLID_DOUBLE_YELLOW,
        LineType.PASSING_DOUBLE_YELLOW,
        LineType.BROKEN_SINGLE_YELLOW,
        LineType.BROKEN_DOUBLE_YELLOW,
    ]
    dividers = [
        LineType.BROKEN_SINGLE_WHITE,
        LineType.SOLID_SINGLE_WHITE,
        LineType.SOLID_DOUBLE_WHITE,
        LineType.BROKEN_SINGLE_WHITE,
    ]
    for arm in range(4):
        for line_type, y in ((middles[arm], 0.0), (dividers[arm], LANE), (LineType.BROKEN_SINGLE_WHITE, -LANE)):
            line = _quarter_turn(_straight((REACH, y), (mouth, y)), arm)
            features.append((FeatureKind.ROAD_LINE, line_type, line))
    if with_edges:
        edge = [
            _quarter_turn(
                np.concatenate(
                    [[(REACH, -half), (REACH, half)], _arc((mouth, mouth), CORNER, -np.pi / 2, -np.pi)],
                ),
                arm,
            )
            for arm in range(4)
        ]
        loop = np.concatenate([*edge, edge[0][:1]])
        features.append((FeatureKind.ROAD_EDGE, EdgeType.BOUNDARY, loop))
        island = _arc((45.0, 0.0), 1.0, 0.0, -2 * np.pi, 25) * np.array([1.0, 1.0])
        features.append((FeatureKind.ROAD_EDGE, EdgeType.MEDIAN, island))
    else:
        features.append((FeatureKind.ROAD_EDGE, EdgeType.BOUNDARY, _straight((mouth, half), (REACH, half))))
    for arm in range(4):
        walk = np.array([(mouth - 4.5, -half), (mouth - 0.5, -half), (mouth - 0.5, half), (mouth - 4.5, half)])
        features.append((FeatureKind.CROSSWALK, 0, _quarter_turn(walk, arm)))
    bump = np.array([(-60.0, -half), (-59.0, -half), (-59.0, half), (-60.0, half)])
    features.append((FeatureKind.SPEED_BUMP, 0, bump))
    driveway = np.array([(30.0, half), (36.0, half), (36.0, half + 6), (30.0, half + 6)])
    features.append((FeatureKind.DRIVEWAY, 0, driveway))
    features.append((FeatureKind.STOP_SIGN, 0, np.array([(-half - 1.5, mouth + 1.0)])))
    features.sort(key=lambda feature: feature[0])  # stable: lanes keep their order
    flat = np.concatenate([line for _, _, line in features]) + np.array(offset)
    lanes = sum(kind == FeatureKind.LANE for kind, _, _ in features)
    stop = np.array([(mouth + 0.8, 0.2), (mouth + 0.8, half - 0.2)])
    pairs = np.zeros((0, 2), np.int32)
    return RoadMap(
        origin=np.zeros(3),
        points=np.concatenate([flat, np.zeros((len(flat), 1))], axis=1).astype(np.float32),
        starts=np.concatenate([[0], np.cumsum([len(line) for _, _, line in features])]).astype(np.int32),
        kinds=np.array([kind for kind, _, _ in features], np.uint8),
        types=np.array([type_ for _, type_, _ in features], np.uint8),
        ids=np.arange(len(features), dtype=np.int64),
        speed_limits=np.full(lanes, 13.4, np.float32),
        lane_widths=np.full(lanes, LANE if with_edges else np.nan, np.float32),
        successors=pairs,
        left_neighbors=pairs,
        right_neighbors=pairs,
        yields=pairs,
        stop_signs=np.array([(len(features) - 1, 4)], np.int32),
        stop_lines=(np.stack([_quarter_turn(stop, arm) for arm in range(4)]) + np.array(offset)).astype(np.float32),
        stop_line_lanes=np.arange(4, dtype=np.int32) * 4,
    )


def build_scenario(offset: tuple[float, float] = (0.0, 0.0), with_edges: bool = True) -> Scenario:
    """Cars, a truck, a cyclist, people on a crosswalk, parked cars, a car that appears late; the sdc turns left."""
    half, mouth = 2 * LANE, 2 * LANE + CORNER
    time = np.arange(STEPS) * 0.1
    paths: list[tuple[AgentType, tuple[float, float, float], np.ndarray, float]] = []

    def drive(kind: AgentType, size: tuple[float, float, float], line: np.ndarray, start: float, speed: float) -> None:
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
        way = np.minimum(start + speed * time, along[-1])
        paths.append((kind, size, np.stack([np.interp(way, along, line[:, i]) for i in (0, 1)], axis=1), speed))

    car, truck, person = (4.6, 1.9, 1.5), (9.5, 2.5, 3.2), (0.7, 0.8, 1.8)
    turn = np.concatenate(
        [
            _straight((-REACH, -0.5 * LANE), (-mouth, -0.5 * LANE)),
            _arc((-mouth, mouth), mouth + 0.5 * LANE, -np.pi / 2, 0.0),
            _straight((0.5 * LANE, mouth), (0.5 * LANE, REACH)),
        ]
    )
    drive(AgentType.VEHICLE, car, turn, 42.0, 7.5)
    drive(AgentType.VEHICLE, car, _straight((-REACH, -1.5 * LANE), (REACH, -1.5 * LANE)), 20.0, 11.0)
    drive(AgentType.VEHICLE, truck, _straight((REACH, 1.5 * LANE), (-REACH, 1.5 * LANE)), 50.0, 9.0)
    drive(AgentType.VEHICLE, car, _straight((0.5 * LANE, -REACH), (0.5 * LANE, -mouth - 4)), 40.0, 3.0)
    drive(AgentType.CYCLIST, (1.8, 0.7, 1.7), _straight((-1.6 * LANE, REACH), (-1.6 * LANE, -REACH)), 30.0, 4.5)
    for x, start in ((mouth - 2.0, 2.0), (mouth - 3.2, 6.0)):
        drive(AgentType.PEDESTRIAN, person, _straight((x, -half - 2), (x, half + 2)), start, 1.3)
    drive(AgentType.VEHICLE, car, _straight((30.0, -half + 1.2), (60.0, -half + 1.2)), 0.0, 0.0)
    drive(AgentType.VEHICLE, car, _straight((38.0, -half + 1.2), (60.0, -half + 1.2)), 0.0, 0.0)
    drive(AgentType.VEHICLE, car, _straight((-0.5 * LANE, REACH), (-0.5 * LANE, -REACH)), 5.0, 6.0)
    count = len(paths)
    positions = np.zeros((count, STEPS, 3))
    positions[:, :, :2] = np.stack([path for _, _, path, _ in paths]) + np.array(offset)
    velocities = np.gradient(positions[:, :, :2], 0.1, axis=1)
    headings = np.arctan2(velocities[..., 1], velocities[..., 0])
    for agent in range(count):  # who stands keeps the last heading
        moving = np.hypot(*velocities[agent].T) > 0.05
        if moving.any():
            last = np.maximum.accumulate(np.where(moving, np.arange(STEPS), np.argmax(moving)))
            headings[agent] = headings[agent, last]
    valid = np.ones((count, STEPS), bool)
    valid[-1, :40] = False
    positions[~valid], headings[~valid], velocities[~valid] = 0, 0, 0
    light_lanes = 16 + np.arange(12, dtype=np.int32)
    stops = np.repeat(
        np.stack([_quarter_turn(np.array([(mouth + 1.0, 0.5 * LANE)]), arm)[0] for arm in range(4)]), 3, axis=0
    )
    states = np.full((12, STEPS), LightState.STOP, np.uint8)
    states[0:3, 45:] = LightState.GO
    states[3, :] = LightState.CAUTION
    states[4, :] = LightState.ARROW_GO
    states[6:9, :45] = LightState.GO
    states[6:9, 45:] = LightState.CAUTION
    states[7, :] = LightState.FLASHING_CAUTION
    return Scenario(
        id="town-square",
        source="hand-made",
        tags=("unprotected_left", "pedestrian_crossing"),
        dt=0.1,
        current_step=30,
        map=build_map(offset, with_edges),
        agent_ids=np.arange(count, dtype=np.int64),
        agent_types=np.array([kind for kind, _, _, _ in paths], np.uint8),
        sizes=np.array([size for _, size, _, _ in paths], np.float32),
        positions=positions.astype(np.float32),
        headings=headings.astype(np.float32),
        velocities=velocities.astype(np.float32),
        valid=valid,
        sdc=0,
        predict=np.zeros(0, np.int32),
        light_lanes=light_lanes,
        light_stops=np.concatenate([stops + np.array(offset), np.zeros((12, 1))], axis=1).astype(np.float32),
        light_states=states,
    )
