"""Inspection: recording changes nothing, and records equal the attention of the policy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical, Normal, kl_divergence

from roadworthy.config import Layer, resolve
from roadworthy.errors import UsageError
from roadworthy.policy.config import ActionDistribution
from roadworthy.policy.cores.transformer import Recall, recall_weights
from roadworthy.policy.heads import make_head
from roadworthy.policy.inspect import Inspection, RecordingPolicy, WorldKind, world_layer, write_inspection
from roadworthy.policy.inspect.pictures import pictures, share_on_inactive, shares_by_past
from roadworthy.policy.inspect.recording import divergence
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import ControlConfig, EpisodeConfig, Mode, SimConfig
from roadworthy.sim.env import DriveEnv
from tests.policy.networks import CORES, OBSERVE, random_observations, small_policy
from tests.sim import scenes
from tests.sim.scenes import pack_of, scene

TRIAL_STEPS, CONTEXT, SOON = 14, 20, 8
CONFIG = SimConfig(
    observe=OBSERVE, control=ControlConfig(rows=3), episode=EpisodeConfig(trials=2, trial_steps=TRIAL_STEPS)
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """A road with three cars."""
    cars = [scenes.Actor(20.0, speed=3.0), scenes.Actor(60.0), scenes.Actor(90.0, y=scenes.HALF_LANE, speed=8.0)]
    return pack_of(tmp_path_factory.mktemp("road") / "road.pack", scene(*cars))


def drive(pack: Pack, policy: NeuralPolicy) -> NDArray[np.float32]:
    """(steps, rows, 2) actions of an episode of two trials, in which row 0 is away from step SOON of each trial on."""
    env = DriveEnv(pack, 1, CONFIG, sampling=False, threads=1)
    env.assign(0, 0, 5)
    env.reset()
    policy.start(PolicyInfo.of_drive_env(env))
    actions = []
    for step in range(2 * TRIAL_STEPS):
        active = env.signals.active.copy()
        active[0] &= step % TRIAL_STEPS < SOON
        actions.append(
            np.array(policy.act(replace(drive_batch(env, np.full(3, 5, np.uint64), np.full(3, step)), active=active)))
        )
        env.step(actions[-1])
        policy.reset(env.signals.episode_ended)
    return np.stack(actions)


@pytest.fixture(scope="module")
def looked_at(pack: Pack) -> dict[int, Inspection]:
    """Two agents of a transformer's drive."""
    onlooker = RecordingPolicy(small_policy(context=CONTEXT), agents=[0, 2])
    drive(pack, onlooker)
    return onlooker.inspections


@pytest.mark.row("POLICY-6")
@pytest.mark.parametrize("core", CORES)
def test_recording_changes_nothing(pack: Pack, core: str) -> None:
    policy = small_policy(core, context=CONTEXT)
    onlooker = RecordingPolicy(policy, agents=[2, 0])
    watched = drive(pack, onlooker)
    assert np.array_equal(watched, drive(pack, NeuralPolicy(policy)))
    for agent, inspection in onlooker.inspections.items():
        assert np.array_equal(inspection.action, watched[:, agent])
        assert not any(module._forward_hooks for module in policy.modules())


