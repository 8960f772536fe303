"""The expert that follows lanes and ignores other agents, lights and signs.

It is a floor: a benchmark that it passes does not test whether a policy reacts to others. In recorded worlds it follows
the lanes of the recording (scenario/lanes/guide.py) at the speed limit, and slower in bends. In open worlds it is a
DriveExpert with `is_blind`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import entry, rule
from roadworthy.policy.experts.drive import MAX_REST, MIN_SETTLING_M, DriveExpert
from roadworthy.scenario.lanes.guide import ACCELERATION_MPS2, BEND_M, BRAKING_MPS2, SPACING_M, Guide, guide_of
from roadworthy.scenario.lanes.locate import locate
from roadworthy.scenario.lanes.network import LaneNetwork
from roadworthy.scenario.schema import AgentType, Floats, Ints, Scenario
from roadworthy.sim import state
from roadworthy.sim.config import Mode
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.angles import wrap
from roadworthy.sim.rules.dynamics import decode, encode, wheelbase_of
from roadworthy.sim.rules.route_geometry import Real
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

AHEAD_M = 700.0  # length of a guide beyond the end of the recording
MOVED_M = 0.3  # an agent that never moves farther than this is parked and has no guide
_GUIDE_X, _GUIDE_Y, _GUIDE_HEADING, _GUIDE_SPEED = range(4)
_GUIDE_LINES = 4

_SETTLING_S = np.float32(0.8)
_REACTION_S = np.float32(0.5)
_SPACING, _BEND = np.float32(SPACING_M), np.float32(BEND_M)
_ACCELERATION, _HARDEST = np.float32(ACCELERATION_MPS2), np.float32(2.0 * BRAKING_MPS2)
_BEHIND, _AHEAD = 40, 120  # points of the guide around the last place that are searched for the next one
_MAX_REST_MPS2 = np.float32(2.0)  # m/s2; more than half of the largest step between two choices
_ZERO, _HALF, _TWO = np.float32(0.0), np.float32(0.5), np.float32(2.0)


class LaneFollower:
    """Steers along lanes at the speed limit, and brakes only for bends and lower limits.

    Agents without a guide (pedestrians, parked cars) do nothing. Call `act` once in every step.
    """

    def __init__(self, env: DriveEnv, *, keeps_lane: bool = False) -> None:
        """Drive all rows of an env.

        keeps_lane: Whether it stays on its first lane in recorded worlds, straight on at forks, even where the
            recording changes lanes. In open worlds routes never change lanes.
        """
        self._env, self._keeps_lane = env, keeps_lane
        self._open = DriveExpert(env, is_blind=True) if env.config.mode is Mode.OPEN else None
        self._actions = np.zeros((env.row_count, 2), np.float32)
        self._rests = np.zeros((env.row_count, 2), np.float32)
        self._places = np.zeros(env.row_count, np.int32)
        self._counts = np.zeros(env.row_count, np.int32)
        self._guides = np.zeros((env.row_count, _GUIDE_LINES, 1), np.float32)
        self._known: list[tuple[int, tuple[int, ...]] | None] = [None] * env.world_count

    def act(self) -> Floats:
        """Return (rows, 2) an action for every row, as `env.step` takes them; the next call overwrites it."""
        if self._open is not None:
            return self._open.act()
        self._env.call_with_state(self._decide)
        return self._actions

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Start another attempt in these rows, (rows,). On guides the first step of a trial does that."""
        if self._open is not None:
            self._open.reset(mask)

    def _decide(self, worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void]) -> None:
        for world, episode in enumerate(self._env.episodes):
            if episode is None:
                continue
            driven = int(worlds.clocks[world, state.DRIVEN_COUNT])
            key = (episode.scenario, tuple(worlds.agent_flags[world, state.SOURCE, :driven].tolist()))
            if key != self._known[world]:
                self._known[world] = key
                self._find_guides(world, *key)
        _follow(worlds, scenarios, settings, self._guides, self._counts, self._places, self._rests, self._actions)

    def _find_guides(self, world: int, number: int, sources: tuple[int, ...]) -> None:
        """Find the guide of each driven agent of a world."""
        scenario = self._env.pack[number]
        for slot, source in enumerate(sources):
            guide = recorded_guide(scenario, source, self._env.config.init_steps, keeps_lane=self._keeps_lane)
            row = world * self._env.rows_per_world + slot
            self._counts[row] = 0 if guide is None else len(guide.x)
            if guide is None:
                continue
            if len(guide.x) > self._guides.shape[2]:
                more = len(guide.x) - self._guides.shape[2]
                self._guides = np.pad(self._guides, ((0, 0), (0, 0), (0, more)))
            lines = np.stack([guide.x, guide.y, guide.heading, guide.speed])
            self._guides[row, :, : len(guide.x)] = lines


