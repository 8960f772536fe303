"""Videos of a run: chosen, named, listed; failures are reported and never raised."""

from __future__ import annotations

import shutil

import av
import numpy as np
import pytest

from roadworthy.record import Run
from roadworthy.render.config import RenderConfig
from roadworthy.render.counts import COUNTED_BITS, count_events
from roadworthy.render.filmstrip import filmstrip, key_frames
from roadworthy.render.run_videos import VideoRecorder, record_videos
from roadworthy.report import worst_first
from roadworthy.sim.state import EVENT_AT_FAULT, EVENT_COLLISION
from tests.render.drives import VEHICLES

SMALL = (320, 180)


@pytest.fixture
def own_run(run, tmp_path):
    """A copy of the run that a test may spoil."""
    return Run(shutil.copytree(run.folder, tmp_path / "towns" / run.folder.name))


@pytest.mark.row("VID-3")
def test_videos_have_the_names_that_were_promised_and_are_listed(own_run):
    config = RenderConfig(max_steps=4, episodes=1, choose="first", views=("bev", "ego", "obs"), size=SMALL)
    videos = record_videos(own_run, config, VEHICLES)
    assert [video.error for video in videos] == [None] * 3
    assert [video.path.relative_to(own_run.folder).as_posix() for video in videos] == [
        f"videos/3-protected_left-0000-r0_epoch4_step2000_{view}.mp4" for view in ("bev", "ego", "obs")
    ]
    listed = {artifact.name: artifact.path for artifact in own_run.artifacts}
    assert listed == {f"video_{video.view}": f"videos/{video.path.name}" for video in videos}
    with av.open(str(videos[0].path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 5


@pytest.mark.row("VID-3")
@pytest.mark.parametrize("number", ["episodes", "scenarios"])
def test_none_are_made_where_none_are_wanted(own_run, number):
    config = RenderConfig(max_steps=4, choose="worst", size=SMALL, **{number: 0})
    assert record_videos(own_run, config, VEHICLES) == []
    assert own_run.artifacts == []


def test_files_of_other_folders_are_not_listed(own_run, tmp_path):
    config = RenderConfig(max_steps=2, episodes=1, size=SMALL)
    (video,) = record_videos(own_run, config, VEHICLES, epoch=9, step=77, folder=tmp_path / "films")
    assert video.path == tmp_path / "films" / "3-protected_left-0000-r0_epoch9_step77_ego.mp4"
    assert own_run.artifacts == []


@pytest.mark.row("REC-4")
def test_a_trace_that_is_damaged_or_missing_costs_its_own_video_alone(own_run):
    ids = own_run.ledger["episode_id"].to_pylist()[:3]
    traces = sorted((own_run.folder / "traces").iterdir())
    (own_run.folder / "traces" / f"{ids[0]}.trace").write_bytes(b"no trace")
    (own_run.folder / "traces" / f"{ids[1]}.trace").unlink()
    assert len(traces) == 8
    config = RenderConfig(max_steps=2, choose=(*ids, "nobody-r0"), size=SMALL)
    videos = record_videos(own_run, config, VEHICLES)
    assert [video.path is None for video in videos] == [True, True, False, True]
    assert "has no trace" in videos[1].error
    assert "nobody-r0" in videos[3].error
    errors = {artifact.episode_id: artifact.error for artifact in own_run.artifacts}
    assert errors[ids[0]]
    assert errors[ids[2]] is None


@pytest.mark.row("REC-4")
def test_a_run_without_its_pack_reports_it(own_run):
    own_run.pack.unlink()
    (video,) = record_videos(own_run, RenderConfig(max_steps=2, episodes=1, size=SMALL), VEHICLES)
    assert video.episode_id is None
    assert "scenarios.pack" in video.error
    assert own_run.artifacts[0].error == video.error


@pytest.mark.row("VID-3")
def test_the_worst_of_a_run_come_in_the_order_of_its_report(run, tmp_path):
    config = RenderConfig(max_steps=1, episodes=3, choose="worst", size=SMALL)
    videos = record_videos(run, config, VEHICLES, folder=tmp_path)
    assert [video.episode_id for video in videos] == worst_first(run)[:3]
    scores = {result.episode.episode_id: result.episode.outcomes["score"] for result in run.results()}
    assert scores[videos[0].episode_id] == min(scores.values())


def test_the_followed_agent_is_the_ego_that_did_worst(run):
    recorder = VideoRecorder(run, VEHICLES)
    for id, result in recorder.results.items():
        scene = recorder.scene(id)
        scores = {row.agent: row.figures["score"] for row in result.agents}
        assert scores[scene.followed] == min(scores.values())
    assert recorder.scene(id, agent=1).followed == 1


def test_the_tally_agrees_with_the_rows_of_the_run(run):
    for result in run.results():
        trace = run.trace(result.episode.episode_id)
        for row in result.agents:
            counted = count_events(trace, np.array([row.agent]))
            told = [kind.name for kind in counted.kinds]
            assert told == ["at fault", "contact", "off road", "red light", "stop sign"]
            at_fault, contacts, *others = counted.infractions[-1].tolist()
            names = ("departures", "red_lights", "stop_signs")
            assert others == [row.figures[name] for name in names]
            events = trace.events[:, row.agent]
            is_collision, is_fault = (events & EVENT_COLLISION) != 0, (events & EVENT_AT_FAULT) != 0
            assert (at_fault, contacts) == (is_fault.sum(), (is_collision & ~is_fault).sum())
            assert is_collision.sum() == row.figures["collisions"]
            assert (at_fault > 0) == (row.figures["at_fault_collisions"] > 0)
            assert (
                counted.goals[-1] == counted.goal_count * row.figures["completion_rate"]
            )  # recorded ones have one goal
            assert counted.distance_m[-1] == pytest.approx(row.figures["distance_m"], rel=1e-4, abs=1e-2)


def test_a_filmstrip_is_a_small_png_that_shows_the_first_infraction(run):
    recorder = VideoRecorder(run, VEHICLES)
    for id in recorder.results:
        scene = recorder.scene(id)
        strip = filmstrip(scene)
        assert strip.startswith(b"\x89PNG")
        assert len(strip) < 80_000
        bad = np.flatnonzero(scene.trace.events[:, scene.followed] & COUNTED_BITS)
        frames = key_frames(scene, 5)
        assert {0, scene.trace.frame_count - 1} <= set(frames)
        assert not len(bad) or bad[0] in frames
