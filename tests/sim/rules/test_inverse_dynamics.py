"""Actions are recovered from motion: from their own, from recordings, and from beside the recorded path."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.schema import AgentType
from roadworthy.sim.config import Actions, Model
from roadworthy.sim.rules import dynamics
from roadworthy.sim.rules.inverse_dynamics import infer_action, lookahead_s
from roadworthy.sim.state import ACCELERATION, ACROSS, ALONG, HEADING, SPEED, TYPE, X, Y
from tests.sim.plane import DT, MODELS, agents_of, decode_all, move_all, params_of

WAYS = [Actions.DISCRETE, Actions.CONTINUOUS]


@kernel
def follow(agents, flags, motion, frames, reach, dt, hidden, p, off_out, actions_out):
    """Follow each agent's recording (4, frames, agents) for as many frames as it has, aiming `reach` steps ahead."""
    for a in range(agents.shape[1]):
        for frame in range(frames[a] - 1):
            steps = min(reach, frames[a] - 1 - frame)
            aim = frame + steps
            pose = motion[0, aim, a], motion[1, aim, a], motion[2, aim, a], motion[3, aim, a]
            first, second = infer_action(agents, flags, a, pose, np.float32(steps) * dt, dt, p)
            actions_out[frame, a] = first, second
            agents[ALONG, a], agents[ACROSS, a] = dynamics.decode(first, second, flags[TYPE, a], p)
            dynamics.move(agents, flags, a, dt, hidden[:, a], p)
            off_out[frame, a] = np.hypot(agents[X, a] - motion[0, frame + 1, a], agents[Y, a] - motion[1, frame + 1, a])


@kernel
def seconds_ahead(p):
    return lookahead_s(p)


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("model", MODELS)
def test_random_actions_are_recovered_from_the_motion_that_they_cause(model):
    rng = np.random.default_rng(5)
    frames, n = 30, 200
    agents, flags, hidden = agents_of(rng.choice([1, 3], n), speed=rng.uniform(4, 8, n), length=rng.uniform(1.6, 6, n))
    p = params_of(model)
    start, actions = agents.copy(), rng.uniform(-0.15, 0.15, (frames, n, 2)).astype(np.float32)
    motion = np.empty((4, frames + 1, n), np.float32)
    for frame in range(frames + 1):
        motion[:, frame] = agents[[X, Y, HEADING, SPEED]]
        if frame < frames:
            for kind in (1, 3):
                mine = flags[TYPE] == kind
                asked = np.empty((1, mine.sum(), 2), np.float32)
                decode_all(actions[frame, mine], np.array([kind], np.int32), p, asked, asked.copy())
                agents[ALONG, mine], agents[ACROSS, mine] = asked[0].T
            move_all(agents, flags, DT, hidden, p, 1)
    found, off = np.full((frames, n, 2), np.nan, np.float32), np.full((frames, n), np.nan, np.float32)
    length = np.full(n, frames + 1, np.int32)
    follow(start, flags, motion, length, 1, DT, hidden, p, off, found)
    assert off.max() < (2e-3 if model is Model.BICYCLE else 0.01)
    if model is Model.BICYCLE:  # jerks that are swallowed by a limit or at zero leave no trace in the motion
        assert np.quantile(np.abs(found - actions), 0.99) < 0.01


