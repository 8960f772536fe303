"""The parts of the Waymo Open Motion Dataset's `Scenario` message that are read: numbers, names and kinds of fields."""

from __future__ import annotations

from roadworthy.scenario.importers.wire import Field, Kind, MessageReader, message
from roadworthy.scenario.schema import FeatureKind

POINT = message("MapPoint", Field(1, "x", Kind.DOUBLE), Field(2, "y", Kind.DOUBLE), Field(3, "z", Kind.DOUBLE))
OBJECT_STATE = message(
    "ObjectState",
    Field(2, "center_x", Kind.DOUBLE),
    Field(3, "center_y", Kind.DOUBLE),
    Field(4, "center_z", Kind.DOUBLE),
    Field(5, "length", Kind.FLOAT),
    Field(6, "width", Kind.FLOAT),
    Field(7, "height", Kind.FLOAT),
    Field(8, "heading", Kind.FLOAT),
    Field(9, "velocity_x", Kind.FLOAT),
    Field(10, "velocity_y", Kind.FLOAT),
    Field(11, "valid", Kind.BOOL),
)
TRACK = message(
    "Track",
    Field(1, "id", Kind.INT32),
    Field(2, "object_type", Kind.INT32),
    Field(3, "states", OBJECT_STATE, repeated=True),
)
SIGNAL = message(
    "TrafficSignalLaneState", Field(1, "lane", Kind.INT64), Field(2, "state", Kind.INT32), Field(3, "stop_point", POINT)
)
DYNAMIC_MAP_STATE = message("DynamicMapState", Field(1, "lane_states", SIGNAL, repeated=True))
BOUNDARY = message(
    "BoundarySegment",
    Field(1, "lane_start_index", Kind.INT32),
    Field(2, "lane_end_index", Kind.INT32),
    Field(3, "boundary_feature_id", Kind.INT64),
)
NEIGHBOR = message(
    "LaneNeighbor",
    Field(1, "feature_id", Kind.INT64),
    Field(2, "self_start_index", Kind.INT32),
    Field(3, "self_end_index", Kind.INT32),
    Field(4, "neighbor_start_index", Kind.INT32),
    Field(5, "neighbor_end_index", Kind.INT32),
)
LANE = message(
    "LaneCenter",
    Field(1, "speed_limit_mph", Kind.DOUBLE),
    Field(2, "type", Kind.INT32),
    Field(3, "interpolating", Kind.BOOL),
    Field(8, "polyline", POINT, repeated=True),
    Field(9, "entry_lanes", Kind.INT64, repeated=True),
    Field(10, "exit_lanes", Kind.INT64, repeated=True),
    Field(11, "left_neighbors", NEIGHBOR, repeated=True),
    Field(12, "right_neighbors", NEIGHBOR, repeated=True),
    Field(13, "left_boundaries", BOUNDARY, repeated=True),
    Field(14, "right_boundaries", BOUNDARY, repeated=True),
)
LINE = message("RoadLine", Field(1, "type", Kind.INT32), Field(2, "polyline", POINT, repeated=True))
EDGE = message("RoadEdge", Field(1, "type", Kind.INT32), Field(2, "polyline", POINT, repeated=True))
STOP_SIGN = message("StopSign", Field(1, "lane", Kind.INT64, repeated=True), Field(2, "position", POINT))
AREA = message("Crosswalk, SpeedBump and Driveway", Field(1, "polygon", POINT, repeated=True))
MAP_FEATURE = message(
    "MapFeature",
    Field(1, "id", Kind.INT64),
    Field(3, "lane", LANE),
    Field(4, "road_line", LINE),
    Field(5, "road_edge", EDGE),
    Field(7, "stop_sign", STOP_SIGN),
    Field(8, "crosswalk", AREA),
    Field(9, "speed_bump", AREA),
    Field(10, "driveway", AREA),
)
REQUIRED_PREDICTION = message(
    "RequiredPrediction", Field(1, "track_index", Kind.INT32), Field(2, "difficulty", Kind.INT32)
)
SCENARIO = message(
    "Scenario",
    Field(1, "timestamps_seconds", Kind.DOUBLE, repeated=True),
    Field(2, "tracks", TRACK, repeated=True),
    Field(4, "objects_of_interest", Kind.INT32, repeated=True),
    Field(5, "scenario_id", Kind.STRING),
    Field(6, "sdc_track_index", Kind.INT32),
    Field(7, "dynamic_map_states", DYNAMIC_MAP_STATE, repeated=True),
    Field(8, "map_features", MAP_FEATURE, repeated=True),
    Field(10, "current_time_index", Kind.INT32),
    Field(11, "tracks_to_predict", REQUIRED_PREDICTION, repeated=True),
    Field(12, "compressed_frame_laser_data", Kind.BYTES, repeated=True),
    Field(13, "frame_camera_tokens", Kind.BYTES, repeated=True),
)
SCENARIO_READER = MessageReader(SCENARIO)

# For each kind of feature: its field in a MapFeature, and the field of its points.
FEATURE_FIELDS: dict[FeatureKind, tuple[str, str]] = {
    FeatureKind.LANE: ("lane", "polyline"),
    FeatureKind.ROAD_LINE: ("road_line", "polyline"),
    FeatureKind.ROAD_EDGE: ("road_edge", "polyline"),
    FeatureKind.CROSSWALK: ("crosswalk", "polygon"),
    FeatureKind.SPEED_BUMP: ("speed_bump", "polygon"),
    FeatureKind.DRIVEWAY: ("driveway", "polygon"),
    FeatureKind.STOP_SIGN: ("stop_sign", "position"),
}
