"""The measured quantities, and all observations of them in many scenarios."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Bools

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Quantity:
    """A kind of observation."""

    title: str
    unit: str
    per: str  # what one observation stands for


QUANTITIES: dict[str, Quantity] = {
    "speed_freeway": Quantity("speed on freeways", "m/s", "second of driving"),
    "speed_street": Quantity("speed on streets", "m/s", "second of driving"),
    "free_speed_freeway": Quantity("free speed over the limit, freeways", "of the limit", "driver"),
    "free_speed_street": Quantity("free speed over the limit, streets", "of the limit", "driver"),
    "headway_freeway": Quantity("time headway, freeways", "s", "follower and leader"),
    "headway_street": Quantity("time headway, streets", "s", "follower and leader"),
    "gap_freeway": Quantity("gap to the leader, freeways", "m", "follower and leader"),
    "gap_street": Quantity("gap to the leader, streets", "m", "follower and leader"),
    "standing_gap": Quantity("gap between standing cars", "m", "follower and leader"),
    "acceleration": Quantity("longitudinal acceleration", "m/s²", "second of driving"),
    "jerk": Quantity("longitudinal jerk over 1 s, absolute", "m/s³", "second of driving"),
    "stop_deceleration": Quantity("mean deceleration to a stand", "m/s²", "stop"),
    "stop_peak_deceleration": Quantity("peak deceleration to a stand", "m/s²", "stop"),
    "start_acceleration": Quantity("mean acceleration from rest to 5 m/s", "m/s²", "start"),
    "bend_lateral": Quantity("peak lateral acceleration in bends", "m/s²", "bend"),
    "lane_change_duration": Quantity("duration of lane changes", "s", "lane change"),
    "accepted_roundabout": Quantity("accepted gaps, roundabout entries", "s", "entry"),
    "rejected_roundabout": Quantity("rejected gaps, roundabout entries", "s", "gap"),
    "accepted_junction": Quantity("accepted gaps, unsignalized turns and crossings", "s", "entry"),
    "rejected_junction": Quantity("rejected gaps, unsignalized turns and crossings", "s", "gap"),
    "encroachment": Quantity("post-encroachment time at crossing paths", "s", "meeting"),
    "walking_speed": Quantity("walking speed on crosswalks", "m/s", "pedestrian"),
    "cycling_speed": Quantity("cycling speed", "m/s", "cyclist"),
}

# Observations that belong to those of the same row, for plots of one against the other.
COMPANIONS: dict[str, tuple[str, ...]] = {
    "bend_lateral": ("bend_speed", "bend_radius"),
    "gap_freeway": ("gap_freeway_speed",),
    "gap_street": ("gap_street_speed",),
}
TOTALS = ("freeway_km", "street_km", "freeway_lane_changes", "street_lane_changes")


@dataclass(frozen=True)
class Sample:
    """All observations by quantity (or companion), and totals over all driving."""

    scenario_count: int
    values: dict[str, Doubles]
    totals: dict[str, float]

    def of(self, name: str) -> Doubles:
        """Return (n,) the observations of a quantity, in the order of the scenarios."""
        return self.values[name]


@dataclass
class Collection:
    """Observations collected scenario by scenario."""

    scenario_count: int = 0
    _values: dict[str, list[Doubles]] = field(default_factory=lambda: defaultdict(list))
    _totals: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0.0))

    def add(self, *findings: dict[str, Doubles]) -> None:
        """Add the observations of a scenario."""
        for finding in findings:
            for name, values in finding.items():
                if name in self._totals:
                    self._totals[name] += float(values.sum())
                elif len(values):
                    self._values[name].append(values)

    def sample(self) -> Sample:
        names = [*QUANTITIES, *(name for names in COMPANIONS.values() for name in names)]
        values = {name: np.concatenate([np.zeros(0), *self._values[name]]) for name in names}
        return Sample(self.scenario_count, values, dict(self._totals))


def stretches(flags: Bools) -> tuple[Longs, Longs, Longs]:
    """Return agent, first step and end of every unbroken run of flags (A, T)."""
    padded = np.zeros((len(flags), flags.shape[1] + 2), np.int8)
    padded[:, 1:-1] = flags
    change = np.diff(padded, axis=1)
    agents, firsts = np.nonzero(change == 1)
    return agents, firsts, np.nonzero(change == -1)[1]
