"""Giving way to lights, signs, traffic that goes first, full exits and pedestrians: the metres left to stop in."""

from __future__ import annotations

import numpy as np

from roadworthy.compile import kernel
from roadworthy.scenario.generate.network import Control
from roadworthy.scenario.generate.traffic.following import FAR_M, travel_time
from roadworthy.scenario.generate.traffic.tables import CROSSING, DIVERGING, MERGING
from roadworthy.scenario.generate.traffic.users import Kind
from roadworthy.scenario.generate.traffic.ways import COMING, HERE, LEAVING
from roadworthy.scenario.schema import LightState

LINE_MARGIN_M = 1.0  # from the bumper to a stop line, when standing
STANDING_ROOM_M = 3.0  # who stands this close to where one has to stop does not creep closer
FIRM_BRAKING = 2.6  # m/s2, what one is ready to do for a light that turns yellow, or for a pedestrian
HARD_BRAKING = 5.0  # m/s2
COMMITTING_BRAKING = 3.0  # m/s2: who would have to brake harder to stop at the line goes on
PATIENCE_STEPS = 100.0  # of waiting, after which half the usual gap will do
LONGEST_WALK_S = 9.0  # of green: with that much left one crosses the widest road; drivers wait for who is late
COURTESY_BRAKING = 2.3  # m/s2, what one is ready to do for a pedestrian who waits at the kerb

_STOP, _FREE, _SIGNAL = int(Control.STOP), int(Control.FREE), int(Control.SIGNAL)
_CAR, _PEDESTRIAN = int(Kind.CAR), int(Kind.PEDESTRIAN)
_ARROW_STOP, _RED, _FLASHING = int(LightState.ARROW_STOP), int(LightState.STOP), int(LightState.FLASHING_CAUTION)
_ARROW_YELLOW, _YELLOW = int(LightState.ARROW_CAUTION), int(LightState.CAUTION)


@kernel
def is_red(shown):
    return shown in (_RED, _ARROW_STOP)


@kernel
def is_yellow(shown):
    return shown in (_YELLOW, _ARROW_YELLOW)


@kernel
def room_to_stop(tables, users, state, presence, lights, walkers, step, i):
    """Metres from the front bumper to the nearest place where one has to stop, FAR_M if nowhere."""
    room = FAR_M
    v, half = state.v[i], 0.5 * users.length[i]
    reach = v * v / 3.0 + 25.0
    start = -state.s[i]
    for k in range(state.route_length[i]):
        lane = state.route[i, k]
        if start - half > reach:
            break
        room = min(room, _room_before_pedestrians(tables, users, state, walkers, i, lane, start, k))
        if (
            k > 0
            and tables.lanes.junction[lane] >= 0
            and tables.lanes.junction[lane] != tables.lanes.junction[state.route[i, k - 1]]
        ):
            to_line = start - half - LINE_MARGIN_M
            if state.committed[i] != lane:
                if start - half < 0.2:
                    state.committed[i] = lane
                elif _must_wait(tables, users, state, presence, lights, step, i, k, start):
                    room = min(room, max(to_line, 0.0))
                elif v * v / (2.0 * COMMITTING_BRAKING) > to_line:
                    state.committed[i] = lane
        if tables.lanes.junction[lane] >= 0 and (k == 0 or state.committed[i] == lane):
            room = min(room, _room_before_blocked_zone(tables, users, state, presence, i, lane, start))
        if tables.lanes.ends[lane] == 1:
            left = start + tables.lanes.length[lane] - half - 4.0
            if left < v * v / (2.0 * FIRM_BRAKING) + v:  # before that one still hopes for a gap to merge into
                room = min(room, left)
        start += tables.lanes.length[lane]
    return room


