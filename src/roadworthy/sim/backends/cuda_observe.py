"""Observations on a GPU: 32 threads, a warp, write a row straight into the buffer, side by side what lies so.

Each number is what `observe.observe` writes, by the same rules; only who writes it differs. How many entries the blocks
have is compiled in: then places in the row are constants, and most of what is left to do is loading and storing.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import cuda_kernel
from roadworthy.kernels.cuda import IS_SIMULATED, cuda, float32, int32, int64, load_eight, natural, store_four
from roadworthy.kernels.decorators import use_on_cuda
from roadworthy.kernels.vectors import EIGHT
from roadworthy.scenario.schema import Floats, Ints, Longs
from roadworthy.sim.maps.road_points import EDGE_SCALES, LANE_SCALES, PARTNER_SCALES, load_entry, write_entry, write_one
from roadworthy.sim.maps.scenario_store import MOST_AGENTS
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.lights import light_state
from roadworthy.sim.rules.observe import (
    EDGE_SIZE,
    EGO_SIZE,
    GOAL_SIZE,
    LANE_SIZE,
    LIGHT_SIZE,
    NO_KEY,
    NUMBER_BITS,
    PARTNER_SIZE,
    WEIGHT_COUNT,
    has_valid_pose,
    is_blind,
    map_cell,
    partner_key,
    share,
    write_ego,
    write_goals,
)
from roadworthy.sim.rules.observe_stop_lines import is_ahead, write_line
from roadworthy.sim.state import (
    AGENT_COUNT,
    COS,
    DRIVEN_COUNT,
    EDGE_POINT_COUNT,
    EPISODE_ENDED,
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

WARP = 32  # threads that write a row
# Rows of a world that a block writes: four take a twentieth less time than one or eight. Where Python plays the GPU, a
# block has one row, since there is no other barrier than that of all its threads.
WARPS = 1 if IS_SIMULATED else 4
_REGISTERS = 64  # of a thread: then half of the threads that a processor has room for run at once
MOST_LINES = 128  # stop lines that an agent may have ahead of it within 100 m; no junction has nearly as many
_ZERO = np.float32(0.0)
_NO_ENTRY = (_ZERO,) * EIGHT
_PARTNERS_AT = EGO_SIZE + GOAL_SIZE
_COUNTS = 4
_FEW = EGO_SIZE + GOAL_SIZE + WEIGHT_COUNT + _COUNTS  # numbers of a row that are in no block of entries
_FEW_EACH, _ONE_EACH = (WARPS, _FEW), (WARPS, 1)
_AGENTS_EACH, _KEYS_EACH, _LINES_EACH = (WARPS, MOST_AGENTS), (WARPS, MOST_AGENTS + EIGHT), (WARPS, MOST_LINES)
use_on_cuda(load_entry, load_eight)  # an entry's numbers lie side by side


class Observers(NamedTuple):
    """The kernels that write observations."""

    observe_all: Any
    observe_last: Any


@cache
def observers(partners: int, lanes: int, edges: int, lights: int, is_clean: bool) -> Observers:
    """The kernels for blocks of so many entries. is_clean: nothing is hidden from anybody by chance."""

    @cuda_kernel(registers=_REGISTERS)
    def observe_all(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        """Write every row; one that is not active is zero. Blocks (x, y, z) share the rows of a world: see `_world`."""
        w, warp, lane = _world(), natural(cuda.threadIdx.x) // WARP, natural(cuda.threadIdx.x) % WARP
        a, row_count = natural(cuda.blockIdx.x) * WARPS + warp, _rows_per_world(worlds, rows)
        if w >= worlds.clocks.shape[0] or a >= row_count:
            return
        clock, row = worlds.clocks[w], w * row_count + a
        # All of it is asked for at once, and then waited for.
        scenario, has_ended, driven = clock[SCENARIO], clock[EPISODE_ENDED], clock[DRIVEN_COUNT]
        is_driving, was_active = worlds.agent_flags[w, IS_DRIVING, a], rows.active[row]
        is_active = (scenario >= 0) & (has_ended == 0) & (a < driven) & (is_driving != 0)
        _wait()  # until all have read what was
        if lane == 0:
            rows.active[row] = is_active
        if is_active:
            out = rows.observations[row]
            _observe(
                worlds, maps, scenarios, w, a, warp, lane, settings[0], out, partners, lanes, edges, lights, is_clean
            )
        elif was_active:
            for k in range(4 * lane, rows.observations.shape[1], 4 * WARP):
                store_four(rows.observations[row], k, _ZERO, _ZERO, _ZERO, _ZERO)

    @cuda_kernel(registers=_REGISTERS)
    def observe_last(worlds: Worlds, rows: Rows, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        """Keep what a row sees where its trial ends, before anything changes. Blocks as above."""
        w, warp, lane = _world(), natural(cuda.threadIdx.x) // WARP, natural(cuda.threadIdx.x) % WARP
        a, row_count = natural(cuda.blockIdx.x) * WARPS + warp, _rows_per_world(worlds, rows)
        if w >= worlds.clocks.shape[0] or a >= row_count:
            return
        if rows.trial_ended[w * row_count + a] and worlds.agent_flags[w, IS_DRIVING, a]:
            out = rows.final_observations[w * row_count + a]
            _observe(
                worlds, maps, scenarios, w, a, warp, lane, settings[0], out, partners, lanes, edges, lights, is_clean
            )

    return Observers(observe_all, observe_last)


@cuda_kernel(device=True)
def _world() -> int:
    """The block's world, which may be beyond the last: y does not count far enough for all, so z goes on."""
    return natural(cuda.blockIdx.z) * natural(cuda.gridDim.y) + natural(cuda.blockIdx.y)


