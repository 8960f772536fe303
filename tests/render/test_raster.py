"""The rasterizer against shapely's exact areas, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import UsageError
from roadworthy.render.raster import Painter
from roadworthy.render.shapes import FillRule, Sketch

WIDTH, HEIGHT = 23, 17
MIRROR = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, HEIGHT]])  # y up, as maps have it


def coverage(rings, rule=FillRule.NONZERO, transform=None, alpha=1.0):
    """White on black: the picture is the coverage, in 1/255."""
    sketch = Sketch()
    sketch.polygon([np.asarray(ring, float) for ring in rings], (255, 255, 255), alpha, rule)
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    painter = Painter(WIDTH, HEIGHT)
    if transform is None:
        painter.paint(image, sketch.shapes())
    else:
        painter.paint(image, sketch.shapes(), transform)
    return image[:, :, 0] / 255.0


def exact_coverage(area):
    """The area of each pixel that a shapely geometry covers."""
    x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    return shapely.area(shapely.intersection(shapely.box(x, y, x + 1, y + 1), area))


coordinate = st.floats(-15.0, 40.0, allow_nan=False)
triangle = st.lists(st.tuples(coordinate, coordinate), min_size=3, max_size=3)


@given(triangle)
def test_every_pixel_of_a_triangle_is_covered_by_its_exact_area(corners):
    np.testing.assert_allclose(coverage([corners]), exact_coverage(shapely.Polygon(corners)), atol=0.006)


@given(st.integers(5, 40), st.floats(0.5, 30.0), st.floats(-5, 28), st.floats(-5, 22), st.integers(0, 2**31))
def test_every_pixel_of_a_jagged_star_is_covered_by_its_exact_area(points, size, x, y, seed):
    angles = np.arange(points) * 2 * np.pi / points
    radii = np.random.default_rng(seed).uniform(0.3, 1.0, points) * size
    ring = np.stack([x + radii * np.cos(angles), y + radii * np.sin(angles)], axis=1)
    drawn, exact = coverage([ring]), exact_coverage(shapely.Polygon(ring))
    # Where one pixel holds several windings at once (a spike thinner than it), areas still add up exactly.
    np.testing.assert_allclose(drawn, exact, atol=0.006)


def test_the_coverage_of_a_polygon_adds_up_to_its_area():
    ring = np.array([(2.3, 1.7), (19.6, 3.1), (15.2, 14.9), (8.8, 9.4), (3.1, 13.3)])
    assert coverage([ring]).sum() == pytest.approx(shapely.Polygon(ring).area, rel=1e-3)


def test_a_hole_stays_empty_under_even_odd_whichever_way_it_runs():
    outside, hole = [(2, 2), (20, 2), (20, 15), (2, 15)], [(6.5, 5.5), (14.5, 5.5), (14.5, 11.5), (6.5, 11.5)]
    exact = exact_coverage(shapely.Polygon(outside, [hole]))
    for ring in (hole, hole[::-1]):
        np.testing.assert_allclose(coverage([outside, ring], FillRule.EVEN_ODD), exact, atol=0.005)


def test_nonzero_fills_where_outlines_overlap_and_even_odd_does_not():
    first, second = [(2, 2), (12, 2), (12, 12), (2, 12)], [(6, 6), (16, 6), (16, 15), (6, 15)]
    squares = shapely.Polygon(first), shapely.Polygon(second)
    np.testing.assert_allclose(coverage([first, second]), exact_coverage(squares[0] | squares[1]), atol=0.005)
    np.testing.assert_allclose(
        coverage([first, second], FillRule.EVEN_ODD), exact_coverage(squares[0] ^ squares[1]), atol=0.005
    )


def test_only_the_port_side_of_a_ring_is_filled_by_the_counterclockwise_rule():
    loop, island = [(2, 2), (20, 2), (20, 15), (2, 15)], [(6, 5), (6, 11), (14, 11), (14, 5)]
    filled = coverage([loop, island], FillRule.COUNTERCLOCKWISE, MIRROR)
    assert filled.sum() == pytest.approx(18 * 13 - 8 * 6, abs=0.1)
    assert coverage([island], FillRule.COUNTERCLOCKWISE, MIRROR).sum() == 0
    # Whether the transform mirrors makes no difference: it is the shape's own frame that counts.
    assert coverage([loop], FillRule.COUNTERCLOCKWISE).sum() == 18 * 13
    assert coverage([island], FillRule.COUNTERCLOCKWISE).sum() == 0


def test_a_shape_larger_than_the_picture_fills_it():
    assert (coverage([[(-1e5, -1e5), (1e5, -1e5), (1e5, 1e5), (-1e5, 1e5)]]) == 1.0).all()


def test_a_shape_beside_the_picture_leaves_no_trace():
    for dx, dy in ((-50, 0), (50, 0), (0, -50), (0, 50)):
        assert coverage([[(2 + dx, 2 + dy), (9 + dx, 3 + dy), (5 + dx, 9 + dy)]]).sum() == 0


def test_opacity_scales_the_color():
    square = [(3, 3), (9, 3), (9, 9), (3, 9)]
    assert coverage([square], alpha=0.4)[5, 5] == pytest.approx(0.4, abs=0.003)


def test_a_painter_leaves_nothing_behind_for_the_next_picture():
    painter, sketch = Painter(WIDTH, HEIGHT), Sketch()
    sketch.polygon([np.array([(-5.0, -4.0), (40.0, 6.5), (11.0, 30.0)])], (10, 200, 30), 0.7)
    pictures = [np.full((HEIGHT, WIDTH, 3), 90, np.uint8) for _ in range(3)]
    for picture in pictures:
        painter.paint(picture, sketch.shapes())
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] == pictures[2]).all()
    empty = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    painter.paint(empty, Sketch().shapes())
    assert empty.sum() == 0


def test_a_picture_of_the_wrong_shape_is_refused():
    with pytest.raises(UsageError, match=r"\(17, 23, 3\).*not \(4, 4, 3\)"):
        Painter(WIDTH, HEIGHT).paint(np.zeros((4, 4, 3), np.uint8), Sketch().shapes())
