"""The driving environments of jobs: `drive:town`, `drive:FILE.pack`, `drive:generate:town?count=24`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from roadworthy.config import Layer, resolve
from roadworthy.scenario.pack import Pack
from roadworthy.sim.adapters.gymnasium import DriveGymEnv
from roadworthy.sim.config import SimConfig
from roadworthy.sources import parse_source

TOWN = "generate:town?count=24&seed=7"


class DriveJobEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One car; the info of the last step of an episode has its figures as outcomes, with the score as `success`."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            drive = self.env.unwrapped.drive  # type: ignore[attr-defined]
            ended = drive.ended_episodes()
            figures = dict(zip(drive.figure_names, ended.figures[-1].tolist(), strict=True)) if len(ended) else {}
            outcomes = {name: value for name, value in figures.items() if np.isfinite(value)}
            info = {**info, "outcomes": {**outcomes, "success": outcomes.get("score")}}
        return observation, reward, terminated, truncated, info


def make_drive(name: str, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """Make an env with one car; arguments are settings of the simulation, nested or with dots in their names."""
    layers = [Layer("arguments", _tree(key, value)) for key, value in arguments.items()]
    config = resolve(SimConfig, [Layer("drive", {"control": {"who": "sdc"}}), *layers]).config
    source = parse_source(TOWN if name == "town" else name, "environment")
    pack = Pack(source.fetch())
    scenarios = None if source.tag is None else pack.select(source.tag).tolist()
    return DriveJobEnv(DriveGymEnv(pack, config, scenarios=scenarios))


def _tree(key: str, value: Any) -> Mapping[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    tree: Mapping[str, Any] = value
    return tree
