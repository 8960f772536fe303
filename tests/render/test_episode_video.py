"""Videos show every frame of every trial in every view, and a failing view does not affect others."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest

from roadworthy.render import episode_video
from roadworthy.render.canvas import Canvas
from roadworthy.render.config import VIEWS
from roadworthy.render.episode_video import ObservationFrames, frame_count, make_view, write_videos
from roadworthy.render.resimulate import Resimulation
from roadworthy.render.style import LIGHT
from tests.render.drives import OPEN, TRIALS, drive

SIZE = (480, 270)


def decoded(path):
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        times = [Fraction(frame.pts) * frame.time_base for frame in frames]
        return [frame.to_ndarray(format="rgb24") for frame in frames], times


def sight_of(towns, scene, config=TRIALS):
    result, _ = drive(towns, config)
    resimulation = Resimulation(towns, config)
    return ObservationFrames(resimulation.layout, resimulation.observations(scene.trace, 0, result.episode.seed))


@pytest.mark.row("VID-1")
@pytest.mark.row("VID-2")
def test_every_view_shows_every_frame_of_the_trace_at_the_worlds_pace(towns, scene, tmp_path):
    paths = {view: tmp_path / f"{view}.mp4" for view in VIEWS}
    videos = write_videos(scene, paths, 1000, SIZE, seen_frames=sight_of(towns, scene))
    assert [video.error for video in videos] == [None] * 3
    for view, path in paths.items():
        pictures, times = decoded(path)
        assert len(pictures) == scene.trace.frame_count == 45  # a reset and fourteen steps, three times
        assert times == [Fraction(number, 10) for number in range(45)]
        assert pictures[0].shape == (270, 480, 3), view


@pytest.mark.row("VID-2")
def test_frame_i_is_frame_i_of_the_trace(scene, tmp_path):
    write_videos(scene, {"ego": tmp_path / "ego.mp4"}, 1000, SIZE)
    pictures, _ = decoded(tmp_path / "ego.mp4")
    view, canvas = make_view("ego", scene, SIZE, 45, None), Canvas(SIZE)
    for frame in (0, 1, 14, 15, 44):
        camera = view.draw(canvas, frame, None)
        drawn = canvas.picture(view.ground, camera).astype(int)
        others = [np.abs(pictures[k] - drawn).mean() for k in (frame - 2, frame, min(frame + 2, 44)) if k >= 0]
        assert np.abs(pictures[frame] - drawn).mean() < 3.0
        assert np.abs(pictures[frame] - drawn).mean() == min(others)


@pytest.mark.row("TRIAL-7")
@pytest.mark.parametrize("name", ["bev", "ego"])
def test_the_agents_of_every_trial_are_drawn(scene, name):
    trace = scene.trace
    unlit = replace(scene, lights=scene.lights[:0], scenario=replace(scene.scenario, **_no_lights(scene.scenario)))
    view, canvas = make_view(name, unlit, (960, 540), trace.frame_count, None), Canvas((960, 540))
    for trial in range(trace.trial_count):
        for frame in (trace.trial_starts[trial], trace.trial_starts[trial + 1] - 1):
            camera = view.draw(canvas, int(frame), None)
            image = canvas.picture(view.ground, camera)
            column, row = camera.to_pixels((trace.x[frame, 0], trace.y[frame, 0])).astype(int)
            assert tuple(image[row, column].tolist()) == LIGHT.sdc, (trial, frame)


@pytest.mark.row("TRIAL-7")
def test_trials_are_distinguished(scene):
    trace = scene.trace
    view, canvas = make_view("bev", scene, (960, 540), trace.frame_count, None), Canvas((960, 540))
    cards = []
    for trial in range(trace.trial_count):
        camera = view.draw(canvas, int(trace.trial_starts[trial]), None)
        cards.append(canvas.picture(view.ground, camera)[:150, :300])
    assert (cards[0] != cards[1]).any()
    assert (cards[1] != cards[2]).any()


def _no_lights(scenario):
    return {name: getattr(scenario, name)[:0] for name in ("light_lanes", "light_stops", "light_states")}


def test_length_and_speed_up_are_as_asked_for(scene, tmp_path):
    for steps, frames in ((1, 2), (13, 14), (14, 16), (15, 17), (42, 45), (10_000, 45)):
        # Fourteen steps end a trial, and the next one's reset is shown with the fourteenth.
        assert frame_count(scene.trace, steps) == frames
    (video,) = write_videos(scene, {"bev": tmp_path / "short.mp4"}, 13, SIZE, speed_up=4.0)
    _, times = decoded(tmp_path / "short.mp4")
    assert video.frames == len(times) == 14
    assert times[1] == Fraction(1, 40)


@pytest.mark.row("REC-4")
def test_a_view_that_cannot_be_drawn_is_an_error_of_its_own(towns, scene, tmp_path):
    def broken():
        yield from list(sight_of(towns, scene).frames)[:7]
        raise ValueError("the eighth frame is broken")

    sight = ObservationFrames(sight_of(towns, scene).layout, broken())
    videos = {
        v.view: v
        for v in write_videos(scene, {view: tmp_path / f"{view}.mp4" for view in VIEWS}, 99, SIZE, seen_frames=sight)
    }
    assert videos["obs"].path is None
    assert videos["obs"].error == "ValueError: the eighth frame is broken"
    assert [videos[view].frames for view in ("bev", "ego")] == [45, 45]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bev.mp4", "ego.mp4"]


@pytest.mark.row("REC-4")
def test_a_file_that_cannot_be_written_is_an_error_of_its_own(scene, tmp_path):
    (tmp_path / "file").write_text("in the way")
    videos = write_videos(scene, {"bev": tmp_path / "file" / "bev.mp4", "ego": tmp_path / "ego.mp4"}, 5, SIZE)
    assert "file" in videos[0].error
    assert videos[1].path == tmp_path / "ego.mp4"


def test_an_interrupt_leaves_no_partial_video(scene, tmp_path, monkeypatch):
    def interrupted(self, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr(episode_video._ViewWriter, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_videos(scene, {"bev": tmp_path / "bev.mp4"}, 5, SIZE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.row("VID-1")
def test_memory_does_not_grow_with_length(scene, tmp_path):
    def peak(steps):
        tracemalloc.start()
        write_videos(scene, {"ego": tmp_path / "ego.mp4"}, steps, SIZE)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    write_videos(scene, {"ego": tmp_path / "ego.mp4"}, 42, SIZE)  # letters are kept between videos
    assert peak(42) < peak(4) + SIZE[0] * SIZE[1]  # less than the luma of one frame more, for forty frames more


def test_a_camera_waits_where_an_agent_left(scene):
    trace = scene.trace
    present = trace.present.copy()
    present[:3, 0] = present[8:15, 0] = present[15:30, 0] = False
    view, canvas = make_view("ego", replace(scene, trace=replace(trace, present=present)), SIZE, 45, None), Canvas(SIZE)
    for frame, at in ((0, 3), (5, 5), (7, 7), (14, 7), (30, 30)):
        center = view.draw(canvas, frame, None).center
        np.testing.assert_allclose(center, (trace.x[at, 0], trace.y[at, 0]), atol=0.5)
    view.draw(canvas, 20, None)  # a trial in which it is never there


def test_the_same_episode_gives_the_same_bytes(scene, tmp_path):
    for name in ("a.mp4", "b.mp4"):
        write_videos(scene, {"ego": tmp_path / name}, 20, SIZE)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


@pytest.mark.row("VID-1")
def test_obs_draws_partners_where_the_observation_has_them(towns):
    config = replace(OPEN, disturb=type(OPEN.disturb)())
    result, _ = drive(towns, config)
    resimulation = Resimulation(towns, config)
    trace = result.trace
    seen = next(resimulation.observations(trace, 0, result.episode.seed))
    near = [
        (agent, ahead, left)
        for agent in range(5)
        for ahead, left in _partners(trace, agent)
        if -20 < ahead < 40 and abs(left) < 40 and np.hypot(ahead, left) > 6
    ]
    assert near  # else the town is empty, and nothing is tested
    agent, ahead, left = near[0]
    base = episode_video.EpisodeScene(trace, towns[0], np.zeros((len(towns[0].light_lanes), 26), np.uint8), agent, 2.0)
    view, canvas = (
        make_view("obs", base, (960, 540), 5, ObservationFrames(resimulation.layout, iter(()))),
        Canvas((960, 540)),
    )
    camera = view.draw(canvas, 0, seen)
    column, row = camera.to_pixels((ahead, left)).astype(int)
    image = canvas.picture(view.ground, camera)
    assert tuple(image[row, column].tolist()) == episode_video.ObsView.__init__.__defaults__[0].vehicle


def _partners(trace, agent):
    """Where others are in an agent's frame: meters ahead and to the left."""
    cos, sin = np.cos(trace.heading[0, agent]), np.sin(trace.heading[0, agent])
    dx, dy = trace.x[0] - trace.x[0, agent], trace.y[0] - trace.y[0, agent]
    places = np.stack([dx * cos + dy * sin, dy * cos - dx * sin], axis=1)
    return places[trace.present[0] & (np.arange(trace.agent_count) != agent)]