@kernel
def _must_wait(tables, users, state, presence, lights, step, i, k, start):
    """Whether to stop before the junction lane that is number k of the route and begins `start` metres ahead."""
    lane = state.route[i, k]
    half, v = 0.5 * users.length[i], state.v[i]
    to_line = start - half - LINE_MARGIN_M
    light = tables.lanes.light[lane]
    if light >= 0:
        shown = lights[light, step]
        if is_red(shown):
            return True
        # Who has begun to stop for a yellow light does so, even if it takes firm braking in the end.
        if is_yellow(shown) and v * v / (2.0 * max(to_line, 0.1)) < (HARD_BRAKING if state.held[i] else FIRM_BRAKING):
            return True
    if tables.lanes.control[lane] == _STOP and state.halted_lane[i] != lane:
        if to_line < STANDING_ROOM_M and v < 0.3:
            state.halted_lane[i] = lane
            state.halted_step[i] = step
        else:
            return True
    if to_line > 45.0:
        return False
    if _exit_is_full(tables, users, state, presence, i, k):
        return True
    for c in range(tables.lanes.conflict[lane], tables.lanes.conflict[lane + 1]):
        if tables.conflicts.kind[c] != DIVERGING:
            for chain in (HERE, COMING):
                number = presence.head[chain, tables.conflicts.lane[c]]
                while number >= 0:
                    entry = presence.entries[number]
                    if entry.user != i and entry.rank != LEAVING:
                        if _goes_first(tables, users, state, lights, step, i, lane, start, c, entry):
                            return True
                    number = entry.following
    return False


@kernel
def _goes_first(tables, users, state, lights, step, i, lane, start, c, entry):
    """Whether to let somebody pass at conflict c of a lane that begins `start` metres ahead."""
    other, kind, rank = tables.conflicts.lane[c], tables.conflicts.kind[c], tables.conflicts.rank[c]
    j, order, ahead = entry.user, entry.rank, entry.ahead
    half_i, half_j = 0.5 * users.length[i], 0.5 * users.length[j]
    j_in, j_out = ahead + tables.conflicts.other[c, 0] - half_j, ahead + tables.conflicts.other[c, 1] + half_j
    if j_out < 0.0:
        return False
    is_bound = order == 0 or state.committed[j] == other
    if not is_bound:
        if state.v[j] < 0.5 and ahead - half_j > STANDING_ROOM_M + 2.0:
            return False  # it stands in a queue and won't come soon
        light = tables.lanes.light[other]
        if light >= 0 and (is_red(lights[light, step]) or is_yellow(lights[light, step])):
            return False
        if rank > 0 or state.held[j]:
            if not (rank == 0 and state.halted_lane[j] == other):
                return False
        if rank == 0:
            if tables.lanes.control[other] != _STOP or state.halted_lane[j] != other:
                return False
            mine = state.halted_step[i] if state.halted_lane[i] == lane else step
            if state.halted_step[j] > mine or (state.halted_step[j] == mine and j > i):
                return False
            if state.v[j] < 0.3 and step - state.halted_step[j] > 60 + 7 * (j % 5):
                return False  # it was given its turn and did not take it
    v_i, v_j, push = state.v[i], state.v[j], users.acceleration[i]
    gap = users.gap[i] / (1.0 + state.waited[i] / PATIENCE_STEPS)
    pace = min(np.sqrt(users.cornering[i] / max(tables.lanes.sharpest[lane], 1e-4)), tables.lanes.limit[lane])
    to_zone = start + tables.conflicts.own[c, 0] - half_i
    i_in = travel_time(to_zone, v_i, push, max(pace, v_i))
    their_pace = min(users.speed_factor[j] * tables.lanes.limit[other], users.top_speed[j])
    earliest = travel_time(j_in, v_j, users.acceleration[j] if is_bound or v_j < 1.0 else 0.8, max(v_j, their_pace))
    latest = travel_time(j_out, v_j, 0.8, max(0.7 * v_j, 3.0))
    if kind == MERGING:
        # Enough time for the one behind to adapt to the speed at which the first one joins.
        joining = min(np.sqrt(v_i * v_i + 2.0 * push * max(to_zone, 0.0)), pace)
        needed = i_in + 0.7 + gap + max(0.0, v_j - joining) / FIRM_BRAKING
        return needed > earliest and latest + 1.0 > i_in
    i_out = travel_time(start + tables.conflicts.own[c, 1] + half_i, v_i, 0.75 * push, pace)
    return i_out + gap > earliest and latest + 0.9 > i_in


@kernel
def _exit_is_full(tables, users, state, presence, i, k):
    """Whether one would have to stop inside the junction because the lane behind it has no room."""
    target = k + 1
    while target < state.route_length[i] and tables.lanes.junction[state.route[i, target]] >= 0:
        return False
    if target >= state.route_length[i]:
        return False
    entry = presence.head[HERE, state.route[i, target]]
    while entry >= 0:
        j = presence.entries.user[entry]
        if j != i and state.v[j] < 2.5:
            if -presence.entries.ahead[entry] - 0.5 * users.length[j] < users.length[i] + 2.0:
                return True
        entry = presence.entries.following[entry]
    return False


