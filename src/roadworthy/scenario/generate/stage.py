"""A stage: a network on which road users are placed before a recording begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.curves import Curve, Parallel, Pose, bend, line
from roadworthy.scenario.generate.network import Network, ParkingStrip
from roadworthy.scenario.generate.roster import Person, Roster, draw_cyclist, draw_driver, draw_pedestrian
from roadworthy.scenario.generate.traffic.tables import Layout, Nudge
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.schema import LaneType

SIDEWALK_M = 3.0  # from the curb to where pedestrians walk along the road
WALK_SPACING_M = 0.25
COMFORTABLE_BRAKING = 1.2  # m/s2
MOST_PARKED = 14
STAY_S, STAY_IN_EXAM_S = 11.0, 18.0  # how long the self-driving car should stay on the map at least
PASSING_GAP_M = 0.55  # between a car and one that is parked in its way


@dataclass(frozen=True)
class Parked:
    """A car that stands throughout."""

    pose: Pose
    length: float
    width: float
    height: float


class Stage:
    """Collects who takes part in a recording of a number of steps, and how the signals start."""

    def __init__(
        self,
        network: Network,
        layout: Layout,
        rng: np.random.Generator,
        steps: int,
        dt: float,
        *,
        is_exam: bool = False,
    ) -> None:
        """Set an empty stage.

        is_exam: the recording is to become an exam. So the event has to come later, and the self-driving car needs a
            longer way.
        """
        self.network, self.layout, self.rng, self.steps, self.dt = network, layout, rng, steps, dt
        self.roster = Roster()
        self.walks: list[Parallel] = []
        self.parked: list[Parked] = []
        self.nudges: list[Nudge] = []
        self.offsets = {plan.junction: rng.uniform(0.0, plan.cycle_s) for plan in network.signals}
        self.sdc = -1
        self.is_exam = is_exam
        self.stay_s = STAY_IN_EXAM_S if is_exam else STAY_S
        self._taken: dict[int, list[tuple[float, float]]] = {}

    def room(self, lane: int, s: float, length: float, spare: float) -> bool:
        """Whether nobody on the lane is closer than `spare` meters, bumper to bumper."""
        return all(abs(s - at) > spare + (length + other) / 2 for at, other in self._taken.get(lane, []))

    def put(self, person: Person, lane: int, s: float, speed: float | None = None, **changes: Any) -> int:
        """Place somebody on a lane, by default at the speed that suits the place; returns the number."""
        number = self.roster.add(person, lane=lane, s=s, **changes)
        person.speed = self.suitable_speed(person, lane, s) if speed is None else float(speed)
        self._taken.setdefault(lane, []).append((s, person.length))
        return number

    def put_car(self, lane: int, s: float, speed: float | None = None, **changes: Any) -> int:
        return self.put(self.draw_driver(lane), lane, s, speed, **changes)

    def draw_driver(self, lane: int) -> Person:
        freeway = self.network.lanes[lane].type == LaneType.FREEWAY
        return draw_driver(self.rng, freeway=freeway)

    def suitable_speed(self, person: Person, lane: int, s: float) -> float:
        """What lets one take the bends ahead and stop before a junction."""
        item = self.network.lanes[lane]
        path = item.path
        speed = min(person.speed_factor * item.speed_limit, person.top_speed)
        if self.layout.lanes["sharpest"][lane] * speed**2 > person.cornering:
            ahead = np.maximum(np.linspace(0.0, path.length, len(path.x)) - s, 0.0)
            squared = person.cornering / np.maximum(np.abs(path.curvature), 1e-4) + 2.0 * COMFORTABLE_BRAKING * ahead
            speed = min(speed, float(np.sqrt(squared.min())))
        if item.ends or any(self.network.lanes[n].junction >= 0 for n in item.successors):
            left = max(path.length - s - person.length / 2 - 5.0, 0.0)
            speed = min(speed, float(np.sqrt(2.0 * COMFORTABLE_BRAKING * left)))
        return speed

    def fill(self, *, cars: int, spacing: float = 14.0, arrivals_every_s: float = 7.0) -> None:
        """Add background traffic: cars and cyclists on the map, more that arrive, pedestrians, parked cars."""
        self._fill_parking()
        lanes = self.network.lanes
        roads = [i for i, lane in enumerate(lanes) if lane.junction < 0 and lane.type != LaneType.BIKE_LANE]
        bikes = [i for i, lane in enumerate(lanes) if lane.junction < 0 and lane.type == LaneType.BIKE_LANE]
        weights = np.array([lanes[i].path.length for i in roads])
        for _ in range(cars):
            self._put_anywhere(self.rng.choice(roads, p=weights / weights.sum()), spacing)
        for _ in range(min(len(bikes), int(self.rng.integers(0, 4)))):
            self._put_anywhere(int(self.rng.choice(bikes)), 4.0)
        unused = [z for z in range(len(self.network.crosswalks)) if all(z != p.zebra for p in self.roster.people)]
        for zebra in self.rng.permutation(unused)[: int(self.rng.integers(0, 6))]:
            self.put_walker(int(zebra), arrives_s=self.rng.uniform(0.0, 22.0))
        self._match_speeds()
        self._fill_arrivals(arrivals_every_s)

    def _match_speeds(self) -> None:
        """Nobody starts too fast for whoever is next on the lane or on those that follow it.

        Later lanes come first: numbers mostly grow in the direction of travel, so that a queue is passed on backwards.
        """
        people = self.roster.people
        on_lane: dict[int, list[int]] = {}
        for i, person in enumerate(people):
            if person.kind != Kind.PEDESTRIAN:
                on_lane.setdefault(person.lane, []).append(i)
        for lane in sorted(on_lane, reverse=True):
            for i in sorted(on_lane[lane], key=lambda n: -people[n].s):
                for gap, j in self._ahead(on_lane, lane, i):
                    gap = max(gap - people[i].standing_gap, 0.0)
                    fastest = min(gap / 0.8, np.sqrt(people[j].speed ** 2 + 2.0 * COMFORTABLE_BRAKING * gap))
                    people[i].speed = min(people[i].speed, float(fastest))

    def _ahead(self, on_lane: dict[int, list[int]], lane: int, i: int) -> Iterator[tuple[float, int]]:
        """Gap and number of everybody ahead of i on its lane and the lanes that follow."""
        people = self.roster.people
        for following, start in [
            (lane, 0.0),
            *((n, self.network.lanes[lane].path.length) for n in self.network.lanes[lane].successors),
        ]:
            for j in on_lane.get(following, []):
                between = start + people[j].s - people[i].s
                if between > 0.0:
                    yield between - (people[i].length + people[j].length) / 2, j

    def _put_anywhere(self, lane: int, spacing: float) -> None:
        item = self.network.lanes[lane]
        person = draw_cyclist(self.rng) if item.type == LaneType.BIKE_LANE else self.draw_driver(lane)
        s = self.rng.uniform(person.length, max(item.path.length - 8.0, person.length + 1.0))
        spare = spacing if item.type != LaneType.FREEWAY else 0.9 * item.speed_limit * person.headway
        if s < item.path.length - person.length and self.room(lane, s, person.length, spare):
            self.put(person, lane, s)

    def _fill_arrivals(self, every_s: float) -> None:
        for lane in self.network.entries:
            item = self.network.lanes[lane]
            mean = every_s * (2.5 if item.type == LaneType.BIKE_LANE else 1.0)
            time = self.rng.exponential(mean)
            while time < self.steps * self.dt:
                person = draw_cyclist(self.rng) if item.type == LaneType.BIKE_LANE else self.draw_driver(lane)
                speed = self.suitable_speed(person, lane, person.length / 2 + 0.5)
                step = max(int(time / self.dt), 1)
                self.roster.add(person, lane=lane, s=person.length / 2 + 0.5, speed=speed, first_step=step)
                time += max(self.rng.exponential(mean), 2.0)

    def _fill_parking(self) -> None:
        for number in self.rng.permutation(len(self.network.parking)):
            strip = self.network.parking[number]
            station = strip.first + 1.0
            while len(self.parked) < MOST_PARKED:
                length, width = self.rng.uniform(4.1, 5.0), self.rng.uniform(1.75, 1.95)
                station += length / 2 + self.rng.uniform(0.8, 2.0)
                if station + length / 2 + 0.5 > strip.last:
                    break
                if self.rng.random() < 0.4:
                    slack = (strip.width - width) / 2 - 0.12
                    self._park(strip, station, length, width, shift=self.rng.uniform(-slack, slack))
                station += length / 2

    def _park(self, strip: ParkingStrip, station: float, length: float, width: float, shift: float) -> None:
        """Let a car stand there, unless another one does."""
        pose = strip.curve.at(station).shifted(left=strip.offset + shift)
        clear = all(
            np.hypot(pose.x - other.pose.x, pose.y - other.pose.y) > (length + other.length) / 2 + 0.3
            for other in self.parked
        )
        if clear:
            angle = self.rng.uniform(-0.02, 0.02)
            pose = Pose(pose.x, pose.y, pose.heading + angle)
            self.parked.append(Parked(pose, length, width, self.rng.uniform(1.4, 1.8)))

    def park_badly(self, strip: ParkingStrip, station: float, reach: float) -> Nudge:
        """Park a car that reaches into the lane beside the strip, which makes everybody there keep off."""
        lane = self.network.lanes[strip.lane]
        length, width = self.rng.uniform(4.2, 5.0), self.rng.uniform(1.8, 1.95)
        edge = lane.offset - lane.width / 2  # the lane's right side, as an offset from the curve
        middle = edge + reach - width / 2
        self._park(strip, station, length, width, shift=middle - strip.offset)
        passing = 1.95  # wide enough for most cars
        shift = reach + PASSING_GAP_M + passing / 2 - lane.width / 2
        at = float(np.interp(station, lane.path.stations, np.linspace(0.0, lane.path.length, len(lane.path.stations))))
        nudge = Nudge(strip.lane, at - length / 2 - 4.0, at + length / 2 + 4.0, shift)
        self.nudges.append(nudge)
        return nudge

    def gives_way_to(self, lane: int) -> list[int]:
        """The lanes whose traffic goes first where it meets this lane's."""
        first, last = self.layout.lanes["conflict"][lane], self.layout.lanes["conflict"][lane + 1]
        return [int(c["lane"]) for c in self.layout.conflicts[first:last] if c["rank"] < 0]

    def way_ahead(self, lane: int, s: float = 0.0) -> float:
        """Meters that one can drive from a place before one leaves the map, up to half a kilometer."""
        lanes = self.network.lanes
        way = lanes[lane].path.length - s
        while way < 500.0 and lanes[lane].successors:
            lane = lanes[lane].successors[0]
            way += lanes[lane].path.length
        return way

    def lane_point(self, lane: int, s: float) -> NDArray[np.float64]:
        """(2,) the middle of a lane at a meter."""
        path = self.network.lanes[lane].path
        at = np.linspace(0.0, path.length, len(path.x))
        return np.array([np.interp(s, at, path.x), np.interp(s, at, path.y)])

    def crossings(self) -> list[tuple[int, int, float]]:
        """Crosswalk, lane that it lies on, and the meter where it begins there."""
        layout = self.layout
        owners = np.repeat(np.arange(len(layout.lanes) - 1), np.diff(layout.lanes["zebra"]))
        return [
            (int(z["zebra"]), int(lane), float(z["span"][0])) for z, lane in zip(layout.zebras, owners, strict=True)
        ]

    def put_walker(self, zebra: int, arrives_s: float, curb_number: int | None = None) -> int:
        """Send a pedestrian over a crosswalk, from one of its curbs, reached about `arrives_s` into the recording."""
        crosswalk = self.network.crosswalks[zebra]
        person = draw_pedestrian(self.rng)
        backwards = int(self.rng.random() < 0.5) if curb_number is None else curb_number
        here, there = crosswalk.curbs[backwards], crosswalk.curbs[1 - backwards]
        across = there - here
        width = float(np.hypot(*across))
        heading = float(np.arctan2(across[1], across[0]))
        others = sum(p.zebra == zebra for p in self.roster.people)
        slot = (0.0, 0.95, -0.95)[others % 3]  # people keep out of each other's way
        side = 1.0 if crosswalk.junction >= 0 else self.rng.choice([-1.0, 1.0])
        outward = float(np.arctan2(*(side * crosswalk.outward)[::-1]))
        verge = SIDEWALK_M + 0.8 * (others % 3) + self.rng.uniform(0.0, 0.2, 2)
        start = Pose(here[0], here[1], heading).shifted(ahead=-verge[0])
        start = Pose(start.x + slot * crosswalk.outward[0], start.y + slot * crosswalk.outward[1], heading)
        to_side = (outward - heading + np.pi) % (2 * np.pi) - np.pi
        back = start.turned_back()
        from_side = (outward - back.heading + np.pi) % (2 * np.pi) - np.pi
        walked = arrives_s * person.top_speed
        before = _walk_away(back, from_side, float(np.clip(walked - verge[0] - 2.4, 0.5, 12.0))).reversed()
        path = before.then(line(start, verge[0] + width + verge[1]))
        path = path.then(_walk_away(path.end, to_side, 30.0))
        self.walks.append(path.parallel(0.0, WALK_SPACING_M))
        curb = before.length + verge[0]
        s = min(max(curb - walked, 0.3), curb - 2.2)
        return self.roster.add(
            person,
            lane=len(self.network.lanes) + len(self.walks) - 1,
            s=s,
            speed=person.top_speed,
            first_step=int(max(arrives_s - (curb - s) / person.top_speed, 0.0) / self.dt),
            zebra=zebra,
            curb_s=(curb, curb + width),
            backwards=backwards,
        )


def _walk_away(start: Pose, turning: float, length: float) -> Curve:
    """Turn off and walk straight on."""
    curve = bend(start, turning, 1.0)
    return curve.then(line(curve.end, length))
