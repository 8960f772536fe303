"""Random road users: drivers, cyclists and pedestrians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.traffic.users import ROUTE_LANES, USER, WAVES, Kind, Script


@dataclass
class RoadUser:
    """The properties of a road user, and where it starts. Units as in `USER`."""

    kind: Kind
    length: float
    width: float
    height: float
    speed_factor: float
    top_speed: float
    headway: float
    acceleration: float
    braking: float
    standing_gap: float
    politeness: float
    gap: float
    delay: int
    jerk: float
    cornering: float
    wander: tuple[float, ...]
    wander_length: tuple[float, ...]
    wander_phase: tuple[float, ...]
    seed: int
    lane: int = -1
    s: float = 0.0
    speed: float = 0.0
    first_step: int = 0
    plan: tuple[int, ...] = ()
    script: Script = Script.NONE
    script_step: int = 0
    script_value: float = 0.0
    crosswalk: int = -1
    curb_s: tuple[float, float] = (0.0, 0.0)
    backwards: int = 0


def user_records(road_users: Sequence[RoadUser]) -> NDArray[np.void]:
    """Return (N,) USER records for the kernels."""
    records = np.zeros(len(road_users), USER)
    for record, user in zip(records, road_users, strict=True):
        for name in USER.names or ():
            value = getattr(user, name)
            record[name] = (*value, *([-1] * ROUTE_LANES))[:ROUTE_LANES] if name == "plan" else value
    return records


class Dice:
    """Uniform and normal draws from a stream, drawn in bulk: single draws would take longer than the traffic."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._uniform = iter(rng.random(40).tolist())
        self._normal = iter(rng.standard_normal(4).tolist())
        self.seed = int(rng.integers(0, 2**63))

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * next(self._uniform)

    def normal(self, mean: float, deviation: float, low: float, high: float) -> float:
        """Return a normal draw, limited to a range."""
        return min(max(mean + deviation * next(self._normal), low), high)


def draw_driver(rng: np.random.Generator, *, freeway: bool = False) -> RoadUser:
    """Return a driver with a vehicle. Trucks are only on freeways, where bends are wide enough for them."""
    dice = Dice(rng)
    size = dice.between(0.0, 1.0)
    if freeway and size < 0.1:
        length, width, height = dice.between(7.5, 13.0), dice.between(2.35, 2.5), dice.between(3.0, 3.8)
        pace, push = dice.between(0.8, 0.92), dice.between(0.7, 1.1)
    elif size < 0.22:
        length, width, height = dice.between(5.0, 5.7), dice.between(1.95, 2.08), dice.between(1.8, 2.4)
        pace, push = dice.normal(1.0, 0.07, 0.8, 1.2), dice.between(1.2, 1.8)
    else:
        length, width, height = dice.between(4.1, 5.0), dice.between(1.75, 1.95), dice.between(1.4, 1.75)
        pace, push = dice.normal(1.04, 0.09, 0.8, 1.3), dice.between(1.4, 2.3)
    return RoadUser(
        kind=Kind.CAR,
        length=length,
        width=width,
        height=height,
        speed_factor=pace,
        top_speed=45.0,
        headway=1.15 * math.exp(dice.normal(0.0, 0.38, -0.45, 0.8)),
        acceleration=push,
        braking=dice.between(1.4, 3.0),
        standing_gap=dice.between(1.8, 3.8),
        politeness=dice.between(0.0, 0.6),
        gap=dice.between(0.8, 1.8),
        delay=int(dice.between(1, 5)),
        jerk=dice.between(2.0, 4.0),
        cornering=dice.between(1.5, 2.6),
        **_wandering(dice, *((0.18, 130.0, 320.0) if freeway else (0.14, 40.0, 160.0))),
    )


def draw_cyclist(rng: np.random.Generator) -> RoadUser:
    """Return a cyclist, who keeps to the bicycle lane."""
    dice = Dice(rng)
    return RoadUser(
        kind=Kind.CYCLIST,
        length=dice.between(1.65, 1.85),
        width=dice.between(0.55, 0.7),
        height=dice.between(1.65, 1.85),
        speed_factor=1.0,
        top_speed=dice.between(3.6, 6.6),
        headway=dice.between(1.0, 1.6),
        acceleration=dice.between(0.7, 1.1),
        braking=dice.between(1.3, 2.0),
        standing_gap=dice.between(0.8, 1.5),
        politeness=0.0,
        gap=dice.between(1.2, 2.2),
        delay=int(dice.between(1, 4)),
        jerk=dice.between(2.0, 3.0),
        cornering=dice.between(1.2, 1.9),
        **_wandering(dice, 0.12, 12.0, 40.0),
    )


def draw_pedestrian(rng: np.random.Generator) -> RoadUser:
    """Return a pedestrian, with walking speeds as in Knoblauch et al. (1996): about 1.2 to 1.6 m/s."""
    dice = Dice(rng)
    return RoadUser(
        kind=Kind.PEDESTRIAN,
        length=dice.between(0.45, 0.6),
        width=dice.between(0.5, 0.7),
        height=dice.between(1.55, 1.9),
        speed_factor=1.0,
        top_speed=dice.normal(1.4, 0.2, 0.9, 1.9),
        headway=1.0,
        acceleration=dice.between(0.6, 1.0),
        braking=1.0,
        standing_gap=0.5,
        politeness=0.0,
        gap=1.0,
        delay=0,
        jerk=4.0,
        cornering=1.5,
        **_wandering(dice, 0.06, 6.0, 16.0),
    )


def _wandering(dice: Dice, amplitude: float, shortest: float, longest: float) -> dict[str, Any]:
    """Return the lateral wandering in the lane, as sine waves over the distance traveled, and the seed."""
    total = amplitude * dice.between(0.5, 1.3)
    shares = [dice.between(0.2, 1.0) for _ in range(WAVES)]
    return {
        "wander": tuple(total * share / sum(shares) for share in shares),
        "wander_length": tuple(dice.between(shortest, longest) for _ in range(WAVES)),
        "wander_phase": tuple(dice.between(0.0, 2 * math.pi) for _ in range(WAVES)),
        "seed": dice.seed,
    }
