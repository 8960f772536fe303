"""Hand-made roads, and agents that drive along them, for tests of detectors and of validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.scenario.schema import AgentType, EdgeType, FeatureKind, LaneType, LightState, RoadMap, Scenario
from tests.scenario.example import Feature, map_of, pairs, straight

DT = 0.1
STEPS = 91
WIDTH = 3.5
HALF = WIDTH / 2

Doubles = NDArray[np.float64]


def arc(x: float, y: float, radius: float, begin_deg: float, end_deg: float, spacing: float = 1.0) -> Doubles:
    """Return (n, 2) points of a circle around a place."""
    count = max(round(radius * np.radians(abs(end_deg - begin_deg)) / spacing), 4) + 1
    angles = np.radians(np.linspace(begin_deg, end_deg, count))
    return np.column_stack([x + radius * np.cos(angles), y + radius * np.sin(angles)])


def turned(points: Doubles, degrees: float) -> Doubles:
    """Return the points turned about the origin."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return points @ np.array([[cosine, sine], [-sine, cosine]])


@dataclass
class Roads:
    """Lanes by name, and other parts of a map."""

    lanes: dict[str, Doubles] = field(default_factory=dict)
    types: dict[str, LaneType] = field(default_factory=dict)
    follows: list[tuple[str, str]] = field(default_factory=list)
    beside: list[tuple[str, str]] = field(default_factory=list)  # right lane, left lane
    edges: list[ArrayLike] = field(default_factory=list)
    crosswalks: list[ArrayLike] = field(default_factory=list)
    stop_lines: list[str] = field(default_factory=list)
    stop_signs: list[str] = field(default_factory=list)

    def number(self, lane: str) -> int:
        return list(self.lanes).index(lane)

    def line(self, *names: str) -> Doubles:
        """Return (n, 2) points of consecutive lanes."""
        return np.concatenate([self.lanes[name] for name in names])

    def map(self) -> RoadMap:
        features: list[Feature] = [
            (FeatureKind.LANE, self.types.get(name, LaneType.SURFACE_STREET), points)
            for name, points in self.lanes.items()
        ]
        features += [(FeatureKind.ROAD_EDGE, EdgeType.BOUNDARY, loop) for loop in self.edges]
        features += [(FeatureKind.CROSSWALK, 0, polygon) for polygon in self.crosswalks]
        first_sign = len(features)
        features += [(FeatureKind.STOP_SIGN, 0, [self.lanes[name][-1]]) for name in self.stop_signs]
        return map_of(
            features,
            lane_widths=np.full(len(self.lanes), WIDTH, np.float32),
            speed_limits=np.full(len(self.lanes), 13.9, np.float32),
            successors=pairs(*((self.number(a), self.number(b)) for a, b in self.follows)),
            left_neighbors=pairs(*((self.number(right), self.number(left)) for right, left in self.beside)),
            right_neighbors=pairs(*((self.number(left), self.number(right)) for right, left in self.beside)),
            stop_signs=pairs(*((first_sign + i, self.number(name)) for i, name in enumerate(self.stop_signs))),
            stop_lines=np.array([[self.lanes[n][-1], self.lanes[n][-1]] for n in self.stop_lines], np.float32).reshape(
                -1, 2, 2
            ),
            stop_line_lanes=np.array([self.number(name) for name in self.stop_lines], np.int32),
        )


def two_lane_road(kind: LaneType = LaneType.SURFACE_STREET) -> Roads:
    """Return two lanes to the east, 300 m, in two parts that meet at x = 150: right at y = 0, left at y = 3.5."""
    roads = Roads()
    for name, y in (("right", 0.0), ("left", WIDTH)):
        roads.lanes[f"{name} 0"], roads.lanes[f"{name} 1"] = straight(0, y, 150, y), straight(150, y, 300, y)
        roads.follows.append((f"{name} 0", f"{name} 1"))
    roads.beside = [("right 0", "left 0"), ("right 1", "left 1")]
    roads.types = dict.fromkeys(roads.lanes, kind)
    roads.edges = [straight_loop(0, -WIDTH - HALF, 300, WIDTH + HALF)]
    return roads


