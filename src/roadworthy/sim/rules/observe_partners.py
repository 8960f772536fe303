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
from roadworthy.sim.layout import COUNTS_BLOCK, LANES_BLOCK, PARTNER, PARTNERS_BLOCK, PARTNERS_COUNT
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.disturbances import is_blind
from roadworthy.sim.rules.observation import drop, share, zero
from roadworthy.sim.rules.observe_simd import write_partners
from roadworthy.sim.state import (
    AGENT_COUNT,
    COS,
    IS_PRESENT,
    LENGTH,
    SEEN_COS,
    SEEN_LENGTH,
    SEEN_SIN,
    SEEN_SPEED,
    SEEN_TYPE,
    SEEN_WIDTH,
    SEEN_X,
    SEEN_Y,
    SIN,
    SPEED,
    TYPE,
    WIDTH,
    Params,
    Real,
    Whole,
    Worlds,
    X,
    Y,
)

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
        seen = write_partners_in_range(
            agents, flags, appearance, a, count, p.partner_range, keys, row_out, at, p.partners
        )
    row_out[p.block_starts[COUNTS_BLOCK] + PARTNERS_COUNT] = share(seen, p.partners)
    if p.dropout > _ZERO:
        drop(
            draws.draw(seed, a, step, draws.DROPOUT),
            PARTNERS_COUNT,
            p.dropout,
            row_out,
            at,
            PARTNER_SIZE,
            seen,
            p.partners,
        )


@rule(inline=True)
def update_appearances(worlds: Worlds, w: Whole) -> None:
    """Write what others observe of each agent of a world, once before the first of them observes."""
    agents, types, appearance = worlds.agents[w], worlds.agent_flags[w, TYPE], worlds.appearance[w]
    for b in range(worlds.clocks[w, AGENT_COUNT]):
        update_appearance(agents, types, appearance, b)


@rule(inline=True)
def update_appearance(agents: Floats, types: Ints, appearance: Floats, b: Whole) -> None:
    """Write what others observe of agent b."""
    appearance[b, SEEN_X], appearance[b, SEEN_Y] = agents[X, b], agents[Y, b]
    appearance[b, SEEN_COS], appearance[b, SEEN_SIN] = agents[COS, b], agents[SIN, b]
    appearance[b, SEEN_SPEED] = agents[SPEED, b]
    appearance[b, SEEN_LENGTH], appearance[b, SEEN_WIDTH] = agents[LENGTH, b], agents[WIDTH, b]
    appearance[b, SEEN_TYPE] = _ONE if types[b] == _PEDESTRIAN else (_HALF if types[b] == _CYCLIST else _ZERO)


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
    """Write the present agents within reach, nearest first, and return how many."""
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
    write_partners(appearance.T, keys, seen, agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a], row, at, n)
    return seen


@rule(inline=True)
def list_partners(agents: Floats, flags: Ints, a: Whole, count: Whole, range_2: Real, keys: Ints) -> Any:
    """Write the keys of all partners within range in the order of their numbers, and return how many."""
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
    """Return the key of agent b at an offset; NO_KEY if it is absent or out of range."""
    distance_2 = np.float32(dx * dx + dy * dy)
    key = (distance_2.view(np.int32) & ~NUMBER_BITS) | np.int32(b)
    return key if (distance_2 <= range_2) & (is_present != 0) else NO_KEY
