"""The expert that follows a route as reactive traffic does, but with the actions of a policy.

In open worlds agents have routes. In recorded worlds the route of an agent is the sequence of lanes of its recording,
as for reactive traffic that replaces recorded agents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import entry, rule
from roadworthy.policy.experts.places import NEVER, keep_track
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.dynamics import PEDESTRIAN, decode, encode, wheelbase_of
from roadworthy.sim.rules.idm import HARDEST_MPS2, braking_range, solo_acceleration, wanted_acceleration
from roadworthy.sim.rules.route_geometry import FAR, Real, Road, route_pose
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

MIN_SETTLING_M = np.float32(2.5)
_BEND_LENGTH_M = np.float32(3.0)  # over which the bend of the route is measured; single segments are noisy
_MIN_SLOWING = np.float32(2.0)  # m/s2; from this deceleration on it brakes for the speed limit of a goal
_MIN_DISTANCE_M = np.float32(0.1)
MAX_REST = np.float32(0.2)  # rad; more than half of the largest step between two choices
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


class DriveExpert:
    """Steers along the route, and respects the speed limit, gaps, lights and right of way as reactive traffic does.

    Agents without a lane in a recorded world (pedestrians, parked cars) keep their speed and direction. The expert
    tracks the places of all agents on their routes in its own copy of the state, and changes nothing in the env. Call
    `act` once in every step.
    """

    def __init__(
        self, env: DriveEnv, *, knows_gains: bool = False, settling_s: float = 0.8, is_blind: bool = False
    ) -> None:
        """Drive all rows of an env.

        knows_gains: Whether it knows the hidden gains of steering and brakes and compensates for them; otherwise it
            assumes that both are 1.
        settling_s: Seconds over which it corrects its offset from the route. With a quick correction it hardly depends
            on the gains.
        is_blind: Whether it ignores other agents, lights and signs, and respects only speed limits and bends.
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
        """Return (rows, 2) an action for every row, as `env.step` takes them; the next call overwrites it."""
        self._env.call_with_state(self._decide)
        return self._actions

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Start another attempt in these rows.

        mask: (rows,). Without this call, a new attempt is detected by its seed, scenario, trial and step.
        """
        if self._own is not None:
            world, slot = np.nonzero(np.reshape(mask, (self._env.world_count, self._env.rows_per_world)))
            self._own.agent_flags[world, state.SPAWNS, slot] = NEVER

    def _decide(self, worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        own = self._tracked(worlds)
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

    def _tracked(self, worlds: Worlds) -> Worlds:
        """Return the copy of the state, enlarged if the worlds have grown for a scenario with more agents."""
        if self._own is not None and self._own.agent_flags.shape == worlds.agent_flags.shape:
            return self._own
        # Hidden factors stay 1 in the copy, because the expert does not know them.
        own = Worlds._make(map(np.zeros_like, worlds))._replace(hidden=np.ones_like(worlds.hidden))
        own.clocks[:, state.TRIAL] = -1  # before the first trial
        routes = np.zeros((len(worlds.agent_flags), 1 + state.ROUTE_LANES, worlds.agent_flags.shape[-1]), np.int32)
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
    """Write the action of every driving agent, and 0 for the others.

    own, routes: see keep_track.
    rests: (worlds, slots) rad, the steering that earlier choices lacked.
    """
    p = settings[0]
    slots = rests.shape[1]
    for w in range(len(worlds.clocks)):
        is_running = worlds.clocks[w, state.SCENARIO] >= 0
        if is_running:
            keep_track(worlds, maps, scenarios, own, routes, rests, w, p)
        driven = worlds.clocks[w, state.DRIVEN_COUNT] if is_running else np.int32(0)
        for a in range(slots):
            first, second = _ZERO, _ZERO
            if a < driven and worlds.agent_flags[w, state.IS_DRIVING, a] != 0:
                along, across = _command(own, maps, scenarios, w, a, settling_s, is_blind, p)
                if knows_gains:
                    along /= worlds.hidden[w, state.BRAKE_GAIN] if along < _ZERO else _ONE
                    across /= worlds.hidden[w, state.STEERING_GAIN]
                across += rests[w, a]
                first, second = encode(along, across, worlds.agent_flags[w, state.TYPE, a], p)
                if not (p.is_continuous or p.is_jerk):
                    # Choices are coarse: the error of this one is added to the next, so that the mean is right.
                    _, asked = decode(first, second, worlds.agent_flags[w, state.TYPE, a], p)
                    rests[w, a] = min(max(across - asked, -MAX_REST), MAX_REST)
            actions_out[w * slots + a, 0], actions_out[w * slots + a, 1] = first, second


@rule
def _command(
    own: Worlds, maps: Maps, scenarios: Scenarios, w: int, a: int, settling_s: Real, is_blind: bool, p: Params
) -> tuple[Real, Real]:
    """Return the longitudinal and lateral command of agent a for steering and brakes with gain 1."""
    agents, flags, clock = own.agents[w], own.agent_flags[w], own.clocks[w]
    dt, m, speed = scenarios.dt[clock[state.SCENARIO]], clock[state.MAP], agents[state.SPEED, a]
    if flags[state.ROUTE_LENGTH, a] == 0 and not p.is_open:
        if p.is_jerk and flags[state.TYPE, a] != PEDESTRIAN:
            return -agents[state.ACCELERATION, a] / dt, -agents[state.LATERAL, a] / dt
        return _ZERO, _ZERO
    if is_blind:
        road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
        haste = max(own.hidden[w, state.HASTE], _MIN_DISTANCE_M)
        reach = braking_range(agents, a, haste)
        acceleration = max(solo_acceleration(road, agents, flags, a, reach, FAR, haste), -HARDEST_MPS2)
    else:
        acceleration = wanted_acceleration(own, maps, scenarios, w, a, p)
    # Recorded agents do not stop: their goal is only the end of the recording. Nor do agents without a goal left.
    if p.is_open and flags[state.GOAL, a] < flags[state.GOAL_COUNT, a]:
        to_goal = max(agents[state.GOAL_DISTANCE, a] - _HALF * p.goal_radius, _MIN_DISTANCE_M)
        slowing = (speed * speed - p.goal_speed * p.goal_speed) / (_TWO * to_goal)
        if slowing > _MIN_SLOWING:
            acceleration = min(acceleration, -slowing)
    along = (acceleration - agents[state.ACCELERATION, a]) / dt if p.is_jerk else acceleration
    if flags[state.ROUTE_LENGTH, a] == 0:
        return along, _ZERO
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    curvature = _curvature(road, agents, flags, a, speed * dt, max(speed * settling_s, MIN_SETTLING_M))
    if p.is_jerk:
        mean = max(speed + _HALF * acceleration * dt, _HALF * speed)
        return along, (curvature * mean * mean - agents[state.LATERAL, a]) / dt
    return along, np.arctan(curvature * wheelbase_of(agents[state.LENGTH, a]))


@rule
def _curvature(road: Road, agents: Floats, flags: Ints, a: int, step: Real, settling: Real) -> Real:
    """Return the curvature for agent a: that of its route over the next step, and a correction toward the route.

    The two parts are the anticipatory and the compensatory level of E. Donges, A two-level model of driver steering
    behavior (1978). The second one reduces offset and angle to 0 over a distance, without overshooting.
    """
    place, arc = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a]
    _, _, near_cos, near_sin = route_pose(road, flags, a, place, arc, _HALF * (step - _BEND_LENGTH_M))
    _, _, far_cos, far_sin = route_pose(road, flags, a, place, arc, _HALF * (step + _BEND_LENGTH_M))
    bend = np.arctan2(far_sin * near_cos - far_cos * near_sin, far_cos * near_cos + far_sin * near_sin) / _BEND_LENGTH_M
    x, y, cos, sin = route_pose(road, flags, a, place, arc, _ZERO)
    offset = (agents[state.Y, a] - y) * cos - (agents[state.X, a] - x) * sin
    angle = np.arctan2(
        agents[state.SIN, a] * cos - agents[state.COS, a] * sin, agents[state.COS, a] * cos + agents[state.SIN, a] * sin
    )
    return bend - (offset / settling + _TWO * angle) / settling
