"""What an agent sees: one row of numbers in its own frame (x ahead, y to the left), as `layout.py` lays it out.

A block's count says how many of its entries are filled. An entry that dropout hides keeps its place and its share in
the count, and all its features are 0: no true entry looks like that, since the cosine and sine of a direction are never
both 0, and a stop line has a light or a sign. A blind agent sees no partners at all, and their count is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.compile import inlined
from roadworthy.scenario.grid import cell_along
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, AgentType, Floats, Ints, LightState
from roadworthy.sim import draws
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
from roadworthy.sim.lights import light_state
from roadworthy.sim.pieces import Real, Whole, clipped, write_edges, write_lanes, write_partners
from roadworthy.sim.state import (
    ACCELERATION,
    AGENT_COUNT,
    COLUMNS,
    COS,
    EDGE_POINT_COUNT,
    GOAL_COUNT,
    GOALS,
    IS_PRESENT,
    LANE_COS,
    LANE_LIMIT,
    LANE_OFFSET,
    LANE_POINT_COUNT,
    LANE_SIN,
    LATERAL,
    LENGTH,
    LIGHT_COUNT,
    LINE_COS,
    LINE_SIN,
    LINE_X,
    LINE_Y,
    MAP,
    ROWS,
    SCENARIO,
    SIGN_COUNT,
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

_EGO_SIZE, _GOAL_SIZE, _WEIGHT_COUNT = len(EGO), len(GOAL), len(CONDITIONING)
_PARTNER_SIZE, _LANE_SIZE, _EDGE_SIZE, _LIGHT_SIZE = len(PARTNER), len(LANE), len(EDGE), len(LIGHT)
_KIND = [f.name for f in PARTNER].index("kind")
_CYCLIST, _PEDESTRIAN = int(AgentType.CYCLIST), int(AgentType.PEDESTRIAN)

_NOWHERE_M = np.float32(1e7)  # who is further from the origin is lost, and sees nothing
_NO_DIRECTION = np.float32(2.0)
# A partner's key: its squared distance as the bits of a float (which order as the numbers do), the last eight of them
# replaced by its number. So partners are sorted to 1.5 mm in 100 m, and the lower number is first where two are level.
_NUMBER_BITS = np.int32(255)
_NO_KEY = np.int32(2**31 - 1)
_TOGETHER = 32  # keys are compared so many at a time
# A stop line is ahead if it is, as seen from the agent's middle, within this distance, and is crossed in about the
# direction in which the agent points (60 degrees).
_LINE_RANGE_2 = np.float32(100.0**2)
_SAME_WAY = np.float32(0.5)
# Working lines of the block of lights while it is filled: squared distance, and number.
_LINE_DISTANCE, _LINE_NUMBER = 2, 3
_RED = sum(1 << state for state in RED_STATES)
_AMBER = sum(1 << s for s in (LightState.ARROW_CAUTION, LightState.CAUTION, LightState.FLASHING_CAUTION))
_GREEN = sum(1 << state for state in GREEN_STATES)


@inlined
def observe(worlds: Worlds, maps: Maps, scenarios: Scenarios, w: Whole, a: Whole, p: Params, row_out: Floats) -> None:
    """Write every number of the row of agent a of world w. An agent that is nowhere (NaN, or lost) sees only zeros."""
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    m, s, step = clock[MAP], clock[SCENARIO], clock[STEP]
    seed: Any = worlds.seeds[w]
    if not is_somewhere(agents, a):
        for k in range(len(row_out)):
            row_out[k] = _ZERO
        return
    partners_at = _EGO_SIZE + _GOAL_SIZE
    lanes_at = partners_at + _PARTNER_SIZE * p.partners
    edges_at = lanes_at + _LANE_SIZE * p.lanes
    lights_at = edges_at + _EDGE_SIZE * p.edges
    weights_at = lights_at + _LIGHT_SIZE * p.lights
    counts_at = weights_at + _WEIGHT_COUNT

    see_self(agents, marks, a, row_out, 0)
    see_goals(agents, marks, a, row_out, _EGO_SIZE)
    partners = 0
    if not (p.blind_rate > _ZERO and is_blind(seed, a, step, scenarios.dt[s], p.blind_rate, p.blind_s)):
        count, reach, keys = clock[AGENT_COUNT], p.partner_range, worlds.order[w]
        partners = see_partners(agents, marks, a, count, reach, keys, row_out, partners_at, p.partners)
    place = maps.cell_lists[m, map_cell(maps.sizes[m], maps.origins[m], agents[X, a], agents[Y, a])]
    lanes = min(p.lanes, maps.sizes[m, LANE_POINT_COUNT])
    edges = min(p.edges, maps.sizes[m, EDGE_POINT_COUNT])
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    write_lanes(maps.lane_points[m], maps.lane_lists[m, place], lanes, x, y, cos, sin, row_out, lanes_at, p.lanes)
    write_edges(maps.edge_points[m], maps.edge_lists[m, place], edges, x, y, cos, sin, row_out, edges_at, p.edges)
    lights = see_lights(agents, a, maps, m, scenarios, s, step, seed, p, row_out, lights_at)
    clear(row_out, partners_at, _PARTNER_SIZE, partners, p.partners)
    clear(row_out, lanes_at, _LANE_SIZE, lanes, p.lanes)
    clear(row_out, edges_at, _EDGE_SIZE, edges, p.edges)
    clear(row_out, lights_at, _LIGHT_SIZE, lights, p.lights)
    for k in range(_WEIGHT_COUNT):
        row_out[weights_at + k] = agents[WEIGHTS + k, a]
    row_out[counts_at] = share(partners, p.partners)
    row_out[counts_at + 1] = share(lanes, p.lanes)
    row_out[counts_at + 2] = share(edges, p.edges)
    row_out[counts_at + 3] = share(lights, p.lights)
    if p.dropout > _ZERO:
        key = draws.draw(seed, a, step, draws.DROPOUT)
        drop(key, 0, p.dropout, row_out, partners_at, _PARTNER_SIZE, partners, p.partners)
        drop(key, 1, p.dropout, row_out, lanes_at, _LANE_SIZE, lanes, p.lanes)
        drop(key, 2, p.dropout, row_out, edges_at, _EDGE_SIZE, edges, p.edges)
        drop(key, 3, p.dropout, row_out, lights_at, _LIGHT_SIZE, lights, p.lights)


@inlined
def is_somewhere(agents: Floats, a: Whole) -> bool:
    """Whether the agent's place and heading are numbers, and not absurd ones."""
    is_placed = abs(agents[X, a]) < _NOWHERE_M and abs(agents[Y, a]) < _NOWHERE_M
    return is_placed and abs(agents[COS, a]) < _NO_DIRECTION and abs(agents[SIN, a]) < _NO_DIRECTION


