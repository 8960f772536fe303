"""Detectors of behavior classes: what the self-driving car does, derived only from motion and map.

A detector is a function of `Tracks`. It never sees tags, ids or the source of a scenario. The definitions separate the
classes: where one behavior contains another (a merge is also a lane change), the docstrings say which one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from roadworthy.scenario.detect.encounters import nudge_parked, pedestrian_crossing
from roadworthy.scenario.detect.junctions import protected_left, roundabout, unprotected_left, unprotected_right
from roadworthy.scenario.detect.lanes import cut_in, lane_change, merge
from roadworthy.scenario.detect.pace import hard_stop, highway_straight, stop_and_go
from roadworthy.scenario.detect.tracks import Tracks
from roadworthy.scenario.schema import AgentType, Scenario

__all__ = ["BEHAVIORS", "DETECTORS", "Tracks", "detect"]

Detector = Callable[[Tracks], bool]


def _while_driving(detector: Detector) -> Detector:
    """Wrap a detector so that it sees only the steps at which there is a self-driving car."""

    @wraps(detector)
    def detects(tracks: Tracks) -> bool:
        if tracks.sdc < 0 or tracks.types[tracks.sdc] != AgentType.VEHICLE:
            return False
        present = np.flatnonzero(tracks.valid[tracks.sdc])
        if len(present) < 2 or present[-1] - present[0] + 1 != len(present):
            return False
        if len(present) < tracks.steps:
            tracks = tracks.window(int(present[0]), int(present[-1]) + 1)
        return detector(tracks)

    return detects


DETECTORS: dict[str, Detector] = {
    detector.__name__: _while_driving(detector)
    for detector in (
        hard_stop,
        stop_and_go,
        highway_straight,
        lane_change,
        cut_in,
        merge,
        roundabout,
        unprotected_left,
        unprotected_right,
        protected_left,
        pedestrian_crossing,
        nudge_parked,
    )
}

BEHAVIORS: tuple[str, ...] = tuple(DETECTORS)


def detect(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of all behavior classes that the self-driving car shows, in the order of BEHAVIORS."""
    if scenario.sdc < 0:
        return ()
    tracks = Tracks.of(scenario)
    return tuple(name for name, detects in DETECTORS.items() if detects(tracks))
