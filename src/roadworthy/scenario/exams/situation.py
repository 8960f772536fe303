"""The input of exams: a recording from the start of the exam on, and an attempt at it, both relative to lanes.

Frame 0 is the start of the exam, the last frame is EXAM_S later, or the end of the recording if that comes first. An
attempt is the motion of a car among traffic: the recorded car, one that a policy drove, or a computed one (see
`Situation.ghosts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from roadworthy.scenario.exams.boxes import Motion, first_contact, type_of_contact
from roadworthy.scenario.lanes.guide import SPACING_M, Guide, guide_of, is_beside
from roadworthy.scenario.lanes.locate import Places, locate
from roadworthy.scenario.lanes.network import Doubles, LaneNetwork
from roadworthy.scenario.schema import AgentType, Bools, Ints, Scenario

EXAM_S = 15.0  # length of an exam
AHEAD_M = 200.0  # how far the guide continues beyond the end of the recording
ROOM_S = 5.0  # road that must exist beyond the end of the recording, for drivers who get farther
NEARBY_M = 80.0  # road users that never come this near to the car are ignored
FREE_SHARES = (0.85, 1.0)  # shares of the suitable speed of cars that ignore others
PROGRESS_SHARE = 0.2  # of the recorded progress; less does not count as progress (nuPlan's "making progress")
ALONG_RAD = np.radians(30.0)
STANDING_MPS = 0.7
CLOSE_AHEAD_M = 20.0  # a road user or a junction that is nearer is a reason to stand
WALKER_ROOM_M = 5.0  # beside the car, for pedestrians who are about to cross
OUTSIDE_M = 0.3  # a corner may be this far outside its lane (nuPlan's tolerance at the edge of the drivable area)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A car and the traffic around it, over F frames. `others[n]` is agent n of the recording; its own is absent."""

    situation: Situation
    car: Motion
    others: tuple[Motion, ...]

    @cached_property
    def places(self) -> Places:
        """Return the lanes that the car drives on."""
        situation, car = self.situation, self.car
        return locate(situation.network, car.x, car.y, car.heading, situation.dt)

    @cached_property
    def along(self) -> tuple[Doubles, Doubles]:
        """Return (F,) station and offset of the car relative to the guide."""
        return self.situation.guide.project(self.car.x, self.car.y, self.car.heading)

    @property
    def station(self) -> Doubles:
        return self.along[0]

    @property
    def offset(self) -> Doubles:
        return self.along[1]

    def beside(self, agent: int) -> tuple[Doubles, Doubles]:
        """Return (F,) station and offset of another road user relative to the guide; NaN where it is absent."""
        other = self.others[agent]
        station, offset = self.situation.guide.project(other.x, other.y)
        return np.where(other.present, station, np.nan), np.where(other.present, offset, np.nan)

    @cached_property
    def _ahead(self) -> tuple[Ints, Doubles]:
        """Return agents that come near, and (n, F) the gap to each where it is ahead in the lane, else infinity."""
        nearby = [
            n
            for n, other in enumerate(self.others)
            if (np.hypot(other.x - self.car.x, other.y - self.car.y)[other.present] < NEARBY_M).any()
            and self.situation.scenario.agent_types[n] != AgentType.PEDESTRIAN
        ]
        gaps = np.full((len(nearby), len(self.car)), np.inf)
        for row, agent in enumerate(nearby):
            station, offset = self.beside(agent)
            between = station - self.station
            with np.errstate(invalid="ignore"):
                is_ahead = (between > 0.0) & is_beside(self.situation.guide, station, offset)
            gap = between - 0.5 * (self.car.length + self.others[agent].length)
            gaps[row] = np.where(is_ahead, gap, np.inf)
        return np.array(nearby, np.int32), gaps

    @cached_property
    def leader(self) -> Ints:
        """Return (F,) the next road user ahead in the guide's lane, -1 if there is none."""
        nearby, gaps = self._ahead
        if not len(nearby):
            return np.full(len(self.car), -1, np.int32)
        nearest = np.argmin(gaps, axis=0)
        return np.where(np.isfinite(gaps[nearest, np.arange(len(self.car))]), nearby[nearest], -1).astype(np.int32)

    @cached_property
    def leader_gap(self) -> Doubles:
        """Return (F,) m from bumper to bumper to the leader, infinite if there is none."""
        return self._ahead[1].min(axis=0, initial=np.inf)

    def gap_to(self, agent: int) -> Doubles:
        """Return (F,) the gap to a road user where it is ahead in the guide's lane, else infinity."""
        nearby, gaps = self._ahead
        rows = np.flatnonzero(nearby == agent)
        return gaps[rows[0]] if len(rows) else np.full(len(self.car), np.inf)

    @cached_property
    def makes_progress(self) -> bool:
        """Return whether the car covers at least a fifth of the recorded distance along the guide."""
        recorded = self.situation.recorded.station
        return bool(self.station[-1] - self.station[0] >= PROGRESS_SHARE * (recorded[-1] - recorded[0]))

    @cached_property
    def ends_in_lane(self) -> bool:
        """Return whether the car ends within a lane and aligned with it."""
        lane, angle, offset = (float(line[-1]) for line in (self.places.lane, self.places.angle, self.places.offset))
        if lane < 0 or abs(angle) > ALONG_RAD:
            return False
        reach = 0.5 * (self.car.width * np.cos(angle) + self.car.length * abs(np.sin(angle)))
        return bool(abs(offset) + reach <= self.situation.network.half_width[int(lane)] + OUTSIDE_M)

    @cached_property
    def drives_on(self) -> bool:
        """Return whether the car moves at the end, or stands for a reason: a road user or a junction close ahead."""
        car = self.car
        if car.speed[-1] > STANDING_MPS:
            return True
        lane, arc = int(self.places.lane[-1]), float(self.places.arc[-1])
        network = self.situation.network
        if lane >= 0 and network.is_junction[network.following(lane)].any():
            if network.length[lane] - arc - 0.5 * car.length <= CLOSE_AHEAD_M:
                return True
        cos, sin = np.cos(car.heading[-1]), np.sin(car.heading[-1])
        for agent, other in enumerate(self.others):
            if not other.present[-1]:
                continue
            dx, dy = other.x[-1] - car.x[-1], other.y[-1] - car.y[-1]
            ahead = dx * cos + dy * sin - 0.5 * (car.length + other.length)
            walks = self.situation.scenario.agent_types[agent] == AgentType.PEDESTRIAN
            beside = abs(dy * cos - dx * sin) - 0.5 * (car.width + other.width)
            if -car.length < ahead <= CLOSE_AHEAD_M and beside <= (WALKER_ROOM_M if walks else 0.0):
                return True
        return False

    def is_settled_on(self, lanes: set[int], settled_m: float, seconds: float) -> bool:
        """Return whether the car was near the center of one of these lanes for the last seconds."""
        last = slice(-self.situation.steps_of(seconds), None)
        is_there = np.isin(self.places.lane[last], list(lanes))
        return bool((is_there & (np.abs(self.places.offset[last]) <= settled_m)).all())

    def narrowed(self, margin: float) -> Attempt:
        """Return the same attempt of a car that is narrower on both sides."""
        return replace(self, car=replace(self.car, width=self.car.width - 2.0 * margin))

    def is_hit(self, agent: int) -> bool:
        """Return whether the car hits a road user from behind, or hits one that stands.

        A contact from the side counts if the car is changing lanes.
        """
        frame = first_contact(self.car, self.others[agent])
        if frame is None:
            return False
        kind = type_of_contact(self.car, self.others[agent], frame).name
        if kind == "LATERAL":
            guide = self.situation.guide
            return bool(guide.changes[min(int(self.station[frame] / SPACING_M), len(guide.changes) - 1)])
        return kind in ("FRONT", "STOPPED_TRACK")


