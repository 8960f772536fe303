"""The data of a scenario: a road map, agents with recorded motion, traffic lights, tags.

Arrays are flat and typed, so that a pack can return them as views of the file. Codes of types and light states are
those of the Waymo Open Motion Dataset. Positions are in meters in the map's own frame (x east, y north, z up), headings
in radians counterclockwise from east, velocities in m/s, sizes in meters.

Optional arrays (OPTIONAL_MAP_ARRAYS, OPTIONAL_SCENARIO_ARRAYS) are empty if the source does not provide them, as in
generated scenarios and in packs of older versions; `source_values` has the default of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sealable = TypeVar("Sealable", "RoadMap", "Scenario")


class AgentType(IntEnum):
    """The kind of a road user."""

    OTHER = 0
    VEHICLE = 1
    PEDESTRIAN = 2
    CYCLIST = 3


class FeatureKind(IntEnum):
    """The kind of a map feature. Features are stored in this order, so lanes have the numbers of their features."""

    LANE = 0
    ROAD_LINE = 1
    ROAD_EDGE = 2
    CROSSWALK = 3
    SPEED_BUMP = 4
    DRIVEWAY = 5
    STOP_SIGN = 6


class LaneType(IntEnum):
    """The traffic that a lane is made for."""

    UNDEFINED = 0
    FREEWAY = 1
    SURFACE_STREET = 2
    BIKE_LANE = 3


class LineType(IntEnum):
    """The paint of a road line."""

    UNKNOWN = 0
    BROKEN_SINGLE_WHITE = 1
    SOLID_SINGLE_WHITE = 2
    SOLID_DOUBLE_WHITE = 3
    BROKEN_SINGLE_YELLOW = 4
    BROKEN_DOUBLE_YELLOW = 5
    SOLID_SINGLE_YELLOW = 6
    SOLID_DOUBLE_YELLOW = 7
    PASSING_DOUBLE_YELLOW = 8


class EdgeType(IntEnum):
    """What lies beyond a road edge."""

    UNKNOWN = 0
    BOUNDARY = 1
    MEDIAN = 2


class LightState(IntEnum):
    """What a traffic light shows. FLASHING_CAUTION permits a left turn that yields to oncoming traffic."""

    UNKNOWN = 0
    ARROW_STOP = 1
    ARROW_CAUTION = 2
    ARROW_GO = 3
    STOP = 4
    CAUTION = 5
    GO = 6
    FLASHING_STOP = 7
    FLASHING_CAUTION = 8


RED_STATES = (LightState.ARROW_STOP, LightState.STOP, LightState.FLASHING_STOP)
GREEN_STATES = (LightState.ARROW_GO, LightState.GO)
SOURCE_TOLERANCE_M = 0.001  # largest difference between source_positions and positions + origin


@dataclass(frozen=True, eq=False, repr=False)
class RoadMap:
    """Typed polylines and the lane graph: F features, P points, k pairs.

    Lanes and road lines run in the driving direction if they have one. The road lies on the left side of road edges; a
    closed edge repeats its first point. Crosswalks, speed bumps and driveways are polygons whose first point is not
    repeated. A stop sign is one point.
    """

    origin: NDArray[np.float64]  # (3,) offset from the map's frame to the source's coordinates
    points: Floats  # (P, 3) points of all features, one after another
    starts: Ints  # (F + 1,) feature f owns points[starts[f]:starts[f + 1]]
    kinds: Bytes  # (F,) FeatureKind, ascending
    types: Bytes  # (F,) LaneType, LineType or EdgeType by kind, else 0
    ids: Longs  # (F,) the source's number of each feature
    speed_limits: Floats  # (lanes,) m/s, NaN where unknown
    lane_widths: Floats  # (lanes,) m, NaN where unknown
    successors: Ints  # (k, 2) lane, successor
    left_neighbors: Ints  # (k, 2) lane, adjacent lane on the left in the same direction
    right_neighbors: Ints  # (k, 2) lane, adjacent lane on the right in the same direction
    yields: Ints  # (k, 2) lane, lane that has priority over it
    stop_signs: Ints  # (k, 2) stop sign, lane that it applies to
    stop_lines: Floats  # (k, 2, 2) left and right end of each stop line
    stop_line_lanes: Ints  # (k,) the lane that ends at the line
    # Optional: (k, 4) for each row of the neighbors, the first and last point of the lane along which they are
    # neighbors, then those of the other lane; points count from 0 within their lane. Empty: along their whole length.
    left_neighbor_ranges: Ints = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    right_neighbor_ranges: Ints = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    # Optional: (P, 3) the points in the source's coordinates, rounded to float32 once. Empty: points + origin.
    source_points: Floats = field(default_factory=lambda: np.zeros((0, 3), np.float32))

    def __repr__(self) -> str:
        return f"<RoadMap: {self.lane_count} lanes, {self.feature_count} features, {len(self.points)} points>"

    @property
    def feature_count(self) -> int:
        return len(self.kinds)

    @cached_property
    def lane_count(self) -> int:
        return int(np.count_nonzero(self.kinds == FeatureKind.LANE))

    @cached_property
    def predecessors(self) -> Ints:
        """Return (k, 2) lane, predecessor."""
        return np.ascontiguousarray(self.successors[:, ::-1])

    def polyline(self, feature: int) -> Floats:
        """Return the (n, 3) points of a feature."""
        return self.points[self.starts[feature] : self.starts[feature + 1]]

    def features(self, kind: FeatureKind) -> range:
        """Return the numbers of all features of a kind."""
        first, last = np.searchsorted(self.kinds, [kind, kind + 1])
        return range(int(first), int(last))

    def check(self) -> Iterator[str]:
        """Yield a sentence for each inconsistency of the arrays."""
        features, lanes = self.feature_count, self.lane_count
        if len(self.starts) != features + 1 or len(self.types) != features or len(self.ids) != features:
            yield f"{features} kinds, but {len(self.starts)} starts, {len(self.types)} types and {len(self.ids)} ids"
            return
        if self.starts[0] != 0 or self.starts[-1] != len(self.points) or (np.diff(self.starts) < 1).any():
            yield "starts don't divide the points into features of at least one point each"
        if (np.diff(self.kinds.astype(np.int16)) < 0).any() or (features and self.kinds.max() > max(FeatureKind)):
            yield "features are not in the order of their kinds"
        if not np.isfinite(self.points).all():
            yield "points contain NaN or infinity"
        for side in ("left", "right"):
            pairs, ranges = len(getattr(self, f"{side}_neighbors")), getattr(self, f"{side}_neighbor_ranges")
            if len(ranges) not in (0, pairs):
                yield f"{pairs} {side}_neighbors, but {len(ranges)} ranges for them"
        if len(self.source_points) not in (0, len(self.points)):
            yield f"{len(self.points)} points, but {len(self.source_points)} source_points"
        for name, length in (("speed_limits", lanes), ("lane_widths", lanes)):
            if len(getattr(self, name)) != length:
                yield f"{lanes} lanes, but {len(getattr(self, name))} {name}"
        for name in ("successors", "left_neighbors", "right_neighbors", "yields", "stop_line_lanes"):
            numbers = getattr(self, name)
            if numbers.size and (numbers.min() < 0 or numbers.max() >= lanes):
                yield f"{name} name lanes outside 0..{lanes - 1}"
        if len(self.stop_lines) != len(self.stop_line_lanes):
            yield f"{len(self.stop_lines)} stop lines, but {len(self.stop_line_lanes)} lanes for them"
        if self.stop_signs.size:
            signs = self.features(FeatureKind.STOP_SIGN)
            if not np.isin(self.stop_signs[:, 0], np.arange(signs.start, signs.stop)).all():
                yield "stop_signs name features that are not stop signs"
            if self.stop_signs[:, 1].min() < 0 or self.stop_signs[:, 1].max() >= lanes:
                yield f"stop_signs name lanes outside 0..{lanes - 1}"


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """A situation: A agents over T steps on a map with L lights."""

    id: str
    source: str  # the origin of the data, such as "generated" or "womd"
    tags: tuple[str, ...]
    dt: float  # seconds from one step to the next
    current_step: int  # the last step of history; later steps are the future
    map: RoadMap
    agent_ids: Longs  # (A,) the source's number of each agent
    agent_types: Bytes  # (A,) AgentType
    sizes: Floats  # (A, 3) length, width, height
    positions: Floats  # (A, T, 3) center of the box
    headings: Floats  # (A, T)
    velocities: Floats  # (A, T, 2)
    valid: Bools  # (A, T) whether the agent is present; other arrays are 0 where it is not
    sdc: int  # the self-driving car, -1 if there is none
    predict: Ints  # (k,) agents whose motion is to be predicted
    light_lanes: Ints  # (L,) the lane that each light controls
    light_stops: Floats  # (L, 3) the point to stop at
    light_states: Bytes  # (L, T) LightState; UNKNOWN also where the source does not list the light
    # Optional: (L, T) whether the source lists the light at that step. Empty: where its state is known.
    light_listed: Bools = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    # Optional: (L, T, 3) the point to stop at as listed at that step, in the source's coordinates, 0 where the light is
    # not listed. Empty: light_stops + origin.
    source_light_stops: Floats = field(default_factory=lambda: np.zeros((0, 0, 3), np.float32))
    # Optional: (A, T, 3) positions in the source's coordinates, rounded to float32 once, and (A, T) headings, as the
    # source has them even where an agent is not valid. Empty: positions + origin and headings, 0 where not valid.
    source_positions: Floats = field(default_factory=lambda: np.zeros((0, 0, 3), np.float32))
    source_headings: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def __repr__(self) -> str:
        tags = ", ".join(self.tags)
        return f"<Scenario {self.id!r}: {tags}; {self.agent_count} agents, {self.steps} steps, {self.map!r}>"

    @property
    def agent_count(self) -> int:
        return len(self.agent_types)

    @property
    def steps(self) -> int:
        return self.valid.shape[1]

    def check(self) -> Iterator[str]:
        """Yield a sentence for each inconsistency of the arrays."""
        yield from self.map.check()
        agents, steps, lights = self.agent_count, self.steps, len(self.light_lanes)
        expected = {
            "agent_ids": (agents,),
            "sizes": (agents, 3),
            "positions": (agents, steps, 3),
            "headings": (agents, steps),
            "velocities": (agents, steps, 2),
            "valid": (agents, steps),
            "light_stops": (lights, 3),
            "light_states": (lights, steps),
        }
        optional = {
            "light_listed": (lights, steps),
            "source_light_stops": (lights, steps, 3),
            "source_positions": (agents, steps, 3),
            "source_headings": (agents, steps),
        }
        expected |= {name: shape for name, shape in optional.items() if getattr(self, name).size}
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                yield f"{name} has shape {getattr(self, name).shape}, expected {shape}"
        for name in ("sizes", "positions", "headings", "velocities"):
            if not np.isfinite(getattr(self, name)).all():
                yield f"{name} contain NaN or infinity"
        if self.source_positions.shape == self.positions.shape == (agents, steps, 3) and self.valid.any():
            source, own = self.source_positions[self.valid], self.positions[self.valid] + self.map.origin
            if not (np.abs(source - own) <= SOURCE_TOLERANCE_M + 1e-6 * np.abs(own)).all():
                yield "source_positions are not the positions in the source's coordinates"
        for name, codes in (("agent_types", AgentType), ("light_states", LightState)):
            if getattr(self, name).max(initial=0) > max(codes):
                yield f"{name} hold {getattr(self, name).max()}, expected 0..{max(codes)}"
        if not -1 <= self.sdc < agents:
            yield f"the self-driving car is agent {self.sdc}, but there are {agents} agents"
        if self.predict.size and (self.predict.min() < 0 or self.predict.max() >= agents):
            yield f"predict names agents outside 0..{agents - 1}"
        if lights and (self.light_lanes.min() < 0 or self.light_lanes.max() >= self.map.lane_count):
            yield f"light_lanes name lanes outside 0..{self.map.lane_count - 1}"
        if not 0 <= self.current_step < steps:
            yield f"current_step is {self.current_step}, but there are {steps} steps"
        if not self.dt > 0:
            yield f"dt is {self.dt}, expected seconds above 0"

    def require_sound(self) -> None:
        """Raise ScenarioError if the arrays are inconsistent."""
        for fault in self.check():
            raise ScenarioError(f"scenario {self.id!r}: {fault}")


def read_only(item: Sealable) -> Sealable:
    """Make the arrays of a map or scenario read-only, as those of a pack are, and return it.

    Numba compiles separate code for read-only and for writable arrays; this way one version is enough.
    """
    for declared in fields(item):
        value = getattr(item, declared.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return item


OPTIONAL_MAP_ARRAYS = ("left_neighbor_ranges", "right_neighbor_ranges", "source_points")
MAP_ARRAYS = tuple(f.name for f in fields(RoadMap) if f.name not in OPTIONAL_MAP_ARRAYS)
SCENARIO_ARRAYS = (
    "agent_ids agent_types sizes positions headings velocities valid predict light_lanes light_stops light_states"
).split()
OPTIONAL_SCENARIO_ARRAYS = ("light_listed", "source_light_stops", "source_positions", "source_headings")