@kernel
def _room_before_blocked_zone(tables, users, state, presence, i, lane, start):
    """Inside a junction: room before a crossing that somebody occupies."""
    room = FAR_M
    for c in range(tables.lanes.conflict[lane], tables.lanes.conflict[lane + 1]):
        if tables.conflicts.kind[c] != CROSSING:
            continue
        gap = start + tables.conflicts.own[c, 0] - 0.5 * users.length[i] - 1.0
        if gap < 0.0:
            continue
        entry = presence.head[HERE, tables.conflicts.lane[c]]
        while entry >= 0:
            j = presence.entries.user[entry]
            if j != i and presence.entries.rank[entry] == 0:
                at, half = -presence.entries.ahead[entry], 0.5 * users.length[j]
                if at + half > tables.conflicts.other[c, 0] and at - half < tables.conflicts.other[c, 1]:
                    room = min(room, gap)
            entry = presence.entries.following[entry]
    return room


@kernel
def _room_before_pedestrians(tables, users, state, walkers, i, lane, start, k):
    """Room before a crosswalk on this lane that a pedestrian uses or waits for."""
    room = FAR_M
    half, v = 0.5 * users.length[i], state.v[i]
    for z in range(tables.lanes.zebra[lane], tables.lanes.zebra[lane + 1]):
        to_zebra = start + tables.zebras.span[z, 0] - half
        if to_zebra < -0.1:
            continue
        to_hold = max(to_zebra - 1.2, 0.0)
        if k > 0 and tables.lanes.junction[lane] >= 0 and tables.zebras.span[z, 0] < 6.0:
            to_hold = max(start - half - LINE_MARGIN_M, 0.0)  # the stop line before the crosswalk
            if start - half < 0.0:
                to_hold = max(to_zebra - 0.4, 0.0)
        needed = v * v / (2.0 * max(to_hold, 0.1))
        through = travel_time(start + tables.zebras.span[z, 1] + half, v, users.acceleration[i], max(v, 5.0))
        for w in range(len(walkers)):
            j = walkers[w]
            if not state.alive[j] or users.zebra[j] != tables.zebras.zebra[z]:
                continue
            width = users.kerb_s[j, 1] - users.kerb_s[j, 0]
            across = tables.zebras.across[z]
            if users.backwards[j] == 1:
                across = width - across
            margin = 0.5 * tables.lanes.width[lane] + 0.4
            walked = state.s[j] - users.kerb_s[j, 0]
            if walked > across + margin:
                continue
            if state.crossing[j]:
                to_lane = (across - margin - walked) / max(state.v[j], 0.9)
                if through + 1.2 < to_lane and needed > 0.5:
                    continue
                if needed < 7.0:
                    room = min(room, to_hold)
            elif walked > -2.5 and walked < 0.3 and needed < COURTESY_BRAKING and tables.lanes.light[lane] < 0:
                room = min(room, to_hold)
    return room


@kernel
def may_cross(tables, users, state, presence, walk_seconds, zebra_lanes, step, i):
    """Whether a pedestrian at the kerb steps onto the road."""
    zebra = users.zebra[i]
    signal = walk_seconds[zebra, step]
    if signal >= 0.0:
        needed = (users.kerb_s[i, 1] - users.kerb_s[i, 0]) / users.top_speed[i]
        if signal < min(needed, LONGEST_WALK_S):
            return False
    for r in range(len(zebra_lanes)):
        if zebra_lanes[r, 0] != zebra:
            continue
        lane, z = zebra_lanes[r, 1], zebra_lanes[r, 2]
        for chain in (HERE, COMING):
            entry = presence.head[chain, lane]
            while entry >= 0:
                j = presence.entries.user[entry]
                if users.kind[j] != _PEDESTRIAN and presence.entries.rank[entry] != LEAVING:
                    front = presence.entries.ahead[entry] + tables.zebras.span[z, 0] - 0.5 * users.length[j]
                    rear = presence.entries.ahead[entry] + tables.zebras.span[z, 1] + 0.5 * users.length[j]
                    v = state.v[j]
                    stops_easily = front > v * v / (2.0 * COURTESY_BRAKING) + 0.4 * v + 2.0
                    if rear > -0.5 and not stops_easily and (v > 0.3 or front < 0.3):
                        if signal < 0.0 or front < v * 3.0:
                            return False
                entry = presence.entries.following[entry]
    return True
