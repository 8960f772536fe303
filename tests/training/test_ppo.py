"""The learner: what counts in a loss, what is stored, and which rows are dealt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from roadworthy.policy.config import CoreKind, TraitConfig
from roadworthy.scenario.pack import Pack
from roadworthy.training.config import PpoConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.segment import Segment
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
    """Stands between a learner and its loss, and keeps what it was given and what came back."""

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
@pytest.mark.parametrize("core", CoreKind)
def test_inactive_steps_change_no_weight_no_figure_and_nothing_that_is_stored(
    core: CoreKind, priority: float, pack: Pack, tmp_path: Path
) -> None:
    settings = config(core, env=sim(3), priority=priority, passes=2)
    results = []
    for spoil in (lambda segment: segment, garbage):
        made = trainer(settings, pack, tmp_path)
        made.collector.collect()
        cut = made.collector.collect()
        cut = cut._replace(segment=spoil(cut.segment))
        away = ~cut.segment.active
        assert away.any()
        before = cut.segment.values[away].clone(), cut.segment.ratios[away].clone()
        losses = made.learner.update(cut, 0, RATE)
        assert torch.equal(cut.segment.values[away], before[0])
        assert torch.equal(cut.segment.ratios[away], before[1])
        results.append((weights(made), {name: float(value) for name, value in losses.items()}))
    assert results[0] == results[1]


@pytest.mark.row("PPO-2")
def test_the_ratios_and_values_of_steps_that_count_are_stored(pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(minibatches=1, env=sim(2)), pack, tmp_path)
    cut = made.collector.collect()
    cut.segment.log_probs.sub_(0.1)
    values, learns = cut.segment.values.clone(), cut.segment.learns
    with torch.no_grad():
        made.policy.value.bias += 0.5
    made.learner.update(cut, 0, RATE)
    torch.testing.assert_close(cut.segment.ratios[learns].log(), torch.full((int(learns.sum()),), 0.1))
    torch.testing.assert_close(cut.segment.values[learns], values[learns] + 0.5)
    assert torch.equal(cut.segment.values[~learns], values[~learns])


@pytest.mark.row("PPO-2")
def test_advantages_are_normalised_over_the_steps_that_count(pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(env=sim(3, ego_share=0.5)), pack, tmp_path)
    heard = Listener(made)
    made.learner.update(made.collector.collect(), 0, RATE)
    assert len(heard.given) == 2
    for part, _, normal, _, total in heard.given:
        assert int(total) == int(part.learns.sum()) < part.learns.numel()
        counted = normal[part.learns]
        assert counted.mean().abs() < 1e-4
        assert (counted.std(correction=0) - 1.0).abs() < 1e-3


def plain_loss(part: Segment, scores: Tensor, values: Tensor, normal: Tensor, returns: Tensor, c: PpoConfig) -> Any:
    """The loss and its parts, step by step."""
    sums: dict[str, float] = dict.fromkeys(("policy", "value", "entropy", "divergence", "clipped", "loss"), 0.0)
    count = 0
    for row, t in np.argwhere(part.learns.numpy()):
        count += 1
        log_prob = entropy = 0.0
        for k, logits in enumerate(np.split(scores[row, t].double().numpy(), [7])):
            p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
            log_prob += np.log(p[int(part.actions[row, t, k])])
            entropy -= (p * np.log(p)).sum()
        ratio = np.exp(log_prob - float(part.log_probs[row, t]))
        gain, value, old = float(normal[row, t]), float(values[row, t]), float(part.values[row, t])
        policy = -min(ratio * gain, float(np.clip(ratio, 1 - c.clip, 1 + c.clip)) * gain)
        near = old + float(np.clip(value - old, -c.value_clip, c.value_clip))
        error = 0.5 * max((value - float(returns[row, t])) ** 2, (near - float(returns[row, t])) ** 2)
        told = {
            "policy": policy,
            "value": error,
            "entropy": entropy,
            "divergence": ratio - 1 - np.log(ratio),
            "clipped": float(abs(ratio - 1) > c.clip),
            "loss": policy + c.value_weight * error - (0.1 * float(part.traits[row, t, 0])) * entropy,
        }
        sums = {name: sums[name] + told[name] for name in sums}
    return {name: total / count for name, total in sums.items()}


@pytest.mark.row("PPO-1")
@pytest.mark.row("PPO-2")
def test_the_loss_is_that_of_a_plain_loop_over_the_steps_that_count(pack: Pack, tmp_path: Path) -> None:
    """With ratios, values and entropy weights that differ from step to step."""
    policy = network(traits=TraitConfig(entropy=(0.0, 0.1)))
    settings = config(env=sim(3, ego_share=0.5), policy=policy, minibatches=1, value_weight=0.7, value_clip=0.3)
    made = trainer(settings, pack, tmp_path)
    made.collector.collect()
    cut = made.collector.collect()
    generator = torch.Generator().manual_seed(0)
    cut.segment.log_probs.add_(0.3 * torch.randn(cut.segment.log_probs.shape, generator=generator))
    cut.segment.values.add_(torch.randn(cut.segment.values.shape, generator=generator))
    with torch.no_grad():
        segment = cut.segment
        output = made.policy.sequence(segment.observations, segment.active, segment.ended, cut.memory, segment.traits)
    heard = Listener(made)
    losses = made.learner.update(cut, 0, RATE)
    (part, _, normal, returns, _), (loss, *_) = heard.given[0], heard.returned[0]
    order = torch.randperm(len(segment.rewards), generator=torch.Generator().manual_seed(settings.seed * 1_000_003))
    expected = plain_loss(part, output.scores[order], output.values[order], normal, returns, settings.ppo)
    assert 0.0 < expected["clipped"] < 1.0
    told = {name: float(losses[name]) for name in expected.keys() - {"loss"}} | {"loss": float(loss.detach())}
    assert told == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.row("PPO-3")
def test_a_discount_that_is_a_trait_is_the_row_s_own(pack: Pack, tmp_path: Path) -> None:
    policy = network(CoreKind.MLP, traits=TraitConfig(discount=(0.5, 0.9)))
    made = trainer(config(policy=policy), pack, tmp_path)
    cut = made.collector.collect()
    used: list[Any] = []
    estimate = made.learner.estimate
    made.learner.estimate = lambda *given: (used.append(given[6]), estimate(*given))[1]
    made.learner.update(cut, 0, RATE)
    torch.testing.assert_close(used[0], 0.5 + 0.4 * cut.segment.traits[..., 0])


@pytest.mark.row("PPO-2")
def test_a_row_that_is_inactive_throughout_gives_no_nan(pack: Pack, tmp_path: Path) -> None:
    for core in CoreKind:
        made = trainer(config(core), pack, tmp_path)
        cut = made.collector.collect()
        for mask in (cut.segment.active, cut.segment.learns, cut.segment.goes_on):
            mask.zero_()
        before = weights(made)
        losses = made.learner.update(cut, 0, RATE)
        assert all(torch.isfinite(value) for value in losses.values())
        assert weights(made) == before


def dealt_rows(made: Trainer, segment: Segment, gained: Tensor) -> list[list[int]]:
    return [rows.tolist() for rows in made.learner._deal(segment, gained, 0)]


@pytest.mark.row("PPO-1")
@pytest.mark.parametrize("minibatches", [1, 3, 16])
def test_a_pass_takes_every_row_once_even_if_they_can_t_be_dealt_evenly(
    minibatches: int, pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(minibatches=minibatches), pack, tmp_path)
    segment = made.collector.collect().segment
    dealt = dealt_rows(made, segment, segment.rewards)
    assert len(dealt) == minibatches
    assert sorted(row for rows in dealt for row in rows) == list(range(16))
    again = made.learner._deal(segment, segment.rewards, 1)
    assert minibatches == 1 or sorted(again[0].tolist()) != sorted(dealt[0])


@pytest.mark.row("PPO-1")
def test_with_priority_rows_are_drawn_by_the_sizes_of_their_advantages(pack: Pack, tmp_path: Path) -> None:
    power = 0.5
    made = trainer(config(minibatches=1, priority=power), pack, tmp_path)
    segment = made.collector.collect().segment
    segment.learns.fill_(True)
    segment.learns[2] = False  # what does not count draws nobody's attention
    gained = torch.zeros_like(segment.rewards)
    gained[:3] = torch.tensor([1.0, -9.0, 100.0])[:, None] / segment.rewards.shape[1]
    rows = torch.cat([made.learner._deal(segment, gained, number)[0] for number in range(400)])
    share = torch.bincount(rows, minlength=16) / len(rows)
    expected = torch.tensor([1.0, 3.0]) / 4.0
    deviation = (expected * (1 - expected) / len(rows)) ** 0.5
    assert ((share[:2] - expected).abs() < 4 * deviation).all()
    assert share[2:].max() < 1e-3


@pytest.mark.row("PPO-1")
def test_a_row_that_is_drawn_twice_in_a_pass_learns_the_same_returns_twice(pack: Pack, tmp_path: Path) -> None:
    """Its values are written anew between the two; returns made of old advantages and new values are of neither."""
    made = trainer(config(minibatches=4, priority=20.0), pack, tmp_path)
    cut = made.collector.collect()
    cut.segment.rewards[5] += 3.0
    heard = Listener(made)
    made.learner.update(cut, 0, RATE)
    returns = [given[3][0] for given in heard.given]
    assert all(torch.equal(one, returns[0]) for one in returns)
    values = [given[0].values[0] for given in heard.given]
    assert not torch.equal(values[0], values[1])


@pytest.mark.row("PPO-1")
@pytest.mark.parametrize("core", CoreKind)
def test_what_is_rewarded_becomes_likely(core: CoreKind, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(core, learning_rate=1e-2), pack, tmp_path, is_strong=False)
    shares = []
    for number in range(20):
        cut = made.collector.collect()
        is_wished = cut.segment.actions[..., 0] == 2
        cut.segment.rewards.copy_(is_wished)
        cut.segment.goes_on.zero_()
        shares.append(float(is_wished[cut.segment.active].float().mean()))
        made.learner.update(cut, number, 1e-2)
    chance = 1.0 / 7.0
    assert shares[0] < 2 * chance
    assert np.mean(shares[-3:]) > 5 * chance
