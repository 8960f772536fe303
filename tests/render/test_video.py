"""Videos have the right number, times and colors of frames."""

from __future__ import annotations

from fractions import Fraction

import av
import numpy as np
import pytest
from PIL import Image as Pillow

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.render import Show, animate, write_gif, write_mp4
from roadworthy.render.yuv import to_yuv420
from tests.render.town_square import build_scenario

PLAIN = Show(caption=False, legend=False, scale_bar=False)
COLORS = [(217, 72, 15), (31, 111, 181), (180, 186, 195), (255, 255, 255), (0, 0, 0), (47, 206, 113)]


def flat_frames(width=64, height=48):
    for color in COLORS:
        yield np.full((height, width, 3), color, np.uint8)


@pytest.mark.row("VID-1")
def test_an_mp4_is_h264_with_one_frame_a_step_at_the_scenarios_pace(tmp_path):
    scenario = build_scenario()
    frames = animate(scenario, "bev", (320, 240), show=PLAIN)
    assert write_mp4(tmp_path / "town.mp4", frames, fps=1 / scenario.dt) == scenario.steps
    with av.open(str(tmp_path / "town.mp4")) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert (stream.width, stream.height) == (320, 240)
        decoded = list(container.decode(stream))
    assert len(decoded) == scenario.steps
    assert [Fraction(frame.pts) * frame.time_base for frame in decoded] == [Fraction(i, 10) for i in range(91)]


def test_colors_survive_the_way_through_an_mp4(tmp_path):
    write_mp4(tmp_path / "flat.mp4", flat_frames(), fps=10)
    with av.open(str(tmp_path / "flat.mp4")) as container:
        assert container.streams.video[0].codec_context.colorspace == 1  # BT.709 is stated, so players need not guess
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    for picture, color in zip(pictures, COLORS, strict=True):
        np.testing.assert_allclose(picture[24, 32], color, atol=4)


def test_yuv_planes_follow_the_formulas_of_bt709():
    image = np.random.default_rng(5).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    luma, blue, red = np.full((6, 16), 77, np.uint8), np.full((3, 8), 77, np.uint8), np.full((3, 8), 77, np.uint8)
    to_yuv420(image, luma, blue, red)
    rgb = image / 255.0
    y = rgb @ np.array([0.2126, 0.7152, 0.0722])
    np.testing.assert_allclose(luma[:, :8], 16 + 219 * y, atol=0.51)
    mean = rgb.reshape(3, 2, 4, 2, 3).mean(axis=(1, 3))
    mean_y = mean @ np.array([0.2126, 0.7152, 0.0722])
    np.testing.assert_allclose(blue[:, :4], 128 + 224 * (mean[..., 2] - mean_y) / 1.8556, atol=0.51)
    np.testing.assert_allclose(red[:, :4], 128 + 224 * (mean[..., 0] - mean_y) / 1.5748, atol=0.51)
    assert (luma[:, 8:] == 77).all()  # padding is left alone


def test_an_odd_size_loses_its_last_row_and_column(tmp_path):
    assert write_mp4(tmp_path / "odd.mp4", flat_frames(65, 49), fps=10) == len(COLORS)
    with av.open(str(tmp_path / "odd.mp4")) as container:
        assert {(frame.width, frame.height) for frame in container.decode(video=0)} == {(64, 48)}


@pytest.mark.row("VID-1")
@pytest.mark.parametrize("writer", [write_mp4, write_gif])
def test_frames_are_taken_one_at_a_time(tmp_path, writer):
    alive: list[int] = []

    class Counted(np.ndarray):
        def __del__(self):
            alive.pop()

    most = 0

    def frames():
        nonlocal most
        for _ in range(20):
            frame = np.zeros((48, 64, 3), np.uint8).view(Counted)
            alive.append(1)
            most = max(most, len(alive))
            yield frame

    writer(tmp_path / "film", frames(), 10)
    assert most <= 6  # some for views of one frame, none for frames of the past


@pytest.mark.parametrize("writer", [write_mp4, write_gif])
def test_an_aborted_video_leaves_no_file(tmp_path, writer):
    def frames():
        yield np.zeros((48, 64, 3), np.uint8)
        raise KeyError("the renderer failed")

    with pytest.raises(KeyError):
        writer(tmp_path / "film", frames(), 10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", [write_mp4, write_gif])
def test_frames_of_two_sizes_are_refused(tmp_path, writer):
    frames = [np.zeros((48, 64, 3), np.uint8), np.zeros((50, 64, 3), np.uint8)]
    with pytest.raises(UsageError, match="frame 1 of"):
        writer(tmp_path / "film", frames, 10)


@pytest.mark.parametrize("writer", [write_mp4, write_gif])
def test_no_frames_and_no_rate_are_refused(tmp_path, writer):
    with pytest.raises(UsageError, match="no frames"):
        writer(tmp_path / "film", [], 10)
    for fps in (0.0, -3.0, float("nan")):
        with pytest.raises(UsageError, match="fps is"):
            writer(tmp_path / "film", flat_frames(), fps)


@pytest.mark.parametrize("writer", [write_mp4, write_gif])
def test_a_folder_that_does_not_exist_is_named(tmp_path, writer):
    with pytest.raises(RoadworthyError, match="nowhere"):
        writer(tmp_path / "nowhere" / "film", flat_frames(), 10)


@pytest.mark.parametrize("writer", [write_mp4, write_gif])
def test_the_same_frames_give_the_same_bytes(tmp_path, writer):
    for name in ("a", "b"):
        writer(tmp_path / name, flat_frames(), 10)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_gif_has_every_frame_its_pace_and_its_colors(tmp_path):
    assert write_gif(tmp_path / "flat.gif", flat_frames(), fps=10) == len(COLORS)
    with Pillow.open(tmp_path / "flat.gif") as film:
        assert film.n_frames == len(COLORS)
        assert film.info["loop"] == 0
        for number, color in enumerate(COLORS):
            film.seek(number)
            assert film.info["duration"] == 100
            np.testing.assert_allclose(np.asarray(film.convert("RGB"))[10, 10], color, atol=3)


def test_a_small_lamp_keeps_its_color_in_a_gif(tmp_path):
    shades = np.random.default_rng(1).integers(90, 200, (120, 160, 1), dtype=np.uint8).repeat(3, axis=2)
    shades[60:63, 80:83] = (240, 67, 58)
    write_gif(tmp_path / "lamp.gif", [shades, shades[::-1].copy()], fps=10)
    with Pillow.open(tmp_path / "lamp.gif") as film:
        np.testing.assert_allclose(np.asarray(film.convert("RGB"))[61, 81], (240, 67, 58), atol=6)