def freeway_with_ramp() -> Roads:
    """Return a freeway of two lanes to the east, 600 m, with an acceleration lane on the right from x = 100 to 300."""
    roads = two_lane_road(LaneType.FREEWAY)
    roads.edges = []
    for name, y in (("right", 0.0), ("left", WIDTH)):
        roads.lanes[f"{name} 0"], roads.lanes[f"{name} 1"] = straight(0, y, 300, y), straight(300, y, 600, y)
    roads.lanes["ramp"] = straight(0, -23.5, 100, -WIDTH)
    roads.lanes["acceleration"] = straight(100, -WIDTH, 300, -WIDTH)
    roads.follows.append(("ramp", "acceleration"))
    roads.beside.append(("acceleration", "right 0"))
    roads.types["acceleration"] = LaneType.FREEWAY
    return roads


def crossing() -> Roads:
    """Return two roads of one lane in each direction that cross at the origin.

    Lanes "in k", "out k", "ahead k", "left k", "right k", where k is the heading on the way in: 0 east, 1 north, ...
    """
    roads, box, far = Roads(), 12.0, 100.0
    for k in range(4):
        degrees = 90.0 * k
        roads.lanes[f"in {k}"] = turned(straight(-far, -HALF, -box, -HALF), degrees)
        roads.lanes[f"out {k}"] = turned(straight(box, -HALF, far, -HALF), degrees)
        roads.lanes[f"ahead {k}"] = turned(straight(-box, -HALF, box, -HALF), degrees)
        roads.lanes[f"left {k}"] = turned(arc(-box, box, box + HALF, -90, 0), degrees)
        roads.lanes[f"right {k}"] = turned(arc(-box, -box, box - HALF, 90, 0), degrees)
        for name, leaves in (("ahead", k), ("left", (k + 1) % 4), ("right", (k + 3) % 4)):
            roads.follows += [(f"in {k}", f"{name} {k}"), (f"{name} {k}", f"out {leaves}")]
    corner = np.array([[-far, -WIDTH], [-box, -WIDTH], [-WIDTH, -box], [-WIDTH, -far]])
    loop = np.concatenate([turned(corner, 90.0 * k) for k in range(4)])
    roads.edges = [np.concatenate([loop, loop[:1]])]
    return roads


def ring() -> Roads:
    """Return a roundabout of radius 15 m around the origin, entered at its lowest place, left at its highest."""
    roads = Roads()
    for k in range(4):
        roads.lanes[f"ring {k}"] = arc(0, 0, 15, 90 * k - 90, 90 * k)
        roads.follows.append((f"ring {k}", f"ring {(k + 1) % 4}"))
    roads.lanes["in"] = straight(-10, -90, -10, -25)
    roads.lanes["entry"] = arc(0, -25, 10, 180, 90)
    roads.lanes["exit"] = arc(0, 25, 10, -90, -180)
    roads.lanes["out"] = straight(-10, 25, -10, 90)
    roads.follows += [("in", "entry"), ("entry", "ring 0"), ("ring 1", "exit"), ("exit", "out")]
    return roads


def straight_loop(west: float, south: float, east: float, north: float) -> Doubles:
    """Return a closed rectangle with its inside on the left."""
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    return np.concatenate([straight(*a, *b, spacing=10.0) for a, b in pairwise(corners)])


def profile(*knots: tuple[float, float], steps: int = STEPS) -> Doubles:
    """Return (steps,) values that are linear between knots, each a time in seconds and a value."""
    return np.interp(np.arange(steps) * DT, [t for t, _ in knots], [v for _, v in knots])


def sideways(*moves: tuple[float, float, float], steps: int = STEPS) -> Doubles:
    """Return (steps,) smooth offsets to the left that start at 0: each moves from one time to another, by meters."""
    time = np.arange(steps) * DT
    offset = np.zeros(steps)
    for begin, end, meters in moves:
        t = np.clip((time - begin) / (end - begin), 0, 1)
        offset += meters * t**3 * (10 - 15 * t + 6 * t**2)
    return offset


