"""What an agent sees: one row of numbers in its own frame (x ahead, y to the left), as `layout.py` lays it out.

A block's count says how many of its entries are filled. An entry that dropout hides keeps its place and its share in
the count, and all its features are 0: no true entry looks like that, since the cosine and sine of a direction are never
both 0, and a stop line has a light or a sign. A blind agent sees no partners at all, and their count is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, count_below
from roadworthy.scenario.grid import cell_along
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim.layout import (
    ACCELERATION_MPS2,
    CONDITIONING,
    EDGE,
    EGO,
    FAR_M,
    GOAL,
    LANE,
    LENGTH_M,
    LIGHT,
    OFFSET_M,
    PARTNER,
    SPEED_MPS,
    STEERING_RAD,
    WIDTH_M,
)
from roadworthy.sim.maps.road_points import Real, Whole, clipped, write_edges, write_lanes, write_partners
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.goals import goal_line
from roadworthy.sim.rules.observe_stop_lines import write_stop_lines
from roadworthy.sim.state import (
    ACCELERATION,
    AGENT_COUNT,
    COLUMNS,
    COS,
    EDGE_POINT_COUNT,
    GOAL_COUNT,
    IS_PRESENT,
    LANE_COS,
    LANE_LIMIT,
    LANE_OFFSET,
    LANE_POINT_COUNT,
    LANE_SIN,
    LATERAL,
    LENGTH,
    MAP,
    ROWS,
    SCENARIO,
    SIN,
    SPEED,
    STEERING,
    STEP,
    TYPE,
    WEIGHTS,
    WIDTH,
    Maps,
    Params,
    Scenarios,
    Worlds,
    X,
    Y,
)
from roadworthy.sim.state import GOAL as NEXT_GOAL

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_FAR = np.float32(1.0 / FAR_M)
_SPEED, _ACCELERATION = np.float32(1.0 / SPEED_MPS), np.float32(1.0 / ACCELERATION_MPS2)
_STEERING, _OFFSET = np.float32(1.0 / STEERING_RAD), np.float32(1.0 / OFFSET_M)
_LENGTH, _WIDTH = np.float32(1.0 / LENGTH_M), np.float32(1.0 / WIDTH_M)

EGO_SIZE, GOAL_SIZE, WEIGHT_COUNT = len(EGO), len(GOAL), len(CONDITIONING)
PARTNER_SIZE, LANE_SIZE, EDGE_SIZE, LIGHT_SIZE = len(PARTNER), len(LANE), len(EDGE), len(LIGHT)
_CYCLIST, _PEDESTRIAN = int(AgentType.CYCLIST), int(AgentType.PEDESTRIAN)

_NOWHERE_M = np.float32(1e7)  # who is further from the origin is lost, and sees nothing
_NO_DIRECTION = np.float32(2.0)
# A partner's key: its squared distance as the bits of a float (which order as the numbers do), the last eight of them
# replaced by its number. So partners are sorted to 1.5 mm in 100 m, and the lower number is first where two are level.
NUMBER_BITS = np.int32(255)
NO_KEY = np.int32(2**31 - 1)


@rule(inline=True)
def observe(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: Whole, a: Whole, p: Params, row_out: Floats) -> None:
    """Write every number of the row of agent a of world w. An agent that is nowhere (NaN, or lost) sees only zeros.

    Partners appear as `update_appearances` wrote them last. `cpu.py` runs each part of this as a loop over all agents,
    which is faster.
    """
    agents, flags, clock, seed = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w], worlds.seeds[w]
    m, s, step, count = clock[MAP], clock[SCENARIO], clock[STEP], clock[AGENT_COUNT]
    if not has_valid_pose(agents, a):
        zero(row_out, 0, len(row_out))
        return
    observe_ego(agents, flags, a, p, row_out)
    observe_partners(
        agents, flags, worlds.appearance[w], worlds.order[w], count, a, scenarios.dt[s], step, seed, p, row_out
    )
    observe_roads(agents, a, maps, m, step, seed, p, row_out)
    observe_stop_lines(agents, a, maps, m, scenarios, s, step, seed, p, row_out)


@rule(inline=True)
def observe_ego(agents: Floats, flags: Ints, a: Whole, p: Params, row_out: Floats) -> None:
    """The agent itself, its goals and what it is rewarded for."""
    write_ego(agents, flags, a, row_out, 0)
    write_goals(agents, flags, a, p, row_out, EGO_SIZE)
    weights_at = counts_at(p) - WEIGHT_COUNT
    for k in range(WEIGHT_COUNT):
        row_out[weights_at + k] = agents[WEIGHTS + k, a]


@rule(inline=True)
def observe_partners(
    agents: Floats,
    flags: Ints,
    appearance: Floats,
    keys: Ints,
    count: Whole,
    a: Whole,
    dt: Real,
    step: Whole,
    seed: Any,
    p: Params,
    row_out: Floats,
) -> None:
    """The other agents."""
    at = EGO_SIZE + GOAL_SIZE
    zero(row_out, at, lanes_at(p))
    seen = 0
    if not (p.blind_rate > _ZERO and is_blind(seed, a, step, dt, p.blind_rate, p.blind_s)):
        seen = write_partners_in_range(
            agents, flags, appearance, a, count, p.partner_range, keys, row_out, at, p.partners
        )
    row_out[counts_at(p)] = share(seen, p.partners)
    if p.dropout > _ZERO:
        drop(draws.draw(seed, a, step, draws.DROPOUT), 0, p.dropout, row_out, at, PARTNER_SIZE, seen, p.partners)


@rule(inline=True)
def observe_roads(
    agents: Floats, a: Whole, maps: Maps, m: Whole, step: Whole, seed: Any, p: Params, row_out: Floats
) -> None:
    """The pieces of lanes and of road edges around."""
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    place = maps.cell_lists[m, map_cell(maps.sizes[m], maps.origins[m], x, y)]
    lanes = min(p.lanes, maps.sizes[m, LANE_POINT_COUNT])
    edges = min(p.edges, maps.sizes[m, EDGE_POINT_COUNT])
    at, after = lanes_at(p), edges_at(p)
    write_lanes(maps.lane_points[m], maps.lane_lists[m, place], lanes, x, y, cos, sin, row_out, at, p.lanes)
    write_edges(maps.edge_points[m], maps.edge_lists[m, place], edges, x, y, cos, sin, row_out, after, p.edges)
    clear(row_out, at, LANE_SIZE, lanes, p.lanes)
    clear(row_out, after, EDGE_SIZE, edges, p.edges)
    row_out[counts_at(p) + 1] = share(lanes, p.lanes)
    row_out[counts_at(p) + 2] = share(edges, p.edges)
    if p.dropout > _ZERO:
        key = draws.draw(seed, a, step, draws.DROPOUT)
        drop(key, 1, p.dropout, row_out, at, LANE_SIZE, lanes, p.lanes)
        drop(key, 2, p.dropout, row_out, after, EDGE_SIZE, edges, p.edges)


@rule(inline=True)
def observe_stop_lines(
    agents: Floats,
    a: Whole,
    maps: Maps,
    m: Whole,
    scenarios: Scenarios,
    s: Whole,
    step: Whole,
    seed: Any,
    p: Params,
    row_out: Floats,
) -> None:
    """The stop lines ahead."""
    at = lights_at(p)
    zero(row_out, at, at + LIGHT_SIZE * p.lights)
    seen = write_stop_lines(agents, a, maps, m, scenarios, s, step, seed, p, row_out, at)
    row_out[counts_at(p) + 3] = share(seen, p.lights)
    if p.dropout > _ZERO:
        drop(draws.draw(seed, a, step, draws.DROPOUT), 3, p.dropout, row_out, at, LIGHT_SIZE, seen, p.lights)


@rule(inline=True)
def lanes_at(p: Params) -> Any:
    """Where the block of lanes begins in a row; the others follow."""
    return EGO_SIZE + GOAL_SIZE + PARTNER_SIZE * p.partners


@rule(inline=True)
def edges_at(p: Params) -> Any:
    return lanes_at(p) + LANE_SIZE * p.lanes


@rule(inline=True)
def lights_at(p: Params) -> Any:
    return edges_at(p) + EDGE_SIZE * p.edges


@rule(inline=True)
def counts_at(p: Params) -> Any:
    """Where the counts of the four blocks begin, after the weights."""
    return lights_at(p) + LIGHT_SIZE * p.lights + WEIGHT_COUNT


@rule(inline=True)
def has_valid_pose(agents: Floats, a: Whole) -> bool:
    """Whether the agent's place and heading are numbers, and not absurd ones."""
    is_placed = abs(agents[X, a]) < _NOWHERE_M and abs(agents[Y, a]) < _NOWHERE_M
    return is_placed and abs(agents[COS, a]) < _NO_DIRECTION and abs(agents[SIN, a]) < _NO_DIRECTION


