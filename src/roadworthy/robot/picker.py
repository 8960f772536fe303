"""A scripted policy for the table-top task: look once, then reach, grasp, lift, carry and release.

The outcomes of an episode show why it failed: it does not move if it did not find the object (too dark, or
overexposed), it grasps beside the object if the camera has moved or the object is out of reach, and it drops a slippery
object on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.policy.protocol import Batch
from roadworthy.robot import scene
from roadworthy.robot.perception import Sighting, find, object_named

ABOVE_M, CARRY_M, RELEASE_M = 0.13, 0.16, 0.035
NEAR_M, NEAR_RAD = 0.008, 0.08
MAX_STAGE_STEPS = 30  # after which the next stage starts in any case
CLOSING_STEPS, OPENING_STEPS = 10, 8

Action = NDArray[np.float32]


@dataclass(frozen=True)
class Stage:
    """A stage of the plan: a target, an opening, and the minimum number of steps at the target."""

    place: tuple[float, float, float, float]  # x, y, z, yaw
    opening: float
    steps: int = 0


class ScriptedPicker:
    """Moves each gripper by a plan that it makes from the first picture of the episode."""

    def __init__(self) -> None:
        self._plans: dict[int, list[Stage]] = {}
        self._waited: dict[int, int] = {}

    def act(self, batch: Batch) -> list[Action]:
        """Return the next target of each gripper."""
        actions = []
        for k, row in enumerate(batch.rows.tolist()):
            observation = {name: values[k] for name, values in batch.observations.items()}
            if batch.steps[k] == 0:
                instruction = batch.instructions[k] if batch.instructions is not None else None
                name = object_named(instruction or "")
                seen = find(observation["first_picture"], name) if name else None
                self._plans[row] = [] if name is None or seen is None else plan(name, seen)
                self._waited[row] = 0
            actions.append(self._act(row, observation["gripper"]))
        return actions

    def _act(self, env: int, at: NDArray[Any]) -> Action:
        stages = self._plans[env]
        if not stages:
            return action((*scene.HOME_M, 0.0), scene.OPENING_M[1])
        stage = stages[0]
        self._waited[env] += 1
        away = np.abs(at[:4] - stage.place)
        has_arrived = bool((away[:3] < NEAR_M).all() and away[3] < NEAR_RAD)
        if len(stages) > 1 and self._waited[env] > (stage.steps if has_arrived else MAX_STAGE_STEPS):
            stages.pop(0)
            self._waited[env] = 0
        return action(stage.place, stage.opening)


def plan(name: str, seen: Sighting) -> list[Stage]:
    """Return the stages from above the object to the tray and away from it."""
    x, y = seen.x, seen.y
    yaw, shut, wide = seen.yaw, scene.OPENING_M[0], scene.OPENING_M[1]
    grasp_z = max(scene.REACH_LOW_M[2], scene.THINGS[name].height - 0.012)
    tray_x, tray_y = scene.TRAY_AT_M
    return [
        Stage((x, y, ABOVE_M, yaw), wide),
        Stage((x, y, grasp_z, yaw), wide),
        Stage((x, y, grasp_z, yaw), shut, CLOSING_STEPS),
        Stage((x, y, CARRY_M, yaw), shut),
        Stage((tray_x, tray_y, CARRY_M, 0.0), shut),
        Stage((tray_x, tray_y, grasp_z + RELEASE_M - 0.02, 0.0), shut),
        Stage((tray_x, tray_y, grasp_z + RELEASE_M - 0.02, 0.0), wide, OPENING_STEPS),
        Stage((tray_x, tray_y, CARRY_M, 0.0), wide),
    ]


def action(place: Sequence[float], opening: float) -> Action:
    """Return a position and an opening as an action, clipped to the reach of the gripper."""
    low = np.array([*scene.REACH_LOW_M, -scene.REACH_YAW_RAD, scene.OPENING_M[0]])
    high = np.array([*scene.REACH_HIGH_M, scene.REACH_YAW_RAD, scene.OPENING_M[1]])
    scaled = 2.0 * (np.array([*place, opening]) - low) / (high - low) - 1.0
    return np.clip(scaled, -1.0, 1.0).astype(np.float32)