@cuda_kernel(device=True)
def _wait() -> None:
    """Until all threads of the row have come so far."""
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
    partners: int,
    lanes: int,
    edges: int,
    lights: int,
    is_clean: bool,
) -> None:
    """What `observe.observe` writes for agent a of world w."""
    lanes_at = _PARTNERS_AT + PARTNER_SIZE * partners
    edges_at = lanes_at + LANE_SIZE * lanes
    lights_at = edges_at + EDGE_SIZE * edges
    weights_at = lights_at + LIGHT_SIZE * lights
    agents, clock = worlds.agents[w], worlds.clocks[w]
    seed: Any = worlds.seeds[w]
    s, step = natural(clock[SCENARIO]), clock[STEP]
    if not has_valid_pose(agents, a):
        for k in range(lane, weights_at + WEIGHT_COUNT + _COUNTS, WARP):
            row_out[k] = _ZERO
        return
    lanes_seen, edges_seen = _warp_observe_roads(
        agents, a, maps, natural(clock[MAP]), lane, row_out, lanes_at, lanes, edges_at, edges
    )
    partners_seen = 0
    if not is_clean and p.blind_rate > _ZERO and is_blind(seed, a, step, scenarios.dt[s], p.blind_rate, p.blind_s):
        for k in range(lane, PARTNER_SIZE * partners, WARP):
            row_out[_PARTNERS_AT + k] = _ZERO
    else:
        partners_seen = _warp_observe_partners(worlds, w, a, warp, lane, p.partner_range, row_out, partners)
    lights_seen = _warp_observe_stop_lines(worlds, maps, scenarios, w, a, warp, lane, row_out, lights_at, lights, p)
    _warp_observe_single_blocks(
        worlds,
        w,
        a,
        warp,
        lane,
        row_out,
        weights_at,
        (partners_seen, lanes_seen, edges_seen, lights_seen),
        (partners, lanes, edges, lights),
        p,
    )
    if not is_clean and p.dropout > _ZERO:
        _wait()
        key = draws.draw(seed, a, step, draws.DROPOUT)
        _drop(key, 0, p.dropout, row_out, _PARTNERS_AT, PARTNER_SIZE, partners_seen, partners, lane)
        _drop(key, 1, p.dropout, row_out, lanes_at, LANE_SIZE, lanes_seen, lanes, lane)
        _drop(key, 2, p.dropout, row_out, edges_at, EDGE_SIZE, edges_seen, edges, lane)
        _drop(key, 3, p.dropout, row_out, lights_at, LIGHT_SIZE, lights_seen, lights, lane)


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
    """The road around the agent; gives how many pieces of lanes and edges were written. No block has more than 64."""
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    place = natural(maps.cell_lists[m, map_cell(maps.sizes[m], maps.origins[m], x, y)])
    lanes_seen, edges_seen = min(lanes, maps.sizes[m, LANE_POINT_COUNT]), min(edges, maps.sizes[m, EDGE_POINT_COUNT])
    # All is loaded before anything is stored: for all that the compiler knows, a store could change what is loaded.
    lane_table, edge_table = maps.lane_points[m], maps.edge_points[m]
    lane_numbers, edge_numbers = maps.lane_lists[m, place], maps.edge_lists[m, place]
    lane_1, lane_2 = _listed(lane_numbers, lane, lanes_seen), _listed(lane_numbers, lane + WARP, lanes_seen)
    edge_1, edge_2 = _listed(edge_numbers, lane, edges_seen), _listed(edge_numbers, lane + WARP, edges_seen)
    first_lane = second_lane = first_edge = second_edge = _NO_ENTRY
    if lanes_seen > 0:
        first_lane, second_lane = load_entry(lane_table, lane_1), load_entry(lane_table, lane_2)
    if edges_seen > 0:
        first_edge, second_edge = load_entry(edge_table, edge_1), load_entry(edge_table, edge_2)
    _write(first_lane, LANE_SCALES, x, y, cos, sin, row_out, lanes_at, lane, lanes_seen, lanes)
    _write(second_lane, LANE_SCALES, x, y, cos, sin, row_out, lanes_at, lane + WARP, lanes_seen, lanes)
    _write(first_edge, EDGE_SCALES, x, y, cos, sin, row_out, edges_at, lane, edges_seen, edges)
    _write(second_edge, EDGE_SCALES, x, y, cos, sin, row_out, edges_at, lane + WARP, edges_seen, edges)
    return lanes_seen, edges_seen


