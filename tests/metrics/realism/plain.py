"""A reference implementation of the features in plain NumPy: every pair, every segment. Float32 as specified.

Arrays are (A, T) for one version of the motion; results are (E, T), the first E agents being evaluated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import FeatureKind, LaneType, Scenario

f32 = np.float32
Array = NDArray[Any]
CORNERS = ((1, 1), (-1, 1), (-1, -1), (1, -1))


def difference(values: Array) -> Array:
    """Central, NaN at the ends."""
    ends = np.full((*values.shape[:-1], 1), np.nan, f32)
    return np.concatenate([ends, (values[..., 2:] - values[..., :-2]) / f32(2), ends], axis=-1)


def wrap(angle: Array) -> Array:
    """Within half a turn."""
    return (angle + f32(np.pi)) % f32(2 * np.pi) - f32(np.pi)


def kinematics(x: Array, y: Array, z: Array, heading: Array, dt: float) -> tuple[Array, Array, Array, Array]:
    """Speed, acceleration, angular speed, angular acceleration."""
    speed = np.sqrt(difference(x) ** 2 + difference(y) ** 2 + difference(z) ** 2) / f32(dt)
    turn = wrap(difference(heading) * f32(2)) / f32(2)
    turn_of_turn = wrap(difference(turn) * f32(2)) / f32(2)
    return speed, difference(speed) / f32(dt), turn / f32(dt), turn_of_turn / f32(dt**2)


def corners(x: Array, y: Array, heading: Array, length: Array, width: Array) -> Array:
    """(..., 4, 2) from the front left, counter-clockwise."""
    cos, sin = np.cos(heading.astype(float)).astype(f32), np.sin(heading.astype(float)).astype(f32)
    found = []
    for a, b in CORNERS:
        ahead, left = f32(a) * length / f32(2), f32(b) * width / f32(2)
        found.append(np.stack([cos * ahead - sin * left + x, sin * ahead + cos * left + y], axis=-1))
    return np.stack(found, axis=-2)


def over(numerator: Array, denominator: Array) -> Array:
    """A quotient, 0 where the denominator is."""
    return np.where(denominator == 0, f32(0), numerator / np.where(denominator == 0, f32(1), denominator))


def from_lowest(box: Array) -> tuple[Array, Array]:
    """Corners from the lowest on, and the direction of the first edge."""
    order = (np.argmin(box[..., 1], axis=-1)[..., None] + np.arange(4)) % 4
    box = np.take_along_axis(box, order[..., None], axis=-2)
    edge = box[..., 1, :] - box[..., 0, :]
    return box, edge / np.sqrt((edge**2).sum(axis=-1))[..., None]


@np.errstate(invalid="ignore")
def core_distance(one: Array, other: Array) -> Array:
    """Signed distance of two rectangles (..., 4, 2): of the origin from the polygon of their difference.

    An edge without length has no direction: comparisons with NaN are false.
    """
    one, direction = from_lowest(one)
    other, other_direction = from_lowest(-other)
    first = direction[..., 0] * other_direction[..., 1] - direction[..., 1] * other_direction[..., 0] >= 0
    late, early = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 1, 2, 2, 3, 3, 0])
    of_one, of_other = np.where(first[..., None], early, late), np.where(first[..., None], late, early)
    polygon = np.take_along_axis(one, of_one[..., None], -2) + np.take_along_axis(other, of_other[..., None], -2)
    edge = np.roll(polygon, -1, axis=-2) - polygon
    length = np.sqrt((edge**2).sum(axis=-1))
    unit = edge / length[..., None]
    to_origin = -polygon
    outward = unit[..., 1] * to_origin[..., 0] - unit[..., 0] * to_origin[..., 1]
    share = (unit * to_origin).sum(axis=-1) / length
    to_edges = np.where((share >= 0) & (share <= 1), np.abs(outward), np.inf)
    nearest = np.minimum(to_edges, np.sqrt((to_origin**2).sum(axis=-1))).min(axis=-1)
    return np.where((outward <= 0).all(axis=-1), -nearest, nearest)


def nearest_object(x: Array, y: Array, heading: Array, length: Array, width: Array, valid: Array, count: int) -> Array:
    """Signed distance to the nearest other box with rounded corners."""
    radius = np.minimum(length, width) * f32(0.7) / f32(2)
    core = corners(x, y, heading, (length - 2 * radius)[:, None], (width - 2 * radius)[:, None])
    distance = core_distance(core[:count, None], core[None]) - radius[:count, None, None] - radius[None, :, None]
    is_pair = valid[:count, None] & valid[None] & ~np.eye(count, len(x), dtype=bool)[..., None]
    return np.where(is_pair, distance, f32(1e10)).min(axis=1)


def time_to_collision(
    x: Array, y: Array, heading: Array, length: Array, width: Array, valid: Array, count: int, dt: float
) -> Array:
    """Seconds to whoever is ahead, 5 at most."""
    speed = np.sqrt(difference(x) ** 2 + difference(y) ** 2) / f32(dt)
    away_x, away_y = x[None] - x[:count, None], y[None] - y[:count, None]
    own = heading[:count, None].astype(float)
    cos, sin = np.cos(own).astype(f32), np.sin(own).astype(f32)
    yaw = np.abs(heading[None] - heading[:count, None])
    along, across = (np.abs(wave(yaw.astype(float)).astype(f32)) for wave in (np.cos, np.sin))
    half_length, half_width = length[:, None] / f32(2), width[:, None] / f32(2)
    gap = cos * away_x + sin * away_y - half_length[:count, None] - (half_length * along + half_width * across)
    side = np.abs(cos * away_y - sin * away_x) - half_width[:count, None] - (half_length * across + half_width * along)
    is_close = (side < f32(-0.5)) | (yaw <= f32(np.deg2rad(10)))
    is_ahead = (gap > 0) & (side < 0) & (yaw <= f32(np.deg2rad(75))) & is_close & valid[None]
    gap = np.where(is_ahead, gap, f32(1e10))
    leader = gap.argmin(axis=1)[:, None]
    closing = speed[:count] - np.take_along_axis(np.broadcast_to(speed, gap.shape), leader, axis=1)[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.take_along_axis(gap, leader, axis=1)[:, 0] / closing
    return np.where(closing > 0, np.minimum(time, f32(5)), f32(5))


def filled(lines: list[Array]) -> tuple[Array, Array]:
    """(P, longest, 3) points with zeros behind the last of each, and (P, longest) which are points."""
    points = np.zeros((len(lines), max(map(len, lines), default=0), 3), f32)
    is_point = np.zeros(points.shape[:2], bool)
    for number, line in enumerate(lines):
        points[number, : len(line)], is_point[number, : len(line)] = line, True
    return points, is_point


def cross(one: Array, other: Array) -> Array:
    """z of the cross product."""
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def signed_distance(places: Array, lines: list[Array]) -> Array:
    """(n,) of places (n, 3) to the nearest of all lines."""
    longest = max(map(len, lines))
    stretched, signed = [], []
    for line in lines:
        start, along = line[:-1], np.diff(line, axis=0)
        away = places[:, None] - start
        share = over(
            (away * along)[..., :2].sum(axis=-1), (along**2)[..., :2].sum(axis=-1) + np.zeros_like(away[..., 0])
        )
        off = away - along * np.clip(share, 0, 1)[..., None]
        stretched.append(np.sqrt(off[..., 0] ** 2 + off[..., 1] ** 2 + (f32(3) * off[..., 2]) ** 2))
        sign = own_or_both(np.sign(cross(away, along)), share, along, is_ring=is_closed(line) and len(line) == longest)
        signed.append(sign * np.sqrt(off[..., 0] ** 2 + off[..., 1] ** 2))
    chosen = np.concatenate(stretched, axis=1).argmin(axis=1)
    return np.concatenate(signed, axis=1)[np.arange(len(places)), chosen]


def is_closed(line: Array) -> bool:
    return bool(((line[0] - line[-1]) ** 2).sum() < 1)


def own_or_both(side: Array, share: Array, along: Array, is_ring: bool) -> Array:
    """(n, segments) the sign: that of a segment, or of both at a vertex that the place lies beyond."""
    sign = side.copy()
    count = len(along)
    for segment in range(count):
        for other, is_beyond in ((segment - 1, share[:, segment] < 0), (segment + 1, share[:, segment] > 1)):
            if not is_ring and not 0 <= other < count:
                continue
            first, second = (other, segment) if other < segment else (segment, other)
            turns_to_port = cross(along[first % count], along[second % count]) > 0
            both = np.stack([side[:, segment], side[:, other % count]])
            sign[is_beyond, segment] = (both.max(axis=0) if turns_to_port else both.min(axis=0))[is_beyond]
    return sign


def road_edge(x: Array, y: Array, z: Array, heading: Array, sizes: Array, valid: Array, lines: list[Array]) -> Array:
    """Of the bottom corner that is farthest out; x and the others are of the evaluated agents alone."""
    places = corners(x, y, heading, sizes[:, None, 0], sizes[:, None, 1])
    bottom = -sizes[:, None, 2] / f32(2) + z
    places = np.concatenate([places, np.broadcast_to(bottom[..., None, None], (*x.shape, 4, 1))], axis=-1)
    return np.where(valid, signed_distance(places.reshape(-1, 3), lines).reshape(*x.shape, 4).max(axis=-1), f32(-1e10))


def closest_piece(place: Array, points: Array, is_point: Array) -> tuple[int, int]:
    """Line and piece by the length of (place - start) + share * (end - start)."""
    start, along = points[:, :-1, :2], points[:, 1:, :2] - points[:, :-1, :2]
    away = place - start
    share = np.clip(over((away * along).sum(axis=-1), (along**2).sum(axis=-1)), 0, 1)
    distance = np.sqrt(((away + along * share[..., None]) ** 2).sum(axis=-1))
    distance = np.where(is_point[:, :-1], distance, f32(1e10))
    line, piece = np.unravel_index(distance.argmin(), distance.shape)
    return int(line), int(piece)


def red_light(scenario: Scenario, x: Array, y: Array, valid: Array) -> Array:
    """Step by step and light by light; the scenario's frame must be its source's."""
    road_map = scenario.map
    lanes = [
        lane
        for lane in road_map.features(FeatureKind.LANE)
        if road_map.types[lane] == LaneType.SURFACE_STREET and len(road_map.polyline(lane)) > 1
    ]
    points, is_point = filled([road_map.polyline(lane) for lane in lanes])
    listed, stops = scenario.light_listed, scenario.source_light_stops
    if not listed.size:
        listed = scenario.light_states != 0
        stops = np.repeat(scenario.light_stops[:, None], scenario.steps, axis=1)
    found = np.zeros(x.shape, bool)
    for light, lane in enumerate(scenario.light_lanes):
        if lane not in lanes:
            continue
        row = slice(lanes.index(lane), lanes.index(lane) + 1)
        behind, ahead = np.zeros(x.shape, bool), np.zeros(x.shape, bool)
        for step in range(x.shape[1]):
            stop = stops[light, step, :2] * f32(listed[light, step])
            _, piece = closest_piece(stop, points[row], is_point[row])
            start, end = points[row.start, piece, :2], points[row.start, piece + 1, :2]
            square = ((end - start) ** 2).sum()
            share = [
                over(((place - start) * (end - start)).sum(), square)
                for place in (stop, *np.stack([x[:, step], y[:, step]], axis=-1))
            ]
            behind[:, step], ahead[:, step] = np.array(share[1:]) < share[0], np.array(share[1:]) > share[0]
        is_red = np.isin(scenario.light_states[light], (1, 4))
        has_passed = np.zeros(x.shape, bool)
        has_passed[:, 1:] = behind[:, :-1] & ahead[:, 1:]
        for agent, step in np.argwhere(has_passed & is_red & valid):
            place = np.array([x[agent, step], y[agent, step]])
            found[agent, step] |= lanes[closest_piece(place, points, is_point)[0]] == lane
    return found
