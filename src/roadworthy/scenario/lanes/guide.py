"""The guide of a recorded car: one line along the centers of the lanes that its recording follows.

The line changes lanes where the recording does, and keeps to the center of its lane elsewhere. Beyond the end of the
recording it continues straight ahead. It has a suitable speed: the speed limits, reduced in bends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.lanes.locate import Places
from roadworthy.scenario.lanes.network import Doubles, LaneNetwork
from roadworthy.scenario.schema import Bools, RoadMap

SPACING_M = 0.5
CHANGE_S = 2.0  # before and after the recording crosses the lane line, its own path is the lane change
FADE_S = 1.5  # over which the line returns from that path to the lane's center
BEND_M = 4.0  # over which curvature is measured
UNKNOWN_LIMIT_MPS = 11.2  # if the map has none (25 mph)
LATERAL_MPS2 = 2.5  # in bends
ACCELERATION_MPS2 = 1.6
BRAKING_MPS2 = 1.6  # before bends and lower speed limits


@dataclass(frozen=True, eq=False)
class Guide:
    """A line of P equidistant points."""

    x: Doubles  # (P,)
    y: Doubles  # (P,)
    heading: Doubles  # (P,) rad, continuous
    station: Doubles  # (P,) m from the first point
    speed: Doubles  # (P,) m/s, the suitable speed: speed limits, and lateral acceleration in bends
    half_width: Doubles  # (P,) m, of the lane
    changes: Bools  # (P,) whether the line changes lanes here

    def pose(self, station: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """Return x, y and heading at stations; stations beyond the line get those of its ends."""
        x, y, heading = (np.interp(station, self.station, line) for line in (self.x, self.y, self.heading))
        return x, y, heading

    def project(self, x: Doubles, y: Doubles, heading: Doubles | None = None) -> tuple[Doubles, Doubles]:
        """Return station and offset to the left of points (n,) at the nearest place of the line.

        heading: (n,) if given, places whose direction differs by 90 degrees or more are ignored.
        """
        square = (x[:, None] - self.x) ** 2 + (y[:, None] - self.y) ** 2
        if heading is not None:
            square = np.where(np.cos(heading[:, None] - self.heading) > 0.0, square, square + 1.0e6)
        near = np.argmin(square, axis=1)
        dx, dy, at = x - self.x[near], y - self.y[near], self.heading[near]
        along = np.clip(dx * np.cos(at) + dy * np.sin(at), -SPACING_M, SPACING_M)
        return self.station[near] + along, dy * np.cos(at) - dx * np.sin(at)

    def free_drive(
        self, station: float, speed: float, steps: int, dt: float, share: float = 1.0
    ) -> tuple[Doubles, Doubles]:
        """Return stations and speeds (steps,) of a car that considers only speed limits and bends.

        share: the share of the suitable speed that it drives.
        """
        stations, speeds = np.empty(steps), np.empty(steps)
        for step in range(steps):
            stations[step], speeds[step] = station, speed
            wanted = share * float(np.interp(station, self.station, self.speed))
            after = min(max(wanted, speed - 2.0 * BRAKING_MPS2 * dt), speed + ACCELERATION_MPS2 * dt)
            station += 0.5 * (speed + after) * dt
            speed = after
        return stations, speeds


def guide_of(
    network: LaneNetwork,
    road_map: RoadMap,
    places: Places,
    x: Doubles,
    y: Doubles,
    dt: float,
    ahead_m: float,
    keeps_lane: bool = False,
) -> Guide:
    """Return the guide of a recorded car that is present at all T steps.

    places, x, y: the recording, each (T,). ahead_m: how far the line continues beyond the end of the recording, if
    there are lanes. keeps_lane: the line follows the lane of the first step instead, straight ahead at forks.
    """
    on_lane = np.flatnonzero(places.lane >= 0)
    if keeps_lane and len(on_lane):
        first = int(on_lane[0])
        is_change = np.zeros(0, np.bool_)
        way = _way_on(network, int(places.lane[first]), ahead_m + float(np.hypot(np.diff(x), np.diff(y)).sum()) + 5.0)
        line_x, line_y, lanes = _from(network, way, float(places.arc[first]))
    else:
        weights = _weights(places, dt)
        own, is_change = weights * places.offset, weights > 0.0
        toward = places_heading(network, places)
        line_x = np.where(places.lane >= 0, x + (places.offset - own) * np.sin(toward), x)
        line_y = np.where(places.lane >= 0, y - (places.offset - own) * np.cos(toward), y)
        lanes = places.lane.astype(np.int64)
        if len(on_lane) and on_lane[-1] == len(x) - 1:
            end = int(places.lane[-1])
            way = _way_on(network, end, ahead_m + float(network.length[end]))
            more_x, more_y, more_lanes = _from(network, way, float(places.arc[-1]) + SPACING_M)
            line_x, line_y = np.concatenate([line_x, more_x]), np.concatenate([line_y, more_y])
            lanes = np.concatenate([lanes, more_lanes])
    is_change = np.concatenate([is_change, np.zeros(len(line_x) - len(is_change), np.bool_)])
    return _sampled(network, road_map, line_x, line_y, lanes, is_change)


def places_heading(network: LaneNetwork, places: Places) -> Doubles:
    """Return (T,) the direction of the lane at each place; 0 where there is no lane."""
    headings = np.zeros(len(places.lane))
    for lane in np.unique(places.lane[places.lane >= 0]):
        lane_x, lane_y, arc = network.center(int(lane))
        here = places.lane == lane
        direction = np.unwrap(np.arctan2(np.diff(lane_y), np.diff(lane_x)))
        piece = np.clip(np.searchsorted(arc, places.arc[here], side="right") - 1, 0, len(direction) - 1)
        headings[here] = direction[piece]
    return headings


def _weights(places: Places, dt: float) -> Doubles:
    """Return how much of the recording's own offset the line keeps: all of it in a lane change, none elsewhere."""
    steps, weights = np.arange(len(places.lane)), np.zeros(len(places.lane))
    for step in np.flatnonzero(places.shift):
        away = np.abs(steps - step) * dt
        weights = np.maximum(weights, np.clip((CHANGE_S + FADE_S - away) / FADE_S, 0.0, 1.0))
    return weights


