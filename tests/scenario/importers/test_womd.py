"""WOMD messages become scenarios: what is kept, what is counted as omitted, what is rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers.womd import read_scenario
from roadworthy.scenario.pack import encode_map, encode_scenario
from roadworthy.scenario.schema import (
    OPTIONAL_MAP_ARRAYS,
    OPTIONAL_SCENARIO_ARRAYS,
    AgentType,
    FeatureKind,
    LightState,
    RoadMap,
    Scenario,
)
from roadworthy.scenario.source_values import neighbor_ranges
from tests.scenario.example import differences, example_scenario
from tests.scenario.importers.encoder import womd_message

EDGE_ID, LINE_ID, FIRST_LANE_ID = 105, 104, 100  # of the example's map


@pytest.fixture
def message() -> Any:
    """Return the example as a message."""
    return womd_message(example_scenario())


def read(message: Any) -> Scenario:
    return read_scenario(message.SerializeToString(), Counter())


def left_out(message: Any) -> dict[str, int]:
    """Return the omitted counts, except those of the example itself."""
    counts: Counter[str] = Counter()
    read_scenario(message.SerializeToString(), counts)
    own: Counter[str] = Counter()
    read_scenario(womd_message(example_scenario()).SerializeToString(), own)
    return dict(counts - own)


def in_source_coordinates(points: Any, road_map: RoadMap) -> Any:
    return points.astype(np.float64) + road_map.origin


@pytest.mark.row("SCEN-1")
def test_everything_that_a_scenario_holds_is_read_back() -> None:
    scenario = example_scenario(tags=())
    found = read(womd_message(scenario))
    # WOMD has no yields and stop lines, and lane widths only from boundaries; the frame is another, see below.
    moved = {"map.origin", "map.points", "positions", "light_stops"}
    unknown = {"source", "map.lane_widths", "map.yields", "map.stop_lines", "map.stop_line_lanes"}
    given = {f"map.{name}" for name in OPTIONAL_MAP_ARRAYS} | set(OPTIONAL_SCENARIO_ARRAYS)
    assert set(differences(scenario, found)) == moved | unknown | given
    assert found.source == "womd"
    assert np.isnan(found.map.lane_widths).all()
    assert not any(len(getattr(found.map, name)) for name in ("yields", "stop_lines", "stop_line_lanes"))
    for ours, theirs in (
        (found.map.points, scenario.map.points),
        (found.positions[found.valid], scenario.positions[scenario.valid]),
        (found.light_stops, scenario.light_stops),
    ):
        source = in_source_coordinates(theirs, scenario.map)
        np.testing.assert_allclose(in_source_coordinates(ours, found.map), source, rtol=0, atol=1e-5)


def test_coordinates_far_from_zero_keep_their_precision(message: Any) -> None:
    found = read(message)
    assert np.abs(found.map.points[:, :2]).max() < 60
    assert (found.map.origin == np.round(found.map.origin)).all()
    track = message.tracks[0].states[33]
    place = in_source_coordinates(found.positions[0, 33], found.map)
    np.testing.assert_allclose(place, [track.center_x, track.center_y, track.center_z], rtol=0, atol=1e-5)


def test_what_is_read_can_be_encoded(message: Any) -> None:
    found = read(message)
    assert encode_map(found.map)
    assert encode_scenario(found)
    assert all(
        not getattr(found.map, f.name).flags.writeable
        for f in fields(found.map)
        if isinstance(getattr(found.map, f.name), np.ndarray)
    )


def test_a_state_that_is_not_valid_is_zero_for_the_simulator_and_kept_for_scoring(message: Any) -> None:
    state = message.tracks[0].states[5]
    state.valid = False
    state.center_x, state.center_y, state.heading, state.velocity_y, state.length = np.nan, 3.3, 7.0, np.inf, -1.0
    found = read(message)
    assert not found.valid[0, 5]
    for motion in (found.positions, found.headings, found.velocities):
        assert (motion[0, 5] == 0).all()
    assert np.isnan(found.source_positions[0, 5, 0])
    assert found.source_positions[0, 5, 1] == np.float32(3.3)
    assert found.source_headings[0, 5] == 7.0
    assert encode_scenario(found)


@pytest.mark.row("REAL-1")
def test_source_coordinates_are_rounded_once(message: Any) -> None:
    """Between 4,000,000 and 4,000,100 float32 has steps of 0.25, which a detour through the map's frame may miss."""
    state, point = message.tracks[0].states[33], message.map_features[0].lane.polyline[1]
    state.center_x = point.x = 4_000_010.3749999
    found = read(message)
    assert found.source_positions[0, 33, 0] == np.float32(4_000_010.3749999)
    assert found.map.source_points[1, 0] == np.float32(4_000_010.3749999)
    assert found.source_headings[0, 33] == found.headings[0, 33]


