"""Crossings and T-junctions: connecting lanes, crosswalks, right of way, signals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.curves import Pose, connect
from roadworthy.scenario.generate.network import Control, Network, Phase, SignalPlan, Turn, band
from roadworthy.scenario.generate.roads import GUTTER_M, Road, add_crosswalk, add_stop_line, add_stop_sign
from roadworthy.scenario.schema import LaneType, LightState

CROSSWALK_SETBACK_M = 2.6  # from the stop line to the middle of the crosswalk
STRAIGHT_WITHIN_RAD = np.deg2rad(35.0)
SHARPEST_TURN_PER_M = 1.0 / 6.0


class JunctionControl(Enum):
    """How a junction regulates right of way."""

    PROTECTED_SIGNAL = "protected_signal"  # left turns have their own phase
    PERMITTED_SIGNAL = "permitted_signal"  # left turns yield on a flashing arrow
    PRIORITY = "priority"  # the main street has priority, the side street stops
    ALL_WAY_STOP = "all_way_stop"
    ROUNDABOUT = "roundabout"  # the ring has priority: see roundabouts.py


@dataclass(frozen=True, eq=False)
class Arm:
    """A road at the junction at one of its ends."""

    road: Road
    starts_here: bool  # whether the road's curve starts at this junction
    street: int  # arms of one street are opposite each other

    @property
    def outward(self) -> Pose:
        """Return where the road leaves the junction, looking away from it."""
        return self.road.curve.start if self.starts_here else self.road.curve.end.turned_back()

    @property
    def approaching(self) -> tuple[int, ...]:
        """Return lanes that lead in, innermost first."""
        return self.road.backward if self.starts_here else self.road.forward

    @property
    def leaving(self) -> tuple[int, ...]:
        """Return lanes that lead out, innermost first."""
        return self.road.forward if self.starts_here else self.road.backward

    @property
    def bike_in(self) -> int:
        return self.road.backward_bike if self.starts_here else self.road.forward_bike

    @property
    def bike_out(self) -> int:
        return self.road.forward_bike if self.starts_here else self.road.backward_bike


@dataclass(frozen=True)
class Movement:
    """A movement through a junction."""

    lane: int
    source: int  # arm
    target: int  # arm
    turn: Turn


def build_junction(network: Network, arms: list[Arm], control: JunctionControl, greens: tuple[float, ...]) -> int:
    """Join the ends of roads around a place. `greens` are the durations in s of successive green phases."""
    junction = network.new_junction()
    movements = []
    for source, arm in enumerate(arms):
        for target in range(len(arms)):
            if source != target:
                movements += _movements(network, arms, source, target, control)
        if arm.bike_in >= 0:
            movements += _bike_movements(network, arms, source)
        network.surfaces.append(_stub(arms, source))
        for lane in (*arm.approaching, *([arm.bike_in] if arm.bike_in >= 0 else [])):
            add_stop_line(network, lane)
        add_crosswalk(
            network, arm.outward.shifted(ahead=-CROSSWALK_SETBACK_M), arm.road.section, junction=junction, arm=source
        )
    for movement in movements:
        connector = network.lanes[movement.lane]
        connector.junction = junction
        half = connector.width / 2 + GUTTER_M
        network.surfaces.append(band(connector.curve, half, -half))
    _right_of_way(network, arms, movements, control)
    if control in (JunctionControl.PROTECTED_SIGNAL, JunctionControl.PERMITTED_SIGNAL):
        network.signals.append(_signals(network, junction, arms, movements, control, greens))
        for movement in movements:
            network.lanes[movement.lane].control = Control.SIGNAL
    return junction


def deflection(arms: list[Arm], source: int, target: int) -> float:
    """Return the turning angle from an arm to another, left positive."""
    turn = arms[target].outward.heading - (arms[source].outward.heading + np.pi)
    return float((turn + np.pi) % (2 * np.pi) - np.pi)


def turn_of(arms: list[Arm], source: int, target: int) -> Turn:
    angle = deflection(arms, source, target)
    if abs(angle) <= STRAIGHT_WITHIN_RAD:
        return Turn.STRAIGHT
    return Turn.LEFT if angle > 0 else Turn.RIGHT


def _movements(network: Network, arms: list[Arm], source: int, target: int, control: JunctionControl) -> list[Movement]:
    turn = turn_of(arms, source, target)
    inside, outside = arms[source].approaching, arms[target].leaving
    turns = {turn_of(arms, source, other) for other in range(len(arms)) if other != source}
    if turn == Turn.LEFT:
        pairs = [(inside[0], outside[0])]
    elif turn == Turn.RIGHT:
        pairs = [(inside[-1], outside[-1])]
    else:
        left_only = control == JunctionControl.PROTECTED_SIGNAL and Turn.LEFT in turns and len(inside) > 1
        through = inside[1:] if left_only else inside
        pairs = [(lane, outside[min(inside.index(lane), len(outside) - 1)]) for lane in through]
    return [Movement(_connector(network, a, b, turn), source, target, turn) for a, b in pairs]


def _bike_movements(network: Network, arms: list[Arm], source: int) -> list[Movement]:
    return [
        Movement(_connector(network, arms[source].bike_in, other.bike_out, turn), source, target, turn)
        for target, other in enumerate(arms)
        if target != source and other.bike_out >= 0 and (turn := turn_of(arms, source, target)) != Turn.LEFT
    ]


def _connector(network: Network, source: int, target: int, turn: Turn) -> int:
    """Add a lane from the end of one lane to the start of another."""
    a, b = network.lanes[source], network.lanes[target]
    curve = connect(a.end, b.start)
    if curve is None or curve.sharpest > SHARPEST_TURN_PER_M:
        raise GenerationError("no lane can connect two of the arms of a junction")
    number = network.add_lane(curve, min(a.width, b.width), min(a.speed_limit, b.speed_limit), type=a.type)
    lane = network.lanes[number]
    lane.turn, lane.approach = turn, source
    lane.successors.append(target)
    a.successors.append(number)
    return number


def _stub(arms: list[Arm], source: int) -> np.ndarray:
    """Add the pavement of an arm from its end to the middle of the junction."""
    outward, half = arms[source].outward, arms[source].road.section.curb
    middle = np.mean([[a.outward.x, a.outward.y] for a in arms], axis=0)
    reach = float(np.hypot(outward.x - middle[0], outward.y - middle[1]))
    corners = [
        outward.shifted(left=side * half, ahead=a) for side, a in ((1, 0.5), (-1, 0.5), (-1, -reach), (1, -reach))
    ]
    return np.array([[c.x, c.y] for c in corners])


def _right_of_way(network: Network, arms: list[Arm], movements: list[Movement], control: JunctionControl) -> None:
    """Set who yields to whom, for every pair of movements from different arms; equals go first come, first served."""
    main = arms[0].street
    if control in (JunctionControl.PRIORITY, JunctionControl.ALL_WAY_STOP):
        for number, arm in enumerate(arms):
            if control == JunctionControl.ALL_WAY_STOP or arm.street != main:
                outermost = arm.bike_in if arm.bike_in >= 0 else arm.approaching[-1]
                add_stop_sign(network, outermost, [m.lane for m in movements if m.source == number])
    for a in movements:
        for b in movements:
            if a.source == b.source:
                bike_beside = network.lanes[b.lane].type == LaneType.BIKE_LANE != network.lanes[a.lane].type
                if bike_beside and a.turn == Turn.RIGHT and b.turn == Turn.STRAIGHT:
                    network.yields.add((a.lane, b.lane))
            elif control == JunctionControl.PRIORITY and (arms[a.source].street == main) != (
                arms[b.source].street == main
            ):
                if arms[b.source].street == main:
                    network.yields.add((a.lane, b.lane))
            elif a.turn == Turn.LEFT and b.turn != Turn.LEFT and arms[a.source].street == arms[b.source].street:
                # Opposite traffic has priority, except where both have to stop: then they go in the order of their
                # stops.
                if network.lanes[a.lane].control != Control.STOP:
                    network.yields.add((a.lane, b.lane))


def _signals(
    network: Network,
    junction: int,
    arms: list[Arm],
    movements: list[Movement],
    control: JunctionControl,
    greens: tuple[float, ...],
) -> SignalPlan:
    """Return phases without conflicting greens: street by street, protected left turns before the others."""
    phases: list[tuple[float, dict[int, LightState]]] = []  # share of the green duration, what is shown
    streets = sorted({arm.street for arm in arms})
    for street in streets:
        own = [m for m in movements if arms[m.source].street == street]
        lefts = [m for m in own if m.turn == Turn.LEFT]
        others = {m.lane: _shown(arms[m.source], network, m) for m in own if m.turn != Turn.LEFT}
        # From an arm without an opposite one, a left turn meets nobody and is green with the others.
        opposed = len({m.source for m in own}) > 1
        if not opposed:
            phases.append((1.0, {**others, **{m.lane: LightState.ARROW_GO for m in lefts}}))
        elif control == JunctionControl.PROTECTED_SIGNAL and lefts:
            phases.append((0.6, {m.lane: LightState.ARROW_GO for m in lefts}))
            phases.append((1.0, others))
        else:
            phases.append((1.0, {**others, **{m.lane: LightState.FLASHING_CAUTION for m in lefts}}))
    return SignalPlan(
        junction,
        tuple(Phase(share * greens[i % len(greens)], shows) for i, (share, shows) in enumerate(phases) if shows),
        yellow_s=3.5,
        all_red_s=2.0,
    )


def _shown(arm: Arm, network: Network, movement: Movement) -> LightState:
    """Return green, or for a right turn over a bicycle lane the flashing light that requires yielding."""
    crosses_bikes = (
        movement.turn == Turn.RIGHT and arm.bike_in >= 0 and network.lanes[movement.lane].type != LaneType.BIKE_LANE
    )
    return LightState.FLASHING_CAUTION if crosses_bikes else LightState.GO
