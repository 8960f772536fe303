"""Convert the `Scenario` message of the Waymo Open Motion Dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.scenario import schema
from roadworthy.scenario.importers.importer import Damage, Record
from roadworthy.scenario.importers.tfrecord import is_tfrecord, records
from roadworthy.scenario.importers.wire import Buffer, Table
from roadworthy.scenario.importers.womd_map import coordinates, numbers_of, read_map
from roadworthy.scenario.importers.womd_schema import SCENARIO_READER
from roadworthy.scenario.schema import AgentType, Bools, Bytes, Floats, Ints, LightState, RoadMap, Scenario

Doubles = NDArray[np.float64]

SOURCE = "womd"
INTERACTIVE = "interactive"  # the tag of scenarios with objects of interest
# Type 0 is "unset" and 4 is "other".
AGENT_TYPES = np.array(
    [AgentType.OTHER, AgentType.VEHICLE, AgentType.PEDESTRIAN, AgentType.CYCLIST, AgentType.OTHER], np.uint8
)
SIZE_TOLERANCE_M = 0.01
STEP_S = 0.1  # of the dataset
STEP_TOLERANCE = 0.1  # of a step


class WomdImporter:
    """Import the Waymo Open Motion Dataset: the format `scenario`, TFRecord files, also gzipped."""

    def matches(self, path: Path) -> bool:
        return is_tfrecord(path)

    def records(self, path: Path) -> Iterator[Record | Damage]:
        return records(path)

    def read(self, data: Buffer, omitted: Counter[str]) -> Iterator[Scenario]:
        yield read_scenario(data, omitted)


# Values that are too large for float32 become infinite, which encoding rejects.
@np.errstate(over="ignore", invalid="ignore")
def read_scenario(data: Buffer, omitted: Counter[str]) -> Scenario:
    """Return a scenario from the bytes of a message, and count in `omitted` what a Scenario cannot hold.

    The size of an agent is that at the current step, or at the nearest step at which it is present.
    """
    message = SCENARIO_READER.read(data)
    (id,) = message.texts("scenario_id")
    if not id:
        raise ScenarioError("the message has no scenario_id; it is not a Scenario, or is damaged")
    times = message.column("timestamps_seconds")
    current = int(message.column("current_time_index")[0])
    if not 0 <= current < len(times):
        raise ScenarioError(f"current_time_index is {current}, but there are {len(times)} time stamps")
    road_map = read_map(message.child("map_features"), omitted)
    tracks = message.child("tracks")
    states, valid = _states(tracks, len(times))
    centers = np.stack([states.column(f"center_{axis}").reshape(valid.shape) for axis in "xyz"], axis=2)
    places = np.where(valid[:, :, None], centers, 0.0)
    if not len(road_map.points) and valid.any():
        road_map = schema.read_only(replace(road_map, origin=np.round(places[valid].mean(axis=0))))
    lights = _lights(message.child("dynamic_map_states"), road_map, len(times), omitted)
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
        light_lanes=lights.lanes,
        light_stops=lights.stops,
        light_states=lights.states,
        light_listed=lights.listed,
        source_light_stops=lights.source_stops,
        source_positions=centers.astype(np.float32),
        source_headings=states.column("heading").reshape(valid.shape),
    )


def _states(tracks: Table, steps: int) -> tuple[Table, Bools]:
    """Return the states of all tracks, and (agents, steps) whether they are valid."""
    counts = np.diff(tracks.starts("states"))
    if (counts != steps).any():
        track = int(np.argmax(counts != steps))
        raise ScenarioError(f"track {track} has {counts[track]} states, but there are {steps} time stamps")
    states = tracks.child("states")
    return states, states.column("valid").reshape(len(tracks), steps)


def _grid(states: Table, name: str, valid: Bools) -> NDArray[np.floating]:
    """Return (agents, steps) a number of each state, 0 where the agent is absent."""
    return np.where(valid, states.column(name).reshape(valid.shape), 0)


def _step_seconds(times: Doubles, omitted: Counter[str]) -> float:
    """Return the seconds from one step to the next: those of the dataset, if the time stamps agree up to jitter."""
    if len(times) < 2:
        raise ScenarioError(f"there are {len(times)} time stamps, expected two or more")
    steps = np.diff(times)
    dt = round(float(np.median(steps)), 3)
    if not dt > 0:
        raise ScenarioError(f"time stamps are {dt} s apart, expected more than 0")
    if abs(dt - STEP_S) <= STEP_TOLERANCE * STEP_S:
        dt = STEP_S
    omitted["time steps that differ by a tenth from the others"] += int(
        (np.abs(steps - dt) > STEP_TOLERANCE * dt).sum()
    )
    return dt


def _agent_types(tracks: Table, omitted: Counter[str]) -> Bytes:
    types = tracks.column("object_type")
    is_strange = (types < 1) | (types >= len(AGENT_TYPES))
    omitted["unset or unknown types of agents"] += int(is_strange.sum())
    return AGENT_TYPES[np.where(is_strange, 0, types)]


def _sizes(states: Table, valid: Bools, current: int, omitted: Counter[str]) -> Floats:
    """Return (agents, 3) length, width, height."""
    sizes = np.stack([_grid(states, name, valid) for name in ("length", "width", "height")], axis=2)
    steps = np.arange(valid.shape[1])
    nearest = np.where(valid, np.abs(steps - current), len(steps)).argmin(axis=1)
    kept = sizes[np.arange(len(valid)), nearest]
    strays = (np.abs(sizes - kept[:, None]) > SIZE_TOLERANCE_M).any(axis=2) & valid
    omitted["agents whose size changes by more than a centimeter"] += int(strays.any(axis=1).sum())
    return kept.astype(np.float32)


class _Lights(NamedTuple):
    """L lights over T steps."""

    lanes: Ints  # (L,) the lane that each controls
    stops: Floats  # (L, 3) the point to stop at, in the map's frame
    states: Bytes  # (L, T) LightState, UNKNOWN also where it is not listed
    listed: Bools  # (L, T) whether it is listed
    source_stops: Floats  # (L, T, 3) the listed point to stop at, in the source's coordinates


def _lights(steps: Table, road_map: RoadMap, step_count: int, omitted: Counter[str]) -> _Lights:
    """Read the lights of lanes on the map. Of several states of a light at one step, the last one counts."""
    if len(steps) not in (0, step_count):
        raise ScenarioError(f"there are {len(steps)} dynamic map states, but {step_count} time stamps")
    signals = steps.child("lane_states")
    step = np.repeat(np.arange(len(steps)), np.diff(steps.starts("lane_states")))
    lane_ids = road_map.ids[: road_map.lane_count]
    lane_of = numbers_of(lane_ids, signals.column("lane"))
    omitted["states of lights on lanes that are not on the map"] += int((lane_of < 0).sum())
    shown = signals.column("state")
    is_strange = (shown < 0) | (shown >= len(LightState))
    omitted["unknown states of lights"] += int(is_strange.sum())

    on_map = np.flatnonzero(lane_of >= 0)
    lanes, light = np.unique(lane_of[on_map], return_inverse=True)
    last = _last_of_each(light * step_count + step[on_map])
    omitted["further states of a light at one step"] += len(on_map) - len(last)
    kept, place = on_map[last], (light[last], step[on_map[last]])
    states = np.zeros((len(lanes), step_count), np.uint8)
    states[place] = np.where(is_strange, LightState.UNKNOWN, shown)[kept]
    listed = np.zeros((len(lanes), step_count), np.bool_)
    listed[place] = True

    has_stop = signals.has("stop_point")
    points = np.zeros((len(shown), 3))
    points[has_stop] = coordinates(signals.child("stop_point"))
    if not np.isfinite(points[on_map].astype(np.float32)).all():
        raise ScenarioError("stop points of lights contain NaN or infinity")
    source_stops = np.zeros((len(lanes), step_count, 3), np.float32)
    source_stops[place] = points[kept]
    # Without a point to stop at, the stop is where the lane starts.
    stops = road_map.points[road_map.starts[lanes]]
    seen = on_map[has_stop[on_map]]
    first_lanes, first = np.unique(lane_of[seen], return_index=True)
    stops[np.searchsorted(lanes, first_lanes)] = points[seen[first]] - road_map.origin
    return _Lights(lanes.astype(np.int32), stops, states, listed, source_stops)


def _last_of_each(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the last occurrence of each key."""
    return len(keys) - 1 - np.unique(keys[::-1], return_index=True)[1]


def _count_omitted(message: Table, omitted: Counter[str]) -> None:
    difficulties = message.child("tracks_to_predict").column("difficulty")
    omitted["difficulties of tracks to predict"] += int((difficulties != 0).sum())
    omitted[f"objects of interest, except the tag {INTERACTIVE!r}"] += len(message.column("objects_of_interest"))
    omitted["frames of lidar"] += len(message.blobs("compressed_frame_laser_data"))
    omitted["frames of camera tokens"] += len(message.blobs("frame_camera_tokens"))
