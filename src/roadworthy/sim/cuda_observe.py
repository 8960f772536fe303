"""Observations on a GPU: 32 threads write a row into their block's shared memory, then into the buffer as whole lines.

Each number is what `observe.observe` writes, by the same rules; only who writes it differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, int32
from numpy.typing import NDArray

from roadworthy.compile import gpu_kernel, gpu_part, on_gpu
from roadworthy.gpu import cuda, load_eight, store_four
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import draws
from roadworthy.sim.lights import light_state
from roadworthy.sim.observe import (
    EDGE_SIZE,
    EGO_SIZE,
    GOAL_SIZE,
    LANE_SIZE,
    LIGHT_SIZE,
    NO_KEY,
    NUMBER_BITS,
    PARTNER_SIZE,
    WEIGHT_COUNT,
    is_blind,
    is_somewhere,
    map_cell,
    partner_key,
    see_goals,
    see_self,
    share,
)
from roadworthy.sim.pieces import EDGE_SCALES, LANE_SCALES, PARTNER_SCALES, load_entry, write_one
from roadworthy.sim.sightlines import is_ahead, write_line
from roadworthy.sim.state import (
    AGENT_COUNT,
    COS,
    DRIVEN_COUNT,
    EDGE_POINT_COUNT,
    HAS_ENDED,
    IS_DRIVING,
    IS_PRESENT,
    LANE_POINT_COUNT,
    LIGHT_COUNT,
    LINE_COS,
    LINE_SIN,
    LINE_X,
    LINE_Y,
    MAP,
    SCENARIO,
    SIGN_COUNT,
    SIN,
    STEP,
    WEIGHTS,
    Maps,
    Params,
    Rows,
    Scenarios,
    Worlds,
    X,
    Y,
)
from roadworthy.sim.store import MOST_AGENTS

WARP = 32  # threads that write a row
_ZERO = np.float32(0.0)
on_gpu(load_eight)(load_entry)  # an entry's numbers lie side by side
MOST_LINES = 128  # stop lines that an agent may have ahead of it within 100 m; no junction has nearly as many


@gpu_kernel
def observe_all(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
    """Write every row; one that is not active is zero. Block (a, w) writes that of agent a of world w."""
    a, w, lane = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    row, clock = w * cuda.gridDim.x + a, worlds.clocks[w]
    is_running = clock[SCENARIO] >= 0 and clock[HAS_ENDED] == 0
    is_active = is_running and a < clock[DRIVEN_COUNT] and worlds.marks[w, IS_DRIVING, a] != 0
    was_active = rows.active[row]
    cuda.syncthreads()  # until all have read it
    if lane == 0:
        rows.active[row] = is_active
    if is_active:
        _observe(worlds, maps, scenarios, w, a, lane, settings[0], rows.observations[row])
    elif was_active:
        for k in range(4 * lane, rows.observations.shape[1], 4 * WARP):
            store_four(rows.observations[row], k, _ZERO, _ZERO, _ZERO, _ZERO)


@gpu_kernel
def observe_last(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
    """Keep what a row sees where its trial ends, before anything changes. Block (a, w) as above."""
    a, w, lane = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    row = w * cuda.gridDim.x + a
    if rows.trial_ended[row] and worlds.marks[w, IS_DRIVING, a]:
        _observe(worlds, maps, scenarios, w, a, lane, settings[0], rows.final_observations[row])


@gpu_part
def _observe(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, lane: int, p: Params, row_out: Floats
) -> None:
    """What `observe.look_around` writes for agent a of world w."""
    row = cuda.shared.array(0, float32)  # as long as row_out
    agents, marks, clock = worlds.agents[w], worlds.marks[w], worlds.clocks[w]
    m, s, step = clock[MAP], clock[SCENARIO], clock[STEP]
    seed: Any = worlds.seeds[w]
    for k in range(lane, len(row_out), WARP):
        row[k] = _ZERO
    cuda.syncthreads()
    if is_somewhere(agents, a):
        partners_at = EGO_SIZE + GOAL_SIZE
        lanes_at = partners_at + PARTNER_SIZE * p.partners
        edges_at = lanes_at + LANE_SIZE * p.lanes
        lights_at = edges_at + EDGE_SIZE * p.edges
        weights_at = lights_at + LIGHT_SIZE * p.lights
        counts_at = weights_at + WEIGHT_COUNT
        x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]

        place = maps.cell_lists[m, map_cell(maps.sizes[m], maps.origins[m], x, y)]
        lanes = min(p.lanes, maps.sizes[m, LANE_POINT_COUNT])
        table, numbers = maps.lane_points[m], maps.lane_lists[m, place]
        for k in range(lane, lanes, WARP):
            write_one(table, numbers[k], LANE_SCALES, x, y, cos, sin, row, lanes_at + k, p.lanes)
        edges = min(p.edges, maps.sizes[m, EDGE_POINT_COUNT])
        table, numbers = maps.edge_points[m], maps.edge_lists[m, place]
        for k in range(lane, edges, WARP):
            write_one(table, numbers[k], EDGE_SCALES, x, y, cos, sin, row, edges_at + k, p.edges)
        partners = 0
        if not (p.blind_rate > _ZERO and is_blind(seed, a, step, scenarios.dt[s], p.blind_rate, p.blind_s)):
            partners = _see_partners(worlds, w, a, lane, p.partner_range, row, partners_at, p.partners)
        lights = _see_lights(worlds, maps, scenarios, w, a, lane, row, lights_at, p)
        for k in range(lane, WEIGHT_COUNT, WARP):
            row[weights_at + k] = agents[WEIGHTS + k, a]
        if lane == 0:
            see_self(agents, marks, a, row, 0)
        if lane == 1:
            see_goals(agents, marks, a, row, EGO_SIZE)
        if lane == 2:
            row[counts_at] = share(partners, p.partners)
            row[counts_at + 1] = share(lanes, p.lanes)
            row[counts_at + 2] = share(edges, p.edges)
            row[counts_at + 3] = share(lights, p.lights)
        if p.dropout > _ZERO:
            cuda.syncthreads()
            key = draws.draw(seed, a, step, draws.DROPOUT)
            _drop(key, 0, p.dropout, row, partners_at, PARTNER_SIZE, partners, p.partners, lane)
            _drop(key, 1, p.dropout, row, lanes_at, LANE_SIZE, lanes, p.lanes, lane)
            _drop(key, 2, p.dropout, row, edges_at, EDGE_SIZE, edges, p.edges, lane)
            _drop(key, 3, p.dropout, row, lights_at, LIGHT_SIZE, lights, p.lights, lane)
    cuda.syncthreads()
    for k in range(4 * lane, len(row_out), 4 * WARP):
        store_four(row_out, k, row[k], row[k + 1], row[k + 2], row[k + 3])


@gpu_part
def _see_partners(worlds: Worlds, w: int, a: int, lane: int, reach: float, row: Floats, at: int, n: int) -> int:
    """The present agents within reach, nearest first; gives how many were written."""
    found = cuda.shared.array(1, int32)
    keys = cuda.shared.array(MOST_AGENTS, int32)
    nearest = cuda.shared.array(MOST_AGENTS, int32)
    agents, marks, count = worlds.agents[w], worlds.marks[w], worlds.clocks[w, AGENT_COUNT]
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    found[0] = 0
    cuda.syncthreads()
    for b in range(lane, count, WARP):
        key = partner_key(agents[X, b] - x, agents[Y, b] - y, marks[IS_PRESENT, b], b, reach * reach)
        if key != NO_KEY and b != a:
            keys[cuda.atomic.add(found, 0, 1)] = key  # in any order: their places come from the keys
    cuda.syncthreads()
    seen = min(found[0], n)
    for i in range(lane, found[0], WARP):
        key, place = keys[i], 0
        for j in range(found[0]):
            place += keys[j] < key
        if place < seen:
            nearest[place] = key & NUMBER_BITS
    cuda.syncthreads()
    looks = worlds.looks[w].T
    for k in range(lane, seen, WARP):
        write_one(looks, nearest[k], PARTNER_SCALES, x, y, cos, sin, row, at + k, n)
    return seen


@gpu_part
def _see_lights(
    worlds: Worlds,
    maps: Maps,
    scenarios: Scenarios,
    w: int,
    a: int,
    lane: int,
    row: Floats,
    at: int,
    p: Params,
) -> int:
    """The stop lines ahead, nearest first (the lower number where two are level); gives how many were written."""
    found = cuda.shared.array(1, int32)
    distances = cuda.shared.array(MOST_LINES, float32)
    numbers = cuda.shared.array(MOST_LINES, int32)
    agents, clock, n = worlds.agents[w], worlds.clocks[w], p.lights
    s, m, step, seed = clock[SCENARIO], clock[MAP], clock[STEP], worlds.seeds[w]
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    lights, signs = scenarios.counts[s, LIGHT_COUNT], maps.sizes[m, SIGN_COUNT]
    found[0] = 0
    cuda.syncthreads()
    _list_lines(scenarios.lights[s], lights, 0, x, y, cos, sin, lane, found, distances, numbers)
    _list_lines(maps.signs[m], signs, lights, x, y, cos, sin, lane, found, distances, numbers)
    cuda.syncthreads()
    count = min(found[0], MOST_LINES)
    for i in range(lane, count, WARP):
        distance, number, place = distances[i], numbers[i], 0
        for j in range(count):
            place += distances[j] < distance or (distances[j] == distance and numbers[j] < number)
        if place < n:
            is_sign = number >= lights
            if is_sign:
                dx, dy = maps.signs[m, LINE_X, number - lights] - x, maps.signs[m, LINE_Y, number - lights] - y
                state = 0
            else:
                dx, dy = scenarios.lights[s, LINE_X, number] - x, scenarios.lights[s, LINE_Y, number] - y
                state = light_state(scenarios, s, number, step, seed, p)
            write_line(dx * cos + dy * sin, dy * cos - dx * sin, state, is_sign, row, at + place, n)
    return min(count, n)


@gpu_part
def _list_lines(
    lines: Floats,
    count: int,
    offset: int,
    x: float,
    y: float,
    cos: float,
    sin: float,
    lane: int,
    found: Ints,
    distances: Floats,
    numbers: Ints,
) -> None:
    """List the stop lines ahead, in any order; line k has the number k + offset."""
    for k in range(lane, count, WARP):
        dx, dy = lines[LINE_X, k] - x, lines[LINE_Y, k] - y
        if is_ahead(dx, dy, lines[LINE_COS, k], lines[LINE_SIN, k], cos, sin):
            i = cuda.atomic.add(found, 0, 1)
            if i < MOST_LINES:
                distances[i], numbers[i] = dx * dx + dy * dy, k + offset


@gpu_part
def _drop(
    key: int, block: int, chance: float, row: Floats, at: int, features: int, count: int, n: int, lane: int
) -> None:
    """Hide each of the first count entries of a block of n by chance."""
    for k in range(lane, count, WARP):
        if draws.uniform(key, block, k, draws.DROPOUT) < chance:
            for f in range(features):
                row[at + f * n + k] = _ZERO
