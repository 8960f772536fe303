"""A crossing with lights, two sets of 32 rollouts, and the figures of the challenge's own implementation.

The scenario is synthetic and was made for this comparison. It holds agents that come and go, one that is first there at
the current step, a closed road edge, one of a single point, and a bridge. `reference.json` tells where its figures come
from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.metrics.realism import Rollouts
from roadworthy.scenario.schema import RoadMap, Scenario

HERE = Path(__file__).parent
FIGURES: dict[str, Any] = json.loads((HERE / "reference.json").read_text())
FIRST = 11  # step that is simulated


def load_scenario(origin: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Scenario:
    """The crossing, in a frame with its origin there in the source's."""
    with np.load(HERE / "reference.npz") as file:
        data = {name: file[name] for name in file.files}
    shift = np.array(origin)
    lanes = int((data["kinds"] == 0).sum())
    pairs, unknown = np.zeros((0, 2), np.int32), np.full(lanes, np.nan, np.float32)
    road_map = RoadMap(
        origin=shift,
        points=(data["points"] - shift).astype(np.float32),
        starts=data["starts"].astype(np.int32),
        kinds=data["kinds"],
        types=data["types"],
        ids=np.arange(len(data["kinds"])) + 101,
        speed_limits=unknown,
        lane_widths=unknown,
        successors=pairs,
        left_neighbors=pairs,
        right_neighbors=pairs,
        yields=pairs,
        stop_signs=pairs,
        stop_lines=np.zeros((0, 2, 2), np.float32),
        stop_line_lanes=np.zeros(0, np.int32),
    )
    valid = data["valid"]
    scenario = Scenario(
        id="crossing",
        source="made",
        tags=(),
        dt=0.1,
        current_step=FIRST - 1,
        map=road_map,
        agent_ids=data["agent_ids"].astype(np.int64),
        agent_types=data["agent_types"],
        sizes=data["sizes"],
        positions=np.where(valid[..., None], data["positions"] - shift, 0.0).astype(np.float32),
        headings=data["headings"],
        velocities=np.zeros((*valid.shape, 2), np.float32),
        valid=valid,
        sdc=int(data["sdc"]),
        predict=data["predict"].astype(np.int32),
        light_lanes=data["light_lanes"].astype(np.int32),
        light_stops=(data["light_stops"] - shift).astype(np.float32),
        light_states=data["light_states"],
    )
    scenario.require_sound()
    return scenario


def load_rollouts(name: str) -> Rollouts:
    """`noise`: the recording with structured noise; `recording`: the recording itself, zeros where nobody is there."""
    if name == "recording":
        scenario = load_scenario()
        there = np.flatnonzero(scenario.valid[:, FIRST - 1])
        motion = [*np.moveaxis(scenario.positions, -1, 0), scenario.headings]
        return Rollouts.of(
            scenario.agent_ids[there], *(np.repeat(values[None, there, FIRST:], 32, axis=0) for values in motion)
        )
    with np.load(HERE / "reference.npz") as file:
        # Whole 1024ths, stored as differences of differences.
        motion = [file[f"rollout_{part}"].cumsum(axis=2).cumsum(axis=2) / 1024 for part in ("x", "y", "z", "heading")]
        return Rollouts.of(file["rollout_agent_ids"], *motion)
