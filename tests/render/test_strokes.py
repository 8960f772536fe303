"""Lines, dashes and outlines have the requested sizes."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from roadworthy.render.strokes import dash, distances_along, parallel, placed, rounded_boxes, stroke_outline

BEND = np.array([(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)])


def test_a_mitred_stroke_has_the_area_of_its_length_times_its_width():
    (outline,) = stroke_outline(BEND, 2.0)
    assert shapely.Polygon(outline).area == pytest.approx(40.0)
    assert shapely.Polygon(outline).is_valid


def test_a_closed_stroke_has_an_outer_and_an_inner_ring():
    square = np.array([(0, 0), (10, 0), (10, 10), (0, 10), (0, 0)], float)
    areas = sorted(shapely.Polygon(ring).area for ring in stroke_outline(square, 2.0, is_closed=True))
    assert areas == pytest.approx([64.0, 144.0])


def test_a_hairpin_grows_no_spike():
    hairpin = np.array([(0.0, 0.0), (50.0, 0.0), (0.0, 0.1)])
    (outline,) = stroke_outline(hairpin, 2.0)
    assert outline[:, 0].max() <= 52.0 + 1e-9


def test_repeated_points_change_nothing():
    doubled = np.repeat(BEND, 2, axis=0)
    np.testing.assert_allclose(stroke_outline(doubled, 2.0)[0], stroke_outline(BEND, 2.0)[0])


def test_a_single_point_has_no_stroke():
    assert stroke_outline(np.zeros((4, 2)), 1.0) == []
    assert dash(np.zeros((4, 2)), 3.0, 9.0) == []


def test_dashes_have_their_length_and_gaps_also_round_a_bend():
    line = np.array([(0.0, 0.0), (30.0, 0.0), (30.0, 30.0)])
    pieces = dash(line, 3.0, 9.0)
    assert [distances_along(piece)[-1] for piece in pieces] == pytest.approx([3.0] * 5)
    starts = [shapely.LineString(line).project(shapely.Point(piece[0])) for piece in pieces]
    assert starts == pytest.approx([4.5, 16.5, 28.5, 40.5, 52.5])


def test_a_parallel_line_keeps_its_distance_to_the_left():
    beside = parallel(BEND, 1.5)
    assert shapely.LineString(BEND).distance(shapely.LineString(beside)) == pytest.approx(1.5)
    assert beside[0].tolist() == [0.0, 1.5]


def test_rounded_boxes_lose_only_their_corners():
    (box,) = rounded_boxes([4.0], [2.0], [0.5], corner_points=30)
    assert shapely.Polygon(box).area == pytest.approx(8.0 - (4 - np.pi) * 0.25, rel=1e-3)
    assert np.ptp(box, axis=0) == pytest.approx([4.0, 2.0])


def test_placing_turns_and_moves():
    moved = placed(np.array([(1.0, 0.0)]), [(5.0, 5.0), (0.0, 0.0)], [np.pi / 2, np.pi])
    np.testing.assert_allclose(moved, [[(5.0, 6.0)], [(-1.0, 0.0)]], atol=1e-12)