@pytest.mark.row("REAL-1")
def test_lights_that_are_not_listed_and_lights_listed_as_unknown_differ(message: Any) -> None:
    message.dynamic_map_states[3].ClearField("lane_states")
    message.dynamic_map_states[4].lane_states[0].state = LightState.UNKNOWN
    moved = message.dynamic_map_states[5].lane_states[0].stop_point
    moved.x, moved.y = 4_000_020.5, 1.25
    found = read(message)
    assert found.light_states[0, 2:6].tolist() == [LightState.STOP, LightState.UNKNOWN, LightState.UNKNOWN, 4]
    assert found.light_listed[0, 2:6].tolist() == [True, False, True, True]
    assert found.source_light_stops[0, 3].tolist() == [0.0, 0.0, 0.0]
    assert found.source_light_stops[0, 4, 0] == found.source_light_stops[0, 2, 0] != 0.0
    assert found.source_light_stops[0, 5, :2].tolist() == [4_000_020.5, 1.25]
    np.testing.assert_array_equal(found.light_stops, read(womd_message(example_scenario())).light_stops)


def test_neighbors_keep_the_ranges_along_which_they_are_neighbors(message: Any) -> None:
    neighbors = message.map_features[0].lane.left_neighbors
    (own,) = neighbors
    own.self_start_index, own.self_end_index, own.neighbor_start_index, own.neighbor_end_index = 2, 6, 3, 7
    neighbors.add(feature_id=own.feature_id, self_start_index=9, self_end_index=12, neighbor_end_index=4)
    found = read(message).map
    of_first = found.left_neighbors[:, 0] == 0
    assert found.left_neighbors[of_first, 1].tolist() == [2, 2]
    assert found.left_neighbor_ranges[of_first].tolist() == [[2, 6, 3, 7], [9, 12, 0, 4]]
    last = len(found.polyline(0)) - 1
    assert neighbor_ranges(example_scenario().map, "left")[0].tolist() == [0, last, 0, last]  # where there is none


@pytest.mark.parametrize(("code", "kind"), [(0, AgentType.OTHER), (3, AgentType.CYCLIST), (4, AgentType.OTHER)])
def test_types_of_agents_are_translated(message: Any, code: int, kind: AgentType) -> None:
    message.tracks[1].object_type = code
    assert read(message).agent_types[1] == kind


def test_a_size_is_that_of_the_step_nearest_to_the_current_one(message: Any) -> None:
    track = message.tracks[0]
    for step, state in enumerate(track.states):
        state.length = 4.0 + step / 100
    assert read(message).sizes[0, 0] == np.float32(4.1)
    for step in range(5, 14):
        track.states[step].valid = False
    assert read(message).sizes[0, 0] == np.float32(4.14)
    assert left_out(message) == {"agents whose size changes by more than a centimeter": 1}


def test_a_scenario_without_a_self_driving_car_has_none(message: Any) -> None:
    message.ClearField("sdc_track_index")
    assert read(message).sdc == -1


def test_areas_do_not_repeat_their_first_point(message: Any) -> None:
    crosswalk = next(feature.crosswalk for feature in message.map_features if feature.HasField("crosswalk"))
    crosswalk.polygon.add().CopyFrom(crosswalk.polygon[0])
    road_map = read(message).map
    (number,) = road_map.features(FeatureKind.CROSSWALK)
    assert len(road_map.polyline(number)) == 4
    assert not list(road_map.check())


