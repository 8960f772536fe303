"""Towns: streets that cross in a warped grid, with a junction of some kind at every crossing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.curves import Curve, Pose, connect
from roadworthy.scenario.generate.junctions import Arm, JunctionControl, build_junction
from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.roads import Road, Section, add_crosswalk, build_road
from roadworthy.scenario.generate.roundabouts import build_roundabout

ROUNDABOUT = "roundabout"
CONTROLS: tuple[JunctionControl | str, ...] = (*JunctionControl, ROUNDABOUT)
SHARPEST_STREET_PER_M = 1.0 / 45.0

Node = tuple[int, int]  # column, row


@dataclass(frozen=True)
class TownPlan:
    """What a town has to have; the rest is drawn."""

    centre: JunctionControl | str | None = None  # how its first junction is controlled
    lanes: int | None = None  # per direction, on its first street and the one that crosses it
    parking: bool | None = None  # along its first street
    midblock_crosswalk: bool = False


@dataclass(frozen=True)
class Street:
    """A line of nodes with one cross-section, and the places beyond both ends."""

    number: int
    nodes: tuple[Node, ...]
    section: Section


def build_town(rng: np.random.Generator, plan: TownPlan) -> Network:
    """A town of two or three streets by two or three."""
    columns, rows = int(rng.integers(2, 4)), 2
    spacing = rng.uniform(105.0, 135.0)
    places = {
        (c, r): np.array([c * spacing, r * spacing]) + rng.uniform(-9.0, 9.0, 2) for c in range(columns) for r in range(rows)
    }
    tilt = rng.uniform(-np.pi, np.pi)
    turn = np.array([[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]])
    places = {node: turn @ place for node, place in places.items()}
    controls = {node: _draw_control(rng) for node in places}
    if plan.centre is not None:
        controls[(0, 0)] = plan.centre
    if plan.lanes is not None and plan.lanes > 1:  # rings have one lane
        wide = [node for node in places if 0 in node and controls[node] == ROUNDABOUT]
        controls.update({node: JunctionControl.PRIORITY for node in wide})
    streets = _draw_streets(rng, plan, columns, rows, controls)
    return _Builder(rng, plan, places, controls, streets, tilt).build()


def _draw_control(rng: np.random.Generator) -> JunctionControl | str:
    return CONTROLS[int(rng.choice(len(CONTROLS), p=[0.25, 0.2, 0.25, 0.15, 0.15]))]


def _draw_streets(
    rng: np.random.Generator, plan: TownPlan, columns: int, rows: int, controls: dict[Node, JunctionControl | str]
) -> list[Street]:
    lines = [tuple((c, r) for c in range(columns)) for r in range(rows)]
    lines += [tuple((c, r) for r in range(rows)) for c in range(columns)]
    streets = []
    for number, nodes in enumerate(lines):
        is_main = (0, 0) in nodes
        lanes = int(rng.choice([1, 2], p=[0.55, 0.45]))
        if is_main and plan.lanes is not None:
            lanes = plan.lanes
        has_ring = any(controls[node] == ROUNDABOUT for node in nodes)
        if has_ring:
            lanes = 1
        parking = rng.random() < 0.45
        if number == 0 and plan.parking is not None:
            parking = plan.parking
        bikes = not has_ring and not parking and rng.random() < 0.5
        width = rng.uniform(3.3, 3.6)
        limit = float(rng.choice([11.2, 13.4, 15.6])) if lanes > 1 else float(rng.choice([8.9, 11.2, 13.4]))
        streets.append(
            Street(number, nodes, Section(lanes, width, limit, 1.7 if bikes else 0.0, 2.3 if parking else 0.0))
        )
    return streets


class _Builder:
    """Lays the streets of a town between its junctions."""

    def __init__(
        self,
        rng: np.random.Generator,
        plan: TownPlan,
        places: dict[Node, np.ndarray],
        controls: dict[Node, JunctionControl | str],
        streets: list[Street],
        tilt: float,
    ) -> None:
        self.rng, self.plan, self.places, self.controls, self.streets = rng, plan, places, controls, streets
        self.network = Network()
        self.arms: dict[Node, list[Arm]] = {node: [] for node in places}
        self.radii = {node: rng.uniform(17.0, 20.0) for node in places}
        self.headings = {
            (street.number, node): self._heading(street, node, tilt) for street in streets for node in street.nodes
        }

    def build(self) -> Network:
        for street in self.streets:
            dropped = self._dropped_end(street)
            for end, node in ((0, street.nodes[0]), (1, street.nodes[-1])):
                if end != dropped:
                    self._lay_outskirt(street, node, outward=end == 1)
            for a, b in zip(street.nodes, street.nodes[1:], strict=False):
                self._lay_block(street, a, b)
        for node, arms in self.arms.items():
            self._join(node, arms)
        return self.network

    def _heading(self, street: Street, node: Node, tilt: float) -> float:
        """Along the street, through the node: between the directions to its neighbours."""
        along = tilt + (0.0 if street.nodes[0][1] == street.nodes[-1][1] and len({n[0] for n in street.nodes}) > 1 else np.pi / 2)
        index = street.nodes.index(node)
        before, after = street.nodes[max(index - 1, 0)], street.nodes[min(index + 1, len(street.nodes) - 1)]
        step = self.places[after] - self.places[before]
        chord = float(np.arctan2(step[1], step[0]))
        swing = (chord - along + np.pi) % (2 * np.pi) - np.pi
        return along + 0.5 * swing + float(self.rng.uniform(-0.06, 0.06))

    def _dropped_end(self, street: Street) -> int | None:
        """Some streets begin or end at a T-junction."""
        if self.rng.random() < 0.35:
            end = int(self.rng.integers(0, 2))
            node = street.nodes[-1] if end else street.nodes[0]
            others = [s for s in self.streets if node in s.nodes and s.number != street.number]
            if node != (0, 0) and all(node not in (o.nodes[0], o.nodes[-1]) or o.number > street.number for o in others):
                return self._claim_t(node, end)
        return None

    def _claim_t(self, node: Node, end: int) -> int | None:
        """At most one arm of a junction is left out."""
        if node in getattr(self, "_ts", set()):
            return None
        self._ts = {*getattr(self, "_ts", set()), node}
        return end

    def _reach(self, street: Street, node: Node) -> float:
        """From a node's middle to where a street's lanes end before it."""
        if self.controls[node] == ROUNDABOUT:
            return self.radii[node] + 12.0
        crossing = max(s.section.kerb for s in self.streets if node in s.nodes and s.number != street.number)
        own = street.section.kerb
        angles = [self.headings[s.number, node] for s in self.streets if node in s.nodes]
        lean = abs(np.cos(angles[0] - angles[1]))  # skewed crossings need more room
        return crossing + 10.5 + lean * (own + crossing)

    def _pose(self, street: Street, node: Node, *, ahead: float) -> Pose:
        place = self.places[node]
        return Pose(float(place[0]), float(place[1]), self.headings[street.number, node]).shifted(ahead=ahead)

    def _street_curve(self, start: Pose, end: Pose) -> Curve:
        curve = connect(start, end)
        if curve is None or curve.sharpest > SHARPEST_STREET_PER_M:
            raise GenerationError("a street can't be laid between two junctions")
        return curve

    def _lay_block(self, street: Street, a: Node, b: Node) -> None:
        start = self._pose(street, a, ahead=self._reach(street, a))
        end = self._pose(street, b, ahead=-self._reach(street, b))
        road = build_road(self.network, self._street_curve(start, end), street.section)
        self.arms[a].append(Arm(road, True, street.number))
        self.arms[b].append(Arm(road, False, street.number))
        if (self.plan.midblock_crosswalk and street.number == 0) or self.rng.random() < 0.15:
            self._midblock_crosswalk(road)

    def _lay_outskirt(self, street: Street, node: Node, *, outward: bool) -> None:
        """The stretch from the first or last junction to the edge of the map."""
        length, bow = self.rng.uniform(75.0, 115.0), self.rng.uniform(-0.3, 0.3)
        near = self._pose(street, node, ahead=self._reach(street, node) * (1 if outward else -1))
        if not outward:
            near = near.turned_back()
        far = near.shifted(ahead=length, left=length * np.tan(bow / 2))
        curve = self._street_curve(near, Pose(far.x, far.y, near.heading + bow))
        if not outward:
            curve = curve.reversed()
        road = build_road(self.network, curve, street.section)
        self.arms[node].append(Arm(road, outward, street.number))
        incoming = (road.backward, road.backward_bike) if outward else (road.forward, road.forward_bike)
        self.network.entries += [*incoming[0], *([incoming[1]] if incoming[1] >= 0 else [])]

    def _midblock_crosswalk(self, road: Road) -> None:
        section = road.section
        if section.parking_width:
            return
        add_crosswalk(self.network, road.curve.at(road.curve.length * self.rng.uniform(0.4, 0.6)), section)

    def _join(self, node: Node, arms: list[Arm]) -> None:
        control = self.controls[node]
        arms = sorted(arms, key=lambda arm: (sum(a.street == arm.street for a in arms) < 2, arm.street))
        if isinstance(control, JunctionControl):
            greens = tuple(self.rng.uniform(8.0, 16.0, 4))
            build_junction(self.network, arms, control, greens)
        else:
            place = self.places[node]
            build_roundabout(
                self.network,
                arms,
                (float(place[0]), float(place[1])),
                self.radii[node],
                crosswalks=bool(self.rng.random() < 0.5),
            )
