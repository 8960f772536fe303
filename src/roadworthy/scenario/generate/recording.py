"""Simulate traffic in a scene, and extract scenarios from the recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.road_users import RoadUser, user_records
from roadworthy.scenario.generate.scene import Parked, Scene
from roadworthy.scenario.generate.signals import light_states, walk_seconds
from roadworthy.scenario.generate.traffic.simulate import simulate
from roadworthy.scenario.generate.traffic.tables import RoadTables, lane_count, road_tables
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.schema import AgentType, RoadMap, Scenario, read_only

AGENT_TYPES = {Kind.CAR: AgentType.VEHICLE, Kind.CYCLIST: AgentType.CYCLIST, Kind.PEDESTRIAN: AgentType.PEDESTRIAN}
CURRENT_STEP = 10  # 1.1 s of history at 10 Hz
FEWEST_STEPS = 5  # agents that are present for fewer steps are dropped
PREDICTED = 8  # largest number of agents to predict


@dataclass(frozen=True, eq=False)
class Recording:
    """The motion and the lights of a scene, from its first step to its last."""

    scene: Scene
    tables: RoadTables
    motion: NDArray[np.void]  # (users, T) MOTION
    lights: NDArray[np.uint8]


def record(scene: Scene) -> Recording:
    """Simulate the traffic of a scene."""
    tables = road_tables(scene.layout, scene.walks, scene.nudges)
    lights = light_states(scene.network, tables, scene.offsets, scene.steps, scene.dt)
    walking = walk_seconds(scene.network, tables, scene.offsets, scene.steps, scene.dt)
    owners = np.repeat(np.arange(lane_count(tables)), np.diff(tables.lanes["crosswalk"]))
    crosswalk_lanes = np.column_stack([tables.lane_crosswalks["crosswalk"], owners, np.arange(len(owners))]).astype(
        np.int64
    )
    motion = simulate(tables, user_records(scene.road_users), lights, walking, crosswalk_lanes, scene.steps)
    return Recording(scene, tables, motion, lights)


def cut(
    recording: Recording, road_map: RoadMap, first: int, steps: int, *, id: str = "", tags: tuple[str, ...] = ()
) -> Scenario:
    """Return the scenario from step `first` on. The order of the agents does not reveal their roles."""
    scene = recording.scene
    motion = recording.motion[:, first : first + steps]
    chosen = np.flatnonzero(motion["present"].sum(axis=1) >= FEWEST_STEPS)
    users = [scene.road_users[i] for i in chosen]
    moving, n = len(chosen), len(chosen) + len(scene.parked)
    bodies: list[RoadUser | Parked] = [*users, *scene.parked]
    sizes = np.array([[body.length, body.width, body.height] for body in bodies], np.float32)
    types = np.array([AGENT_TYPES[p.kind] for p in users] + [AgentType.VEHICLE] * len(scene.parked), np.uint8)
    x, y, heading, speed = (np.zeros((n, steps)) for _ in range(4))
    valid = np.ones((n, steps), np.bool_)
    for values, name in ((x, "x"), (y, "y"), (heading, "heading"), (speed, "v"), (valid, "present")):
        values[:moving] = motion[name][chosen]
    for row, car in enumerate(scene.parked, start=moving):
        x[row], y[row], heading[row] = car.pose.x, car.pose.y, car.pose.heading
    heading = (heading + np.pi) % (2 * np.pi) - np.pi
    height = np.broadcast_to(sizes[:, 2:3] / 2, (n, steps))
    present = valid[..., None]
    positions = (np.stack([x, y, height], axis=2) * present).astype(np.float32)
    velocities = (speed[..., None] * np.stack([np.cos(heading), np.sin(heading)], axis=2) * present).astype(np.float32)
    order = np.random.default_rng([first, n, scene.road_users[scene.sdc].seed]).permutation(n)
    sdc = int(np.flatnonzero(order == np.searchsorted(chosen, scene.sdc))[0])
    current_step = min(CURRENT_STEP, steps - 1)
    scenario = Scenario(
        id=id,
        source="generated",
        tags=tags,
        dt=scene.dt,
        current_step=current_step,
        map=road_map,
        agent_ids=np.arange(n, dtype=np.int64),
        agent_types=types[order],
        sizes=sizes[order],
        positions=positions[order],
        headings=(heading * valid).astype(np.float32)[order],
        velocities=velocities[order],
        valid=valid[order],
        sdc=sdc,
        predict=_to_predict(positions[order], velocities[order], valid[order], sdc, current_step),
        light_lanes=np.flatnonzero(recording.tables.lanes["light"] >= 0).astype(np.int32),
        light_stops=_light_stops(recording),
        light_states=np.ascontiguousarray(recording.lights[:, first : first + steps]),
    )
    return read_only(scenario)


def _light_stops(recording: Recording) -> NDArray[np.float32]:
    lanes, samples = recording.tables.lanes[:-1], recording.tables.samples
    starts = samples[lanes["sample"][lanes["light"] >= 0]]
    places = [starts["x"], starts["y"], np.zeros(len(starts))]
    return np.column_stack(places).astype(np.float32)


def _to_predict(
    positions: NDArray[np.float32], velocities: NDArray[np.float32], valid: NDArray[np.bool_], sdc: int, step: int
) -> NDArray[np.int32]:
    """Return the moving agents nearest to the self-driving car."""
    away = np.linalg.norm(positions[:, step, :2] - positions[sdc, step, :2], axis=1)
    moves = (np.abs(velocities).sum(axis=2).max(axis=1) > 0.5) & valid[:, step] & valid[:, -1]
    moves[sdc] = False
    candidates = np.flatnonzero(moves)
    return candidates[np.argsort(away[candidates], kind="stable")][:PREDICTED].astype(np.int32)
