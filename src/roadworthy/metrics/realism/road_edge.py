"""Signed distance of a box to the nearest road edge: negative on the road, which lies on an edge's port side.

The nearest segment is looked for in 3-D, heights stretched, so that a bridge is not confused with the road below it.
The distance to it is measured in 2-D. Where the nearest point is a vertex between two segments, both count: at a convex
one it is enough to be outside of one of them, at a concave one it takes both. Past the end of a polyline there is no
other segment, so the nearest one decides alone.

The reference lays polylines side by side, each filled up with zeros to the longest. So only a closed polyline that has
as many points as the longest continues around its closing vertex; at that of a shorter one the nearest segment decides
alone, as at an end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roadworthy.errors import ScenarioError
from roadworthy.kernels import kernel
from roadworthy.metrics.realism.polylines import Polylines, polylines
from roadworthy.metrics.realism.scene import Motion, Scene
from roadworthy.scenario.schema import Bools, FeatureKind, Floats, Ints, Scenario

ABSENT = np.float32(-1e10)  # the distance of an absent agent
_HEIGHT_STRETCH = np.float32(3.0)
_CLOSED_WITHIN_M2 = np.float32(1.0)  # square of the distance of both ends of a closed edge

_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)

# An agent looks at the segments near it, and at all of them only if one of the others might be nearer. Might: distances
# are rounded, and what is left out must be farther away by more than that.
_MARGIN_M = np.float32(5.0)  # the distance, besides its own length, that an agent may move before others matter
_SLACK_M = np.float32(0.01)
_SLACK_SHARE = np.float32(1e-5)


class EdgeSegments(NamedTuple):
    """n segments of all road edges."""

    lines: Floats  # (6, n) x, y, z of the start, and from there to the end
    before: Ints  # (n,) the previous segment, itself if there is none
    after: Ints  # (n,) the next segment, itself if there is none
    is_convex_before: Bools  # (n,) whether the corner at the start turns to port
    is_convex_after: Bools  # (n,) whether the corner at the end turns to port


def distance_to_road_edge(scenario: Scenario, scene: Scene, *motions: Motion) -> list[Floats]:
    """Return the distance of the outermost corner of each box in m, (R, E, S); ABSENT for absent agents."""
    edges = polylines(scenario.map, FeatureKind.ROAD_EDGE)
    if not len(edges):
        raise ScenarioError(
            f"scenario {scenario.id!r}: its map has no road edge of at least two points, which realism "
            "needs to determine which agents are on the road"
        )
    segments = edge_segments(edges)
    results = []
    for motion in motions:
        rollouts, _, steps = motion.x.shape
        found = np.full((rollouts, scene.evaluated, steps - scene.first), np.nan, np.float32)
        sizes = (scene.length * _HALF, scene.width * _HALF, scene.height * _HALF)
        _distances(motion, sizes, segments, scene.first, found)
        results.append(found)
    return results


def edge_segments(edges: Polylines) -> EdgeSegments:
    """Cut polylines into segments and link those that share a vertex."""
    first, last = edges.starts[:-1], edges.starts[1:] - 1
    is_segment = np.ones(len(edges.points) - 1, np.bool_)
    is_segment[last[:-1]] = False  # from the end of one polyline to the start of the next
    begins = np.flatnonzero(is_segment)
    numbers = np.cumsum(is_segment) - 1  # of the segment that begins at a point
    first_segment, last_segment = numbers[first], numbers[last - 1]
    gap = edges.points[first] - edges.points[last]
    is_closed = np.square(gap).sum(axis=1, dtype=np.float32) < _CLOSED_WITHIN_M2
    continues = is_closed & ~edges.is_filled
    before, after = np.arange(len(begins)) - 1, np.arange(len(begins)) + 1
    before[first_segment] = np.where(continues, last_segment, first_segment)
    after[last_segment] = np.where(continues, first_segment, last_segment)
    start = edges.points[begins]
    along = edges.points[begins + 1] - start
    return EdgeSegments(
        lines=np.ascontiguousarray(np.concatenate([start, along], axis=1).T),
        before=before.astype(np.int32),
        after=after.astype(np.int32),
        is_convex_before=_cross(along[before], along) > 0,
        is_convex_after=_cross(along, along[after]) > 0,
    )


def _cross(one: Floats, other: Floats) -> Floats:
    return one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]


@kernel
def _distances(
    motion: Motion, half_sizes: tuple[Floats, Floats, Floats], segments: EdgeSegments, first: int, found: Floats
) -> None:
    x, y, z, cos, sin, valid = motion.x, motion.y, motion.z, motion.cos, motion.sin, motion.valid
    half_length, half_width, half_height = half_sizes
    count = len(segments.before)
    near_lines, near = np.empty((6, count), np.float32), np.empty(count, np.int32)
    distances = np.empty(count, np.float32)
    for rollout in range(x.shape[0]):
        for agent in range(found.shape[1]):
            margin = _MARGIN_M + half_length[agent] + half_length[agent]
            # The first `near_count` are those within a radius of a place.
            near_count, place_x, place_y, radius = 0, _ZERO, _ZERO, _ZERO
            for step in range(first, x.shape[2]):
                at = (rollout, agent, step)
                if not valid[agent, step]:
                    found[rollout, agent, step - first] = ABSENT
                    continue
                if not np.isfinite(x[at] + y[at] + z[at] + cos[at]):
                    found[rollout, agent, step - first] = np.nan
                    continue
                farthest = np.float32(-np.inf)
                for corner in range(4):
                    ahead = half_length[agent] if corner == 0 or corner == 3 else -half_length[agent]
                    left = half_width[agent] if corner < 2 else -half_width[agent]
                    corner_x = cos[at] * ahead - sin[at] * left + x[at]
                    corner_y = sin[at] * ahead + cos[at] * left + y[at]
                    corner_z = -half_height[agent] + z[at]
                    _measure(corner_x, corner_y, corner_z, _HEIGHT_STRETCH, near_lines, near_count, distances)
                    nearest, distance = _smallest(distances, near_count)
                    moved_x, moved_y = corner_x - place_x, corner_y - place_y
                    moved = np.sqrt(moved_x * moved_x + moved_y * moved_y)
                    if (distance + moved) * (_ONE + _SLACK_SHARE) + _SLACK_M <= radius:
                        nearest = near[nearest]
                    else:
                        _measure(corner_x, corner_y, corner_z, _HEIGHT_STRETCH, segments.lines, count, distances)
                        nearest, distance = _smallest(distances, count)
                        place_x, place_y, radius = corner_x, corner_y, distance + margin
                        _measure(corner_x, corner_y, corner_z, _ZERO, segments.lines, count, distances)
                        near_count = 0
                        for segment in range(count):
                            if distances[segment] <= radius:
                                near[near_count] = segment
                                near_lines[:, near_count] = segments.lines[:, segment]
                                near_count += 1
                    farthest = max(farthest, _signed_distance(corner_x, corner_y, segments, nearest))
                found[rollout, agent, step - first] = farthest


@kernel
def _measure(
    x: np.float32,
    y: np.float32,
    z: np.float32,
    height_stretch: np.float32,
    lines: Floats,
    count: int,
    distances: Floats,
) -> None:
    """Distances to the first `count` segments; the nearest point of each is that in 2-D. Compiled for many at once."""
    for segment in range(count):
        away_x, away_y, away_z = x - lines[0, segment], y - lines[1, segment], z - lines[2, segment]
        along_x, along_y, along_z = lines[3, segment], lines[4, segment], lines[5, segment]
        square = along_x * along_x + along_y * along_y
        share = (away_x * along_x + away_y * along_y) / (square if square != _ZERO else _ONE)
        share = share if share > _ZERO else _ZERO
        share = share if share < _ONE else _ONE
        off_x, off_y = away_x - along_x * share, away_y - along_y * share
        off_z = height_stretch * (away_z - along_z * share)
        distances[segment] = np.sqrt(off_x * off_x + off_y * off_y + off_z * off_z)


@kernel
def _smallest(values: Floats, count: int) -> tuple[int, np.float32]:
    """Return the index of the first minimum, and the minimum; infinity if there is none."""
    place, value = 0, np.float32(np.inf)
    for number in range(count):
        if values[number] < value:
            place, value = number, values[number]
    return place, value


@kernel
def _signed_distance(x: np.float32, y: np.float32, segments: EdgeSegments, segment: int) -> np.float32:
    """Return the 2-D distance to one segment."""
    lines = segments.lines
    away_x, away_y = x - lines[0, segment], y - lines[1, segment]
    along_x, along_y = lines[3, segment], lines[4, segment]
    square = along_x * along_x + along_y * along_y
    share = (away_x * along_x + away_y * along_y) / square if square != _ZERO else _ZERO
    sign = _side(x, y, lines, segment)
    if share < _ZERO:
        neighbor = _side(x, y, lines, segments.before[segment])
        sign = max(sign, neighbor) if segments.is_convex_before[segment] else min(sign, neighbor)
    elif share > _ONE:
        neighbor = _side(x, y, lines, segments.after[segment])
        sign = max(sign, neighbor) if segments.is_convex_after[segment] else min(sign, neighbor)
    share = min(max(share, _ZERO), _ONE)
    off_x, off_y = away_x - along_x * share, away_y - along_y * share
    return sign * np.sqrt(off_x * off_x + off_y * off_y)


@kernel
def _side(x: np.float32, y: np.float32, lines: Floats, segment: int) -> np.float32:
    """Return -1 to port of a segment, 1 to starboard, and 0 on it or if it has no length."""
    return np.sign((x - lines[0, segment]) * lines[4, segment] - (y - lines[1, segment]) * lines[3, segment])
