"""Setups: for every behavior class a network on which it can occur, and road users that cause it.

A setup only creates the scene. Whether the behavior occurred is decided by its detector, which does not know the
setups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.setups import freeway, junction, street


@dataclass(frozen=True)
class Setup:
    """How the scenes of a behavior class are created."""

    build: Callable[[np.random.Generator], Network]
    populate: Callable[[Scene], None]  # adds the self-driving car and other road users


SETUPS: Mapping[str, Setup] = {
    "hard_stop": Setup(street.build_any, street.populate_hard_stop),
    "stop_and_go": Setup(freeway.build, freeway.populate_stop_and_go),
    "highway_straight": Setup(freeway.build, freeway.populate_straight),
    "lane_change": Setup(street.build_wide, street.populate_lane_change),
    "cut_in": Setup(street.build_wide, street.populate_cut_in),
    "merge": Setup(freeway.build, freeway.populate_merge),
    "roundabout": Setup(junction.build_roundabout, junction.populate_roundabout),
    "unprotected_left": Setup(junction.build_unprotected, junction.populate_unprotected_left),
    "unprotected_right": Setup(junction.build_stopping, junction.populate_unprotected_right),
    "protected_left": Setup(junction.build_protected, junction.populate_protected_left),
    "pedestrian_crossing": Setup(street.build_crosswalk, street.populate_pedestrian),
    "nudge_parked": Setup(street.build_parking, street.populate_nudge),
}
