"""Published figures of human driving, with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from roadworthy.scenario.statistics.sample import Doubles

MPH = 0.44704
FEET = 0.3048


class Statistic(Enum):
    """The statistic that a published figure states."""

    MEAN = "mean"
    P15 = "15th percentile"
    P85 = "85th percentile"
    RANGE = "usual range"  # ours: the share within it
    BELOW = "design value"  # ours: the share below it
    ABOVE = "share above"  # ours: the share above it
    CRITICAL_GAP = "critical gap"


@dataclass(frozen=True)
class Figure:
    """A published figure."""

    quantity: str  # of QUANTITIES, or of GAP_KINDS for a critical gap
    statistic: Statistic
    low: float
    high: float  # equal to `low` unless the figure is a range
    source: str  # short, for a legend
    note: str = ""
    share: float | None = None  # with ABOVE: the share
    is_checked: bool = True  # whether the figure was verified in its source's text or abstract

    def ours(self, values: Doubles) -> float | None:
        """Return the same statistic of our observations, None if there are none or another method is needed."""
        if not len(values) or self.statistic is Statistic.CRITICAL_GAP:
            return None
        match self.statistic:
            case Statistic.MEAN:
                return float(values.mean())
            case Statistic.P15 | Statistic.P85:
                return float(np.percentile(values, 15 if self.statistic is Statistic.P15 else 85))
            case Statistic.RANGE:
                return float(((values >= self.low) & (values <= self.high)).mean())
            case Statistic.BELOW:
                return float((values < self.high).mean())
            case _:
                return float((values > self.low).mean())


FIGURES: tuple[Figure, ...] = (
    Figure("speed_freeway", Statistic.MEAN, 70.4 * MPH, 70.4 * MPH, "NHTSA 2015 (free flow)"),
    Figure("free_speed_freeway", Statistic.ABOVE, 1.0, 1.0, "NHTSA 2015", share=0.68),
    Figure("free_speed_street", Statistic.ABOVE, 1.0, 1.0, "NHTSA 2015 (arterials)", share=0.56),
    Figure("headway_freeway", Statistic.MEAN, 2.0, 2.0, "Houchin et al. 2015", note="cars on urban freeways"),
    Figure("headway_freeway", Statistic.RANGE, 1.0, 2.0, "Ayres et al. 2001", note="rush hour, US 101"),
    Figure("headway_street", Statistic.MEAN, 2.0, 2.0, "Colbourn et al. 1978", note="test track, any speed"),
    Figure("standing_gap", Statistic.MEAN, 9 * FEET, 9 * FEET, "Houchin et al. 2015", note="car behind car"),
    Figure("jerk", Statistic.BELOW, 2.5, 2.5, "ISO 15622 (ACC)", note="for driver assistance", is_checked=False),
    Figure("stop_deceleration", Statistic.BELOW, 3.0, 3.0, "US signal timing"),
    Figure("stop_peak_deceleration", Statistic.BELOW, 3.4, 3.4, "AASHTO; Wang et al. 2005"),
    Figure("stop_peak_deceleration", Statistic.RANGE, 3.6, 4.1, "El-Shawarby et al. 2011", note="surprised by yellow"),
    Figure("start_acceleration", Statistic.RANGE, 1.5, 2.0, "Murdoch (review)", note="comfortable rate"),
    Figure("bend_lateral", Statistic.RANGE, 2.0, 4.0, "Test track 2025", note="2 too slow, 4 too fast for passengers"),
    Figure("lane_change_duration", Statistic.MEAN, 5.0, 6.0, "Toledo & Zohar 2007"),
    Figure("roundabout", Statistic.CRITICAL_GAP, 5.1, 5.1, "NCHRP 572 (one lane)", is_checked=False),
    Figure("junction", Statistic.CRITICAL_GAP, 3.7, 4.6, "Korean HCM 2013", note="one lane each way"),
    Figure("junction", Statistic.CRITICAL_GAP, 4.1, 7.1, "US HCM 2010", is_checked=False),
    Figure("encroachment", Statistic.ABOVE, 1.0, 1.0, "Peesapati et al. 2013", note="shorter ones go with crashes"),
    Figure("walking_speed", Statistic.MEAN, 1.51, 1.51, "Knoblauch 1996, younger", is_checked=False),
    Figure("walking_speed", Statistic.MEAN, 80 / 60, 80 / 60, "Finnis & Walton"),
    Figure("walking_speed", Statistic.P15, 1.25, 1.25, "Knoblauch 1996, younger", is_checked=False),
    Figure("walking_speed", Statistic.MEAN, 3.81 * FEET, 3.81 * FEET, "Gates et al. 2006, over 65"),
    Figure("cycling_speed", Statistic.P85, 22 / 3.6, 22 / 3.6, "Parkin & Rotheram 2010"),
)

HIGHD_LANE_CHANGES_PER_KM = 5600 / 45000  # Krajewski et al. 2018: complete changes over kilometers driven


def figures_of(quantity: str) -> tuple[Figure, ...]:
    """Return all published figures of a quantity."""
    return tuple(figure for figure in FIGURES if figure.quantity == quantity)
