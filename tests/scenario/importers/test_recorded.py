"""Records with the properties of real recordings are imported, validated and drawn without faults."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from roadworthy.cli.main import main
from roadworthy.render.style import LIGHT
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, FeatureKind, LightState
from roadworthy.scenario.validate import Severity, faults
from tests.scenario.importers.encoder import WOMD
from tests.scenario.importers.recorded import ORIGIN, SCENES, WAITING, recorded_data, write_recordings

Captured = pytest.CaptureFixture[str]
ALL = range(len(SCENES))


@pytest.fixture(scope="module")
def pack_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    records, pack = write_recordings(folder / "scenes.tfrecord"), folder / "scenes.pack"
    assert main(["scenarios", "import", "womd", str(records), "-o", str(pack), "--processes", "1"]) == 0
    return pack


@pytest.fixture(scope="module")
def pack(pack_path: Path) -> Pack:
    return Pack(pack_path)


def message_of(number: int) -> Any:
    return WOMD["Scenario"].FromString(recorded_data(*SCENES[number]))


def features(message: Any, kind: str) -> list[Any]:
    return [getattr(feature, kind) for feature in message.map_features if feature.HasField(kind)]


@pytest.mark.parametrize("number", ALL)
def test_the_records_have_the_properties_of_real_ones(number: int) -> None:
    message = message_of(number)
    steps = np.diff(message.timestamps_seconds)
    assert 1e-4 < np.abs(steps - 0.1).max() < 0.01
    assert len(message.tracks) > 128
    ids = [track.id for track in message.tracks]
    assert len(set(ids)) == len(ids)
    assert max(ids) > len(ids)
    states = [[state.valid for state in track.states] for track in message.tracks]
    valid = np.array(states)
    changes = np.abs(np.diff(valid.astype(int), axis=1)).sum(axis=1)
    assert (~valid[:, 0] & valid[:, -1]).any(), "nobody comes late"
    assert (valid[:, 0] & ~valid[:, -1]).any(), "nobody leaves early"
    assert (changes >= 2).any(), "no track has a gap"
    assert valid[message.sdc_track_index].all()
    assert any(state.center_x != 0 for track in message.tracks for state in track.states if not state.valid)
    assert {track.object_type for track in message.tracks} >= {AgentType.VEHICLE, AgentType.PEDESTRIAN}
    assert max(track.states[10].center_x for track in message.tracks) > 1e5
    assert len({state.length for state in message.tracks[0].states if state.valid}) > 1
    assert message.tracks_to_predict
    lanes, edges = features(message, "lane"), features(message, "road_edge")
    there = {feature.id for feature in message.map_features if feature.HasField("lane")}
    assert any(not set(lane.exit_lanes) & there for lane in lanes), "no lane ends at the map's border"
    assert any(lane.HasField("speed_limit_mph") for lane in lanes)
    assert any(not lane.HasField("speed_limit_mph") for lane in lanes)
    assert any(a == b for lane in lanes for a, b in pairwise(lane.polyline)), "no point is there twice"
    assert {1} < {len(edge.polyline) for edge in edges}
    assert any(len(edge.polyline) > 1 and edge.polyline[0] == edge.polyline[-1] for edge in edges)
    assert any(edge.polyline[0] != edge.polyline[-1] for edge in edges), "all road edges are closed"
    assert features(message, "speed_bump")
    assert features(message, "driveway")


def test_some_records_have_lights_cyclists_and_neighbors_along_a_part_of_a_lane() -> None:
    messages = [message_of(number) for number in ALL]
    lit = [message for message in messages if any(step.lane_states for step in message.dynamic_map_states)]
    assert lit
    for message in lit:
        listed = [{shown.lane: shown for shown in step.lane_states} for step in message.dynamic_map_states]
        every = set().union(*listed)
        assert any(lane not in step for step in listed for lane in every), "every light is always listed"
        assert any(shown.state == LightState.UNKNOWN for step in listed for shown in step.values())
        assert any(len({step[lane].stop_point.x for step in listed if lane in step}) > 1 for lane in every)
    assert any(track.object_type == AgentType.CYCLIST for message in messages for track in message.tracks)
    neighbors = [n for m in messages for lane in features(m, "lane") for n in lane.left_neighbors]
    assert any(neighbor.self_start_index > 0 for neighbor in neighbors)


@pytest.mark.row("IMP-3")
@pytest.mark.parametrize("number", ALL)
def test_a_recording_passes_its_profile(pack: Pack, number: int) -> None:
    found = faults(pack[number])
    assert [fault.message for fault in found if fault.severity is Severity.ERROR] == []
    assert {fault.severity for fault in found} >= {Severity.NOTE}


@pytest.mark.parametrize("number", ALL)
def test_motion_equals_that_of_the_record(pack: Pack, number: int) -> None:
    scenario, message = pack[number], message_of(number)
    assert (scenario.dt, scenario.current_step, scenario.sdc) == (0.1, 10, message.sdc_track_index)
    assert scenario.agent_ids.tolist() == [track.id for track in message.tracks]
    for agent, track in enumerate(message.tracks):
        assert scenario.valid[agent].tolist() == [state.valid for state in track.states]
        there = scenario.valid[agent]
        told = np.array([[s.center_x, s.center_y, s.center_z] for s in track.states])[there]
        away = np.abs(told).max(initial=0.0)
        own = scenario.positions[agent, there] + scenario.map.origin
        np.testing.assert_allclose(own, told, rtol=0, atol=1e-4 if away < 1e5 else 0.05)
        assert (scenario.positions[agent, ~there] == 0).all()
    assert abs(scenario.map.origin[:2] - ORIGIN[:2]).max() < 1000


@pytest.mark.parametrize("number", ALL)
def test_the_map_holds_what_can_be_used(pack: Pack, number: int) -> None:
    road_map = pack[number].map
    assert list(road_map.check()) == []
    assert np.isnan(road_map.speed_limits).any()
    assert np.isnan(road_map.lane_widths).any()
    lanes = np.arange(road_map.lane_count)
    assert len(np.setdiff1d(lanes, road_map.successors[:, 0])), "every lane has a successor"
    for kind in FeatureKind:
        if kind not in (FeatureKind.ROAD_LINE, FeatureKind.CROSSWALK):
            assert len(road_map.features(kind)), kind.name


@pytest.mark.row("IMP-3")
def test_validate_counts_by_kind_and_ends_with_0(pack_path: Path, capsys: Captured) -> None:
    assert main(["scenarios", "validate", str(pack_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{pack_path}: 0 errors, ")
    assert lines[0].endswith(f" notes ({len(SCENES)} scenarios, profile: recorded)")
    assert len(lines) < 45
    assert main(["scenarios", "validate", str(pack_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["counts"]["error"] == 0
    assert report["counts"]["note"] > 100
    assert main(["scenarios", "validate", str(pack_path), "--all"]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("scenario ")]
    assert len(listed) == report["fault_count"]


def test_info_describes_the_pack(pack_path: Path, capsys: Captured) -> None:
    assert main(["scenarios", "info", str(pack_path)]) == 0
    out = capsys.readouterr().out
    assert f"womd: {len(SCENES)}" in out
    assert "pedestrian" in out


@pytest.mark.parametrize("number", [0, WAITING])
def test_a_picture_shows_the_self_driving_car_unless_the_map_is_asked_for(
    pack_path: Path, number: int, tmp_path: Path
) -> None:
    picture = tmp_path / "scene.png"
    assert main(["scenarios", "show", str(pack_path), str(number), "-o", str(picture)]) == 0
    image = np.asarray(Image.open(picture))
    height, width = image.shape[:2]
    near = image[height // 2 - 40 : height // 2 + 40, width // 2 - 40 : width // 2 + 40]
    assert (near == LIGHT.sdc).all(axis=2).sum() > 500

    assert main(["scenarios", "show", str(pack_path), str(number), "-o", str(picture), "--view", "bev"]) == 0
    image = np.asarray(Image.open(picture))
    ground = (image == LIGHT.road).all(axis=2).mean()
    assert ground > 0.02, "the map is a dot: an agent far away is in the picture"
