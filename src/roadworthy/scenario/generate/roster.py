"""The roster: people are drawn, one by one, and put on the road."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.traffic.users import ROUTE_LANES, USER, WAVES, Kind, Script


@dataclass(frozen=True)
class Person:
    """What a road user is like, and where it begins. Units as in `USER`."""

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
    zebra: int = -1
    kerb_s: tuple[float, float] = (0.0, 0.0)
    backwards: int = 0


@dataclass
class Roster:
    """All road users of one recording, in the order in which they were drawn."""

    people: list[Person] = field(default_factory=list)

    def add(self, person: Person) -> int:
        self.people.append(person)
        return len(self.people) - 1

    def users(self) -> NDArray[np.void]:
        """(N,) USER records for the kernels."""
        users = np.zeros(len(self.people), USER)
        for record, person in zip(users, self.people, strict=True):
            for name in USER.names or ():
                value = getattr(person, name)
                record[name] = (*value, *([-1] * ROUTE_LANES))[:ROUTE_LANES] if name == "plan" else value
        return users


def draw_driver(rng: np.random.Generator, *, freeway: bool = False, longest: float = 14.0) -> Person:
    """A driver with a vehicle. Trucks keep to freeways, where bends are wide enough for them."""
    size = rng.random()
    if freeway and size < 0.1 and longest > 8.0:
        length, width, height = rng.uniform(7.5, 13.0), rng.uniform(2.35, 2.5), rng.uniform(3.0, 3.8)
        pace, push = rng.uniform(0.8, 0.92), rng.uniform(0.7, 1.1)
    elif size < 0.22:
        length, width, height = rng.uniform(5.0, 5.7), rng.uniform(1.95, 2.08), rng.uniform(1.8, 2.4)
        pace, push = rng.normal(0.97, 0.06), rng.uniform(1.2, 1.8)
    else:
        length, width, height = rng.uniform(4.1, 5.0), rng.uniform(1.75, 1.95), rng.uniform(1.4, 1.75)
        pace, push = rng.normal(1.0, 0.08), rng.uniform(1.4, 2.3)
    return _person(
        rng,
        kind=Kind.CAR,
        length=length,
        width=width,
        height=height,
        speed_factor=float(np.clip(pace, 0.78, 1.18)),
        top_speed=45.0,
        headway=float(np.clip(rng.lognormal(np.log(1.35), 0.28), 0.8, 2.6)),
        acceleration=push,
        braking=rng.uniform(1.5, 2.4),
        standing_gap=rng.uniform(1.6, 3.0),
        politeness=rng.uniform(0.0, 0.6),
        gap=rng.uniform(0.8, 1.8),
        delay=int(rng.integers(1, 5)),
        jerk=rng.uniform(2.0, 4.0),
        cornering=rng.uniform(1.5, 2.6),
        wander=0.14 if not freeway else 0.18,
        wander_length=(40.0, 160.0) if not freeway else (130.0, 320.0),
    )


def draw_cyclist(rng: np.random.Generator) -> Person:
    """A cyclist, who keeps to the bicycle lane."""
    return _person(
        rng,
        kind=Kind.CYCLIST,
        length=rng.uniform(1.65, 1.85),
        width=rng.uniform(0.55, 0.7),
        height=rng.uniform(1.65, 1.85),
        speed_factor=1.0,
        top_speed=rng.uniform(3.6, 6.6),
        headway=rng.uniform(1.0, 1.6),
        acceleration=rng.uniform(0.7, 1.1),
        braking=rng.uniform(1.3, 2.0),
        standing_gap=rng.uniform(0.8, 1.5),
        politeness=0.0,
        gap=rng.uniform(1.2, 2.2),
        delay=int(rng.integers(1, 4)),
        jerk=rng.uniform(2.0, 3.0),
        cornering=rng.uniform(1.2, 1.9),
        wander=0.12,
        wander_length=(12.0, 40.0),
    )


def draw_pedestrian(rng: np.random.Generator) -> Person:
    """A pedestrian; walking speeds as in Knoblauch et al. (1996): about 1.2 to 1.6 m/s."""
    return _person(
        rng,
        kind=Kind.PEDESTRIAN,
        length=rng.uniform(0.45, 0.6),
        width=rng.uniform(0.5, 0.7),
        height=rng.uniform(1.55, 1.9),
        speed_factor=1.0,
        top_speed=float(np.clip(rng.normal(1.4, 0.2), 0.9, 1.9)),
        headway=1.0,
        acceleration=rng.uniform(0.6, 1.0),
        braking=1.0,
        standing_gap=0.5,
        politeness=0.0,
        gap=1.0,
        delay=0,
        jerk=4.0,
        cornering=1.5,
        wander=0.06,
        wander_length=(6.0, 16.0),
    )


def _person(rng: np.random.Generator, *, wander: float, wander_length: tuple[float, float], **traits: object) -> Person:
    share = rng.dirichlet(np.ones(WAVES)) * wander * rng.uniform(0.5, 1.3)
    return Person(
        **{name: float(v) if isinstance(v, np.floating) else v for name, v in traits.items()},  # type: ignore[arg-type]
        wander=tuple(float(v) for v in share),
        wander_length=tuple(float(v) for v in rng.uniform(*wander_length, WAVES)),
        wander_phase=tuple(float(v) for v in rng.uniform(0.0, 2 * np.pi, WAVES)),
        seed=int(rng.integers(0, 2**63)),
    )
