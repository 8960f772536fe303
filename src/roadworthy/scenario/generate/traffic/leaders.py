"""Leaders: the gap to the next road user on the route, also on lanes that diverge or merge."""

from __future__ import annotations

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M
from roadworthy.scenario.generate.traffic.tables import DIVERGING, MERGING
from roadworthy.scenario.generate.traffic.ways import COMING, HERE, LEAVING

DOUBT_M = 5.0  # the road user that is this much closer to the merge clearly goes first
SETTLED_M = 7.0  # from the merge of two lanes: the order is settled


@kernel
def leader_on_way(tables, users, state, presence, i, s, route, reach):
    """Return the bumper-to-bumper gap to the next road user ahead of a place, and its number (-1 if there is none).

    The place is at s m of `route[0]`; `route` is a row of lanes, -1 after its end.
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
                        # The difference in distance to the common end: the closer one leads. In doubt the one with
                        # right of way leads, unless the other has almost arrived.
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
    """Return the next road user behind a place on a lane (-1 if there is none), and its gap."""
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
