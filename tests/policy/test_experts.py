"""Scripted experts: recordings and open worlds can be driven through the action space, and hidden gains matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy.experts import DriveExpert, LogExpert
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, FeatureKind, LaneType, Scenario
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    HiddenConfig,
    Mode,
    Model,
    OpenConfig,
    Others,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.episodes import EndedEpisodes
from roadworthy.sim.state import DISTANCE, GOAL, GOAL_COUNT, GOAL_DISTANCE, HEADING, SOURCE, SPEED, X, Y
from tests.scenario.example import map_of, pairs, straight
from tests.sim.scenes import Actor, pack_of, scene

EVERY_ACTION = [(model, actions) for model in Model for actions in Actions]
HIDDEN = HiddenConfig(steering_gain=(0.6, 1.4), brake_gain=(0.5, 1.0))
TRUSTING_S = 3.0  # so slowly corrects an expert that relies on knowing its car


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """One generated scenario of each of six classes."""
    scenarios = [generate_scenario(3, behavior, 0, 91) for behavior in BEHAVIORS[::2]]
    return pack_of(tmp_path_factory.mktemp("towns") / "towns.pack", *scenarios)


def start(pack: Pack, config: SimConfig, worlds: int) -> DriveEnv:
    """An env in which world w runs scenario w, over and over, with seed w."""
    env = DriveEnv(pack, worlds, config, sampling=False)
    for world in range(worlds):
        env.assign(world, world % len(pack), world)
    env.reset()
    return env


def drive(env: DriveEnv, expert: LogExpert | DriveExpert) -> EndedEpisodes:
    """Let an expert drive until every episode has ended."""
    while len(env.resting_worlds) < env.world_count:
        env.step(expert.act())
    return env.ended_episodes()


def figure(env: DriveEnv, ended: EndedEpisodes, name: str) -> NDArray[np.float64]:
    """One figure of the ended episodes, in the order of rows."""
    return ended.figures[np.argsort(ended.rows), env.figure_names.index(name)].astype(np.float64)


def distance_to_path(point: NDArray[np.float64], path: NDArray[np.float64]) -> float:
    """From a point to the nearest one on a line through points (n, 2)."""
    begin, way = path[:-1], np.diff(path, axis=0)
    square = np.maximum((way**2).sum(axis=1), 1e-12)
    share = np.clip(((point - begin) * way).sum(axis=1) / square, 0.0, 1.0)
    return float(np.hypot(*(begin + share[:, None] * way - point).T).min())


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Two scenes of a car beside the middle of its lane, on different sides: it has to steer, by less than a choice."""
    scenes = [scene(Actor(20.0, y=-1.75 + off, speed=8.0), id=f"off {off}") for off in (0.6, -0.9)]
    return pack_of(tmp_path_factory.mktemp("beside") / "beside.pack", *scenes)


def asked(
    env: DriveEnv, expert: DriveExpert, scenario: int, seed: int, steps: int, forgets: bool = False
) -> list[bytes]:
    """What an expert does in the first steps of an episode that begins now."""
    env.assign(0, scenario, seed, now=True)
    if forgets:
        expert.reset(np.ones(env.row_count, np.bool_))
    taken = []
    for _ in range(steps):
        actions = expert.act()
        taken.append(actions.tobytes())
        env.step(actions)
    return taken


@pytest.mark.row("EVAL-10")
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("before", [(0, 7, 1), (0, 7, 2), (0, 7, 9), (1, 7, 1), (1, 7, 9), (0, 8, 1)])
@pytest.mark.parametrize("trial_steps", [1, 40])
def test_an_expert_acts_in_an_episode_as_if_it_were_its_first(
    beside: Pack, before: tuple[int, int, int], trial_steps: int, forgets: bool
) -> None:
    config = SimConfig(
        mode=Mode.REPLAY,
        episode=EpisodeConfig(1, trial_steps),
        control=ControlConfig(who=Control.SDC),
        goal=GoalConfig(radius_m=0.5),
    )

    def made() -> tuple[DriveEnv, DriveExpert]:
        env = DriveEnv(beside, 1, config, sampling=False)
        env.assign(0, 0, 0)
        env.reset()
        return env, DriveExpert(env)

    steps = min(6, trial_steps)
    fresh = asked(*made(), 0, 7, steps)
    assert len(set(fresh)) > 1 or trial_steps == 1, "nothing is carried from step to step: the test shows nothing"
    env, expert = made()
    scenario, seed, count = before
    asked(env, expert, scenario, seed, min(count, trial_steps))
    for _ in range(3):
        assert asked(env, expert, 0, 7, steps, forgets) == fresh


