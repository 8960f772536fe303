"""Action distributions: a choice along and one across the lane, independent or joint, or two continuous numbers.

The parameters of a distribution are one tensor, called logits for continuous actions too. Samples are made from uniform
noise of the caller, so that they depend on its keys only.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from roadworthy.policy.config import ActionDistribution

_SMALL = 1e-6
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class MultiDiscreteHead(nn.Module):
    """Independent choices; actions are (..., parts) whole numbers."""

    def __init__(self, hidden: int, choices: tuple[int, ...]) -> None:
        super().__init__()
        self.choices = choices
        self.scores = _output(hidden, sum(choices))  # named as in checkpoints

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x).float()

    def sample(self, logits: Tensor, noise: Tensor) -> Tensor:
        """Return (..., parts) actions from uniform noise (..., 2)."""
        parts = logits.split(self.choices, -1)
        return torch.stack([_draw(part, noise[..., k]) for k, part in enumerate(parts)], -1)

    def greedy(self, logits: Tensor) -> Tensor:
        return torch.stack([part.argmax(-1) for part in logits.split(self.choices, -1)], -1)

    def log_prob(self, logits: Tensor, actions: Tensor) -> Tensor:
        parts = logits.split(self.choices, -1)
        picked = [_pick(part.log_softmax(-1), actions[..., k]) for k, part in enumerate(parts)]
        return torch.stack(picked).sum(0)

    def entropy(self, logits: Tensor) -> Tensor:
        return torch.stack([_entropy(part) for part in logits.split(self.choices, -1)]).sum(0)

    def to_env(self, actions: Tensor) -> Tensor:
        """Return (..., 2) actions for DriveEnv.step."""
        return actions.float()


class JointHead(nn.Module):
    """One choice among all pairs; actions are (..., 1) whole numbers."""

    def __init__(self, hidden: int, choices: tuple[int, int]) -> None:
        super().__init__()
        self.choices = choices
        self.scores = _output(hidden, math.prod(choices))  # named as in checkpoints

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x).float()

    def sample(self, logits: Tensor, noise: Tensor) -> Tensor:
        return _draw(logits, noise[..., 0])[..., None]

    def greedy(self, logits: Tensor) -> Tensor:
        return logits.argmax(-1, keepdim=True)

    def log_prob(self, logits: Tensor, actions: Tensor) -> Tensor:
        return _pick(logits.log_softmax(-1), actions[..., 0])

    def entropy(self, logits: Tensor) -> Tensor:
        return _entropy(logits)

    def to_env(self, actions: Tensor) -> Tensor:
        across = self.choices[1]
        return torch.cat([actions // across, actions % across], -1).float()


class ContinuousHead(nn.Module):
    """Two normally distributed numbers; their standard deviations are learned and the same for all observations."""

    def __init__(self, hidden: int, parts: int = 2) -> None:
        super().__init__()
        self.means = _output(hidden, parts)
        self.log_deviations = nn.Parameter(torch.full((parts,), -0.5))

    def forward(self, x: Tensor) -> Tensor:
        means = self.means(x).float()
        return torch.cat([means, self.log_deviations.expand_as(means)], -1)

    def sample(self, logits: Tensor, noise: Tensor) -> Tensor:
        means, log_deviations = logits.chunk(2, -1)
        bounded = noise.clamp(_SMALL, 1.0 - _SMALL)
        return means + log_deviations.exp() * math.sqrt(2.0) * torch.erfinv(2.0 * bounded - 1.0)

    def greedy(self, logits: Tensor) -> Tensor:
        return logits.chunk(2, -1)[0]

    def log_prob(self, logits: Tensor, actions: Tensor) -> Tensor:
        means, log_deviations = logits.chunk(2, -1)
        z = (actions - means) * (-log_deviations).exp()
        return (-0.5 * z * z - log_deviations - _LOG_ROOT_TWO_PI).sum(-1)

    def entropy(self, logits: Tensor) -> Tensor:
        return (logits.chunk(2, -1)[1] + 0.5 + _LOG_ROOT_TWO_PI).sum(-1)

    def to_env(self, actions: Tensor) -> Tensor:
        return actions.clamp(-1.0, 1.0)


def make_head(
    hidden: int, choices: tuple[int, int] | None, kind: ActionDistribution
) -> MultiDiscreteHead | JointHead | ContinuousHead:
    """Return the head for an env's `action_choices`, which are None for continuous actions."""
    if choices is None:
        return ContinuousHead(hidden)
    return (
        MultiDiscreteHead(hidden, choices) if kind is ActionDistribution.MULTI_DISCRETE else JointHead(hidden, choices)
    )


def _output(hidden: int, size: int) -> nn.Linear:
    """Return a last layer whose outputs are close to 0 at first."""
    linear = nn.Linear(hidden, size)
    nn.init.orthogonal_(linear.weight, 0.01)
    nn.init.zeros_(linear.bias)
    return linear


def _draw(logits: Tensor, noise: Tensor) -> Tensor:
    """Return the choice at which the cumulative probability passes the noise."""
    # Choices are the first axis: cumsum over a short last axis is slow on a GPU.
    summed = logits.softmax(-1).movedim(-1, 0).contiguous().cumsum(0)
    return (summed[:-1] <= noise * summed[-1]).sum(0)


def _pick(values: Tensor, choice: Tensor) -> Tensor:
    return values.gather(-1, choice.long()[..., None])[..., 0]


def _entropy(logits: Tensor) -> Tensor:
    logs = logits.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1)
