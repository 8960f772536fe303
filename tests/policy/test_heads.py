"""Heads: samples follow their distribution, and log probabilities and entropies equal those of torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Normal

from roadworthy.policy import draws
from roadworthy.policy.config import ActionDistribution
from roadworthy.policy.heads import ContinuousHead, JointHead, MultiDiscreteHead, make_head

CHOICES = (3, 5)
DISCRETE = pytest.mark.parametrize("kind", ActionDistribution)
LARGEST = 1.0 - 2.0**-24  # the largest noise that can be drawn


def scores_of(head: Any, rows: int) -> Tensor:
    """Scores of rows in which some choices are far likelier than others."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        return head(torch.randn(rows, 8, generator=torch.Generator().manual_seed(2)))


def distributions(head: MultiDiscreteHead | JointHead, logits: Tensor) -> list[Categorical]:
    """One for each part of an action."""
    parts = logits.split(head.choices, -1) if isinstance(head, MultiDiscreteHead) else [logits]
    return [Categorical(logits=part) for part in parts]


def evenly(count: int) -> Tensor:
    """(count, 2) noise that fills 0 to 1 without gaps, the second part in another order than the first."""
    even = (torch.arange(count) + 0.5) / count
    return torch.stack([even, even[torch.randperm(count, generator=torch.Generator().manual_seed(3))]], -1)


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_choices_are_drawn_as_often_as_they_are_likely(kind: ActionDistribution) -> None:
    head, count = make_head(8, CHOICES, kind), 10_000
    for logits in scores_of(head, 4):
        drawn = head.sample(logits.expand(count, -1), evenly(count))
        for part, distribution in enumerate(distributions(head, logits)):
            frequencies = torch.bincount(drawn[:, part], minlength=len(distribution.probs)) / count
            # Evenly spread noise misses by at most one draw at each end of a choice's share.
            torch.testing.assert_close(frequencies, distribution.probs, rtol=0.0, atol=2.0 / count)


@pytest.mark.row("POLICY-1")
def test_choices_are_drawn_independently() -> None:
    head, count = MultiDiscreteHead(8, CHOICES), 40_000
    logits = scores_of(head, 1)[0]
    drawn = head.sample(logits.expand(count, -1), draws.uniform(draws.keys_of(7, torch.arange(count)), 0, draws.ACTION))
    along, across = (distribution.probs for distribution in distributions(head, logits))
    pairs = torch.bincount(drawn[:, 0] * CHOICES[1] + drawn[:, 1], minlength=15).double() / count
    expected = torch.outer(along, across).flatten().double()
    deviation = (expected * (1.0 - expected) / count).sqrt()
    assert ((pairs - expected).abs() < 4.5 * deviation).all()


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_impossible_choices_are_never_drawn(kind: ActionDistribution) -> None:
    head = make_head(8, CHOICES, kind)
    size = 8 if kind is ActionDistribution.MULTI_DISCRETE else 15
    logits = torch.full((size,), -1e4)
    logits[torch.tensor([1, 3 + 2]) if kind is ActionDistribution.MULTI_DISCRETE else torch.tensor([7])] = 0.0
    for edge in (0.0, 0.5, LARGEST):
        drawn = head.sample(logits, torch.full((2,), edge))
        assert drawn.tolist() == ([1, 2] if kind is ActionDistribution.MULTI_DISCRETE else [7])


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_probabilities_and_entropy_of_choices_are_those_of_torch(kind: ActionDistribution) -> None:
    head = make_head(8, CHOICES, kind)
    logits = scores_of(head, 50)
    actions = head.sample(logits, evenly(50))
    expected = distributions(head, logits)
    torch.testing.assert_close(
        head.log_prob(logits, actions), sum(d.log_prob(actions[:, k]) for k, d in enumerate(expected))
    )
    torch.testing.assert_close(head.entropy(logits), sum(d.entropy() for d in expected))
    # Stored actions come back as floats.
    assert torch.equal(head.log_prob(logits, actions.float()), head.log_prob(logits, actions))


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_the_greedy_choice_is_the_likeliest(kind: ActionDistribution) -> None:
    head = make_head(8, CHOICES, kind)
    logits = scores_of(head, 50)
    likeliest = torch.stack([distribution.probs.argmax(-1) for distribution in distributions(head, logits)], -1)
    assert torch.equal(head.greedy(logits), likeliest)


@pytest.mark.row("POLICY-1")
def test_joint_choices_reach_every_pair_once() -> None:
    head = JointHead(8, CHOICES)
    pairs = head.to_env(torch.arange(15)[:, None]).tolist()
    assert pairs == [[along, across] for along in range(3) for across in range(5)]


@pytest.mark.row("POLICY-1")
def test_continuous_actions_are_normally_distributed() -> None:
    head = ContinuousHead(8)
    logits = scores_of(head, 2_000)
    means, deviations = logits[:, :2], logits[:, 2:].exp()
    normal = Normal(means, deviations)
    uniform = evenly(2_000)
    drawn = head.sample(logits, uniform)
    torch.testing.assert_close(drawn, normal.icdf(uniform), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(head.log_prob(logits, drawn), normal.log_prob(drawn).sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head.entropy(logits), normal.entropy().sum(-1))
    assert torch.equal(head.greedy(logits), means)
    assert head.to_env(10.0 * drawn).abs().max() == 1.0


@pytest.mark.row("POLICY-1")
def test_the_ends_of_the_noise_give_finite_actions() -> None:
    head = ContinuousHead(8)
    logits = scores_of(head, 1)
    for edge in (0.0, LARGEST):
        assert head.sample(logits, torch.full((1, 2), edge)).isfinite().all()


@pytest.mark.parametrize("choices", [CHOICES, None])
def test_a_new_policy_is_close_to_uniform(choices: tuple[int, int] | None) -> None:
    head = make_head(8, choices, ActionDistribution.MULTI_DISCRETE)
    logits = head(torch.randn(20, 8, generator=torch.Generator().manual_seed(2)))
    spread = (
        logits[:, :2] if choices is None else torch.cat([part.softmax(-1) for part in logits.split(choices, -1)], -1)
    )
    assert (spread - spread.mean(0)).abs().max() < 0.1