@pytest.mark.row("EVAL-10")
def test_an_expert_owes_nothing_from_an_episode_of_one_step(tmp_path: Path) -> None:
    offsets = np.linspace(0.05, 0.6, 12).tolist()  # of some, what is owed after a step is enough for another choice
    pack = pack_of(
        tmp_path / "p.pack", *(scene(Actor(20.0, y=-1.75 + off, speed=8.0), id=f"off {off}") for off in offsets)
    )
    config = SimConfig(mode=Mode.REPLAY, episode=EpisodeConfig(1, 1), control=ControlConfig(who=Control.SDC))
    env = DriveEnv(pack, 1, config, sampling=False)
    env.assign(0, 0, 0)
    env.reset()
    expert = DriveExpert(env)
    for number in range(len(pack)):
        assert len({asked(env, expert, number, 7, 1)[0] for _ in range(5)}) == 1


def test_forgetting_one_agent_leaves_the_others_of_its_world_alone(towns: Pack) -> None:
    config = SimConfig(mode=Mode.REPLAY, control=ControlConfig(who=Control.VEHICLES, rows=4))
    taken = []
    for forgotten in ([], [0]):
        env = start(towns, config, 1)
        expert = DriveExpert(env)
        for _ in range(5):
            env.step(expert.act())
        mask = np.zeros(env.row_count, np.bool_)
        mask[forgotten] = True
        expert.reset(mask)
        taken.append(expert.act().copy())
    np.testing.assert_array_equal(taken[0][1:], taken[1][1:])


@pytest.mark.row("SIM-2")
@pytest.mark.parametrize(("model", "actions"), EVERY_ACTION)
def test_the_log_expert_drives_recordings_to_their_end(towns: Pack, model: Model, actions: Actions) -> None:
    env = start(towns, SimConfig(model=model, actions=actions), len(towns))
    sources = env.agent_flags[:, SOURCE].copy()
    ended = drive(env, LogExpert(env))
    assert len(ended) > 80
    assert figure(env, ended, "score").mean() >= 0.97
    off = []
    for row in ended.rows:
        world, slot = divmod(int(row), env.rows_per_world)
        recording, source = towns[world], sources[world, slot]
        path = recording.positions[source, :, :2][recording.valid[source]].astype(np.float64)
        off.append(distance_to_path(env.agents[world, [X, Y], slot].astype(np.float64), path))
    assert np.mean(np.array(off) <= 0.5) >= 0.99


def test_gaps_in_a_recording_are_bridged(tmp_path: Path) -> None:
    recording = scene(Actor(10.0), Actor(60.0))
    recording.valid[:, 30:45] = False
    env = start(pack_of(tmp_path / "gap.pack", recording), SimConfig(goal=GoalConfig(radius_m=0.5)), 1)
    assert figure(env, drive(env, LogExpert(env)), "score").tolist() == [1.0, 1.0]


def test_who_comes_to_the_end_of_its_recording_stands(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "short.pack", scene(Actor(10.0, last=40)))
    env = start(pack, SimConfig(goal=GoalConfig(radius_m=0.01, speed_mps=0.0)), 1)
    drive(env, LogExpert(env))
    recorded_end, braking = 10.0 + 39.0, 10.0**2 / (2 * 8.0)
    assert env.agents[0, SPEED, 0] == 0.0
    assert recorded_end <= env.agents[0, X, 0] < recorded_end + braking + 1.0


