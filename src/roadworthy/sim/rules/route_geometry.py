"""Geometry along a route: where a distance ahead leads, what stands in the way, where a point is beside it.

A place on a route is the number of one of its lanes and the metres from that lane's start. Distances "ahead" count from
such a place along the route; they may be negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.state import (
    LANE_POINT_START,
    POINT_ARC,
    POINT_COS,
    POINT_HALF,
    POINT_SIN,
    POINT_X,
    POINT_Y,
    ROUTE,
    ROUTE_LENGTH,
)

Real = np.float32  # what rules compute with


class Road(NamedTuple):
    """What rules need to know of a map to go along its lanes: a few views, so that handing it on costs little.

    Made in place, as Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m]): rules don't count
    references, so they must not return views.
    """

    lanes: Ints  # as Maps.lanes of one map
    points: Floats  # Maps.lane_points
    lengths: Floats  # Maps.lane_lengths


Box = tuple[Real, Real, Real, Real]  # least and greatest x, least and greatest y

FAR = np.float32(1.0e6)  # m, in place of "nowhere"

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_LEAST_NORM = np.float32(1.0e-3)
_NONE, _SOME = np.int32(0), np.int32(1)


@rule(inline=True)
def point_at(road: Road, lane: int, arc: Real) -> Any:
    """The piece of a lane so many metres from its start, the first or last one beyond its ends; -1 if it has none."""
    points, length = road.points, road.lengths[lane]
    first, last = road.lanes[LANE_POINT_START, lane], road.lanes[LANE_POINT_START, lane + 1] - 1
    if last < first:
        return np.int64(-1)
    if not arc > _ZERO:
        return np.int64(first)
    if arc >= length:
        return np.int64(last)
    # Most pieces of a lane are about as long as the others, so a guess is at most a few pieces off.
    point = min(first + np.int32(np.float32(last + 1 - first) * (arc / length)), last)
    while point < last and points[POINT_ARC, point + 1] - points[POINT_HALF, point + 1] <= arc:
        point += 1
    while point > first and points[POINT_ARC, point] - points[POINT_HALF, point] > arc:
        point -= 1
    return np.int64(point)


@rule(inline=True)
def _first_point(road: Road, lane: int) -> Any:
    first = road.lanes[LANE_POINT_START, lane]
    return np.int64(first) if first < road.lanes[LANE_POINT_START, lane + 1] else np.int64(-1)


@rule(inline=True)
def _last_point(road: Road, lane: int) -> Any:
    last = road.lanes[LANE_POINT_START, lane + 1] - 1
    return np.int64(last) if last >= road.lanes[LANE_POINT_START, lane] else np.int64(-1)


@rule
def seek(road: Road, flags: Ints, a: int, place: int, arc: Real) -> tuple[Any, Real]:
    """The same place, told by the lane that it is on: the first or last one beyond the ends of the route."""
    lengths = road.lengths
    last = flags[ROUTE_LENGTH, a] - 1
    while place < last and arc > lengths[flags[ROUTE + place, a]]:
        arc -= lengths[flags[ROUTE + place, a]]
        place += 1
    while place > 0 and arc < _ZERO:
        place -= 1
        arc += lengths[flags[ROUTE + place, a]]
    return place, arc


@rule
def route_pose(road: Road, flags: Ints, a: int, place: int, arc: Real, ahead: Real) -> tuple[Real, Real, Real, Real]:
    """x, y and the cosine and sine of the direction, a distance ahead on agent a's route (which has lanes).

    The direction changes evenly from the middle of one piece to the middle of the next.
    """
    lanes, points = road.lanes, road.points
    place, arc = seek(road, flags, a, place, arc + ahead)
    lane = flags[ROUTE + place, a]
    point = point_at(road, lane, arc)
    if point < 0:
        return np.float32(np.nan), np.float32(np.nan), _ONE, _ZERO
    past = arc - points[POINT_ARC, point]
    cos, sin = points[POINT_COS, point], points[POINT_SIN, point]
    x, y = points[POINT_X, point] + past * cos, points[POINT_Y, point] + past * sin
    neighbor = np.int64(-1)
    if past > _ZERO:
        if point + 1 < lanes[LANE_POINT_START, lane + 1]:
            neighbor = point + 1
        elif place + 1 < flags[ROUTE_LENGTH, a]:
            neighbor = _first_point(road, flags[ROUTE + place + 1, a])
    elif point > lanes[LANE_POINT_START, lane]:
        neighbor = point - 1
    elif place > 0:
        neighbor = _last_point(road, flags[ROUTE + place - 1, a])
    if neighbor >= 0:
        share = abs(past) / (points[POINT_HALF, point] + points[POINT_HALF, neighbor])
        share = min(share, _ONE)
        cos += share * (points[POINT_COS, neighbor] - cos)
        sin += share * (points[POINT_SIN, neighbor] - sin)
        norm = np.sqrt(cos * cos + sin * sin)
        if norm < _LEAST_NORM:  # a lane that turns back on itself
            return x, y, points[POINT_COS, point], points[POINT_SIN, point]
        cos, sin = cos / norm, sin / norm
    return x, y, cos, sin


@rule
def first_contact(
    road: Road,
    flags: Ints,
    a: int,
    place: int,
    arc: Real,
    begin: Real,
    end: Real,
    half_width: Real,
    x: Real,
    y: Real,
    cos: Real,
    sin: Real,
    half_length: Real,
    half_breadth: Real,
) -> Real:
    """How far ahead a box begins to overlap the corridor along the route, from `begin` to `end`; FAR if it does not.

    Box and piece of the corridor are both rectangles, compared along the sides of either. NaN overlaps nothing.
    """
    points = road.points
    around = half_width + half_length + half_breadth
    start = -arc
    for k in range(place, flags[ROUTE_LENGTH, a]):
        if start > end:
            break
        lane = flags[ROUTE + k, a]
        low, high = begin - start, end - start  # in metres from the lane's start
        first, last = point_at(road, lane, low), point_at(road, lane, high)
        if first >= 0 and road.lengths[lane] >= low and is_any_near(points, first, last, x, y, around):
            for i in range(first, last + 1):
                # The part of the piece that lies within the corridor's ends.
                middle, half = points[POINT_ARC, i], points[POINT_HALF, i]
                near, far = max(middle - half, low), min(middle + half, high)
                half, shift = _HALF * (far - near), _HALF * (far + near) - middle
                point_cos, point_sin = points[POINT_COS, i], points[POINT_SIN, i]
                dx, dy = x - points[POINT_X, i] - shift * point_cos, y - points[POINT_Y, i] - shift * point_sin
                if dx * dx + dy * dy > (around + half) * (around + half):
                    continue
                along, across = dx * point_cos + dy * point_sin, dy * point_cos - dx * point_sin
                turn_cos = abs(cos * point_cos + sin * point_sin)
                turn_sin = abs(sin * point_cos - cos * point_sin)
                reach = half_length * turn_cos + half_breadth * turn_sin
                if (
                    (abs(along) <= half + reach)
                    & (abs(across) <= half_width + half_length * turn_sin + half_breadth * turn_cos)
                    & (abs(dx * cos + dy * sin) <= half_length + half * turn_cos + half_width * turn_sin)
                    & (abs(dy * cos - dx * sin) <= half_breadth + half * turn_sin + half_width * turn_cos)
                ):
                    return start + near + max(along + half - reach, _ZERO)
        start += road.lengths[lane]
    return FAR


@rule(inline=True)
def is_any_near(points: Floats, first: int, last: int, x: Real, y: Real, around: Real) -> Any:
    """Whether a position is around any of the pieces from first to last: a quick look that saves many exact ones."""
    xs, ys, halves = points[POINT_X], points[POINT_Y], points[POINT_HALF]
    count = _NONE
    for i in range(first, last + 1):  # counting and no branch, so that it becomes vector instructions
        dx, dy, reach = x - xs[i], y - ys[i], around + halves[i]
        count += _SOME if dx * dx + dy * dy <= reach * reach else _NONE
    return count > _NONE


@rule
def nearest_place(
    road: Road,
    flags: Ints,
    a: int,
    place: int,
    arc: Real,
    begin: Real,
    end: Real,
    x: Real,
    y: Real,
) -> tuple[Any, Real, Real, Real]:
    """Where a point is beside agent a's route, from `begin` to `end` ahead of a place.

    Gives the lane's number in the route, the metres along it, the metres that the point is to the left of it, and its
    distance (FAR where there is nothing to measure to).
    """
    points = road.points
    best, best_place, best_arc, best_offset = FAR * FAR, place, arc, _ZERO
    place, arc = seek(road, flags, a, place, arc + begin)
    left = end - begin
    for k in range(place, flags[ROUTE_LENGTH, a]):
        lane = flags[ROUTE + k, a]
        first = point_at(road, lane, arc)
        if first >= 0:
            for i in range(first, point_at(road, lane, arc + left) + 1):
                dx, dy = x - points[POINT_X, i], y - points[POINT_Y, i]
                cos, sin, half = points[POINT_COS, i], points[POINT_SIN, i], points[POINT_HALF, i]
                along, offset = dx * cos + dy * sin, dy * cos - dx * sin
                past = min(max(along, -half), half)
                distance = (along - past) * (along - past) + offset * offset
                if distance < best:
                    best, best_place, best_arc, best_offset = distance, k, points[POINT_ARC, i] + past, offset
        left -= road.lengths[lane] - arc
        arc = _ZERO
        if left < _ZERO:
            break
    return best_place, best_arc, best_offset, np.sqrt(best)


@rule(inline=True)
def are_close(one: Box, other: Box, margin: Real) -> bool:
    """Whether two boxes are less than a margin apart, in x and in y."""
    west, east, south, north = one
    other_west, other_east, other_south, other_north = other
    return bool(
        (west - margin < other_east)
        & (east + margin > other_west)
        & (south - margin < other_north)
        & (north + margin > other_south)
    )


@rule(inline=True)
def bounds(points: Floats, first: int, last: int) -> Box:
    """Least and greatest x, least and greatest y of the pieces from first to last; inside out if first is -1."""
    west, east, south, north = FAR, -FAR, FAR, -FAR
    for i in range(first, last + 1 if first >= 0 else first):
        x, y, half = points[POINT_X, i], points[POINT_Y, i], points[POINT_HALF, i]
        half_x, half_y = abs(half * points[POINT_COS, i]), abs(half * points[POINT_SIN, i])
        west, east = min(west, x - half_x), max(east, x + half_x)
        south, north = min(south, y - half_y), max(north, y + half_y)
    return west, east, south, north


@rule
def route_bounds(road: Road, flags: Ints, a: int, place: int, arc: Real, begin: Real, end: Real) -> Box:
    """What holds agent a's route from `begin` to `end` ahead of a place."""
    points = road.points
    west, east, south, north = FAR, -FAR, FAR, -FAR
    start = -arc
    for k in range(place, flags[ROUTE_LENGTH, a]):
        if start > end:
            break
        lane = flags[ROUTE + k, a]
        low_x, high_x, low_y, high_y = bounds(
            points, point_at(road, lane, begin - start), point_at(road, lane, end - start)
        )
        west, east = min(west, low_x), max(east, high_x)
        south, north = min(south, low_y), max(north, high_y)
        start += road.lengths[lane]
    return west, east, south, north
