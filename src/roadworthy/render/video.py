"""Write videos as H.264 in MP4, and as GIF. Frames are streamed to disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace
from PIL import Image as Pillow

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.render.raster import Image
from roadworthy.render.yuv import Planes, to_yuv420

# Drawn pictures are easy to predict: lookahead, B-frames and subpixel motion take three times as long as everything
# else, and save at most half of files that are small anyway.
X264_SETTINGS = "rc-lookahead=0:mbtree=0:bframes=0:scenecut=0:weightp=0:subme=0"
PALETTE_FRAMES = 12  # a GIF's colors are chosen from this many frames


class Mp4Writer:
    """Writes an H.264 video frame by frame: `with Mp4Writer(path, fps) as video: video.add(frame)`.

    Frames (h, w, 3) are streamed to disk, so many writers can be open at once; only the file's index stays in memory,
    0.2 kB per frame. The file appears when the block ends; after an error there is no file.

    quality: x264's constant rate factor: 18 is visually lossless, 28 is small. An odd width or height loses its last
    column or row, because the format halves the color planes.
    """

    def __init__(self, path: str | os.PathLike[str], fps: float, quality: int = 20, threads: int = 1) -> None:
        self.path = Path(path)
        self.count = 0  # the number of frames so far
        self._rate = _rate(fps)
        self._partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial.mp4")
        self._is_open = True
        try:
            with _errors_named(self.path):
                self._container = av.open(str(self._partial), "w", options={"movflags": "+faststart"})
                self._stream = self._container.add_stream("libx264", rate=self._rate)
        except BaseException:
            self.discard()
            raise
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"preset": "superfast", "crf": str(quality), "x264-params": X264_SETTINGS}
        context = self._stream.codec_context
        context.thread_count = threads
        context.colorspace, context.color_range = Colorspace.ITU709, ColorRange.MPEG
        context.color_primaries = context.color_trc = 1  # BT.709

    def add(self, picture: Image | Planes) -> None:
        """Append a frame: (h, w, 3), or the planes of a canvas."""
        shape = picture.luma.shape if isinstance(picture, Planes) else picture.shape
        height, width = (side - side % 2 for side in shape[:2])
        if self.count == 0:
            self._stream.width, self._stream.height = width, height
            # Reuse one frame: the encoder copies it, and a new one each time would cause page faults.
            self._frame = av.VideoFrame(width, height, "yuv420p")
            self._frame.colorspace, self._frame.color_range = Colorspace.ITU709, ColorRange.MPEG
        elif (self._stream.width, self._stream.height) != (width, height):
            raise UsageError(
                f"frame {self.count} of {self.path} is {width} x {height} pixels, the first one was "
                f"{self._stream.width} x {self._stream.height}; all frames of a video must have the same size"
            )
        with _errors_named(self.path):
            _fill(self._frame, picture)
            self._frame.pts, self._frame.time_base = self.count, 1 / self._rate
            self._container.mux(self._stream.encode(self._frame))
        self.count += 1

    def close(self) -> None:
        """Write the rest and move the file to its place."""
        if not self._is_open:
            return
        try:
            _require_frames(self.count, self.path)
            with _errors_named(self.path):
                self._container.mux(self._stream.encode(None))
                self._container.close()
                os.replace(self._partial, self.path)
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the partial file, if there is one."""
        self._is_open = False
        container = getattr(self, "_container", None)
        if container is not None:
            with suppress(OSError, av.FFmpegError, ValueError):  # on a full disk, closing fails too
                container.close()
        self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Mp4Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def write_mp4(
    path: str | os.PathLike[str], frames: Iterable[Image], fps: float, quality: int = 20, threads: int = 1
) -> int:
    """Write frames (h, w, 3) as an H.264 video and return their number; see Mp4Writer."""
    with Mp4Writer(path, fps, quality, threads) as video:
        for image in frames:
            video.add(image)
    return video.count


def _fill(frame: av.VideoFrame, picture: Image | Planes) -> None:
    planes = [
        np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size) for plane in frame.planes
    ]
    if isinstance(picture, Planes):
        for plane, given in zip(planes, (picture.luma, picture.blue, picture.red), strict=True):
            plane[: given.shape[0], : given.shape[1]] = given
    else:
        to_yuv420(np.ascontiguousarray(picture), *planes)


def write_gif(path: str | os.PathLike[str], frames: Iterable[Image], fps: float) -> int:
    """Write frames (h, w, 3) as a GIF that repeats forever and return their number.

    All frames share a palette, so that still parts stay the same and cost nothing. The palette depends on all frames,
    so they are kept in a temporary file. GIF counts time in hundredths of a second.
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
    """Return 256 colors: those of large areas, and rare ones (a lamp, a pedestrian), which counting would drop."""
    pixels = np.concatenate([sample.reshape(-1, 3) for sample in samples])
    codes = (pixels >> 2).astype(np.int64) @ np.array([1 << 12, 1 << 6, 1])
    found, counts = np.unique(codes, return_counts=True)
    colors = np.stack([found >> 12 & 63, found >> 6 & 63, found & 63], axis=1) * 4 + 2
    # Weight each color by the fourth root of its count: large areas dominate, small ones survive.
    mosaic = np.repeat(colors, np.ceil(counts**0.25).astype(int), axis=0).astype(np.uint8)
    return Pillow.fromarray(mosaic[None]).quantize(256, method=Pillow.Quantize.MEDIANCUT)


def _rate(fps: float) -> Fraction:
    if not (np.isfinite(fps) and 0 < fps <= 1000):
        raise UsageError(f"fps is {fps}; expected a number above 0 and up to 1000")
    return Fraction(fps).limit_denominator(1000)


def _require_frames(count: int, path: str | os.PathLike[str]) -> None:
    if count == 0:
        raise UsageError(f"no frames were given for {path}; a video needs at least one")


@contextmanager
def _appearing_whole(path: str | os.PathLike[str], suffix: str) -> Iterator[Path]:
    """Yield a temporary path that is renamed on success and removed on failure."""
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
