"""Observation encoder: an MLP shared by the entries of a block, then the maximum over entries."""

from __future__ import annotations

from importlib.util import find_spec
from typing import cast

import torch
from torch import Tensor, nn

from roadworthy.policy.config import PolicyConfig
from roadworthy.policy.pointmax import linear_max
from roadworthy.sim.layout import COUNTED, Block, ObservationLayout

_HAS_TRITON = find_spec("triton") is not None  # torch for GPUs on Linux includes it


class Encoder(nn.Module):
    """Encodes (..., S) observations and (..., C) conditioning as (..., H)."""

    def __init__(self, config: PolicyConfig, layout: ObservationLayout) -> None:
        super().__init__()
        width, depth = config.encoder, config.encoder_layers
        self.layout = layout
        self.seen = tuple(layout[name] for name in COUNTED if layout[name].entries)
        # Blocks of one entry, which describe the agent itself: ego, goal, conditioning, counts, and those of users.
        self._single = tuple(block for block in layout.blocks if block.name not in COUNTED)
        counts = layout["counts"]
        # The column of each block's count, and the number of entries that a count of 1 stands for.
        self._counts = tuple((counts.column(block.name), max(block.entries, 1)) for block in self.seen)
        own = sum(block.size for block in self._single) + len(config.conditioning.names)
        self.own = _mlp(own, width, depth)
        self.entries = nn.ModuleDict({block.name: _mlp(len(block.features), width, depth) for block in self.seen})
        self.join = nn.Linear(width * (1 + len(self.seen)), config.hidden)
        _init(self.join)

    def forward(self, observations: Tensor, active: Tensor, conditioning: Tensor | None = None) -> Tensor:
        """Return (..., H). Observations of inactive rows are replaced by zeros.

        Then nothing in them, not even NaN, reaches an output or a gradient. Masking the outputs is not enough: NaN
        times 0 is NaN in the gradients of weights.
        """
        own = torch.cat([observations[..., block.slice] for block in self._single], -1)
        own = torch.where(active[..., None], own, 0.0)
        parts = [self.own(own if conditioning is None else torch.cat([own, conditioning.to(own.dtype)], -1))]
        for block, (column, most) in zip(self.seen, self._counts, strict=True):
            count = torch.round(observations[..., column].float() * most)
            parts.append(self._block_max(block, observations, torch.where(active, count, 0.0)))
        return torch.relu(self.join(torch.cat(parts, -1)))

    def _block_max(self, block: Block, observations: Tensor, count: Tensor) -> Tensor:
        """Return (..., width) the maximum over a block's valid entries, 0 without any."""
        layers = cast(nn.Sequential, self.entries[block.name])
        linears = [layer for layer in layers.children() if isinstance(layer, nn.Linear)]
        rows = observations.flatten(0, -2)
        # Kernels read as many entries as the count says: NaN must not lead them out of the row.
        counts = count.flatten().nan_to_num().clamp(0, block.entries).int()
        if len(linears) == 1 and _fits_pointmax(observations):
            linear = linears[0]
            largest = linear_max(rows, linear.weight, linear.bias, block.start, block.entries, counts)
            return largest.unflatten(0, observations.shape[:-1])
        if len(linears) == 2 and _fits_fused(observations):
            from roadworthy.policy import fused

            if fused.can_fuse(linears[0].out_features, block.entries):
                largest = fused.two_layer_max(rows, counts, linears[0], linears[1], block.start, block.entries)
                return largest.unflatten(0, observations.shape[:-1])
        is_valid = (torch.arange(block.entries, device=observations.device) < count[..., None])[..., None]
        entries = observations[..., block.slice].unflatten(-1, (len(block.features), block.entries)).transpose(-1, -2)
        # Activations end with a ReLU, so invalid entries can be 0: they are never above a valid one.
        return (layers(torch.where(is_valid, entries, 0.0)) * is_valid).amax(-2)


def _fits_pointmax(observations: Tensor) -> bool:
    """Return whether pointmax.py applies: float32 on a CPU, without gradients of observations and torch.compile."""
    is_plain = observations.device.type == "cpu" and observations.dtype is torch.float32
    is_plain = is_plain and not observations.requires_grad
    return is_plain and not torch.compiler.is_compiling() and not torch.is_autocast_enabled("cpu")


def _fits_fused(observations: Tensor) -> bool:
    """Return whether fused.py applies: bfloat16 on a GPU, without gradients of observations."""
    is_rounded = observations.is_cuda and torch.is_autocast_enabled("cuda") and not observations.requires_grad
    return is_rounded and _HAS_TRITON


def _mlp(inputs: int, width: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for k in range(depth):
        linear = nn.Linear(inputs if k == 0 else width, width)
        _init(linear)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers)


def _init(linear: nn.Linear) -> None:
    nn.init.orthogonal_(linear.weight, 2.0**0.5)
    nn.init.zeros_(linear.bias)
