"""Towns: streets that cross in a warped grid, with a junction at every crossing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.curves import Curve, Pose, connect
from roadworthy.scenario.generate.junctions import Arm, JunctionControl, build_junction
from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.roads import Section, add_crosswalk, build_road
from roadworthy.scenario.generate.roundabouts import build_roundabout

CONTROL_SHARES = {
    JunctionControl.PROTECTED_SIGNAL: 0.25,
    JunctionControl.PERMITTED_SIGNAL: 0.2,
    JunctionControl.PRIORITY: 0.25,
    JunctionControl.ALL_WAY_STOP: 0.15,
    JunctionControl.ROUNDABOUT: 0.15,
}
SHARPEST_STREET_PER_M = 1.0 / 45.0

Node = tuple[int, int]  # column, row
CENTER: Node = (0, 0)  # the junction that a plan specifies


@dataclass(frozen=True)
class TownPlan:
    """The required properties of a town; all others are random."""

    center: JunctionControl | None = None  # the control of the junction at CENTER
    lanes: int | None = None  # per direction, on the two streets through CENTER
    parking: bool | None = None  # along the first street
    midblock_crosswalk: bool = False  # on the first street
    streets: tuple[int, int] | None = None  # numbers of streets in both directions


@dataclass(frozen=True)
class Street:
    """A line of nodes with one cross-section, which continues beyond its first and last node unless it stops."""

    number: int
    nodes: tuple[Node, ...]
    stops_at: Node | None
    section: Section


def build_town(rng: np.random.Generator, plan: TownPlan) -> Network:
    """Build a town around the origin, of two or three streets by two unless the plan says otherwise."""
    columns, rows = plan.streets or (int(rng.integers(2, 4)), 2)
    spacing, tilt = rng.uniform(105.0, 135.0), rng.uniform(-np.pi, np.pi)
    turn = np.array([[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]])
    middle = np.array([columns - 1, rows - 1]) / 2
    nodes = [(c, r) for c in range(columns) for r in range(rows)]
    places = {node: turn @ ((node - middle) * spacing + rng.uniform(-9.0, 9.0, 2)) for node in nodes}
    controls = _draw_controls(rng, plan, nodes)
    lines = [[(c, r) for c in range(columns)] for r in range(rows)] + [
        [(c, r) for r in range(rows)] for c in range(columns)
    ]
    streets = _draw_streets(rng, plan, lines, controls)
    directions = [tilt] * rows + [tilt + np.pi / 2] * columns
    return _Builder(rng, plan, places, controls, streets, directions).build()


def _draw_controls(rng: np.random.Generator, plan: TownPlan, nodes: list[Node]) -> dict[Node, JunctionControl]:
    kinds = list(CONTROL_SHARES)
    controls = {node: kinds[int(rng.choice(len(kinds), p=list(CONTROL_SHARES.values())))] for node in nodes}
    if plan.center is not None:
        controls[CENTER] = plan.center
    if plan.lanes is not None and plan.lanes > 1:  # rings have one lane
        wide = [node for node in nodes if 0 in node and controls[node] == JunctionControl.ROUNDABOUT]
        controls.update(dict.fromkeys(wide, JunctionControl.PRIORITY))
    return controls


def _draw_streets(
    rng: np.random.Generator, plan: TownPlan, lines: list[list[Node]], controls: dict[Node, JunctionControl]
) -> list[Street]:
    streets: list[Street] = []
    for number, nodes in enumerate(lines):
        stops_at = None
        if rng.random() < 0.35:  # a T-junction, where no other street stops
            end = nodes[int(rng.integers(2)) - 1]
            if end != CENTER and all(street.stops_at != end for street in streets):
                stops_at = end
        streets.append(
            Street(number, tuple(nodes), stops_at, _draw_section(rng, plan, number, nodes, stops_at, controls))
        )
    return streets


def _draw_section(
    rng: np.random.Generator,
    plan: TownPlan,
    number: int,
    nodes: list[Node],
    stops_at: Node | None,
    controls: dict[Node, JunctionControl],
) -> Section:
    lanes = int(rng.choice([1, 2], p=[0.55, 0.45]))
    if CENTER in nodes and plan.lanes is not None:
        lanes = plan.lanes
    has_ring = any(controls[node] == JunctionControl.ROUNDABOUT for node in nodes)
    if has_ring:
        lanes = 1
    parking = bool(rng.random() < 0.45)
    if number == 0 and plan.parking is not None:
        parking = plan.parking
    # Bicycle lanes lead straight ahead at every junction, so they need a street that continues.
    bikes = bool(rng.random() < 0.5) and not (has_ring or parking or stops_at)
    limits = [8.9, 11.2, 13.4] if lanes == 1 else [11.2, 13.4, 15.6]  # 20 to 35 mph
    return Section(
        lanes=lanes,
        lane_width=rng.uniform(3.3, 3.6),
        speed_limit=float(rng.choice(limits)),
        bike_width=1.7 if bikes else 0.0,
        parking_width=2.3 if parking else 0.0,
    )


class _Builder:
    """Builds the streets of a town between its junctions, then the junctions."""

    def __init__(
        self,
        rng: np.random.Generator,
        plan: TownPlan,
        places: dict[Node, np.ndarray],
        controls: dict[Node, JunctionControl],
        streets: list[Street],
        directions: list[float],
    ) -> None:
        self.rng, self.plan, self.places, self.controls, self.streets = rng, plan, places, controls, streets
        self.network = Network()
        self.arms: dict[Node, list[Arm]] = {node: [] for node in places}
        self.radii = {node: rng.uniform(17.0, 20.0) for node in places}
        self.headings = {
            (street.number, node): self._heading(street, node, directions[street.number])
            for street in streets
            for node in street.nodes
        }

    def build(self) -> Network:
        for street in self.streets:
            for node, outward in ((street.nodes[0], False), (street.nodes[-1], True)):
                if node != street.stops_at:
                    self._lay_outskirt(street, node, outward=outward)
            for a, b in pairwise(street.nodes):
                self._lay_block(street, a, b)
        for node in self.arms:
            self._join(node)
        return self.network

    def _heading(self, street: Street, node: Node, along: float) -> float:
        """Return the direction through a node: between that of the grid and that to the street's adjacent nodes."""
        index = street.nodes.index(node)
        before, after = street.nodes[max(index - 1, 0)], street.nodes[min(index + 1, len(street.nodes) - 1)]
        step = self.places[after] - self.places[before]
        swing = (float(np.arctan2(step[1], step[0])) - along + np.pi) % (2 * np.pi) - np.pi
        return along + 0.5 * swing + float(self.rng.uniform(-0.06, 0.06))

    def _reach(self, street: Street, node: Node) -> float:
        """Return the distance from a node's middle to where the lanes of a street end."""
        if self.controls[node] == JunctionControl.ROUNDABOUT:
            return self.radii[node] + 12.0
        (other,) = (s for s in self.streets if node in s.nodes and s.number != street.number)
        lean = abs(np.cos(self.headings[street.number, node] - self.headings[other.number, node]))
        # Room for right turns; skewed crossings need more of it.
        return other.section.curb + 10.5 + float(lean) * (street.section.curb + other.section.curb)

    def _pose(self, street: Street, node: Node, *, ahead: float) -> Pose:
        x, y = self.places[node]
        return Pose(float(x), float(y), self.headings[street.number, node]).shifted(ahead=ahead)

    def _curve(self, start: Pose, end: Pose) -> Curve:
        curve = connect(start, end)
        if curve is None or curve.sharpest > SHARPEST_STREET_PER_M:
            raise GenerationError("no street can connect two junctions")
        return curve

    def _lay_block(self, street: Street, a: Node, b: Node) -> None:
        start = self._pose(street, a, ahead=self._reach(street, a))
        end = self._pose(street, b, ahead=-self._reach(street, b))
        road = build_road(self.network, self._curve(start, end), street.section)
        self.arms[a].append(Arm(road, True, street.number))
        self.arms[b].append(Arm(road, False, street.number))
        wanted = self.plan.midblock_crosswalk and street.number == 0
        if not street.section.parking_width and (wanted or self.rng.random() < 0.15):
            add_crosswalk(self.network, road.curve.at(road.curve.length * self.rng.uniform(0.4, 0.6)), street.section)

    def _lay_outskirt(self, street: Street, node: Node, *, outward: bool) -> None:
        """Build the section from the first or last junction to the border of the map."""
        length, bow = self.rng.uniform(75.0, 115.0), self.rng.uniform(-0.3, 0.3)
        near = self._pose(street, node, ahead=self._reach(street, node) * (1 if outward else -1))
        if not outward:
            near = near.turned_back()
        far = near.shifted(ahead=length, left=length * np.tan(bow / 2))
        curve = self._curve(near, Pose(far.x, far.y, near.heading + bow))
        road = build_road(self.network, curve if outward else curve.reversed(), street.section)
        arm = Arm(road, outward, street.number)
        self.arms[node].append(arm)
        self.network.entries += [*arm.approaching, *([arm.bike_in] if arm.bike_in >= 0 else [])]

    def _join(self, node: Node) -> None:
        # The street that continues comes first: it has priority.
        arms = self.arms[node]
        arms = sorted(arms, key=lambda arm: (sum(a.street == arm.street for a in arms) < 2, arm.street))
        if self.controls[node] == JunctionControl.ROUNDABOUT:
            x, y = self.places[node]
            crosswalks = bool(self.rng.random() < 0.5)
            build_roundabout(self.network, arms, (float(x), float(y)), self.radii[node], crosswalks=crosswalks)
        else:
            build_junction(self.network, arms, self.controls[node], tuple(self.rng.uniform(10.0, 16.0, 4).tolist()))
