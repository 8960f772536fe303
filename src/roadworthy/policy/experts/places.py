"""The places of all agents on their routes, which an expert tracks in its own copy of the state.

The simulator finds the place of an agent of a policy only when others need it. An expert needs it in every step, and
must not change the worlds.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.dynamics import PEDESTRIAN
from roadworthy.sim.rules.route_geometry import Road, nearest_place
from roadworthy.sim.rules.routes import place_on_route, trace_route
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

NEVER = -1  # in SPAWNS of the copy: the agent starts another attempt
_LOST_M = np.float32(4.0)  # an agent farther from its route than this searches its place on the whole route
_BEHIND_M, _AHEAD_M = np.float32(-12.0), np.float32(1000.0)
_ZERO = np.float32(0.0)


@rule
def keep_track(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, own: Worlds, routes: Ints, rests: Floats, w: int, p: Params
) -> None:
    """Update the copy of a world: its current state, with the tracked places of driven agents.

    Recorded vehicles and cyclists have no routes in the simulator. They are traced here, so that the expert knows where
    they go, as for reactive traffic.

    Tracking continues for the same episode seed, scenario and trial at a later step. Anything else is a new attempt: an
    episode that runs again starts at step 0, even after an episode of one step.

    own: The worlds at the last call; in recorded worlds with the traced routes.
    routes: (worlds, 1 + ROUTE_LANES, agents) length and lanes of the routes in the simulator at the last call.
    rests: (worlds, slots) is set to 0 for agents that start another attempt.
    """
    clock, own_clock, flags, own_flags = worlds.clocks[w], own.clocks[w], worlds.agent_flags[w], own.agent_flags[w]
    agents, own_agents = worlds.agents[w], own.agents[w]
    is_same_trial = (
        worlds.seeds[w] == own.seeds[w]
        and clock[state.TRIAL] == own_clock[state.TRIAL]
        and clock[state.SCENARIO] == own_clock[state.SCENARIO]
        and clock[state.MAP] == own_clock[state.MAP]
        and clock[state.EPISODE_STEP] > own_clock[state.EPISODE_STEP]
    )
    own.seeds[w] = worlds.seeds[w]
    for column in range(len(clock)):
        own_clock[column] = clock[column]
    for a in range(clock[state.AGENT_COUNT]):
        is_driven = a < clock[state.DRIVEN_COUNT]
        is_same_attempt = is_same_trial and flags[state.SPAWNS, a] == own_flags[state.SPAWNS, a]
        is_same_attempt &= flags[state.FIRST_STEP, a] == own_flags[state.FIRST_STEP, a]
        is_recorded = (
            not p.is_open
            and not is_driven
            and flags[state.ROLE, a] == state.REPLAYED
            and flags[state.TYPE, a] != PEDESTRIAN
        )
        is_here = flags[state.IS_PRESENT, a] != 0
        has_appeared = is_here and (not is_same_attempt or own_flags[state.IS_PRESENT, a] == 0)
        is_same_route = is_same_attempt and _has_same_route(flags, routes[w], a) and not (is_recorded and has_appeared)
        arc = own_agents[state.PATH_ARC, a]
        for line in range(len(agents)):
            own_agents[line, a] = agents[line, a]
        for line in range(state.ROUTE_LENGTH):
            own_flags[line, a] = flags[line, a]
        if (is_driven or is_recorded) and is_same_route:
            own_agents[state.PATH_ARC, a] = arc
        else:
            _copy_route(flags, own_flags, routes[w], a)
        if is_driven and not is_same_attempt:
            rests[w, a] = _ZERO
            if not p.is_open:
                trace_route(own, maps, scenarios, w, a)
        if is_recorded and has_appeared:
            trace_route(own, maps, scenarios, w, a)
        if (is_driven or is_recorded) and is_here:
            _find_place(own, maps, w, a, is_same_route)


@rule
def _has_same_route(flags: Ints, route: Ints, a: int) -> bool:
    """Return whether agent a has the same route in the simulator as at the last call."""
    is_same = flags[state.ROUTE_LENGTH, a] == route[0, a]
    for k in range(state.ROUTE_LANES):
        is_same &= flags[state.ROUTE + k, a] == route[1 + k, a]
    return is_same


@rule
def _copy_route(flags: Ints, own_flags: Ints, route: Ints, a: int) -> None:
    """Copy the route of agent a, and its place on it, from the simulator."""
    own_flags[state.ROUTE_PLACE, a] = flags[state.ROUTE_PLACE, a]
    own_flags[state.ROUTE_LENGTH, a] = route[0, a] = flags[state.ROUTE_LENGTH, a]
    for k in range(state.ROUTE_LANES):
        own_flags[state.ROUTE + k, a] = route[1 + k, a] = flags[state.ROUTE + k, a]


@rule
def _find_place(own: Worlds, maps: Maps, w: int, a: int, is_followed: bool) -> None:
    """Find the place of agent a on its route: near its last place if it is tracked, else anywhere ahead."""
    agents, flags, m = own.agents[w], own.agent_flags[w], own.clocks[w, state.MAP]
    if flags[state.ROUTE_LENGTH, a] == 0 or (is_followed and place_on_route(own, maps, w, a) < _LOST_M):
        return
    road = Road(maps.lanes[m], maps.lane_points[m], maps.lane_lengths[m])
    place, arc, x, y = flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], agents[state.X, a], agents[state.Y, a]
    place, arc, offset, _ = nearest_place(road, flags, a, place, arc, _BEHIND_M, _AHEAD_M, x, y)
    flags[state.ROUTE_PLACE, a], agents[state.PATH_ARC, a], agents[state.PATH_OFFSET, a] = place, arc, offset
