"""The input of detectors: every agent's motion relative to lanes, computed once, and cheap views of parts of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from roadworthy.errors import ScenarioError
from roadworthy.scenario.detect.localize import localize
from roadworthy.scenario.detect.path import Path
from roadworthy.scenario.lanes.network import Doubles, LaneNetwork
from roadworthy.scenario.schema import RED_STATES, AgentType, Bools, Bytes, FeatureKind, Floats, Ints, RoadMap, Scenario

SETTLED_M = 0.5  # a driver this near to a lane's center drives in that lane
PASSED_M = 1.0  # a car whose front is this far over a stop line may still be waiting at it
NEVER_MOVES_M = 0.3
NEVER_MOVES_MPS = 0.1


# The arrays of Tracks whose second axis is time.
STEPPED = ("x", "y", "heading", "valid", "speed", "acceleration", "lane", "arc", "offset", "shift", "light_states")


@dataclass(frozen=True)
class LaneChange:
    """A transition from a lane to the adjacent one."""

    step: int  # the first step on the other lane
    origin: int  # lane
    target: int  # lane


@dataclass(frozen=True, eq=False)
class Tracks:
    """A agents over T steps, with their lanes, and L lights. Arrays of a window are views of the recording."""

    network: LaneNetwork
    map: RoadMap
    dt: float
    sdc: int
    types: Bytes  # (A,)
    sizes: Floats  # (A, 3)
    x: Floats  # (A, T)
    y: Floats  # (A, T)
    heading: Floats  # (A, T)
    valid: Bools  # (A, T)
    speed: Floats  # (A, T) m/s
    acceleration: Floats  # (A, T) m/s2, change of speed over the two adjacent steps
    lane: Ints  # (A, T) -1 if there is none
    arc: Floats  # (A, T) m from the lane's start
    offset: Floats  # (A, T) m to the left of the lane's center
    shift: Ints  # (A, T) +1 (-1) where the agent is on the lane left (right) of its previous one
    light_lanes: Ints  # (L,)
    light_states: Bytes  # (L, T)

    @staticmethod
    def of(scenario: Scenario) -> Tracks:
        """Compute every agent's lanes and accelerations."""
        network = LaneNetwork.of(scenario.map)
        lane, arc, offset, shift = localize(
            network, scenario.agent_types, scenario.positions, scenario.headings, scenario.valid, scenario.dt
        )
        speed = np.hypot(scenario.velocities[..., 0], scenario.velocities[..., 1])
        return Tracks(
            network=network,
            map=scenario.map,
            dt=scenario.dt,
            sdc=scenario.sdc,
            types=scenario.agent_types,
            sizes=scenario.sizes,
            x=scenario.positions[..., 0],
            y=scenario.positions[..., 1],
            heading=scenario.headings,
            valid=scenario.valid,
            speed=speed,
            acceleration=_accelerations(speed, scenario.valid, scenario.dt),
            lane=lane,
            arc=arc,
            offset=offset,
            shift=shift,
            light_lanes=scenario.light_lanes,
            light_states=scenario.light_states,
        )

    @property
    def steps(self) -> int:
        return self.valid.shape[1]

    def window(self, first: int, end: int) -> Tracks:
        """Return only the steps first, first + 1, ... end - 1."""
        if not 0 <= first < end <= self.steps:
            raise ScenarioError(f"window of steps {first} to {end - 1}, but the steps are 0 to {self.steps - 1}")
        part = (slice(None), slice(first, end))
        return replace(self, **{name: getattr(self, name)[part] for name in STEPPED})

    def steps_of(self, seconds: float) -> int:
        """Return the number of steps in a time, at least 1."""
        return max(1, round(seconds / self.dt))

    @cached_property
    def path(self) -> Path:
        """Return the lanes that the self-driving car drives along, and the way ahead of it."""
        return Path.of(self.network, self.lane[self.sdc], self.arc[self.sdc], self.x[self.sdc], self.y[self.sdc])

    @cached_property
    def station(self) -> Doubles:
        """Return (A, T) the station of each agent on the self-driving car's path; NaN off the path's lanes."""
        return np.where(self.lane >= 0, self.path.base[self.lane] + self.arc, np.nan)

    @cached_property
    def gap(self) -> Doubles:
        """Return (A, T) m from the car's front bumper to the rear of agents ahead in its path; infinite for others.

        Agents whose center is outside the lane, such as those parked at the curb, are not in the path.
        """
        own = self.station[self.sdc]
        half_lengths = 0.5 * (self.sizes[:, :1] + self.sizes[self.sdc, 0])
        ahead = self.station - own
        within_lane = np.abs(self.offset) <= np.append(self.network.half_width, 0.0)[self.lane]
        with np.errstate(invalid="ignore"):
            is_ahead = (ahead > 0.0) & self.valid & within_lane
        is_ahead[self.sdc] = False
        return np.where(is_ahead, ahead - half_lengths, np.inf)

    @cached_property
    def leader(self) -> Ints:
        """Return (T,) the next agent ahead in the car's path at each step; -1 if there is none."""
        nearest = np.argmin(self.gap, axis=0).astype(np.int32)
        nearest[np.isinf(self.gap[nearest, np.arange(self.steps)])] = -1
        return nearest

    @cached_property
    def leader_gap(self) -> Doubles:
        """Return (T,) m from bumper to bumper to the next agent ahead in the car's path; infinite if there is none."""
        return self.gap.min(axis=0)

    @cached_property
    def front(self) -> Doubles:
        """Return (T,) the station of the car's front bumper."""
        return self.station[self.sdc] + 0.5 * self.sizes[self.sdc, 0]

    @cached_property
    def crosswalks(self) -> dict[int, tuple[float, float]]:
        """Return the crosswalks on the car's path: feature, and the stations where it starts and ends."""
        crossings = {f: self.path.crossing(self.map.polyline(f)) for f in self.map.features(FeatureKind.CROSSWALK)}
        return {feature: crossing for feature, crossing in crossings.items() if crossing is not None}

    @cached_property
    def never_moves(self) -> Bools:
        """Return (A,) whether each agent is a vehicle that stands at one place at all its steps."""
        there = self.valid
        wide = [
            np.where(there, a, -np.inf).max(axis=1) - np.where(there, a, np.inf).min(axis=1) for a in (self.x, self.y)
        ]
        still = (np.maximum(wide[0], wide[1]) < NEVER_MOVES_M) & ((self.speed * there).max(axis=1) < NEVER_MOVES_MPS)
        return still & (self.types == AgentType.VEHICLE) & there.any(axis=1)

    def lane_changes(self, agent: int) -> list[LaneChange]:
        """Return all transitions of an agent to an adjacent lane, complete or not."""
        lanes = self.lane[agent]
        steps = np.flatnonzero(self.shift[agent, 1:]) + 1
        return [LaneChange(int(k), int(lanes[k - 1]), int(lanes[k])) for k in steps]

    def is_complete(self, agent: int, change: LaneChange) -> bool:
        """Return whether the agent was near the old lane's center before the change and near the new one's after it."""
        turning_points = [0, *(c.step for c in self.lane_changes(agent)), self.steps]
        here = turning_points.index(change.step, 1)
        near = (np.abs(self.offset[agent]) <= SETTLED_M) & (self.lane[agent] >= 0) & self.valid[agent]
        before = near[turning_points[here - 1] : change.step]
        after = near[change.step : turning_points[here + 1]]
        return bool(before.any() and after.any())

    def light_of(self, lane: int, step: int) -> int | None:
        """Return the state of the light that controls a lane, None if there is none."""
        lights = np.flatnonzero(self.light_lanes == lane)
        return int(self.light_states[lights[0], step]) if len(lights) else None

    def red_light_within(self, distance_m: float, step: int) -> bool:
        """Return whether a light ahead on the car's path shows red."""
        ahead = self.path.base[self.light_lanes] - self.front[step]
        is_red = np.isin(self.light_states[:, step], RED_STATES)
        with np.errstate(invalid="ignore"):
            return bool((is_red & (ahead >= -PASSED_M) & (ahead <= distance_m)).any())


def _accelerations(speed: Floats, valid: Bools, dt: float) -> Floats:
    """Return central differences of speed; one-sided at the ends of an agent's presence; 0 where it is absent."""
    later = np.where(valid[:, 1:] & valid[:, :-1], np.diff(speed, axis=1) / np.float32(dt), np.float32(np.nan))
    nothing = np.full((len(speed), 1), np.nan, np.float32)
    before, after = np.hstack([nothing, later]), np.hstack([later, nothing])
    mean = np.where(np.isnan(before), after, np.where(np.isnan(after), before, 0.5 * (before + after)))
    return np.where(np.isnan(mean), np.float32(0), mean).astype(np.float32)
