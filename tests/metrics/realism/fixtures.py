"""The reference's figures for synthetic scenarios, which lie beside the project, and the scenarios as WOMD messages."""

from __future__ import annotations

import json
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.metrics.realism import Rollouts
from roadworthy.scenario.importers.womd import read_scenario
from roadworthy.scenario.schema import Scenario
from tests.scenario.importers.encoder import WOMD

FOLDER = Path(os.environ.get("ROADWORTHY_SHARED") or Path(__file__).parents[4] / "shared") / "realism"
VARIANTS = {
    "": ("a_log_raw", "b_mild_noise"),
    "_gaps": ("e_spread", "f_exact"),
    "_lights": ("e_spread", "g_creep"),
}
CASES = [(tag, variant) for tag, variants in VARIANTS.items() for variant in variants]
CONFIGS = {"2025_sim_agents": "2025", "2024": "2024", "2025_scenario_gen": "2025_scenario_gen"}


def is_there() -> bool:
    return FOLDER.is_dir()


def arrays(name: str) -> dict[str, Any]:
    with np.load(FOLDER / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def expected(tag: str, variant: str) -> dict[str, dict[str, Any]]:
    """What the reference gives, by configuration; `..._buckets` are the leaderboard's fields."""
    found = json.loads((FOLDER / f"metrics{tag}.json").read_text())["results"][variant]
    generation = FOLDER / f"scenario_gen{tag}.json"
    if generation.exists():
        found |= json.loads(generation.read_text())["results"][variant]
    return found


def rollouts(tag: str, variant: str) -> Rollouts:
    data = arrays(f"rollouts_{variant}{tag}")
    return Rollouts.of(*(data[name] for name in ("object_id", "x", "y", "z", "heading")))


@cache
def scenario(tag: str) -> Scenario:
    """The scenario as it is imported."""
    return read_scenario(message(tag).SerializeToString(), Counter())


def message(tag: str) -> Any:
    """The scenario as a message of the dataset."""
    data = arrays(f"scenario{tag}")
    made = WOMD["Scenario"](
        scenario_id=f"synthetic{tag.replace('_', '-') or '-crossing'}",
        current_time_index=int(data["current_time_index"]),
        sdc_track_index=int(data["sdc_track_index"]),
    )
    made.timestamps_seconds.extend(data["timestamps"].tolist())
    for index in data["tracks_to_predict"].tolist():
        made.tracks_to_predict.add(track_index=index)
    for agent, identity in enumerate(data["object_id"].tolist()):
        track = made.tracks.add(id=identity, object_type=int(data["object_type"][agent]))
        for step in range(data["valid"].shape[1]):
            state = track.states.add(valid=bool(data["valid"][agent, step]))
            for name in ("center_x", "center_y", "center_z", "length", "width", "height", "heading"):
                setattr(state, name, float(data[name][agent, step]))
            state.velocity_x, state.velocity_y = (float(data[f"velocity_{axis}"][agent, step]) for axis in "xy")
    for number, kind in enumerate(data["map_kind"].tolist()):
        _add_feature(made, data, number, kind)
    for _ in range(data["valid"].shape[1]):
        made.dynamic_map_states.add()
    for step, lane, state, x, y, z in data["signal"].tolist():
        shown = made.dynamic_map_states[int(step)].lane_states.add(lane=int(lane), state=int(state))
        shown.stop_point.x, shown.stop_point.y, shown.stop_point.z = x, y, z
    return made


def _add_feature(made: Any, data: dict[str, Any], number: int, kind: str) -> None:
    feature = made.map_features.add(id=int(data["map_id"][number]))
    holder = getattr(feature, kind)
    points = data["map_xyz"][data["map_start"][number] : data["map_start"][number + 1]].tolist()
    names = {field.name for field in holder.DESCRIPTOR.fields}
    if "type" in names:
        holder.type = int(data["map_type"][number])
    if "position" in names:
        holder.position.x, holder.position.y, holder.position.z = points[0]
        return
    line = holder.polyline if "polyline" in names else holder.polygon
    for x, y, z in points:
        line.add(x=x, y=y, z=z)
