"""The `Scenario` message of the Waymo Open Motion Dataset as a Scenario."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers.wire import Buffer, Table
from roadworthy.scenario.importers.womd_map import coordinates, numbers_of, read_map
from roadworthy.scenario.importers.womd_schema import SCENARIO_READER
from roadworthy.scenario.schema import (
    AgentType,
    Bools,
    Bytes,
    Floats,
    Ints,
    LightState,
    RoadMap,
    Scenario,
    read_only,
)

Doubles = NDArray[np.float64]

SOURCE = "womd"
INTERACTIVE = "interactive"  # the tag of scenarios that name objects of interest
# Type 0 is "unset" and 4 is "other".
AGENT_TYPES = np.array(
    [AgentType.OTHER, AgentType.VEHICLE, AgentType.PEDESTRIAN, AgentType.CYCLIST, AgentType.OTHER], np.uint8
)
SIZE_TOLERANCE_M = 0.01
STEP_TOLERANCE = 0.1  # of a step


# What is too large for float32 becomes infinite, which encoding refuses.
@np.errstate(over="ignore", invalid="ignore")
def read_scenario(data: Buffer, omitted: Counter[str]) -> Scenario:
    """A scenario from the bytes of a message; what a Scenario can't hold is counted in `omitted`.

    An agent has the size that it has at the current step, or at the step nearest to it at which it is there.
    """
    message = SCENARIO_READER.read(data)
    (id,) = message.texts("scenario_id")
    if not id:
        raise ScenarioError("the message has no scenario_id; it is no Scenario, or a damaged one")
    times = message.column("timestamps_seconds")
    current = int(message.column("current_time_index")[0])
    if not 0 <= current < len(times):
        raise ScenarioError(f"current_time_index is {current}, but there are {len(times)} time stamps")
    road_map = read_map(message.child("map_features"), omitted)
    tracks = message.child("tracks")
    states, valid = _states(tracks, len(times))
    places = np.stack([_grid(states, f"center_{axis}", valid) for axis in "xyz"], axis=2)
    if not len(road_map.points) and valid.any():
        road_map = read_only(replace(road_map, origin=np.round(places[valid].mean(axis=0))))
    lanes, stops, signals = _lights(message.child("dynamic_map_states"), road_map, len(times), omitted)
    sdc = int(message.column("sdc_track_index")[0]) if message.has("sdc_track_index")[0] else -1
    is_interactive = len(message.column("objects_of_interest")) > 0
    _count_omitted(message, omitted)
    return Scenario(
        id=id,
        source=SOURCE,
        tags=(INTERACTIVE,) if is_interactive else (),
        dt=_step_seconds(times, omitted),
        current_step=current,
        map=road_map,
        agent_ids=tracks.column("id").astype(np.int64),
        agent_types=_agent_types(tracks, omitted),
        sizes=_sizes(states, valid, current, omitted),
        positions=np.where(valid[:, :, None], places - road_map.origin, 0).astype(np.float32),
        headings=_grid(states, "heading", valid),
        velocities=np.stack([_grid(states, f"velocity_{axis}", valid) for axis in "xy"], axis=2),
        valid=valid,
        sdc=sdc,
        predict=message.child("tracks_to_predict").column("track_index"),
        light_lanes=lanes,
        light_stops=stops,
        light_states=signals,
    )


def _states(tracks: Table, steps: int) -> tuple[Table, Bools]:
    """The states of all tracks, and (agents, steps) whether they are valid."""
    counts = np.diff(tracks.starts("states"))
    if (counts != steps).any():
        track = int(np.argmax(counts != steps))
        raise ScenarioError(f"track {track} has {counts[track]} states, but there are {steps} time stamps")
    states = tracks.child("states")
    return states, states.column("valid").reshape(len(tracks), steps)


def _grid(states: Table, name: str, valid: Bools) -> NDArray[np.floating]:
    """(agents, steps) a number of each state, 0 where the agent is not there."""
    return np.where(valid, states.column(name).reshape(valid.shape), 0)


def _step_seconds(times: Doubles, omitted: Counter[str]) -> float:
    """Seconds from one step to the next, to the millisecond; time stamps jitter a little."""
    if len(times) < 2:
        raise ScenarioError(f"there are {len(times)} time stamps, expected two or more")
    steps = np.diff(times)
    dt = round(float(np.median(steps)), 3)
    if not dt > 0:
        raise ScenarioError(f"time stamps are {dt} s apart, expected more than 0")
    omitted["time steps that are a tenth longer or shorter than the others"] += int(
        (np.abs(steps - dt) > STEP_TOLERANCE * dt).sum()
    )
    return dt


def _agent_types(tracks: Table, omitted: Counter[str]) -> Bytes:
    types = tracks.column("object_type")
    is_strange = (types < 1) | (types >= len(AGENT_TYPES))
    omitted["types of agents that are unset or not known"] += int(is_strange.sum())
    return AGENT_TYPES[np.where(is_strange, 0, types)]


def _sizes(states: Table, valid: Bools, current: int, omitted: Counter[str]) -> Floats:
    """(agents, 3) length, width, height."""
    sizes = np.stack([_grid(states, name, valid) for name in ("length", "width", "height")], axis=2)
    steps = np.arange(valid.shape[1])
    nearest = np.where(valid, np.abs(steps - current), len(steps)).argmin(axis=1)
    kept = sizes[np.arange(len(valid)), nearest]
    strays = (np.abs(sizes - kept[:, None]) > SIZE_TOLERANCE_M).any(axis=2) & valid
    omitted["agents whose size changes by more than a centimetre"] += int(strays.any(axis=1).sum())
    return kept.astype(np.float32)


def _lights(steps: Table, road_map: RoadMap, step_count: int, omitted: Counter[str]) -> tuple[Ints, Floats, Bytes]:
    """Each light's lane, where to stop for it, and (lights, steps) what it shows; UNKNOWN where nobody saw it."""
    if len(steps) not in (0, step_count):
        raise ScenarioError(f"there are {len(steps)} dynamic map states, but {step_count} time stamps")
    signals = steps.child("lane_states")
    step = np.repeat(np.arange(len(steps)), np.diff(steps.starts("lane_states")))
    lane_ids = road_map.ids[: road_map.lane_count]
    lane_of = numbers_of(lane_ids, signals.column("lane"))
    omitted["states of lights on lanes that are not on the map"] += int((lane_of < 0).sum())
    shown = signals.column("state")
    is_strange = (shown < 0) | (shown >= len(LightState))
    omitted["states of lights that are not known"] += int(is_strange.sum())

    on_map = np.flatnonzero(lane_of >= 0)
    lanes, light = np.unique(lane_of[on_map], return_inverse=True)
    omitted["further states of a light at one step"] += len(on_map) - len(np.unique(light * step_count + step[on_map]))
    states = np.zeros((len(lanes), step_count), np.uint8)
    states[light, step[on_map]] = np.where(is_strange, LightState.UNKNOWN, shown)[on_map]

    # Without a point to stop at, one stops where the lane begins.
    stops = road_map.points[road_map.starts[lanes]]
    has_stop = signals.has("stop_point")
    points = (coordinates(signals.child("stop_point")) - road_map.origin).astype(np.float32)
    seen = np.flatnonzero(has_stop & (lane_of >= 0))[::-1]  # the first of a light is written last, and stays
    stops[np.searchsorted(lanes, lane_of[seen])] = points[np.cumsum(has_stop)[seen] - 1]
    if not np.isfinite(stops).all():
        raise ScenarioError("points to stop at for lights contain NaN or infinity")
    return lanes.astype(np.int32), stops, states


def _count_omitted(message: Table, omitted: Counter[str]) -> None:
    difficulties = message.child("tracks_to_predict").column("difficulty")
    omitted["difficulties of tracks to predict"] += int((difficulties != 0).sum())
    omitted[f"objects of interest, apart from the tag {INTERACTIVE!r}"] += len(message.column("objects_of_interest"))
    omitted["frames of lidar"] += len(message.blobs("compressed_frame_laser_data"))
    omitted["frames of camera tokens"] += len(message.blobs("frame_camera_tokens"))
