"""Networks as policies: a row's actions depend on its episode alone, and memory lasts as long as the episode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy.config import ConditioningConfig, PolicyConfig, TransformerConfig
from roadworthy.policy.network import PolicyNetwork
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import ControlConfig, EpisodeConfig, Model, ObserveConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import layout
from tests.policy.networks import CORES, OBSERVE, small_policy, strengthened
from tests.sim import scenes
from tests.sim.scenes import pack_of, scene

TRIAL_STEPS = 8
CONFIG = SimConfig(
    observe=OBSERVE, control=ControlConfig(rows=3), episode=EpisodeConfig(trials=2, trial_steps=TRIAL_STEPS)
)
EVERY_CORE = pytest.mark.parametrize("core", CORES)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Two roads: on the first, one car of three is at its goal early and so inactive until the trial ends."""
    soon = scenes.Actor(20.0, speed=3.0, last=14)
    lane = [scenes.Actor(60.0), scenes.Actor(90.0, y=scenes.HALF_LANE, speed=8.0)]
    first = scene(soon, *lane, id="first")
    second = scene(*lane, id="second")
    return pack_of(tmp_path_factory.mktemp("roads") / "roads.pack", first, second)


def drive(
    pack: Pack, driver: NeuralPolicy, world: int, worlds: int, config: SimConfig = CONFIG, steps: int = 2 * TRIAL_STEPS
) -> NDArray[np.float32]:
    """(steps, rows, 2) actions of the first scenario with seed 7 in one world, while others run something else."""
    env = DriveEnv(pack, worlds, config, sampling=False, threads=1)
    for other in range(worlds):
        env.assign(other, 0 if other == world else 1, 7 if other == world else 1000 + other)
    env.reset()
    driver.start(PolicyInfo.of_drive_env(env))
    seeds = np.array([7 if w == world else 1000 + w for w in env.world_of_row], np.uint64)
    actions = []
    for step in range(steps):
        chosen = np.array(driver.act(drive_batch(env, seeds, np.full(env.row_count, step))))
        actions.append(np.where(env.signals.active[:, None], chosen, -1)[env.world_of_row == world])
        env.step(chosen)
        driver.reset(env.signals.episode_ended)
    return np.stack(actions)


@pytest.mark.row("EVAL-6")
@pytest.mark.parametrize("width", [8, 64])
@EVERY_CORE
def test_what_a_row_does_depends_on_its_episode_alone(pack: Pack, core: str, width: int) -> None:
    """With a width of 8, matrix products round by a row's place: the reason for blocks of a world each."""
    shape = TransformerConfig(heads=2, context=8)
    config = PolicyConfig(core=core, encoder=width, hidden=2 * width, transformer=shape)
    policy = strengthened(PolicyNetwork(config, layout(CONFIG), (7, 13)))
    said: list[torch.Tensor] = []

    class Listening(NeuralPolicy):
        """Keeps all that the network says about the world in question."""

        listens_to = 0

        def _step(self, block: int, *given: Any) -> Any:
            output = super()._step(block, *given)
            if block == self.listens_to:
                said.append(torch.cat([output.logits, output.values[:, None]], -1))
            return output

    alone = drive(pack, Listening(policy), 0, 1)
    expected, said = torch.stack(said), []
    assert len(expected) == 2 * TRIAL_STEPS
    assert len(np.unique(alone)) > 5
    for world, worlds in ((0, 3), (6, 7)):
        driver = Listening(policy)
        driver.listens_to = world
        said.clear()
        assert np.array_equal(drive(pack, driver, world, worlds), alone)
        assert torch.equal(torch.stack(said), expected)


@pytest.mark.row("EVAL-8")
@pytest.mark.parametrize("core", ["lstm", "transformer"])
def test_memory_is_kept_between_trials_and_cleared_with_the_episode(pack: Pack, core: str) -> None:
    lengths: list[list[int]] = []

    class Watched(NeuralPolicy):
        """Tells how long the memory of its rows is before each step."""

        def _step(self, block: int, *given: Any) -> Any:
            lengths.append(self._memories[block].length.tolist())
            return super()._step(block, *given)

    env = DriveEnv(pack, 1, CONFIG, sampling=False, threads=1)
    driver = Watched(small_policy(core, context=4))
    env.assign(0, 1, 5)
    env.reset()
    driver.start(PolicyInfo.of_drive_env(env))
    active = []
    for step in range(2 * TRIAL_STEPS + 3):
        if step == 2 * TRIAL_STEPS:
            env.assign(0, 1, 6)
        active.append(env.signals.active.copy())
        env.step(driver.act(drive_batch(env, np.full(3, 5, np.uint64), np.full(3, step))))
        driver.reset(env.signals.episode_ended)
    assert env.signals.active[:2].all()
    assert np.all(active[TRIAL_STEPS][:2])
    before = [length[0] for length in lengths]
    assert before == [*range(2 * TRIAL_STEPS), 0, 1, 2]
    assert all(length[2] == 0 for length in lengths), "a row without an agent has nothing to remember"


