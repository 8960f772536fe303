"""Dynamics compared with a reference in double precision, and their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.kernels import kernel
from roadworthy.scenario.schema import AgentType
from roadworthy.sim.config import Actions, Model
from roadworthy.sim.rules import dynamics
from roadworthy.sim.rules.angles import sine_cosine
from roadworthy.sim.state import (
    ACCELERATION,
    ACROSS,
    ALONG,
    COS,
    GOALS,
    HEADING,
    JERK,
    LATERAL,
    LENGTH,
    PREVIOUS_X,
    PREVIOUS_Y,
    SIN,
    SPEED,
    STEERING,
    TYPE,
    X,
    Y,
)
from tests.sim.plane import DT, MODELS, agents_of, decode_all, move_all, params_of

WRITTEN = (X, Y, HEADING, COS, SIN, SPEED, ACCELERATION, LATERAL, JERK, STEERING, PREVIOUS_X, PREVIOUS_Y)
WHEELED = [AgentType.VEHICLE, AgentType.CYCLIST]


@kernel
def sines_and_cosines(angles, out):
    for i in range(len(angles)):
        out[i] = sine_cosine(angles[i])


def random_agents(rng, n, model):
    """Agents of all types and speeds with requests within and beyond their limits."""
    reach = (10.0, 0.8) if model is Model.BICYCLE else (25.0, 25.0)
    agents, flags, hidden = agents_of(
        rng.integers(0, 4, n),
        x=rng.uniform(-500, 500, n),
        y=rng.uniform(-500, 500, n),
        heading=rng.uniform(-np.pi, np.pi, n),
        speed=rng.choice([0.0, 0.3, 3.0, 12.0, 49.9], n) * rng.uniform(0.0, 1.0, n),
        acceleration=rng.uniform(-8, 5, n),
        lateral=rng.uniform(-5, 5, n),
        length=rng.uniform(0.4, 13, n),
        along=rng.uniform(-1, 1, n) * reach[0],
        across=rng.uniform(-1, 1, n) ** 3 * reach[1],
    )
    hidden[:3] = rng.uniform(0.4, 1.4, (3, n))
    return agents, flags, hidden


def reference_step(before, kind, is_jerk, steering_gain, brake_gain, grip, dt):
    """Return the result of a step for one agent in double precision, by line."""
    line = {k: float(before[k]) for k in range(GOALS)}
    top = {AgentType.PEDESTRIAN: 6.0, AgentType.CYCLIST: 15.0}.get(kind, 50.0)
    v0 = min(max(line[SPEED], 0.0), top)

    def speed_after(a):
        return min(max(v0 + a * dt, 0.0), top)

    def through_zero(old, new):
        return 0.0 if old * new < 0 else new

    if kind == AgentType.PEDESTRIAN:
        a, angle = float(np.clip(line[ALONG], -8, 4)), 0.0
        yaw_rate = float(np.clip(line[ACROSS], -4, 4))
    else:
        weak = kind == AgentType.CYCLIST
        wheelbase = max(0.6 * line[LENGTH], 0.3)
        sharpest = math.tan(0.6) / wheelbase
        along, across = line[ALONG], line[ACROSS]
        if not is_jerk:
            along = float(np.clip(along, -6 if weak else -9, 2.5 if weak else 5))
            across = float(np.clip(across, -0.6, 0.6))
        along *= brake_gain if along < 0 else 1.0
        across *= steering_gain
        if is_jerk:
            a = float(np.clip(line[ACCELERATION] + along * dt, -6 if weak else -7.5, 2.5 if weak else 4))
            a = through_zero(line[ACCELERATION], a)
            push = through_zero(line[LATERAL], float(np.clip(line[LATERAL] + across * dt, -4, 4)))
            v = (v0 + speed_after(a)) / 2
            bend = float(np.clip(push / v**2, -sharpest, sharpest)) if v > 1e-6 else math.copysign(sharpest, push)
            angle = math.atan(bend * wheelbase) if push else 0.0
            bend = bend if push else 0.0
        else:
            a, angle = along, float(np.clip(across, -0.6, 0.6))
            bend = math.tan(angle) / wheelbase
        v = (v0 + speed_after(a)) / 2
        total, most = math.hypot(a, v * v * bend), 0.9 * 9.81 * grip
        if total > most:
            push = v * v * bend * most / total
            a *= most / total
            v = (v0 + speed_after(a)) / 2
            bend = math.copysign(min(abs(bend), abs(push) / max(v * v, 1e-12)), bend)
        yaw_rate = bend * v
    v1 = speed_after(a)
    v, turn = (v0 + v1) / 2, yaw_rate * dt
    h0, h1 = line[HEADING], line[HEADING] + turn
    # An exact arc: the integral of the direction, which turns at a constant rate.
    straight = abs(turn) < 1e-9
    dx = v * dt * math.cos(h0) if straight else v * dt * (math.sin(h1) - math.sin(h0)) / turn
    dy = v * dt * math.sin(h0) if straight else v * dt * (math.cos(h0) - math.cos(h1)) / turn
    return {
        X: line[X] + dx,
        Y: line[Y] + dy,
        HEADING: h1,
        COS: math.cos(h1),
        SIN: math.sin(h1),
        SPEED: v1,
        ACCELERATION: (v1 - v0) / dt,
        LATERAL: v * yaw_rate,
        JERK: ((v1 - v0) / dt - line[ACCELERATION]) / dt,
        STEERING: angle,
        PREVIOUS_X: line[X],
        PREVIOUS_Y: line[Y],
    }


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("model", MODELS)
def test_a_step_equals_the_reference(model):
    n = 3000
    agents, flags, hidden = random_agents(np.random.default_rng(1), n, model)
    before = agents.copy()
    move_all(agents, flags, DT, hidden, params_of(model), 1)
    expected = [
        reference_step(before[:, a], flags[TYPE, a], model is Model.JERK, *hidden[:3, a].tolist(), float(DT))
        for a in range(n)
    ]
    for line in WRITTEN:
        values = np.array([e[line] for e in expected])
        error = agents[line] - values
        if line == HEADING:
            error = (error + np.pi) % (2 * np.pi) - np.pi
        slack = {X: 1e-4, Y: 1e-4, ACCELERATION: 1e-4, LATERAL: 1e-3, JERK: 2e-3, STEERING: 2e-4}.get(line, 2e-6)
        assert (np.abs(error) <= slack + 2e-6 * np.abs(values)).all(), line
    others = [k for k in range(len(agents)) if k not in WRITTEN]
    np.testing.assert_array_equal(agents[others], before[others])


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("model", MODELS)
def test_no_finite_state_gives_nan_or_leaves_its_range(model):
    rng = np.random.default_rng(2)
    odd = np.array([0.0, -0.0, 1e-30, -1e-30, 1e-6, 0.5, -0.5, np.pi, -np.pi, 7.0, -50.0, 50.0, 1e4, -1e4, 1e9, -1e9])
    agents, flags, hidden = random_agents(rng, 20000, model)
    for line in (X, Y, HEADING, SPEED, ACCELERATION, LATERAL, LENGTH, ALONG, ACROSS):
        strange = rng.random(agents.shape[1]) < 0.4
        agents[line, strange] = rng.choice(odd, strange.sum())
    flags[TYPE] = rng.integers(-3, 9, agents.shape[1])
    agents[COS], agents[SIN] = np.cos(agents[HEADING]), np.sin(agents[HEADING])
    move_all(agents, flags, DT, hidden, params_of(model), 1)
    assert np.isfinite(agents[list(WRITTEN)]).all()
    assert (agents[SPEED] >= 0).all()
    assert (agents[SPEED] <= 50).all()
    assert (agents[HEADING] > -np.float32(np.pi)).all()
    assert (agents[HEADING] <= np.float32(np.pi)).all()
    assert (np.abs(agents[STEERING]) <= 0.6001).all()
    np.testing.assert_allclose(agents[COS] ** 2 + agents[SIN] ** 2, 1.0, atol=1e-6)


def test_nan_does_not_spread_to_other_agents():
    agents, flags, hidden = random_agents(np.random.default_rng(3), 4, Model.BICYCLE)
    alone = agents.copy()
    agents[X, 1] = agents[HEADING, 1] = agents[ALONG, 1] = np.nan
    move_all(agents, flags, DT, hidden, params_of(Model.BICYCLE), 1)
    move_all(alone, flags, DT, hidden, params_of(Model.BICYCLE), 1)
    np.testing.assert_array_equal(agents[:, [0, 2, 3]], alone[:, [0, 2, 3]])
    assert np.isnan(agents[X, 1])


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("model", MODELS)
def test_an_agent_that_brakes_to_a_stop_stays_there(model):
    kinds = [AgentType.VEHICLE, AgentType.PEDESTRIAN, AgentType.CYCLIST, AgentType.VEHICLE]
    agents, flags, hidden = agents_of(kinds, speed=[12.0, 1.5, 5.0, 0.01], along=-4.0, across=0.0)
    p = params_of(model)
    move_all(agents, flags, DT, hidden, p, 60)
    stopped = agents.copy()
    assert (stopped[SPEED] == 0).all()
    assert (stopped[X] > 0).all()
    agents[ACROSS] = 0.3
    move_all(agents, flags, DT, hidden, p, 50)
    wheels = [0, 2, 3]
    for line in (X, Y, SPEED, ACCELERATION, LATERAL, JERK):
        np.testing.assert_array_equal(agents[line], stopped[line] if line in (X, Y, SPEED) else 0.0)
    np.testing.assert_array_equal(agents[HEADING, wheels], stopped[HEADING, wheels])
    assert agents[HEADING, 1] != stopped[HEADING, 1]  # a pedestrian turns on the spot
    agents[ALONG] = 1.0
    move_all(agents, flags, DT, hidden, p, 30)
    assert (agents[SPEED] > 1.0).all()  # and all set off again


def test_an_agent_that_starts_in_reverse_stands():
    agents, flags, hidden = agents_of([AgentType.VEHICLE], speed=-2.0, x=3.0)
    move_all(agents, flags, DT, hidden, params_of(Model.BICYCLE), 1)
    assert (agents[X, 0], agents[SPEED, 0], agents[ACCELERATION, 0]) == (3.0, 0.0, 0.0)


def test_a_pedestrian_stops_within_two_steps():
    agents, flags, hidden = agents_of([AgentType.PEDESTRIAN], speed=1.6, along=-8.0)
    move_all(agents, flags, DT, hidden, params_of(Model.BICYCLE), 2)
    assert agents[SPEED, 0] < 1e-6


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("kind", WHEELED)
def test_a_circle_at_full_lock_closes(kind):
    steps, length = 60, 4.5
    radius = 0.6 * length / math.tan(0.6)
    speed = 2 * np.pi * radius / (steps * DT)
    agents, flags, hidden = agents_of([kind], speed=speed, across=0.6, length=length, heading=0.4, x=10.0, y=-5.0)
    center = np.array([10.0 - radius * math.sin(0.4), -5.0 + radius * math.cos(0.4)])
    for _ in range(steps):
        move_all(agents, flags, DT, hidden, params_of(Model.BICYCLE), 1)
        assert np.hypot(*(agents[[X, Y], 0] - center)) == pytest.approx(radius, abs=1e-4)
    np.testing.assert_allclose(agents[[X, Y, HEADING], 0], [10.0, -5.0, 0.4], atol=1e-4)


@pytest.mark.row("TRIAL-9")
def test_gains_multiply_the_request():
    kinds = [AgentType.VEHICLE, AgentType.VEHICLE, AgentType.PEDESTRIAN, AgentType.PEDESTRIAN]
    agents, flags, hidden = agents_of(kinds, speed=5.0, along=[-2.0, 2.0, -2.0, -2.0], across=0.1)
    hidden[0], hidden[1] = 1.3, [0.5, 0.5, 0.5, 1.0]
    move_all(agents, flags, DT, hidden, params_of(Model.BICYCLE), 1)
    np.testing.assert_allclose(agents[STEERING, :2], 0.13, rtol=1e-6)
    np.testing.assert_allclose(agents[ACCELERATION], [-1.0, 2.0, -2.0, -2.0], rtol=1e-5)
    np.testing.assert_array_equal(agents[:, 2], agents[:, 3])  # feet have neither brakes nor wheels
    agents, flags, hidden = agents_of([AgentType.VEHICLE] * 2, speed=20.0, along=-3.0, across=4.0)
    hidden[0], hidden[1] = [1.0, 1.5], [1.0, 0.5]
    move_all(agents, flags, DT, hidden, params_of(Model.JERK), 1)
    np.testing.assert_allclose(agents[ACCELERATION], [-0.3, -0.15], rtol=1e-5)
    np.testing.assert_allclose(agents[LATERAL], [0.4, 0.6], rtol=1e-4)


@pytest.mark.row("TRIAL-9")
def test_grip_limits_acceleration_along_and_across_together():
    grips = [1.0, 0.5, 0.2]
    agents, flags, hidden = agents_of([AgentType.VEHICLE] * 3, speed=15.0, along=-6.0, across=0.1)
    hidden[2] = grips
    move_all(agents, flags, DT, hidden, params_of(Model.BICYCLE), 1)
    total = np.hypot(agents[ACCELERATION], agents[LATERAL])
    np.testing.assert_allclose(total, 0.9 * 9.81 * np.array(grips), rtol=1e-4)
    assert (np.diff(agents[SPEED]) > 0).all()  # brakes less
    assert (np.diff(agents[HEADING]) < 0).all()  # and turns less
    np.testing.assert_allclose(agents[STEERING], 0.1)  # with the wheels where they were asked to be


@given(
    heading=st.floats(-3, 3, width=32),
    speed=st.floats(0, 30, width=32),
    along=st.floats(-9, 5, width=32),
    across=st.floats(-0.625, 0.625, width=32),
    kind=st.sampled_from(list(AgentType)),
    model=st.sampled_from(MODELS),
)
def test_turning_or_mirroring_the_world_turns_or_mirrors_the_motion(heading, speed, along, across, kind, model):
    agents, flags, hidden = agents_of(
        [kind] * 3,
        x=[3.0, -2.0, 3.0],
        y=[2.0, 3.0, -2.0],
        heading=[heading, (heading + 1.5 * np.pi) % (2 * np.pi) - np.pi, -heading],
        speed=speed,
        along=along,
        across=[across, across, -across],
        acceleration=0.3,
        lateral=[0.2, 0.2, -0.2],
    )
    move_all(agents, flags, DT, hidden, params_of(model), 3)
    x, y = agents[X], agents[Y]
    np.testing.assert_allclose([-y[0], x[0]], [x[1], y[1]], atol=2e-5)
    np.testing.assert_allclose([x[0], -y[0]], [x[2], y[2]], atol=2e-5)
    turned = (agents[HEADING, 1] - agents[HEADING, 0]) % (2 * np.pi)
    assert turned == pytest.approx(np.pi / 2, abs=1e-5)
    assert np.sin(agents[HEADING, 0]) == pytest.approx(-np.sin(agents[HEADING, 2]), abs=1e-5)
    for line in (SPEED, ACCELERATION, JERK):
        np.testing.assert_array_equal(agents[line, 1:], agents[line, 0])
    for line in (LATERAL, STEERING):
        np.testing.assert_array_equal(agents[line], agents[line, 0] * np.array([1, 1, -1]))


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("model", MODELS)
def test_every_choice_is_distinct_and_encoded_back(model):
    along, across = dynamics.ACTION_CHOICES[model]
    actions = np.array([(i, j) for i in range(along) for j in range(across)], np.float32)
    kinds = np.array(list(AgentType), np.int32)
    asked, again = np.full((2, len(kinds), len(actions), 2), np.nan, np.float32)
    decode_all(actions, kinds, params_of(model, Actions.DISCRETE), asked, again)
    np.testing.assert_array_equal(again, np.broadcast_to(actions, again.shape))
    for k in range(len(kinds)):
        assert len(np.unique(asked[k], axis=0)) == len(actions)
        idle = (asked[k] == 0).all(axis=1)
        assert actions[idle].tolist() == [list(dynamics.IDLE_CHOICES[model])]
        np.testing.assert_array_equal(np.sort(asked[k, :, 1]), np.sort(-asked[k, :, 1]))  # left and right alike
    np.testing.assert_array_equal(asked[AgentType.OTHER], asked[AgentType.VEHICLE])
    if model is Model.BICYCLE:
        car = asked[AgentType.VEHICLE]
        assert car[:, 0].min() <= -8.0
        assert car[:, 1].max() == np.float32(0.6)


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("model", MODELS)
def test_continuous_actions_span_the_range(model):
    actions = np.array([(0, 0), (-1, -1), (1, 1), (-0.5, 0.25), (7, -7)], np.float32)
    kinds = np.array(list(AgentType), np.int32)
    asked, again = np.full((2, len(kinds), len(actions), 2), np.nan, np.float32)
    decode_all(actions, kinds, params_of(model), asked, again)
    number = MODELS.index(model)
    np.testing.assert_array_equal(asked[:, 0], 0)
    np.testing.assert_array_equal(asked[:, 1, 0], dynamics.LOWEST_ALONG[number])
    np.testing.assert_array_equal(asked[:, 2, 0], dynamics.HIGHEST_ALONG[number])
    np.testing.assert_array_equal(asked[:, 3, 0], dynamics.LOWEST_ALONG[number] / 2)
    np.testing.assert_array_equal(asked[:, 3, 1], dynamics.HIGHEST_ACROSS[number] / 4)
    np.testing.assert_array_equal(asked[:, 1, 1], -asked[:, 2, 1])
    np.testing.assert_allclose(again, np.broadcast_to(np.clip(actions, -1, 1), again.shape), rtol=1e-6)


def test_an_invalid_choice_becomes_a_valid_one():
    actions = np.array([(np.nan, np.nan), (-3, -1e9), (99, 1e30), (np.inf, -np.inf)], np.float32)
    asked, again = np.full((2, 1, len(actions), 2), np.nan, np.float32)
    decode_all(actions, np.array([1], np.int32), params_of(Model.BICYCLE, Actions.DISCRETE), asked, again)
    np.testing.assert_array_equal(again[0], [(0, 0), (0, 0), (6, 12), (6, 0)])


def test_sines_and_cosines_are_exact_to_rounding():
    angles = np.linspace(-np.pi, np.pi, 20001).astype(np.float32)
    out = np.full((len(angles), 2), np.nan, np.float32)
    sines_and_cosines(angles, out)
    exact = angles.astype(np.float64)
    np.testing.assert_allclose(out, np.stack([np.sin(exact), np.cos(exact)], axis=1), atol=2e-7)
