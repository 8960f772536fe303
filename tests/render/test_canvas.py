"""A canvas that repaints only what changes gives the same planes as painting everything."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.errors import UsageError
from roadworthy.render import LIGHT, Camera, MapLayer
from roadworthy.render.canvas import Canvas
from roadworthy.render.map_layer import StillBackground
from roadworthy.render.overlay import Overlay
from roadworthy.render.shapes import Sketch
from roadworthy.render.yuv import to_yuv420
from tests.render.town_square import build_map

SIZE = (706, 538)  # neither tiles nor squares fit


def ask_for_something(canvas, random, overlay):
    """Shapes all over the place and beyond it, patches and words."""
    sketch = Sketch()
    for _ in range(12):
        corners = random.uniform((-60, -60), (SIZE[0] + 60, SIZE[1] + 60)) + random.normal(0, 25, (5, 2))
        sketch.polygon([corners], tuple(random.integers(0, 256, 3).tolist()), float(random.uniform(0.1, 1.0)))
    canvas.paint(sketch.shapes())
    canvas.lay(overlay.scale_bar(0.1))
    canvas.write("words", *random.uniform(-20, SIZE).tolist(), 17, (10, 20, 30), "center")


@pytest.mark.parametrize("moves", [False, True])
def test_planes_are_those_of_the_whole_picture(moves):
    random, ground, overlay = np.random.default_rng(2), MapLayer(build_map(), 0.1), Overlay(SIZE, LIGHT)
    canvas, fresh = Canvas(SIZE), Canvas(SIZE)
    for number in range(5):
        place = (3.7 * number, -8.9 * number) if moves else (0.0, 0.0)
        camera = Camera(place, 0.1, SIZE).snapped(2)
        state = random.bit_generator.state
        ask_for_something(canvas, random, overlay)
        planes = canvas.finish(ground, camera)
        random.bit_generator.state = state
        ask_for_something(fresh, random, overlay)
        expected = [np.empty_like(plane) for plane in (planes.luma, planes.blue, planes.red)]
        to_yuv420(fresh.picture(ground, camera), *expected)
        for plane, whole in zip((planes.luma, planes.blue, planes.red), expected, strict=True):
            np.testing.assert_array_equal(plane, whole)


def test_a_ground_can_be_a_picture():
    image = np.random.default_rng(3).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    canvas, camera = Canvas(SIZE), Camera((0.0, 0.0), 1.0, SIZE)
    np.testing.assert_array_equal(canvas.picture(StillBackground(image), camera), image)


def test_odd_sides_are_refused():
    with pytest.raises(UsageError, match="expected even numbers"):
        Canvas((641, 480))