def recorded_guide(scenario: Scenario, agent: int, first: int, *, keeps_lane: bool = False) -> Guide | None:
    """Return the guide of a recorded agent from a step on; None if it is absent then, parked or a pedestrian."""
    if agent < 0 or scenario.agent_types[agent] == AgentType.PEDESTRIAN or not scenario.valid[agent, first]:
        return None
    absent = np.flatnonzero(~scenario.valid[agent, first:])
    steps = slice(first, first + int(absent[0]) if len(absent) else scenario.steps)
    x, y = scenario.positions[agent, steps, :2].astype(np.float64).T
    if np.hypot(x - x[0], y - y[0]).max() < MOVED_M:
        return None
    network = LaneNetwork.of(scenario.map)
    places = locate(network, x, y, scenario.headings[agent, steps].astype(np.float64), scenario.dt)
    return guide_of(network, scenario.map, places, x, y, scenario.dt, AHEAD_M, keeps_lane)


@entry
def _follow(
    worlds: Worlds,
    scenarios: Scenarios,
    settings: NDArray[np.void],
    guides: Floats,
    counts: Ints,
    places: Ints,
    rests: Floats,
    actions_out: Floats,
) -> None:
    """Write the action of every driving agent, and the idle action for the others.

    guides: (rows, lines, points). counts: (rows,) points of each guide, 0 for none.
    places: (rows,) the nearest point of each guide. rests: (rows, 2) m/s2 and rad that earlier choices lacked.
    """
    p = settings[0]
    rows_per_world = len(counts) // len(worlds.clocks)
    for w in range(len(worlds.clocks)):
        clock = worlds.clocks[w]
        driven = clock[state.DRIVEN_COUNT] if clock[state.SCENARIO] >= 0 else np.int32(0)
        for a in range(rows_per_world):
            row = w * rows_per_world + a
            actions_out[row, 0] = actions_out[row, 1] = _ZERO
            if a >= driven or worlds.agent_flags[w, state.IS_DRIVING, a] == 0:
                continue
            kind = worlds.agent_flags[w, state.TYPE, a]
            if clock[state.STEP] == 0:
                places[row] = 0
                rests[row, 0] = rests[row, 1] = _ZERO
            along, across = _ZERO, _ZERO
            if counts[row] > 0:
                dt = scenarios.dt[clock[state.SCENARIO]]
                along, across = _command(worlds.agents[w], a, guides[row], counts[row], places, row, dt, p)
                along += rests[row, 0]
                across += rests[row, 1]
            first, second = encode(along, across, kind, p)
            if counts[row] > 0 and not (p.is_continuous or p.is_jerk):
                # Choices are coarse: the error of this one is added to the next, so that the mean is right.
                sped, asked = decode(first, second, kind, p)
                rests[row, 0] = min(max(along - sped, -_MAX_REST_MPS2), _MAX_REST_MPS2)
                rests[row, 1] = min(max(across - asked, -MAX_REST), MAX_REST)
            actions_out[row, 0], actions_out[row, 1] = first, second


@rule
def _command(
    agents: Floats, a: int, guide: Floats, count: int, places: Ints, row: int, dt: Real, p: Params
) -> tuple[Any, Any]:
    """Return the longitudinal and lateral command that keeps agent a on its guide."""
    x, y, speed = agents[state.X, a], agents[state.Y, a], agents[state.SPEED, a]
    place, least = places[row], np.float32(np.inf)
    for i in range(max(places[row] - _BEHIND, 0), min(places[row] + _AHEAD, count)):
        dx, dy = x - guide[_GUIDE_X, i], y - guide[_GUIDE_Y, i]
        if dx * dx + dy * dy < least:
            place, least = np.int32(i), dx * dx + dy * dy
    places[row] = place
    ahead = min(place + np.int32(speed * _REACTION_S / _SPACING + _HALF), count - 1)
    acceleration = (guide[_GUIDE_SPEED, ahead] - speed) / _REACTION_S
    acceleration = min(max(acceleration, -_HARDEST), _ACCELERATION)
    # As in DriveExpert: the bend over the next step, and a correction toward the guide.
    reach = np.int32(_HALF * _BEND / _SPACING)
    middle = place + np.int32(_HALF * speed * dt / _SPACING + _HALF)
    near, far = max(middle - reach, 0), min(middle + reach, count - 1)
    bend = _ZERO
    if far > near:
        bend = wrap(guide[_GUIDE_HEADING, far] - guide[_GUIDE_HEADING, near]) / (np.float32(far - near) * _SPACING)
    heading = guide[_GUIDE_HEADING, place]
    cos, sin = np.cos(heading), np.sin(heading)
    offset = (y - guide[_GUIDE_Y, place]) * cos - (x - guide[_GUIDE_X, place]) * sin
    settling = max(speed * _SETTLING_S, MIN_SETTLING_M)
    curvature = bend - (offset / settling + _TWO * wrap(agents[state.HEADING, a] - heading)) / settling
    if p.is_jerk:
        mean = max(speed + _HALF * acceleration * dt, _HALF * speed)
        return (acceleration - agents[state.ACCELERATION, a]) / dt, (
            curvature * mean * mean - agents[state.LATERAL, a]
        ) / dt
    return acceleration, np.arctan(curvature * wheelbase_of(agents[state.LENGTH, a]))
