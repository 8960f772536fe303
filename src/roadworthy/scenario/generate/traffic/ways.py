"""Routes: the lanes that each road user will take, and the road users that are or will be on each lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.place import beside
from roadworthy.scenario.generate.traffic.users import ROUTE_LANES

HERE, COMING = 0, 1
LEAVING = -1  # the rank of an entry for the lane that a road user is leaving


ENTRY = np.dtype(
    [
        ("following", np.int64),  # next entry of the same lane, -1 at the end
        ("user", np.int64),
        ("rank", np.int64),  # the index of the lane in the user's route: 0 for the current one; LEAVING
        ("ahead", np.float64),  # m from the user's center to the lane's start; negative on it
    ]
)


class Presence(NamedTuple):
    """Two chains of entries for every lane: users on it, and users who will reach it."""

    head: NDArray[np.int64]  # (2, lanes) first entry of the chains HERE and COMING, -1 if there is none
    entries: NDArray[np.void]  # ENTRY


def new_presence(lanes: int, users: int) -> Presence:
    return Presence(np.full((2, lanes), -1, np.int64), np.zeros(users * (ROUTE_LANES + 1), ENTRY))


@kernel
def scramble(a, b):
    """Return a random number in [0, 1) as a pure function of two integers (splitmix64)."""
    z = np.uint64(a) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(b) + np.uint64(1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0


@kernel
def extend_route(tables, users, state, i):
    """Choose the rest of the route: as planned, then at random."""
    while 0 < state[i].route_length < ROUTE_LANES:
        last = state[i].route[state[i].route_length - 1]
        first, count = tables.lanes[last].follow, tables.lanes[last + 1].follow - tables.lanes[last].follow
        if count == 0:
            return
        choice = tables.follow[first + int(scramble(users[i].seed, state[i].choices) * count)]
        position = state[i].plan_position
        if position < ROUTE_LANES and users[i].plan[position] >= 0:
            for f in range(first, first + count):
                if tables.follow[f] == users[i].plan[position]:
                    choice = tables.follow[f]
            state[i].plan_position += 1
        state[i].choices += 1
        state[i].route[state[i].route_length] = choice
        state[i].route_length += 1


@kernel
def start_route(tables, users, state, i, lane):
    """Start a new route on a lane."""
    state[i].lane = lane
    state[i].route[0] = lane
    state[i].route_length = 1
    extend_route(tables, users, state, i)


@kernel
def step_route(tables, users, state, i):
    """Advance to the next lane of the route. Return False if the user leaves the map."""
    while state[i].s > tables.lanes[state[i].lane].length:
        if state[i].route_length < 2:
            return False
        state[i].s -= tables.lanes[state[i].lane].length
        for k in range(state[i].route_length - 1):
            state[i].route[k] = state[i].route[k + 1]
        state[i].route_length -= 1
        state[i].lane = state[i].route[0]
        extend_route(tables, users, state, i)
    return True


@kernel
def note_presence(tables, state, presence):
    """Fill the chains."""
    presence.head[:] = -1
    entry = 0
    for i in range(len(state.lane)):
        if not state[i].alive:
            continue
        ahead = -state[i].s
        for k in range(state[i].route_length):
            lane = state[i].route[k]
            presence.entries[entry].user, presence.entries[entry].rank, presence.entries[entry].ahead = i, k, ahead
            chain = HERE if k == 0 else COMING
            presence.entries[entry].following = presence.head[chain, lane]
            presence.head[chain, lane] = entry
            entry += 1
            ahead += tables.lanes[lane].length
        old = state[i].old_lane
        if old >= 0:
            presence.entries[entry].user, presence.entries[entry].rank = i, LEAVING
            presence.entries[entry].ahead = -beside(tables, state[i].lane, state[i].s, old)
            presence.entries[entry].following = presence.head[HERE, old]
            presence.head[HERE, old] = entry
            entry += 1
