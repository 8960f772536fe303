"""Actions as distributions: choices along and across drawn apart or together, or two continuous numbers.

A distribution is one tensor of numbers per row, as the network gives them. All draws are made from uniform noise that
the caller brings, so that they depend on what the caller keys it by and on nothing else.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from roadworthy.policy.config import ActionsAs

_SMALL = 1e-6
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class PartsHead(nn.Module):
    """Independent choices: actions are (..., parts) whole numbers."""

    def __init__(self, hidden: int, choices: tuple[int, ...]) -> None:
        super().__init__()
        self.choices = choices
        self.scores = _output(hidden, sum(choices))

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x).float()

    def sample(self, scores: Tensor, noise: Tensor) -> Tensor:
        """(..., parts) from noise (..., 2), uniform in 0 to 1."""
        parts = scores.split(self.choices, -1)
        return torch.stack([_draw(part, noise[..., k]) for k, part in enumerate(parts)], -1)

    def greedy(self, scores: Tensor) -> Tensor:
        return torch.stack([part.argmax(-1) for part in scores.split(self.choices, -1)], -1)

    def log_prob(self, scores: Tensor, actions: Tensor) -> Tensor:
        parts = scores.split(self.choices, -1)
        told = [_pick(part.log_softmax(-1), actions[..., k]) for k, part in enumerate(parts)]
        return torch.stack(told).sum(0)

    def entropy(self, scores: Tensor) -> Tensor:
        return torch.stack([_entropy(part) for part in scores.split(self.choices, -1)]).sum(0)

    def to_env(self, actions: Tensor) -> Tensor:
        """(..., 2) as DriveEnv.step takes them."""
        return actions.float()


class JointHead(nn.Module):
    """One choice among all pairs: actions are (..., 1) whole numbers."""

    def __init__(self, hidden: int, choices: tuple[int, int]) -> None:
        super().__init__()
        self.choices = choices
        self.scores = _output(hidden, math.prod(choices))

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x).float()

    def sample(self, scores: Tensor, noise: Tensor) -> Tensor:
        return _draw(scores, noise[..., 0])[..., None]

    def greedy(self, scores: Tensor) -> Tensor:
        return scores.argmax(-1, keepdim=True)

    def log_prob(self, scores: Tensor, actions: Tensor) -> Tensor:
        return _pick(scores.log_softmax(-1), actions[..., 0])

    def entropy(self, scores: Tensor) -> Tensor:
        return _entropy(scores)

    def to_env(self, actions: Tensor) -> Tensor:
        across = self.choices[1]
        return torch.cat([actions // across, actions % across], -1).float()


class ContinuousHead(nn.Module):
    """Two numbers, normally distributed around the network's; their deviation is learned, the same for all."""

    def __init__(self, hidden: int, parts: int = 2) -> None:
        super().__init__()
        self.means = _output(hidden, parts)
        self.log_deviations = nn.Parameter(torch.full((parts,), -0.5))

    def forward(self, x: Tensor) -> Tensor:
        means = self.means(x).float()
        return torch.cat([means, self.log_deviations.expand_as(means)], -1)

    def sample(self, scores: Tensor, noise: Tensor) -> Tensor:
        means, log_deviations = scores.chunk(2, -1)
        bounded = noise.clamp(_SMALL, 1.0 - _SMALL)
        return means + log_deviations.exp() * math.sqrt(2.0) * torch.erfinv(2.0 * bounded - 1.0)

    def greedy(self, scores: Tensor) -> Tensor:
        return scores.chunk(2, -1)[0]

    def log_prob(self, scores: Tensor, actions: Tensor) -> Tensor:
        means, log_deviations = scores.chunk(2, -1)
        apart = (actions - means) * (-log_deviations).exp()
        return (-0.5 * apart * apart - log_deviations - _LOG_ROOT_TWO_PI).sum(-1)

    def entropy(self, scores: Tensor) -> Tensor:
        return (scores.chunk(2, -1)[1] + 0.5 + _LOG_ROOT_TWO_PI).sum(-1)

    def to_env(self, actions: Tensor) -> Tensor:
        return actions.clamp(-1.0, 1.0)


def make_head(hidden: int, choices: tuple[int, int] | None, kind: ActionsAs) -> PartsHead | JointHead | ContinuousHead:
    """The head for an env's actions: its choices, None where actions are continuous."""
    if choices is None:
        return ContinuousHead(hidden)
    return PartsHead(hidden, choices) if kind is ActionsAs.PARTS else JointHead(hidden, choices)


def _output(hidden: int, size: int) -> nn.Linear:
    """A last layer that starts out nearly indifferent."""
    linear = nn.Linear(hidden, size)
    nn.init.orthogonal_(linear.weight, 0.01)
    nn.init.zeros_(linear.bias)
    return linear


def _draw(scores: Tensor, noise: Tensor) -> Tensor:
    """The choice at which the summed probabilities pass the noise."""
    # Choices come first: a GPU is slow to sum along a last direction that is short.
    summed = scores.softmax(-1).movedim(-1, 0).contiguous().cumsum(0)
    return (summed[:-1] <= noise * summed[-1]).sum(0)


def _pick(values: Tensor, choice: Tensor) -> Tensor:
    return values.gather(-1, choice.long()[..., None])[..., 0]


def _entropy(scores: Tensor) -> Tensor:
    logs = scores.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1)
