"""Find the lane of one car at each step, with the costs that detectors use for all road users at once.

Where lanes cross or fork, the nearest center line at one instant says little. So the sequence of lanes is found with
Viterbi's algorithm: each step costs the deviation of position and heading from the lane, and each transition to another
lane has a cost. `detect.localize` is the compiled equivalent for all agents of a recording; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.lanes.network import AHEAD, LEFT, REACH_M, Doubles, LaneNetwork
from roadworthy.scenario.schema import Ints

MOST_LANES = 12  # candidates per step, in the compiled equivalent
LEAST_COSINE = 0.5  # an agent is not on a lane whose direction differs by more than 60 degrees from its heading
HEADING_COST = 18.0  # m2: an error of 1 rad in heading costs as much as 3 m beside the lane
OVERSHOOT_COST = 4.0  # per m2 before the start or beyond the end of a lane
MOST_OVERSHOOT_M = 1.0
NO_LANE_COST = 7.0  # m2: just more than the cost of the farthest candidate
LANE_CHANGE_COST = 6.0  # m2: keeps a car on the lane line from changing back and forth
AHEAD_COST = 0.05
LEAVE_LANES_COST = 8.0
JUMP_COST = 40.0
USUAL_STEP_S = 0.1  # costs of positions are per step of this length


@dataclass(frozen=True, eq=False)
class Places:
    """The place of a car among the lanes at each of T steps."""

    lane: Ints  # (T,) -1 if there is none
    arc: Doubles  # (T,) m from the lane's start
    offset: Doubles  # (T,) m to the left of the lane's center
    angle: Doubles  # (T,) rad, heading relative to the lane's direction
    shift: Ints  # (T,) +1 (-1) where the car is on the lane left (right) of the previous one


def locate(network: LaneNetwork, x: Doubles, y: Doubles, heading: Doubles, dt: float) -> Places:
    """Return the most plausible lanes of a vehicle that is present at all steps; x, y and heading are (T,)."""
    steps = np.arange(len(x))
    lanes = _lanes_near(network, x, y)
    found = [_beside(network, lane, x, y, heading) for lane in lanes]
    kept = [i for i, (cost, *_) in enumerate(found) if np.isfinite(cost).any()]
    lanes = np.append(lanes[kept], -1)  # the last candidate stands for no lane
    nowhere = (np.full(len(x), NO_LANE_COST), *np.zeros((3, len(x))))
    costs, arcs, offsets, angles = (np.array(part) for part in zip(*(found[i] for i in kept), nowhere, strict=True))
    chosen = _cheapest(costs * (dt / USUAL_STEP_S), _passages(network, lanes))
    lane = lanes[chosen].astype(np.int32)
    return Places(
        lane,
        arcs[chosen, steps],
        offsets[chosen, steps],
        angles[chosen, steps],
        _shifts(network, lane).astype(np.int32),
    )


def _lanes_near(network: LaneNetwork, x: Doubles, y: Doubles) -> Ints:
    """Return the lanes for cars that have a point near the bounding box of all positions."""
    spare = REACH_M + 30.0  # segments of lanes are shorter than that
    inside = (network.x > x.min() - spare) & (network.x < x.max() + spare)
    inside &= (network.y > y.min() - spare) & (network.y < y.max() + spare) & (network.segment_lane >= 0)
    near = np.unique(network.segment_lane[inside])
    return near[~network.is_bike[near]]


def _beside(
    network: LaneNetwork, lane: int, x: Doubles, y: Doubles, heading: Doubles
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Return (T,) cost (infinite off the lane), arc, offset and angle at the nearest point of a lane."""
    lane_x, lane_y, lane_arc = network.center(lane)
    size = np.diff(lane_arc)
    real = np.flatnonzero(size > 0.0)
    if not len(real):  # all points of the lane coincide
        nowhere = np.zeros(len(x))
        return np.full(len(x), np.inf), nowhere, nowhere, nowhere
    size = size[real]
    dx, dy = np.diff(lane_x)[real] / size, np.diff(lane_y)[real] / size
    ax, ay = x[:, None] - lane_x[real], y[:, None] - lane_y[real]
    along, offset = dx * ax + dy * ay, dx * ay - dy * ax
    reached = np.clip(along, 0.0, size)
    overshoot = along - reached
    agreement = dx * np.cos(heading)[:, None] + dy * np.sin(heading)[:, None]
    square = offset**2 + overshoot**2
    possible = (agreement >= LEAST_COSINE) & (np.abs(offset) <= REACH_M) & (np.abs(overshoot) <= REACH_M)
    # Inside a bend the nearest point lies between two segments: it is an overshoot only at the ends of the lane.
    possible[:, 0] &= overshoot[:, 0] >= -MOST_OVERSHOOT_M
    possible[:, -1] &= overshoot[:, -1] <= MOST_OVERSHOOT_M
    square[~possible] = np.inf
    best = np.argmin(square, axis=1)
    at = (np.arange(len(x)), best)
    cost = offset[at] ** 2 + OVERSHOOT_COST * overshoot[at] ** 2 + HEADING_COST * (1.0 - agreement[at])
    angle = (heading - np.arctan2(dy, dx)[best] + np.pi) % (2.0 * np.pi) - np.pi
    arc = lane_arc[real][best] + reached[at]
    return np.where(possible[at], cost, np.inf), arc, offset[at], angle


