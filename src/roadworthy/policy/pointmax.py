"""The strongest entry per channel, on a CPU: a layer over a block's entries and the maximum over them, in one pass.

Of a linear layer, a ReLU and a maximum over entries, only the entry that won passes a gradient on. So nothing per entry
is kept: going forward one number per channel and which entry it came from, and going back a product for each of those.
torch's own operations, which write and read all entries' channels several times, take ten times as long.
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

CHUNKS = 16  # parts that rows are dealt into: sums are the same whatever the number of cores
_ZERO = np.float32(0.0)


def strongest(observations: Tensor, weight: Tensor, bias: Tensor, first: int, entries: int, counts: Tensor) -> Tensor:
    """(N, C) the maximum over valid entries of relu(weight @ entry + bias), 0 where there are none.

    observations: (N, S) rows, in which the block's features stand one after another, `entries` numbers each.
    weight, bias: (C, features) and (C,).
    first: the block's first column.
    counts: (N,) int32, how many entries are valid.
    """
    return _Strongest.apply(observations, weight, bias, first, entries, counts)


class _Strongest(torch.autograd.Function):
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
                    is_stronger = sums[c] > out[row, c]
                    out[row, c] = sums[c] if is_stronger else out[row, c]
                    winners_out[row, c] = e if is_stronger else winners_out[row, c]


@entry(parallel=True)
def _backward(
    rows: Floats, winners: NDArray[np.int32], gradients: Floats, first: int, entries: int, sums_out: Floats
) -> None:
    """Add up the gradients of weights, and in the last column of biases, for each chunk of rows."""
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
