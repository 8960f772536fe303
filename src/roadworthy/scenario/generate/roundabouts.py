"""Roundabouts: a ring with priority, and lanes to and from it."""

from __future__ import annotations

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.curves import Curve, Pose, connect
from roadworthy.scenario.generate.junctions import SHARPEST_TURN_PER_M, Arm
from roadworthy.scenario.generate.network import Control, Network, Points, Turn, band
from roadworthy.scenario.generate.roads import GUTTER_M, add_crosswalk, add_stop_line
from roadworthy.scenario.schema import LineType

RING_WIDTH_M = 4.6
RING_SPEED_MPS = 8.5
CROSSWALK_DISTANCE_M = 9.0  # from the yield line outward


def build_roundabout(
    network: Network, arms: list[Arm], center: tuple[float, float], radius: float, *, crosswalks: bool
) -> int:
    """Join roads of one lane per direction around a ring with this radius of its center line."""
    junction = network.new_junction()
    spread = np.deg2rad(34.0)  # from an arm to where its traffic enters and leaves the ring
    angles = [arm.outward.heading for arm in arms]
    order = np.argsort(np.mod(angles, 2 * np.pi))
    inner, entries = {}, {}
    for number in order:
        inner[number] = _arc(network, junction, center, radius, angles[number] - spread, 2 * spread)
    for position, number in enumerate(order):
        following = order[(position + 1) % len(order)]
        span = np.mod(angles[following] - angles[number], 2 * np.pi) - 2 * spread
        if span * radius < 2.5:
            raise GenerationError("two arms of a roundabout lie too close together")
        outer = _arc(network, junction, center, radius, angles[number] + spread, span)
        entries[number] = _joint(network, junction, arms[number].approaching[0], outer)
        _joint(network, junction, outer, arms[following].leaving[0])
        network.lanes[inner[number]].successors.append(outer)
        network.lanes[outer].successors.append(inner[following])
    for number, arm in enumerate(arms):
        network.lanes[entries[number]].control = Control.YIELD
        network.yields.add((entries[number], inner[number]))
        add_stop_line(network, arm.approaching[0])
        if crosswalks:
            add_crosswalk(
                network, arm.outward.shifted(ahead=CROSSWALK_DISTANCE_M), arm.road.section, junction=-1, arm=number
            )
    network.surfaces.append(_disk(center, radius + RING_WIDTH_M / 2 + GUTTER_M))
    network.islands.append(_disk(center, radius - RING_WIDTH_M / 2 - GUTTER_M))
    network.lines.append((LineType.SOLID_SINGLE_YELLOW, _disk(center, radius - RING_WIDTH_M / 2, closed=True)))
    return junction


def _arc(network: Network, junction: int, center: tuple[float, float], radius: float, angle: float, span: float) -> int:
    start = Pose(
        center[0] + radius * np.cos(angle), center[1] + radius * np.sin(angle), angle + np.pi / 2, 1.0 / radius
    )
    curve = Curve(start, np.array([radius * span]), np.full((1, 2), 1.0 / radius))
    number = network.add_lane(curve, RING_WIDTH_M, RING_SPEED_MPS)
    lane = network.lanes[number]
    lane.junction, lane.turn = junction, Turn.RING
    return number


def _joint(network: Network, junction: int, source: int, target: int) -> int:
    """Add a lane from an arm to the ring, or from the ring to an arm."""
    a, b = network.lanes[source], network.lanes[target]
    curve = connect(a.end, b.start)
    if curve is None or curve.sharpest > SHARPEST_TURN_PER_M:
        raise GenerationError("an arm of a roundabout can't be joined to its ring")
    number = network.add_lane(curve, min(a.width, b.width), RING_SPEED_MPS)
    lane = network.lanes[number]
    lane.junction, lane.turn, lane.approach = junction, Turn.RIGHT, source
    lane.successors.append(target)
    a.successors.append(number)
    half = lane.width / 2 + GUTTER_M
    network.surfaces.append(band(curve, half, -half))
    return number


def _disk(center: tuple[float, float], radius: float, *, closed: bool = False) -> Points:
    angles = np.linspace(0.0, 2 * np.pi, 97)[: None if closed else -1]
    return np.column_stack([center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)])
