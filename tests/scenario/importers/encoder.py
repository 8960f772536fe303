"""Scenarios as WOMD messages and TFRecord files, encoded by google.protobuf from an independent schema."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from roadworthy.scenario.importers.tfrecord import masked_crc32c
from roadworthy.scenario.schema import AgentType, FeatureKind, Scenario
from roadworthy.scenario.source_values import listed_lights, neighbor_ranges

# Per message: number, label (o: optional, r: repeated, p: packed), type and name of each field.
SCHEMA = {
    "MapPoint": "1 o double x; 2 o double y; 3 o double z",
    "ObjectState": (
        "2 o double center_x; 3 o double center_y; 4 o double center_z; 5 o float length; 6 o float width; "
        "7 o float height; 8 o float heading; 9 o float velocity_x; 10 o float velocity_y; 11 o bool valid"
    ),
    "Track": "1 o int32 id; 2 o int32 object_type; 3 r ObjectState states",
    "TrafficSignalLaneState": "1 o int64 lane; 2 o int32 state; 3 o MapPoint stop_point",
    "DynamicMapState": "1 r TrafficSignalLaneState lane_states",
    "BoundarySegment": (
        "1 o int32 lane_start_index; 2 o int32 lane_end_index; 3 o int64 boundary_feature_id; 4 o int32 boundary_type"
    ),
    "LaneNeighbor": (
        "1 o int64 feature_id; 2 o int32 self_start_index; 3 o int32 self_end_index; 4 o int32 neighbor_start_index; "
        "5 o int32 neighbor_end_index; 6 r BoundarySegment boundaries"
    ),
    "LaneCenter": (
        "1 o double speed_limit_mph; 2 o int32 type; 3 o bool interpolating; 8 r MapPoint polyline; "
        "9 p int64 entry_lanes; 10 p int64 exit_lanes; 11 r LaneNeighbor left_neighbors; "
        "12 r LaneNeighbor right_neighbors; 13 r BoundarySegment left_boundaries; 14 r BoundarySegment right_boundaries"
    ),
    "RoadLine": "1 o int32 type; 2 r MapPoint polyline",
    "RoadEdge": "1 o int32 type; 2 r MapPoint polyline",
    "StopSign": "1 r int64 lane; 2 o MapPoint position",
    "Crosswalk": "1 r MapPoint polygon",
    "SpeedBump": "1 r MapPoint polygon",
    "Driveway": "1 r MapPoint polygon",
    "MapFeature": (
        "1 o int64 id; 3 o LaneCenter lane; 4 o RoadLine road_line; 5 o RoadEdge road_edge; 7 o StopSign stop_sign; "
        "8 o Crosswalk crosswalk; 9 o SpeedBump speed_bump; 10 o Driveway driveway"
    ),
    "RequiredPrediction": "1 o int32 track_index; 2 o int32 difficulty",
    "Scenario": (
        "1 r double timestamps_seconds; 2 r Track tracks; 4 r int32 objects_of_interest; 5 o string scenario_id; "
        "6 o int32 sdc_track_index; 7 r DynamicMapState dynamic_map_states; 8 r MapFeature map_features; "
        "10 o int32 current_time_index; 11 r RequiredPrediction tracks_to_predict; "
        "12 r bytes compressed_frame_laser_data; 13 r bytes frame_camera_tokens"
    ),
}
AREA_FIELDS = {
    FeatureKind.CROSSWALK: "crosswalk",
    FeatureKind.SPEED_BUMP: "speed_bump",
    FeatureKind.DRIVEWAY: "driveway",
}
MPH_PER_MPS = 3600 / 1609.344


def message_classes(schema: dict[str, str]) -> dict[str, Any]:
    """Return classes of google.protobuf for the messages of a schema."""
    file = descriptor_pb2.FileDescriptorProto(name="made.proto", package="made", syntax="proto2")
    for name, fields in schema.items():
        message = file.message_type.add(name=name)
        for declared in fields.split("; "):
            number, label, kind, field_name = declared.split()
            field = message.field.add(name=field_name, number=int(number), label=1 if label == "o" else 3)
            if kind in schema:
                field.type, field.type_name = field.TYPE_MESSAGE, f".made.{kind}"
            else:
                field.type = getattr(field, f"TYPE_{kind.upper()}")
            if label == "p":
                field.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"made.{name}")) for name in schema}


WOMD = message_classes(SCHEMA)


def womd_message(scenario: Scenario) -> Any:
    """Return a scenario as a message, in its source's coordinates."""
    message = WOMD["Scenario"](scenario_id=scenario.id, current_time_index=scenario.current_step)
    message.timestamps_seconds.extend(scenario.dt * k for k in range(scenario.steps))
    if scenario.sdc >= 0:
        message.sdc_track_index = scenario.sdc
    for agent in scenario.predict.tolist():
        message.tracks_to_predict.add(track_index=agent)
    _add_tracks(message, scenario)
    listed, stops = listed_lights(scenario)
    if not scenario.source_light_stops.size:
        stops = np.repeat((scenario.light_stops + scenario.map.origin)[:, None], scenario.steps, axis=1)
    for step in range(scenario.steps):
        state = message.dynamic_map_states.add()
        for light in np.flatnonzero(listed[:, step]):
            lane = scenario.map.ids[scenario.light_lanes[light]]
            shown = state.lane_states.add(lane=lane, state=scenario.light_states[light, step])
            _set_point(shown.stop_point, stops[light, step])
    _add_features(message, scenario)
    return message


