"""Pedestrians: when they step onto a crosswalk, and how drivers let them pass."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M, travel_time
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.generate.traffic.ways import COMING, HERE, LEAVING

COURTESY_BRAKING = 2.3  # m/s2, what a driver is ready to do for somebody who waits at the curb
LONGEST_WALK_S = 9.0  # of green: with that much left one crosses the widest road; drivers wait for who is late
KERB_MARGIN_M = 0.5  # from the curb to where one waits

_PEDESTRIAN = int(Kind.PEDESTRIAN)


@kernel
def walking_acceleration(tables, users, state, presence, walk_seconds, zebra_lanes, step, i):
    """What a pedestrian wants: to walk on, or to wait at the curb."""
    own, me = users[i], state[i]
    room = FAR_M
    if own.zebra >= 0 and not me.crossing and me.s < own.curb_s[1]:
        room = max(own.curb_s[0] - KERB_MARGIN_M - me.s, 0.0)
        if room < 1.0 and _may_cross(tables, users, state, presence, walk_seconds, zebra_lanes, step, own):
            me.crossing = True
            room = FAR_M
    if me.crossing and me.s > own.curb_s[1] + 0.4:
        me.crossing = False
    allowed = min(own.top_speed, np.sqrt(2.0 * 0.8 * room))
    return min(max((allowed - me.v) / 0.5, -1.5), own.acceleration)


@kernel
def _may_cross(tables, users, state, presence, walk_seconds, zebra_lanes, step, own):
    """Whether the light allows it, and nobody comes who could not stop with ease."""
    signal = walk_seconds[own.zebra, step]
    if signal >= 0.0 and signal < min((own.curb_s[1] - own.curb_s[0]) / own.top_speed, LONGEST_WALK_S):
        return False
    for r in range(len(zebra_lanes)):
        if zebra_lanes[r, 0] == own.zebra:
            lane, crossing = zebra_lanes[r, 1], tables.zebras[zebra_lanes[r, 2]]
            for chain in (HERE, COMING):
                number = presence.head[chain, lane]
                while number >= 0:
                    entry = presence.entries[number]
                    if entry.rank != LEAVING and _is_in_the_way(users, state, crossing, signal, entry):
                        return False
                    number = entry.following
    return True


@kernel
def _is_in_the_way(users, state, crossing, signal, entry):
    """Whether somebody on the way to a crosswalk, or on it, makes one wait; with a green light only who is close."""
    other, v = users[entry.user], state[entry.user].v
    if other.kind == _PEDESTRIAN:
        return False
    front = entry.ahead + crossing.span[0] - 0.5 * other.length
    rear = entry.ahead + crossing.span[1] + 0.5 * other.length
    stops_easily = front > v * v / (2.0 * COURTESY_BRAKING) + 0.4 * v + 2.0
    if rear <= -0.5 or stops_easily or (v <= 0.3 and front >= 0.3):
        return False
    return signal < 0.0 or front < v * 3.0


@kernel
def room_before_pedestrians(tables, users, state, walkers, i, lane, start, line_room):
    """Room of a driver before crosswalks that somebody uses or waits for, on a lane that begins `start` meters ahead.

    `line_room` is the room before the lane's stop line: there one stops for a crosswalk just behind it.
    """
    room = FAR_M
    own, v = users[i], state[i].v
    half = 0.5 * own.length
    for z in range(tables.lanes[lane].zebra, tables.lanes[lane + 1].zebra):
        crossing = tables.zebras[z]
        to_zebra = start + crossing.span[0] - half
        if to_zebra < -0.1:
            continue
        to_hold = max(to_zebra - 1.2, 0.0)
        if line_room < FAR_M and crossing.span[0] < 6.0:
            to_hold = max(line_room, 0.0) if start >= half else max(to_zebra - 0.4, 0.0)
        needed = v * v / (2.0 * max(to_hold, 0.1))
        through = travel_time(start + crossing.span[1] + half, v, own.acceleration, max(v, 5.0))
        for w in range(len(walkers)):
            walker, at = users[walkers[w]], state[walkers[w]]
            if at.alive and walker.zebra == crossing.zebra:
                across = crossing.across
                if walker.backwards == 1:
                    across = walker.curb_s[1] - walker.curb_s[0] - across
                margin = 0.5 * tables.lanes[lane].width + 0.4
                walked = at.s - walker.curb_s[0]
                if walked <= across + margin:
                    if at.crossing:
                        to_lane = (across - margin - walked) / max(at.v, 0.9)
                        passes_before = through + 1.2 < to_lane and needed > 0.5
                        if not passes_before and needed < 7.0:
                            room = min(room, to_hold)
                    elif -2.5 < walked < 0.3 and needed < COURTESY_BRAKING and tables.lanes[lane].light < 0:
                        room = min(room, to_hold)
    return room
