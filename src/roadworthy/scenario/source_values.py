"""Values as the source of a scenario lists them, in its own coordinates, or their defaults.

Scores that must agree with those of other implementations are computed from these values. The simulator's own values
are relative to the map's origin, so their rounding differs, and they are 0 where an agent is not valid.
"""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.schema import Bools, Floats, LightState, RoadMap, Scenario


def in_source_frame(road_map: RoadMap, points: Floats) -> Floats:
    """Return points (..., 3) of the map's frame in the frame of its source."""
    return (points.astype(np.float64) + road_map.origin).astype(np.float32)


def source_points(road_map: RoadMap) -> Floats:
    """Return (P, 3) all points of a map in the source's coordinates."""
    return road_map.source_points if road_map.source_points.size else in_source_frame(road_map, road_map.points)


def source_motion(scenario: Scenario) -> tuple[Floats, Floats]:
    """Return (A, T, 3) positions and (A, T) headings in the source's coordinates, valid or not."""
    if scenario.source_positions.size:
        return scenario.source_positions, scenario.source_headings
    positions = in_source_frame(scenario.map, scenario.positions)
    headings = np.where(scenario.valid, scenario.headings, np.float32(0.0))
    return np.where(scenario.valid[..., None], positions, np.float32(0.0)), headings


def listed_lights(scenario: Scenario) -> tuple[Bools, Floats]:
    """Return (L, T) whether each light is listed, and (L, T, 3) where it stops, 0 where it is not listed."""
    listed = scenario.light_listed if scenario.light_listed.size else scenario.light_states != LightState.UNKNOWN
    if scenario.source_light_stops.size:
        return listed, scenario.source_light_stops
    stops = in_source_frame(scenario.map, scenario.light_stops)[:, None]
    return listed, np.where(listed[..., None], stops, np.float32(0.0))


def neighbor_ranges(road_map: RoadMap, side: str) -> np.ndarray:
    """Return (k, 4) int32 the points along which lanes are neighbors on a side ("left", "right"); see `RoadMap`."""
    pairs, ranges = getattr(road_map, f"{side}_neighbors"), getattr(road_map, f"{side}_neighbor_ranges")
    if len(ranges) == len(pairs):
        return ranges
    last = np.diff(road_map.starts)[pairs] - 1
    return np.stack([np.zeros(len(pairs)), last[:, 0], np.zeros(len(pairs)), last[:, 1]], axis=1).astype(np.int32)
