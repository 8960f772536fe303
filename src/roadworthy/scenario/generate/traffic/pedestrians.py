"""Pedestrians: when they step onto a crosswalk, and how drivers yield to them."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M, travel_time
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.generate.traffic.ways import COMING, HERE, LEAVING

COURTESY_BRAKING = 2.3  # m/s2, acceptable braking for a pedestrian at the curb
LONGEST_WALK_S = 9.0  # of green: enough to cross the widest road; drivers wait for pedestrians who are late
CURB_MARGIN_M = 0.5  # from the curb to where pedestrians wait

_PEDESTRIAN = int(Kind.PEDESTRIAN)


@kernel
def walking_acceleration(tables, users, state, presence, walk_seconds, crosswalk_lanes, step, i):
    """Return a pedestrian's acceleration: to walk, or to wait at the curb."""
    own, me = users[i], state[i]
    room = FAR_M
    if own.crosswalk >= 0 and not me.crossing and me.s < own.curb_s[1]:
        room = max(own.curb_s[0] - CURB_MARGIN_M - me.s, 0.0)
        if room < 1.0 and _may_cross(tables, users, state, presence, walk_seconds, crosswalk_lanes, step, own):
            me.crossing = True
            room = FAR_M
    if me.crossing and me.s > own.curb_s[1] + 0.4:
        me.crossing = False
    allowed = min(own.top_speed, np.sqrt(2.0 * 0.8 * room))
    return min(max((allowed - me.v) / 0.5, -1.5), own.acceleration)


@kernel
def _may_cross(tables, users, state, presence, walk_seconds, crosswalk_lanes, step, own):
    """Return whether the light permits crossing, and all vehicles can stop easily."""
    signal = walk_seconds[own.crosswalk, step]
    if signal >= 0.0 and signal < min((own.curb_s[1] - own.curb_s[0]) / own.top_speed, LONGEST_WALK_S):
        return False
    for r in range(len(crosswalk_lanes)):
        if crosswalk_lanes[r, 0] == own.crosswalk:
            lane, crossing = crosswalk_lanes[r, 1], tables.lane_crosswalks[crosswalk_lanes[r, 2]]
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
    """Return whether a vehicle near or on a crosswalk makes pedestrians wait; with a green light only close ones."""
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
def room_before_pedestrians(tables, users, state, pedestrians, i, lane, start, line_room):
    """Return a driver's room before crosswalks with pedestrians, on a lane that starts `start` m ahead.

    `line_room` is the room before the lane's stop line, where drivers stop for a crosswalk just beyond it.
    """
    room = FAR_M
    own, v = users[i], state[i].v
    half = 0.5 * own.length
    for z in range(tables.lanes[lane].crosswalk, tables.lanes[lane + 1].crosswalk):
        crossing = tables.lane_crosswalks[z]
        to_crosswalk = start + crossing.span[0] - half
        if to_crosswalk < -0.1:
            continue
        to_hold = max(to_crosswalk - 1.2, 0.0)
        if line_room < FAR_M and crossing.span[0] < 6.0:
            to_hold = max(line_room, 0.0) if start >= half else max(to_crosswalk - 0.4, 0.0)
        needed = v * v / (2.0 * max(to_hold, 0.1))
        through = travel_time(start + crossing.span[1] + half, v, own.acceleration, max(v, 5.0))
        for w in range(len(pedestrians)):
            pedestrian, at = users[pedestrians[w]], state[pedestrians[w]]
            if at.alive and pedestrian.crosswalk == crossing.crosswalk:
                across = crossing.across
                if pedestrian.backwards == 1:
                    across = pedestrian.curb_s[1] - pedestrian.curb_s[0] - across
                margin = 0.5 * tables.lanes[lane].width + 0.4
                walked = at.s - pedestrian.curb_s[0]
                if walked <= across + margin:
                    if at.crossing:
                        to_lane = (across - margin - walked) / max(at.v, 0.9)
                        passes_before = through + 1.2 < to_lane and needed > 0.5
                        if not passes_before and needed < 7.0:
                            room = min(room, to_hold)
                    elif -2.5 < walked < 0.3 and needed < COURTESY_BRAKING and tables.lanes[lane].light < 0:
                        room = min(room, to_hold)
    return room
