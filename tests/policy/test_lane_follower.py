"""The blind lane follower: it stays on the recorded lanes at their speed, and heeds nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.policy.experts import DriveExpert, LaneFollower
from roadworthy.policy.experts.lane_follower import recorded_guide
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.lanes.guide import LATERAL_MPS2
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType
from roadworthy.sim.config import Actions, AtGoal, Control, ControlConfig, EpisodeConfig, GoalConfig, Mode, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import EVENT_COLLISION, EVENTS, SPEED, X, Y
from tests.sim.scenes import pack_of

START = 10
CLASSES = ("lane_change", "hard_stop", "roundabout")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """One generated scenario of each of three classes."""
    return pack_of(
        tmp_path_factory.mktemp("lanes") / "lanes.pack", *(generate_scenario(3, name, 0) for name in CLASSES)
    )


def replay(pack: Pack, actions: Actions = Actions.DISCRETE) -> DriveEnv:
    """World w runs scenario w; the self-driving car is driven, everybody else is recorded."""
    config = SimConfig(
        mode=Mode.REPLAY,
        init_steps=START,
        actions=actions,
        episode=EpisodeConfig(1, 80),
        control=ControlConfig(Control.SDC, rows=1),
        goal=GoalConfig(AtGoal.CONTINUE),
    )
    env = DriveEnv(pack, len(pack), config, sampling=False, threads=1)
    for world in range(len(pack)):
        env.assign(world, world, world)
    env.reset()
    return env


def drive(env: DriveEnv, expert: LaneFollower | DriveExpert) -> tuple[np.ndarray, np.ndarray]:
    """Places and speeds (T, worlds, 3) of the cars, and whether each has touched anybody (worlds,)."""
    way: list[np.ndarray] = []
    touched = np.zeros(env.world_count, np.bool_)

    def watch() -> None:
        way.append(env.agents[:, [X, Y, SPEED], 0].copy())
        touched[:] |= (env.agent_flags[:, EVENTS, 0] & EVENT_COLLISION) != 0

    env.set_pre_reset_callback(watch)
    while len(env.resting_worlds) < env.world_count:
        env.step(expert.act())
    return np.array(way, np.float64), touched


@pytest.mark.parametrize("actions", list(Actions))
@pytest.mark.row("CL-3")
def test_it_stays_on_the_lanes_of_the_recording(pack: Pack, actions: Actions) -> None:
    env = replay(pack, actions)
    way, _ = drive(env, LaneFollower(env))
    for world, scenario in enumerate(pack):
        guide = recorded_guide(scenario, scenario.sdc, START)
        assert guide is not None
        _, offset = guide.project(way[20:, world, 0], way[20:, world, 1])
        assert np.abs(offset).max() < 0.4, scenario.id
        traveled = np.hypot(*np.diff(way[:, world, :2], axis=0).T).sum()
        assert traveled > 30.0, scenario.id


def test_it_reaches_the_limit_and_slows_down_for_bends_alone(pack: Pack) -> None:
    env = replay(pack)
    way, _ = drive(env, LaneFollower(env))
    for world, scenario in enumerate(pack):
        guide = recorded_guide(scenario, scenario.sdc, START)
        assert guide is not None
        station, _ = guide.project(way[:, world, 0], way[:, world, 1])
        allowed = np.interp(station, guide.station, guide.speed)
        assert (way[30:, world, 2] <= allowed[30:] + 1.0).all(), scenario.id
        limit = scenario.map.speed_limits.max()
        bend = np.abs(np.gradient(guide.heading, guide.station))
        is_slow = guide.speed < 0.5 * limit
        assert (bend[is_slow] * guide.speed[is_slow] ** 2).max(initial=0.0) <= 1.5 * LATERAL_MPS2


@pytest.mark.row("CL-3")
def test_it_drives_into_a_car_that_brakes_where_one_that_sees_stops(pack: Pack) -> None:
    blind, seeing = replay(pack), replay(pack)
    _, touched = drive(blind, LaneFollower(blind))
    _, other = drive(seeing, DriveExpert(seeing))
    number = CLASSES.index("hard_stop")
    assert touched[number]
    assert not other[number]


@pytest.mark.row("CL-3")
def test_one_that_keeps_its_lane_does_not_change_lanes_with_the_recording(pack: Pack) -> None:
    number = CLASSES.index("lane_change")
    ends = []
    for keeps_lane in (False, True):
        env = replay(pack)
        way, _ = drive(env, LaneFollower(env, keeps_lane=keeps_lane))
        guide = recorded_guide(pack[number], pack[number].sdc, START)
        assert guide is not None
        ends.append(abs(float(guide.project(way[-1:, number, 0], way[-1:, number, 1])[1][0])))
    assert ends[0] < 0.4
    assert ends[1] > 2.5


def test_pedestrians_parked_and_absent_agents_have_no_guide(pack: Pack) -> None:
    scenario = pack[CLASSES.index("hard_stop")]
    still = np.ptp(scenario.positions[..., :2], axis=1).max(axis=1) < 0.1
    for agent in range(scenario.agent_count):
        walks = scenario.agent_types[agent] == AgentType.PEDESTRIAN
        if walks or not scenario.valid[agent, START] or (still[agent] and scenario.valid[agent].all()):
            assert recorded_guide(scenario, agent, START) is None
    assert recorded_guide(scenario, -1, START) is None


def test_in_open_worlds_it_follows_its_route(pack: Pack, tmp_path: Path) -> None:
    env = DriveEnv(pack, 2, SimConfig(mode=Mode.OPEN, episode=EpisodeConfig(1, 60)), threads=1)
    env.reset()
    expert = LaneFollower(env)
    start = env.agents[:, [X, Y], 0].copy()
    for _ in range(40):
        env.step(expert.act())
    moved = np.hypot(*(env.agents[:, [X, Y], 0] - start).T)
    assert moved.max() > 10.0
