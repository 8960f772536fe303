"""Observations on a GPU: a warp (32 threads) writes a row, neighboring threads to neighboring places.

The rules are those of the CPU (rules/observe_*.py); only the distribution over threads differs. The sizes and starts of
the blocks (layout.py) are compiled in as constants, so that most of the remaining work is loading and storing.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import cuda_kernel
from roadworthy.kernels.cuda import IS_SIMULATED, cuda, float32, int32, int64, natural, store_four
from roadworthy.kernels.vectors import EIGHT
from roadworthy.scenario.schema import Floats, Ints, Longs
from roadworthy.sim import state
from roadworthy.sim.config import SimConfig
from roadworthy.sim.layout import (
    COUNTED,
    EDGES_COUNT,
    LANES_COUNT,
    LIGHTS_COUNT,
    PARTNERS_COUNT,
    ObservationLayout,
    layout,
)
from roadworthy.sim.maps.road_points import load_entry
from roadworthy.sim.maps.scenario_store import MOST_AGENTS
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.disturbances import is_blind
from roadworthy.sim.rules.observation import has_valid_pose, map_cell, share
from roadworthy.sim.rules.observe_conditioning import WEIGHT_COUNT
from roadworthy.sim.rules.observe_ego import write_ego
from roadworthy.sim.rules.observe_goals import write_goals
from roadworthy.sim.rules.observe_partners import NO_KEY, NUMBER_BITS, PARTNER_SIZE, partner_key
from roadworthy.sim.rules.observe_roads import EDGE_SIZE, LANE_SIZE
from roadworthy.sim.rules.observe_simd import EDGE_SCALES, LANE_SCALES, PARTNER_SCALES, write_entry, write_one
from roadworthy.sim.rules.observe_stop_lines import LIGHT_SIZE, is_ahead, write_line
from roadworthy.sim.rules.traffic_lights import light_state
from roadworthy.sim.state import Maps, Params, Pose, Rows, Scenarios, Worlds

WARP = 32  # threads that write a row
# Rows of a world that a thread block writes: four take 5% less time than one or eight. The CUDA simulator has only the
# barrier of a whole thread block, so its blocks have one row.
WARPS = 1 if IS_SIMULATED else 4
_REGISTERS = 64  # per thread, so that half of the threads that fit on a multiprocessor run at once
MOST_LINES = 128  # stop lines ahead of an agent within 100 m; no junction has nearly as many
_ZERO = np.float32(0.0)
_NO_ENTRY = (_ZERO,) * EIGHT
# Blocks of one entry stand at the start of a row, at the same places in every layout, and at its end.
_ANY = layout(SimConfig())
_GOALS_AT, _HEAD, _TAIL = _ANY["goal"].start, _ANY["partners"].start, _ANY.size - _ANY["conditioning"].start
_SINGLE_EACH, _ONE_EACH = (WARPS, _HEAD + _TAIL), (WARPS, 1)
_AGENTS_EACH, _KEYS_EACH, _LINES_EACH = (WARPS, MOST_AGENTS), (WARPS, MOST_AGENTS + EIGHT), (WARPS, MOST_LINES)


class Observers(NamedTuple):
    """The kernels that write observations."""

    observe_all: Any
    observe_last: Any


@cache
def observers(row: ObservationLayout, is_clean: bool) -> Observers:
    """Return the kernels for a layout. is_clean: neither dropout nor blindness can occur."""
    entries = tuple(row[name].entries for name in COUNTED)
    starts = tuple(row[name].start for name in (*COUNTED, "conditioning"))

    @cuda_kernel(registers=_REGISTERS)
    def observe_all(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        """Write every row; inactive rows are zero. Thread block (x, y, z) has some rows of a world, see `_world`."""
        w, warp, lane = _world(), natural(cuda.threadIdx.x) // WARP, natural(cuda.threadIdx.x) % WARP
        a, row_count = natural(cuda.blockIdx.x) * WARPS + warp, _rows_per_world(worlds, rows)
        if w >= worlds.clocks.shape[0] or a >= row_count:
            return
        clock, row = worlds.clocks[w], w * row_count + a
        # Load everything before using anything, so that the loads overlap.
        scenario, has_ended, driven = clock[state.SCENARIO], clock[state.EPISODE_ENDED], clock[state.DRIVEN_COUNT]
        is_driving, was_active = worlds.agent_flags[w, state.IS_DRIVING, a], rows.active[row]
        is_active = (scenario >= 0) & (has_ended == 0) & (a < driven) & (is_driving != 0)
        _wait()  # until all threads have read `active`
        if lane == 0:
            rows.active[row] = is_active
        if is_active:
            _observe(
                worlds,
                maps,
                scenarios,
                w,
                a,
                warp,
                lane,
                settings[0],
                rows.observations[row],
                entries,
                starts,
                is_clean,
            )
        elif was_active:
            for k in range(4 * lane, rows.observations.shape[1], 4 * WARP):
                store_four(rows.observations[row], k, _ZERO, _ZERO, _ZERO, _ZERO)

    @cuda_kernel(registers=_REGISTERS)
    def observe_last(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        """Write the final observation of rows whose trial ended, before anything is reset."""
        w, warp, lane = _world(), natural(cuda.threadIdx.x) // WARP, natural(cuda.threadIdx.x) % WARP
        a, row_count = natural(cuda.blockIdx.x) * WARPS + warp, _rows_per_world(worlds, rows)
        if w >= worlds.clocks.shape[0] or a >= row_count:
            return
        if rows.trial_ended[w * row_count + a] and worlds.agent_flags[w, state.IS_DRIVING, a]:
            out = rows.final_observations[w * row_count + a]
            _observe(worlds, maps, scenarios, w, a, warp, lane, settings[0], out, entries, starts, is_clean)

    return Observers(observe_all, observe_last)


@cuda_kernel(device=True)
def _world() -> int:
    """Return the world of the thread block, which may be past the last one. z extends y, which is limited."""
    return natural(cuda.blockIdx.z) * natural(cuda.gridDim.y) + natural(cuda.blockIdx.y)


@cuda_kernel(device=True)
def _wait() -> None:
    """Wait until all threads of the row arrive here."""
    if IS_SIMULATED:
        cuda.syncthreads()
    else:
        cuda.syncwarp()


@cuda_kernel(device=True)
def _rows_per_world(worlds: Worlds, rows: Rows) -> int:
    return natural(len(rows.active)) // natural(worlds.clocks.shape[0])


@cuda_kernel(device=True)
def _observe(
    worlds: Worlds,
    maps: Maps,
    scenarios: Scenarios,
    w: int,
    a: int,
    warp: int,
    lane: int,
    p: Params,
    row_out: Floats,
    entries: tuple[int, int, int, int],
    starts: tuple[int, int, int, int, int],
    is_clean: bool,
) -> None:
    """Write the observation of agent a of world w.

    entries: of the COUNTED blocks. starts: of these blocks and of `conditioning`.
    """
    partners, lanes, edges, lights = entries
    partners_at, lanes_at, edges_at, lights_at, tail_at = starts
    agents, clock = worlds.agents[w], worlds.clocks[w]
    seed: Any = worlds.seeds[w]
    s, step = natural(clock[state.SCENARIO]), clock[state.STEP]
    if not has_valid_pose(agents, a):
        for k in range(lane, tail_at + _TAIL, WARP):
            row_out[k] = _ZERO
        return
    lanes_seen, edges_seen = _warp_observe_roads(
        agents, a, maps, natural(clock[state.MAP]), lane, row_out, lanes_at, lanes, edges_at, edges
    )
    partners_seen = 0
    if not is_clean and p.blind_rate > _ZERO and is_blind(seed, a, step, scenarios.dt[s], p.blind_rate, p.blind_s):
        for k in range(lane, PARTNER_SIZE * partners, WARP):
            row_out[partners_at + k] = _ZERO
    else:
        partners_seen = _warp_observe_partners(
            worlds, w, a, warp, lane, p.partner_range, row_out, partners_at, partners
        )
    lights_seen = _warp_observe_stop_lines(worlds, maps, scenarios, w, a, warp, lane, row_out, lights_at, lights, p)
    _warp_observe_single_blocks(
        worlds, w, a, warp, lane, row_out, tail_at, (partners_seen, lanes_seen, edges_seen, lights_seen), entries, p
    )
    if not is_clean and p.dropout > _ZERO:
        _wait()
        key = draws.draw(seed, a, step, draws.DROPOUT)
        _drop(key, PARTNERS_COUNT, p.dropout, row_out, partners_at, PARTNER_SIZE, partners_seen, partners, lane)
        _drop(key, LANES_COUNT, p.dropout, row_out, lanes_at, LANE_SIZE, lanes_seen, lanes, lane)
        _drop(key, EDGES_COUNT, p.dropout, row_out, edges_at, EDGE_SIZE, edges_seen, edges, lane)
        _drop(key, LIGHTS_COUNT, p.dropout, row_out, lights_at, LIGHT_SIZE, lights_seen, lights, lane)


@cuda_kernel(device=True)
def _warp_observe_roads(
    agents: Floats,
    a: int,
    maps: Maps,
    m: int,
    lane: int,
    row_out: Floats,
    lanes_at: int,
    lanes: int,
    edges_at: int,
    edges: int,
) -> tuple[int, int]:
    """Write the lane points and edge points, at most 64 each, and return how many of each."""
    pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    place = natural(
        maps.cell_lists[m, map_cell(maps.sizes[m], maps.origins[m], agents[state.X, a], agents[state.Y, a])]
    )
    lanes_seen = min(lanes, maps.sizes[m, state.LANE_POINT_COUNT])
    edges_seen = min(edges, maps.sizes[m, state.EDGE_POINT_COUNT])
    # Load everything before storing: the compiler must assume that a store changes what is loaded after it.
    lane_table, edge_table = maps.lane_points[m], maps.edge_points[m]
    lane_numbers, edge_numbers = maps.lane_lists[m, place], maps.edge_lists[m, place]
    lane_1, lane_2 = _listed(lane_numbers, lane, lanes_seen), _listed(lane_numbers, lane + WARP, lanes_seen)
    edge_1, edge_2 = _listed(edge_numbers, lane, edges_seen), _listed(edge_numbers, lane + WARP, edges_seen)
    first_lane = second_lane = first_edge = second_edge = _NO_ENTRY
    if lanes_seen > 0:
        first_lane, second_lane = load_entry(lane_table, lane_1), load_entry(lane_table, lane_2)
    if edges_seen > 0:
        first_edge, second_edge = load_entry(edge_table, edge_1), load_entry(edge_table, edge_2)
    _write(first_lane, LANE_SCALES, pose, row_out, lanes_at, lane, lanes_seen, lanes)
    _write(second_lane, LANE_SCALES, pose, row_out, lanes_at, lane + WARP, lanes_seen, lanes)
    _write(first_edge, EDGE_SCALES, pose, row_out, edges_at, lane, edges_seen, edges)
    _write(second_edge, EDGE_SCALES, pose, row_out, edges_at, lane + WARP, edges_seen, edges)
    return lanes_seen, edges_seen


@cuda_kernel(device=True)
def _listed(numbers: NDArray[np.uint16], k: int, count: int) -> int:
    """Return the k-th number, or 0, an entry that can be loaded too, if there are fewer."""
    return natural(numbers[k]) if k < count else natural(0)


@cuda_kernel(device=True)
def _write(entry: Any, scales: Any, pose: Pose, row_out: Floats, at: int, k: int, seen: int, n: int) -> None:
    """Write entry k of a block of n, zeros if it is not among the first `seen`."""
    if k < seen:
        write_entry(entry, scales, pose, row_out, at + k, n)
    elif k < n:
        for f in range(len(scales)):
            row_out[at + f * n + k] = _ZERO


@cuda_kernel(device=True)
def _warp_observe_partners(
    worlds: Worlds, w: int, a: int, warp: int, lane: int, reach: float, row_out: Floats, at: int, n: int
) -> int:
    """Write the present agents within reach, nearest first, and return how many."""
    all_found = cuda.shared.array(_ONE_EACH, int32)
    all_keys = cuda.shared.array(_KEYS_EACH, int32)
    all_nearest = cuda.shared.array(_AGENTS_EACH, int32)
    found, keys, nearest = all_found[warp], all_keys[warp], all_nearest[warp]
    agents, flags, count = worlds.agents[w], worlds.agent_flags[w], natural(worlds.clocks[w, state.AGENT_COUNT])
    x, y, _, _ = pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    if lane == 0:
        found[0] = 0
    _wait()
    b = lane
    while b < count:
        key = partner_key(agents[state.X, b] - x, agents[state.Y, b] - y, flags[state.IS_PRESENT, b], b, reach * reach)
        if key != NO_KEY and b != a:
            keys[natural(cuda.atomic.add(found, 0, 1))] = key  # in any order: the keys determine the places
        b = natural(b + WARP)
    _wait()
    listed = natural(found[0])
    if lane < EIGHT:
        keys[listed + lane] = NO_KEY
    _wait()
    seen, i = min(listed, n), lane
    while i < listed:
        key, place, j = keys[i], np.int32(0), natural(0)
        while j < listed:
            for k in range(EIGHT):
                place += np.int32(keys[j + k] < key)
            j = natural(j + EIGHT)
        if place < seen:
            nearest[natural(place)] = key & NUMBER_BITS
        i = natural(i + WARP)
    _wait()
    appearance, k = worlds.appearance[w].T, lane
    while k < n:
        if k < seen:
            write_one(appearance, natural(nearest[k]), PARTNER_SCALES, pose, row_out, at + k, n)
        else:
            for f in range(PARTNER_SIZE):
                row_out[at + f * n + k] = _ZERO
        k = natural(k + WARP)
    return seen


@cuda_kernel(device=True)
def _warp_observe_stop_lines(
    worlds: Worlds,
    maps: Maps,
    scenarios: Scenarios,
    w: int,
    a: int,
    warp: int,
    lane: int,
    row_out: Floats,
    at: int,
    n: int,
    p: Params,
) -> int:
    """Write the stop lines ahead, nearest first (of two at the same distance the lower number), and return how many."""
    all_found = cuda.shared.array(_ONE_EACH, int32)
    all_keys = cuda.shared.array(_LINES_EACH, int64)
    found, keys = all_found[warp], all_keys[warp]
    agents, clock = worlds.agents[w], worlds.clocks[w]
    s, m, step, seed = natural(clock[state.SCENARIO]), natural(clock[state.MAP]), clock[state.STEP], worlds.seeds[w]
    x, y, cos, sin = pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    lights, signs = natural(scenarios.counts[s, state.LIGHT_COUNT]), natural(maps.sizes[m, state.SIGN_COUNT])
    if lane == 0:
        found[0] = 0
    _wait()
    _list_lines(scenarios.lights[s], lights, natural(0), pose, lane, found, keys)
    _list_lines(maps.signs[m], signs, lights, pose, lane, found, keys)
    _wait()
    count, i = min(natural(found[0]), MOST_LINES), lane
    while i < count:
        key, place, j = keys[i], np.int32(0), natural(0)
        while j < count:
            place += np.int32(keys[j] < key)
            j = natural(j + 1)
        if place < n:
            number, shown = natural(key), 0
            is_sign = number >= lights
            if is_sign:
                line = number - lights
                dx, dy = maps.signs[m, state.LINE_X, line] - x, maps.signs[m, state.LINE_Y, line] - y
            else:
                dx, dy = scenarios.lights[s, state.LINE_X, number] - x, scenarios.lights[s, state.LINE_Y, number] - y
                shown = light_state(scenarios, s, number, step, seed, p)
            write_line(dx * cos + dy * sin, dy * cos - dx * sin, shown, is_sign, row_out, at + natural(place), n)
        i = natural(i + WARP)
    if count <= lane < n:
        for f in range(LIGHT_SIZE):
            row_out[at + f * n + lane] = _ZERO
    return min(count, n)


@cuda_kernel(device=True)
def _list_lines(lines: Floats, count: int, offset: int, pose: Pose, lane: int, found: Ints, keys: Longs) -> None:
    """List the stop lines ahead in any order, as keys that sort by distance, then number (line k: k + offset)."""
    (x, y, cos, sin), k = pose, lane
    while k < count:
        dx, dy = lines[state.LINE_X, k] - x, lines[state.LINE_Y, k] - y
        if is_ahead(dx, dy, lines[state.LINE_COS, k], lines[state.LINE_SIN, k], cos, sin):
            i = natural(cuda.atomic.add(found, 0, 1))
            if i < MOST_LINES:
                distance = np.float32(dx * dx + dy * dy)
                keys[i] = (np.int64(distance.view(np.int32)) << 32) | (k + offset)
        k = natural(k + WARP)


@cuda_kernel(device=True)
def _warp_observe_single_blocks(
    worlds: Worlds,
    w: int,
    a: int,
    warp: int,
    lane: int,
    row_out: Floats,
    tail_at: int,
    seen: tuple[int, int, int, int],
    entries: tuple[int, int, int, int],
    p: Params,
) -> None:
    """Write the blocks of one entry, in shared memory first so that the row is written by neighboring threads."""
    all_single = cuda.shared.array(_SINGLE_EACH, float32)
    single, agents, flags = all_single[warp], worlds.agents[w], worlds.agent_flags[w]
    if lane < WEIGHT_COUNT:
        single[_HEAD + lane] = agents[state.WEIGHTS + lane, a]
    if lane == 0:
        write_ego(agents, flags, a, single, 0)
    if lane == 1:
        write_goals(agents, flags, a, p, single, _GOALS_AT)
    if lane == 2:
        for k in range(len(COUNTED)):
            single[_HEAD + WEIGHT_COUNT + k] = share(seen[k], entries[k])
    _wait()
    for k in range(lane, _HEAD + _TAIL, WARP):
        row_out[k if k < _HEAD else tail_at + k - _HEAD] = single[k]


@cuda_kernel(device=True)
def _drop(
    key: int, block: int, chance: float, row_out: Floats, at: int, features: int, count: int, n: int, lane: int
) -> None:
    """Zero each of the first `count` entries of a block of n with a probability."""
    for k in range(lane, count, WARP):
        if draws.uniform(key, block, k, draws.DROPOUT) < chance:
            for f in range(features):
                row_out[at + f * n + k] = _ZERO