def test_speed_bumps_and_driveways_are_read(message: Any) -> None:
    for number, name in ((300, "speed_bump"), (301, "driveway")):
        feature = message.map_features.add(id=number)
        for x, y in ((0, 0), (1, 0), (1, 1)):
            getattr(feature, name).polygon.add(x=4_000_000 + x, y=y)
    road_map = read(message).map
    for kind, number in ((FeatureKind.SPEED_BUMP, 300), (FeatureKind.DRIVEWAY, 301)):
        (feature_number,) = road_map.features(kind)
        assert road_map.ids[feature_number] == number
        shape = in_source_coordinates(road_map.polyline(feature_number), road_map)[:, :2] - [4_000_000, 0]
        assert shape.tolist() == [[0, 0], [1, 0], [1, 1]]


def test_links_are_found_from_either_end(message: Any) -> None:
    expected = read(message).map.successors
    for feature in message.map_features:
        if feature.HasField("lane"):
            feature.lane.ClearField("entry_lanes")
    from_exits = read(message).map.successors
    for feature in message.map_features:
        if feature.HasField("lane"):
            feature.lane.ClearField("exit_lanes")
    message.map_features[1].lane.entry_lanes.append(FIRST_LANE_ID)
    message.map_features[3].lane.entry_lanes.append(FIRST_LANE_ID + 2)
    np.testing.assert_array_equal(from_exits, expected)
    np.testing.assert_array_equal(read(message).map.successors, expected)


def test_the_width_of_a_lane_is_measured_between_its_boundaries(message: Any) -> None:
    lane = message.map_features[0].lane
    last = len(lane.polyline) - 1
    lane.left_boundaries.add(lane_start_index=0, lane_end_index=last, boundary_feature_id=LINE_ID)
    assert np.isnan(read(message).map.lane_widths[0])  # no boundary on the right
    lane.right_boundaries.add(lane_start_index=2, lane_end_index=last, boundary_feature_id=EDGE_ID)
    widths = read(message).map.lane_widths
    np.testing.assert_allclose(widths[0], 3.5, atol=1e-5)
    assert np.isnan(widths[1:]).all()


def test_boundaries_too_far_apart_for_a_lane_give_no_width(message: Any) -> None:
    lane, last = message.map_features[0].lane, len(message.map_features[0].lane.polyline) - 1
    far = message.map_features.add(id=200).road_edge
    for x in (0, 50):
        far.polyline.add(x=4_000_000 + x, y=80)
    lane.left_boundaries.add(lane_start_index=0, lane_end_index=last, boundary_feature_id=200)
    lane.right_boundaries.add(lane_start_index=0, lane_end_index=last, boundary_feature_id=EDGE_ID)
    assert np.isnan(read(message).map.lane_widths[0])


def test_an_unlisted_light_is_unknown_and_the_last_state_of_a_step_counts(message: Any) -> None:
    message.dynamic_map_states[3].ClearField("lane_states")
    message.dynamic_map_states[4].lane_states.add(lane=FIRST_LANE_ID, state=LightState.ARROW_GO)
    found = read(message)
    assert found.light_states[0, 2:6].tolist() == [
        LightState.STOP,
        LightState.UNKNOWN,
        LightState.ARROW_GO,
        LightState.STOP,
    ]
    assert left_out(message) == {"further states of a light at one step": 1}


def test_of_several_stop_points_of_a_light_at_a_step_the_last_counts_for_scoring(message: Any) -> None:
    shown = message.dynamic_map_states[4].lane_states.add(lane=FIRST_LANE_ID, state=LightState.ARROW_GO)
    shown.stop_point.x, shown.stop_point.y = 4_000_033.0, 2.0
    assert read(message).source_light_stops[0, 4, :2].tolist() == [4_000_033.0, 2.0]


def test_a_light_without_a_point_to_stop_at_stops_at_the_start_of_its_lane(message: Any) -> None:
    for step in message.dynamic_map_states:
        for light in step.lane_states:
            light.ClearField("stop_point")
    found = read(message)
    np.testing.assert_array_equal(found.light_stops, found.map.points[:1])


def test_a_map_without_features_is_placed_at_the_agents(message: Any) -> None:
    message.ClearField("map_features")
    found = read(message)
    assert found.map.feature_count == 0
    assert np.abs(found.positions).max() < 60
    assert encode_map(found.map)
    assert encode_scenario(found)


