"""The learner: masks of losses, stored ratios and values, and minibatches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from roadworthy.policy.config import ConditioningConfig
from roadworthy.scenario.pack import Pack
from roadworthy.training.config import PpoConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.segment import Segment
from tests.policy.networks import CORES
from tests.training.small import config, network, sim, trainer

RATE = 3e-3


def weights(made: Trainer) -> bytes:
    return b"".join(p.detach().numpy().tobytes() for p in made.policy.parameters())


def garbage(segment: Segment) -> Segment:
    """The segment with nonsense wherever its row was inactive."""
    away = ~segment.active
    spoiled = {
        "observations": torch.where(away[..., None], float("nan"), segment.observations),
        "actions": torch.where(away[..., None], 3.0, segment.actions),
        "log_probs": torch.where(away, -1e4, segment.log_probs),
        **{
            name: torch.where(away, 1e4, getattr(segment, name))
            for name in ("values", "rewards", "final_values", "ratios")
        },
    }
    return segment._replace(**spoiled)


class Listener:
    """Wraps the loss of a learner and records its arguments and results."""

    def __init__(self, made: Trainer) -> None:
        self.given: list[tuple[Any, ...]] = []
        self.returned: list[tuple[Any, ...]] = []
        self._loss = made.learner.loss
        made.learner.loss = self

    def __call__(self, *arguments: Any) -> Any:
        self.given.append(arguments)
        self.returned.append(self._loss(*arguments))
        return self.returned[-1]


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("priority", [0.0, 0.7])
@pytest.mark.parametrize("core", CORES)
def test_inactive_steps_change_no_weight_no_loss_and_no_stored_value(
    core: str, priority: float, pack: Pack, tmp_path: Path
) -> None:
    settings = config(core, env=sim(3), prio_alpha=priority, update_epochs=2)
    results = []
    for spoil in (lambda segment: segment, garbage):
        made = trainer(settings, pack, tmp_path)
        made.collector.collect()
        batch = made.collector.collect()
        batch = batch._replace(segment=spoil(batch.segment))
        away = ~batch.segment.active
        assert away.any()
        before = batch.segment.values[away].clone(), batch.segment.ratios[away].clone()
        losses = made.learner.update(batch, 0, RATE)
        assert torch.equal(batch.segment.values[away], before[0])
        assert torch.equal(batch.segment.ratios[away], before[1])
        results.append((weights(made), {name: float(value) for name, value in losses.items()}))
    assert results[0] == results[1]


@pytest.mark.row("PPO-2")
def test_the_ratios_and_values_of_steps_that_count_are_stored(pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(num_minibatches=1, env=sim(2)), pack, tmp_path)
    batch = made.collector.collect()
    batch.segment.log_probs.sub_(0.1)
    values, loss_mask = batch.segment.values.clone(), batch.segment.loss_mask
    with torch.no_grad():
        made.policy.value.bias += 0.5
    made.learner.update(batch, 0, RATE)
    torch.testing.assert_close(batch.segment.ratios[loss_mask].log(), torch.full((int(loss_mask.sum()),), 0.1))
    torch.testing.assert_close(batch.segment.values[loss_mask], values[loss_mask] + 0.5)
    assert torch.equal(batch.segment.values[~loss_mask], values[~loss_mask])


@pytest.mark.row("PPO-2")
def test_advantages_are_normalized_over_the_steps_that_count(pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(env=sim(3, ego_share=0.5)), pack, tmp_path)
    heard = Listener(made)
    made.learner.update(made.collector.collect(), 0, RATE)
    assert len(heard.given) == 2
    for part, _, normal, _, total in heard.given:
        assert int(total) == int(part.loss_mask.sum()) < part.loss_mask.numel()
        counted = normal[part.loss_mask]
        assert counted.mean().abs() < 1e-4
        assert (counted.std(correction=0) - 1.0).abs() < 1e-3


def plain_loss(part: Segment, logits: Tensor, values: Tensor, normal: Tensor, returns: Tensor, c: PpoConfig) -> Any:
    """The loss and its parts, step by step."""
    sums: dict[str, float] = dict.fromkeys(
        ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac", "loss"), 0.0
    )
    count = 0
    for row, t in np.argwhere(part.loss_mask.numpy()):
        count += 1
        log_prob = entropy = 0.0
        for k, part_logits in enumerate(np.split(logits[row, t].double().numpy(), [7])):
            p = np.exp(part_logits - part_logits.max()) / np.exp(part_logits - part_logits.max()).sum()
            log_prob += np.log(p[int(part.actions[row, t, k])])
            entropy -= (p * np.log(p)).sum()
        ratio = np.exp(log_prob - float(part.log_probs[row, t]))
        gain, value, old = float(normal[row, t]), float(values[row, t]), float(part.values[row, t])
        policy = -min(ratio * gain, float(np.clip(ratio, 1 - c.clip_coef, 1 + c.clip_coef)) * gain)
        near = old + float(np.clip(value - old, -c.vf_clip_coef, c.vf_clip_coef))
        error = 0.5 * max((value - float(returns[row, t])) ** 2, (near - float(returns[row, t])) ** 2)
        told = {
            "policy_loss": policy,
            "value_loss": error,
            "entropy": entropy,
            "approx_kl": ratio - 1 - np.log(ratio),
            "clipfrac": float(abs(ratio - 1) > c.clip_coef),
            "loss": policy + c.vf_coef * error - (0.1 * float(part.conditioning[row, t, 0])) * entropy,
        }
        sums = {name: sums[name] + told[name] for name in sums}
    return {name: total / count for name, total in sums.items()}


@pytest.mark.row("PPO-1")
@pytest.mark.row("PPO-2")
def test_the_loss_equals_a_plain_loop_over_the_steps_that_count(pack: Pack, tmp_path: Path) -> None:
    """With ratios, values and entropy weights that differ from step to step."""
    policy = network(conditioning=ConditioningConfig(ent_coef=(0.0, 0.1)))
    settings = config(env=sim(3, ego_share=0.5), policy=policy, num_minibatches=1, vf_coef=0.7, vf_clip_coef=0.3)
    made = trainer(settings, pack, tmp_path)
    made.collector.collect()
    batch = made.collector.collect()
    generator = torch.Generator().manual_seed(0)
    batch.segment.log_probs.add_(0.3 * torch.randn(batch.segment.log_probs.shape, generator=generator))
    batch.segment.values.add_(torch.randn(batch.segment.values.shape, generator=generator))
    with torch.no_grad():
        segment = batch.segment
        output = made.policy.sequence(
            segment.observations, segment.active, segment.ended, batch.memory, segment.conditioning
        )
    heard = Listener(made)
    losses = made.learner.update(batch, 0, RATE)
    (part, _, normal, returns, _), (loss, *_) = heard.given[0], heard.returned[0]
    order = torch.randperm(len(segment.rewards), generator=torch.Generator().manual_seed(settings.seed * 1_000_003))
    expected = plain_loss(part, output.logits[order], output.values[order], normal, returns, settings.ppo)
    assert 0.0 < expected["clipfrac"] < 1.0
    told = {name: float(losses[name]) for name in expected.keys() - {"loss"}} | {"loss": float(loss.detach())}
    assert told == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.row("PPO-3")
def test_each_row_has_the_discount_that_it_is_conditioned_on(pack: Pack, tmp_path: Path) -> None:
    policy = network("mlp", conditioning=ConditioningConfig(gamma=(0.5, 0.9)))
    made = trainer(config(policy=policy), pack, tmp_path)
    batch = made.collector.collect()
    used: list[Any] = []
    estimate = made.learner.estimate
    made.learner.estimate = lambda *given: (used.append(given[6]), estimate(*given))[1]
    made.learner.update(batch, 0, RATE)
    torch.testing.assert_close(used[0], 0.5 + 0.4 * batch.segment.conditioning[..., 0])


@pytest.mark.row("PPO-2")
def test_rows_that_are_never_active_give_no_nan(pack: Pack, tmp_path: Path) -> None:
    for core in CORES:
        made = trainer(config(core), pack, tmp_path)
        batch = made.collector.collect()
        for mask in (batch.segment.active, batch.segment.loss_mask, batch.segment.not_done):
            mask.zero_()
        before = weights(made)
        losses = made.learner.update(batch, 0, RATE)
        assert all(torch.isfinite(value) for value in losses.values())
        assert weights(made) == before


def dealt_rows(made: Trainer, segment: Segment, advantages: Tensor) -> list[list[int]]:
    return [rows.tolist() for rows in made.learner._minibatches(segment, advantages, 0)]


@pytest.mark.row("PPO-1")
@pytest.mark.parametrize("minibatches", [1, 3, 16])
def test_an_epoch_takes_every_row_once_even_if_minibatches_differ_in_size(
    minibatches: int, pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(num_minibatches=minibatches), pack, tmp_path)
    segment = made.collector.collect().segment
    dealt = dealt_rows(made, segment, segment.rewards)
    assert len(dealt) == minibatches
    assert sorted(row for rows in dealt for row in rows) == list(range(16))
    again = made.learner._minibatches(segment, segment.rewards, 1)
    assert minibatches == 1 or sorted(again[0].tolist()) != sorted(dealt[0])


@pytest.mark.row("PPO-1")
def test_prioritized_rows_are_drawn_by_the_sizes_of_their_advantages(pack: Pack, tmp_path: Path) -> None:
    power = 0.5
    made = trainer(config(num_minibatches=1, prio_alpha=power), pack, tmp_path)
    segment = made.collector.collect().segment
    segment.loss_mask.fill_(True)
    segment.loss_mask[2] = False  # what does not count draws nobody's attention
    advantages = torch.zeros_like(segment.rewards)
    advantages[:3] = torch.tensor([1.0, -9.0, 100.0])[:, None] / segment.rewards.shape[1]
    rows = torch.cat([made.learner._minibatches(segment, advantages, number)[0] for number in range(400)])
    share = torch.bincount(rows, minlength=16) / len(rows)
    expected = torch.tensor([1.0, 3.0]) / 4.0
    deviation = (expected * (1 - expected) / len(rows)) ** 0.5
    assert ((share[:2] - expected).abs() < 4 * deviation).all()
    assert share[2:].max() < 1e-3


@pytest.mark.row("PPO-1")
def test_a_row_that_is_drawn_twice_in_an_epoch_has_the_same_returns_twice(pack: Pack, tmp_path: Path) -> None:
    """Its values are rewritten between the two; returns made of old advantages and new values are of neither."""
    made = trainer(config(num_minibatches=4, prio_alpha=20.0), pack, tmp_path)
    batch = made.collector.collect()
    batch.segment.rewards[5] += 3.0
    heard = Listener(made)
    made.learner.update(batch, 0, RATE)
    returns = [given[3][0] for given in heard.given]
    assert all(torch.equal(one, returns[0]) for one in returns)
    values = [given[0].values[0] for given in heard.given]
    assert not torch.equal(values[0], values[1])


@pytest.mark.row("PPO-1")
@pytest.mark.parametrize("core", CORES)
def test_rewarded_actions_become_likely(core: str, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(core, learning_rate=1e-2), pack, tmp_path, is_strong=False)
    shares = []
    for number in range(20):
        batch = made.collector.collect()
        is_wished = batch.segment.actions[..., 0] == 2
        batch.segment.rewards.copy_(is_wished)
        batch.segment.not_done.zero_()
        shares.append(float(is_wished[batch.segment.active].float().mean()))
        made.learner.update(batch, number, 1e-2)
    chance = 1.0 / 7.0
    assert shares[0] < 2 * chance
    assert np.mean(shares[-3:]) > 5 * chance
