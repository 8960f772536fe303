"""Maps, stop lines and agents in the simulator's arrays, put there by plain NumPy for tests of single rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.scenario.prepare import MapTables, prepare
from roadworthy.scenario.schema import EdgeType, Floats, Ints, LaneType, LightState, RoadMap
from roadworthy.sim import state
from roadworthy.sim.state import FLAG_LINES, GOALS, Maps, Params, Scenarios


def maps_of(*road_maps: RoadMap) -> Maps:
    """One slot per map, padded with garbage to the largest."""
    return maps_of_tables([(road_map, prepare(road_map)) for road_map in road_maps])


def maps_of_tables(prepared: Sequence[tuple[RoadMap, MapTables]]) -> Maps:
    """As maps_of, of maps whose tables were worked out before."""
    slots = [_map_arrays(road_map, tables) for road_map, tables in prepared]
    return Maps(**{name: _stacked([slot[name] for slot in slots]) for name in Maps._fields})


def _map_arrays(road_map: RoadMap, tables: MapTables) -> dict[str, NDArray[Any]]:
    t = tables
    lanes, lane_points, edge_points = len(t.lane_lengths), len(t.lane_point_x), len(t.edge_point_x)
    limits, types = np.nan_to_num(road_map.speed_limits), road_map.types[:lanes]
    # A sign names the lane that ends at its line, or those that begin there.
    stopped = set(road_map.stop_signs[:, 1].tolist())
    stopped |= {lane for lane, idm_acceleration in road_map.successors.tolist() if idm_acceleration in stopped}
    signs = [k for k, lane in enumerate(road_map.stop_line_lanes.tolist()) if lane in stopped]
    sizes = [t.columns, t.rows, lanes, len(t.edge_x0), lane_points, edge_points, len(signs)]
    return {
        "sizes": np.array(sizes, np.int32),
        "origins": np.array([t.x0, t.y0], np.float32),
        "edges": np.stack([t.edge_x0, t.edge_y0, t.edge_x1, t.edge_y1]),
        "cell_edge_starts": t.cell_edge_starts,
        "cell_edges": t.cell_edges,
        "lane_points": np.stack(
            [
                t.lane_point_x,
                t.lane_point_y,
                t.lane_point_cos,
                t.lane_point_sin,
                t.lane_point_half_lengths,
                limits[t.lane_point_lanes],
                (types[t.lane_point_lanes] == LaneType.BIKE_LANE).astype(np.float32),
                t.lane_point_arcs,
            ]
        ),
        "lane_point_lanes": t.lane_point_lanes,
        "edge_points": np.stack(
            [
                t.edge_point_x,
                t.edge_point_y,
                t.edge_point_cos,
                t.edge_point_sin,
                t.edge_point_half_lengths,
                (t.edge_point_types == EdgeType.MEDIAN).astype(np.float32),
            ]
        ),
        "cell_lists": t.cell_lists,
        "lane_lists": t.lane_lists.astype(np.uint16),
        "edge_lists": t.edge_lists.astype(np.uint16),
        "lanes": np.stack(
            [
                t.lane_point_starts,
                t.successor_starts,
                np.append(t.left_neighbor, -1),
                np.append(t.right_neighbor, -1),
                np.append(types, 0),
            ]
        ).astype(np.int32),
        "lane_lengths": t.lane_lengths,
        "lane_boxes": _lane_boxes(road_map),
        "successors": t.successors,
        "signs": lines_between(road_map.stop_lines[signs]),
        "sign_lanes": road_map.stop_line_lanes[signs],
    }


def _lane_boxes(road_map: RoadMap) -> Floats:
    """(5, lanes) bounds of what is within half a lane's width of its center line, and that half width."""
    lanes = road_map.lane_count
    half = np.where(np.isfinite(road_map.lane_widths), road_map.lane_widths, 3.5) / 2
    parts = [road_map.points[a:b, :2] for a, b in pairwise(road_map.starts[: lanes + 1])]
    low = np.array([part.min(axis=0) for part in parts]).reshape(-1, 2) - half[:, None]
    high = np.array([part.max(axis=0) for part in parts]).reshape(-1, 2) + half[:, None]
    return np.column_stack([low, high, half]).T.astype(np.float32)


