"""Linear layer, ReLU and maximum over entries in one pass on a CPU.

Only the entry with the maximum gets a gradient. So no activations per entry are stored: the forward pass keeps a number
per channel and the entry it comes from, the backward pass has a product for each of those. The operations of torch,
which write and read all activations several times, take ten times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.kernels import entry
from roadworthy.kernels.threads import prange, set_threads
from roadworthy.scenario.schema import Floats, Ints

CHUNKS = 16  # parts of the rows, so that sums do not depend on the number of cores
_ZERO = np.float32(0.0)


def linear_max(observations: Tensor, weight: Tensor, bias: Tensor, first: int, entries: int, counts: Tensor) -> Tensor:
    """Return (N, C) the maximum over valid entries of relu(weight @ entry + bias), 0 without any.

    Args:
        observations: (N, S) rows, in which the features of the block follow each other with `entries` numbers each.
        weight: (C, features).
        bias: (C,).
        first: The first column of the block.
        entries: The number of entries of the block.
        counts: (N,) int32 numbers of valid entries.
    """
    return _LinearMax.apply(observations, weight, bias, first, entries, counts)


class _LinearMax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, observations: Tensor, weight: Tensor, bias: Tensor, first: int, entries: int, counts: Tensor
    ) -> Tensor:
        out = torch.empty(len(observations), len(weight))
        winners = torch.empty(len(observations), len(weight), dtype=torch.int32)
        rows = observations.detach().numpy()
        set_threads(torch.get_num_threads())
        _forward(
            rows,
            weight.detach().T.contiguous().numpy(),
            bias.detach().numpy(),
            first,
            entries,
            counts.numpy(),
            np.empty((CHUNKS, len(weight)), np.float32),
            out.numpy(),
            winners.numpy(),
        )
        ctx.first, ctx.entries, ctx.features = first, entries, weight.shape[1]
        ctx.save_for_backward(observations, winners)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        observations, winners = ctx.saved_tensors
        channels = winners.shape[1]
        sums = torch.zeros(CHUNKS, channels, ctx.features + 1)
        set_threads(torch.get_num_threads())
        _backward(
            observations.detach().numpy(),
            winners.numpy(),
            gradients[0].contiguous().numpy(),
            ctx.first,
            ctx.entries,
            sums.numpy(),
        )
        total = sums.sum(0)
        return None, total[:, :-1], total[:, -1], None, None, None


@entry(parallel=True)
def _forward(
    rows: Floats,
    weight: Floats,
    bias: Floats,
    first: int,
    entries: int,
    counts: Ints,
    scratch: Floats,
    out: Floats,
    winners_out: NDArray[np.int32],
) -> None:
    features, channels = weight.shape
    size = len(rows)
    for chunk in prange(CHUNKS):
        sums = scratch[chunk]
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            for c in range(channels):
                out[row, c] = _ZERO
                winners_out[row, c] = -1
            for e in range(counts[row]):
                for c in range(channels):
                    sums[c] = bias[c]
                for f in range(features):
                    value = rows[row, first + f * entries + e]
                    for c in range(channels):
                        sums[c] += value * weight[f, c]
                for c in range(channels):
                    is_larger = sums[c] > out[row, c]
                    out[row, c] = sums[c] if is_larger else out[row, c]
                    winners_out[row, c] = e if is_larger else winners_out[row, c]


@entry(parallel=True)
def _backward(
    rows: Floats, winners: NDArray[np.int32], gradients: Floats, first: int, entries: int, sums_out: Floats
) -> None:
    """Sum the gradients of weights, and in the last column those of biases, for each chunk of rows."""
    size, channels = winners.shape
    features = sums_out.shape[2] - 1
    for chunk in prange(CHUNKS):
        for row in range(chunk * size // CHUNKS, (chunk + 1) * size // CHUNKS):
            for c in range(channels):
                winner = winners[row, c]
                gradient = gradients[row, c]
                if winner >= 0 and gradient != _ZERO:
                    for f in range(features):
                        sums_out[chunk, c, f] += gradient * rows[row, first + f * entries + winner]
                    sums_out[chunk, c, features] += gradient