@rule(inline=True)
def map_cell(sizes: Ints, origin: Floats, x: Real, y: Real) -> Any:
    """The number of the grid cell that a place is in, or the nearest one."""
    return cell_along(y, origin[1], sizes[ROWS]) * sizes[COLUMNS] + cell_along(x, origin[0], sizes[COLUMNS])


@rule(inline=True)
def share(count: Whole, most: Whole) -> Any:
    """A count as a part of the most that there may be."""
    return np.float32(count) / np.float32(max(most, 1))


@rule(inline=True)
def write_ego(agents: Floats, flags: Ints, a: Whole, row_out: Floats, at: Whole) -> None:
    """The agent itself, and the lane that it is on."""
    row_out[at] = clipped(agents[SPEED, a] * _SPEED)
    row_out[at + 1] = clipped(agents[ACCELERATION, a] * _ACCELERATION)
    row_out[at + 2] = clipped(agents[LATERAL, a] * _ACCELERATION)
    row_out[at + 3] = clipped(agents[STEERING, a] * _STEERING)
    row_out[at + 4] = clipped(agents[LENGTH, a] * _LENGTH)
    row_out[at + 5] = clipped(agents[WIDTH, a] * _WIDTH)
    row_out[at + 6] = _ONE if flags[TYPE, a] == _CYCLIST else _ZERO
    row_out[at + 7] = _ONE if flags[TYPE, a] == _PEDESTRIAN else _ZERO
    row_out[at + 8] = clipped(agents[LANE_OFFSET, a] * _OFFSET)
    row_out[at + 9] = clipped(agents[LANE_SIN, a])
    row_out[at + 10] = clipped(agents[LANE_COS, a])
    row_out[at + 11] = clipped(agents[LANE_LIMIT, a] * _SPEED)


