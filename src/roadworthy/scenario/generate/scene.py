"""Scenes: a network and the road users on it before the simulation starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.curves import Curve, Parallel, Pose, bend, line
from roadworthy.scenario.generate.network import Network, ParkingStrip
from roadworthy.scenario.generate.road_users import RoadUser, draw_cyclist, draw_driver, draw_pedestrian
from roadworthy.scenario.generate.traffic.tables import Layout, Nudge
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.schema import LaneType

SIDEWALK_M = 3.0  # from the curb to where pedestrians walk along the road
WALK_SPACING_M = 0.25
COMFORTABLE_BRAKING = 1.2  # m/s2
MOST_PARKED = 14
STAY_S, STAY_IN_EXAM_S = 11.0, 18.0  # how long the self-driving car should remain on the map
PASSING_GAP_M = 0.55  # between a car and one that is parked in its way


@dataclass(frozen=True)
class Parked:
    """A car that never moves."""

    pose: Pose
    length: float
    width: float
    height: float


class Scene:
    """The road users of a recording with a number of steps, and the initial state of the signals."""

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
        """Create a scene without road users.

        is_exam: whether the recording becomes an exam, in which the event comes later and the self-driving car needs
        more road.
        """
        self.network, self.layout, self.rng, self.steps, self.dt = network, layout, rng, steps, dt
        self.road_users: list[RoadUser] = []  # in the order in which they were added
        self.walks: list[Parallel] = []
        self.parked: list[Parked] = []
        self.nudges: list[Nudge] = []
        self.offsets = {plan.junction: rng.uniform(0.0, plan.cycle_s) for plan in network.signals}
        self.sdc = -1
        self.is_exam = is_exam
        self.stay_s = STAY_IN_EXAM_S if is_exam else STAY_S
        self._taken: dict[int, list[tuple[float, float]]] = {}

    def room(self, lane: int, s: float, length: float, spare: float) -> bool:
        """Return whether no road user on the lane is closer than `spare` m, bumper to bumper."""
        return all(abs(s - at) > spare + (length + other) / 2 for at, other in self._taken.get(lane, []))

    def add(self, user: RoadUser, **changes: Any) -> int:
        """Add a road user with changed properties, and return its number."""
        for name, value in changes.items():
            setattr(user, name, value)
        self.road_users.append(user)
        return len(self.road_users) - 1

    def put(self, user: RoadUser, lane: int, s: float, speed: float | None = None, **changes: Any) -> int:
        """Place a road user on a lane, by default at a suitable speed, and return its number."""
        number = self.add(user, lane=lane, s=s, **changes)
        user.speed = self.suitable_speed(user, lane, s) if speed is None else float(speed)
        self._taken.setdefault(lane, []).append((s, user.length))
        return number

    def put_car(self, lane: int, s: float, speed: float | None = None, **changes: Any) -> int:
        return self.put(self.draw_driver(lane), lane, s, speed, **changes)

    def draw_driver(self, lane: int) -> RoadUser:
        freeway = self.network.lanes[lane].type == LaneType.FREEWAY
        return draw_driver(self.rng, freeway=freeway)

    def suitable_speed(self, user: RoadUser, lane: int, s: float) -> float:
        """Return a speed that allows for the bends ahead and for stopping before a junction."""
        item = self.network.lanes[lane]
        path = item.path
        speed = min(user.speed_factor * item.speed_limit, user.top_speed)
        if self.layout.lanes["sharpest"][lane] * speed**2 > user.cornering:
            ahead = np.maximum(np.linspace(0.0, path.length, len(path.x)) - s, 0.0)
            squared = user.cornering / np.maximum(np.abs(path.curvature), 1e-4) + 2.0 * COMFORTABLE_BRAKING * ahead
            speed = min(speed, float(np.sqrt(squared.min())))
        if item.ends or any(self.network.lanes[n].junction >= 0 for n in item.successors):
            left = max(path.length - s - user.length / 2 - 5.0, 0.0)
            speed = min(speed, float(np.sqrt(2.0 * COMFORTABLE_BRAKING * left)))
        return speed

    def fill(self, *, cars: int, spacing: float = 14.0, arrivals_every_s: float = 7.0) -> None:
        """Add background traffic: cars and cyclists on the map and at its border, pedestrians, parked cars."""
        self._fill_parking()
        lanes = self.network.lanes
        roads = [i for i, lane in enumerate(lanes) if lane.junction < 0 and lane.type != LaneType.BIKE_LANE]
        bikes = [i for i, lane in enumerate(lanes) if lane.junction < 0 and lane.type == LaneType.BIKE_LANE]
        weights = np.array([lanes[i].path.length for i in roads])
        for _ in range(cars):
            self._put_anywhere(self.rng.choice(roads, p=weights / weights.sum()), spacing)
        for _ in range(min(len(bikes), int(self.rng.integers(0, 4)))):
            self._put_anywhere(int(self.rng.choice(bikes)), 4.0)
        unused = [z for z in range(len(self.network.crosswalks)) if all(z != p.crosswalk for p in self.road_users)]
        for crosswalk in self.rng.permutation(unused)[: int(self.rng.integers(0, 6))]:
            self.put_pedestrian(int(crosswalk), arrives_s=self.rng.uniform(0.0, 22.0))
        self._match_speeds()
        self._fill_arrivals(arrivals_every_s)

    def _match_speeds(self) -> None:
        """Limit initial speeds to those that suit the next road user on the lane or its successors.

        Later lanes come first, because numbers mostly grow in the driving direction, so that a queue is processed
        backward.
        """
        users = self.road_users
        on_lane: dict[int, list[int]] = {}
        for i, user in enumerate(users):
            if user.kind != Kind.PEDESTRIAN:
                on_lane.setdefault(user.lane, []).append(i)
        for lane in sorted(on_lane, reverse=True):
            for i in sorted(on_lane[lane], key=lambda n: -users[n].s):
                for gap, j in self._ahead(on_lane, lane, i):
                    gap = max(gap - users[i].standing_gap, 0.0)
                    fastest = min(gap / 0.8, np.sqrt(users[j].speed ** 2 + 2.0 * COMFORTABLE_BRAKING * gap))
                    users[i].speed = min(users[i].speed, float(fastest))

    def _ahead(self, on_lane: dict[int, list[int]], lane: int, i: int) -> Iterator[tuple[float, int]]:
        """Yield gap and number of all road users ahead of i on its lane and the successors."""
        users = self.road_users
        for following, start in [
            (lane, 0.0),
            *((n, self.network.lanes[lane].path.length) for n in self.network.lanes[lane].successors),
        ]:
            for j in on_lane.get(following, []):
                between = start + users[j].s - users[i].s
                if between > 0.0:
                    yield between - (users[i].length + users[j].length) / 2, j

    def _put_anywhere(self, lane: int, spacing: float) -> None:
        item = self.network.lanes[lane]
        user = draw_cyclist(self.rng) if item.type == LaneType.BIKE_LANE else self.draw_driver(lane)
        s = self.rng.uniform(user.length, max(item.path.length - 8.0, user.length + 1.0))
        spare = spacing if item.type != LaneType.FREEWAY else 0.9 * item.speed_limit * user.headway
        if s < item.path.length - user.length and self.room(lane, s, user.length, spare):
            self.put(user, lane, s)

    def _fill_arrivals(self, every_s: float) -> None:
        for lane in self.network.entries:
            item = self.network.lanes[lane]
            mean = every_s * (2.5 if item.type == LaneType.BIKE_LANE else 1.0)
            time = self.rng.exponential(mean)
            while time < self.steps * self.dt:
                user = draw_cyclist(self.rng) if item.type == LaneType.BIKE_LANE else self.draw_driver(lane)
                speed = self.suitable_speed(user, lane, user.length / 2 + 0.5)
                step = max(int(time / self.dt), 1)
                self.add(user, lane=lane, s=user.length / 2 + 0.5, speed=speed, first_step=step)
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
        """Park a car, unless another one is in the way."""
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
        """Park a car that protrudes into the lane beside the strip, so that all traffic keeps away from it."""
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
        """Return the lanes with priority over this lane."""
        first, last = self.layout.lanes["conflict"][lane], self.layout.lanes["conflict"][lane + 1]
        return [int(c["lane"]) for c in self.layout.conflicts[first:last] if c["rank"] < 0]

    def way_ahead(self, lane: int, s: float = 0.0) -> float:
        """Return m that a car can drive from a place before it leaves the map, up to half a kilometer."""
        lanes = self.network.lanes
        way = lanes[lane].path.length - s
        while way < 500.0 and lanes[lane].successors:
            lane = lanes[lane].successors[0]
            way += lanes[lane].path.length
        return way

    def lane_point(self, lane: int, s: float) -> NDArray[np.float64]:
        """Return (2,) the center of a lane at a distance from its start."""
        path = self.network.lanes[lane].path
        at = np.linspace(0.0, path.length, len(path.x))
        return np.array([np.interp(s, at, path.x), np.interp(s, at, path.y)])

    def crossings(self) -> list[tuple[int, int, float]]:
        """Return crosswalk, the lane that it crosses, and the distance along the lane where it starts."""
        layout = self.layout
        owners = np.repeat(np.arange(len(layout.lanes) - 1), np.diff(layout.lanes["crosswalk"]))
        return [
            (int(z["crosswalk"]), int(lane), float(z["span"][0]))
            for z, lane in zip(layout.lane_crosswalks, owners, strict=True)
        ]

    def put_pedestrian(self, crosswalk: int, arrives_s: float, curb_number: int | None = None) -> int:
        """Send a pedestrian over a crosswalk from a curb, which it reaches about `arrives_s` into the recording."""
        shape = self.network.crosswalks[crosswalk]
        user = draw_pedestrian(self.rng)
        backwards = int(self.rng.random() < 0.5) if curb_number is None else curb_number
        here, there = shape.curbs[backwards], shape.curbs[1 - backwards]
        across = there - here
        width = float(np.hypot(*across))
        heading = float(np.arctan2(across[1], across[0]))
        others = sum(p.crosswalk == crosswalk for p in self.road_users)
        slot = (0.0, 0.95, -0.95)[others % 3]  # pedestrians keep out of each other's way
        side = 1.0 if shape.junction >= 0 else self.rng.choice([-1.0, 1.0])
        outward = float(np.arctan2(*(side * shape.outward)[::-1]))
        verge = SIDEWALK_M + 0.8 * (others % 3) + self.rng.uniform(0.0, 0.2, 2)
        start = Pose(here[0], here[1], heading).shifted(ahead=-verge[0])
        start = Pose(start.x + slot * shape.outward[0], start.y + slot * shape.outward[1], heading)
        to_side = (outward - heading + np.pi) % (2 * np.pi) - np.pi
        back = start.turned_back()
        from_side = (outward - back.heading + np.pi) % (2 * np.pi) - np.pi
        walked = arrives_s * user.top_speed
        before = _walk_away(back, from_side, float(np.clip(walked - verge[0] - 2.4, 0.5, 12.0))).reversed()
        path = before.then(line(start, verge[0] + width + verge[1]))
        path = path.then(_walk_away(path.end, to_side, 30.0))
        self.walks.append(path.parallel(0.0, WALK_SPACING_M))
        curb = before.length + verge[0]
        s = min(max(curb - walked, 0.3), curb - 2.2)
        return self.add(
            user,
            lane=len(self.network.lanes) + len(self.walks) - 1,
            s=s,
            speed=user.top_speed,
            first_step=int(max(arrives_s - (curb - s) / user.top_speed, 0.0) / self.dt),
            crosswalk=crosswalk,
            curb_s=(curb, curb + width),
            backwards=backwards,
        )


def _walk_away(start: Pose, turning: float, length: float) -> Curve:
    """Return a turn followed by a straight line."""
    curve = bend(start, turning, 1.0)
    return curve.then(line(curve.end, length))