def test_who_starts_anew_follows_its_recording_anew(tmp_path: Path) -> None:
    settings = SimConfig(episode=EpisodeConfig(1, 200), goal=GoalConfig(AtGoal.RESPAWN, radius_m=0.5))
    env = start(pack_of(tmp_path / "one.pack", scene(Actor(10.0))), settings, 1)
    scores = drive(env, LogExpert(env)).figures[:, env.figure_names.index("score")]
    assert scores.tolist() == [1.0, 1.0, 0.0], "twice to the goal, and the time was up on the third way"


def open_worlds(**settings: object) -> SimConfig:
    return SimConfig(mode=Mode.OPEN, episode=EpisodeConfig(1, 400), open=OpenConfig(32, goals=3), **settings)  # type: ignore[arg-type]


@pytest.mark.row("SIM-4")
@pytest.mark.parametrize(("model", "actions"), EVERY_ACTION)
def test_the_drive_expert_solves_open_worlds(towns: Pack, model: Model, actions: Actions) -> None:
    env = start(towns, open_worlds(model=model, actions=actions), len(towns))
    ended = drive(env, DriveExpert(env))
    assert len(ended) == 32 * len(towns)
    assert figure(env, ended, "score").mean() >= 0.95
    assert figure(env, ended, "red_light_rate").mean() <= 0.01
    assert np.nanmean(figure(env, ended, "lane_centred")) >= 0.95


@pytest.mark.row("SIM-5")
@pytest.mark.parametrize("at_goal", [AtGoal.NEW_GOAL, AtGoal.RESPAWN])
def test_the_drive_expert_drives_on_and_on(towns: Pack, at_goal: AtGoal) -> None:
    env = start(towns, open_worlds(goal=GoalConfig(at_goal)), len(towns))
    ended = drive(env, DriveExpert(env))
    names = env.figure_names
    if at_goal is AtGoal.RESPAWN:
        assert len(ended) > 2 * env.row_count
        is_whole = ended.figures[:, names.index("timed_out_rate")] == 0  # the last attempts are cut short by the clock
        assert ended.figures[is_whole, names.index("score")].mean() >= 0.95
    else:
        assert len(ended) == env.row_count
        assert figure(env, ended, "score").mean() >= 0.95
        assert figure(env, ended, "off_road_rate").mean() <= 0.03
        assert figure(env, ended, "distance_m").mean() > 2 * 3 * env.config.open.goal_spacing_m


@pytest.mark.row("SIM-5")
def test_the_drive_expert_drives_on_when_it_has_no_goal_left(towns: Pack) -> None:
    config = open_worlds(goal=GoalConfig(AtGoal.CONTINUE, speed_mps=3.0))
    env, after = start(towns, config, 2), 50
    expert, flags, agents = DriveExpert(env), env.agent_flags, env.agents
    last = np.full((2, env.rows_per_world), -1)  # the step in which each reached its last goal
    way = np.zeros((config.episode.trial_steps, 2, env.rows_per_world))
    for step in range(config.episode.trial_steps - 1):
        env.step(expert.act())
        last[(flags[:, GOAL] >= flags[:, GOAL_COUNT]) & (last < 0)] = step
        way[step] = agents[:, DISTANCE]
    done = np.argwhere((last >= 0) & (last < len(way) - 1 - after))
    driven = [way[last[w, a] + after, w, a] - way[last[w, a], w, a] for w, a in done]
    assert len(driven) > 20
    assert np.median(driven) > 3.0 * after * 0.1, "faster than a goal would ask for"


def test_the_drive_expert_comes_slowly_to_goals_that_ask_for_it(towns: Pack) -> None:
    env = start(towns, open_worlds(goal=GoalConfig(speed_mps=3.0)), len(towns))
    can_slow_down = env.agents[:, SPEED].ravel() ** 2 < 2 * 4.0 * env.agents[:, GOAL_DISTANCE].ravel()
    assert can_slow_down.sum() > 100
    assert figure(env, drive(env, DriveExpert(env)), "goal_rate")[can_slow_down].mean() >= 0.9