@rule(inline=True)
def write_goals(agents: Floats, flags: Ints, a: Whole, p: Params, row_out: Floats, at: Whole) -> None:
    """The next goal and the one after it."""
    goal, goals = flags[NEXT_GOAL, a], flags[GOAL_COUNT, a]
    for k in range(2):
        ahead, left = _ZERO, _ZERO
        if goal >= 0 and goal + k < goals:
            line = goal_line(goal + k, p)
            dx, dy = agents[line, a] - agents[X, a], agents[line + 1, a] - agents[Y, a]
            ahead = clipped((dx * agents[COS, a] + dy * agents[SIN, a]) * _FAR)
            left = clipped((dy * agents[COS, a] - dx * agents[SIN, a]) * _FAR)
        row_out[at + 2 * k] = ahead
        row_out[at + 2 * k + 1] = left
    row_out[at + 4] = _ONE if goal + 1 < goals else _ZERO
    row_out[at + 5] = share(max(goals - goal, 0), goals)


@rule(inline=True)
def is_blind(seed: Whole, a: Whole, step: Whole, dt: Real, rate: Real, seconds: Real) -> bool:
    """Whether the agent sees no partners: that may begin at any step, by a rate per second, and lasts so long."""
    steps = max(int(seconds / dt + _HALF), 1)
    chance = rate * dt
    for before in range(min(steps, step + 1)):
        if draws.uniform(seed, a, step - before, draws.BLIND) < chance:
            return True
    return False


