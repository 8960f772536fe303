"""The traffic simulation: every road user decides, then all move at once; every step is recorded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.compile import kernel
from roadworthy.scenario.generate.traffic.following import (
    FAR_M,
    REACTION_S,
    bend_acceleration,
    following_acceleration,
    stopping_acceleration,
)
from roadworthy.scenario.generate.traffic.giveway import STANDING_ROOM_M, may_cross, room_to_stop
from roadworthy.scenario.generate.traffic.lanechange import consider_change, finish_change, zipper_acceleration
from roadworthy.scenario.generate.traffic.leaders import leader_on_way
from roadworthy.scenario.generate.traffic.place import beside, offset, point
from roadworthy.scenario.generate.traffic.tables import RoadTables, lane_count
from roadworthy.scenario.generate.traffic.users import MEMORY_STEPS, Kind, Script, new_state
from roadworthy.scenario.generate.traffic.ways import new_presence, note_presence, start_route, step_route

DT = 0.1
HARDEST_BRAKING = 5.6  # m/s2, without a script
ALARMING_BRAKING = 3.2  # m/s2: what calls for more is done at once and abruptly
BORDER_M = 0.4  # road users appear and vanish this far inside the map's border

_PEDESTRIAN = int(Kind.PEDESTRIAN)
_BRAKE, _WAVE = int(Script.BRAKE), int(Script.WAVE)
_STANDING_STEPS = 40  # after a scripted stop


# What a road user did at a step.
MOTION = np.dtype(
    [("x", np.float64), ("y", np.float64), ("heading", np.float64), ("v", np.float64), ("there", np.bool_)]
)


def simulate(
    tables: RoadTables,
    users: NDArray[np.void],
    lights: NDArray[np.uint8],
    walk_seconds: NDArray[np.float64],
    zebra_lanes: NDArray[np.int64],
    steps: int,
) -> NDArray[np.void]:
    """Run traffic; returns (users, T) MOTION.

    lights: (lights, T) what each shows. walk_seconds: (crosswalks, T) seconds of green left, -1 without a light.
    zebra_lanes: (k, 3) crosswalk, lane, number of the ZEBRA record.
    """
    n = len(users)
    motion = np.zeros((n, steps), MOTION)
    _run(tables, users, new_state(n), new_presence(lane_count(tables), n), lights, walk_seconds, zebra_lanes, motion)
    return motion


@kernel
def _run(tables, users, state, presence, lights, walk_seconds, zebra_lanes, motion):
    n, steps = motion.shape
    walkers = np.flatnonzero(users.kind == _PEDESTRIAN)
    target = np.zeros(n)
    wanted = np.zeros(n)
    for step in range(steps):
        for i in range(n):
            if not state.alive[i] and not state.gone[i] and users.first_step[i] <= step:
                _appear(tables, users, state, i, step)
        note_presence(tables, state, presence)
        for i in range(n):
            if state.alive[i]:
                _record(tables, users, state, motion, step, i)
                if users.kind[i] == _PEDESTRIAN:
                    target[i] = _walk(tables, users, state, presence, walk_seconds, zebra_lanes, step, i)
                else:
                    target[i], wanted[i] = _drive(tables, users, state, presence, lights, walkers, step, i)
        for i in range(n):
            if state.alive[i] and users.kind[i] != _PEDESTRIAN:
                before = state.lane[i]
                consider_change(tables, users, state, presence, step, i, wanted[i], target[i])
                if state.lane[i] != before:
                    note_presence(tables, state, presence)  # whoever decides next sees the change
        for i in range(n):
            if state.alive[i]:
                _move(tables, users, state, target[i], step, i)


@kernel
def _appear(tables, users, state, i, step):
    """Enter the map at a speed that suits the traffic ahead, or wait while there is no room."""
    lane, speed = users.lane[i], users.speed[i]
    if step > 0:
        for j in range(len(state)):
            if state.alive[j] and lane in (state.lane[j], state.old_lane[j]):
                gap = state.s[j] - users.s[i] - 0.5 * (users.length[i] + users.length[j]) - users.standing_gap[i]
                if gap < 2.0:
                    return
                speed = min(speed, gap / users.headway[i], np.sqrt(state.v[j] ** 2 + 2.0 * 1.0 * gap))
    state.alive[i] = True
    state.s[i] = users.s[i]
    state.v[i] = speed
    start_route(tables, users, state, i, lane)


@kernel
def _record(tables, users, state, motion, step, i):
    d, slope = offset(tables, users, state, i)
    x, y, heading, curvature = point(tables, state.lane[i], state.s[i])
    motion.x[i, step] = x - d * np.sin(heading)
    motion.y[i, step] = y + d * np.cos(heading)
    motion.heading[i, step] = heading + np.arctan2(slope, 1.0 - curvature * d)
    motion.v[i, step] = state.v[i]
    motion.there[i, step] = True


@kernel
def _drive(tables, users, state, presence, lights, walkers, step, i):
    """The acceleration that a driver or cyclist wants, and the speed."""
    v, braking = state.v[i], users.braking[i]
    wanted = min(users.speed_factor[i] * tables.lanes.limit[state.lane[i]], users.top_speed[i])
    room = room_to_stop(tables, users, state, presence, lights, walkers, step, i)
    state.held[i] = room < FAR_M and room < max(v * v / (2.0 * 1.2), 6.0)
    state.waited[i] = state.waited[i] + 1 if state.held[i] and v < 0.5 else 0
    if room < FAR_M:
        near = max(room - REACTION_S * v, 0.0)
        wanted = min(wanted, np.sqrt(2.0 * 0.55 * braking * near), 0.5 * near + 0.1)
        if v < 0.3 and room < STANDING_ROOM_M:
            wanted = 0.0
    if users.script[i] == _WAVE and step >= users.script_step[i]:
        beat = (step - users.script_step[i]) * DT / users.script_value[i] % 2.0
        wanted = min(wanted, 0.02 if beat < 1.2 else 4.5)
    reach = 40.0 + 6.0 * v
    gap, leader = leader_on_way(tables, users, state, presence, i, state.s[i], state.route[i], reach)
    a = following_acceleration(users, state, i, wanted, gap, leader, 1.0)
    a = min(a, bend_acceleration(tables, users, state, i))
    a = min(a, zipper_acceleration(tables, users, state, presence, i, wanted))
    old = state.old_lane[i]
    if old >= 0:
        s = beside(tables, state.lane[i], state.s[i], old)
        row = np.full(1, old, np.int64)
        gap, leader = leader_on_way(tables, users, state, presence, i, s, row, reach)
        a = min(a, following_acceleration(users, state, i, wanted, gap, leader, 0.5))
    if room < FAR_M:
        a = min(a, stopping_acceleration(v, room, braking))
    return max(a, -HARDEST_BRAKING), wanted


@kernel
def _walk(tables, users, state, presence, walk_seconds, zebra_lanes, step, i):
    """The acceleration that a pedestrian wants."""
    room = FAR_M
    if users.zebra[i] >= 0 and not state.crossing[i] and state.s[i] < users.kerb_s[i, 1]:
        room = max(users.kerb_s[i, 0] - 0.5 - state.s[i], 0.0)
        if room < 1.0 and may_cross(tables, users, state, presence, walk_seconds, zebra_lanes, step, i):
            state.crossing[i] = True
            room = FAR_M
    if state.crossing[i] and state.s[i] > users.kerb_s[i, 1] + 0.4:
        state.crossing[i] = False
    allowed = min(users.top_speed[i], np.sqrt(2.0 * 0.8 * room))
    return min(max((allowed - state.v[i]) / 0.5, -1.5), users.acceleration[i])


@kernel
def _move(tables, users, state, target, step, i):
    """Act on what was decided a reaction time ago, and go on."""
    for k in range(MEMORY_STEPS - 1, 0, -1):
        state.commands[i, k] = state.commands[i, k - 1]
    state.commands[i, 0] = target
    command = state.commands[i, users.delay[i]]
    rate = users.jerk[i] * DT
    if target < -ALARMING_BRAKING:
        command, rate = min(command, target), 9.0 * DT
    elif command < -2.5:
        rate = max(rate, 6.0 * DT)
    if users.script[i] == _BRAKE and step >= users.script_step[i]:
        if state.v[i] > 0.0 or step < users.script_step[i] + _STANDING_STEPS:
            command = min(command, -users.script_value[i])
            rate = 16.0 * DT
    v = state.v[i]
    a = state.a[i] + min(max(command - state.a[i], -rate), rate)
    a = max(a, -(0.4 + 1.7 * v))  # nobody stops with a jolt
    faster = v + a * DT
    if faster <= 0.0:
        faster, a = 0.0, 0.0
    _, _, _, curvature = point(tables, state.lane[i], state.s[i])
    d, slope = offset(tables, users, state, i)
    along = 0.5 * (v + faster) * DT / np.hypot(1.0 - curvature * d, slope)
    state.v[i], state.a[i] = faster, a
    state.s[i] += along
    state.travelled[i] += along
    finish_change(state, i)
    on_map = step_route(tables, users, state, i)
    if on_map and state.route_length[i] == 1 and tables.lanes.ends[state.lane[i]] == 0:
        on_map = state.s[i] + 0.5 * users.length[i] < tables.lanes.length[state.lane[i]] - BORDER_M
    if not on_map:
        state.alive[i] = False
        state.gone[i] = True