@cuda_kernel(device=True)
def _listed(numbers: NDArray[np.uint16], k: int, count: int) -> int:
    """The k-th of the numbers; the first entry, which can be loaded too, if there are fewer."""
    return natural(numbers[k]) if k < count else natural(0)


@cuda_kernel(device=True)
def _write(
    entry: Any,
    scales: Any,
    x: float,
    y: float,
    cos: float,
    sin: float,
    row_out: Floats,
    at: int,
    k: int,
    seen: int,
    n: int,
) -> None:
    """Entry k of a block of n, zeros if it is not seen."""
    if k < seen:
        write_entry(entry, scales, x, y, cos, sin, row_out, at + k, n)
    elif k < n:
        for f in range(len(scales)):
            row_out[at + f * n + k] = _ZERO


@cuda_kernel(device=True)
def _warp_observe_partners(
    worlds: Worlds, w: int, a: int, warp: int, lane: int, reach: float, row_out: Floats, n: int
) -> int:
    """The present agents within reach, nearest first; gives how many were written."""
    all_found = cuda.shared.array(_ONE_EACH, int32)
    all_keys = cuda.shared.array(_KEYS_EACH, int32)
    all_nearest = cuda.shared.array(_AGENTS_EACH, int32)
    found, keys, nearest = all_found[warp], all_keys[warp], all_nearest[warp]
    agents, flags, count = worlds.agents[w], worlds.agent_flags[w], natural(worlds.clocks[w, AGENT_COUNT])
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    if lane == 0:
        found[0] = 0
    _wait()
    b = lane
    while b < count:
        key = partner_key(agents[X, b] - x, agents[Y, b] - y, flags[IS_PRESENT, b], b, reach * reach)
        if key != NO_KEY and b != a:
            keys[natural(cuda.atomic.add(found, 0, 1))] = key  # in any order: their places come from the keys
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
            write_one(appearance, natural(nearest[k]), PARTNER_SCALES, x, y, cos, sin, row_out, _PARTNERS_AT + k, n)
        else:
            for f in range(PARTNER_SIZE):
                row_out[_PARTNERS_AT + f * n + k] = _ZERO
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
    """The stop lines ahead, nearest first (the lower number where two are level); gives how many were written."""
    all_found = cuda.shared.array(_ONE_EACH, int32)
    all_keys = cuda.shared.array(_LINES_EACH, int64)
    found, keys = all_found[warp], all_keys[warp]
    agents, clock = worlds.agents[w], worlds.clocks[w]
    s, m, step, seed = natural(clock[SCENARIO]), natural(clock[MAP]), clock[STEP], worlds.seeds[w]
    x, y, cos, sin = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    lights, signs = natural(scenarios.counts[s, LIGHT_COUNT]), natural(maps.sizes[m, SIGN_COUNT])
    if lane == 0:
        found[0] = 0
    _wait()
    _list_lines(scenarios.lights[s], lights, natural(0), x, y, cos, sin, lane, found, keys)
    _list_lines(maps.signs[m], signs, lights, x, y, cos, sin, lane, found, keys)
    _wait()
    count, i = min(natural(found[0]), MOST_LINES), lane
    while i < count:
        key, place, j = keys[i], np.int32(0), natural(0)
        while j < count:
            place += np.int32(keys[j] < key)
            j = natural(j + 1)
        if place < n:
            number, state = natural(key), 0
            is_sign = number >= lights
            if is_sign:
                dx, dy = maps.signs[m, LINE_X, number - lights] - x, maps.signs[m, LINE_Y, number - lights] - y
            else:
                dx, dy = scenarios.lights[s, LINE_X, number] - x, scenarios.lights[s, LINE_Y, number] - y
                state = light_state(scenarios, s, number, step, seed, p)
            write_line(dx * cos + dy * sin, dy * cos - dx * sin, state, is_sign, row_out, at + natural(place), n)
        i = natural(i + WARP)
    if count <= lane < n:
        for f in range(LIGHT_SIZE):
            row_out[at + f * n + lane] = _ZERO
    return min(count, n)


