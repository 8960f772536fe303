"""The lanes that a vehicle drives along, frame by frame, and the route of the recorded car.

A vehicle keeps the lanes that it was on while its middle is in one of them. Where it is in none of them, and was on one
alone, it may be in lanes that follow that one. Else the map is searched: a lane outside junctions counts first (the one
whose center is nearest), else all lanes across the junction that it is in. A vehicle that leaves a junction lane by
less than 5 m for another one that does not follow from it still counts as being on the former. At last, where several
junction lanes remain, those count that it turns out to have taken.

Differs from nuPlan: there, a lane is a polygon and lanes outside junctions do not overlap. Where a vehicle
leaves a junction lane for no lane at all, it is unknown whether it is still in the junction: it is on no lane then.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import NEAR_JUNCTION_LANE_M, LanePlaces

Route = list[tuple[int, ...]]  # the lanes of each frame; none: on no lane


def driven_lanes(places: LanePlaces) -> Route:
    """Return the lanes that the middle of a vehicle is on at each frame."""
    lane_map = places.lane_map
    route: Route = []
    current: tuple[int, ...] = ()
    for frame in range(places.frames):
        inside = places.middle_lanes[frame]
        before, current = current, tuple(lane for lane in current if lane in inside)
        if not current and len(before) == 1:
            current = tuple(lane for lane in inside if lane in lane_map.successors[before[0]])
        if not current:
            current = _searched(lane_map, inside)
            last = route[-1] if frame > 1 else ()
            if last and lane_map.is_junction[last[0]] and current and lane_map.is_junction[current[0]]:
                near = tuple(lane for lane in last if places.is_middle_near(frame, lane, NEAR_JUNCTION_LANE_M))
                current = near or current
        route.append(current)
    return _without_others(lane_map, route)


def _searched(lane_map: LaneMap, inside: Sequence[int]) -> tuple[int, ...]:
    """Return, of lanes that hold a point, the nearest one outside junctions, else all across the junction."""
    along = [lane for lane in inside if not lane_map.is_junction[lane]]
    return (along[0],) if along else tuple(inside)


def _without_others(lane_map: LaneMap, route: Route) -> Route:
    """Leave out junction lanes that the vehicle turns out not to have taken, from the last frame to the first."""
    kept = list(route)
    for frame in range(len(kept) - 2, -1, -1):
        here, later = kept[frame], kept[frame + 1]
        if len(here) <= 1 or not later:
            continue
        if len(here) > len(later) and set(later) <= set(here):
            kept[frame] = later
        elif not lane_map.is_junction[later[0]]:
            kept[frame] = tuple(lane for lane in here if lane in lane_map.predecessors[later[0]]) or here
    return kept


def simplified(route: Route) -> list[int]:
    """Return the lanes of a route in the order of driving: of frames that share lanes, the first frame's first lane."""
    lanes: Route = []
    for here in route:
        if here and not (lanes and set(lanes[-1]) & set(here)):
            lanes.append(here)
    return [here[0] for here in lanes]
