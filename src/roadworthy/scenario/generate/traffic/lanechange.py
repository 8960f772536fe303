"""Lane changes: MOBIL (Kesting, Treiber and Helbing, 2007), and those that a closed lane or a script requires."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M, following_acceleration
from roadworthy.scenario.generate.traffic.leaders import follower_on_lane, leader_on_way
from roadworthy.scenario.generate.traffic.place import beside
from roadworthy.scenario.generate.traffic.users import Kind, Script
from roadworthy.scenario.generate.traffic.ways import scramble, start_route

REST_STEPS = 150  # between two changes of one driver
ADVANTAGE = 0.6  # m/s2 that a change must gain
SAFE_BRAKING = 1.5  # m/s2 that a change may impose on others
URGENT_BRAKING = 2.6  # m/s2 that a change may impose if the lane is closed
SCRIPTED_BRAKING = 4.0  # m/s2 that a scripted change may impose
TIGHT = 0.4  # of the usual headway is enough for a required change
ZIPPER_BRAKING = 1.5  # m/s2 of courteous braking to let somebody in, or to fall in behind
CLEARED = 0.75  # of the change, after which the old lane is free

_CAR = int(Kind.CAR)
_NONE, _LEFT, _RIGHT = int(Script.NONE), int(Script.CHANGE_LEFT), int(Script.CHANGE_RIGHT)


@kernel
def consider_change(tables, users, state, presence, step, i, wanted, acceleration):
    """Start a lane change if there is a reason and room for it."""
    own, me = users[i], state[i]
    if own.kind != _CAR or me.blend_from != 0.0 or own.script not in (_NONE, _LEFT, _RIGHT):
        return
    here = tables.lanes[me.lane]
    reason = (wanted, acceleration)
    if here.ends == 1:
        # Drivers look for a gap when they are nearly as fast as the traffic that they join.
        if me.v > 0.75 * here.limit or me.s > 0.45 * here.length:
            _try(tables, users, state, presence, step, i, here.left, reason, URGENT_BRAKING, True)
    elif own.script != _NONE:
        if me.changed_step < own.script_step <= step:
            other = here.left if own.script == _LEFT else here.right
            _try(tables, users, state, presence, step, i, other, reason, SCRIPTED_BRAKING, True)
    elif step - me.changed_step >= REST_STEPS and (step + i) % 5 == 0:
        for other in (here.left, here.right):
            if other >= 0 and tables.lanes[other].ends == 0:
                if _try(tables, users, state, presence, step, i, other, reason, SAFE_BRAKING, False):
                    return


@kernel
def _try(tables, users, state, presence, step, i, other, reason, safe, must):
    """Change to a neighbor lane if nobody has to brake harder than `safe`, and if it is better or required.

    `reason` is the desired speed, and the acceleration in the present lane.
    """
    own, me = users[i], state[i]
    if other < 0 or (me.v < 2.0 and not must):
        return False
    if _has_obstacles(tables, me.lane) or _has_obstacles(tables, other):
        return False
    here, there = tables.lanes[me.lane], tables.lanes[other]
    seconds = (4.8 if here.freeway == 1 else 3.8) + 2.0 * scramble(own.seed, 1000 + step // 50)
    length = max(me.v * seconds, 20.0)
    s = beside(tables, me.lane, me.s, other)
    if there.freeway == 1:
        # A required change may use the pavement beyond the end of the lane, if slow enough.
        if here.ends == 1 and me.v > 6.0 and here.length - me.s < 0.5 * length:
            return False
        if there.length - s + _free_run(tables, other) < length + 10.0:
            return False
    elif there.length - s < length + 8.0:
        return False
    gap, leader = leader_on_way(tables, users, state, presence, i, s, _way_on(tables, other), 150.0)
    behind, follower = follower_on_lane(users, state, presence, i, other, s)
    if gap < 2.0 + 0.15 * me.v or (follower >= 0 and behind < 2.0 + 0.25 * state[follower].v):
        return False
    share = TIGHT if must else 0.8
    mine = following_acceleration(users, state, i, reason[0], gap, leader, share)
    loss = 0.0
    if follower >= 0:
        top = min(users[follower].speed_factor * there.limit, users[follower].top_speed)
        theirs = following_acceleration(users, state, follower, top, behind, i, share)
        if theirs < -safe:
            return False
        loss = max(0.0, state[follower].a - theirs)
    if mine < -safe or not (must or mine - reason[1] - own.politeness * loss >= ADVANTAGE):
        return False
    me.old_lane = me.lane
    me.blend_from = here.offset - there.offset
    me.blend_start, me.blend_length = me.traveled, length
    me.changed_step = step
    me.s = s
    start_route(tables, users, state, i, other)
    return True


@kernel
def _has_obstacles(tables, lane):
    return tables.lanes[lane + 1].nudge > tables.lanes[lane].nudge


@kernel
def _way_on(tables, lane):
    """Return a lane and up to two successors."""
    route = np.full(3, -1, np.int64)
    route[0] = lane
    for k in range(1, 3):
        last = route[k - 1]
        if tables.lanes[last + 1].follow == tables.lanes[last].follow:
            break
        route[k] = tables.follow[tables.lanes[last].follow]
    return route


@kernel
def _free_run(tables, lane):
    """Return m of freeway that follow a lane."""
    run = 0.0
    for _ in range(3):
        if tables.lanes[lane + 1].follow == tables.lanes[lane].follow:
            break
        lane = tables.follow[tables.lanes[lane].follow]
        run += tables.lanes[lane].length
    return run


@kernel
def zipper_acceleration(tables, users, state, presence, i, wanted):
    """Where the lane or its neighbor ends: fall in behind the leader in the other lane."""
    lane = state[i].lane
    if tables.lanes[lane].ends == 1:
        other = tables.lanes[lane].left
    else:
        other = tables.lanes[lane].right
        if other < 0 or tables.lanes[other].ends == 0:
            return FAR_M
    row = np.full(1, other, np.int64)
    s = beside(tables, lane, state[i].s, other)
    gap, leader = leader_on_way(tables, users, state, presence, i, s, row, 30.0 + 2.0 * state[i].v)
    if leader < 0 or state[leader].v < 2.0:
        return FAR_M
    return max(following_acceleration(users, state, i, wanted, gap, leader, TIGHT), -ZIPPER_BRAKING)


@kernel
def finish_change(state, i):
    """Finish a lane change that is complete."""
    if state[i].blend_from != 0.0:
        part = (state[i].traveled - state[i].blend_start) / state[i].blend_length
        if part >= CLEARED:
            state[i].old_lane = -1
        if part >= 1.0:
            state[i].blend_from = 0.0