@pytest.fixture(scope="module")
def recordings():
    """Return moving recorded agents of several behaviors: types, lengths, (4, frames, agents) motion, frame counts."""
    kinds, lengths, motions, frames = [], [], [], []
    for behavior in ("hard_stop", "roundabout", "pedestrian_crossing", "highway_straight"):
        scenario = generate_scenario(3, behavior, 0)
        assert scenario.dt == pytest.approx(float(DT))
        for a in range(scenario.agent_count):
            valid = scenario.valid[a]
            first = int(np.argmax(valid))
            count = int(np.argmin(valid[first:])) if not valid[first:].all() else len(valid) - first
            xy, heading = scenario.positions[a, :, :2], scenario.headings[a]
            if count < 20 or np.hypot(*(xy[first + count - 1] - xy[first])) < 2.0:
                continue
            velocity = scenario.velocities[a]
            speed = velocity[:, 0] * np.cos(heading) + velocity[:, 1] * np.sin(heading)
            motion = np.zeros((4, scenario.steps), np.float32)
            motion[:, :count] = np.stack([xy[:, 0], xy[:, 1], heading, speed])[:, first : first + count]
            kinds.append(scenario.agent_types[a])
            lengths.append(scenario.sizes[a, 0])
            motions.append(motion)
            frames.append(count)
    return kinds, lengths, np.stack(motions, axis=2), np.array(frames, np.int32)


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize("actions", WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_recordings_can_be_followed(recordings, model, actions):
    kinds, lengths, motion, frames = recordings
    assert {AgentType.VEHICLE, AgentType.PEDESTRIAN} <= set(kinds)
    p = params_of(model, actions)
    x, y, heading, speed = motion[:, 0]
    agents, flags, hidden = agents_of(kinds, length=lengths, x=x, y=y, heading=heading, speed=speed)
    agents[ACCELERATION] = (motion[3, 1] - speed) / DT
    shape = motion.shape[1:]
    off, found = np.zeros(shape, np.float32), np.full((*shape, 2), np.nan, np.float32)
    follow(agents, flags, motion, frames, round(seconds_ahead(p) / float(DT)), DT, hidden, p, off, found)
    acted = np.arange(shape[0])[:, None] < frames - 1
    assert np.isfinite(found[acted]).all()
    assert (off.max(axis=0) < 0.5).mean() >= 0.99
    if model is Model.BICYCLE:
        assert off.max() < (0.02 if actions is Actions.CONTINUOUS else 0.1)


def test_dry_roads_have_enough_grip_for_every_recording(recordings):
    kinds, lengths, motion, frames = recordings
    p = params_of(Model.BICYCLE)
    shape = motion.shape[1:]
    ends = []
    for grip in (1.0, 100.0):
        x, y, heading, speed = motion[:, 0]
        agents, flags, hidden = agents_of(kinds, length=lengths, x=x, y=y, heading=heading, speed=speed)
        hidden[2] = grip
        off, found = np.zeros(shape, np.float32), np.zeros((*shape, 2), np.float32)
        follow(agents, flags, motion, frames, 3, DT, hidden, p, off, found)
        ends.append(agents)
    np.testing.assert_array_equal(ends[0], ends[1])


def straight_line(speed, frames, agents):
    motion = np.zeros((4, frames, agents), np.float32)
    motion[0] = np.arange(frames)[:, None] * DT * speed
    motion[3] = speed
    return motion


@pytest.mark.parametrize("actions", WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_an_agent_that_starts_beside_the_line_returns_to_it(model, actions):
    frames, speed = 80, np.array([3.0, 8.0, 15.0, 30.0])
    motion = straight_line(speed, frames, 4)
    agents, flags, hidden = agents_of([AgentType.VEHICLE] * 4, x=-0.5, y=[0.6, -0.6, 0.6, -0.6], speed=speed)
    p = params_of(model, actions)
    off, found = np.full((frames - 1, 4), np.nan, np.float32), np.full((frames - 1, 4, 2), np.nan, np.float32)
    count = np.full(4, frames, np.int32)
    follow(agents, flags, motion, count, round(seconds_ahead(p) / float(DT)), DT, hidden, p, off, found)
    assert off.max() < 1.5
    assert off[-20:].max() < 0.1


@pytest.mark.parametrize("actions", WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_any_pose_can_be_the_target(model, actions):
    rng = np.random.default_rng(9)
    n = 2000
    odd = np.array([0.0, 1e-20, -1e-3, 0.5, -3.0, np.pi, -np.pi, 40.0, -1e5])
    motion = rng.choice(odd, (4, 2, n)).astype(np.float32)
    agents, flags, hidden = agents_of(rng.integers(0, 4, n), x=rng.choice(odd, n), speed=rng.choice(odd, n), length=0.0)
    off, found = np.full((1, n), np.nan, np.float32), np.full((1, n, 2), np.nan, np.float32)
    p = params_of(model, actions)
    follow(agents, flags, motion, np.full(n, 2, np.int32), 1, DT, hidden, p, off, found)
    most = dynamics.ACTION_CHOICES[model] if actions is Actions.DISCRETE else (1.0, 1.0)
    assert np.isfinite(off).all()
    assert (np.abs(found) <= most).all()


def test_a_standing_target_gets_a_standing_action():
    agents, flags, hidden = agents_of([AgentType.VEHICLE, AgentType.PEDESTRIAN], x=7.0, y=-3.0, heading=1.0)
    motion = np.broadcast_to(agents[[X, Y, HEADING, SPEED], None], (4, 30, 2)).copy()
    off, found = np.full((29, 2), np.nan, np.float32), np.full((29, 2, 2), np.nan, np.float32)
    p = params_of(Model.BICYCLE)
    follow(agents, flags, motion, np.full(2, 30, np.int32), 3, DT, hidden, p, off, found)
    np.testing.assert_array_equal(found, 0.0)
    np.testing.assert_array_equal(off, 0.0)


def test_an_agent_past_the_pose_brakes_with_straight_wheels():
    agents, flags, hidden = agents_of([AgentType.VEHICLE, AgentType.CYCLIST], speed=5.0)
    motion = np.zeros((4, 2, 2), np.float32)
    motion[0, 1], motion[1, 1], motion[2, 1] = -2.0, 1.0, 0.2
    off, found = np.full((1, 2), np.nan, np.float32), np.full((1, 2, 2), np.nan, np.float32)
    follow(agents, flags, motion, np.full(2, 2, np.int32), 1, DT, hidden, params_of(Model.BICYCLE), off, found)
    np.testing.assert_array_equal(found[0], [(-1.0, 0.0)] * 2)
