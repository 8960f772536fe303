"""Comfort of the closed-loop score: the bounds, and the smoothing against calculus."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.metrics.closed_loop.comfort import accelerations, comfort, comfort_signals, within_bounds
from tests.metrics.closed_loop.roads import DT, Drive, body

Array = NDArray[np.float64]
T = DT * np.arange(151)


def still(**changes: object) -> dict[str, object]:
    return {"along": np.zeros(151), "across": np.zeros(151), "heading": np.zeros(151), "dt": DT} | changes


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("along", np.full(151, 2.39), np.full(151, 2.41)),
        ("along", np.full(151, -4.04), np.full(151, -4.06)),
        ("across", np.full(151, 4.88), np.full(151, 4.90)),
        ("across", np.full(151, -4.88), np.full(151, -4.90)),
        ("heading", 0.94 * T, 0.96 * T),
        ("heading", -0.94 * T, -0.96 * T),
        # A turn that starts at -0.9 rad/s and ends at 0.9 rad/s within 9 frames.
        ("heading", 0.5 * 1.92 * (T[:10] - 0.45) ** 2, 0.5 * 1.94 * (T[:10] - 0.45) ** 2),
    ],
)
def test_each_bound_holds_for_what_is_just_inside(name: str, inside: Array, outside: Array) -> None:
    """Constant accelerations pass the smoothing unchanged, and headings along polynomials of order 2 do as well."""
    for values, expected in ((inside, 1.0), (outside, 0.0)):
        none = np.zeros(len(values))
        given = {"along": none, "across": none, "heading": none} | {name: values}
        assert within_bounds(**given, dt=DT) == expected


@pytest.mark.parametrize(("slope", "value"), [(3.4, 1.0), (4.14, 0.0), (-3.4, 1.0), (-4.14, 0.0)])
def test_the_longitudinal_jerk_is_the_slope_of_the_acceleration(
    slope: float, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ramp passes both filters, apart from the first and the last frames: there a window of 8 frames, whose middle
    lies between two of them, bends it by half a frame, which raises the jerk by less than a fifth.
    """
    ramp = slope * (T - 7.5)
    assert comfort_signals(ramp, 0 * T, 0 * T, DT)["lon_jerk"][15:-15] == pytest.approx(np.full(121, slope))
    monkeypatch.setattr("roadworthy.metrics.closed_loop.comfort.LON_ACCELERATION_MPS2", (-99.0, 99.0))
    monkeypatch.setattr("roadworthy.metrics.closed_loop.comfort.JERK_MPS3", 99.0)
    assert within_bounds(**still(along=ramp)) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(("slope", "value"), [(7.0, 1.0), (8.4, 0.0)])
