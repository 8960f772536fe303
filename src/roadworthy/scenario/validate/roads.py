"""The rule that the map is consistent: lanes connect to their successors and run beside their neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.lanes.network import LaneNetwork
from roadworthy.scenario.schema import RoadMap
from roadworthy.scenario.source_values import neighbor_ranges
from roadworthy.scenario.validate.finding import Finding
from roadworthy.scenario.validate.limits import Limits


@lru_cache(maxsize=8)
def map_faults(road_map: RoadMap, limits: Limits) -> tuple[Finding, ...]:
    """Return a finding per pair of lanes that do not fit together."""
    return (*_joint_faults(road_map, limits), *_neighbor_faults(road_map, limits))


def _joint_faults(road_map: RoadMap, limits: Limits) -> Iterator[Finding]:
    if not len(road_map.successors):
        return
    network = LaneNetwork.of(road_map)
    before, after = road_map.successors[:, 0], road_map.successors[:, 1]
    ends, starts = network.first[before + 1] - 1, network.first[after]
    jump = np.hypot(network.x[starts] - network.x[ends], network.y[starts] - network.y[ends])
    heading_out, heading_in = _end_headings(network.first, network.x, network.y)
    bend = np.abs(np.angle(np.exp(1j * (heading_in[after] - heading_out[before]))))
    for i in np.flatnonzero((jump > limits.joint_m) | (bend > limits.joint_rad)):
        if jump[i] > limits.joint_m:
            what = f"lane {before[i]} ends {jump[i]:.2f} m from the start of its successor {after[i]}"
        else:
            what = f"lane {before[i]} meets its successor {after[i]} at an angle of {bend[i]:.2f} rad"
        yield Finding("map", -1, -1, what)


def _neighbor_faults(road_map: RoadMap, limits: Limits) -> Iterator[Finding]:
    network = LaneNetwork.of(road_map)
    counts = np.diff(network.first)
    for name_of_side, side, pairs in (
        ("left", 1.0, road_map.left_neighbors),
        ("right", -1.0, road_map.right_neighbors),
    ):
        if not len(pairs):
            continue
        ranges = neighbor_ranges(road_map, name_of_side)
        last = np.repeat(counts[pairs] - 1, 2, axis=1)
        is_beyond = np.any((ranges < 0) | (ranges > last), axis=1).tolist()
        within = np.clip(ranges, 0, last).astype(np.int32)
        bend, nearest, farthest = _beside(network.first, network.x, network.y, pairs, within, side)
        for i, (lane, beside) in enumerate(pairs):
            name = f"lane {lane} and its neighbor {beside} on the {name_of_side}"
            if is_beyond[i]:
                points = f"{counts[lane]} and {counts[beside]} points"
                yield Finding("neighbor", -1, -1, f"{name} name points {ranges[i].tolist()}, but have {points}")
            elif within[i, 0] == within[i, 1]:
                continue  # neighbors along a single point, which has no direction
            elif np.isinf(nearest[i]):
                yield Finding("neighbor", -1, -1, f"{name} have no place beside each other")
            elif farthest[i] <= 0.0:
                yield Finding("neighbor", -1, -1, f"{name} lie the other way round")
            elif nearest[i] <= 0.0:
                yield Finding("neighbor", -1, -1, f"{name} meet or cross")
            elif bend[i] > limits.neighbor_rad:
                yield Finding("neighbor", -1, -1, f"{name} run apart by {bend[i]:.2f} rad")
            elif farthest[i] - nearest[i] > limits.neighbor_spread_m:
                yield Finding("neighbor", -1, -1, f"{name} are {nearest[i]:.2f} to {farthest[i]:.2f} m apart")


@kernel
def _end_headings(first, x, y):
    """Return the headings of each lane at its end and at its start: those of the end segments plus half of the bend.

    Repeated points make no segment. A lane without segments has no heading: NaN.
    """
    lanes = len(first) - 1
    out, into = np.full(lanes, np.nan), np.full(lanes, np.nan)
    for lane in range(lanes):
        a, b = first[lane], first[lane + 1] - 1
        into[lane] = _end_heading(x, y, a, b, 1)
        out[lane] = _end_heading(x, y, b, a, -1)
    return out, into


@kernel
def _end_heading(x, y, begin, end, way):
    """Return the heading at one end of a lane, `begin`, in driving direction. way: 1 at the start, -1 at the end."""
    chord, before = np.nan, np.nan
    for i in range(begin, end, way):
        dx, dy = way * (x[i + way] - x[i]), way * (y[i + way] - y[i])
        if dx == 0.0 and dy == 0.0:
            continue
        if np.isnan(chord):
            chord = np.arctan2(dy, dx)
        else:
            before = np.arctan2(dy, dx)
            break
    if np.isnan(before):
        return chord
    return chord - 0.5 * ((before - chord + np.pi) % (2.0 * np.pi) - np.pi)


@kernel
def _beside(first, x, y, pairs, ranges, side):
    """For pairs of lanes, where they are beside each other: the largest angle, the smallest and the largest distance.

    ranges: (k, 4) the first and last point of each lane that count, from 0 within the lane.
    """
    bend, nearest, farthest = np.zeros(len(pairs)), np.full(len(pairs), np.inf), np.full(len(pairs), -np.inf)
    for i in range(len(pairs)):
        a, b = first[pairs[i, 0]], first[pairs[i, 1]]
        a0, a1, b0, b1 = a + ranges[i, 0], a + ranges[i, 1], b + ranges[i, 2], b + ranges[i, 3]
        for p in range(a0, a1):
            mx, my = 0.5 * (x[p] + x[p + 1]), 0.5 * (y[p] + y[p + 1])
            ux, uy = x[p + 1] - x[p], y[p + 1] - y[p]
            if ux == 0.0 and uy == 0.0:  # a repeated point has no left side
                continue
            best, q_best, is_beside = np.inf, b0, False
            for q in range(b0, b1):
                wx, wy = x[q + 1] - x[q], y[q + 1] - y[q]
                square = wx * wx + wy * wy
                if square == 0.0:
                    continue
                t = ((mx - x[q]) * wx + (my - y[q]) * wy) / square
                reached = min(max(t, 0.0), 1.0)
                distance = (x[q] + reached * wx - mx) ** 2 + (y[q] + reached * wy - my) ** 2
                if distance < best:
                    best, q_best = distance, q
                    is_beside = not ((t < 0.0 and q == b0) or (t > 1.0 and q == b1 - 1))
            if not is_beside:
                continue
            wx, wy = x[q_best + 1] - x[q_best], y[q_best + 1] - y[q_best]
            angle = abs(np.arctan2(ux * wy - uy * wx, ux * wx + uy * wy))
            left = ux * (y[q_best] - my) - uy * (x[q_best] - mx)
            distance = np.sqrt(best) if left * side > 0.0 else -np.sqrt(best)
            bend[i] = max(bend[i], angle)
            nearest[i], farthest[i] = min(nearest[i], distance), max(farthest[i], distance)
    return bend, nearest, farthest