@dataclass
class Agent:
    """An agent that moves along a line from a station on, with a speed and an offset to the left at each step."""

    line: Doubles
    start: float
    speed: ArrayLike = 0.0
    offset: ArrayLike = 0.0
    kind: AgentType = AgentType.VEHICLE
    size: tuple[float, float, float] = (4.6, 1.9, 1.6)
    present: tuple[int, int | None] = (0, None)  # first step, end
    steps: int = STEPS

    def motion(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return positions (T, 2), headings (T,) and velocities (T, 2)."""
        speed = np.broadcast_to(self.speed, self.steps).astype(float)
        offset = np.broadcast_to(self.offset, self.steps).astype(float)
        station = self.start + np.concatenate([[0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * DT)])
        pieces = np.diff(self.line, axis=0)
        keep = np.hypot(*pieces.T) > 1e-9
        points = np.concatenate([self.line[:1], self.line[1:][keep]])
        pieces = np.diff(points, axis=0)
        arcs = np.concatenate([[0], np.cumsum(np.hypot(*pieces.T))])
        middles, angles = 0.5 * (arcs[1:] + arcs[:-1]), np.unwrap(np.arctan2(pieces[:, 1], pieces[:, 0]))
        along = np.interp(station, middles, angles)
        place = np.column_stack([np.interp(station, arcs, points[:, i]) for i in range(2)])
        place += offset[:, None] * np.column_stack([-np.sin(along), np.cos(along)])
        velocity = np.gradient(place, DT, axis=0)
        moves = np.hypot(*velocity.T) > 0.2
        heading = np.where(moves, np.arctan2(velocity[:, 1], velocity[:, 0]), along)
        return place, heading, velocity


def make_scenario(
    roads: Roads | RoadMap,
    *agents: Agent,
    lights: Mapping[str, int | Sequence[int]] | None = None,
    **others: Any,
) -> Scenario:
    """Return a scenario with these agents, of which the first is the self-driving car, and lights by lane."""
    lights = lights or {}
    road_map = roads.map() if isinstance(roads, Roads) else roads
    numbers = [roads.number(name) for name in lights] if isinstance(roads, Roads) else []
    count, steps = len(agents), agents[0].steps
    positions, velocities = np.zeros((count, steps, 3), np.float32), np.zeros((count, steps, 2), np.float32)
    headings, valid = np.zeros((count, steps), np.float32), np.zeros((count, steps), np.bool_)
    for i, agent in enumerate(agents):
        valid[i, slice(*agent.present)] = True
        place, heading, velocity = agent.motion()
        positions[i, valid[i], :2], velocities[i, valid[i]] = place[valid[i]], velocity[valid[i]]
        headings[i, valid[i]] = heading[valid[i]]
    states = np.zeros((len(lights), steps), np.uint8)
    for row, state in zip(states, lights.values(), strict=True):
        row[:] = state
    scenario = Scenario(
        id="stage",
        source="handmade",
        tags=(),
        dt=DT,
        current_step=min(10, steps - 1),
        map=road_map,
        agent_ids=np.arange(count, dtype=np.int64),
        agent_types=np.array([agent.kind for agent in agents], np.uint8),
        sizes=np.array([agent.size for agent in agents], np.float32),
        positions=positions,
        headings=headings,
        velocities=velocities,
        valid=valid,
        sdc=0,
        predict=np.zeros(0, np.int32),
        light_lanes=np.array(numbers, np.int32),
        light_stops=np.array([road_map.polyline(n)[0] for n in numbers], np.float32).reshape(-1, 3),
        light_states=states,
    )
    scenario.require_sound()
    return Scenario(**{**scenario.__dict__, **others}) if others else scenario


RED, GREEN, ARROW, PERMITTED = LightState.STOP, LightState.GO, LightState.ARROW_GO, LightState.FLASHING_CAUTION
