"""Distances of simulated agents from the recorded ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.metrics.realism.scene import Scene


def displacement_errors(scene: Scene) -> NDArray[np.float64]:
    """Return the mean 3-D distance over all recorded steps in m, (R, E); the mean includes history, where it is 0."""
    log, simulated, chosen = scene.log, scene.simulated, slice(scene.evaluated)
    square = sum(
        np.square(there[:, chosen] - here[:, chosen])
        for there, here in ((simulated.x, log.x), (simulated.y, log.y), (simulated.z, log.z))
    )
    valid = log.valid[chosen]
    distance = np.where(valid, np.sqrt(square), np.float32(0.0))
    return distance.sum(axis=2, dtype=np.float64) / valid.sum(axis=1)