def test_time_stamps_may_jitter(message: Any) -> None:
    rng = np.random.default_rng(0)
    for step in range(len(message.timestamps_seconds)):
        message.timestamps_seconds[step] += 1_500_000_000 + rng.uniform(-1e-4, 1e-4)
    assert read(message).dt == 0.1
    for step in range(len(message.timestamps_seconds)):
        message.timestamps_seconds[step] -= 0.002 * step
    assert read(message).dt == 0.1
    for step in range(len(message.timestamps_seconds)):
        message.timestamps_seconds[step] += 0.002 * step
    message.timestamps_seconds[-1] += 0.05
    assert left_out(message) == {"time steps that differ by a tenth from the others": 1}


def test_a_scenario_with_objects_of_interest_is_tagged(message: Any) -> None:
    message.objects_of_interest.extend([7, 8])
    assert read(message).tags == ("interactive",)


def add_lane_of_one_kind_unknown(message: Any) -> None:
    message.map_features.add(id=900)


def add_empty_line(message: Any) -> None:
    message.map_features.add(id=900).road_line.type = 1


def set_strange_type(message: Any) -> None:
    message.map_features[0].lane.type = 17


def link_to_nowhere(message: Any) -> None:
    message.map_features[0].lane.exit_lanes.append(999)


def light_nowhere(message: Any) -> None:
    message.dynamic_map_states[0].lane_states.add(lane=999, state=4)


def show_strange_light(message: Any) -> None:
    message.dynamic_map_states[0].lane_states[0].state = 77


def add_lidar(message: Any) -> None:
    message.compressed_frame_laser_data.append(b"\x0a\x00")


def name_difficulty(message: Any) -> None:
    message.tracks_to_predict[0].difficulty = 2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (add_lane_of_one_kind_unknown, "map features of an unknown kind"),
        (add_empty_line, "map features without points"),
        (set_strange_type, "unknown types of map features"),
        (link_to_nowhere, "links to lanes that are not on the map"),
        (light_nowhere, "states of lights on lanes that are not on the map"),
        (show_strange_light, "unknown states of lights"),
        (add_lidar, "frames of lidar"),
        (name_difficulty, "difficulties of tracks to predict"),
    ],
)
def test_what_a_scenario_can_not_hold_is_counted(message: Any, change: Callable[[Any], None], what: str) -> None:
    change(message)
    assert left_out(message) == {what: 1}
    read(message).require_sound()


def cut_track(message: Any) -> None:
    del message.tracks[1].states[-1]


def cut_lights(message: Any) -> None:
    del message.dynamic_map_states[-1]


def forget_id(message: Any) -> None:
    message.ClearField("scenario_id")


def current_outside(message: Any) -> None:
    message.current_time_index = 91


def stop_time(message: Any) -> None:
    message.timestamps_seconds[:] = [0.0] * 91


def break_point(message: Any) -> None:
    message.map_features[0].lane.polyline[0].x = np.nan


def break_stop(message: Any) -> None:
    message.dynamic_map_states[0].lane_states[0].stop_point.y = np.inf


def move_point_away(message: Any) -> None:
    message.map_features[0].lane.polyline[0].x += 2000


def two_kinds(message: Any) -> None:
    message.map_features[0].road_edge.type = 1


def same_id(message: Any) -> None:
    message.map_features[1].id = message.map_features[0].id


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (cut_track, "track 1 has 90 states, but there are 91 time stamps"),
        (cut_lights, "there are 90 dynamic map states, but 91 time stamps"),
        (forget_id, "no scenario_id"),
        (current_outside, "current_time_index is 91, but there are 91 time stamps"),
        (stop_time, r"time stamps are 0\.0 s apart"),
        (break_point, "points of the map contain NaN"),
        (break_stop, "stop points of lights contain NaN"),
        (move_point_away, r"map feature 100 has points \d+ m apart, expected 1000 m at most"),
        (two_kinds, "map feature 100 is of 2 kinds"),
        (same_id, "two lanes of the map have the same id"),
    ],
)
def test_messages_that_contradict_themselves_are_refused(
    message: Any, change: Callable[[Any], None], told: str
) -> None:
    change(message)
    with pytest.raises(ScenarioError, match=told):
        read(message)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_motion_with_nan_is_refused_when_encoded(message: Any, value: float) -> None:
    message.tracks[0].states[3].center_x = value
    with pytest.raises(ScenarioError, match="positions contain NaN or infinity"):
        encode_scenario(read(message))