def _passages(network: LaneNetwork, lanes: Ints) -> Doubles:
    """Return (L, L) the cost of a transition between candidates in one step; the last candidate stands for no lane."""
    costs = np.full((len(lanes), len(lanes)), JUMP_COST)
    place = np.full(len(network.length), -1)
    place[lanes[:-1]] = np.arange(len(lanes) - 1)
    for i, lane in enumerate(lanes[:-1]):
        related = slice(network.relation_starts[lane], network.relation_starts[lane + 1])
        others = place[network.related[related]]
        cost = np.where(network.relation[related] == AHEAD, AHEAD_COST, LANE_CHANGE_COST)
        costs[i, others[others >= 0]] = cost[others >= 0]
    costs[-1], costs[:, -1] = LEAVE_LANES_COST, LEAVE_LANES_COST
    np.fill_diagonal(costs, 0.0)
    return costs


def _cheapest(costs: Doubles, passages: Doubles) -> Ints:
    """Return (T,) the sequence of candidates with the lowest cost; costs are (L, T)."""
    count, steps = costs.shape
    came_from = np.zeros((steps, count), np.int32)
    total = costs[:, 0]
    for step in range(1, steps):
        ways = total[:, None] + passages
        came_from[step] = np.argmin(ways, axis=0)
        total = ways[came_from[step], np.arange(count)] + costs[:, step]
    chosen = np.zeros(steps, np.int32)
    chosen[-1] = np.argmin(total)
    for step in range(steps - 1, 0, -1):
        chosen[step - 1] = came_from[step, chosen[step]]
    return chosen


def _shifts(network: LaneNetwork, lane: Ints) -> Ints:
    """Return (T,) where the lane is beside the previous one."""
    shift = np.zeros(len(lane), np.int32)
    for step in np.flatnonzero(np.diff(lane)) + 1:
        before, after = int(lane[step - 1]), int(lane[step])
        if before >= 0 and after >= 0:
            shift[step] = side_of(network, before, after)
    return shift


def side_of(network: LaneNetwork, lane: int, other: int) -> int:
    """Return 1 (-1) for a lane on the left (right) of another to which a car can change, 0 for any other lane."""
    related = slice(network.relation_starts[lane], network.relation_starts[lane + 1])
    kinds = network.relation[related][network.related[related] == other]
    if not len(kinds) or kinds[0] == AHEAD:
        return 0
    return 1 if kinds[0] == LEFT else -1
