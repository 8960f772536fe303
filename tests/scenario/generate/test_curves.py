"""Curves against plain numerical integration, and the properties of connections, parallels and reversal."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import cumulative_simpson

from roadworthy.scenario.generate.curves import Curve, Pose, bend, connect, line

Array = NDArray[np.float64]

poses = st.builds(Pose, st.floats(-500, 500), st.floats(-500, 500), st.floats(-np.pi, np.pi))


@st.composite
def chains(draw: st.DrawFn) -> Curve:
    """Return consecutive clothoids, each turning by less than a right angle, with continuous curvature."""
    count = draw(st.integers(1, 5))
    lengths = np.array([draw(st.floats(2.0, 80.0)) for _ in range(count)])
    knots = [draw(st.floats(-0.1, 0.1)) for _ in range(count + 1)]
    curvatures = np.array([[a, b] for a, b in pairwise(knots)])
    assume((np.abs(curvatures).max(axis=1) * lengths < 1.5).all())
    return Curve(draw(poses), lengths, curvatures)


def integrated(curve: Curve, per_piece: int = 2000) -> tuple[Array, Array, Array, Array, Array]:
    """Return station, x, y, heading and curvature, from the curvature only by Simpson's rule."""
    station, x, y, heading = 0.0, curve.start.x, curve.start.y, curve.start.heading
    columns = []
    for length, (first, last) in zip(curve.lengths, curve.curvatures, strict=True):
        s = np.linspace(0.0, length, per_piece + 1)
        curvature = first + (last - first) * s / length
        turned = heading + cumulative_simpson(curvature, x=s, initial=0.0)
        columns.append(
            (
                station + s,
                x + cumulative_simpson(np.cos(turned), x=s, initial=0.0),
                y + cumulative_simpson(np.sin(turned), x=s, initial=0.0),
                turned,
                curvature,
            )
        )
        station, x, y, heading = (float(column[-1]) for column in columns[-1][:4])
    return tuple(np.concatenate(parts) for parts in zip(*columns, strict=True))  # type: ignore[return-value]


def angle_between(a: float | Array, b: float | Array) -> Array:
    return np.abs((np.asarray(a) - b + np.pi) % (2 * np.pi) - np.pi)


@given(chains())
def test_samples_agree_with_numerical_integration(curve: Curve) -> None:
    station, *expected = integrated(curve)
    inside = slice(0, None, 97)
    for given_column, expected_column in zip(curve.sample(station[inside]), expected, strict=True):
        np.testing.assert_allclose(given_column, expected_column[inside], rtol=0, atol=1e-8)


@given(chains())
def test_length_turning_and_end_are_those_of_the_integrated_curve(curve: Curve) -> None:
    station, x, y, heading, curvature = integrated(curve)
    assert curve.length == pytest.approx(station[-1])
    assert curve.turning == pytest.approx(heading[-1] - heading[0], abs=1e-9)
    assert curve.sharpest == pytest.approx(np.abs(curvature).max())
    end = curve.end
    np.testing.assert_allclose([end.x, end.y, end.heading], [x[-1], y[-1], heading[-1]], rtol=0, atol=1e-8)


@given(chains(), st.floats(0.0, 1.0))
def test_a_reversed_curve_is_the_same_curve_in_the_opposite_direction(curve: Curve, part: float) -> None:
    back = curve.reversed()
    here, there = curve.at(part * curve.length), back.at((1 - part) * curve.length)
    assert np.hypot(here.x - there.x, here.y - there.y) < 1e-8
    assert angle_between(here.heading + np.pi, there.heading) < 1e-9
    assert here.curvature == pytest.approx(-there.curvature, abs=1e-9)
    again = back.reversed()
    np.testing.assert_allclose(again.lengths, curve.lengths)
    np.testing.assert_allclose(again.curvatures, curve.curvatures)


@given(chains(), st.floats(-6.0, 6.0))
def test_a_parallel_keeps_its_distance_everywhere(curve: Curve, offset: float) -> None:
    path = curve.parallel(offset, 1.0)
    x, y, heading, _ = curve.sample(path.stations)
    # The foot of every sample's perpendicular is at its station, on the side given by the sign of the offset.
    np.testing.assert_allclose(path.x, x - offset * np.sin(heading), rtol=0, atol=1e-9)
    np.testing.assert_allclose(path.y, y + offset * np.cos(heading), rtol=0, atol=1e-9)
    assert angle_between(path.heading, heading).max() < 1e-9
    # Nothing of the curve is nearer (except for curves that meet themselves).
    assume(np.ptp(integrated(curve, 50)[3]) < 1.5)
    fine = shapely.LineString(np.column_stack(curve.sample(np.linspace(0.0, curve.length, 4000))[:2]))
    away = shapely.distance(fine, shapely.points(path.x, path.y))
    np.testing.assert_allclose(away, abs(offset), rtol=0, atol=1e-3)


