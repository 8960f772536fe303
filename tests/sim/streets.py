"""Small road networks, and worlds of agents that follow routes on them, for tests of routes, spawning and traffic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.kernels import entry
from roadworthy.scenario.schema import AgentType, FeatureKind, LaneType, RoadMap
from roadworthy.sim import state
from roadworthy.sim.config import Mode, OpenConfig, SimConfig
from roadworthy.sim.params import params
from roadworthy.sim.rules.collision import collides
from roadworthy.sim.rules.idm import move, plan
from roadworthy.sim.rules.routes import place_on_route, trace_route
from roadworthy.sim.rules.spawn import new_goal, spawn
from roadworthy.sim.state import FLAG_LINES, GOALS, Maps, Params, Scenarios, Worlds
from tests.scenario.example import map_of, pairs

TRACKED = (state.X, state.Y, state.HEADING, state.SPEED, state.ALONG, state.LATERAL, state.PATH_OFFSET)
_TRACKED = np.array(TRACKED)


def streets(*lanes: ArrayLike, successors: Sequence[tuple[int, int]] = (), **others: Any) -> RoadMap:
    """Return a map of lanes given by their points; `types` may set their LaneTypes."""
    types = others.pop("types", [LaneType.SURFACE_STREET] * len(lanes))
    features = [(FeatureKind.LANE, kind, points) for kind, points in zip(types, lanes, strict=True)]
    return map_of(features, successors=pairs(*successors), **others)


def crossing() -> RoadMap:
    """A road to the east (lanes 0, 1, 2) and one to the north (3, 4, 5); lanes 1 and 4 cross at the origin."""
    return streets(
        [[-120, 0], [-12, 0]],
        [[-12, 0], [12, 0]],
        [[12, 0], [200, 0]],
        [[0, -120], [0, -12]],
        [[0, -12], [0, 12]],
        [[0, 12], [0, 200]],
        successors=[(0, 1), (1, 2), (3, 4), (4, 5)],
        speed_limits=np.full(6, 10.0, np.float32),
    )


def open_params(agents: int = 8, **settings: Any) -> Params:
    return params(SimConfig(mode=Mode.OPEN, open=OpenConfig(agents=agents, **settings)))


def worlds_of(agents: int, seeds: Sequence[int] = (7,), goals: int = 3, haste: float = 1.0) -> Worlds:
    """Return worlds with absent vehicles of role idm; lines that nobody has set yet hold NaN or garbage."""
    count = len(seeds)
    blocks = np.full((count, GOALS + 2 * goals, agents), np.nan, np.float32)
    flags = np.full((count, FLAG_LINES, agents), -1234567, np.int32)
    flags[:, state.TYPE], flags[:, state.ROLE] = AgentType.VEHICLE, state.IDM
    flags[:, [state.IS_PRESENT, state.SPAWNS, state.ROUTE_LENGTH, state.ROUTE_PLACE]] = 0
    clocks = np.zeros((count, state.CLOCK_COLUMNS), np.int32)
    clocks[:, state.AGENT_COUNT] = agents
    hidden = np.full((count, len(state.HIDDEN_FACTORS)), haste, np.float32)
    given = {"agents": blocks, "agent_flags": flags, "clocks": clocks, "hidden": hidden}
    given["seeds"] = np.array(seeds, np.uint64)
    given["order"] = np.zeros((count, agents), np.int32)
    rest = np.zeros((count, 1, 1), np.float32)
    return Worlds(**{name: given.get(name, rest) for name in Worlds._fields})


def put(
    worlds: Worlds,
    maps: Maps,
    a: int,
    route: Sequence[int],
    arc: float,
    speed: float = 0.0,
    offset: float = 0.0,
    size: tuple[float, float] = (4.5, 2.0),
    w: int = 0,
) -> None:
    """Put an agent on the first lane of a route, at a distance along it."""
    agents, flags = worlds.agents[w], worlds.agent_flags[w]
    x, y, heading = along(maps, worlds.clocks[w, state.MAP], [route[0]], arc)
    pose = {state.X: x - offset * np.sin(heading), state.Y: y + offset * np.cos(heading), state.HEADING: heading}
    pose |= {state.COS: np.cos(heading), state.SIN: np.sin(heading), state.SPEED: speed, state.LENGTH: size[0]}
    pose |= {state.WIDTH: size[1], state.RADIUS: np.hypot(*size) / 2, state.PATH_ARC: arc, state.PATH_OFFSET: offset}
    pose |= {state.ACCELERATION: 0.0, state.LATERAL: 0.0, state.JERK: 0.0, state.SLOWEST: 0.0}
    for line, value in pose.items():
        agents[line, a] = value
    flags[state.IS_PRESENT, a] = 1
    flags[[state.LANE, state.SIGN_AHEAD], a] = -1
    flags[state.ROUTE_LENGTH, a], flags[state.ROUTE_PLACE, a] = len(route), 0
    flags[state.ROUTE : state.ROUTE + len(route), a] = route


def along(maps: Maps, m: int, route: Sequence[int], arc: float) -> tuple[float, float, float]:
    """Return x, y and the direction of the lane point there, in float64."""
    for lane in route[:-1]:
        length = float(maps.lane_lengths[m, lane])
        if arc <= length:
            route = [lane]
            break
        arc -= length
    points, lane = maps.lane_points[m].astype(np.float64), route[-1]
    first, last = maps.lanes[m, state.LANE_POINT_START, lane : lane + 2]
    starts = points[state.POINT_ARC, first:last] - points[state.POINT_HALF, first:last]
    point = first + max(int(np.searchsorted(starts, arc, side="right")) - 1, 0)
    cos, sin = points[[state.POINT_COS, state.POINT_SIN], point]
    past = arc - points[state.POINT_ARC, point]
    return points[state.POINT_X, point] + past * cos, points[state.POINT_Y, point] + past * sin, np.arctan2(sin, cos)


def route_of(worlds: Worlds, a: int, w: int = 0) -> list[int]:
    flags = worlds.agent_flags[w]
    return flags[state.ROUTE : state.ROUTE + flags[state.ROUTE_LENGTH, a], a].tolist()


def drive(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, p: Params, steps: int, script: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
    """Run world 0. script: (steps, k, 3) x, y and speed of the first k agents, which drive straight.

    Return (steps, len(TRACKED), agents) what agents did, (steps, agents) who was present, and who collided.
    """
    count = worlds.agents.shape[2]
    track = np.full((steps, len(TRACKED), count), np.nan, np.float32)
    present, collided = np.zeros((steps, count), np.bool_), np.zeros((steps, count), np.bool_)
    told = np.zeros((steps, 0, 3), np.float32) if script is None else script.astype(np.float32)
    _run(worlds, maps, scenarios, p, told, track, present, collided)
    return track, present, collided


@entry
def _run(worlds, maps, scenarios, p, told, track, present, collided):
    agents, flags, clock = worlds.agents[0], worlds.agent_flags[0], worlds.clocks[0]
    count, scripted = clock[state.AGENT_COUNT], told.shape[1]
    for step in range(len(track)):
        for a in range(scripted):
            place_on_route(worlds, maps, 0, a)
        for a in range(scripted, count):
            if flags[state.IS_PRESENT, a]:
                plan(worlds, maps, scenarios, 0, a, p)
        clock[state.STEP] += 1
        for a in range(count):
            if a < scripted:
                agents[state.X, a], agents[state.Y, a] = told[step, a, 0], told[step, a, 1]
                agents[state.SPEED, a] = told[step, a, 2]
            elif flags[state.IS_PRESENT, a]:
                move(worlds, maps, 0, a, scenarios.dt[0], p)
        for a in range(count):
            for k in range(len(_TRACKED)):
                track[step, k, a] = agents[_TRACKED[k], a]
            present[step, a] = flags[state.IS_PRESENT, a] != 0
            collided[step, a] = collides(agents, flags, a, count)


@entry
def spawn_all(worlds, maps, scenarios, p):
    """Spawn every agent of every world, one after another; return how many found a place."""
    placed = 0
    for w in range(len(worlds.clocks)):
        for a in range(worlds.clocks[w, state.AGENT_COUNT]):
            placed += spawn(worlds, maps, scenarios, w, a, p)
    return placed


@entry
def trace_all(worlds, maps, scenarios):
    for a in range(worlds.clocks[0, state.AGENT_COUNT]):
        trace_route(worlds, maps, scenarios, 0, a)


@entry
def add_goal(worlds, maps, a, p):
    return new_goal(worlds, maps, 0, a, p)