def _add_tracks(message: Any, scenario: Scenario) -> None:
    for agent in range(scenario.agent_count):
        kind = scenario.agent_types[agent]
        track = message.tracks.add(id=scenario.agent_ids[agent], object_type=4 if kind == AgentType.OTHER else kind)
        for step in range(scenario.steps):
            state = track.states.add(valid=scenario.valid[agent, step])
            if not state.valid:
                continue
            x, y, z = scenario.positions[agent, step] + scenario.map.origin
            state.center_x, state.center_y, state.center_z = x, y, z
            state.length, state.width, state.height = scenario.sizes[agent].tolist()
            state.heading = scenario.headings[agent, step]
            state.velocity_x, state.velocity_y = scenario.velocities[agent, step].tolist()


def _add_features(message: Any, scenario: Scenario) -> None:
    road_map = scenario.map
    for number in range(road_map.feature_count):
        kind, points = road_map.kinds[number], road_map.polyline(number) + road_map.origin
        feature = message.map_features.add(id=road_map.ids[number])
        if kind == FeatureKind.STOP_SIGN:
            stopped = road_map.stop_signs[road_map.stop_signs[:, 0] == number, 1]
            feature.stop_sign.lane.extend(road_map.ids[stopped].tolist())
            _set_point(feature.stop_sign.position, points[0])
        elif kind in AREA_FIELDS:
            _add_points(getattr(feature, AREA_FIELDS[kind]).polygon, points)
        else:
            line = {0: feature.lane, 1: feature.road_line, 2: feature.road_edge}[int(kind)]
            line.type = road_map.types[number]
            _add_points(line.polyline, points)
            if kind == FeatureKind.LANE:
                _link_lane(line, scenario, number)


def _link_lane(lane: Any, scenario: Scenario, number: int) -> None:
    road_map = scenario.map
    if np.isfinite(road_map.speed_limits[number]):
        lane.speed_limit_mph = road_map.speed_limits[number] * MPH_PER_MPS
    for own, other in road_map.successors.tolist():
        if own == number:
            lane.exit_lanes.append(road_map.ids[other])
        if other == number:
            lane.entry_lanes.append(road_map.ids[own])
    for side, neighbors in (("left", lane.left_neighbors), ("right", lane.right_neighbors)):
        links = getattr(road_map, f"{side}_neighbors")
        for row in np.flatnonzero(links[:, 0] == number):
            first, last, other_first, other_last = neighbor_ranges(road_map, side)[row].tolist()
            neighbors.add(
                feature_id=road_map.ids[links[row, 1]],
                self_start_index=first,
                self_end_index=last,
                neighbor_start_index=other_first,
                neighbor_end_index=other_last,
            )


def _add_points(line: Any, points: Iterable[Any]) -> None:
    for point in points:
        _set_point(line.add(), point)


def _set_point(message: Any, point: Any) -> None:
    message.x, message.y, message.z = (float(value) for value in point)


def frame(data: bytes) -> bytes:
    """Return data as a record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))
