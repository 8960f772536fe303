"""The motion of vehicles, cyclists and pedestrians: speeds, accelerations, jerk, stops, starts, bends, walking."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.schema import AgentType, Bools, FeatureKind
from roadworthy.scenario.statistics.sample import Doubles, stretches

MOVING_MPS = 0.5
JERK_S = 1.0  # jerk is the change of acceleration over this time, as in ISO 15622

STOP_FROM_MPS = 6.0  # braking from lower speeds says little
BRAKING_MPS2 = 0.3  # a stop starts where the braking gets stronger than this,
SPEEDING_UP_MPS2 = 0.1  # after the last time that the driver accelerated
START_TO_MPS = 5.0

BEND_RAD_PER_M = 1.0 / 200.0
BEND_LEAST_RAD = np.radians(25.0)
BEND_LEAST_MPS = 2.0
BEND_WINDOW_S = 0.5  # the peak is that of a mean over this time: shorter ones are noise

WALKING_MPS = 0.5
WALKING_S = 1.0
CYCLING_MPS = 1.5


def speeds(tracks: Tracks) -> dict[str, Doubles]:
    """Return speeds of moving vehicles by the type of their lane, once a second, and kilometers driven."""
    drives = _drives(tracks)
    freeway = np.append(tracks.network.is_freeway, False)[tracks.lane]
    found: dict[str, Doubles] = {}
    for road, here in (("freeway", freeway), ("street", ~freeway)):
        speed = tracks.speed.astype(np.float64)
        found[f"speed_{road}"] = _each_second(tracks, speed, drives & here)
        found[f"{road}_km"] = speed[drives & here] * tracks.dt / 1000.0
    return found


def accelerations(tracks: Tracks) -> dict[str, Doubles]:
    """Return longitudinal acceleration and jerk of moving vehicles, once a second."""
    drives = _drives(tracks)
    inside = drives.copy()  # at the ends of an interval the acceleration is one-sided
    inside[:, 1:] &= tracks.valid[:, :-1]
    inside[:, :-1] &= tracks.valid[:, 1:]
    apart = tracks.steps_of(JERK_S)
    jerk = np.zeros(tracks.speed.shape)
    both = np.zeros(tracks.speed.shape, np.bool_)
    if apart < tracks.steps:
        jerk[:, apart:] = (tracks.acceleration[:, apart:] - tracks.acceleration[:, :-apart]) / (apart * tracks.dt)
        both[:, apart:] = inside[:, apart:] & inside[:, :-apart]
    return {
        "acceleration": _each_second(tracks, tracks.acceleration.astype(np.float64), inside),
        "jerk": _each_second(tracks, np.abs(jerk), both),
    }


def stops_and_starts(tracks: Tracks) -> dict[str, Doubles]:
    """Return braking to a standstill, and acceleration from rest."""
    is_vehicle = (tracks.types == AgentType.VEHICLE)[:, None]
    mean_braking, peak_braking, starting = [], [], []
    for agent, first, end in zip(*stretches(tracks.valid & is_vehicle & (tracks.speed < MOVING_MPS)), strict=True):
        speed, acceleration = tracks.speed[agent], tracks.acceleration[agent]
        begin = first
        while begin > 0 and tracks.valid[agent, begin - 1] and acceleration[begin - 1] < SPEEDING_UP_MPS2:
            begin -= 1
        while begin < first and acceleration[begin] > -BRAKING_MPS2:
            begin += 1
        if begin < first and speed[begin] >= STOP_FROM_MPS:
            mean_braking.append(float(speed[begin] - speed[first]) / ((first - begin) * tracks.dt))
            peak_braking.append(float(-acceleration[begin : first + 1].min()))
        gone = (speed[end:] >= START_TO_MPS) & tracks.valid[agent, end:]
        if gone.any() and end > first:
            reached = end + int(np.argmax(gone))
            if speed[end:reached].min(initial=MOVING_MPS) >= MOVING_MPS:
                starting.append(float(speed[reached] - speed[end - 1]) / ((reached - end + 1) * tracks.dt))
    return {
        "stop_deceleration": np.array(mean_braking),
        "stop_peak_deceleration": np.array(peak_braking),
        "start_acceleration": np.array(starting),
    }


def bends(tracks: Tracks) -> dict[str, Doubles]:
    """Return the peak lateral acceleration of each bend that a vehicle drives through, with speed and radius."""
    drives = _drives(tracks)
    turning = np.zeros(tracks.speed.shape)
    turned = np.diff(tracks.heading.astype(np.float64), axis=1)
    turned = (turned + np.pi) % (2.0 * np.pi) - np.pi
    turning[:, 1:-1] = 0.5 * (turned[:, 1:] + turned[:, :-1]) / tracks.dt
    speed = tracks.speed.astype(np.float64)
    bending = drives & (speed >= BEND_LEAST_MPS) & (np.abs(turning) > BEND_RAD_PER_M * speed)
    bending[:, [0, -1]] = False
    bending[:, 1:-1] &= tracks.valid[:, 2:] & tracks.valid[:, :-2]
    window = tracks.steps_of(BEND_WINDOW_S)
    peaks, at_speeds, radii = [], [], []
    for agent, first, end in zip(*stretches(bending), strict=True):
        rate = turning[agent, first:end]
        if end - first < window or abs(rate.sum()) * tracks.dt < BEND_LEAST_RAD:
            continue
        smooth = np.convolve(np.abs(rate) * speed[agent, first:end], np.full(window, 1.0 / window), "valid")
        peak = int(np.argmax(smooth))
        at_speed = float(speed[agent, first + peak : first + peak + window].mean())
        peaks.append(float(smooth[peak]))
        at_speeds.append(at_speed)
        radii.append(at_speed**2 / float(smooth[peak]))
    return {"bend_lateral": np.array(peaks), "bend_speed": np.array(at_speeds), "bend_radius": np.array(radii)}


def walkers_and_cyclists(tracks: Tracks) -> dict[str, Doubles]:
    """Return the median speed of every pedestrian on a crosswalk, and of every cyclist, while they move."""
    from shapely import Polygon, contains_xy

    walks = (tracks.types == AgentType.PEDESTRIAN)[:, None] & tracks.valid & (tracks.speed > WALKING_MPS)
    on_crosswalk = np.zeros_like(walks)
    where = np.nonzero(walks)
    for feature in tracks.map.features(FeatureKind.CROSSWALK) if len(where[0]) else ():
        outline = tracks.map.polyline(feature)
        if len(outline) >= 3:
            on_crosswalk[where] |= contains_xy(Polygon(outline[:, :2]), tracks.x[where], tracks.y[where])
    rides = (tracks.types == AgentType.CYCLIST)[:, None] & tracks.valid & (tracks.speed > CYCLING_MPS)
    least = tracks.steps_of(WALKING_S)
    return {
        name: np.array(
            [float(np.median(tracks.speed[i, moves[i]])) for i in np.flatnonzero(moves.sum(axis=1) >= least)]
        )
        for name, moves in (("walking_speed", walks & on_crosswalk), ("cycling_speed", rides))
    }


def _drives(tracks: Tracks) -> Bools:
    """Return (A, T) whether each agent is a moving vehicle on a lane."""
    is_vehicle = (tracks.types == AgentType.VEHICLE)[:, None]
    return is_vehicle & tracks.valid & (tracks.lane >= 0) & (tracks.speed >= MOVING_MPS)


def _each_second(tracks: Tracks, values: Doubles, flags: Bools) -> Doubles:
    """Return the flagged values at every full second, because adjacent steps are almost equal."""
    every = tracks.steps_of(1.0)
    return values[:, every - 1 :: every][flags[:, every - 1 :: every]]
