"""Heads: what is drawn is as likely as the distribution says, and what is said of it is what torch says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Normal

from roadworthy.policy import noise
from roadworthy.policy.config import ActionsAs
from roadworthy.policy.heads import ContinuousHead, JointHead, PartsHead, make_head

CHOICES = (3, 5)
DISCRETE = pytest.mark.parametrize("kind", ActionsAs)
LARGEST = 1.0 - 2.0**-24  # the largest noise that can be drawn


def scores_of(head: Any, rows: int) -> Tensor:
    """Scores of rows in which some choices are far likelier than others."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        return head(torch.randn(rows, 8, generator=torch.Generator().manual_seed(2)))


def distributions(head: PartsHead | JointHead, scores: Tensor) -> list[Categorical]:
    """One for each part of an action."""
    parts = scores.split(head.choices, -1) if isinstance(head, PartsHead) else [scores]
    return [Categorical(logits=part) for part in parts]


def evenly(count: int) -> Tensor:
    """(count, 2) noise that fills 0 to 1 without gaps, the second part in another order than the first."""
    even = (torch.arange(count) + 0.5) / count
    return torch.stack([even, even[torch.randperm(count, generator=torch.Generator().manual_seed(3))]], -1)


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_choices_are_drawn_as_often_as_they_are_likely(kind: ActionsAs) -> None:
    head, count = make_head(8, CHOICES, kind), 10_000
    for scores in scores_of(head, 4):
        drawn = head.sample(scores.expand(count, -1), evenly(count))
        for part, distribution in enumerate(distributions(head, scores)):
            frequencies = torch.bincount(drawn[:, part], minlength=len(distribution.probs)) / count
            # Evenly spread noise misses by at most one draw at each end of a choice's share.
            torch.testing.assert_close(frequencies, distribution.probs, rtol=0.0, atol=2.0 / count)


@pytest.mark.row("POLICY-1")
def test_parts_are_drawn_independently_of_each_other() -> None:
    head, count = PartsHead(8, CHOICES), 40_000
    scores = scores_of(head, 1)[0]
    drawn = head.sample(scores.expand(count, -1), noise.uniform(noise.keys_of(7, torch.arange(count)), 0, noise.ACTION))
    along, across = (distribution.probs for distribution in distributions(head, scores))
    pairs = torch.bincount(drawn[:, 0] * CHOICES[1] + drawn[:, 1], minlength=15).double() / count
    expected = torch.outer(along, across).flatten().double()
    deviation = (expected * (1.0 - expected) / count).sqrt()
    assert ((pairs - expected).abs() < 4.5 * deviation).all()


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_what_is_impossible_is_never_drawn(kind: ActionsAs) -> None:
    head = make_head(8, CHOICES, kind)
    size = 8 if kind is ActionsAs.PARTS else 15
    scores = torch.full((size,), -1e4)
    scores[torch.tensor([1, 3 + 2]) if kind is ActionsAs.PARTS else torch.tensor([7])] = 0.0
    for edge in (0.0, 0.5, LARGEST):
        drawn = head.sample(scores, torch.full((2,), edge))
        assert drawn.tolist() == ([1, 2] if kind is ActionsAs.PARTS else [7])


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_probabilities_and_entropy_of_choices_are_those_of_torch(kind: ActionsAs) -> None:
    head = make_head(8, CHOICES, kind)
    scores = scores_of(head, 50)
    actions = head.sample(scores, evenly(50))
    expected = distributions(head, scores)
    torch.testing.assert_close(
        head.log_prob(scores, actions), sum(d.log_prob(actions[:, k]) for k, d in enumerate(expected))
    )
    torch.testing.assert_close(head.entropy(scores), sum(d.entropy() for d in expected))
    # Stored actions come back as floats.
    assert torch.equal(head.log_prob(scores, actions.float()), head.log_prob(scores, actions))


@pytest.mark.row("POLICY-1")
@DISCRETE
def test_the_greedy_choice_is_the_likeliest(kind: ActionsAs) -> None:
    head = make_head(8, CHOICES, kind)
    scores = scores_of(head, 50)
    likeliest = torch.stack([distribution.probs.argmax(-1) for distribution in distributions(head, scores)], -1)
    assert torch.equal(head.greedy(scores), likeliest)


@pytest.mark.row("POLICY-1")
def test_joint_choices_reach_every_pair_once() -> None:
    head = JointHead(8, CHOICES)
    pairs = head.to_env(torch.arange(15)[:, None]).tolist()
    assert pairs == [[along, across] for along in range(3) for across in range(5)]


@pytest.mark.row("POLICY-1")
def test_continuous_actions_are_normally_distributed() -> None:
    head = ContinuousHead(8)
    scores = scores_of(head, 2_000)
    means, deviations = scores[:, :2], scores[:, 2:].exp()
    normal = Normal(means, deviations)
    uniform = evenly(2_000)
    drawn = head.sample(scores, uniform)
    torch.testing.assert_close(drawn, normal.icdf(uniform), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(head.log_prob(scores, drawn), normal.log_prob(drawn).sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head.entropy(scores), normal.entropy().sum(-1))
    assert torch.equal(head.greedy(scores), means)
    assert head.to_env(10.0 * drawn).abs().max() == 1.0


@pytest.mark.row("POLICY-1")
def test_the_ends_of_the_noise_give_finite_actions() -> None:
    head = ContinuousHead(8)
    scores = scores_of(head, 1)
    for edge in (0.0, LARGEST):
        assert head.sample(scores, torch.full((1, 2), edge)).isfinite().all()


@pytest.mark.parametrize("choices", [CHOICES, None])
def test_a_fresh_policy_is_nearly_indifferent(choices: tuple[int, int] | None) -> None:
    head = make_head(8, choices, ActionsAs.PARTS)
    scores = head(torch.randn(20, 8, generator=torch.Generator().manual_seed(2)))
    spread = (
        scores[:, :2] if choices is None else torch.cat([part.softmax(-1) for part in scores.split(choices, -1)], -1)
    )
    assert (spread - spread.mean(0)).abs().max() < 0.1
