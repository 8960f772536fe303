"""Setups: for every behavior class a network on which it can happen, and the people who make it happen.

A setup only sets the stage. Whether the behavior came about is for its detector to say, which knows nothing of setups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.setups import freeway, junction, street
from roadworthy.scenario.generate.stage import Stage


@dataclass(frozen=True)
class Setup:
    """How a behavior class is brought about."""

    build: Callable[[np.random.Generator], Network]
    cast: Callable[[Stage], None]  # puts the self-driving car and its counterparts on the stage


SETUPS: Mapping[str, Setup] = {
    "hard_stop": Setup(street.build_any, street.cast_hard_stop),
    "stop_and_go": Setup(freeway.build, freeway.cast_stop_and_go),
    "highway_straight": Setup(freeway.build, freeway.cast_straight),
    "lane_change": Setup(street.build_wide, street.cast_lane_change),
    "cut_in": Setup(street.build_wide, street.cast_cut_in),
    "merge": Setup(freeway.build, freeway.cast_merge),
    "roundabout": Setup(junction.build_roundabout, junction.cast_roundabout),
    "unprotected_left": Setup(junction.build_unprotected, junction.cast_unprotected_left),
    "unprotected_right": Setup(junction.build_stopping, junction.cast_unprotected_right),
    "protected_left": Setup(junction.build_protected, junction.cast_protected_left),
    "pedestrian_crossing": Setup(street.build_crosswalk, street.cast_pedestrian),
    "nudge_parked": Setup(street.build_parking, street.cast_nudge),
}
