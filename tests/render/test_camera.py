"""Cameras map points of the map to the right pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import UsageError
from roadworthy.render.camera import Camera

far = st.floats(-9000.0, 9000.0)
cameras = st.builds(
    Camera,
    center=st.tuples(far, far),
    meters_per_pixel=st.floats(0.02, 2.0),
    size=st.tuples(st.integers(2, 2000), st.integers(2, 2000)),
    rotation_rad=st.floats(-4.0, 4.0),
)


def test_north_is_up_and_east_is_right():
    camera = Camera((100.0, 200.0), 0.5, (80, 60))
    np.testing.assert_allclose(camera.to_pixels([(100, 200), (110, 200), (100, 210)]), [(40, 30), (60, 30), (40, 10)])


def test_rotation_turns_the_map_counterclockwise():
    camera = Camera((0.0, 0.0), 1.0, (80, 60), rotation_rad=np.pi / 2)
    np.testing.assert_allclose(camera.to_pixels([(10.0, 0.0)]), [(40, 20)], atol=1e-9)


@given(cameras, far, far)
def test_pixels_and_points_are_each_others_inverse(camera, x, y):
    np.testing.assert_allclose(camera.to_map(camera.to_pixels([x, y])), [x, y], atol=1e-6)


@given(cameras)
def test_a_snapped_camera_has_the_origin_between_pixels_and_moved_less_than_one(camera):
    shift = camera.snapped().transform[:, 2]
    np.testing.assert_allclose(shift, np.round(shift), atol=1e-5)
    assert np.abs(camera.snapped().to_pixels([0, 0]) - camera.to_pixels([0, 0])).max() <= 0.5 + 1e-5


@given(st.lists(st.tuples(far, far), min_size=1, max_size=9), st.floats(-4.0, 4.0))
def test_a_fitting_camera_sees_every_point(points, rotation):
    camera = Camera.fitting(np.array(points), (640, 360), rotation_rad=rotation)
    pixels = camera.to_pixels(points)
    assert (pixels >= 0).all()
    assert (pixels <= [640, 360]).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_senseless_scale_is_refused(scale):
    with pytest.raises(UsageError, match="meters_per_pixel"):
        Camera((0.0, 0.0), scale)