@given(chains(), st.floats(-6.0, 6.0), st.floats(0.0, 0.4), st.floats(0.6, 1.0))
def test_a_parallel_has_its_own_length_and_is_sampled_evenly_along_it(
    curve: Curve, offset: float, first: float, last: float
) -> None:
    path = curve.parallel(offset, 0.02, first * curve.length, last * curve.length)
    assert (path.stations[0], path.stations[-1]) == (first * curve.length, last * curve.length)
    chords = np.hypot(np.diff(path.x), np.diff(path.y))
    assert path.length == pytest.approx(chords.sum(), abs=1e-4)
    np.testing.assert_allclose(chords, path.length / len(chords), rtol=1e-4)
    # Curvature is the rate at which the heading changes along the parallel's own length.
    rate = np.diff(path.heading) / chords
    np.testing.assert_allclose(rate, (path.curvature[:-1] + path.curvature[1:]) / 2, rtol=0, atol=1e-3)


@st.composite
def reachable(draw: st.DrawFn) -> tuple[Pose, Pose]:
    """Return two poses such as ends of roads have: the second before the first, turned by up to 100 degrees."""
    start = draw(poses)
    chord, turning = draw(st.floats(8.0, 200.0)), draw(st.floats(-1.75, 1.75))
    bearing = start.heading + turning / 2 + draw(st.floats(-0.35, 0.35))
    ends = [draw(st.floats(-0.5, 0.5)) / chord for _ in range(2)]
    x, y = start.x + chord * np.cos(bearing), start.y + chord * np.sin(bearing)
    return (
        Pose(start.x, start.y, start.heading, ends[0]),
        Pose(float(x), float(y), start.heading + turning, ends[1]),
    )


@given(reachable())
@example((Pose(0, 0, 0), Pose(100, 0, 0)))
@example((Pose(0, 0, 3.0), Pose(-60, 1, -3.0)))
def test_a_connection_hits_both_poses_and_curvatures(ends: tuple[Pose, Pose]) -> None:
    start, end = ends
    curve = connect(start, end)
    assert curve is not None
    assert curve.start == start
    station, x, y, heading, curvature = integrated(curve)
    assert np.hypot(x[-1] - end.x, y[-1] - end.y) < 1e-6
    assert angle_between(heading[-1], end.heading) < 1e-9
    assert (curvature[0], curvature[-1]) == pytest.approx((start.curvature, end.curvature), abs=1e-12)
    # Adjacent pieces have the same curvature at their joint, so that the steering never jumps.
    np.testing.assert_allclose(curve.curvatures[:-1, 1], curve.curvatures[1:, 0], rtol=0, atol=1e-12)
    assert station[-1] < 4 * np.hypot(end.x - start.x, end.y - start.y) + 1


@given(poses, st.floats(-0.3, 0.3), st.floats(20.0, 200.0))
def test_a_connection_along_an_arc_is_that_arc(start: Pose, turning: float, radius: float) -> None:
    assume(abs(turning) > 0.02)
    curvature = np.sign(turning) / radius
    arc = Curve(
        Pose(start.x, start.y, start.heading, curvature), np.array([abs(turning) * radius]), np.full((1, 2), curvature)
    )
    found = connect(arc.start, arc.end)
    assert found is not None
    assert found.length == pytest.approx(arc.length, rel=1e-4)
    np.testing.assert_allclose(found.curvatures, curvature, rtol=1e-2)


@given(poses, st.floats(0.05, 1.6), st.sampled_from([-1.0, 1.0]), st.floats(6.0, 900.0))
def test_a_bend_turns_by_its_angle_and_no_sharper_than_its_radius(
    start: Pose, angle: float, side: float, radius: float
) -> None:
    curve = bend(start, side * angle, radius)
    assert curve.turning == pytest.approx(side * angle)
    assert curve.sharpest == pytest.approx(1 / radius)
    _, _, heading, curvature = curve.sample(np.linspace(0.0, curve.length, 200))
    assert (curvature[0], curvature[-1]) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert (np.diff(heading) * side >= -1e-12).all()


@given(poses, st.floats(1.0, 500.0), st.floats(-4.0, 4.0), st.floats(-20.0, 20.0))
def test_a_shifted_pose_lies_beside_and_ahead(start: Pose, length: float, left: float, ahead: float) -> None:
    end = line(start, length).end
    expected = start.shifted(ahead=length)
    assert (end.x, end.y, end.heading) == pytest.approx((expected.x, expected.y, expected.heading), abs=1e-9)
    moved = start.shifted(left=left, ahead=ahead)
    there_and_back = moved.turned_back().shifted(left=left, ahead=ahead)
    assert np.hypot(moved.x - start.x, moved.y - start.y) == pytest.approx(np.hypot(left, ahead), abs=1e-9)
    assert (there_and_back.x, there_and_back.y) == pytest.approx((start.x, start.y), abs=1e-9)


def test_a_pose_beside_a_curve_has_the_curvature_of_the_parallel() -> None:
    inner = Pose(0.0, -20.0, 0.0, 1 / 20).shifted(left=5.0)
    assert inner.curvature == pytest.approx(1 / 15)
    assert Pose(0.0, 0.0, 0.0, 0.1).turned_back().curvature == -0.1