@inlined
def map_cell(sizes: Ints, origin: Floats, x: Real, y: Real) -> Any:
    """The number of the grid cell that a place is in, or the nearest one."""
    return cell_along(y, origin[1], sizes[ROWS]) * sizes[COLUMNS] + cell_along(x, origin[0], sizes[COLUMNS])


@inlined
def share(count: Whole, most: Whole) -> Any:
    """A count as a part of the most that there may be."""
    return np.float32(count) / np.float32(max(most, 1))


@inlined
def see_self(agents: Floats, marks: Ints, a: Whole, row_out: Floats, at: Whole) -> None:
    """The agent itself, and the lane that it is on."""
    row_out[at] = clipped(agents[SPEED, a] * _SPEED)
    row_out[at + 1] = clipped(agents[ACCELERATION, a] * _ACCELERATION)
    row_out[at + 2] = clipped(agents[LATERAL, a] * _ACCELERATION)
    row_out[at + 3] = clipped(agents[STEERING, a] * _STEERING)
    row_out[at + 4] = clipped(agents[LENGTH, a] * _LENGTH)
    row_out[at + 5] = clipped(agents[WIDTH, a] * _WIDTH)
    row_out[at + 6] = _ONE if marks[TYPE, a] == _CYCLIST else _ZERO
    row_out[at + 7] = _ONE if marks[TYPE, a] == _PEDESTRIAN else _ZERO
    row_out[at + 8] = clipped(agents[LANE_OFFSET, a] * _OFFSET)
    row_out[at + 9] = clipped(agents[LANE_SIN, a])
    row_out[at + 10] = clipped(agents[LANE_COS, a])
    row_out[at + 11] = clipped(agents[LANE_LIMIT, a] * _SPEED)