def test_the_derivative_of_the_magnitude_has_its_own_bound(
    slope: float, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ramp = slope * T
    signals = comfort_signals(0 * T, -ramp, 0 * T, DT)
    assert signals["jerk"][15:-15] == pytest.approx(np.full(121, slope))
    assert signals["lon_jerk"] == pytest.approx(np.zeros(151))
    monkeypatch.setattr("roadworthy.metrics.closed_loop.comfort.LAT_ACCELERATION_MPS2", 999.0)
    assert within_bounds(**still(across=-ramp)) == value  # type: ignore[arg-type]


def test_signals_of_smooth_motion_are_its_derivatives() -> None:
    """A heading of sin(t) turns at cos(t) and accelerates at -sin(t). A window of 8 frames shifts by half a frame."""
    signals = comfort_signals(np.sin(T), np.zeros(151), np.sin(T), DT)
    inner, later = slice(15, -15), T + 0.05
    assert signals["yaw_rate"][inner] == pytest.approx(np.cos(T)[inner], abs=0.01)
    assert signals["yaw_acceleration"][inner] == pytest.approx(-np.sin(T)[inner], abs=0.01)
    assert signals["lon_acceleration"][inner] == pytest.approx(np.sin(later)[inner], abs=0.01)
    assert signals["lon_jerk"][inner] == pytest.approx(np.cos(later)[inner], abs=0.1)


def fitted(values: Array, first: int, stop: int, order: int, at: float, times: int = 0) -> float:
    """Fit a least-squares polynomial to frames first to stop - 1; return its value or derivative at a frame."""
    frames = np.arange(first, stop) - at
    polynomial = np.polynomial.Polynomial.fit(frames, values[first:stop], order).convert()
    return float(polynomial.deriv(times)(0.0)) if times else float(polynomial(0.0))


def test_windows_and_orders_are_the_published_ones() -> None:
    """Savitzky and Golay's filter is the polynomial of least squares in a window, evaluated in its middle.

    A window of 8 frames is frames k - 3 to k + 4, and its middle half a frame after k.
    """
    rng = np.random.default_rng(3)
    along, across, heading = rng.normal(size=(3, 60))
    found = comfort_signals(along, across, heading, DT)
    size = np.hypot(along, across)
    yaw = np.unwrap(heading)
    k = 30

    def smooth(values: Array) -> Array:
        whole = range(15, 45)
        return np.array([0.0] * 15 + [fitted(values, j - 3, j + 5, 2, j + 0.5) for j in whole] + [0.0] * 15)

    assert found["lon_acceleration"][k] == pytest.approx(smooth(along)[k], abs=1e-7)
    assert found["lat_acceleration"][k] == pytest.approx(smooth(across)[k], abs=1e-7)
    assert found["lon_jerk"][k] == pytest.approx(fitted(smooth(along), k - 7, k + 8, 2, k, 1) / DT, abs=1e-6)
    assert found["jerk"][k] == pytest.approx(fitted(smooth(size), k - 7, k + 8, 2, k, 1) / DT, abs=1e-6)
    assert found["yaw_rate"][k] == pytest.approx(fitted(yaw, k - 2, k + 3, 2, k, 1) / DT, abs=1e-6)
    assert found["yaw_acceleration"][k] == pytest.approx(fitted(yaw, k - 2, k + 3, 3, k, 2) / DT**2, abs=1e-5)
    # At the ends the first and the last window's polynomial extends to the end.
    assert found["yaw_acceleration"][0] == pytest.approx(fitted(yaw, 0, 5, 3, 0, 2) / DT**2, abs=1e-5)
    assert found["yaw_rate"][59] == pytest.approx(fitted(yaw, 55, 60, 2, 59, 1) / DT, abs=1e-5)


def test_a_heading_that_crosses_pi_is_not_a_jump() -> None:
    heading = np.pi - 0.5 + 0.2 * T
    wrapped = np.arctan2(np.sin(heading), np.cos(heading))
    assert within_bounds(**still(heading=wrapped)) == 1.0  # type: ignore[arg-type]


def test_accelerations_are_those_of_the_step_that_led_to_a_frame() -> None:
    """From 10 m/s up by 0.3 m/s a step, at 0.02 rad a step: 3 m/s2 along, and v * 0.2 rad/s across."""
    heading = 3.1 + 0.02 * np.arange(10)
    ego = body(Drive(0.0, heading=np.arctan2(np.sin(heading), np.cos(heading)), speed=10.0 + 0.3 * np.arange(10)), 10)
    along, across = accelerations(ego, DT)
    assert along == pytest.approx(np.full(10, 3.0))
    assert across[1:] == pytest.approx(0.2 * (10.0 + 0.3 * np.arange(1, 10)))
    assert across[0] == across[1]


def test_braking_hard_is_uncomfortable_and_gently_is_not() -> None:
    gentle = body(Drive(0.0, speed=np.maximum(20.0 - 2.0 * T, 0.0)), 151)
    hard = body(Drive(0.0, speed=np.maximum(20.0 - 6.0 * T, 0.0)), 151)
    assert (comfort(gentle, DT), comfort(hard, DT)) == (1.0, 0.0)


def test_a_trial_of_a_few_frames_has_no_value() -> None:
    assert math.isnan(comfort(body(Drive(0.0), 4), DT))
    assert comfort(body(Drive(0.0), 5), DT) == 1.0
