"""Dynamics: what an action requests, and how agents move.

An action requests one longitudinal and one lateral quantity, which depend on the model and the type of agent:

    agent               model     along                     across
    vehicle, cyclist    bicycle   acceleration, m/s2        angle of the front wheels, rad
    vehicle, cyclist    jerk      jerk, m/s3                jerk to the left, m/s3
    pedestrian          either    acceleration, m/s2        yaw rate, rad/s: it may turn on the spot

Agents of type `other` are vehicles. No agent drives in reverse: braking ends at a standstill, and an agent that starts
in reverse, as in some recordings, stands from the first step on. There is no slip: the center of the box moves along
the heading, on a circular arc in each step, while the speed changes linearly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule
from roadworthy.scenario.schema import AgentType, Floats
from roadworthy.sim import state
from roadworthy.sim.config import Model
from roadworthy.sim.rules.angles import sine_cosine, wrap
from roadworthy.sim.state import Params, Real, Whole

Block = NDArray[Any]


def _by_type(vehicle: Any, pedestrian: Any, cyclist: Any) -> Floats:
    """Return a table with a line for each AgentType."""
    table = {
        AgentType.OTHER: vehicle,
        AgentType.VEHICLE: vehicle,
        AgentType.PEDESTRIAN: pedestrian,
        AgentType.CYCLIST: cyclist,
    }
    return np.array([table[kind] for kind in AgentType], np.float32)


# Numbers of longitudinal and lateral choices of a discrete action.
ACTION_CHOICES = {Model.BICYCLE: (7, 13), Model.JERK: (4, 3)}

# What each choice requests, (types, choices), in the units above. Small angles lie close together: at 30 m/s a car's
# smallest angle gives a lateral acceleration of 1 m/s2, and at 3 m/s its largest angle gives a tight turn.
_ANGLES = (0.0, 0.003, 0.012, 0.04, 0.11, 0.26, 0.6)
_YAW_RATES = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_BOTH_WAYS = [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6]
BICYCLE_ALONG = _by_type(
    (-8.0, -4.0, -2.0, -0.7, 0.0, 0.8, 2.5),
    (-8.0, -2.0, -1.0, -0.4, 0.0, 0.5, 1.5),
    (-5.0, -2.5, -1.2, -0.5, 0.0, 0.5, 1.2),
)
BICYCLE_ACROSS = np.sign(_BOTH_WAYS).astype(np.float32) * _by_type(_ANGLES, _YAW_RATES, _ANGLES)[:, np.abs(_BOTH_WAYS)]
JERK_ALONG = _by_type((-15.0, -4.0, 0.0, 4.0), (-8.0, -1.0, 0.0, 1.0), (-10.0, -3.0, 0.0, 3.0))
JERK_ACROSS = _by_type((-6.0, 0.0, 6.0), (-1.5, 0.0, 1.5), (-6.0, 0.0, 6.0))

# The choices that request nothing, for every type of agent.
IDLE_CHOICES = {Model.BICYCLE: (4, 6), Model.JERK: (2, 1)}

# What a continuous action of -1 or 1 requests, (models, types): bicycle, jerk. 0 requests nothing.
LOWEST_ALONG = np.stack([_by_type(-9.0, -8.0, -6.0), _by_type(-20.0, -8.0, -20.0)])
HIGHEST_ALONG = np.stack([_by_type(5.0, 4.0, 2.5), _by_type(20.0, 4.0, 20.0)])
HIGHEST_ACROSS = np.stack([_by_type(0.6, 4.0, 0.6), _by_type(20.0, 4.0, 20.0)])

# Limits of agents, (types,).
TOP_SPEED = _by_type(50.0, 6.0, 15.0)  # m/s
FULL_LOCK = _by_type(0.6, 0.0, 0.6)  # rad, the largest angle of the front wheels
# The jerk model keeps accelerations within these limits, m/s2.
LOWEST_ACCELERATION = _by_type(-7.5, -8.0, -6.0)
HIGHEST_ACCELERATION = _by_type(4.0, 4.0, 2.5)
HIGHEST_LATERAL = _by_type(4.0, 4.0, 4.0)
WHEELBASE_SHARE = np.float32(0.6)  # of the length
SHORTEST_WHEELBASE = np.float32(0.3)  # m; prevents division by 0 for boxes without length
DRY_GRIP = np.float32(0.9 * 9.81)  # m/s2, longitudinal and lateral together

_FULL_LOCK_TANGENT = np.tan(FULL_LOCK)
PEDESTRIAN = int(AgentType.PEDESTRIAN)
_LAST_TYPE = max(AgentType)
_STILL = np.float32(1e-12)  # (m/s)2
_0, _HALF, _1 = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_INFINITE = np.float32(np.inf)


@rule(inline=True)
def _clamp(value: np.float32, low: np.float32, high: np.float32) -> np.float32:
    return min(max(value, low), high)


@rule(inline=True)
def row_of(kind: int) -> int:
    """Return the line of a table for an AgentType."""
    return kind if 0 <= kind <= _LAST_TYPE else 0


@rule(inline=True)
def wheelbase_of(length: np.float32) -> np.float32:
    """Return the distance between the axles, in m."""
    return max(WHEELBASE_SHARE * length, SHORTEST_WHEELBASE)


@rule(inline=True)
def _choice(value: np.float32, count: int) -> int:
    """Return a choice from its number as a float. It is always valid: the nearest choice, and 0 for NaN."""
    if not value > _0:
        return 0
    return min(int(min(value, np.float32(count))), count - 1)


@rule(inline=True)
def decode(first: np.float32, second: np.float32, kind: int, p: Params) -> tuple[np.float32, np.float32]:
    """Return what an action requests along and across. first, second: numbers of choices, or -1 to 1."""
    row = row_of(kind)
    if p.is_continuous:
        first, second = _clamp(first, -_1, _1), _clamp(second, -_1, _1)
        model = 1 if p.is_jerk else 0
        reach = HIGHEST_ALONG[model, row] if first > _0 else -LOWEST_ALONG[model, row]
        return first * reach, second * HIGHEST_ACROSS[model, row]
    if p.is_jerk:
        return JERK_ALONG[row, _choice(first, 4)], JERK_ACROSS[row, _choice(second, 3)]
    return BICYCLE_ALONG[row, _choice(first, 7)], BICYCLE_ACROSS[row, _choice(second, 13)]


@rule(inline=True)
def is_allowed(action: Floats, p: Params) -> bool:
    """Return whether an action is two finite numbers, or two valid choices."""
    along, across = action[0], action[1]
    if p.is_continuous:
        return bool(abs(along) < _INFINITE and abs(across) < _INFINITE)
    if not (_0 <= along < np.float32(p.choices_along) and _0 <= across < np.float32(p.choices_across)):
        return False
    return bool(along == np.floor(along) and across == np.floor(across))


@rule(inline=True)
def _nearest(table: Block, row: int, value: np.float32) -> np.float32:
    """Return the number of the choice that requests the value nearest to a given one."""
    best, least = 0, abs(table[row, 0] - value)
    for choice in range(1, table.shape[1]):
        off = abs(table[row, choice] - value)
        if off < least:
            best, least = choice, off
    return np.float32(best)


@rule(inline=True)
def encode(along: np.float32, across: np.float32, kind: int, p: Params) -> tuple[np.float32, np.float32]:
    """Return the action that requests the values nearest to the given ones: the inverse of `decode`."""
    row = row_of(kind)
    if p.is_continuous:
        model = 1 if p.is_jerk else 0
        reach = HIGHEST_ALONG[model, row] if along > _0 else -LOWEST_ALONG[model, row]
        return _clamp(along / reach, -_1, _1), _clamp(across / HIGHEST_ACROSS[model, row], -_1, _1)
    if p.is_jerk:
        return _nearest(JERK_ALONG, row, along), _nearest(JERK_ACROSS, row, across)
    return _nearest(BICYCLE_ALONG, row, along), _nearest(BICYCLE_ACROSS, row, across)


@rule(inline=True)
def _changed(value: np.float32, change: np.float32, low: np.float32, high: np.float32) -> np.float32:
    """Return an acceleration after a change, within limits. It stops at 0, which choices could not reach otherwise."""
    result = _clamp(value + change, low, high)
    return _0 if result * value < _0 else result


@rule(inline=True)
def _drive(
    agents: Block, a: int, speed: np.float32, along: Real, across: Real, grip: Real, row: int, is_jerk: Whole, dt: Real
) -> tuple[np.float32, np.float32, np.float32]:
    """Return the acceleration, turn and wheel angle of a step of a vehicle or cyclist."""
    top = TOP_SPEED[row]
    wheelbase = wheelbase_of(agents[state.LENGTH, a])
    if is_jerk:
        along = _changed(agents[state.ACCELERATION, a], along * dt, LOWEST_ACCELERATION[row], HIGHEST_ACCELERATION[row])
        mean = _HALF * (speed + _clamp(speed + along * dt, _0, top))
        lateral = _changed(agents[state.LATERAL, a], across * dt, -HIGHEST_LATERAL[row], HIGHEST_LATERAL[row])
        tightest = _FULL_LOCK_TANGENT[row] / wheelbase
        curvature = _clamp(lateral / max(mean * mean, _STILL), -tightest, tightest)
        angle = np.arctan(curvature * wheelbase)
    else:
        mean = _HALF * (speed + _clamp(speed + along * dt, _0, top))
        angle = _clamp(across, -FULL_LOCK[row], FULL_LOCK[row])
        sine, cosine = sine_cosine(angle)
        curvature = sine / (cosine * wheelbase)
    lateral = mean * mean * curvature
    held = DRY_GRIP * grip
    load = along * along + lateral * lateral
    if load > held * held:
        share = held / np.sqrt(load)
        along *= share
        mean = _HALF * (speed + _clamp(speed + along * dt, _0, top))
        widest = abs(lateral) * share / max(mean * mean, _STILL)
        curvature = _clamp(curvature, -widest, widest)
    return along, curvature * mean * dt, angle


@rule(inline=True)
def _along_arc(
    x: np.float32, y: np.float32, cos: np.float32, sin: np.float32, distance: np.float32, turn: np.float32
) -> tuple[np.float32, np.float32]:
    """Return the end of a circular arc that begins in a direction."""
    half = _HALF * turn
    half_sin, half_cos = sine_cosine(half)
    chord = distance if half == _0 else distance * half_sin / half
    return x + chord * (cos * half_cos - sin * half_sin), y + chord * (sin * half_cos + cos * half_sin)


@rule(inline=True)
def move(agents: Block, flags: Block, a: int, dt: np.float32, hidden: Block, p: Params) -> None:
    """Move an agent by its own dynamics, as ALONG and ACROSS request.

    Hidden factors apply to vehicles and cyclists. Gains multiply what is requested: the steering gain the lateral
    request, up to full lock, the brake gain a negative longitudinal request. Grip limits longitudinal and lateral
    acceleration together: where the tires cannot hold both, both shrink by the same factor, so braking takes longer and
    turns widen.
    """
    before, row = agents[state.ACCELERATION, a], row_of(flags[state.TYPE, a])
    along, across, top = agents[state.ALONG, a], agents[state.ACROSS, a], TOP_SPEED[row]
    speed = _clamp(agents[state.SPEED, a], _0, top)
    if row == PEDESTRIAN or not p.is_jerk:
        along = _clamp(along, LOWEST_ALONG[0, row], HIGHEST_ALONG[0, row])
        across = _clamp(across, -HIGHEST_ACROSS[0, row], HIGHEST_ACROSS[0, row])
    if row == PEDESTRIAN:
        turn, angle = across * dt, _0
    else:
        along *= hidden[state.BRAKE_GAIN] if along < _0 else _1
        across *= hidden[state.STEERING_GAIN]
        along, turn, angle = _drive(agents, a, speed, along, across, hidden[state.GRIP], row, p.is_jerk, dt)
    wanted = speed + along * dt
    reached = _clamp(wanted, _0, top)
    # Where a standstill or the top speed limits the change, the acceleration is the one that results.
    acceleration = along if reached == wanted else (reached - speed) / dt
    distance = _HALF * (speed + reached) * dt
    x, y = agents[state.X, a], agents[state.Y, a]
    heading = wrap(agents[state.HEADING, a] + turn)
    agents[state.PREVIOUS_X, a], agents[state.PREVIOUS_Y, a] = x, y
    agents[state.X, a], agents[state.Y, a] = _along_arc(
        x, y, agents[state.COS, a], agents[state.SIN, a], distance, turn
    )
    agents[state.HEADING, a] = heading
    agents[state.SIN, a], agents[state.COS, a] = sine_cosine(heading)
    agents[state.SPEED, a] = reached
    agents[state.ACCELERATION, a] = acceleration
    agents[state.LATERAL, a] = distance * turn / (dt * dt)
    agents[state.JERK, a] = (acceleration - before) / dt
    agents[state.STEERING, a] = angle
