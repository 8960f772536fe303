"""Recordings: traffic on a stage, cut into scenarios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.signals import light_states, walk_seconds
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.generate.traffic.simulate import simulate
from roadworthy.scenario.generate.traffic.tables import RoadTables, lane_count, road_tables
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.schema import AgentType, RoadMap, Scenario

AGENT_TYPES = {Kind.CAR: AgentType.VEHICLE, Kind.CYCLIST: AgentType.CYCLIST, Kind.PEDESTRIAN: AgentType.PEDESTRIAN}
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


def cut(recording: Recording, road_map: RoadMap, first: int, steps: int, *, id: str, tags: tuple[str, ...], current_step: int) -> Scenario:
    """The scenario from step `first` on; the agents' order says nothing about who they are."""
    stage, motion = recording.stage, recording.motion
    window = slice(first, first + steps)
    people = stage.roster.people
    chosen = np.flatnonzero(motion["there"][:, window].sum(axis=1) >= FEWEST_STEPS)
    there = motion["there"][chosen, window]
    parked = stage.parked
    moving, standing = len(chosen), len(parked)
    n = moving + standing
    positions = np.zeros((n, steps, 3), np.float32)
    headings, velocities = np.zeros((n, steps), np.float32), np.zeros((n, steps, 2), np.float32)
    valid = np.ones((n, steps), np.bool_)
    valid[:moving] = there
    sizes = np.array(
        [[p.length, p.width, p.height] for p in [*(people[i] for i in chosen), *parked]], np.float32
    ).reshape(n, 3)
    x, y, heading, v = (motion[name][chosen, window] for name in ("x", "y", "heading", "v"))
    heading = (heading + np.pi) % (2 * np.pi) - np.pi
    positions[:moving, :, 0], positions[:moving, :, 1] = x, y
    headings[:moving] = heading
    velocities[:moving, :, 0], velocities[:moving, :, 1] = v * np.cos(heading), v * np.sin(heading)
    for row, car in enumerate(parked, start=moving):
        positions[row, :, :2] = car.pose.x, car.pose.y
        headings[row] = (car.pose.heading + np.pi) % (2 * np.pi) - np.pi
    positions[:, :, 2] = sizes[:, None, 2] / 2
    for values in (positions, headings, velocities):
        values[~valid] = 0.0
    types = [AGENT_TYPES[people[i].kind] for i in chosen] + [AgentType.VEHICLE] * standing
    order = np.random.default_rng([first, n, stage.roster.people[stage.sdc].seed % 2**32]).permutation(n)
    sdc = int(np.flatnonzero(order == np.flatnonzero(chosen == stage.sdc)[0])[0])
    scenario = Scenario(
        id=id,
        source="generated",
        tags=tags,
        dt=stage.dt,
        current_step=min(current_step, steps - 1),
        map=road_map,
        agent_ids=np.arange(n, dtype=np.int64),
        agent_types=np.array(types, np.uint8)[order],
        sizes=sizes[order],
        positions=positions[order],
        headings=headings[order],
        velocities=velocities[order],
        valid=valid[order],
        sdc=sdc,
        predict=_to_predict(positions[order], velocities[order], valid[order], sdc, min(current_step, steps - 1)),
        light_lanes=np.flatnonzero(recording.tables.lanes["light"] >= 0).astype(np.int32),
        light_stops=_light_stops(recording),
        light_states=np.ascontiguousarray(recording.lights[:, window]),
    )
    return scenario


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