def _way_on(network: LaneNetwork, lane: int, length_m: float) -> list[int]:
    """Return a lane and its successors, the straightest at each fork, until they are long enough or end."""
    way, meters = [lane], float(network.length[lane])
    while meters < length_m:
        following = [int(n) for n in network.following(way[-1]) if n not in way]
        if not following:
            break
        way.append(min(following, key=lambda n: (abs(network.turn[n]), n)))
        meters += float(network.length[way[-1]])
    return way


def _from(network: LaneNetwork, way: list[int], arc: float) -> tuple[Doubles, Doubles, Doubles]:
    """Return x, y and lane of each center point, from a distance on the first lane on."""
    parts = []
    for number, lane in enumerate(way):
        lane_x, lane_y, lane_arc = network.center(lane)
        start = arc if number == 0 else 0.0
        at = np.arange(start, float(lane_arc[-1]), SPACING_M)
        parts.append((np.interp(at, lane_arc, lane_x), np.interp(at, lane_arc, lane_y), np.full(len(at), lane)))
    x, y, lanes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return x, y, lanes


def _sampled(
    network: LaneNetwork, road_map: RoadMap, x: Doubles, y: Doubles, lanes: Doubles, is_change: Bools
) -> Guide:
    """Return a line of equidistant points; points that hardly move are dropped."""
    kept = [0]
    for i in range(1, len(x)):
        if np.hypot(x[i] - x[kept[-1]], y[i] - y[kept[-1]]) >= 0.5 * SPACING_M:
            kept.append(i)
    x, y, lanes, is_change = x[kept], y[kept], lanes[kept].astype(np.int64), is_change[kept]
    if len(x) < 2:  # a car that never moves, off all lanes
        x, y, lanes = np.append(x, x[-1] + SPACING_M), np.append(y, y[-1]), np.append(lanes, lanes[-1])
        is_change = np.append(is_change, is_change[-1])
    traveled = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    station = np.arange(0.0, traveled[-1] + SPACING_M, SPACING_M)
    line_x, line_y = np.interp(station, traveled, x), np.interp(station, traveled, y)
    heading = np.unwrap(np.arctan2(np.gradient(line_y), np.gradient(line_x)))
    nearest = np.clip(np.searchsorted(traveled, station, side="right") - 1, 0, len(lanes) - 1)
    lane = lanes[nearest]
    limits = np.append(np.where(road_map.speed_limits > 0.0, road_map.speed_limits, UNKNOWN_LIMIT_MPS), np.nan)
    limit = np.nan_to_num(limits[lane].astype(np.float64), nan=UNKNOWN_LIMIT_MPS)
    reach = int(BEND_M / SPACING_M / 2.0)
    padded = np.pad(heading, reach, mode="edge")
    curvature = np.abs(padded[2 * reach :] - padded[: -2 * reach]) / BEND_M
    speed = np.minimum(limit, np.sqrt(LATERAL_MPS2 / np.maximum(curvature, 1.0e-4)))
    for i in range(len(speed) - 2, -1, -1):
        speed[i] = min(speed[i], np.sqrt(speed[i + 1] ** 2 + 2.0 * BRAKING_MPS2 * SPACING_M))
    half_width = np.append(network.half_width, np.median(network.half_width))[lane]
    return Guide(line_x, line_y, heading, station, speed, half_width, is_change[nearest])


def is_beside(guide: Guide, station: Doubles, offset: Doubles) -> Bools:
    """Return whether points are within the guide's lane."""
    return np.abs(offset) <= np.interp(station, guide.station, guide.half_width)
