"""Comfort: 1 if accelerations, jerks, yaw rate and yaw acceleration stay within their bounds at every frame, else 0.

    longitudinal acceleration                 above -4.05 and below 2.40 m/s2
    lateral acceleration                      below 4.89 m/s2 in size
    yaw rate                                  below 0.95 rad/s in size
    yaw acceleration                          below 1.93 rad/s2 in size
    longitudinal jerk                         below 4.13 m/s3 in size
    change of the acceleration's magnitude    below 8.37 m/s3 in size

Each is smoothed by a Savitzky-Golay filter (window in frames / order of the polynomial): accelerations 8/2; jerks are
derivatives 15/2 of smoothed accelerations; yaw rate 5/2 and yaw acceleration 5/3 are derivatives of the unwrapped
heading. A trial with fewer frames than a window takes one as long as itself; one of 4 frames or fewer has no value.

Substitute: nuPlan's simulator reports accelerations of the vehicle. A trace has motion alone, so the acceleration of a
frame is that of the step that led to it: along the change of speed over the step, across the speed at the frame times
the turn over the step. Frame 0 takes the value of frame 1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import savgol_filter

from roadworthy.metrics.closed_loop.motion import Array, Body

LON_ACCELERATION_MPS2 = (-4.05, 2.40)
LAT_ACCELERATION_MPS2 = 4.89
YAW_RATE_RADPS = 0.95
YAW_ACCELERATION_RADPS2 = 1.93
LON_JERK_MPS3 = 4.13
JERK_MPS3 = 8.37
_LEAST_FRAMES = 5
_DECIMALS = 8  # the reference rounds, so that nothing lies beyond a bound by rounding error


def comfort(ego: Body, dt: float) -> float:
    """Return 1.0 if every frame is within all bounds, 0.0 if one is not, NaN for a trial that is too short."""
    if len(ego.x) < _LEAST_FRAMES:
        return math.nan
    along, across = accelerations(ego, dt)
    return within_bounds(along, across, ego.heading, dt)


def accelerations(ego: Body, dt: float) -> tuple[Array, Array]:
    """Return the accelerations along and across the vehicle, (F,) each, in m/s2."""
    turn = np.diff(ego.heading)
    turn -= 2.0 * np.pi * np.round(turn / (2.0 * np.pi))
    along, across = np.diff(ego.speed) / dt, ego.speed[1:] * turn / dt
    return np.append(along[:1], along), np.append(across[:1], across)


def within_bounds(along: Array, across: Array, heading: Array, dt: float) -> float:
    """Return whether accelerations and headings, (F,) each, stay within the bounds: 1.0 or 0.0."""
    signals = comfort_signals(along, across, heading, dt)
    low, high = LON_ACCELERATION_MPS2
    is_in = (low < signals["lon_acceleration"]) & (signals["lon_acceleration"] < high)
    for name, bound in (
        ("lat_acceleration", LAT_ACCELERATION_MPS2),
        ("yaw_rate", YAW_RATE_RADPS),
        ("yaw_acceleration", YAW_ACCELERATION_RADPS2),
        ("lon_jerk", LON_JERK_MPS3),
        ("jerk", JERK_MPS3),
    ):
        is_in &= np.abs(signals[name]) < bound
    return float(is_in.all())


def comfort_signals(along: Array, across: Array, heading: Array, dt: float) -> dict[str, Array]:
    """Return the six smoothed signals, (F,) each."""
    lon, lat, size = (_smooth(values) for values in (along, across, np.hypot(along, across)))
    yaw = np.unwrap(heading)
    return {
        "lon_acceleration": lon,
        "lat_acceleration": lat,
        "yaw_rate": _derivative(yaw, dt, window=5, order=2),
        "yaw_acceleration": _derivative(yaw, dt, window=5, order=3, times=2),
        "lon_jerk": _derivative(lon, dt, window=15, order=2),
        "jerk": _derivative(size, dt, window=15, order=2),
    }


def _smooth(values: Array) -> Array:
    return np.round(savgol_filter(values, min(8, len(values)), 2), _DECIMALS)


def _derivative(values: Array, dt: float, window: int, order: int, times: int = 1) -> Array:
    return np.round(savgol_filter(values, min(window, len(values)), order, deriv=times, delta=dt), _DECIMALS)
