"""Leaders: the gap to whoever is next on one's way, on lanes that split off or join included."""

from __future__ import annotations

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M
from roadworthy.scenario.generate.traffic.tables import DIVERGING, MERGING
from roadworthy.scenario.generate.traffic.ways import COMING, HERE, LEAVING

DOUBT_M = 5.0  # who is that much closer to where two lanes join is clearly first
SETTLED_M = 7.0  # from where two lanes join: it is settled who goes first


@kernel
def leader_on_way(tables, users, state, presence, i, s, route, reach):
    """Bumper-to-bumper gap to the next one ahead of a place, and who that is (-1: nobody).

    The place is meter s of `route[0]`; `route` is a row of lanes, -1 where it ends.
    """
    best, leader = FAR_M, -1
    start = -s
    for k in range(len(route)):
        if route[k] < 0 or start > reach:
            break
        here = route[k]
        entry = presence.head[HERE, here]
        while entry >= 0:
            j = presence.entries[entry].user
            if j != i:
                between = start - presence.entries[entry].ahead
                if between > 0.0 or (between == 0.0 and j > i):
                    gap = between - 0.5 * (users[i].length + users[j].length)
                    if gap < best:
                        best, leader = gap, j
            entry = presence.entries[entry].following
        for c in range(tables.lanes[here].conflict, tables.lanes[here + 1].conflict):
            kind = tables.conflicts[c].kind
            if kind != DIVERGING and kind != MERGING:
                continue
            other = tables.conflicts[c].lane
            entry = presence.head[HERE, other]
            while entry >= 0:
                j = presence.entries[entry].user
                if j != i and presence.entries[entry].rank == 0:
                    at = -presence.entries[entry].ahead
                    between = start + at
                    near = at - 0.5 * users[j].length < tables.conflicts[c].other[1]
                    if kind == MERGING:
                        # How much farther from the common end: whoever is closer to it leads, and in doubt the one
                        # who has the right of way, unless the other is as good as there.
                        to_go = start + tables.lanes[here].length
                        between = to_go - (tables.lanes[other].length - at)
                        if to_go > SETTLED_M and tables.lanes[other].length - at > SETTLED_M:
                            between -= DOUBT_M * tables.conflicts[c].rank
                        near = at + 0.5 * users[j].length > tables.conflicts[c].other[0] - DOUBT_M
                    if near and (between > 0.0 or (between == 0.0 and j > i)):
                        gap = between - 0.5 * (users[i].length + users[j].length)
                        if gap < best:
                            best, leader = gap, j
                entry = presence.entries[entry].following
        if leader >= 0:
            break
        start += tables.lanes[here].length
    return best, leader


@kernel
def follower_on_lane(users, state, presence, i, lane, s):
    """Who comes up next behind a place on a lane, and its gap; -1 for nobody."""
    best, follower = FAR_M, -1
    for chain in (HERE, COMING):
        entry = presence.head[chain, lane]
        while entry >= 0:
            j = presence.entries[entry].user
            if j != i and presence.entries[entry].rank != LEAVING:
                between = presence.entries[entry].ahead + s
                if between >= 0.0:
                    gap = between - 0.5 * (users[i].length + users[j].length)
                    if gap < best:
                        best, follower = gap, j
            entry = presence.entries[entry].following
    return best, follower
