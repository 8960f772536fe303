"""Find the lane of each road user at each step: the most plausible sequence of lanes for its whole motion.

Where lanes cross or fork, the nearest center line at one instant says little. So the sequence is found with Viterbi's
algorithm: each step costs the deviation of position and heading from the lane, and each transition has a cost: zero to
a successor, low to a neighbor, high to a lane that cannot be reached.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.detect.grid import CELL_M, lane_grid
from roadworthy.scenario.lanes import locate
from roadworthy.scenario.lanes.network import AHEAD, LEFT, REACH_M, LaneNetwork
from roadworthy.scenario.schema import AgentType, Bools, Bytes, Floats, Ints


def localize(
    network: LaneNetwork, agent_types: Bytes, positions: Floats, headings: Floats, valid: Bools, dt: float
) -> tuple[Ints, Floats, Floats, Ints]:
    """Return (A, T) lane (-1 for none), arc length, offset to the left of its center, shift (+1 left, -1 right)."""
    is_cyclist = agent_types == AgentType.CYCLIST
    rides_lanes = (agent_types == AgentType.VEHICLE) | is_cyclist
    grid = lane_grid(network)
    return _most_plausible(grid, rides_lanes, is_cyclist, positions, headings, valid, dt / locate.USUAL_STEP_S)


@kernel
def _most_plausible(grid, rides_lanes, is_cyclist, positions, headings, valid, weight):
    agents, steps = valid.shape
    lane_out, shift_out = np.full((agents, steps), -1, np.int32), np.zeros((agents, steps), np.int32)
    arc_out, offset_out = np.zeros((agents, steps), np.float32), np.zeros((agents, steps), np.float32)
    # Slot MOST_LANES stands for "on no lane".
    lanes = np.full((steps, locate.MOST_LANES + 1), -1, np.int32)
    arcs, offsets = np.zeros((steps, locate.MOST_LANES + 1)), np.zeros((steps, locate.MOST_LANES + 1))
    costs, squares = np.zeros(locate.MOST_LANES + 1), np.zeros(locate.MOST_LANES + 1)
    came_from = np.zeros((steps, locate.MOST_LANES + 1), np.int32)
    counts = np.zeros(steps, np.int32)
    total, previous_total = np.zeros(locate.MOST_LANES + 1), np.zeros(locate.MOST_LANES + 1)
    for agent in range(agents):
        if not rides_lanes[agent]:
            continue
        step = 0
        while step < steps:
            if not valid[agent, step]:
                step += 1
                continue
            begin = step
            while step < steps and valid[agent, step]:
                px, py = positions[agent, step, 0], positions[agent, step, 1]
                counts[step] = _candidates(
                    grid,
                    is_cyclist[agent],
                    float(px),
                    float(py),
                    float(headings[agent, step]),
                    lanes[step],
                    arcs[step],
                    offsets[step],
                    costs,
                    squares,
                )
                n, before = counts[step], counts[step - 1]
                for i in range(n + 1):
                    slot = i if i < n else locate.MOST_LANES
                    lane = lanes[step, slot]
                    cost = (costs[slot] if i < n else locate.NO_LANE_COST) * weight
                    if step == begin:
                        total[slot] = cost
                        continue
                    best, best_slot = np.inf, locate.MOST_LANES
                    for j in range(before + 1):
                        old_slot = j if j < before else locate.MOST_LANES
                        change = previous_total[old_slot]
                        if change >= best:
                            continue
                        old_lane = lanes[step - 1, old_slot]
                        if old_lane != lane:
                            change += _transition_cost(grid, old_lane, lane)
                        if change < best:
                            best, best_slot = change, old_slot
                    total[slot] = best + cost
                    came_from[step, slot] = best_slot
                total, previous_total = previous_total, total
                step += 1
            slot = locate.MOST_LANES
            for i in range(counts[step - 1]):
                if previous_total[i] < previous_total[slot]:
                    slot = i
            for k in range(step - 1, begin - 1, -1):
                lane_out[agent, k] = lanes[k, slot]
                arc_out[agent, k], offset_out[agent, k] = arcs[k, slot], offsets[k, slot]
                slot = came_from[k, slot]
            for k in range(begin + 1, step):
                old_lane, lane = lane_out[agent, k - 1], lane_out[agent, k]
                if old_lane != lane and old_lane >= 0 and lane >= 0:
                    kind = _relation(grid, old_lane, lane)
                    if kind > AHEAD:
                        shift_out[agent, k] = 1 if kind == LEFT else -1
    return lane_out, arc_out, offset_out, shift_out


@kernel
def _relation(grid, lane, other):
    for i in range(grid.relation_starts[lane], grid.relation_starts[lane + 1]):
        if grid.related[i] == other:
            return grid.relation[i]
    return 0


@kernel
def _transition_cost(grid, old_lane, lane):
    if old_lane < 0 or lane < 0:
        return locate.LEAVE_LANES_COST
    kind = _relation(grid, old_lane, lane)
    if kind == 0:
        return locate.JUMP_COST
    return locate.AHEAD_COST if kind == AHEAD else locate.LANE_CHANGE_COST


@kernel
def _candidates(grid, is_cyclist, px, py, heading, lanes, arcs, offsets, costs, squares):
    """Fill in the lanes within reach in the agent's direction, with the nearest point on each; return their number."""
    column, row = (px - grid.origin[0]) / CELL_M, (py - grid.origin[1]) / CELL_M
    if not (0.0 <= column < grid.shape[0] and 0.0 <= row < grid.shape[1]):
        return 0
    cell = int(row) * grid.shape[0] + int(column)
    cosine, sine = np.cos(heading), np.sin(heading)
    n = 0
    for i in range(grid.cell_starts[cell], grid.cell_starts[cell + 1]):
        p = grid.cell_segments[i]
        lane = grid.segment_lane[p]
        ax, ay = px - grid.x[p], py - grid.y[p]
        dx, dy = grid.x[p + 1] - grid.x[p], grid.y[p + 1] - grid.y[p]
        size = grid.arc[p + 1] - grid.arc[p]
        if size <= 0.0:
            continue
        dx, dy = dx / size, dy / size
        agreement = dx * cosine + dy * sine
        offset = dx * ay - dy * ax
        if agreement < locate.LEAST_COSINE or abs(offset) > REACH_M or (grid.is_bike[lane] and not is_cyclist):
            continue
        along = dx * ax + dy * ay
        reached = min(max(along, 0.0), size)
        overshoot = along - reached
        # Inside a bend the nearest point lies between two segments: this is the distance to the corner.
        at_lane_end = (overshoot < 0.0 and p == grid.first[lane]) or (overshoot > 0.0 and p == grid.first[lane + 1] - 2)
        if abs(overshoot) > (locate.MOST_OVERSHOOT_M if at_lane_end else REACH_M):
            continue
        square = offset * offset + overshoot * overshoot
        cost = offset * offset + locate.OVERSHOOT_COST * overshoot * overshoot + locate.HEADING_COST * (1.0 - agreement)
        slot = -1
        for j in range(n):
            if lanes[j] == lane:
                slot = j
                break
        if slot < 0:
            if n < locate.MOST_LANES:
                slot = n
                n += 1
            else:
                slot = int(np.argmax(costs[: locate.MOST_LANES]))
                if costs[slot] <= cost:
                    continue
        elif squares[slot] <= square:
            continue
        lanes[slot], arcs[slot], offsets[slot], costs[slot] = lane, grid.arc[p] + reached, offset, cost
        squares[slot] = square
    return n
