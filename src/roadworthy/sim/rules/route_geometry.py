"""Geometry along a route: poses ahead, contacts with the corridor, and the place beside a point.

A place on a route is the number of one of its lanes and the distance from that lane's start, in m. Distances "ahead"
count from such a place along the route; they may be negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state

Real = np.float32  # the number type of rules


class Road(NamedTuple):
    """The parts of a map that rules need to move along its lanes: a few views, which are fast to pass on.

    Create it in place, as Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m]): rules do not count
    references, so they must not return views.
    """

    lanes: Ints  # as Maps.lanes of one map
    points: Floats  # as Maps.lane_points
    lengths: Floats  # as Maps.lane_lengths


Box = tuple[Real, Real, Real, Real]  # minimum and maximum x, minimum and maximum y

FAR = np.float32(1.0e6)  # m, for "nowhere"

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_LEAST_NORM = np.float32(1.0e-3)
_NONE, _SOME = np.int32(0), np.int32(1)


@rule(inline=True)
def point_at(road: Road, lane: int, arc: Real) -> Any:
    """Return the point of a lane at a distance from its start, clamped to the lane; -1 if the lane has no points."""
    points, length = road.points, road.lengths[lane]
    first, last = road.lanes[state.LANE_POINT_START, lane], road.lanes[state.LANE_POINT_START, lane + 1] - 1
    if last < first:
        return np.int64(-1)
    if not arc > _ZERO:
        return np.int64(first)
    if arc >= length:
        return np.int64(last)
    # The points of a lane have about the same length, so a guess is off by a few points at most.
    point = min(first + np.int32(np.float32(last + 1 - first) * (arc / length)), last)
    while point < last and points[state.POINT_ARC, point + 1] - points[state.POINT_HALF, point + 1] <= arc:
        point += 1
    while point > first and points[state.POINT_ARC, point] - points[state.POINT_HALF, point] > arc:
        point -= 1
    return np.int64(point)


@rule(inline=True)
def _first_point(road: Road, lane: int) -> Any:
    first = road.lanes[state.LANE_POINT_START, lane]
    return np.int64(first) if first < road.lanes[state.LANE_POINT_START, lane + 1] else np.int64(-1)


@rule(inline=True)
def _last_point(road: Road, lane: int) -> Any:
    last = road.lanes[state.LANE_POINT_START, lane + 1] - 1
    return np.int64(last) if last >= road.lanes[state.LANE_POINT_START, lane] else np.int64(-1)


@rule
def seek(road: Road, flags: Ints, a: int, place: int, arc: Real) -> tuple[Any, Real]:
    """Return the same place on the lane that contains it, or on the first or last lane beyond the ends of the route."""
    lengths = road.lengths
    last = flags[state.ROUTE_LENGTH, a] - 1
    while place < last and arc > lengths[flags[state.ROUTE + place, a]]:
        arc -= lengths[flags[state.ROUTE + place, a]]
        place += 1
    while place > 0 and arc < _ZERO:
        place -= 1
        arc += lengths[flags[state.ROUTE + place, a]]
    return place, arc


@rule
def route_pose(road: Road, flags: Ints, a: int, place: int, arc: Real, ahead: Real) -> tuple[Real, Real, Real, Real]:
    """Return x, y and the cosine and sine of the direction at a distance ahead on agent a's route (which has lanes).

    The direction changes linearly from the middle of one lane point to the middle of the next.
    """
    lanes, points = road.lanes, road.points
    place, arc = seek(road, flags, a, place, arc + ahead)
    lane = flags[state.ROUTE + place, a]
    point = point_at(road, lane, arc)
    if point < 0:
        return np.float32(np.nan), np.float32(np.nan), _ONE, _ZERO
    past = arc - points[state.POINT_ARC, point]
    cos, sin = points[state.POINT_COS, point], points[state.POINT_SIN, point]
    x, y = points[state.POINT_X, point] + past * cos, points[state.POINT_Y, point] + past * sin
    neighbor = np.int64(-1)
    if past > _ZERO:
        if point + 1 < lanes[state.LANE_POINT_START, lane + 1]:
            neighbor = point + 1
        elif place + 1 < flags[state.ROUTE_LENGTH, a]:
            neighbor = _first_point(road, flags[state.ROUTE + place + 1, a])
    elif point > lanes[state.LANE_POINT_START, lane]:
        neighbor = point - 1
    elif place > 0:
        neighbor = _last_point(road, flags[state.ROUTE + place - 1, a])
    if neighbor >= 0:
        share = abs(past) / (points[state.POINT_HALF, point] + points[state.POINT_HALF, neighbor])
        share = min(share, _ONE)
        cos += share * (points[state.POINT_COS, neighbor] - cos)
        sin += share * (points[state.POINT_SIN, neighbor] - sin)
        norm = np.sqrt(cos * cos + sin * sin)
        if norm < _LEAST_NORM:  # a lane that turns back on itself
            return x, y, points[state.POINT_COS, point], points[state.POINT_SIN, point]
        cos, sin = cos / norm, sin / norm
    return x, y, cos, sin


@rule
def first_contact(
    road: Road, flags: Ints, a: int, place: int, arc: Real, begin: Real, end: Real, half_width: Real, box: Any
) -> Real:
    """Return how far ahead a box begins to overlap the corridor along the route, from `begin` to `end`; FAR if nowhere.

    The box and each segment of the corridor are rectangles, compared along the sides of both. NaN overlaps nothing.

    box: x, y, cosine and sine of the heading, half the length, half the width.
    """
    x, y, cos, sin, half_length, half_breadth = box
    points = road.points
    around = half_width + half_length + half_breadth
    start = -arc
    for k in range(place, flags[state.ROUTE_LENGTH, a]):
        if start > end:
            break
        lane = flags[state.ROUTE + k, a]
        low, high = begin - start, end - start  # in m from the lane's start
        first, last = point_at(road, lane, low), point_at(road, lane, high)
        if first >= 0 and road.lengths[lane] >= low and is_any_near(points, first, last, x, y, around):
            for i in range(first, last + 1):
                # The part of the segment between the corridor's ends.
                middle, half = points[state.POINT_ARC, i], points[state.POINT_HALF, i]
                near, far = max(middle - half, low), min(middle + half, high)
                half, shift = _HALF * (far - near), _HALF * (far + near) - middle
                point_cos, point_sin = points[state.POINT_COS, i], points[state.POINT_SIN, i]
                dx = x - points[state.POINT_X, i] - shift * point_cos
                dy = y - points[state.POINT_Y, i] - shift * point_sin
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
    """Return whether a position is around any of the points from first to last: a rough test that saves exact ones."""
    xs, ys, halves = points[state.POINT_X], points[state.POINT_Y], points[state.POINT_HALF]
    count = _NONE
    for i in range(first, last + 1):  # counting without a branch, so that the compiler vectorizes the loop
        dx, dy, reach = x - xs[i], y - ys[i], around + halves[i]
        count += _SOME if dx * dx + dy * dy <= reach * reach else _NONE
    return count > _NONE


@rule
def nearest_place(
    road: Road, flags: Ints, a: int, place: int, arc: Real, begin: Real, end: Real, x: Real, y: Real
) -> tuple[Any, Real, Real, Real]:
    """Return the place of a point beside agent a's route, from `begin` to `end` ahead of a place.

    Return the lane's number in the route, the distance along it, the offset of the point to its left, and its distance
    from the route (FAR without lanes), in m.
    """
    points = road.points
    best, best_place, best_arc, best_offset = FAR * FAR, place, arc, _ZERO
    place, arc = seek(road, flags, a, place, arc + begin)
    left = end - begin
    for k in range(place, flags[state.ROUTE_LENGTH, a]):
        lane = flags[state.ROUTE + k, a]
        first = point_at(road, lane, arc)
        if first >= 0:
            for i in range(first, point_at(road, lane, arc + left) + 1):
                dx, dy = x - points[state.POINT_X, i], y - points[state.POINT_Y, i]
                cos, sin, half = points[state.POINT_COS, i], points[state.POINT_SIN, i], points[state.POINT_HALF, i]
                along, offset = dx * cos + dy * sin, dy * cos - dx * sin
                past = min(max(along, -half), half)
                distance = (along - past) * (along - past) + offset * offset
                if distance < best:
                    best, best_place, best_arc, best_offset = distance, k, points[state.POINT_ARC, i] + past, offset
        left -= road.lengths[lane] - arc
        arc = _ZERO
        if left < _ZERO:
            break
    return best_place, best_arc, best_offset, np.sqrt(best)


@rule(inline=True)
def are_close(one: Box, other: Box, margin: Real) -> bool:
    """Return whether two boxes are less than a margin apart, in x and in y."""
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
    """Return the bounds of the points from first to last: minimum and maximum x and y; inverted if first is -1."""
    west, east, south, north = FAR, -FAR, FAR, -FAR
    for i in range(first, last + 1 if first >= 0 else first):
        x, y, half = points[state.POINT_X, i], points[state.POINT_Y, i], points[state.POINT_HALF, i]
        half_x, half_y = abs(half * points[state.POINT_COS, i]), abs(half * points[state.POINT_SIN, i])
        west, east = min(west, x - half_x), max(east, x + half_x)
        south, north = min(south, y - half_y), max(north, y + half_y)
    return west, east, south, north


@rule
def route_bounds(road: Road, flags: Ints, a: int, place: int, arc: Real, begin: Real, end: Real) -> Box:
    """Return the bounding box of agent a's route from `begin` to `end` ahead of a place."""
    points = road.points
    west, east, south, north = FAR, -FAR, FAR, -FAR
    start = -arc
    for k in range(place, flags[state.ROUTE_LENGTH, a]):
        if start > end:
            break
        lane = flags[state.ROUTE + k, a]
        low_x, high_x, low_y, high_y = bounds(
            points, point_at(road, lane, begin - start), point_at(road, lane, end - start)
        )
        west, east = min(west, low_x), max(east, high_x)
        south, north = min(south, low_y), max(north, high_y)
        start += road.lengths[lane]
    return west, east, south, north
