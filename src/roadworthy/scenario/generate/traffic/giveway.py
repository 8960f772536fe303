"""Where a driver must stop: lines, traffic with priority, pedestrians, the end of a lane."""

from __future__ import annotations

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M
from roadworthy.scenario.generate.traffic.lights import FIRM_BRAKING, is_flashing, light_stops, sign_stops
from roadworthy.scenario.generate.traffic.pedestrians import room_before_pedestrians
from roadworthy.scenario.generate.traffic.right_of_way import (
    exit_is_full,
    gives_way,
    room_before_blocked_zone,
    room_inside,
)

LINE_MARGIN_M = 1.0  # from the bumper to a stop line, when standing
COMMITTING_BRAKING = 3.0  # m/s2: a driver that would have to brake harder to stop at the line continues
DECIDING_M = 45.0  # distance to a junction at which a driver starts to look for traffic with priority


@kernel
def room_to_stop(tables, users, state, presence, lights, pedestrians, step, i):
    """Return m from the front bumper to the nearest place where the driver must stop, FAR_M if there is none."""
    room = FAR_M
    me = state[i]
    half = 0.5 * users[i].length
    reach = me.v * me.v / 3.0 + 25.0
    start, before = -me.s, -1  # where the lane starts, and the junction of the previous lane
    for k in range(me.route_length):
        if start - half > reach:
            break
        lane = me.route[k]
        junction = tables.lanes[lane].junction
        line_room = start - half - LINE_MARGIN_M if k > 0 and junction >= 0 else FAR_M
        room = min(room, room_before_pedestrians(tables, users, state, pedestrians, i, lane, start, line_room))
        inside = room_inside(tables, users, i, lane, start) if junction >= 0 else -1.0
        if k > 0 and junction >= 0 and junction != before and me.committed != lane:
            waits = _must_wait(tables, users, state, presence, lights, step, i, k, line_room)
            if start - half < 0.2:
                me.committed = lane
            elif waits:
                room = min(room, max(line_room, 0.0))
            elif line_room < DECIDING_M and gives_way(tables, users, state, presence, lights, step, i, lane, start):
                # On a flashing light a driver waits for a gap inside the junction, if there is room.
                may_enter = inside >= 0.0 and is_flashing(tables, lights, step, lane)
                room = min(room, inside if may_enter else max(line_room, 0.0))
            elif me.v * me.v / (2.0 * COMMITTING_BRAKING) > line_room:
                me.committed = lane
        elif inside >= 0.0 and gives_way(tables, users, state, presence, lights, step, i, lane, start):
            room = min(room, inside)
        if junction >= 0 and (k == 0 or me.committed == lane):
            room = min(room, room_before_blocked_zone(tables, users, presence, i, lane, start))
        if tables.lanes[lane].ends == 1:
            left = start + tables.lanes[lane].length - half - 4.0
            if left < me.v * me.v / (2.0 * FIRM_BRAKING) + me.v:  # before, there may be a gap to merge into
                room = min(room, left)
        start += tables.lanes[lane].length
        before = junction
    return room


@kernel
def _must_wait(tables, users, state, presence, lights, step, i, k, to_line):
    """Return whether to stop at the line of lane k of the route, a junction lane, regardless of other traffic."""
    lane = state[i].route[k]
    if light_stops(tables, state, lights, step, i, lane, to_line) or sign_stops(tables, state, step, i, lane, to_line):
        return True
    return to_line < DECIDING_M and exit_is_full(tables, users, state, presence, i, k)
