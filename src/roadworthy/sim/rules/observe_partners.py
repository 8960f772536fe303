"""Observation block `partners`: the nearest other agents.

A partner's key is its squared distance as the bits of a float, which order as the numbers do, with the last eight bits
replaced by its number. This orders partners to 1.5 mm in 100 m; of two at the same distance the lower number is first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, count_below
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.layout import COUNTS_BLOCK, LANES_BLOCK, PARTNER, PARTNERS_BLOCK, PARTNERS_COUNT
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.disturbances import is_blind
from roadworthy.sim.rules.observation import drop, share, zero
from roadworthy.sim.rules.observe_simd import write_partners
from roadworthy.sim.state import Params, Real, Whole, Worlds

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
PARTNER_SIZE = len(PARTNER)
_CYCLIST, _PEDESTRIAN = int(AgentType.CYCLIST), int(AgentType.PEDESTRIAN)
NUMBER_BITS = np.int32(255)
NO_KEY = np.int32(2**31 - 1)


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
    """Write the block for agent a, with dropout and blindness.

    keys: room for `count` numbers, rounded up to a multiple of eight.
    """
    at = p.block_starts[PARTNERS_BLOCK]
    zero(row_out, at, p.block_starts[LANES_BLOCK])
    seen = 0
    if not (p.blind_rate > _ZERO and is_blind(seed, a, step, dt, p.blind_rate, p.blind_s)):
        seen = _write_nearest(agents, flags, appearance, keys, count, a, p, row_out)
    row_out[p.block_starts[COUNTS_BLOCK] + PARTNERS_COUNT] = share(seen, p.partners)
    if p.dropout > _ZERO:
        key = draws.draw(seed, a, step, draws.DROPOUT)
        drop(key, PARTNERS_COUNT, p.dropout, row_out, at, PARTNER_SIZE, seen, p.partners)


@rule(inline=True)
def update_appearances(worlds: Worlds, w: Whole) -> None:
    """Write what others observe of each agent of a world, once before the first of them observes."""
    agents, types, appearance = worlds.agents[w], worlds.agent_flags[w, state.TYPE], worlds.appearance[w]
    for b in range(worlds.clocks[w, state.AGENT_COUNT]):
        update_appearance(agents, types, appearance, b)


@rule(inline=True)
def update_appearance(agents: Floats, types: Ints, appearance: Floats, b: Whole) -> None:
    """Write what others observe of agent b."""
    appearance[b, state.SEEN_X], appearance[b, state.SEEN_Y] = agents[state.X, b], agents[state.Y, b]
    appearance[b, state.SEEN_COS], appearance[b, state.SEEN_SIN] = agents[state.COS, b], agents[state.SIN, b]
    appearance[b, state.SEEN_SPEED] = agents[state.SPEED, b]
    appearance[b, state.SEEN_LENGTH], appearance[b, state.SEEN_WIDTH] = agents[state.LENGTH, b], agents[state.WIDTH, b]
    appearance[b, state.SEEN_TYPE] = _ONE if types[b] == _PEDESTRIAN else (_HALF if types[b] == _CYCLIST else _ZERO)


@rule(inline=True)
def _write_nearest(
    agents: Floats, flags: Ints, appearance: Floats, keys: Ints, count: Whole, a: Whole, p: Params, row: Floats
) -> Any:
    """Write the present agents within reach, nearest first, and return how many."""
    at, n, reach = p.block_starts[PARTNERS_BLOCK], p.partners, p.partner_range
    found = list_partners(agents, flags, a, count, reach * reach, keys)
    seen = min(found, n)
    # A partner's place in the order is the number of smaller keys.
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
    pose = agents[state.X, a], agents[state.Y, a], agents[state.COS, a], agents[state.SIN, a]
    write_partners(appearance.T, keys, seen, pose, row, at, n)
    return seen


@rule(inline=True)
def list_partners(agents: Floats, flags: Ints, a: Whole, count: Whole, range_2: Real, keys: Ints) -> Any:
    """Write the keys of all partners within range in the order of their numbers, and return how many."""
    xs, ys, is_present = agents[state.X], agents[state.Y], flags[state.IS_PRESENT]
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
    """Return the key of agent b at an offset; NO_KEY if it is absent or out of range."""
    distance_2 = np.float32(dx * dx + dy * dy)
    key = (distance_2.view(np.int32) & ~NUMBER_BITS) | np.int32(b)
    return key if (distance_2 <= range_2) & (is_present != 0) else NO_KEY