@pytest.mark.row("POLICY-6")
def test_attention_weights_are_those_that_the_policy_used() -> None:
    policy = small_policy()
    differences = []

    def compare(_: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        query, keys, values, mask, key, value = given
        gathered = recall_weights(query, keys, mask, key) @ torch.cat([values, value], 2)
        differences.append(float((gathered - result).abs().max()))

    for module in policy.modules():
        if isinstance(module, Recall):
            module.register_forward_hook(compare)
    memory = policy.memory(4)
    with torch.no_grad():
        for t in range(7):
            active = torch.tensor([True, t % 3 > 0, t > 4, False])
            policy.step(random_observations(policy, 4, seed=t), active, memory)
    assert len(differences) == 2 * 7
    assert all(difference < 1e-6 for difference in differences)


@pytest.mark.row("POLICY-6")
@pytest.mark.parametrize("agent", [0, 2])
def test_attention_is_zero_outside_the_mask(looked_at: dict[int, Inspection], agent: int) -> None:
    inspection = looked_at[agent]
    steps = np.arange(2 * TRIAL_STEPS)
    age = steps[:, None] - steps
    is_near = (age >= 0) & (age < CONTEXT)
    expected = is_near & (inspection.active[None] | (age == 0))
    assert np.array_equal(inspection.mask, expected)
    assert np.array_equal(inspection.free_mask, is_near)
    assert np.array_equal(inspection.cache_length, steps)
    for mask, attention in (
        (inspection.mask, inspection.attention),
        (inspection.free_mask, inspection.free_attention),
    ):
        assert attention.shape == (2 * TRIAL_STEPS, 2, 2, 2 * TRIAL_STEPS)
        assert (attention[np.broadcast_to(~mask[:, None, None], attention.shape)] == 0.0).all()
        assert attention.sum(-1) == pytest.approx(np.ones(attention.shape[:3]), abs=1e-5)
    assert inspection.active.sum() == (2 * SOON if agent == 0 else 2 * TRIAL_STEPS)


@pytest.mark.row("POLICY-6")
def test_the_mask_has_an_effect_where_an_inactive_step_is_remembered_and_only_there(
    looked_at: dict[int, Inspection],
) -> None:
    always, sometimes = looked_at[2], looked_at[0]
    assert (always.free_value_change == 0.0).all()
    assert (always.free_divergence == 0.0).all()
    assert (share_on_inactive(always) == 0.0).all()
    second = np.arange(TRIAL_STEPS, TRIAL_STEPS + SOON)
    assert (sometimes.free_value_change[:SOON] == 0.0).all()
    assert (sometimes.free_value_change[second] != 0.0).all()
    assert (sometimes.free_divergence[second] > 0.0).all()
    share = share_on_inactive(sometimes)[second]
    assert ((share > 0.0) & (share < 1.0)).all()


@pytest.mark.row("POLICY-6")
def test_files_have_every_step(looked_at: dict[int, Inspection], tmp_path: Path) -> None:
    inspection = looked_at[0]
    lines, arrays = write_inspection(inspection, tmp_path / "deep" / "agent_0")
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    with np.load(arrays) as stored:
        for name in stored:
            assert np.array_equal(stored[name], getattr(inspection, name)), name
    assert len(told) == 2 * TRIAL_STEPS
    assert {"observation", "action", "value", "cache_length", "sees", "attention"} <= told[0].keys()
    for t, line in enumerate(told):
        assert (line["step"], line["trial"], line["active"]) == (t, t // TRIAL_STEPS, bool(inspection.active[t]))
        assert line["sees"] == np.flatnonzero(inspection.mask[t]).tolist()
        assert np.array(line["attention"]) == pytest.approx(inspection.attention[t][..., line["sees"]], rel=1e-5)
        assert line["observation"] == pytest.approx(inspection.observation[t].tolist(), rel=1e-5)
    assert {path.name for path in lines.parent.iterdir()} == {"agent_0.jsonl", "agent_0.npz"}


@pytest.mark.row("POLICY-6")
@pytest.mark.parametrize(
    ("choices", "kind"), [((3, 5), ActionDistribution.MULTI_DISCRETE), ((3, 5), ActionDistribution.JOINT), (None, None)]
)
def test_divergences_are_those_of_torch(choices: tuple[int, int] | None, kind: ActionDistribution) -> None:
    head = make_head(8, choices, kind)
    generator = torch.Generator().manual_seed(1)
    logits, others = (head(10.0 * torch.randn(6, 8, generator=generator)).detach() * 20.0 for _ in range(2))
    if choices is None:
        others[:, 2:] = logits[:, 2:]
        expected = kl_divergence(*(Normal(x[:, :2], x[:, 2:].exp()) for x in (logits, others))).sum(-1)
    else:
        sizes = choices if kind is ActionDistribution.MULTI_DISCRETE else (15,)
        parts = zip(logits.split(sizes, -1), others.split(sizes, -1), strict=True)
        expected = sum(kl_divergence(Categorical(logits=one), Categorical(logits=other)) for one, other in parts)
    torch.testing.assert_close(divergence(head, logits, others), expected, rtol=1e-4, atol=1e-6)
    assert (expected > 0.01).all()


@pytest.mark.row("POLICY-6")
def test_bars_add_up_to_all_attention(looked_at: dict[int, Inspection]) -> None:
    shares = shares_by_past(looked_at[0])
    assert list(shares) == ["this step", "the 10 steps before it", "earlier in this trial", "earlier trials"]
    assert sum(shares.values()) == pytest.approx(np.ones((2, 2)), abs=1e-5)
    assert all((share > 0.0).all() for name, share in shares.items() if name != "earlier in this trial")


@pytest.mark.row("POLICY-6")
def test_cores_without_attention_get_no_attention_pictures(pack: Pack, looked_at: dict[int, Inspection]) -> None:
    drawn = pictures(looked_at[0])
    assert set(drawn) == {"course", "attention", "heads", "mask"}
    assert all(data.startswith(b"\x89PNG") for data in drawn.values())
    onlooker = RecordingPolicy(small_policy("lstm"), steps=4)
    drive(pack, onlooker)
    assert list(onlooker.inspections) == [0]
    assert len(onlooker.inspections[0].value) == 4
    assert set(pictures(onlooker.inspections[0])) == {"course"}


@pytest.mark.row("POLICY-6")
def test_an_agent_that_is_not_an_ego_is_an_error_that_names_it(pack: Pack) -> None:
    with pytest.raises(UsageError, match="agent 3 is not an ego; the egos of this world are 0, 1, 2"):
        drive(pack, RecordingPolicy(small_policy(), agents=[0, 3]))
    with pytest.raises(UsageError, match="inspection needs one world, but the env has 2"):
        RecordingPolicy(small_policy()).start(PolicyInfo.of_drive_env(DriveEnv(pack, 2, CONFIG, sampling=False)))


@pytest.mark.row("POLICY-6")
def test_kinds_of_worlds_only_change_the_road_users() -> None:
    trained = Layer("training", {"mode": "open", "open": {"agents": 8, "traffic": 5}, "disturb": {"dropout": 0.1}})
    ego, replay, coplayers = (resolve(SimConfig, [trained, world_layer(kind, 2)]).config for kind in WorldKind)
    assert (ego.mode, ego.control.ego_share, ego.open.traffic, ego.open.agents) == (Mode.OPEN, 1.0, 0, 8)
    assert (replay.mode, replay.control.who.value, replay.control.others.value) == (Mode.REPLAY, "sdc", "replay")
    assert (coplayers.control.ego_share, coplayers.hidden.partners, coplayers.open.traffic) == (0.5, 2, 5)
    assert all(config.disturb.clean for config in (ego, replay, coplayers))