@inlined
def see_goals(agents: Floats, marks: Ints, a: Whole, row_out: Floats, at: Whole) -> None:
    """The next goal and the one after it."""
    goal, goals = marks[NEXT_GOAL, a], marks[GOAL_COUNT, a]
    for k in range(2):
        ahead, left = _ZERO, _ZERO
        if goal >= 0 and goal + k < goals:
            line = GOALS + 2 * (goal + k)
            dx, dy = agents[line, a] - agents[X, a], agents[line + 1, a] - agents[Y, a]
            ahead = clipped((dx * agents[COS, a] + dy * agents[SIN, a]) * _FAR)
            left = clipped((dy * agents[COS, a] - dx * agents[SIN, a]) * _FAR)
        row_out[at + 2 * k] = ahead
        row_out[at + 2 * k + 1] = left
    row_out[at + 4] = _ONE if goal + 1 < goals else _ZERO
    row_out[at + 5] = share(max(goals - goal, 0), goals)


@inlined
def is_blind(seed: Whole, a: Whole, step: Whole, dt: Real, rate: Real, seconds: Real) -> bool:
    """Whether the agent sees no partners: that may begin at any step, by a rate per second, and lasts so long."""
    steps = max(int(seconds / dt + _HALF), 1)
    chance = rate * dt
    for before in range(min(steps, step + 1)):
        if draws.uniform(seed, a, step - before, draws.BLIND) < chance:
            return True
    return False


@inlined
def see_partners(
    agents: Floats, marks: Ints, a: Whole, count: Whole, reach: Real, keys: Ints, row: Floats, at: Whole, n: Whole
) -> Any:
    """The present agents within reach, nearest first; returns how many were written. keys: room for count numbers."""
    found = list_partners(agents, marks, a, count, reach * reach, keys)
    seen = min(found, n)
    # The place of a partner is the number of smaller keys. Filled up, so that no remainder is compared one by one.
    room = min((found + _TOGETHER - 1) // _TOGETHER * _TOGETHER, len(keys))
    for k in range(found, room):
        keys[k] = _NO_KEY
    for i in range(found):
        key = keys[i]
        place = np.uint32(0)  # a sum of uint32 stays one, while Numba widens one of int32, which halves the speed
        for j in range(room):
            place = np.uint32(place + np.uint32(keys[j] < key))
        if place < seen:
            row[at + place] = np.float32(key & _NUMBER_BITS)
    for k in range(seen):
        keys[k] = np.int32(row[at + k])
    write_partners(agents, keys, seen, agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a], row, at, n)
    types, kinds = marks[TYPE], at + _KIND * n
    for k in range(seen):
        type = types[keys[k]]
        row[kinds + k] = _ONE if type == _PEDESTRIAN else (_HALF if type == _CYCLIST else _ZERO)
    return seen


@inlined
def list_partners(agents: Floats, marks: Ints, a: Whole, count: Whole, range_2: Real, keys: Ints) -> Any:
    """Write the keys of all partners in sight, in the order of their numbers; returns how many there are."""
    xs, ys, is_present = agents[X], agents[Y], marks[IS_PRESENT]
    x, y = xs[a], ys[a]
    for b in range(count):
        dx, dy = xs[b] - x, ys[b] - y
        distance_2 = np.float32(dx * dx + dy * dy)
        key = (distance_2.view(np.int32) & ~_NUMBER_BITS) | np.int32(b)
        keys[b] = key if (distance_2 <= range_2) & (is_present[b] != 0) else _NO_KEY
    keys[a] = _NO_KEY
    n = 0
    for b in range(count):
        key = keys[b]
        keys[n] = key
        n += int(key != _NO_KEY)
    return n


