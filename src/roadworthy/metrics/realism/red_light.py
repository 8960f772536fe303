"""Running a red light: an agent's center passes the stop point of its lane's light while that is red.

The reference looks for the lane, and for the piece of a lane that a stop point belongs to, by the length of
(point - start) + share * (end - start), where a minus would give the distance. What it finds is not the nearest but
something close by. Scores are comparable only if the same is found, so it is done here too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.metrics.realism.polylines import Polylines, polylines
from roadworthy.metrics.realism.scene import Motion, Scene
from roadworthy.scenario.schema import Bools, FeatureKind, Floats, Ints, LaneType, LightState, Scenario
from roadworthy.scenario.source_values import listed_lights

RED = (LightState.STOP, LightState.ARROW_STOP)

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


class LanePieces(NamedTuple):
    """n pieces of surface-street lanes in the order of lanes, with those that lead from a last point to the origin."""

    start: Floats  # (n, 2)
    along: Floats  # (n, 2)
    starts: Ints  # (P + 1,) lane p owns pieces starts[p]..starts[p + 1] - 1


class Signals(NamedTuple):
    """K lanes with a light over T steps."""

    lane: Ints  # (K,) the place of the lane in LanePieces
    is_red: Bools  # (K, T)
    start: Floats  # (K, T, 2) of the piece with the stop point
    along: Floats  # (K, T, 2)
    stop: Floats  # (K, T) where along the piece the stop point is: 0 at its start, 1 at its end


def red_light_violations(scenario: Scenario, scene: Scene, *motions: Motion) -> list[Bools]:
    """Return whether an agent passes a red light from the previous step to this one, (R, E, S)."""
    lanes = polylines(scenario.map, FeatureKind.LANE, LaneType.SURFACE_STREET)
    shapes = [(len(motion.x), scene.evaluated, motion.x.shape[2] - scene.first) for motion in motions]
    results = [np.zeros(shape, np.bool_) for shape in shapes]
    if len(lanes):
        pieces = lane_pieces(lanes)
        signals = find_signals(scenario, lanes, pieces)
        for motion, found in zip(motions, results, strict=True):
            _violations(motion.x, motion.y, motion.valid, pieces, signals, scene.first, found)
    return results


def lane_pieces(lanes: Polylines) -> LanePieces:
    """Every point but the last begins a piece, and so does the last where the lane is filled up."""
    begins_piece = np.ones(len(lanes.points), np.bool_)
    begins_piece[lanes.starts[1:] - 1] = lanes.is_filled
    ends = np.concatenate([lanes.points[1:, :2], np.zeros((1, 2), np.float32)])
    ends[lanes.starts[1:] - 1] = 0.0
    begins = lanes.points[:, :2]
    counts = np.concatenate([[0], np.cumsum(begins_piece)])
    return LanePieces(begins[begins_piece], (ends - begins)[begins_piece], counts[lanes.starts].astype(np.int32))


def find_signals(scenario: Scenario, lanes: Polylines, pieces: LanePieces) -> Signals:
    """Return the states and the stop points of the lights of each lane, step by step.

    A light that is listed stops where it says, also if its state is unknown. One that is not listed at a step stops at
    the origin then. Of several lights of a lane the last that is listed counts.
    """
    feature_of_light = scenario.light_lanes  # lanes are the first features of a map
    features = np.unique(feature_of_light[np.isin(feature_of_light, lanes.features)])
    listed, stops = listed_lights(scenario)
    states = np.zeros((len(features), scenario.steps), np.uint8)
    points = np.zeros((len(features), scenario.steps, 2), np.float32)
    for light in np.flatnonzero(np.isin(feature_of_light, features)):
        lane, is_listed = np.searchsorted(features, feature_of_light[light]), listed[light]
        states[lane, is_listed] = scenario.light_states[light, is_listed]
        points[lane, is_listed] = stops[light, is_listed, :2]
    places = np.searchsorted(lanes.features, features).astype(np.int32)
    start, along = np.zeros_like(points), np.zeros_like(points)
    stop = np.zeros(states.shape, np.float32)
    _place_stops(points, places, pieces, start, along, stop)
    return Signals(places, np.isin(states, RED), start, along, stop)


@kernel
def _place_stops(points: Floats, places: Ints, pieces: LanePieces, start: Floats, along: Floats, stop: Floats) -> None:
    for lane in range(points.shape[0]):
        for step in range(points.shape[1]):
            x, y = points[lane, step, 0], points[lane, step, 1]
            if step and x == points[lane, step - 1, 0] and y == points[lane, step - 1, 1]:
                start[lane, step], along[lane, step] = start[lane, step - 1], along[lane, step - 1]
                stop[lane, step] = stop[lane, step - 1]
                continue
            piece = _closest_piece(x, y, pieces, pieces.starts[places[lane]], pieces.starts[places[lane] + 1])
            start[lane, step], along[lane, step] = pieces.start[piece], pieces.along[piece]
            stop[lane, step] = _share(x, y, pieces.start[piece], pieces.along[piece])


@kernel
def _violations(
    x: Floats, y: Floats, valid: Bools, pieces: LanePieces, signals: Signals, first: int, found: Bools
) -> None:
    """Look up the lane last, because few agents pass a stop point at a red light."""
    for rollout in range(x.shape[0]):
        for agent in range(found.shape[1]):
            for step in range(first, x.shape[2]):
                if not valid[agent, step]:
                    continue
                here_x, here_y = x[rollout, agent, step], y[rollout, agent, step]
                lane = -1
                for signal in range(len(signals.lane)):
                    if not signals.is_red[signal, step]:
                        continue
                    now = _share(here_x, here_y, signals.start[signal, step], signals.along[signal, step])
                    if not now > signals.stop[signal, step]:
                        continue
                    earlier = _share(
                        x[rollout, agent, step - 1],
                        y[rollout, agent, step - 1],
                        signals.start[signal, step - 1],
                        signals.along[signal, step - 1],
                    )
                    if not earlier < signals.stop[signal, step - 1]:
                        continue
                    if lane < 0:
                        piece = _closest_piece(here_x, here_y, pieces, 0, len(pieces.start))
                        lane = int(np.searchsorted(pieces.starts, piece, side="right")) - 1
                    if lane == signals.lane[signal]:
                        found[rollout, agent, step - first] = True


@kernel
def _closest_piece(x: np.float32, y: np.float32, pieces: LanePieces, first: int, last: int) -> int:
    """Return whether a lane is close, as the module docstring defines it."""
    best, smallest = first, np.float32(np.inf)
    for piece in range(first, last):
        start, along = pieces.start[piece], pieces.along[piece]
        share = min(max(_share(x, y, start, along), _ZERO), _ONE)
        off_x, off_y = x - start[0] + along[0] * share, y - start[1] + along[1] * share
        distance = np.sqrt(off_x * off_x + off_y * off_y)
        if distance < smallest:
            best, smallest = piece, distance
    return best


@kernel
def _share(x: np.float32, y: np.float32, start: NDArray[np.float32], along: NDArray[np.float32]) -> np.float32:
    """Return the position of a point along a piece: 0 at its start, 1 at its end; 0 if it has no length."""
    square = along[0] * along[0] + along[1] * along[1]
    return ((x - start[0]) * along[0] + (y - start[1]) * along[1]) / square if square != _ZERO else _ZERO
