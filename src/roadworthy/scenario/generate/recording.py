"""Recordings: traffic on a stage, cut into scenarios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.roster import Person
from roadworthy.scenario.generate.signals import light_states, walk_seconds
from roadworthy.scenario.generate.stage import Parked, Stage
from roadworthy.scenario.generate.traffic.simulate import simulate
from roadworthy.scenario.generate.traffic.tables import RoadTables, lane_count, road_tables
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.schema import AgentType, RoadMap, Scenario, read_only

AGENT_TYPES = {Kind.CAR: AgentType.VEHICLE, Kind.CYCLIST: AgentType.CYCLIST, Kind.PEDESTRIAN: AgentType.PEDESTRIAN}
CURRENT_STEP = 10  # 1.1 s of history at 10 Hz
FEWEST_STEPS = 5  # who is there for less is left out
PREDICTED = 8  # at most so many agents are to be predicted


@dataclass(frozen=True, eq=False)
class Recording:
    """All that moved and shone on a stage, from its first step to its last."""

    stage: Stage
    tables: RoadTables
    motion: NDArray[np.void]  # (users, T) MOTION
    lights: NDArray[np.uint8]


def record(stage: Stage) -> Recording:
    """Let traffic run on a stage."""
    tables = road_tables(stage.layout, stage.walks, stage.nudges)
    lights = light_states(stage.network, tables, stage.offsets, stage.steps, stage.dt)
    walking = walk_seconds(stage.network, tables, stage.offsets, stage.steps, stage.dt)
    owners = np.repeat(np.arange(lane_count(tables)), np.diff(tables.lanes["zebra"]))
    zebra_lanes = np.column_stack([tables.zebras["zebra"], owners, np.arange(len(owners))]).astype(np.int64)
    motion = simulate(tables, stage.roster.users(), lights, walking, zebra_lanes, stage.steps)
    return Recording(stage, tables, motion, lights)


def cut(
    recording: Recording, road_map: RoadMap, first: int, steps: int, *, id: str = "", tags: tuple[str, ...] = ()
) -> Scenario:
    """The scenario from step `first` on. The agents' order says nothing about who they are."""
    stage = recording.stage
    motion = recording.motion[:, first : first + steps]
    chosen = np.flatnonzero(motion["present"].sum(axis=1) >= FEWEST_STEPS)
    people = [stage.roster.people[i] for i in chosen]
    moving, n = len(chosen), len(chosen) + len(stage.parked)
    bodies: list[Person | Parked] = [*people, *stage.parked]
    sizes = np.array([[body.length, body.width, body.height] for body in bodies], np.float32)
    types = np.array([AGENT_TYPES[p.kind] for p in people] + [AgentType.VEHICLE] * len(stage.parked), np.uint8)
    x, y, heading, speed = (np.zeros((n, steps)) for _ in range(4))
    valid = np.ones((n, steps), np.bool_)
    for values, name in ((x, "x"), (y, "y"), (heading, "heading"), (speed, "v"), (valid, "present")):
        values[:moving] = motion[name][chosen]
    for row, car in enumerate(stage.parked, start=moving):
        x[row], y[row], heading[row] = car.pose.x, car.pose.y, car.pose.heading
    heading = (heading + np.pi) % (2 * np.pi) - np.pi
    height = np.broadcast_to(sizes[:, 2:3] / 2, (n, steps))
    present = valid[..., None]
    positions = (np.stack([x, y, height], axis=2) * present).astype(np.float32)
    velocities = (speed[..., None] * np.stack([np.cos(heading), np.sin(heading)], axis=2) * present).astype(np.float32)
    order = np.random.default_rng([first, n, stage.roster.people[stage.sdc].seed]).permutation(n)
    sdc = int(np.flatnonzero(order == np.searchsorted(chosen, stage.sdc))[0])
    current_step = min(CURRENT_STEP, steps - 1)
    scenario = Scenario(
        id=id,
        source="generated",
        tags=tags,
        dt=stage.dt,
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
    """The moving agents nearest to the self-driving car."""
    away = np.linalg.norm(positions[:, step, :2] - positions[sdc, step, :2], axis=1)
    moves = (np.abs(velocities).sum(axis=2).max(axis=1) > 0.5) & valid[:, step] & valid[:, -1]
    moves[sdc] = False
    candidates = np.flatnonzero(moves)
    return candidates[np.argsort(away[candidates], kind="stable")][:PREDICTED].astype(np.int32)
