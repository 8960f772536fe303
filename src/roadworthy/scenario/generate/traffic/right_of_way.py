"""Right of way in junctions: priority, acceptable gaps, and keeping junctions free."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.network import Control
from roadworthy.scenario.generate.traffic.following import FAR_M, travel_time
from roadworthy.scenario.generate.traffic.lights import is_red, is_yellow
from roadworthy.scenario.generate.traffic.tables import CROSSING, DIVERGING, MERGING
from roadworthy.scenario.generate.traffic.ways import COMING, HERE, LEAVING

PATIENCE_STEPS = 100.0  # of waiting, after which half the usual gap is accepted
ADAPTING_BRAKING = 2.6  # m/s2 that a driver may impose on the road user behind
QUEUE_M = 5.0  # a driver that stands farther from the line stands in a queue
TURN_STEPS = 60  # of standing, after which a driver has missed its turn

_STOP = int(Control.STOP)


@kernel
def gives_way(tables, users, state, presence, lights, step, i, lane, start):
    """Return whether a road user has priority where a junction lane that starts `start` m ahead meets others."""
    for c in range(tables.lanes[lane].conflict, tables.lanes[lane + 1].conflict):
        conflict = tables.conflicts[c]
        if conflict.kind != DIVERGING:
            for chain in (HERE, COMING):
                number = presence.head[chain, conflict.lane]
                while number >= 0:
                    entry = presence.entries[number]
                    if entry.user != i and entry.rank != LEAVING:
                        if _goes_first(tables, users, state, lights, step, i, lane, conflict, entry) and _is_too_close(
                            tables, users, state, i, lane, start, conflict, entry
                        ):
                            return True
                    number = entry.following
    return False


@kernel
def _is_bound(users, state, conflict, entry):
    """Return whether a road user is in the junction, or will not stop before it; not if it waits inside it."""
    if entry.rank == 0:
        to_zone = entry.ahead + conflict.other[0] - 0.5 * users[entry.user].length
        return not (state[entry.user].held and to_zone > 0.0)
    return state[entry.user].committed == conflict.lane


@kernel
def room_inside(tables, users, i, lane, start):
    """Return the room before the first place of a junction lane where others have priority, -1 without room inside."""
    first = FAR_M
    for c in range(tables.lanes[lane].conflict, tables.lanes[lane + 1].conflict):
        if tables.conflicts[c].rank < 0:
            first = min(first, tables.conflicts[c].own[0])
    if first >= FAR_M or first < users[i].length + 2.0:
        return -1.0
    return start + first - 0.5 * users[i].length - 1.0


@kernel
def _goes_first(tables, users, state, lights, step, i, lane, conflict, entry):
    """Return whether to yield to a road user if there is not enough time for both."""
    me, other, rank = state[i], state[entry.user], conflict.rank
    if _is_bound(users, state, conflict, entry):
        return True
    if other.v < 0.5 and entry.ahead - 0.5 * users[entry.user].length > QUEUE_M:
        return False
    light = tables.lanes[conflict.lane].light
    if light >= 0 and (is_red(lights[light, step]) or is_yellow(lights[light, step])):
        return False
    if rank > 0:
        return False
    if rank < 0:
        return not other.held
    # Equals go in the order in which they halted at their stop signs.
    if tables.lanes[conflict.lane].control != _STOP or other.halted_lane != conflict.lane:
        return False
    mine = me.halted_step if me.halted_lane == lane else step
    if other.halted_step > mine or (other.halted_step == mine and entry.user > i):
        return False
    # A driver that misses its turn lets others go, each after a different time.
    return other.v >= 0.3 or step - other.halted_step <= TURN_STEPS + 7 * (entry.user % 5)


@kernel
def _is_too_close(tables, users, state, i, lane, start, conflict, entry):
    """Return whether the times at which the two would use the place where their lanes meet leave no gap."""
    own, their = users[i], users[entry.user]
    v, other_v = state[i].v, state[entry.user].v
    other_in = entry.ahead + conflict.other[0] - 0.5 * their.length
    other_out = entry.ahead + conflict.other[1] + 0.5 * their.length
    if other_out < 0.0:
        return False
    pace = min(np.sqrt(own.cornering / max(tables.lanes[lane].sharpest, 1e-4)), tables.lanes[lane].limit)
    to_zone = start + conflict.own[0] - 0.5 * own.length
    arrival = travel_time(to_zone, v, own.acceleration, max(pace, v))
    their_pace = min(their.speed_factor * tables.lanes[conflict.lane].limit, their.top_speed)
    push = their.acceleration if other_v < 1.0 or _is_bound(users, state, conflict, entry) else 0.8
    earliest = travel_time(other_in, other_v, push, max(other_v, their_pace))
    latest = travel_time(other_out, other_v, 0.8, max(0.7 * other_v, 3.0))
    gap = own.gap / (1.0 + state[i].waited / PATIENCE_STEPS)
    if conflict.kind == MERGING:
        # Enough time for the second one to adapt to the speed at which the first one joins.
        joining = min(np.sqrt(v * v + 2.0 * own.acceleration * max(to_zone, 0.0)), pace)
        needed = arrival + 0.7 + gap + max(0.0, other_v - joining) / ADAPTING_BRAKING
        return needed > earliest and latest + 1.0 > arrival
    departure = travel_time(start + conflict.own[1] + 0.5 * own.length, v, 0.75 * own.acceleration, pace)
    return departure + gap > earliest and latest + 0.9 > arrival


@kernel
def exit_is_full(tables, users, state, presence, i, k):
    """Return whether a driver would have to stop inside the junction because the exit lane has no room."""
    if k + 1 >= state[i].route_length:
        return False
    target = state[i].route[k + 1]
    if tables.lanes[target].junction >= 0:
        return False
    number = presence.head[HERE, target]
    while number >= 0:
        entry = presence.entries[number]
        if entry.user != i and state[entry.user].v < 2.5:
            if -entry.ahead - 0.5 * users[entry.user].length < users[i].length + 2.0:
                return True
        number = entry.following
    return False


@kernel
def room_before_blocked_zone(tables, users, presence, i, lane, start):
    """Return the room inside a junction before a crossing that is occupied."""
    room = FAR_M
    for c in range(tables.lanes[lane].conflict, tables.lanes[lane + 1].conflict):
        conflict = tables.conflicts[c]
        gap = start + conflict.own[0] - 0.5 * users[i].length - 1.0
        if conflict.kind != CROSSING or gap < 0.0:
            continue
        number = presence.head[HERE, conflict.lane]
        while number >= 0:
            entry = presence.entries[number]
            if entry.user != i and entry.rank == 0:
                at, half = -entry.ahead, 0.5 * users[entry.user].length
                if at + half > conflict.other[0] and at - half < conflict.other[1]:
                    room = min(room, gap)
            number = entry.following
    return room
