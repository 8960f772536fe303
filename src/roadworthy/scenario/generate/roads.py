"""Roads: a cross-section of lanes along a curve, with paint, parking strips and pavement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.generate.curves import Curve, Pose
from roadworthy.scenario.generate.network import Control, Crosswalk, Network, ParkingStrip, Points
from roadworthy.scenario.schema import LaneType, LineType

PARKING_TAPER_M = 4.0
CROSSWALK_WIDTH_M = 3.0
GUTTER_M = 0.35  # paved strip between the outermost lane and the curb


@dataclass(frozen=True)
class Section:
    """A cross-section, symmetric, from the middle outward: lanes, bicycle lane, parking."""

    lanes: int
    lane_width: float
    speed_limit: float
    bike_width: float = 0.0  # 0: no bicycle lane
    parking_width: float = 0.0  # 0: no parking

    def lane_offset(self, lane: int) -> float:
        """Return the offset of a lane's center to the right of the road's middle; lane 0 is innermost."""
        return self.lane_width * (lane + 0.5)

    @property
    def driving_width(self) -> float:
        """Return the distance from the middle to the outer side of the outermost driving lane."""
        return self.lane_width * self.lanes

    @property
    def bike_offset(self) -> float:
        return self.driving_width + self.bike_width / 2

    @property
    def curb(self) -> float:
        """Return the distance from the middle to the curb, without parking strips."""
        return self.driving_width + self.bike_width + GUTTER_M


@dataclass(frozen=True, eq=False)
class Road:
    """A two-way road: lane numbers of each direction, innermost first."""

    curve: Curve
    section: Section
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    forward_bike: int = -1
    backward_bike: int = -1


def build_road(network: Network, curve: Curve, section: Section, *, parking_margin: float = 12.0) -> Road:
    """Build a two-way road along a curve."""
    back = curve.reversed()
    forward, forward_bike = _direction(network, curve, section, parking_margin)
    backward, backward_bike = _direction(network, back, section, parking_margin)
    network.add_band(curve, section.curb, -section.curb)
    middle = LineType.SOLID_DOUBLE_YELLOW if section.lanes > 1 else LineType.BROKEN_SINGLE_YELLOW
    network.add_line(middle, curve, 0.0)
    return Road(curve, section, forward, backward, forward_bike, backward_bike)


def _direction(network: Network, curve: Curve, section: Section, parking_margin: float) -> tuple[tuple[int, ...], int]:
    group = network.new_group()
    lanes = tuple(
        network.add_lane(
            curve, section.lane_width, section.speed_limit, offset=-section.lane_offset(number), group=group
        )
        for number in range(section.lanes)
    )
    for number in range(1, section.lanes):
        network.set_beside(lanes[number - 1], lanes[number])
        network.add_line(LineType.BROKEN_SINGLE_WHITE, curve, -section.lane_width * number)
    bike = -1
    if section.bike_width:
        network.add_line(LineType.SOLID_SINGLE_WHITE, curve, -section.driving_width)
        bike = network.add_lane(
            curve,
            section.bike_width,
            7.0,
            offset=-section.bike_offset,
            type=LaneType.BIKE_LANE,
            group=network.new_group(),
        )
    if section.parking_width and curve.length > 2 * parking_margin + 20.0:
        _parking(network, curve, section, lanes[-1], parking_margin)
    return lanes, bike


def _parking(network: Network, curve: Curve, section: Section, lane: int, margin: float) -> None:
    """Add a strip along the curb, tapered at both ends, and room for cars between the tapers."""
    first, last = margin, curve.length - margin
    inner, outer = -section.curb + 0.1, -section.curb - section.parking_width
    start, end = first + PARKING_TAPER_M, last - PARKING_TAPER_M
    near = curve.parallel(inner, 1.0, first, last)
    far = curve.parallel(outer, 1.0, start, end)
    network.surfaces.append(np.concatenate([np.column_stack([far.x, far.y]), np.column_stack([near.x, near.y])[::-1]]))
    network.add_line(LineType.SOLID_SINGLE_WHITE, curve, -section.curb, start, end)
    middle = -section.curb - section.parking_width / 2
    network.parking.append(ParkingStrip(curve, lane, middle, section.parking_width, start, end))


def add_crosswalk(
    network: Network, pose: Pose, section: Section, *, extra: float = 0.0, junction: int = -1, arm: int = -1
) -> int:
    """Paint a crosswalk over a road whose middle passes the pose; `extra` m of parking strip on each side."""
    half = section.curb + extra
    ahead = np.array([np.cos(pose.heading), np.sin(pose.heading)])
    left = np.array([-ahead[1], ahead[0]])
    middle = np.array([pose.x, pose.y])
    across, along = left * half, ahead * (CROSSWALK_WIDTH_M / 2)
    polygon = np.array(
        [middle - across - along, middle + across - along, middle + across + along, middle - across + along]
    )
    curbs: Points = np.array([middle - across, middle + across])
    network.crosswalks.append(Crosswalk(polygon, curbs, ahead, junction, arm))
    return len(network.crosswalks) - 1


def add_stop_line(network: Network, lane: int, back: float = 0.0) -> None:
    """Paint a line across the end of a lane, or `back` m before it."""
    item = network.lanes[lane]
    pose = item.end.shifted(ahead=-back)
    left, right = pose.shifted(left=item.width / 2), pose.shifted(left=-item.width / 2)
    network.stop_lines.append((lane, np.array([[left.x, left.y], [right.x, right.y]])))


def add_stop_sign(network: Network, lane: int, connectors: list[int]) -> None:
    """Add a stop sign on the right of a lane's end."""
    for connector in connectors:
        network.lanes[connector].control = Control.STOP
    place = network.lanes[lane].end.shifted(left=-network.lanes[lane].width / 2 - 1.0)
    network.stop_signs.append((np.array([place.x, place.y]), connectors))