@pytest.mark.row("EVAL-8")
def test_a_world_that_rests_costs_nothing_and_one_in_limbo_counts_on(pack: Pack) -> None:
    steps: list[int] = []

    class Counting(NeuralPolicy):
        """Counts the steps of its network."""

        def _step(self, block: int, *given: Any) -> Any:
            steps.append(block)
            return super()._step(block, *given)

    env = DriveEnv(pack, 2, CONFIG, sampling=False, threads=1)
    driver = Counting(small_policy(context=4))
    env.assign(1, 0, 5)
    env.reset()
    driver.start(PolicyInfo.of_drive_env(env))
    nobody = np.zeros(6, np.bool_)
    for step in range(4):
        active = env.signals.active if step < 2 else nobody
        driver.act(replace(drive_batch(env, np.full(6, 5, np.uint64), np.full(6, step)), active=active))
    assert steps == [1, 1, 1, 1]
    assert driver._memories[1].length.tolist() == [4, 4, 4]


def test_draws_are_keyed_by_seed_agent_and_step(pack: Pack) -> None:
    env = DriveEnv(pack, 2, CONFIG, sampling=False, threads=1)
    for world in range(2):
        env.assign(world, 0, 5)
    env.reset()

    def act(seeds: tuple[int, int], step: int) -> NDArray[Any]:
        driver = NeuralPolicy(small_policy("mlp", choices=(7, 13)))
        driver.start(PolicyInfo.of_drive_env(env))
        rows = np.repeat(np.array(seeds, np.uint64), 3)
        return driver.act(drive_batch(env, rows, np.full(6, step))).reshape(2, 3, 2)

    assert np.array_equal(*act((2**64 - 1, 2**64 - 1), 4))
    assert not np.array_equal(*act((8, 9), 4))
    assert not np.array_equal(act((8, 8), 4), act((8, 8), 5))


def test_a_greedy_policy_takes_the_likeliest_action(pack: Pack) -> None:
    policy = small_policy("mlp")
    one, other = (drive(pack, NeuralPolicy(policy, is_greedy=True), 0, 1, steps=1) for _ in range(2))
    env = DriveEnv(pack, 1, CONFIG, sampling=False, threads=1)
    env.assign(0, 0, 7)
    seen = torch.from_numpy(env.reset().copy())
    with torch.no_grad():
        logits = policy.step(seen, torch.ones(3, dtype=torch.bool), policy.memory(3)).logits
    assert np.array_equal(one, other)
    assert np.array_equal(one[0], policy.head.greedy(logits).numpy())


@pytest.mark.row("PPO-3")
def test_a_policy_drives_in_an_env_that_shows_more_than_its_own(pack: Pack) -> None:
    more = SimConfig(observe=ObserveConfig(partners=9, lanes=30, edges=20, lights=4), control=CONFIG.control)
    policy = small_policy("mlp")
    own = SimConfig(observe=OBSERVE, control=CONFIG.control)
    expected, fitted = (drive(pack, NeuralPolicy(policy), 0, 1, config, steps=8) for config in (own, more))
    assert np.array_equal(expected, fitted)


@pytest.mark.row("PPO-3")
def test_conditioning_are_drawn_for_each_episode_or_taken_as_given(pack: Pack) -> None:
    policy = small_policy("mlp", conditioning=ConditioningConfig(ent_coef=(0.0, 0.2), gamma=(0.9, 1.0)))
    told: list[torch.Tensor] = []

    class Told(NeuralPolicy):
        """Keeps the conditioning that the network is told."""

        def _step(self, block: int, seen: Any, active: Any, conditioning: Any) -> Any:
            told.append(conditioning)
            return super()._step(block, seen, active, conditioning)

    drive(pack, Told(policy, conditioning={"ent_coef": 0.05}), 0, 1, steps=3)
    assert torch.equal(told[0], told[1])
    assert torch.equal(told[1], told[2])
    assert told[0][:, 0].tolist() == pytest.approx([0.25] * 3)
    assert len(set(told[0][:, 1].tolist())) == 3, "each agent draws its own"
    for given, wrong in (
        ({"entropi": 0.1}, "'entropi' is unknown to this policy; known: ent_coef, gamma"),
        ({"ent_coef": 0.3}, "ent_coef is 0.3, expected 0.0 to 0.2"),
    ):
        with pytest.raises(UsageError, match=wrong):
            NeuralPolicy(policy, conditioning=given)


def test_an_env_with_other_actions_is_refused(pack: Pack) -> None:
    env = DriveEnv(pack, 1, SimConfig(model=Model.JERK), sampling=False)
    with pytest.raises(UsageError, match=r"has the action choices \(7, 13\), but the env has \(4, 3\)"):
        NeuralPolicy(small_policy()).start(PolicyInfo.of_drive_env(env))
