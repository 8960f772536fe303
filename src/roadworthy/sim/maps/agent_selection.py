"""Agent selection: which agents of a recording take part in a world, and which ones policies drive."""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.pack.outline import ARRAY_PLACES, PackedScenario
from roadworthy.scenario.schema import AgentType, Bytes, Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.state import Scenarios

# Numbers of config.Control.
VEHICLES, AGENTS, SDC, PREDICT = range(4)

_TYPES, _SIZES, _POSITIONS, _HEADINGS, _VELOCITIES, _VALID, _PREDICT = (
    ARRAY_PLACES[name] for name in ("agent_types", "sizes", "positions", "headings", "velocities", "valid", "predict")
)
_VEHICLE = int(AgentType.VEHICLE)
_NEARER_THAN_ANY, _FURTHEST, _NEVER = np.float32(-1.0), np.float32(3e38), np.float32(np.inf)
_1, _2, _PI = np.float32(1.0), np.float32(2.0), np.float32(np.pi)
_TURNS_PER_RAD, _HALF_TURNS_PER_RAD = np.float32(0.5 / np.pi), np.float32(1.0 / np.pi)
# A turn in two parts: the first has few bits, so that small multiples of it are exact.
_TURN_HIGH, _TURN_LOW = np.float32(6.28125), np.float32(2.0 * np.pi - 6.28125)
_HALF_TURN_HIGH, _HALF_TURN_LOW = np.float32(3.140625), np.float32(np.pi - 3.140625)
_S3, _S5, _S7, _S9, _S11 = (np.float32((-1) ** (n // 2) / factorial(n)) for n in (3, 5, 7, 9, 11))
_C2, _C4, _C6, _C8, _C10, _C12 = (np.float32((-1) ** (n // 2) / factorial(n)) for n in (2, 4, 6, 8, 10, 12))


@kernel
def array_bytes(scenario: PackedScenario, place: int, size: int) -> Bytes:
    """Return the bytes of one array of a scenario."""
    words, starts = scenario.words, scenario.starts
    return words[starts[place] : starts[place] + (size + 3) // 4].view(np.uint8)[:size]


@kernel
def array_floats(scenario: PackedScenario, place: int, size: int) -> Floats:
    words, starts = scenario.words, scenario.starts
    return words[starts[place] : starts[place] + size].view(np.float32)


@kernel
def array_ints(scenario: PackedScenario, place: int, size: int) -> Ints:
    words, starts = scenario.words, scenario.starts
    return words[starts[place] : starts[place] + size]


class Selection(NamedTuple):
    """The agents of a world."""

    order: Ints  # agents in the order of the world, the driven first
    ends: Ints  # the last valid frame of each agent
    driven: int
    agents: int


@kernel
def select_agents(
    scenario: PackedScenario, first: int, who: int, rows: int, min_distance: float, order_out: Ints, ends_out: Ints
) -> tuple[int, int]:
    """Write the agents of a world in their order, the driven first; return how many are driven and how many there are.

    first: the frame at which the world starts. order_out: (A,) agents. ends_out: (A,) the last valid frame of each
    agent, -1 for agents that are absent from the first frame on.
    """
    agents, frames, sdc = scenario.agents, scenario.steps, scenario.sdc
    types = array_bytes(scenario, _TYPES, agents)
    positions = array_floats(scenario, _POSITIONS, agents * frames * 3).reshape(agents, frames, 3)
    valid = array_bytes(scenario, _VALID, agents * frames).reshape(agents, frames)
    predict = array_ints(scenario, _PREDICT, scenario.predicted)
    is_predicted = np.zeros(agents, np.bool_)
    for k in range(len(predict)):
        if 0 <= predict[k] < agents:
            is_predicted[predict[k]] = True
    # Distances to the self-driving car, of agents that may be driven.
    distances = np.full(agents, _NEVER, np.float32)
    has_sdc = sdc >= 0 and valid[max(sdc, 0), first] != 0
    candidates = 0
    for a in range(agents):
        end = frames - 1
        while end >= first and not valid[a, end]:
            end -= 1
        ends_out[a] = end if end >= first else -1
        if not valid[a, first]:
            continue
        is_sdc = a == sdc
        dx, dy = positions[a, end, 0] - positions[a, first, 0], positions[a, end, 1] - positions[a, first, 1]
        is_parked = types[a] == _VEHICLE and not is_sdc and not np.sqrt(dx * dx + dy * dy) >= np.float32(min_distance)
        if who == VEHICLES:
            may_be_driven = types[a] == _VEHICLE and not is_parked
        elif who == AGENTS:
            may_be_driven = not is_parked
        elif who == SDC:
            may_be_driven = is_sdc
        else:
            may_be_driven = is_sdc or is_predicted[a]
        if may_be_driven:
            candidates += 1
            distances[a] = _NEARER_THAN_ANY if is_sdc else _FURTHEST
            if has_sdc and not is_sdc:
                dx = positions[a, first, 0] - positions[sdc, first, 0]
                dy = positions[a, first, 1] - positions[sdc, first, 1]
                distance = dx * dx + dy * dy
                distances[a] = distance if distance < _FURTHEST else _FURTHEST

    is_driven = distances < _NEVER
    driven = min(candidates, rows)
    if candidates > rows:
        is_driven[:] = False
        for _ in range(driven):
            nearest = np.argmin(distances)  # the first of equals
            is_driven[nearest] = True
            distances[nearest] = _NEVER
    count = 0
    for wanted in (True, False):
        for a in range(agents):
            if is_driven[a] == wanted and ends_out[a] >= 0:
                order_out[count] = a
                count += 1
    return driven, count


@kernel
def fill_agents(
    scenario: PackedScenario, chosen: Selection, first: int, role_of_others: int, scenarios: Scenarios, s: int
) -> None:
    """Copy the selected agents and their motion from the first frame on to slot s."""
    agents, steps, order, ends = scenario.agents, scenario.steps, chosen.order, chosen.ends
    types = array_bytes(scenario, _TYPES, agents)
    sizes = array_floats(scenario, _SIZES, agents * 3).reshape(agents, 3)
    positions = array_floats(scenario, _POSITIONS, agents * steps * 3).reshape(agents, steps, 3)
    headings = array_floats(scenario, _HEADINGS, agents * steps).reshape(agents, steps)
    velocities = array_floats(scenario, _VELOCITIES, agents * steps * 2).reshape(agents, steps, 2)
    valid = array_bytes(scenario, _VALID, agents * steps).reshape(agents, steps)
    frames = steps - first
    bodies, motion, is_valid = scenarios.bodies[s], scenarios.motion[s], scenarios.valid[s]
    xs, ys = motion[state.MOTION_X], motion[state.MOTION_Y]
    directions, speeds = motion[state.MOTION_HEADING], motion[state.MOTION_SPEED]
    wrapped, cosines, sines = (np.empty(frames, np.float32), np.empty(frames, np.float32), np.empty(frames, np.float32))
    for k in range(chosen.agents):
        a = order[k]
        bodies[state.BODY_LENGTH, k], bodies[state.BODY_WIDTH, k] = sizes[a, 0], sizes[a, 1]
        bodies[state.BODY_GOAL_X, k], bodies[state.BODY_GOAL_Y, k] = positions[a, ends[a], 0], positions[a, ends[a], 1]
        scenarios.agent_types[s, k], scenarios.agent_sources[s, k] = types[a], a
        scenarios.agent_roles[s, k] = state.EGO if k < chosen.driven else role_of_others
        own_headings, own_velocities = headings[a, first:], velocities[a, first:]
        own_positions, own_valid = positions[a, first:], valid[a, first:]
        # Separate from the scattered reads and writes below, so that the compiler vectorizes these loops.
        for f in range(frames):
            wrapped[f] = _wrapped(own_headings[f])
        for f in range(frames):
            cosines[f], sines[f] = _cosine_and_sine(wrapped[f])
        for f in range(frames):
            xs[f, k], ys[f, k], directions[f, k] = own_positions[f, 0], own_positions[f, 1], wrapped[f]
            speeds[f, k] = own_velocities[f, 0] * cosines[f] + own_velocities[f, 1] * sines[f]
            is_valid[f, k] = own_valid[f] != 0


@kernel
def _wrapped(angle: float) -> Any:
    """Return the same direction as an angle in (-pi, pi] without a branch; angles in that range stay as they are."""
    turns = np.rint(angle * _TURNS_PER_RAD)
    wrapped = angle - turns * _TURN_HIGH - turns * _TURN_LOW
    return _PI if wrapped <= -_PI else min(wrapped, _PI)


@kernel
def _cosine_and_sine(angle: float) -> tuple[Any, Any]:
    """Return both for an angle from -pi to pi, to 3e-7: Taylor series around the nearest half turn."""
    half_turns = np.rint(angle * _HALF_TURNS_PER_RAD)
    rest = angle - half_turns * _HALF_TURN_HIGH - half_turns * _HALF_TURN_LOW
    square = rest * rest
    sine = rest * (_1 + square * (_S3 + square * (_S5 + square * (_S7 + square * (_S9 + square * _S11)))))
    cosine = _1 + square * (_C2 + square * (_C4 + square * (_C6 + square * (_C8 + square * (_C10 + square * _C12)))))
    sign = _1 - _2 * abs(half_turns)
    return sign * cosine, sign * sine
