"""Filmstrips for reports: moments of an episode side by side, as the bytes of a PNG."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image as Pillow

from roadworthy.errors import UsageError
from roadworthy.render.camera import Size
from roadworthy.render.canvas import Canvas
from roadworthy.render.counts import COUNTED_BITS
from roadworthy.render.lettering import text_size, write
from roadworthy.render.raster import Image, Painter
from roadworthy.render.shapes import Sketch
from roadworthy.render.strokes import rounded_boxes
from roadworthy.render.style import LIGHT
from roadworthy.render.views import EpisodeScene, MapView

WIDTH_M = 56.0
GAP_PX = 4
LETTER_PX = 12
COLORS = 96


def filmstrip(scene: EpisodeScene, count: int = 5, size: Size = (208, 132)) -> bytes:
    """Return a PNG with `count` moments around the followed agent: first, last, its first infraction, and others."""
    if count < 1 or min(size) < 32:
        raise UsageError(f"a strip needs at least 1 picture of 32 x 32; given {count} of {size[0]} x {size[1]}")
    size = (size[0] - size[0] % 2, size[1] - size[1] % 2)
    frames, trace = key_frames(scene, count), scene.trace
    view = MapView(scene, size, LIGHT, trace.frame_count, is_following=True, width_m=WIDTH_M, is_bare=True)
    canvas = Canvas(size)
    strip = np.full((size[1], len(frames) * (size[0] + GAP_PX) - GAP_PX, 3), 255, np.uint8)
    for number, frame in enumerate(frames):
        camera = view.draw(canvas, frame, None)
        picture = canvas.picture(view.ground, camera)
        trial = int(np.searchsorted(trace.trial_starts, frame, side="right")) - 1
        when = f"{(frame - int(trace.trial_starts[trial])) * trace.dt:.1f} s"
        _write_time(picture, f"trial {trial + 1}, {when}" if trace.trial_count > 1 else when)
        strip[:, number * (size[0] + GAP_PX) :][:, : size[0]] = picture
    out = io.BytesIO()
    Pillow.fromarray(strip).quantize(COLORS, dither=Pillow.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def key_frames(scene: EpisodeScene, count: int) -> list[int]:
    """Return evenly spaced frames; the one nearest to the first infraction is replaced by it."""
    trace = scene.trace
    frames = np.unique(np.linspace(0, trace.frame_count - 1, count).round().astype(int))
    bad = np.flatnonzero((trace.events[:, scene.followed] & COUNTED_BITS) != 0)
    if len(bad) and len(frames) > 2:
        frames[1 + int(np.argmin(np.abs(frames[1:-1] - bad[0])))] = bad[0]
    return [int(frame) for frame in np.unique(frames)]


def _write_time(picture: Image, text: str) -> None:
    width, height = text_size(text, LETTER_PX)
    box, sketch = np.array([width + 8.0, height + 2.0]), Sketch()
    sketch.polygons(rounded_boxes(box[0], box[1], 3.0) + 0.5 * box + 4.0, LIGHT.panel, 0.88)
    Painter(picture.shape[1], picture.shape[0]).paint(picture, sketch.shapes())
    write(picture, text, 8.0, 5.0, LETTER_PX, LIGHT.ink)
