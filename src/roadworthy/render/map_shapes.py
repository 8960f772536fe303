"""Turn a road map into shapes, in meters, for one scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from roadworthy.render import strokes
from roadworthy.render.shapes import FillRule, Shapes, Sketch
from roadworthy.render.strokes import Polyline
from roadworthy.render.style import RoadPaint, Theme
from roadworthy.scenario.schema import EdgeType, FeatureKind, LaneType, LineType, RoadMap

YELLOW_LINES = {
    LineType.BROKEN_SINGLE_YELLOW,
    LineType.BROKEN_DOUBLE_YELLOW,
    LineType.SOLID_SINGLE_YELLOW,
    LineType.SOLID_DOUBLE_YELLOW,
    LineType.PASSING_DOUBLE_YELLOW,
}
# Whether each line of a type is broken, from left to right.
LINES_OF_TYPE: dict[int, tuple[bool, ...]] = {
    LineType.UNKNOWN: (False,),
    LineType.BROKEN_SINGLE_WHITE: (True,),
    LineType.SOLID_SINGLE_WHITE: (False,),
    LineType.SOLID_DOUBLE_WHITE: (False, False),
    LineType.BROKEN_SINGLE_YELLOW: (True,),
    LineType.BROKEN_DOUBLE_YELLOW: (True, True),
    LineType.SOLID_SINGLE_YELLOW: (False,),
    LineType.SOLID_DOUBLE_YELLOW: (False, False),
    LineType.PASSING_DOUBLE_YELLOW: (True, False),
}


def map_shapes(road_map: RoadMap, meters_per_pixel: float, theme: Theme, paint: RoadPaint) -> Shapes:
    """Return the shapes of a map, lowest first. The scale matters only where lines would get too thin."""
    sketch = Sketch()
    thinnest = paint.thinnest_line_px * meters_per_pixel
    _draw_ground(sketch, road_map, theme, paint, thinnest)
    _draw_lane_arrows(sketch, road_map, theme, paint, meters_per_pixel)
    for feature in road_map.features(FeatureKind.SPEED_BUMP):
        _draw_speed_bump(sketch, strokes.without_repeats(road_map.polyline(feature), True), theme)
    for feature in road_map.features(FeatureKind.CROSSWALK):
        _draw_zebra(sketch, strokes.without_repeats(road_map.polyline(feature), True), theme, paint)
    for feature in road_map.features(FeatureKind.ROAD_LINE):
        _draw_line(sketch, road_map.polyline(feature), int(road_map.types[feature]), theme, paint, meters_per_pixel)
    for ends in road_map.stop_lines:
        sketch.stroke(ends.astype(np.float64), max(paint.stop_line_width, 1.5 * thinnest), theme.white_paint)
    for feature in road_map.features(FeatureKind.STOP_SIGN):
        _draw_stop_sign(sketch, road_map.polyline(feature)[0, :2].astype(np.float64), theme, meters_per_pixel)
    return sketch.shapes()


def is_closed(line: NDArray[np.float32]) -> bool:
    """Return whether a road edge ends at its first point."""
    return len(line) >= 4 and bool(np.abs(line[0, :2] - line[-1, :2]).max() < 1e-3)


def _signed_area(ring: Polyline) -> float:
    x, y = (ring - ring[0]).T
    return float(0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def _draw_ground(sketch: Sketch, road_map: RoadMap, theme: Theme, paint: RoadPaint, thinnest: float) -> None:
    edges = road_map.features(FeatureKind.ROAD_EDGE)
    lines = [(road_map.polyline(edge), EdgeType(int(road_map.types[edge]))) for edge in edges]
    loops = [strokes.without_repeats(line, True) for line, _ in lines if is_closed(line)]
    driveways = [strokes.without_repeats(road_map.polyline(f), True) for f in road_map.features(FeatureKind.DRIVEWAY)]
    for loop in loops:
        if abs(_signed_area(loop)) < paint.sidewalk_width * strokes.distances_along(loop)[-1]:
            sketch.polygon([loop], theme.sidewalk)  # an island too narrow for a band along its edge
        else:
            sketch.stroke(loop, 2.0 * paint.sidewalk_width, theme.sidewalk, is_closed=True)
    for driveway in driveways:
        sketch.polygon([driveway], theme.driveway)
    if any(_signed_area(loop) > 0 for loop in loops):
        # The road is on the port side of its edges: inside counter-clockwise loops, outside clockwise ones.
        sketch.polygon(loops, theme.road, rule=FillRule.COUNTERCLOCKWISE)
    else:  # the map is cut out of a larger one: no edge encloses the road, so lanes show where it is
        for lane in road_map.features(FeatureKind.LANE):
            width = float(road_map.lane_widths[lane])
            if not np.isfinite(width):
                width = 1.5 if road_map.types[lane] == LaneType.BIKE_LANE else paint.unknown_lane_width
            sketch.stroke(road_map.polyline(lane).astype(np.float64), width + 0.1, theme.road)
    for line, edge_type in lines:
        color = theme.median if edge_type == EdgeType.MEDIAN else theme.curb
        sketch.stroke(line.astype(np.float64), max(paint.curb_width, thinnest), color, is_closed=is_closed(line))


def _draw_lane_arrows(
    sketch: Sketch, road_map: RoadMap, theme: Theme, paint: RoadPaint, meters_per_pixel: float
) -> None:
    if meters_per_pixel > 0.3:
        return  # too small to be read
    lines = [strokes.without_repeats(road_map.polyline(lane)) for lane in road_map.features(FeatureKind.LANE)]
    poses: list[tuple[Polyline, float]] = []
    for line in lines:
        if len(line) < 2:
            continue
        along = strokes.distances_along(line)
        count = int(along[-1] // paint.arrow_every)
        first = 0.5 * (along[-1] - (count - 1) * paint.arrow_every)
        poses.extend(strokes.pose_along(line, along, first + number * paint.arrow_every) for number in range(count))
    if not poses:
        return
    positions, headings = np.array([pose[0] for pose in poses]), np.array([pose[1] for pose in poses])
    clear = ~_is_crossed(positions, headings, [line for line in lines if len(line) > 1])
    arrows = strokes.placed(strokes.arrow(2.6, 0.28, 0.75), positions[clear], headings[clear])
    sketch.polygons(arrows, theme.lane_arrow, theme.lane_arrow_alpha)


def _is_crossed(positions: Polyline, headings: NDArray[np.float64], lanes: list[Polyline]) -> NDArray[np.bool_]:
    """Return whether a lane of another direction passes close by, (n,): arrows inside a crossing would clutter it."""
    points = np.concatenate([0.5 * (lane[1:] + lane[:-1]) for lane in lanes])
    directions = np.concatenate([np.arctan2(*np.diff(lane, axis=0).T[::-1]) for lane in lanes])
    distances, neighbors = cKDTree(points).query(positions, k=min(16, len(points)), distance_upper_bound=2.2)
    distances, neighbors = distances.reshape(len(positions), -1), neighbors.reshape(len(positions), -1)
    is_near = np.isfinite(distances)
    turned = directions[np.where(is_near, neighbors, 0)] - headings[:, None]
    crossed: NDArray[np.bool_] = (is_near & (np.cos(turned) < 0.96)).any(axis=1)
    return crossed


def _draw_line(
    sketch: Sketch, line: NDArray[np.float32], line_type: int, theme: Theme, paint: RoadPaint, meters_per_pixel: float
) -> None:
    color = theme.yellow_paint if line_type in YELLOW_LINES else theme.white_paint
    brokenness = LINES_OF_TYPE[line_type]
    width = max(paint.line_width, paint.thinnest_line_px * meters_per_pixel)
    if len(brokenness) == 2 and paint.double_gap < paint.closest_double_px * meters_per_pixel:
        brokenness = (all(brokenness),)
        width *= 1.4
    for number, is_broken in enumerate(brokenness):
        offset = (0.5 * (len(brokenness) - 1) - number) * paint.double_gap
        beside = strokes.parallel(line, offset) if offset else line.astype(np.float64)
        sketch.stroke(beside, width, color, dashes=paint.dash if is_broken else None)


def _draw_zebra(sketch: Sketch, outline: Polyline, theme: Theme, paint: RoadPaint) -> None:
    """Draw bars along the traffic, which is across the longest side, the direction in which people walk."""
    if len(outline) < 3:
        return
    sides = np.roll(outline, -1, axis=0) - outline
    longest = sides[np.argmax(np.hypot(sides[:, 0], sides[:, 1]))]
    axis = longest / np.hypot(*longest)
    along = outline @ axis
    low, length = float(along.min()), float(np.ptp(along))
    period = paint.zebra_bar + paint.zebra_gap
    count = max(1, int((length + paint.zebra_gap) / period))
    first = low + 0.5 * (length - count * period + paint.zebra_gap)
    for number in range(count):
        start = first + number * period
        bar = _clipped(_clipped(outline, axis, start), -axis, -(start + paint.zebra_bar))
        sketch.polygon([bar], theme.white_paint, 0.92)


def _clipped(outline: Polyline, axis: Polyline, at_least: float) -> Polyline:
    """Return the part of a convex outline whose component along an axis is at least a number."""
    height = outline @ axis - at_least
    kept = []
    for i in range(len(outline)):
        j = (i + 1) % len(outline)
        if height[i] >= 0:
            kept.append(outline[i])
        if (height[i] >= 0) != (height[j] >= 0):
            kept.append(outline[i] + (outline[j] - outline[i]) * (height[i] / (height[i] - height[j])))
    return np.array(kept).reshape(-1, 2)


def _draw_speed_bump(sketch: Sketch, outline: Polyline, theme: Theme) -> None:
    if len(outline) < 3:
        return
    sketch.polygon([outline], theme.bump_paint, 0.85)
    sides = np.roll(outline, -1, axis=0) - outline
    longest = sides[np.argmax(np.hypot(sides[:, 0], sides[:, 1]))]
    axis = longest / np.hypot(*longest)
    slanted = axis + 0.6 * np.array([-axis[1], axis[0]])
    along = outline @ slanted
    for start in np.arange(along.min(), along.max(), 1.2).tolist():
        bar = _clipped(_clipped(outline, slanted, start), -slanted, -(start + 0.6))
        sketch.polygon([bar], theme.housing, 0.55)


def _draw_stop_sign(sketch: Sketch, position: Polyline, theme: Theme, meters_per_pixel: float) -> None:
    radius = max(0.95, 4.0 * meters_per_pixel)
    octagon = strokes.disc(1.0, 8) @ np.array(
        [[np.cos(np.pi / 8), -np.sin(np.pi / 8)], [np.sin(np.pi / 8), np.cos(np.pi / 8)]]
    )
    sketch.polygon([position + octagon * radius], theme.white_paint)
    sketch.polygon([position + octagon * 0.84 * radius], theme.sign)
    bar = np.array([(-0.5, -0.13), (0.5, -0.13), (0.5, 0.13), (-0.5, 0.13)])
    sketch.polygon([position + bar * radius], theme.white_paint)