@dataclass(frozen=True, eq=False)
class Situation:
    """A recording from a step on, in which the self-driving car is present throughout."""

    scenario: Scenario
    start: int  # step

    @property
    def steps(self) -> slice:
        """Return the steps of the recording that belong to the exam."""
        return slice(self.start, self.start + self.steps_of(EXAM_S) + 1)

    @property
    def dt(self) -> float:
        return self.scenario.dt

    @cached_property
    def network(self) -> LaneNetwork:
        return LaneNetwork.of(self.scenario.map)

    @cached_property
    def recorded(self) -> Attempt:
        """Return the recording as an attempt."""
        motions = tuple(self._motion(n) for n in range(self.scenario.agent_count))
        car = motions[self.scenario.sdc]
        absent = Motion(car.x, car.y, car.heading, car.speed, np.zeros(len(car), np.bool_), car.length, car.width)
        return Attempt(self, car, tuple(absent if n == self.scenario.sdc else m for n, m in enumerate(motions)))

    @cached_property
    def guide(self) -> Guide:
        """Return the line that the recording follows."""
        attempt = self.recorded
        return guide_of(self.network, self.scenario.map, attempt.places, attempt.car.x, attempt.car.y, self.dt, AHEAD_M)

    @cached_property
    def steady_ghost(self) -> Attempt:
        """Return the car as it would follow the guide at its first speed, ignoring others.

        The motion of ghosts is computed; no policy drives them.
        """
        speed, steps = float(self.recorded.car.speed[0]), np.arange(len(self.recorded.car))
        return self._ghost(self.recorded.station[0] + speed * self.dt * steps, np.full(len(steps), speed))

    @cached_property
    def free_ghosts(self) -> tuple[Attempt, ...]:
        """Return the car as it would follow the guide at the suitable speed, or a little slower, ignoring others."""
        car, begin = self.recorded.car, float(self.recorded.station[0])
        first = float(car.speed[0])
        return tuple(
            self._ghost(*self.guide.free_drive(begin, first, len(car), self.dt, share)) for share in FREE_SHARES
        )

    @property
    def ghosts(self) -> tuple[Attempt, ...]:
        """Return all ghosts."""
        return (self.steady_ghost, *self.free_ghosts)

    @cached_property
    def straight_on(self) -> Attempt:
        """Return the car as it would hold its first speed and direction."""
        car, seconds = self.recorded.car, np.arange(len(self.recorded.car)) * self.dt
        way, heading = car.speed[0] * seconds, np.full(len(car), car.heading[0])
        x, y = car.x[0] + way * np.cos(heading), car.y[0] + way * np.sin(heading)
        motion = Motion(x, y, heading, np.full(len(car), car.speed[0]), car.present, car.length, car.width)
        return Attempt(self, motion, self.recorded.others)

    @property
    def has_room(self) -> bool:
        """Return whether the road continues for ROOM_S beyond the end of the recording, at the suitable speed."""
        end, guide = float(self.recorded.station[-1]), self.guide
        needed = ROOM_S * float(np.interp(end, guide.station, guide.speed))
        return bool(guide.station[-1] - end >= min(needed, AHEAD_M - SPACING_M))

    def steps_of(self, seconds: float) -> int:
        """Return the number of steps in a time, at least 1."""
        return max(1, round(seconds / self.dt))

    def _ghost(self, stations: Doubles, speeds: Doubles) -> Attempt:
        car, guide = self.recorded.car, self.guide
        there = stations < guide.station[-1]
        motion = Motion(*guide.pose(stations), speeds, there, car.length, car.width)
        return Attempt(self, motion, self.recorded.others)

    def _motion(self, agent: int) -> Motion:
        scenario, frames = self.scenario, self.steps
        length, width = scenario.sizes[agent, :2].tolist()
        place, heading = scenario.positions[agent, frames].astype(np.float64), scenario.headings[agent, frames]
        speed = np.hypot(*scenario.velocities[agent, frames].astype(np.float64).T)
        there: Bools = scenario.valid[agent, frames]
        return Motion(place[:, 0], place[:, 1], heading.astype(np.float64), speed, there, length, width)