@cuda_kernel(device=True)
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
    keys: Longs,
) -> None:
    """List the stop lines ahead, in any order, by keys that sort them: distance, then number (line k: k + offset)."""
    k = lane
    while k < count:
        dx, dy = lines[LINE_X, k] - x, lines[LINE_Y, k] - y
        if is_ahead(dx, dy, lines[LINE_COS, k], lines[LINE_SIN, k], cos, sin):
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
    weights_at: int,
    seen: tuple[int, int, int, int],
    most: tuple[int, int, int, int],
    p: Params,
) -> None:
    """What is in no block of entries: the agent itself, its goals, its weights, and how much is seen of each block."""
    all_few = cuda.shared.array(_FEW_EACH, float32)
    few, agents, flags = all_few[warp], worlds.agents[w], worlds.agent_flags[w]
    if lane < WEIGHT_COUNT:
        few[_PARTNERS_AT + lane] = agents[WEIGHTS + lane, a]
    if lane == 0:
        write_ego(agents, flags, a, few, 0)
    if lane == 1:
        write_goals(agents, flags, a, p, few, EGO_SIZE)
    if lane == 2:
        for k in range(_COUNTS):
            few[_FEW - _COUNTS + k] = share(seen[k], most[k])
    _wait()
    for k in range(lane, _FEW, WARP):
        row_out[k if k < _PARTNERS_AT else weights_at + k - _PARTNERS_AT] = few[k]


@cuda_kernel(device=True)
def _drop(
    key: int, block: int, chance: float, row_out: Floats, at: int, features: int, count: int, n: int, lane: int
) -> None:
    """Hide each of the first count entries of a block of n by chance."""
    for k in range(lane, count, WARP):
        if draws.uniform(key, block, k, draws.DROPOUT) < chance:
            for f in range(features):
                row_out[at + f * n + k] = _ZERO
