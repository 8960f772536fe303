"""Lane changes: MOBIL (Kesting, Treiber and Helbing, 2007), and those that a closed lane or a script demands."""

from __future__ import annotations

import numpy as np

from roadworthy.compile import kernel
from roadworthy.scenario.generate.traffic.following import FAR_M, following_acceleration
from roadworthy.scenario.generate.traffic.leaders import follower_on_lane, leader_on_way
from roadworthy.scenario.generate.traffic.place import beside
from roadworthy.scenario.generate.traffic.users import Kind, Script
from roadworthy.scenario.generate.traffic.ways import scramble, start_route

REST_STEPS = 150  # between two changes of one driver
ADVANTAGE = 0.6  # m/s2 that a change has to gain
SAFE_BRAKING = 1.5  # m/s2 that a change may ask of anybody
URGENT_BRAKING = 2.6  # m/s2 that a change may ask where the lane is closed
SCRIPTED_BRAKING = 4.0  # m/s2 that a scripted change may ask
MUST = -1.0e9  # as an advantage: change whatever it costs
TIGHT = 0.4  # of the usual headway will do for a change that has to be
ZIPPER_BRAKING = 1.5  # m/s2 that one offers to let somebody in, or to fall in behind
CLEARED = 0.75  # of the change, after which the old lane is free

_CAR = int(Kind.CAR)
_NONE, _LEFT, _RIGHT = int(Script.NONE), int(Script.CHANGE_LEFT), int(Script.CHANGE_RIGHT)


@kernel
def _is_free(script):
    """Whether a script leaves the choice of lane to the driver, or asks for a change."""
    return script in (_NONE, _LEFT, _RIGHT)


@kernel
def consider_change(tables, users, state, presence, step, i, wanted, acceleration):
    """Begin a lane change where there is a reason and room for it."""
    if users.kind[i] != _CAR or state.blend_from[i] != 0.0 or not _is_free(users.script[i]):
        return
    lane = state.lane[i]
    if tables.lanes.ends[lane] == 1:
        # Drivers look for their gap once they are nearly as fast as the traffic that they join.
        if state.v[i] > 0.75 * tables.lanes.limit[lane] or state.s[i] > 0.45 * tables.lanes.length[lane]:
            _try(
                tables,
                users,
                state,
                presence,
                step,
                i,
                tables.lanes.left[lane],
                wanted,
                acceleration,
                URGENT_BRAKING,
                MUST,
            )
        return
    asked = users.script[i] == _LEFT or users.script[i] == _RIGHT
    if asked and state.changed_step[i] < users.script_step[i]:
        if step >= users.script_step[i]:
            other = tables.lanes.left[lane] if users.script[i] == _LEFT else tables.lanes.right[lane]
            _try(tables, users, state, presence, step, i, other, wanted, acceleration, SCRIPTED_BRAKING, MUST)
        return
    if asked or step - state.changed_step[i] < REST_STEPS or (step + i) % 5 != 0:
        return
    for other in (tables.lanes.left[lane], tables.lanes.right[lane]):
        if other >= 0 and tables.lanes.ends[other] == 0:
            if _try(tables, users, state, presence, step, i, other, wanted, acceleration, SAFE_BRAKING, ADVANTAGE):
                return


@kernel
def _try(tables, users, state, presence, step, i, other, wanted, acceleration, safe, advantage):
    """Change to a neighbour lane if that is safe for all and better by `advantage`."""
    lane, v = state.lane[i], state.v[i]
    must = advantage <= MUST
    if other < 0 or (v < 2.0 and not must):
        return False
    if (
        tables.lanes.nudge[lane + 1] > tables.lanes.nudge[lane]
        or tables.lanes.nudge[other + 1] > tables.lanes.nudge[other]
    ):
        return False
    seconds = (4.8 if tables.lanes.freeway[lane] == 1 else 3.8) + 2.0 * scramble(users.seed[i], 1000 + step // 50)
    length = max(v * seconds, 20.0)
    s = beside(tables, lane, state.s[i], other)
    left = tables.lanes.length[other] - s
    if tables.lanes.freeway[other] == 1:
        # Who has to may use the pavement behind the end of the lane, too, if slow enough.
        if tables.lanes.ends[lane] == 1 and v > 6.0 and tables.lanes.length[lane] - state.s[i] < 0.5 * length:
            return False
        if left + _free_run(tables, other) < length + 10.0:
            return False
    elif left < length + 8.0:
        return False
    route = np.full(3, -1, np.int64)
    route[0] = other
    for k in range(1, 3):
        last = route[k - 1]
        if tables.lanes.follow[last + 1] > tables.lanes.follow[last]:
            route[k] = tables.follow[tables.lanes.follow[last]]
        else:
            break
    gap, leader = leader_on_way(tables, users, state, presence, i, s, route, 150.0)
    behind, follower = follower_on_lane(users, state, presence, i, other, s)
    if gap < 2.0 + 0.15 * v or (follower >= 0 and behind < 2.0 + 0.25 * state.v[follower]):
        return False
    share = TIGHT if must else 0.8
    mine = following_acceleration(users, state, i, wanted, gap, leader, share)
    loss = 0.0
    if follower >= 0:
        f = follower
        top = min(users.speed_factor[f] * tables.lanes.limit[other], users.top_speed[f])
        theirs = following_acceleration(users, state, f, top, behind, i, share)
        if theirs < -safe:
            return False
        loss = max(0.0, state.a[f] - theirs)
    if mine < -safe or mine - acceleration - users.politeness[i] * loss < advantage:
        return False
    state.old_lane[i] = lane
    state.blend_from[i] = tables.lanes.offset[lane] - tables.lanes.offset[other]
    state.blend_start[i] = state.travelled[i]
    state.blend_length[i] = length
    state.changed_step[i] = step
    state.s[i] = s
    start_route(tables, users, state, i, other)
    return True


@kernel
def _free_run(tables, lane):
    """Metres of freeway that follow a lane."""
    run = 0.0
    for _ in range(3):
        if tables.lanes.follow[lane + 1] == tables.lanes.follow[lane]:
            break
        lane = tables.follow[tables.lanes.follow[lane]]
        run += tables.lanes.length[lane]
    return run


@kernel
def zipper_acceleration(tables, users, state, presence, i, wanted):
    """Where the lane or the one beside it ends: fall in behind whoever is ahead on the other of the two."""
    lane = state.lane[i]
    if tables.lanes.ends[lane] == 1:
        other = tables.lanes.left[lane]
    else:
        other = tables.lanes.right[lane]
        if other < 0 or tables.lanes.ends[other] == 0:
            return FAR_M
    row = np.full(1, other, np.int64)
    s = beside(tables, lane, state.s[i], other)
    gap, leader = leader_on_way(tables, users, state, presence, i, s, row, 30.0 + 2.0 * state.v[i])
    if leader < 0 or state.v[leader] < 2.0:
        return FAR_M
    return max(following_acceleration(users, state, i, wanted, gap, leader, TIGHT), -ZIPPER_BRAKING)


@kernel
def finish_change(state, i):
    """Forget a lane change that is over."""
    if state.blend_from[i] != 0.0:
        part = (state.travelled[i] - state.blend_start[i]) / state.blend_length[i]
        if part >= CLEARED:
            state.old_lane[i] = -1
        if part >= 1.0:
            state.blend_from[i] = 0.0
