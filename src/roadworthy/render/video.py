"""Moving pictures: H.264 in MP4, and GIF. Frames are streamed, so memory does not grow with length."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace
from PIL import Image as Pillow

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.render.raster import Image
from roadworthy.render.yuv import to_yuv420

# Drawn pictures are easy to predict: looking ahead and frames predicted from the future take three times as long as all
# the rest, and save no more than half of files that are small anyway.
X264_SETTINGS = "rc-lookahead=0:mbtree=0:bframes=0"
PALETTE_FRAMES = 12  # a GIF's colours are chosen from this many frames


def write_mp4(
    path: str | os.PathLike[str], frames: Iterable[Image], fps: float, quality: int = 20, threads: int = 1
) -> int:
    """Write frames (h, w, 3) as an H.264 video that plays everywhere; returns how many there were.

    Quality is x264's constant rate factor: 18 can't be told from the original, 28 is small. An odd width or height
    loses its last column or row, since the format halves its colour planes. The file appears whole or not at all.
    """
    rate = _rate(fps)
    with (
        _appearing_whole(path, ".mp4") as partial,
        _errors_named(path),
        av.open(str(partial), "w", options={"movflags": "+faststart"}) as container,
    ):
        stream = container.add_stream("libx264", rate=rate)
        stream.pix_fmt = "yuv420p"
        stream.options = {"preset": "superfast", "crf": str(quality), "x264-params": X264_SETTINGS}
        context = stream.codec_context
        context.thread_count = threads
        context.colorspace, context.color_range = Colorspace.ITU709, ColorRange.MPEG
        context.color_primaries = context.color_trc = 1  # BT.709
        count = 0
        for image in frames:
            height, width = (side - side % 2 for side in image.shape[:2])
            if count == 0:
                stream.width, stream.height = width, height
            elif (stream.width, stream.height) != (width, height):
                raise UsageError(
                    f"frame {count} of {path} is {width} x {height} pixels, the first one was "
                    f"{stream.width} x {stream.height}; all frames of a video must have one size"
                )
            frame = _to_frame(image, width, height)
            frame.pts, frame.time_base = count, 1 / rate
            container.mux(stream.encode(frame))
            count += 1
        _require_frames(count, path)
        container.mux(stream.encode(None))
    return count


def _to_frame(image: Image, width: int, height: int) -> av.VideoFrame:
    frame = av.VideoFrame(width, height, "yuv420p")
    frame.colorspace, frame.color_range = Colorspace.ITU709, ColorRange.MPEG
    planes = [
        np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size) for plane in frame.planes
    ]
    to_yuv420(image, *planes)
    return frame


def write_gif(path: str | os.PathLike[str], frames: Iterable[Image], fps: float) -> int:
    """Write frames (h, w, 3) as a GIF that repeats for ever; returns how many there were.

    One palette serves all frames, so that what stands still stays the same and costs nothing. It has to be chosen from
    the whole film, so frames wait in a temporary file, not in memory. GIF counts time in hundredths of a second.
    """
    delay_ms = 10 * max(2, round(100 / float(_rate(fps))))
    with tempfile.TemporaryFile() as spool, _appearing_whole(path, ".gif") as partial, _errors_named(path):
        count, shape = 0, (0, 0, 0)
        for image in frames:
            if count and image.shape != shape:
                raise UsageError(f"frame {count} of {path} has shape {image.shape}, the first one had {shape}")
            shape = image.shape
            spool.write(np.ascontiguousarray(image, np.uint8).data)
            count += 1
        _require_frames(count, path)

        def stored(number: int) -> Image:
            spool.seek(number * int(np.prod(shape)))
            return np.frombuffer(spool.read(int(np.prod(shape))), np.uint8).reshape(shape)

        sampled = np.unique(np.linspace(0, count - 1, min(count, PALETTE_FRAMES)).astype(int))
        palette = _palette([stored(number) for number in sampled.tolist()])
        pictures = (
            Pillow.fromarray(stored(number)).quantize(palette=palette, dither=Pillow.Dither.NONE)
            for number in range(count)
        )
        first = next(pictures)
        first.save(
            partial, format="GIF", save_all=True, append_images=pictures, duration=delay_ms, loop=0, optimize=False
        )
    return count


def _palette(samples: list[Image]) -> Pillow.Image:
    """256 colours: those of large areas, and rare ones (a lamp, a pedestrian), which mere counting would drop."""
    pixels = np.concatenate([sample.reshape(-1, 3) for sample in samples])
    codes = (pixels >> 2).astype(np.int64) @ np.array([1 << 12, 1 << 6, 1])
    found, counts = np.unique(codes, return_counts=True)
    colors = np.stack([found >> 12 & 63, found >> 6 & 63, found & 63], axis=1) * 4 + 2
    # Each colour stands in the mosaic as often as the fourth root of its count: large areas lead, small ones survive.
    mosaic = np.repeat(colors, np.ceil(counts**0.25).astype(int), axis=0).astype(np.uint8)
    return Pillow.fromarray(mosaic[None]).quantize(256, method=Pillow.Quantize.MEDIANCUT)


def _rate(fps: float) -> Fraction:
    if not (np.isfinite(fps) and 0 < fps <= 1000):
        raise UsageError(f"{fps} frames a second were asked for; give a number above 0 and up to 1000")
    return Fraction(fps).limit_denominator(1000)


def _require_frames(count: int, path: str | os.PathLike[str]) -> None:
    if count == 0:
        raise UsageError(f"no frames were given for {path}; a video needs at least one")


@contextmanager
def _appearing_whole(path: str | os.PathLike[str], suffix: str) -> Iterator[Path]:
    """A path beside the wanted one to write to; it takes its place if all goes well and vanishes if not."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial{suffix}")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _errors_named(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except av.codec.codec.UnknownCodecError as error:
        raise RoadworthyError(
            f"can't write {path}: this PyAV has no H.264 encoder (libx264); install its wheel (pip install av)"
        ) from error
    except (OSError, av.FFmpegError) as error:
        raise RoadworthyError(f"can't write {path}: {error.strerror or error}") from error
