"""The expert that follows a route as reactive traffic does, but through an ego's own actions.

Open worlds give egos their routes. In recorded ones each ego's is traced: the lanes along which its recording goes, as
reactive traffic in the place of recorded agents has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import entry, rule
from roadworthy.policy.experts.places import NEVER, keep_track
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.dynamics import PEDESTRIAN, decode, encode, wheelbase_of
from roadworthy.sim.rules.idm import HARDEST_MPS2, braking_range, solo_acceleration, wanted_acceleration
from roadworthy.sim.rules.route_geometry import FAR, Real, Road, route_pose
from roadworthy.sim.state import (
    ACCELERATION,
    BRAKE_GAIN,
    COS,
    DRIVEN_COUNT,
    GOAL,
    GOAL_COUNT,
    GOAL_DISTANCE,
    HASTE,
    IS_DRIVING,
    LATERAL,
    LENGTH,
    MAP,
    PATH_ARC,
    ROUTE_LANES,
    ROUTE_LENGTH,
    ROUTE_PLACE,
    SCENARIO,
    SIN,
    SPAWNS,
    SPEED,
    STEERING_GAIN,
    TRIAL,
    TYPE,
    Maps,
    Params,
    Scenarios,
    Worlds,
    X,
    Y,
)

LEAST_SETTLING_M = np.float32(2.5)
_BEND_M = np.float32(3.0)  # over which the route's bend is measured, since single pieces are noisy
_SLOWING = np.float32(2.0)  # m/s2, from which on it brakes for a goal that asks for a low speed
_LEAST_M = np.float32(0.1)
MOST_REST = np.float32(0.2)  # rad; half of the largest step between two choices is less
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


class DriveExpert:
    """Steers along the route, and keeps to the limit, its distance, lights and right of way as traffic does.

    Who is on no lane in a recorded world (pedestrians, parked cars) keeps its speed and its direction. It keeps its own
    account of where everybody is on their routes: asking it changes nothing in the env. To be asked once in every step.
    """

    def __init__(
        self, env: DriveEnv, *, knows_gains: bool = False, settling_s: float = 0.8, is_blind: bool = False
    ) -> None:
        """Drive all rows of an env.

        knows_gains: it is told the hidden gains of its steering and brakes, and makes up for them; else it takes both
            for 1.
        settling_s: over how many seconds of its way it makes up for being beside the route. Who corrects quickly hardly
            depends on knowing the gains; who trusts its steering does.
        is_blind: it heeds neither other agents nor lights nor signs, only limits and bends.
        """
        if not settling_s > 0:
            raise UsageError(f"settling_s is {settling_s}, expected seconds above 0")
        self._env = env
        self._knows_gains, self._settling_s, self._is_blind = knows_gains, np.float32(settling_s), is_blind
        self._actions = np.zeros((env.row_count, 2), np.float32)
        self._rests = np.zeros((env.world_count, env.rows_per_world), np.float32)
        self._own: Worlds | None = None
        self._routes = np.zeros((0, 0, 0), np.int32)

    def act(self) -> Floats:
        """(rows, 2) an action for every row, as `env.step` takes them; a view that the next call overwrites."""
        self._env.call_with_state(self._decide)
        return self._actions

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget these rows: what is asked of them next belongs to another attempt.

        mask: (rows,). Without a call, a later attempt is still told from an earlier one by its seed, scenario, trial
        and steps.
        """
        if self._own is not None:
            world, slot = np.nonzero(np.reshape(mask, (self._env.world_count, self._env.rows_per_world)))
            self._own.agent_flags[world, SPAWNS, slot] = NEVER

    def _decide(self, worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        own = self._account(worlds)
        _drive(
            worlds,
            maps,
            scenarios,
            settings,
            own,
            self._routes,
            self._rests,
            self._settling_s,
            self._knows_gains,
            self._is_blind,
            self._actions,
        )

    def _account(self, worlds: Worlds) -> Worlds:
        """The own account, as large as the worlds are: they grow when a scenario with more agents comes."""
        if self._own is not None and self._own.agent_flags.shape == worlds.agent_flags.shape:
            return self._own
        # Hidden factors stay 1 in the own account: what is not told is not known.
        own = Worlds._make(map(np.zeros_like, worlds))._replace(hidden=np.ones_like(worlds.hidden))
        own.clocks[:, TRIAL] = -1  # no trial was seen yet
        routes = np.zeros((len(worlds.agent_flags), 1 + ROUTE_LANES, worlds.agent_flags.shape[-1]), np.int32)
        if self._own is not None:
            kept: list[tuple[Any, Any]] = [*zip(self._own, own, strict=True), (self._routes, routes)]
            for before, after in kept:
                after[tuple(map(slice, before.shape))] = before
        self._own, self._routes = own, routes
        return own


@entry
def _drive(
    worlds: Worlds,
    maps: Maps,
    scenarios: Scenarios,
    settings: NDArray[np.void],
    own: Worlds,
    routes: Ints,
    rests: Floats,
    settling_s: Real,
    knows_gains: bool,
    is_blind: bool,
    actions_out: Floats,
) -> None:
    """Write the action of every driving agent; the others' is 0.

    own, routes: see keep_track.
    rests: (worlds, slots) rad by which earlier choices fell short of what was wanted.
    """
    p = settings[0]
    slots = rests.shape[1]
    for w in range(len(worlds.clocks)):
        is_running = worlds.clocks[w, SCENARIO] >= 0
        if is_running:
            keep_track(worlds, maps, scenarios, own, routes, rests, w, p)
        driven = worlds.clocks[w, DRIVEN_COUNT] if is_running else np.int32(0)
        for a in range(slots):
            first, second = _ZERO, _ZERO
            if a < driven and worlds.agent_flags[w, IS_DRIVING, a] != 0:
                along, across = _wish(own, maps, scenarios, w, a, settling_s, is_blind, p)
                if knows_gains:
                    along /= worlds.hidden[w, BRAKE_GAIN] if along < _ZERO else _ONE
                    across /= worlds.hidden[w, STEERING_GAIN]
                across += rests[w, a]
                first, second = encode(along, across, worlds.agent_flags[w, TYPE, a], p)
                if not (p.is_continuous or p.is_jerk):
                    # Choices are coarse: what this one leaves undone is added to the next, so that the mean is right.
                    _, asked = decode(first, second, worlds.agent_flags[w, TYPE, a], p)
                    rests[w, a] = min(max(across - asked, -MOST_REST), MOST_REST)
            actions_out[w * slots + a, 0], actions_out[w * slots + a, 1] = first, second


@rule
def _wish(
    own: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, settling_s: Real, is_blind: bool, p: Params
) -> tuple[Real, Real]:
    """What agent a would ask for, along and across, if its steering and brakes did as they are told."""
    agents, flags, clock = own.agents[w], own.agent_flags[w], own.clocks[w]
    dt, m, speed = scenarios.dt[clock[SCENARIO]], clock[MAP], agents[SPEED, a]
    if flags[ROUTE_LENGTH, a] == 0 and not p.is_open:
        if p.is_jerk and flags[TYPE, a] != PEDESTRIAN:
            return -agents[ACCELERATION, a] / dt, -agents[LATERAL, a] / dt
        return _ZERO, _ZERO
    if is_blind:
        road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
        haste = max(own.hidden[w, HASTE], _LEAST_M)
        reach = braking_range(agents, a, haste)
        acceleration = max(solo_acceleration(road, agents, flags, a, reach, FAR, haste), -HARDEST_MPS2)
    else:
        acceleration = wanted_acceleration(own, maps, scenarios, w, a, p)
    # Recorded agents drive on: their goal is where the recording happens to end. So do those with no goal left.
    if p.is_open and flags[GOAL, a] < flags[GOAL_COUNT, a]:
        to_goal = max(agents[GOAL_DISTANCE, a] - _HALF * p.goal_radius, _LEAST_M)
        slowing = (speed * speed - p.goal_speed * p.goal_speed) / (_TWO * to_goal)
        if slowing > _SLOWING:
            acceleration = min(acceleration, -slowing)
    along = (acceleration - agents[ACCELERATION, a]) / dt if p.is_jerk else acceleration
    if flags[ROUTE_LENGTH, a] == 0:
        return along, _ZERO
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    curvature = _curvature(road, agents, flags, a, speed * dt, max(speed * settling_s, LEAST_SETTLING_M))
    if p.is_jerk:
        mean = max(speed + _HALF * acceleration * dt, _HALF * speed)
        return along, (curvature * mean * mean - agents[LATERAL, a]) / dt
    return along, np.arctan(curvature * wheelbase_of(agents[LENGTH, a]))


@rule
def _curvature(road: Road, agents: Floats, flags: Ints, a: int, step: Real, settling: Real) -> Real:
    """Of the way that agent a should take: its route's over the coming step, and what leads back to the route.

    People steer by what they see ahead, and by what they see to be wrong: E. Donges, A two-level model of driver
    steering behavior (1978). The second part makes offset and angle vanish over a distance, without overshooting.
    """
    place, arc = flags[ROUTE_PLACE, a], agents[PATH_ARC, a]
    _, _, near_cos, near_sin = route_pose(road, flags, a, place, arc, _HALF * (step - _BEND_M))
    _, _, far_cos, far_sin = route_pose(road, flags, a, place, arc, _HALF * (step + _BEND_M))
    bend = np.arctan2(far_sin * near_cos - far_cos * near_sin, far_cos * near_cos + far_sin * near_sin) / _BEND_M
    x, y, cos, sin = route_pose(road, flags, a, place, arc, _ZERO)
    offset = (agents[Y, a] - y) * cos - (agents[X, a] - x) * sin
    angle = np.arctan2(agents[SIN, a] * cos - agents[COS, a] * sin, agents[COS, a] * cos + agents[SIN, a] * sin)
    return bend - (offset / settling + _TWO * angle) / settling
