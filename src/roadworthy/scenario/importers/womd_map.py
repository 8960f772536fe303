"""Convert the map of a WOMD scenario to a RoadMap."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.kernels import kernel
from roadworthy.scenario import schema
from roadworthy.scenario.importers.wire import Table
from roadworthy.scenario.importers.womd_schema import FEATURE_FIELDS
from roadworthy.scenario.schema import Bools, EdgeType, FeatureKind, Floats, Ints, LaneType, LineType, Longs, RoadMap

Doubles = NDArray[np.float64]

MPS_PER_MPH = 0.44704
TYPE_COUNTS = {
    FeatureKind.LANE: len(LaneType),
    FeatureKind.ROAD_LINE: len(LineType),
    FeatureKind.ROAD_EDGE: len(EdgeType),
}
AREAS = (FeatureKind.CROSSWALK, FeatureKind.SPEED_BUMP, FeatureKind.DRIVEWAY)
# Other distances between boundaries are not lane widths: a curb may be beyond a parking lane.
MIN_WIDTH_M, MAX_WIDTH_M = 1.0, 6.0
# The dataset's points are half a meter to some tens of meters apart.
MAX_SEGMENT_M = 1000.0


class _Part(NamedTuple):
    """The features of one kind. A feature without points is in the table, but not among the features."""

    table: Table
    numbers: Longs  # (rows of the table,) the feature of the map, -1 if there is none
    ids: Longs  # (features,)
    types: Longs  # (features,)
    sizes: Longs  # (features,) number of points
    points: Doubles  # (points, 3)


class _Boundaries(NamedTuple):
    """The boundaries of lanes on one side; row r of the table of lanes has boundaries starts[r]..starts[r + 1] - 1."""

    starts: Longs  # (lanes + 1,)
    ranges: Longs  # (k, 2) first and last point of the lane along which it is the boundary
    features: Longs  # (k,) the feature of the map, -1 if there is none


def read_map(features: Table, omitted: Counter[str]) -> RoadMap:
    """Return a map from the table of its features, and count in `omitted` what a RoadMap cannot hold."""
    is_of_kind = np.array([features.has(field) for field, _ in FEATURE_FIELDS.values()])
    kind_counts = is_of_kind.sum(axis=0)
    if (kind_counts > 1).any():
        id = features.column("id")[np.argmax(kind_counts > 1)]
        raise ScenarioError(f"map feature {id} is of {kind_counts.max()} kinds, expected one")
    omitted["map features of an unknown kind"] += int((kind_counts == 0).sum())
    parts: dict[FeatureKind, _Part] = {}
    for kind in FEATURE_FIELDS:
        parts[kind] = _read_part(features, kind, sum(len(part.ids) for part in parts.values()), omitted)
    ids, types, sizes, points = (
        np.concatenate([getattr(part, name) for part in parts.values()]) for name in ("ids", "types", "sizes", "points")
    )
    if not np.isfinite(points).all():
        raise ScenarioError("points of the map contain NaN or infinity")
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    _require_near_points(points, starts, ids)
    # float32 is precise only near the origin. Whole meters make the conversion back exact.
    origin = np.array([np.round((axis.min() + axis.max()) / 2) if len(axis) else 0.0 for axis in points.T])
    local = (points - origin).astype(np.float32)

    lanes, signs = parts[FeatureKind.LANE], parts[FeatureKind.STOP_SIGN]
    if len(np.unique(lanes.ids)) < len(lanes.ids):
        raise ScenarioError("two lanes of the map have the same id")
    exits, entries = (_links(lanes, name, lanes.ids, omitted) for name in ("exit_lanes", "entry_lanes"))
    left, right = (_neighbors(lanes, f"{side}_neighbors", omitted) for side in ("left", "right"))
    limits = lanes.table.column("speed_limit_mph")[lanes.numbers >= 0] * MPS_PER_MPH
    omitted["flags of interpolating lanes"] += int(lanes.table.column("interpolating").sum())
    return schema.read_only(
        RoadMap(
            origin=origin,
            points=local,
            starts=starts,
            kinds=np.repeat(list(parts), [len(part.ids) for part in parts.values()]).astype(np.uint8),
            types=types.astype(np.uint8),
            ids=ids,
            speed_limits=np.where(limits > 0, limits, np.nan).astype(np.float32),
            lane_widths=_lane_widths(lanes, ids, local, starts, omitted),
            successors=np.unique(np.concatenate([exits, entries[:, ::-1]]), axis=0),
            left_neighbors=np.ascontiguousarray(left[:, :2]),
            right_neighbors=np.ascontiguousarray(right[:, :2]),
            yields=np.zeros((0, 2), np.int32),
            stop_signs=_links(signs, "lane", lanes.ids, omitted),
            stop_lines=np.zeros((0, 2, 2), np.float32),
            stop_line_lanes=np.zeros(0, np.int32),
            left_neighbor_ranges=np.ascontiguousarray(left[:, 2:]),
            right_neighbor_ranges=np.ascontiguousarray(right[:, 2:]),
            source_points=points.astype(np.float32),
        )
    )


def numbers_of(ids: Longs, wanted: Longs) -> Longs:
    """Return (k,) the index of each wanted id among the ids, -1 if it is missing."""
    if not len(ids):
        return np.full(len(wanted), -1)
    order = np.argsort(ids, kind="stable")
    found = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where(ids[found] == wanted, found, -1)


def coordinates(points: Table) -> Doubles:
    """Return (rows, 3) x, y and z."""
    return np.column_stack([points.column(axis) for axis in "xyz"])


def _read_part(features: Table, kind: FeatureKind, first: int, omitted: Counter[str]) -> _Part:
    """Return the features of a kind; the first one gets the number `first`."""
    name, line = FEATURE_FIELDS[kind]
    table = features.child(name)
    points, starts = coordinates(table.child(line)), table.starts(line)
    sizes = np.diff(starts)
    if kind in AREAS:  # some repeat the first point at the end
        last = starts[1:][sizes > 1] - 1
        again = last[(points[last] == points[starts[:-1][sizes > 1]]).all(axis=1)]
        points = np.delete(points, again, axis=0)
        sizes -= np.bincount(np.searchsorted(starts, again, side="right") - 1, minlength=len(sizes))
    is_kept = sizes > 0
    omitted["map features without points"] += int((~is_kept).sum())
    types = np.zeros(len(table), np.int64)
    if kind in TYPE_COUNTS:
        types = table.column("type").astype(np.int64)
        is_strange = (types < 0) | (types >= TYPE_COUNTS[kind])
        omitted["unknown types of map features"] += int(is_strange.sum())
        types[is_strange] = 0
    return _Part(
        table=table,
        numbers=np.where(is_kept, first + np.cumsum(is_kept) - 1, -1),
        ids=features.column("id")[features.has(name)][is_kept],
        types=types[is_kept],
        sizes=sizes[is_kept],
        points=points,
    )


def _require_near_points(points: Doubles, starts: Ints, ids: Longs) -> None:
    """Raise ScenarioError if points of a feature are far apart, because tables grow with the area of the map."""
    leaps = np.hypot(*np.diff(points[:, :2], axis=0).T)
    leaps[starts[1:-1] - 1] = 0.0  # from one feature to the next
    if len(leaps) and leaps.max() > MAX_SEGMENT_M:
        id = ids[np.searchsorted(starts, np.argmax(leaps), side="right") - 1]
        raise ScenarioError(
            f"map feature {id} has points {leaps.max():.0f} m apart, expected {MAX_SEGMENT_M:.0f} m at most"
        )


def _links(part: _Part, name: str, lane_ids: Longs, omitted: Counter[str]) -> Ints:
    """Return (k, 2) features of the part and the lanes in the field of this name: each pair once, in order."""
    pairs, is_kept = _linked(part, name, part.table.column(name), lane_ids)
    omitted["links to lanes that are not on the map"] += int((~is_kept).sum())
    return _once(pairs[is_kept])


def _neighbors(lanes: _Part, name: str, omitted: Counter[str]) -> Ints:
    """Return (k, 6) lane, neighbor, and the range of points of each; lanes may be neighbors along several ranges."""
    table = lanes.table.child(name)
    pairs, is_kept = _linked(lanes, name, table.column("feature_id"), lanes.ids)
    omitted["links to lanes that are not on the map"] += int((~is_kept).sum())
    ends = ("self_start_index", "self_end_index", "neighbor_start_index", "neighbor_end_index")
    ranges = np.column_stack([table.column(end) for end in ends])
    return _once(np.column_stack([pairs, ranges])[is_kept])


def _linked(part: _Part, name: str, wanted: Longs, lane_ids: Longs) -> tuple[Longs, Bools]:
    """Return (k, 2) the owner and the lane of each link in a repeated field, and whether both are features."""
    owners = np.repeat(part.numbers, np.diff(part.table.starts(name)))
    lanes = numbers_of(lane_ids, wanted)
    return np.column_stack([owners, lanes]), (owners >= 0) & (lanes >= 0)


def _once(rows: Longs) -> Ints:
    """Return the distinct rows, in the order of their first occurrence."""
    return rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])].astype(np.int32)


def _lane_widths(lanes: _Part, ids: Longs, points: Floats, starts: Ints, omitted: Counter[str]) -> Floats:
    """Return (lanes,) m from the left to the right boundary, NaN without both, or if that is not a lane's width."""
    left, right = (_boundaries(lanes.table, name, ids) for name in ("left_boundaries", "right_boundaries"))
    omitted["boundaries of lanes, except the widths"] += len(left.ranges) + len(right.ranges)
    across = np.full(lanes.sizes.sum(), np.inf, np.float32)
    _measure_widths(lanes.numbers, starts, points, left, right, across)
    # The median of each lane is the middle row, sorted by lane and width.
    owner = np.repeat(np.arange(len(lanes.ids)), lanes.sizes)[across < np.inf]
    across = across[across < np.inf]
    counts = np.bincount(owner, minlength=len(lanes.ids))
    middles = (np.cumsum(counts) - counts + counts // 2)[counts > 0]
    widths = np.full(len(lanes.ids), np.nan, np.float32)
    widths[counts > 0] = across[np.lexsort((across, owner))][middles]
    widths[(widths < MIN_WIDTH_M) | (widths > MAX_WIDTH_M)] = np.nan
    return widths


def _boundaries(lanes: Table, name: str, ids: Longs) -> _Boundaries:
    table = lanes.child(name)
    ranges = np.column_stack([table.column("lane_start_index"), table.column("lane_end_index")]).astype(np.int64)
    return _Boundaries(lanes.starts(name), ranges, numbers_of(ids, table.column("boundary_feature_id")))


@kernel
def _measure_widths(
    numbers: Longs, starts: Ints, points: Floats, left: _Boundaries, right: _Boundaries, widths_out: Floats
) -> None:
    """Compute m from boundary to boundary through every point of lanes, which are the first points of the map."""
    for row in range(len(numbers)):
        lane = numbers[row]
        if lane < 0:
            continue
        for i in range(starts[lane], starts[lane + 1]):
            k, x, y = i - starts[lane], points[i, 0], points[i, 1]
            to_left = _distance(left, row, k, x, y, starts, points)
            widths_out[i] = to_left + _distance(right, row, k, x, y, starts, points)


@kernel
def _distance(boundaries: _Boundaries, row: int, k: int, x: float, y: float, starts: Ints, points: Floats) -> Any:
    """Return m to the boundary beside point k of a lane, which is at x and y; infinity if there is none."""
    nearest = np.inf
    for b in range(boundaries.starts[row], boundaries.starts[row + 1]):
        feature = boundaries.features[b]
        if feature < 0 or not boundaries.ranges[b, 0] <= k <= boundaries.ranges[b, 1]:
            continue
        for i in range(starts[feature], starts[feature + 1] - 1):
            ax, ay = points[i, 0] - x, points[i, 1] - y
            dx, dy = points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1]
            square = dx * dx + dy * dy
            share = min(max(-(ax * dx + ay * dy) / square, 0.0), 1.0) if square > 0 else 0.0
            nearest = min(nearest, np.hypot(ax + share * dx, ay + share * dy))
    return nearest
