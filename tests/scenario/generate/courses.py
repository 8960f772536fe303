"""Small road networks with plain coordinates, and traffic on them, for tests of the behavior of road users."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely
from numpy.typing import NDArray

from roadworthy.scenario.generate.curves import Pose, line
from roadworthy.scenario.generate.junctions import Arm, JunctionControl, build_junction
from roadworthy.scenario.generate.network import Lane, Network, Turn
from roadworthy.scenario.generate.recording import record
from roadworthy.scenario.generate.roads import Road, Section, add_crosswalk, build_road
from roadworthy.scenario.generate.roundabouts import build_roundabout
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.signals import phase_start
from roadworthy.scenario.generate.traffic.tables import Layout, lay_out

DT = 0.1
SIDES = {"east": 0.0, "west": np.pi, "north": np.pi / 2, "south": -np.pi / 2}
ARM_M = 150.0

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Course:
    """A network, and its roads by name."""

    network: Network
    roads: dict[str, Road]

    @cached_property
    def layout(self) -> Layout:
        return lay_out(self.network)

    @property
    def lanes(self) -> list[Lane]:
        return self.network.lanes

    def scene(self, seconds: float, seed: int = 0) -> Scene:
        """Return an empty scene for a recording."""
        return Scene(self.network, self.layout, np.random.default_rng(seed), round(seconds / DT), DT)

    def approach(self, side: str) -> int:
        """Return the innermost lane that leads in from a side."""
        return self.roads[side].backward[0]

    def movement(self, side: str, turn: Turn) -> int:
        """Return the lane that leads through the junction from a side."""
        (found,) = (n for n in self.lanes[self.approach(side)].successors if self.lanes[n].turn == turn)
        return found

    def show_green_to(self, scene: Scene, lane: int, since_s: float = 0.0) -> None:
        """Start the recording this many seconds after a junction lane's light turned green."""
        (plan,) = self.network.signals
        (number,) = (n for n, phase in enumerate(plan.phases) if lane in phase.shows)
        scene.offsets[plan.junction] = (phase_start(plan, number) + since_s) % plan.cycle_s


def straight_road(
    lanes: int = 1, length: float = 500.0, limit: float = 14.0, crosswalk_at: float | None = None
) -> Course:
    """Return a two-way road along the x axis."""
    network = Network()
    curve = line(Pose(0.0, 0.0, 0.0), length)
    section = Section(lanes, 3.5, limit)
    road = build_road(network, curve, section)
    if crosswalk_at is not None:
        add_crosswalk(network, curve.at(crosswalk_at), section)
    return Course(network, {"road": road})


def crossing(control: JunctionControl, green_s: float = 40.0, limit: float = 12.0) -> Course:
    """Return four roads of one lane per direction that meet at the origin; east and west are the main street."""
    network = Network()
    section = Section(1, 3.5, limit)
    roads = _arms(network, section, section.curb + 10.5)
    arms = [Arm(roads[side], True, number // 2) for number, side in enumerate(SIDES)]
    build_junction(network, arms, control, (green_s,) * 4)
    return Course(network, roads)


def roundabout(limit: float = 12.0) -> Course:
    """Return four roads around a ring at the origin."""
    network, radius = Network(), 18.0
    roads = _arms(network, Section(1, 3.5, limit), radius + 12.0)
    arms = [Arm(roads[side], True, number // 2) for number, side in enumerate(SIDES)]
    build_roundabout(network, arms, (0.0, 0.0), radius, crosswalks=False)
    return Course(network, roads)


def _arms(network: Network, section: Section, reach: float) -> dict[str, Road]:
    return {
        side: build_road(
            network,
            line(Pose(reach * np.cos(angle), reach * np.sin(angle), angle), ARM_M),
            section,
            parking_margin=30.0,
        )
        for side, angle in SIDES.items()
    }


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The motion in a scene: rows are road users, columns steps."""

    scene: Scene
    x: Array
    y: Array
    heading: Array
    v: Array
    present: NDArray[np.bool_]
    lights: NDArray[np.uint8]
    light_numbers: NDArray[np.int64]  # of each lane

    @property
    def lengths(self) -> Array:
        return np.array([user.length for user in self.scene.road_users])

    def shown(self, lane: int) -> NDArray[np.uint8]:
        """Return (T,) the states of a junction lane's light."""
        return self.lights[self.light_numbers[lane]]

    def ahead_of(self, pose: Pose, user: int) -> Array:
        """Return (T,) m by which a road user's front bumper is beyond a pose, along its heading."""
        along = (self.x[user] - pose.x) * np.cos(pose.heading) + (self.y[user] - pose.y) * np.sin(pose.heading)
        return along + self.lengths[user] / 2

    def left_of(self, pose: Pose, user: int) -> Array:
        """Return (T,) m left of the line through a pose."""
        return (self.y[user] - pose.y) * np.cos(pose.heading) - (self.x[user] - pose.x) * np.sin(pose.heading)

    def step_at(self, place: shapely.Point, user: int) -> int:
        """Return the step at which a road user's center is closest to a place; it must come within 3 m."""
        away = np.where(self.present[user], np.hypot(self.x[user] - place.x, self.y[user] - place.y), np.inf)
        assert away.min() < 3.0, f"road user {user} stays {away.min():.1f} m away"
        return int(away.argmin())

    def boxes(self, step: int) -> list[shapely.Polygon]:
        """Return the outlines of all road users that are present."""
        outlines = []
        for i in np.flatnonzero(self.present[:, step]):
            user, pose = self.scene.road_users[i], Pose(self.x[i, step], self.y[i, step], self.heading[i, step])
            corners = [
                pose.shifted(ahead=a * user.length / 2, left=b * user.width / 2)
                for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))
            ]
            outlines.append(shapely.Polygon([(corner.x, corner.y) for corner in corners]))
        return outlines

    def overlaps(self) -> list[int]:
        """Return the steps at which the outlines of two road users touch."""
        found = []
        for step in range(self.x.shape[1]):
            outlines = self.boxes(step)
            if any(a.intersects(b) for i, a in enumerate(outlines) for b in outlines[:i]):
                found.append(step)
        return found


def simulate_scene(scene: Scene) -> Run:
    """Simulate the traffic of a scene."""
    recording = record(scene)
    motion = recording.motion
    x, y, heading, v = (np.where(motion["present"], motion[name], np.nan) for name in ("x", "y", "heading", "v"))
    return Run(scene, x, y, heading, v, motion["present"], recording.lights, recording.tables.lanes["light"])