def lines_between(ends: ArrayLike) -> Floats:
    """(5, k) stop lines from their left and right ends, (k, 2, 2)."""
    left, right = np.moveaxis(np.asarray(ends, np.float64).reshape(-1, 2, 2), 1, 0)
    x, y = ((left + right) / 2).T
    across_x, across_y = (right - left).T
    width = np.hypot(across_x, across_y)
    return np.stack([x, y, -across_y / width, across_x / width, width / 2]).astype(np.float32)


def scenarios_of(
    lines: ArrayLike,
    light_states: ArrayLike = (),
    junctions: ArrayLike = (),
    phases: ArrayLike = (),
    lanes: ArrayLike = (),
    dt: float = 0.1,
) -> Scenarios:
    """One slot with lights alone. lines: (5, lights); light_states: (frames, lights); the others one per light."""
    stop_lines = np.asarray(lines, np.float32).reshape(5, -1)
    count = stop_lines.shape[1]
    states = np.asarray(light_states, np.uint8).reshape(-1, count) if count else np.zeros((0, 0), np.uint8)
    frames = len(states)

    def per_light(given: ArrayLike) -> Ints:
        numbers = np.asarray(given, np.int32)
        return (numbers if numbers.size else np.zeros(count, np.int32))[None]

    return Scenarios(
        counts=np.array([[0, 0, frames, count]], np.int32),
        dt=np.array([dt], np.float32),
        bodies=np.zeros((1, 4, 0), np.float32),
        agent_types=np.zeros((1, 0), np.int32),
        agent_roles=np.zeros((1, 0), np.int32),
        agent_sources=np.zeros((1, 0), np.int32),
        motion=np.zeros((1, 4, frames, 0), np.float32),
        valid=np.zeros((1, frames, 0), np.uint8),
        lights=stop_lines[None].copy(),
        light_lanes=per_light(lanes),
        light_phases=per_light(phases),
        light_junctions=per_light(junctions),
        light_states=states[None].copy(),
    )


def constant_lights(lines: ArrayLike, *shown: LightState, frames: int = 1) -> Scenarios:
    """Lights that show the same all the time, one state per light."""
    return scenarios_of(lines, np.tile(np.array(shown, np.uint8), (frames, 1)))


def params(**given: Any) -> Params:
    """Settings, 0 where not given."""
    kinds = {name: np.float32 if "float" in str(kind) else np.int32 for name, kind in Params.__annotations__.items()}
    return Params(**{name: kinds[name](given.get(name, 0)) for name in Params._fields})


def agents_at(
    x: ArrayLike,
    y: ArrayLike,
    heading: ArrayLike = 0.0,
    length: ArrayLike = 4.5,
    width: ArrayLike = 2.0,
    move: ArrayLike = 0.0,
    speed: ArrayLike = 0.0,
    goals: int = 1,
) -> tuple[Floats, Ints]:
    """Blocks `agents` and `flags` of a world: present, `move` metres along the heading from where they were before.

    Lines that aren't named here hold NaN and garbage.
    """
    x, y, heading, length, width, move, speed = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(given, np.float64)) for given in (x, y, heading, length, width, move, speed))
    )
    agents = np.full((GOALS + 2 * goals, len(x)), np.nan, np.float32)
    flags = np.full((FLAG_LINES, len(x)), -1234567, np.int32)
    for line, values in (
        (state.X, x),
        (state.Y, y),
        (state.HEADING, heading),
        (state.COS, np.cos(heading)),
        (state.SIN, np.sin(heading)),
        (state.SPEED, speed),
        (state.LENGTH, length),
        (state.WIDTH, width),
        (state.RADIUS, np.hypot(length, width) / 2),
        (state.PREVIOUS_X, x - move * np.cos(heading)),
        (state.PREVIOUS_Y, y - move * np.sin(heading)),
    ):
        agents[line] = values
    flags[state.IS_PRESENT] = 1
    flags[state.LANE] = flags[state.SIGN_AHEAD] = -1
    return agents, flags


def _stacked(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """(slots, ...) arrays of different sizes, garbage behind the smaller ones."""
    shape = np.max([array.shape for array in arrays], axis=0)
    garbage = np.nan if arrays[0].dtype.kind == "f" else np.iinfo(arrays[0].dtype).max
    stacked = np.full((len(arrays), *shape), garbage, arrays[0].dtype)
    for slot, array in zip(stacked, arrays, strict=True):
        slot[tuple(slice(size) for size in array.shape)] = array
    return stacked
