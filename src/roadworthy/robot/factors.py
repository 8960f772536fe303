"""Factors that vary between episodes of the table-top task, with their ranges and defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.plugins import nearest
from roadworthy.robot.scene import THINGS

RANGES = {
    "light_intensity": (0.0, 2000.0),
    "object_x": (-0.30, 0.10),
    "object_y": (-0.22, 0.22),
    "object_yaw": (-math.pi, math.pi),
    "friction": (0.02, 1.5),
    "camera_shift": (-0.10, 0.10),
    "camera_tilt": (-5.0, 5.0),
}
DRAWN = {"object_x": (-0.20, 0.08), "object_y": (-0.14, 0.14), "object_yaw": (-math.pi, math.pi)}


@dataclass(frozen=True)
class Factors:
    """Values of the factors; None is drawn for each episode from the range in DRAWN."""

    light_intensity: float = 1000.0  # of the lamp: 0 is dark; above about 1600 bright objects are overexposed
    object: str = "box"  # box, can or ball
    object_x: float | None = None  # m along the table; the gripper reaches down to -0.24
    object_y: float | None = None  # m, increasing away from the front camera
    object_yaw: float | None = None  # rad
    friction: float = 0.8  # sliding friction of the object
    camera_shift: float = 0.0  # m along x from the calibrated position of the front camera; unknown to the policy
    camera_tilt: float = 0.0  # degrees upward from the calibrated direction

    def __post_init__(self) -> None:
        if self.object not in THINGS:
            raise UsageError(f"object is {self.object!r}, expected one of {', '.join(THINGS)}")
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is None and name in DRAWN:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not low <= value <= high:
                raise UsageError(f"{name} is {value!r}, expected a number from {low:g} to {high:g}")

    def changed(self, given: Mapping[str, Any]) -> Factors:
        """Return these factors with some of them replaced."""
        known = [field.name for field in fields(self)]
        for name in given:
            if name not in known:
                raise UsageError(f"unknown factor {name!r}; {nearest(str(name), known)}")
        return replace(self, **given)

    def drawn(self, draws: np.random.Generator) -> Factors:
        """Return all factors of one episode. Every draw is made, so that given values do not change the others."""
        values = {name: float(draws.uniform(*bounds)) for name, bounds in DRAWN.items()}
        return self.changed({name: value for name, value in values.items() if getattr(self, name) is None})