@pytest.mark.row("TRIAL-9")
def test_an_oracle_that_is_told_the_gains_beats_one_that_is_not(towns: Pack) -> None:
    scores, factors = [], []
    for knows_gains in (False, True):
        env = start(towns, open_worlds(hidden=HIDDEN), 2 * len(towns))
        factors.append(env.hidden)
        ended = drive(env, DriveExpert(env, knows_gains=knows_gains, settling_s=TRUSTING_S))
        scores.append(figure(env, ended, "score").reshape(env.world_count, 32).mean(axis=1))
    for name in ("steering_gain", "brake_gain"):
        np.testing.assert_array_equal(factors[0][name], factors[1][name])
        assert np.ptp(factors[0][name]) > 0.3
    delta = scores[1] - scores[0]
    assert scores[1].mean() >= 0.95
    assert delta.mean() >= 0.1
    assert delta.mean() > 2.5 * delta.std(ddof=1) / np.sqrt(len(delta))


@pytest.mark.row("TRIAL-9")
def test_who_corrects_quickly_needs_not_know_the_gains(towns: Pack) -> None:
    env = start(towns, open_worlds(hidden=HIDDEN), len(towns))
    assert figure(env, drive(env, DriveExpert(env)), "score").mean() >= 0.95


@pytest.mark.row("TRIAL-4")
def test_the_drive_expert_does_the_same_in_every_trial(towns: Pack) -> None:
    settings = SimConfig(mode=Mode.OPEN, episode=EpisodeConfig(3, 60), open=OpenConfig(32))
    env = start(towns, settings, 2)
    expert = DriveExpert(env)
    trials: list[list[bytes]] = [[], [], []]
    for step in range(180):
        actions = expert.act()
        trials[step // 60].append(actions.tobytes())
        env.step(actions)
    assert trials[0] == trials[1] == trials[2]


def test_asking_the_drive_expert_changes_nothing_in_the_env(towns: Pack) -> None:
    env = start(towns, open_worlds(), 3)
    expert = DriveExpert(env)
    for _ in range(50):
        env.step(expert.act())
    before = env.snapshot().arrays
    expert.act()
    after = env.snapshot().arrays
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.tobytes() == after[name].tobytes(), name


def test_an_expert_that_comes_late_finds_its_place(towns: Pack) -> None:
    env = start(towns, open_worlds(actions=Actions.CONTINUOUS), len(towns))
    expert = DriveExpert(env)
    for _ in range(120):
        env.step(expert.act())
    known, late = expert.act().copy(), DriveExpert(env).act()
    active = env.signals.active
    assert active.sum() > 60
    assert np.mean(np.abs(known - late)[active].max(axis=1) < 1e-3) >= 0.95


RECORDED = SimConfig(
    episode=EpisodeConfig(1, 80),
    control=ControlConfig(Control.AGENTS, Others.STATIC, rows=128, min_distance_m=0.0),
    goal=GoalConfig(AtGoal.STOP, radius_m=0.001, speed_mps=0.0),
)


ANGLES = np.linspace(0.0, np.pi / 2, 26)
LEFT_TURN = np.column_stack([50.0 + 40.0 * np.sin(ANGLES), 40.0 - 40.0 * np.cos(ANGLES)])
WAYS = {"straight": straight(50, 0, 250, 0), "left": np.concatenate([LEFT_TURN, straight(90, 42.5, 90, 200)])}


def at_a_fork(way: str) -> Scenario:
    """A car that comes to a fork at x = 50 and takes one of the two ways, at 8 m/s."""
    lanes = [straight(0, 0, 50, 0), *WAYS.values()]
    road_map = map_of(
        [(FeatureKind.LANE, LaneType.SURFACE_STREET, lane) for lane in lanes], successors=pairs((0, 1), (0, 2))
    )
    path = np.concatenate([lanes[0][:-1], WAYS[way]])
    arcs = np.append(0.0, np.cumsum(np.hypot(*np.diff(path, axis=0).T)))
    along = 10.0 + 0.8 * np.arange(91)
    positions = np.zeros((1, 91, 3), np.float32)
    positions[0, :, :2] = np.column_stack([np.interp(along, arcs, path[:, k]) for k in (0, 1)])
    steps = np.gradient(positions[0, :, :2].astype(np.float64), axis=0)
    headings = np.arctan2(steps[:, 1], steps[:, 0]).astype(np.float32)[None]
    found = scene(Actor(10.0, 0.0, speed=8.0), id=way, road_map=road_map)
    return replace(found, positions=positions, headings=headings, velocities=(steps / 0.1).astype(np.float32)[None])


@pytest.mark.parametrize(("model", "actions"), EVERY_ACTION)
def test_in_recorded_worlds_the_drive_expert_takes_the_lanes_of_the_recording(
    tmp_path: Path, model: Model, actions: Actions
) -> None:
    pack = pack_of(tmp_path / "fork.pack", *map(at_a_fork, WAYS))
    env = start(pack, replace(RECORDED, model=model, actions=actions), len(WAYS))
    expert = DriveExpert(env)
    for _ in range(79):
        env.step(expert.act())
    places = env.agents[:, [X, Y], 0].astype(np.float64)
    for place, own, other in zip(places, WAYS.values(), reversed(WAYS.values()), strict=True):
        assert distance_to_path(place, own) < 0.5
        assert distance_to_path(place, other) > 5.0


@pytest.mark.parametrize("model", list(Model))
def test_an_agent_on_no_lane_keeps_its_speed_and_direction(tmp_path: Path, model: Model) -> None:
    walker, parked = (
        Actor(30.0, y=6.0, speed=1.3, heading=0.4, kind=AgentType.PEDESTRIAN),
        Actor(60.0, y=20.0, speed=0.0),
    )
    beside = Actor(10.0, y=12.0, speed=4.0, heading=1.0)
    env = start(
        pack_of(tmp_path / "one.pack", scene(Actor(5.0), walker, parked, beside)), replace(RECORDED, model=model), 1
    )
    expert = DriveExpert(env)
    agents = env.agents[0]
    before = agents[[X, Y, HEADING, SPEED]].copy()
    for _ in range(40):
        env.step(expert.act())
    for column, actor in enumerate((walker, parked, beside), 1):
        x, y, heading, speed = before[:, column]
        assert agents[[HEADING, SPEED], column].tolist() == pytest.approx([heading, speed], abs=1e-5)
        far = 4.0 * actor.speed
        wanted = [x + far * np.cos(heading), y + far * np.sin(heading)]
        assert agents[[X, Y], column].tolist() == pytest.approx(wanted, abs=1e-2)


def test_the_drive_expert_bears_scenarios_with_more_agents_than_before(tmp_path: Path) -> None:
    few = scene(Actor(5.0), id="few")
    many = scene(*(Actor(5.0 + 15.0 * k, speed=5.0 + k) for k in range(6)), id="many")
    env = start(pack_of(tmp_path / "two.pack", few, many), RECORDED, 1)
    expert = DriveExpert(env)
    for scenario in (0, 1, 0):
        env.assign(0, scenario, 7, now=True)
        alone = DriveExpert(env)
        for _ in range(20):
            own = expert.act().copy()
            np.testing.assert_array_equal(own, alone.act())
            env.step(own)


def test_experts_refuse_what_they_cant_drive(towns: Pack) -> None:
    with pytest.raises(UsageError, match="the mode of the env is 'open'; set mode = 'replay'"):
        LogExpert(DriveEnv(towns, 1, SimConfig(mode=Mode.OPEN)))
    with pytest.raises(UsageError, match="settling_s is 0, expected seconds above 0"):
        DriveExpert(DriveEnv(towns, 1, SimConfig(mode=Mode.OPEN)), settling_s=0)
    with pytest.raises(UsageError, match=r"call reset\(\)"):
        LogExpert(DriveEnv(towns, 1, SimConfig())).act()