@rule(inline=True)
def update_appearances(worlds: Worlds, w: Whole) -> None:
    """Write what others see of each agent of a world; once, before the first of them looks."""
    agents, types, appearance = worlds.agents[w], worlds.agent_flags[w, TYPE], worlds.appearance[w]
    for b in range(worlds.clocks[w, AGENT_COUNT]):
        update_appearance(agents, types, appearance, b)


@rule(inline=True)
def update_appearance(agents: Floats, types: Ints, appearance: Floats, b: Whole) -> None:
    """Write what others see of agent b."""
    appearance[b, 0], appearance[b, 1], appearance[b, 2], appearance[b, 3] = (
        agents[X, b],
        agents[Y, b],
        agents[COS, b],
        agents[SIN, b],
    )
    appearance[b, 4], appearance[b, 5], appearance[b, 6] = agents[SPEED, b], agents[LENGTH, b], agents[WIDTH, b]
    appearance[b, 7] = _ONE if types[b] == _PEDESTRIAN else (_HALF if types[b] == _CYCLIST else _ZERO)


@rule(inline=True)
def write_partners_in_range(
    agents: Floats,
    flags: Ints,
    appearance: Floats,
    a: Whole,
    count: Whole,
    reach: Real,
    keys: Ints,
    row: Floats,
    at: Whole,
    n: Whole,
) -> Any:
    """The present agents within reach, nearest first; returns how many were written.

    keys: room for count numbers, filled up to a multiple of eight.
    """
    found = list_partners(agents, flags, a, count, reach * reach, keys)
    seen = min(found, n)
    # The place of a partner is the number of smaller keys.
    room = (found + EIGHT - 1) // EIGHT * EIGHT
    for k in range(found, room):
        keys[k] = NO_KEY
    for i in range(found):
        key, place = keys[i], 0
        for k in range(0, room, EIGHT):
            place += count_below(keys, k, key)
        if place < seen:
            row[at + place] = np.float32(key & NUMBER_BITS)
    for k in range(seen):
        keys[k] = np.int32(row[at + k])
    for k in range(seen, (seen + EIGHT - 1) // EIGHT * EIGHT):
        keys[k] = 0
    write_partners(appearance.T, keys, seen, agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a], row, at, n)
    return seen


@rule(inline=True)
def list_partners(agents: Floats, flags: Ints, a: Whole, count: Whole, range_2: Real, keys: Ints) -> Any:
    """Write the keys of all partners in sight, in the order of their numbers; returns how many there are."""
    xs, ys, is_present = agents[X], agents[Y], flags[IS_PRESENT]
    x, y = xs[a], ys[a]
    for b in range(count):
        keys[b] = partner_key(xs[b] - x, ys[b] - y, is_present[b], b, range_2)
    keys[a] = NO_KEY
    n = 0
    for b in range(count):
        key = keys[b]
        keys[n] = key
        n += int(key != NO_KEY)
    return n


@rule(inline=True)
def partner_key(dx: Real, dy: Real, is_present: Whole, b: Whole, range_2: Real) -> Any:
    """The key of agent b, so far away; NO_KEY if it can't be seen."""
    distance_2 = np.float32(dx * dx + dy * dy)
    key = (distance_2.view(np.int32) & ~NUMBER_BITS) | np.int32(b)
    return key if (distance_2 <= range_2) & (is_present != 0) else NO_KEY


@rule(inline=True)
def zero(row_out: Floats, start: Whole, stop: Whole) -> None:
    """Zero a part of the row: in one go, which is faster than what is left of each feature in turn."""
    for k in range(start, stop):
        row_out[k] = _ZERO


@rule(inline=True)
def clear(row_out: Floats, at: Whole, features: Whole, count: Whole, n: Whole) -> None:
    """Zero the entries from count on of a block of n."""
    if count < n:
        for f in range(features):
            for k in range(at + f * n + count, at + f * n + n):
                row_out[k] = _ZERO


@rule(inline=True)
def drop(
    key: Whole, block: Whole, chance: Real, row_out: Floats, at: Whole, features: Whole, count: Whole, n: Whole
) -> None:
    """Hide each of the first count entries of a block of n by chance."""
    for k in range(count):
        if draws.uniform(key, block, k, draws.DROPOUT) < chance:
            for f in range(features):
                row_out[at + f * n + k] = _ZERO
