"""The traffic simulation: all road users decide, then all move; every step is recorded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic import following
from roadworthy.scenario.generate.traffic.giveway import room_to_stop
from roadworthy.scenario.generate.traffic.lanechange import consider_change, finish_change, zipper_acceleration
from roadworthy.scenario.generate.traffic.leaders import leader_on_way
from roadworthy.scenario.generate.traffic.lights import STANDING_ROOM_M
from roadworthy.scenario.generate.traffic.pedestrians import walking_acceleration
from roadworthy.scenario.generate.traffic.place import beside, offset, point
from roadworthy.scenario.generate.traffic.tables import RoadTables, lane_count
from roadworthy.scenario.generate.traffic.users import MEMORY_STEPS, Kind, Script, new_state
from roadworthy.scenario.generate.traffic.ways import new_presence, note_presence, start_route, step_route

DT = 0.1
HARDEST_BRAKING = 5.6  # m/s2, without a script
ALARMING_BRAKING = 3.2  # m/s2: stronger braking is immediate and abrupt
WAVE_MPS = 6.0  # the highest speed of a queue in waves
BORDER_M = 0.4  # road users appear and vanish this far inside the map's border

_PEDESTRIAN = int(Kind.PEDESTRIAN)
_BRAKE, _WAVE = int(Script.BRAKE), int(Script.WAVE)
_STANDING_STEPS = 40  # after a scripted stop


# The motion of a road user at a step.
MOTION = np.dtype(
    [("x", np.float64), ("y", np.float64), ("heading", np.float64), ("v", np.float64), ("present", np.bool_)]
)


def simulate(
    tables: RoadTables,
    users: NDArray[np.void],
    lights: NDArray[np.uint8],
    walk_seconds: NDArray[np.float64],
    crosswalk_lanes: NDArray[np.int64],
    steps: int,
) -> NDArray[np.void]:
    """Run traffic and return (users, T) MOTION.

    lights: (lights, T) states. walk_seconds: (crosswalks, T) seconds of green left, -1 without a light.
    crosswalk_lanes: (k, 3) crosswalk, lane, number of the LANE_CROSSWALK record.
    """
    n = len(users)
    motion = np.zeros((n, steps), MOTION)
    _run(
        tables, users, new_state(n), new_presence(lane_count(tables), n), lights, walk_seconds, crosswalk_lanes, motion
    )
    return motion


@kernel
def _run(tables, users, state, presence, lights, walk_seconds, crosswalk_lanes, motion):
    n, steps = motion.shape
    pedestrians = np.flatnonzero(users.kind == _PEDESTRIAN)
    target = np.zeros(n)
    wanted = np.zeros(n)
    for step in range(steps):
        for i in range(n):
            if not state[i].alive and not state[i].gone and users[i].first_step <= step:
                _appear(tables, users, state, i, step)
        note_presence(tables, state, presence)
        for i in range(n):
            if state[i].alive:
                _record(tables, users, state, motion, step, i)
                if users[i].kind == _PEDESTRIAN:
                    target[i] = walking_acceleration(
                        tables, users, state, presence, walk_seconds, crosswalk_lanes, step, i
                    )
                else:
                    target[i], wanted[i] = _drive(tables, users, state, presence, lights, pedestrians, step, i)
        for i in range(n):
            if state[i].alive and users[i].kind != _PEDESTRIAN:
                before = state[i].lane
                consider_change(tables, users, state, presence, step, i, wanted[i], target[i])
                if state[i].lane != before:
                    note_presence(tables, state, presence)  # the next ones to decide see the change
        for i in range(n):
            if state[i].alive:
                _move(tables, users, state, target[i], step, i)


@kernel
def _appear(tables, users, state, i, step):
    """Enter the map at a speed that suits the traffic ahead, or wait while there is no room."""
    own, me = users[i], state[i]
    speed = own.speed
    if step > 0:
        for j in range(len(state)):
            other = state[j]
            if other.alive and own.lane in (other.lane, other.old_lane):
                gap = other.s - own.s - 0.5 * (own.length + users[j].length) - own.standing_gap
                if gap < 2.0:
                    return
                speed = min(speed, gap / own.headway, np.sqrt(other.v**2 + 2.0 * gap))
    me.alive = True
    me.s = own.s
    me.v = speed
    start_route(tables, users, state, i, own.lane)


@kernel
def _record(tables, users, state, motion, step, i):
    d, slope = offset(tables, users, state, i)
    x, y, heading, curvature = point(tables, state[i].lane, state[i].s)
    frame = motion[i, step]
    frame.x = x - d * np.sin(heading)
    frame.y = y + d * np.cos(heading)
    frame.heading = heading + np.arctan2(slope, 1.0 - curvature * d)
    frame.v = state[i].v
    frame.present = True


@kernel
def _drive(tables, users, state, presence, lights, pedestrians, step, i):
    """Return the acceleration that a driver or cyclist wants, and the speed."""
    own, me = users[i], state[i]
    v = me.v
    room = room_to_stop(tables, users, state, presence, lights, pedestrians, step, i)
    me.held = room < following.FAR_M and room < max(v * v / (2.0 * 1.2), 6.0)
    me.waited = me.waited + 1 if me.held and v < 0.5 else 0
    wanted = min(own.speed_factor * tables.lanes[me.lane].limit, own.top_speed)
    if room < following.FAR_M:
        near = max(room - following.REACTION_S * v, 0.0)
        wanted = min(wanted, np.sqrt(2.0 * 0.55 * own.braking * near), 0.5 * near + 0.1)
        if v < 0.3 and room < STANDING_ROOM_M:
            wanted = 0.0
    if own.script == _WAVE and step >= own.script_step:
        beat = (step - own.script_step) * DT / own.script_value % 2.0
        wanted = min(wanted, 0.02 if beat < 1.2 else WAVE_MPS)
    reach = 40.0 + 6.0 * v
    gap, leader = leader_on_way(tables, users, state, presence, i, me.s, me.route, reach)
    a = following.following_acceleration(users, state, i, wanted, gap, leader, 1.0)
    a = min(a, following.bend_acceleration(tables, users, state, i))
    a = min(a, zipper_acceleration(tables, users, state, presence, i, wanted))
    if me.old_lane >= 0:
        row = np.full(1, me.old_lane, np.int64)
        s = beside(tables, me.lane, me.s, me.old_lane)
        gap, leader = leader_on_way(tables, users, state, presence, i, s, row, reach)
        a = min(a, following.following_acceleration(users, state, i, wanted, gap, leader, 0.5))
    if room < following.FAR_M:
        a = min(a, following.stopping_acceleration(v, room, own.braking))
    return max(a, -HARDEST_BRAKING), wanted


@kernel
def _move(tables, users, state, target, step, i):
    """Execute the decision from one reaction time ago, and move."""
    own, me = users[i], state[i]
    for k in range(MEMORY_STEPS - 1, 0, -1):
        me.commands[k] = me.commands[k - 1]
    me.commands[0] = target
    command, rate = me.commands[own.delay], own.jerk * DT
    if target < -ALARMING_BRAKING:
        command, rate = min(command, target), 9.0 * DT
    elif command < -2.5:
        rate = max(rate, 6.0 * DT)
    if own.script == _BRAKE and step >= own.script_step and me.stood < _STANDING_STEPS:
        command, rate = min(command, -own.script_value), 16.0 * DT
        if me.v == 0.0:
            me.stood += 1
    v = me.v
    a = me.a + min(max(command - me.a, -rate), rate)
    a = max(a, -(0.4 + 1.7 * v))  # no stops with a jolt
    faster = v + a * DT
    if faster <= 0.0:
        faster, a = 0.0, 0.0
    _, _, _, curvature = point(tables, me.lane, me.s)
    d, slope = offset(tables, users, state, i)
    along = 0.5 * (v + faster) * DT / np.hypot(1.0 - curvature * d, slope)
    me.v, me.a = faster, a
    me.s += along
    me.traveled += along
    finish_change(state, i)
    on_map = step_route(tables, users, state, i)
    if on_map and me.route_length == 1 and tables.lanes[me.lane].ends == 0:
        on_map = me.s + 0.5 * own.length < tables.lanes[me.lane].length - BORDER_M
    if not on_map:
        me.alive, me.gone = False, True