@inlined
def see_lights(
    agents: Floats,
    a: Whole,
    maps: Maps,
    m: Whole,
    scenarios: Scenarios,
    s: Whole,
    step: Whole,
    seed: Whole,
    p: Params,
    row: Floats,
    at: Whole,
) -> Any:
    """The stop lines ahead, of lights and of stop signs, nearest first; returns how many were written."""
    n = p.lights
    if n == 0:
        return 0
    lights = scenarios.counts[s, LIGHT_COUNT]
    count = list_lines(scenarios.lights[s], lights, 0, agents, a, 0, row, at, n)
    count = list_lines(maps.signs[m], maps.sizes[m, SIGN_COUNT], lights, agents, a, count, row, at, n)
    for k in range(count):
        number = int(row[at + _LINE_NUMBER * n + k])
        state = light_state(scenarios, s, number, step, seed, p) if number < lights else 0
        row[at + k] *= _FAR
        row[at + n + k] *= _FAR
        row[at + 2 * n + k] = np.float32((_RED >> state) & 1)
        row[at + 3 * n + k] = np.float32((_AMBER >> state) & 1)
        row[at + 4 * n + k] = np.float32((_GREEN >> state) & 1)
        row[at + 5 * n + k] = _ONE if number >= lights else _ZERO
    return count


@inlined
def list_lines(
    lines: Floats,
    line_count: Whole,
    offset: Whole,
    agents: Floats,
    a: Whole,
    count: Whole,
    row_out: Floats,
    at: Whole,
    n: Whole,
) -> Any:
    """Enter the stop lines ahead into the block, which is kept nearest first; returns how many it holds.

    Line k has the number k + offset. x and y are entered in metres.
    """
    cos, sin = agents[COS, a], agents[SIN, a]
    distances, numbers = at + _LINE_DISTANCE * n, at + _LINE_NUMBER * n
    for line in range(line_count):
        dx, dy = lines[LINE_X, line] - agents[X, a], lines[LINE_Y, line] - agents[Y, a]
        ahead, left = dx * cos + dy * sin, dy * cos - dx * sin
        distance = dx * dx + dy * dy
        is_same_way = lines[LINE_COS, line] * cos + lines[LINE_SIN, line] * sin > _SAME_WAY
        if (ahead > _ZERO) & is_same_way & (distance <= _LINE_RANGE_2):
            if count < n:
                place = count
                count += 1
            elif distance < row_out[distances + n - 1]:
                place = n - 1
            else:
                continue
            while place > 0 and distance < row_out[distances + place - 1]:
                for f in range(_LINE_NUMBER + 1):
                    row_out[at + f * n + place] = row_out[at + f * n + place - 1]
                place -= 1
            row_out[at + place] = ahead
            row_out[at + n + place] = left
            row_out[distances + place] = distance
            row_out[numbers + place] = np.float32(line + offset)
    return count


@inlined
def clear(row_out: Floats, at: Whole, features: Whole, count: Whole, n: Whole) -> None:
    """Zero the entries from count on of a block of n."""
    if count < n:
        for f in range(features):
            for k in range(at + f * n + count, at + f * n + n):
                row_out[k] = _ZERO


@inlined
def drop(
    key: Whole, block: Whole, chance: Real, row_out: Floats, at: Whole, features: Whole, count: Whole, n: Whole
) -> None:
    """Hide each of the first count entries of a block of n by chance."""
    for k in range(count):
        if draws.uniform(key, block, k, draws.DROPOUT) < chance:
            for f in range(features):
                row_out[at + f * n + k] = _ZERO
