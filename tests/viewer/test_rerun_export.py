"""What Rerun reads from an exported file is what the trace and the pack of the run hold."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from roadworthy.config import Layer, resolve
from roadworthy.errors import UsageError
from roadworthy.record import Run, RunWriter
from roadworthy.record.traces import ROLES, Trace, TraceEvent
from roadworthy.scenario.pack import Pack, PackWriter
from roadworthy.viewer.light_program import program_states
from tests.record.made_up import result, trace
from tests.scenario.example import example_scenario
from tests.viewer.drives import two_policies

pytest.importorskip("rerun", reason="rerun-sdk (the extra `rerun`) is not installed")

FRAMES, AGENTS, DT, SECOND_TRIAL = 100, 4, 0.1, 60
EGO, OTHER_EGO = 0, 2
Rows = dict[str, list[dict[str, Any]]]


def made_up_trace(episode_id: str) -> Trace:
    """Return motion on circles in two trials, with agents that come and go, and events of the first ego."""
    angle = np.arange(FRAMES)[:, None] * 0.02 + np.arange(AGENTS)
    events = np.zeros((FRAMES, AGENTS), np.uint16)
    events[5:9, EGO] = TraceEvent.COLLISION | TraceEvent.AT_FAULT
    events[9, EGO] = TraceEvent.COLLISION  # the same contact, not another one
    events[20:22, EGO] = TraceEvent.GOAL  # two goals
    events[58:63, OTHER_EGO] = TraceEvent.OFF_ROAD  # goes on in the second trial, where it is another event
    events[30, EGO] = TraceEvent.COLLISION
    events[40, EGO] = TraceEvent.ON_LANE | TraceEvent.ALIGNED
    return replace(
        trace(episode_id, 3, FRAMES, AGENTS),
        trial_starts=np.array([0, SECOND_TRIAL, FRAMES], np.int32),
        x=(30 + 20 * np.cos(angle)).astype(np.float32),
        y=(20 * np.sin(angle)).astype(np.float32),
        heading=(angle + np.pi / 2).astype(np.float32),
        speed=(5 + np.sin(7 * angle)).astype(np.float32),
        events=events,
        active=np.ones((FRAMES, AGENTS), np.bool_),
        roles=np.array([ROLES.index(role) for role in ("ego", "coplayer", "ego", "idm")], np.int8),
        extra={},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("runs")
    with PackWriter(root / "two.pack") as writer:
        for name in ("town-0", "town-1"):
            writer.add(example_scenario(name))
    names = pa.table(
        {"episode_id": ["town-0-r0", "town-1-r0"], "scenario": [0, 1], "scenario_id": ["town-0", "town-1"]}
    )
    header = {"config": {"env": {"mode": "replay", "init_steps": 10}}, "checkpoint": None}
    with RunWriter.start(root, "town", "best", header, names, pack=root / "two.pack", scenarios=[0, 1]) as writer:
        for name in names["episode_id"].to_pylist():
            writer.append(replace(result(name), trace=made_up_trace(name)))
    return Run(writer.folder)


def read(path: Path) -> Rows:
    """Return the rows of each entity, read by Rerun; static values have no step."""
    from rerun.chunk import RrdReader

    found: Rows = defaultdict(list)
    for chunk in RrdReader(path).stream():
        found[chunk.entity_path] += chunk.to_record_batch().to_pylist()
    return found


@pytest.fixture(scope="module")
def rows(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    from roadworthy.viewer.rerun_export import export_rerun

    path = tmp_path_factory.mktemp("out") / "new" / "episode.rrd"
    written = export_rerun(run, "town-1-r0", path)
    assert written.path == path
    assert (written.frames, written.agents, written.note) == (FRAMES, AGENTS, None)
    assert [file.name for file in path.parent.iterdir()] == ["episode.rrd"]
    return read(path)


def moving(rows: Rows, place: str) -> list[dict[str, Any]]:
    """Return the rows of an entity that have a time, in order."""
    return sorted((row for row in rows[place] if row.get("step") is not None), key=lambda row: row["step"])


def test_agents_are_where_the_trace_has_them(run: Run, rows: Rows) -> None:
    wanted = run.trace("town-1-r0")
    assert 0 < wanted.present.sum() < wanted.present.size
    for agent in range(AGENTS):
        found = moving(rows, f"/world/agents/{ROLES[wanted.roles[agent]]}/{agent}")
        assert [row["step"] for row in found] == list(range(FRAMES))
        assert [row["time"].total_seconds() for row in found] == pytest.approx(np.arange(FRAMES) * DT)
        for frame, row in enumerate(found):
            if not wanted.present[frame, agent]:
                assert row["Boxes3D:centers"] == row["Boxes3D:half_sizes"] == []
                continue
            ((x, y, _),), ((along, across, _),) = row["Boxes3D:centers"], row["Boxes3D:half_sizes"]
            assert (x, y) == (wanted.x[frame, agent], wanted.y[frame, agent])
            assert (2 * along, 2 * across) == pytest.approx((wanted.length[agent], wanted.width[agent]))
            ((i, j, k, w),) = row["Boxes3D:quaternions"]
            # A unit vector along x, turned by the quaternion, points where the agent is heading.
            turned = (1 - 2 * (j * j + k * k), 2 * (i * j + k * w))
            heading = wanted.heading[frame, agent]
            assert turned == pytest.approx((np.cos(heading), np.sin(heading)), abs=1e-5)


def test_agents_have_the_names_and_colors_of_their_roles(rows: Rows) -> None:
    fixed = {
        place: next(row for row in rows[f"/world/agents/{place}"] if row.get("step") is None)
        for place in ("ego/0", "coplayer/1", "ego/2", "idm/3")
    }
    assert [row["Boxes3D:labels"] for row in fixed.values()] == [["ego 0"], ["coplayer 1"], ["ego 2"], ["idm 3"]]
    colors = [row["Boxes3D:colors"][0] for row in fixed.values()]
    assert colors[0] == colors[2]
    assert len(set(colors)) == 3


def test_the_map_is_that_of_the_scenario(rows: Rows) -> None:
    road_map = example_scenario("town-1").map
    for name, features in (("lanes", range(4)), ("edges", (5, 6))):
        (found,) = rows[f"/world/map/{name}"]
        strips = [np.array(strip)[:, :2] for strip in found["LineStrips3D:strips"]]
        assert len(strips) == len(features)
        for strip, feature in zip(strips, features, strict=True):
            np.testing.assert_array_equal(strip, road_map.polyline(feature)[:, :2])
    ((crosswalk,),) = (row["LineStrips3D:strips"] for row in rows["/world/map/crosswalks"])
    assert len(crosswalk) == 5
    assert crosswalk[0] == crosswalk[-1]


def test_recorded_lights_change_when_they_did(rows: Rows) -> None:
    """The light of the example turns green at step 45; a trial starts at step 10 and the recording has 91 steps."""
    found = {row["step"]: row["Points3D:colors"] for row in moving(rows, "/world/lights")}
    assert sorted(found) == [0, 35, SECOND_TRIAL, SECOND_TRIAL + 35]
    assert found[0] == found[SECOND_TRIAL] == [0xF0433AFF]
    assert found[35] == found[SECOND_TRIAL + 35] == [0x2FCE71FF]


def test_events_and_trials_are_logged_at_their_step(rows: Rows) -> None:
    found = [(row["step"], row["TextLog:text"][0], row["TextLog:level"][0]) for row in moving(rows, "/events")]
    assert sorted(found) == [
        (0, "trial 1 starts", "INFO"),
        (5, "ego 0: collision at fault", "WARN"),
        (20, "ego 0: goal reached", "INFO"),
        (21, "ego 0: goal reached", "INFO"),
        (30, "ego 0: contact, not at fault", "WARN"),
        (58, "ego 2: off road", "WARN"),
        (60, "ego 2: off road", "WARN"),
        (60, "trial 2 starts", "INFO"),
    ]
    trials = [row["Scalars:scalars"][0] for row in moving(rows, "/trial")]
    assert trials == [1] * SECOND_TRIAL + [2] * (FRAMES - SECOND_TRIAL)


def test_egos_have_curves_and_trails(run: Run, rows: Rows) -> None:
    wanted = run.trace("town-1-r0")
    assert {place for place in rows if place.startswith("/speed")} == {"/speed/0", "/speed/2"}
    for ego in (EGO, OTHER_EGO):
        there = np.flatnonzero(wanted.present[:, ego]).tolist()
        speeds = {row["step"]: row["Scalars:scalars"][0] for row in moving(rows, f"/speed/{ego}")}
        assert speeds == {frame: wanted.speed[frame, ego] for frame in there}
        found = {row["step"]: row["Scalars:scalars"][0] for row in moving(rows, f"/acceleration/{ego}")}
        assert list(found) == [f for f in there if f - 1 in there and f != SECOND_TRIAL]
        for frame, value in found.items():
            assert value == pytest.approx((speeds[frame] - speeds[frame - 1]) / DT, abs=1e-4)
        for row in moving(rows, f"/world/trails/{ego}"):
            frame, strips = row["step"], row["LineStrips3D:strips"]
            assert len(strips) == (frame in there)
            for strip in strips:
                first = frame - len(strip) + 1
                assert first >= max(frame - 30, SECOND_TRIAL if frame >= SECOND_TRIAL else 0)
                assert set(range(first, frame + 1)) <= set(there)
                assert [point[0] for point in strip] == wanted.x[first : frame + 1, ego].tolist()


def test_recorded_acceleration_is_taken_where_a_policy_drives(run: Run, tmp_path: Path) -> None:
    from roadworthy.viewer import rerun_export

    found = run.trace("town-0-r0")
    recorded = np.arange(found.x.size, dtype=np.float32).reshape(found.x.shape)
    active = np.zeros_like(found.active)
    active[3:8] = True
    changed = replace(found, extra={"acceleration": recorded}, active=active)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "trace", lambda *_: changed)
        rerun_export.export_rerun(run, "town-0-r0", tmp_path / "a.rrd")
    values = moving(read(tmp_path / "a.rrd"), f"/acceleration/{EGO}")
    assert [(row["step"], row["Scalars:scalars"][0]) for row in values] == [(k, recorded[k, EGO]) for k in range(3, 8)]


def test_a_run_without_scenarios_has_its_motion(tmp_path: Path) -> None:
    from roadworthy.viewer.rerun_export import export_rerun

    ledger = pa.table({"episode_id": ["town-3-r0"], "scenario_id": ["town-3"]})
    with RunWriter.start(tmp_path, "town", "best", {"config": {}, "checkpoint": None}, ledger) as writer:
        writer.append(replace(result("town-3-r0"), trace=made_up_trace("town-3-r0")))
    written = export_rerun(Run(writer.folder), "town-3-r0", tmp_path / "a.rrd")
    assert written.note == "the run has no scenarios, so there is no map"
    found = read(tmp_path / "a.rrd")
    assert "/world/agents/ego/0" in found
    assert not [place for place in found if place.startswith(("/world/map", "/world/lights"))]


@pytest.mark.row("UI-9")
def test_wrong_requests_write_nothing(run: Run, tmp_path: Path) -> None:
    from roadworthy.viewer.rerun_export import export_rerun

    with pytest.raises(UsageError, match=r"has no episode 'town-1-r' \(did you mean 'town-1-r0'\?\)"):
        export_rerun(run, "town-1-r", tmp_path / "a.rrd")
    with pytest.raises(UsageError, match=r"has no episode '\.\./x'; its first one is 'town-0-r0'"):
        export_rerun(run, "../x", tmp_path / "a.rrd")
    with pytest.raises(UsageError, match=r"a\.mcap: the Rerun viewer opens files named \*\.rrd"):
        export_rerun(run, "town-1-r0", tmp_path / "a.mcap")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_an_existing_file_as_it_is(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roadworthy.viewer import rerun_export

    (tmp_path / "a.rrd").write_bytes(b"earlier")

    def fail(*_: Any) -> None:
        raise ValueError("halfway")

    monkeypatch.setattr(rerun_export, "_send_events", fail)
    with pytest.raises(ValueError, match="halfway"):
        rerun_export.export_rerun(run, "town-1-r0", tmp_path / "a.rrd")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a.rrd", b"earlier")]


def test_lights_of_open_worlds_show_what_the_simulator_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    from roadworthy.render.resimulate import Resimulation
    from roadworthy.sim.config import SimConfig

    _, run = two_policies(tmp_path_factory.getbasetemp())
    config = resolve(SimConfig, [Layer("run", run.header["config"]["env"], is_record=True)]).config
    with Pack(run.pack) as pack:
        simulation = Resimulation(pack, config)
        for planned in run.ledger.to_pylist():
            expected = simulation.light_states(planned["scenario"], planned["seed"], 500)
            assert len(np.unique(expected)) == 3
            found = program_states(pack[planned["scenario"]], planned["seed"], 500)
            np.testing.assert_array_equal(found, expected)
