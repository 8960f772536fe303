"""A road network under construction: lanes on curves, paint, surfaces, crosswalks, signals, right of way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.curves import Curve, Parallel, Pose
from roadworthy.scenario.schema import LaneType, LightState, LineType

Points = NDArray[np.float64]  # (n, 2)

SAMPLE_SPACING_M = 1.0  # between the samples of a lane that traffic and the search for conflicts use


class Turn(IntEnum):
    """The movement of a lane through a junction."""

    NONE = 0  # not in a junction
    STRAIGHT = 1
    LEFT = 2
    RIGHT = 3
    RING = 4  # part of a roundabout


class Control(IntEnum):
    """The control at the start of a junction lane."""

    FREE = 0  # nothing, or priority
    YIELD = 1
    STOP = 2  # a full stop, then first come, first served or yield
    SIGNAL = 3


@dataclass(eq=False)
class Lane:
    """A lane: the parallel of a curve between two stations, and its place in the lane graph."""

    curve: Curve
    offset: float
    path: Parallel
    width: float
    speed_limit: float
    type: LaneType
    group: int  # lanes of one group are parallels of one curve, in one direction
    turn: Turn = Turn.NONE
    control: Control = Control.FREE
    junction: int = -1
    approach: int = -1  # in a junction: the lane that leads into it
    successors: list[int] = field(default_factory=list)
    left: int = -1
    right: int = -1
    ends: bool = False  # closed at its end: traffic must change to the lane on the left

    @property
    def start(self) -> Pose:
        p = self.path
        return Pose(p.x[0], p.y[0], p.heading[0], p.curvature[0])

    @property
    def end(self) -> Pose:
        p = self.path
        return Pose(p.x[-1], p.y[-1], p.heading[-1], p.curvature[-1])


@dataclass(frozen=True, eq=False)
class Crosswalk:
    """A crosswalk: pedestrians walk from one curb point to the other."""

    polygon: Points  # (4, 2)
    curbs: Points  # (2, 2) where pedestrians step onto the road, on either side
    outward: Points  # (2,) unit vector along the road, away from the junction: the direction of walking beside the road
    junction: int = -1
    arm: int = -1


@dataclass(frozen=True)
class Phase:
    """A phase of a signal plan: the states of junction lanes; all others are red."""

    green_s: float
    shows: dict[int, LightState]  # lane number to GO, ARROW_GO or FLASHING_CAUTION


@dataclass(frozen=True)
class SignalPlan:
    """The lights of one junction, in a cycle."""

    junction: int
    phases: tuple[Phase, ...]
    yellow_s: float
    all_red_s: float

    @property
    def cycle_s(self) -> float:
        return sum(p.green_s + self.yellow_s + self.all_red_s for p in self.phases)


@dataclass(frozen=True, eq=False)
class ParkingStrip:
    """Room for parked cars: beside a lane, between two stations of its curve."""

    curve: Curve
    lane: int  # the adjacent driving lane
    offset: float  # of the strip's center line
    width: float
    first: float
    last: float


@dataclass(eq=False)
class Network:
    """The parts of a road network."""

    lanes: list[Lane] = field(default_factory=list)
    surfaces: list[Points] = field(default_factory=list)
    islands: list[Points] = field(default_factory=list)  # removed from the surfaces
    lines: list[tuple[LineType, Points]] = field(default_factory=list)
    crosswalks: list[Crosswalk] = field(default_factory=list)
    stop_lines: list[tuple[int, Points]] = field(default_factory=list)  # the lane that ends there, (2, 2) its ends
    stop_signs: list[tuple[Points, list[int]]] = field(default_factory=list)  # (2,) position, junction lanes
    signals: list[SignalPlan] = field(default_factory=list)
    yields: set[tuple[int, int]] = field(default_factory=set)  # lane, a lane with priority over it
    parking: list[ParkingStrip] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)  # lanes that start at the border of the map
    junctions: int = 0
    groups: int = 0

    def add_lane(
        self,
        curve: Curve,
        width: float,
        speed_limit: float,
        *,
        offset: float = 0.0,
        first: float = 0.0,
        last: float | None = None,
        type: LaneType = LaneType.SURFACE_STREET,
        group: int | None = None,
    ) -> int:
        """Add a lane and return its number."""
        path = curve.parallel(offset, SAMPLE_SPACING_M, first, last)
        if group is None:
            group = self.new_group()
        self.lanes.append(Lane(curve, offset, path, width, speed_limit, type, group))
        return len(self.lanes) - 1

    def new_group(self) -> int:
        self.groups += 1
        return self.groups - 1

    def new_junction(self) -> int:
        self.junctions += 1
        return self.junctions - 1

    def set_beside(self, left: int, right: int) -> None:
        """Allow lane changes between two lanes."""
        self.lanes[left].right = right
        self.lanes[right].left = left

    def add_band(self, curve: Curve, left: float, right: float, first: float = 0.0, last: float | None = None) -> None:
        """Pave the strip between two parallels of a curve."""
        self.surfaces.append(band(curve, left, right, first, last))

    def add_line(
        self, kind: LineType, curve: Curve, offset: float, first: float = 0.0, last: float | None = None
    ) -> None:
        """Paint a line along a parallel of a curve."""
        path = curve.parallel(offset, SAMPLE_SPACING_M, first, last)
        self.lines.append((kind, np.column_stack([path.x, path.y])))


def band(curve: Curve, left: float, right: float, first: float = 0.0, last: float | None = None) -> Points:
    """Return the polygon between two parallels of a curve."""
    a = curve.parallel(left, SAMPLE_SPACING_M, first, last)
    b = curve.parallel(right, SAMPLE_SPACING_M, first, last)
    return np.concatenate([np.column_stack([b.x, b.y]), np.column_stack([a.x, a.y])[::-1]])
