"""Two layers with ReLUs and the maximum over entries in one GPU kernel.

With the operations of torch, activations of every entry (64 numbers for each of 163) go to memory and back several
times; here they stay in registers. In the backward pass, the gradient of a channel belongs to the one entry with the
maximum, so a row needs as many entries as there are channels, and no activation has to be stored.

All matrices are transposed, features or channels by entries, as observations are stored.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# Numbers of programs, each of which processes many rows with the same weights, and of warps per program: the fastest
# of several on an H200.
_FORWARD, _BACKWARD = (1056, 4), (528, 2)
_CHUNK = 64  # maximum number of entries that are processed together
_LEAST = 16  # minimum side of a matrix for tensor cores
_NO_WINNER = tl.constexpr(255)  # where no entry is above 0


@triton.jit
def _products(a, b, IS_HALF: tl.constexpr):
    """Return the matrix product, summed in float32."""
    if IS_HALF:
        return tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16))
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _forward(
    seen,
    counts,
    w1,
    b1,
    w2,
    b2,
    largest_out,
    winners_out,
    rows,
    row_stride,
    start,
    ENTRIES: tl.constexpr,
    FEATURES: tl.constexpr,
    WIDTH: tl.constexpr,
    CHUNK: tl.constexpr,
    DEPTH: tl.constexpr,
    IS_HALF: tl.constexpr,
):
    """Compute the maxima and the winning entries. DEPTH is the number of features, padded for the product."""
    channel, feature = tl.arange(0, WIDTH), tl.arange(0, DEPTH)
    is_feature = feature < FEATURES
    first = tl.load(w1 + channel[:, None] * FEATURES + feature[None], mask=is_feature[None], other=0.0)
    second = tl.load(w2 + channel[:, None] * WIDTH + channel[None])
    first_bias, second_bias = tl.load(b1 + channel), tl.load(b2 + channel)
    row = tl.program_id(0).to(tl.int64)
    for _ in range(tl.program_id(0), rows, tl.num_programs(0)):
        at, count = seen + row * row_stride + start, tl.load(counts + row)
        best, winner = tl.zeros((WIDTH,), tl.float32), tl.full((WIDTH,), _NO_WINNER, tl.int32)
        for begin in tl.static_range(0, ENTRIES, CHUNK):
            if begin < count:
                entry = begin + tl.arange(0, CHUNK)
                is_valid = (entry < count)[None]
                is_there = is_feature[:, None] & is_valid
                x = tl.load(at + feature[:, None] * ENTRIES + entry[None], mask=is_there, other=0.0).to(tl.float32)
                hidden = tl.maximum(_products(first, x, IS_HALF) + first_bias[:, None], 0.0)
                activation = _products(second, hidden, IS_HALF) + second_bias[:, None]
                top, place = tl.max(tl.where(is_valid, activation, 0.0), 1, return_indices=True)
                winner = tl.where(top > best, begin + place, winner)
                best = tl.maximum(best, top)
        tl.store(largest_out + row * WIDTH + channel, best)
        tl.store(winners_out + row * WIDTH + channel, winner.to(tl.uint8))
        row += tl.num_programs(0)


@triton.jit
def _winning(
    seen,
    gradient,
    winner,
    row,
    row_stride,
    start,
    ENTRIES: tl.constexpr,
    FEATURES: tl.constexpr,
    WIDTH: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Load the winning entry of each channel of a row, (DEPTH, WIDTH), and its gradient; zeros without a winner."""
    channel, feature = tl.arange(0, WIDTH), tl.arange(0, DEPTH)
    has_won = winner != _NO_WINNER
    place = seen + row * row_stride + start + feature[:, None] * ENTRIES + winner[None]
    x = tl.load(place, mask=(feature < FEATURES)[:, None] & has_won[None], other=0.0)
    upstream = tl.load(gradient + row * WIDTH + channel)
    return x.to(tl.float32), tl.where(has_won, upstream.to(tl.float32), 0.0)


@triton.jit
def _backward(
    seen,
    w1,
    b1,
    w2,
    winners,
    gradient,
    w1_out,
    b1_out,
    w2_out,
    b2_out,
    rows,
    row_stride,
    start,
    ENTRIES: tl.constexpr,
    FEATURES: tl.constexpr,
    WIDTH: tl.constexpr,
    DEPTH: tl.constexpr,
    IS_HALF: tl.constexpr,
):
    """Sum the gradients of the weights over the rows of each program."""
    channel, feature = tl.arange(0, WIDTH), tl.arange(0, DEPTH)
    is_feature, program = feature < FEATURES, tl.program_id(0)
    first = tl.load(w1 + channel[:, None] * FEATURES + feature[None], mask=is_feature[None], other=0.0)
    second = tl.load(w2 + channel[None] * WIDTH + channel[:, None])  # by hidden channel, then channel
    first_bias = tl.load(b1 + channel)
    first_sum, second_sum = tl.zeros((WIDTH, DEPTH), tl.float32), tl.zeros((WIDTH, WIDTH), tl.float32)
    first_bias_sum, second_bias_sum = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    # Prefetch the entries of the next row and the winners of the row after it.
    row = program.to(tl.int64)
    winner = tl.load(winners + row * WIDTH + channel).to(tl.int32)
    x_next, up_next = _winning(seen, gradient, winner, row, row_stride, start, ENTRIES, FEATURES, WIDTH, DEPTH)
    row = tl.minimum(row + tl.num_programs(0), rows - 1)
    winner = tl.load(winners + row * WIDTH + channel).to(tl.int32)
    for _ in range(program, rows, tl.num_programs(0)):
        x, upstream = x_next, up_next
        x_next, up_next = _winning(seen, gradient, winner, row, row_stride, start, ENTRIES, FEATURES, WIDTH, DEPTH)
        row = tl.minimum(row + tl.num_programs(0), rows - 1)
        winner = tl.load(winners + row * WIDTH + channel).to(tl.int32)
        hidden = tl.maximum(_products(first, x, IS_HALF) + first_bias[:, None], 0.0)
        second_sum += hidden * upstream[None]
        second_bias_sum += upstream
        hidden_gradient = tl.where(hidden > 0.0, second * upstream[None], 0.0)
        first_sum += _products(hidden_gradient, tl.trans(x), IS_HALF)
        first_bias_sum += tl.sum(hidden_gradient, 1)
    tl.store(
        w1_out + program * WIDTH * FEATURES + channel[:, None] * FEATURES + feature[None], first_sum, is_feature[None]
    )
    tl.store(w2_out + program * WIDTH * WIDTH + channel[None] * WIDTH + channel[:, None], second_sum)
    tl.store(b1_out + program * WIDTH + channel, first_bias_sum)
    tl.store(b2_out + program * WIDTH + channel, second_bias_sum)


@torch.library.custom_op("roadworthy::two_layer_max", mutates_args=())
def _two_layer_max(
    seen: Tensor, counts: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, start: int, entries: int, half: bool
) -> tuple[Tensor, Tensor]:
    rows, width = len(seen), len(b1)
    largest = torch.empty(rows, width, dtype=torch.bfloat16 if half else torch.float32, device=seen.device)
    winners = torch.empty(rows, width, dtype=torch.uint8, device=seen.device)
    if rows:
        programs, warps = _FORWARD
        _forward[(min(programs, rows),)](
            seen, counts, w1, b1, w2, b2, largest, winners, rows, seen.stride(0), start, **_sizes(w1, entries, half),
            CHUNK=min(_padded(entries), _CHUNK), num_warps=warps,
        )  # fmt: skip
    return largest, winners


@_two_layer_max.register_fake
def _(
    seen: Tensor, counts: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, start: int, entries: int, half: bool
) -> tuple[Tensor, Tensor]:
    shape = len(seen), len(b1)
    best = seen.new_empty(shape, dtype=torch.bfloat16 if half else torch.float32)
    return best, seen.new_empty(shape, dtype=torch.uint8)


@torch.library.custom_op("roadworthy::two_layer_max_backward", mutates_args=())
def _weight_gradients(
    seen: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    winners: Tensor,
    gradient: Tensor,
    start: int,
    entries: int,
    half: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, programs, warps = len(seen), min(_BACKWARD[0], len(seen)), _BACKWARD[1]
    sums = [torch.empty(programs, *w.shape, device=seen.device) for w in (w1, b1, w2, b1)]
    if rows:
        _backward[(programs,)](
            seen, w1, b1, w2, winners, gradient.contiguous(), *sums, rows, seen.stride(0), start,
            **_sizes(w1, entries, half), num_warps=warps,
        )  # fmt: skip
    first, first_bias, second, second_bias = (part.sum(0) for part in sums)
    return first, first_bias, second, second_bias


@_weight_gradients.register_fake
def _(seen: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch.empty_like(w1), torch.empty_like(b1), torch.empty_like(w2), torch.empty_like(b1)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    seen, _counts, w1, b1, w2, _b2, ctx.start, ctx.entries, ctx.half = inputs
    ctx.save_for_backward(seen, w1, b1, w2, output[1])
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, gradient: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    weights = _weight_gradients(*ctx.saved_tensors, gradient, ctx.start, ctx.entries, ctx.half)
    return None, None, *weights, None, None, None


_two_layer_max.register_autograd(_gradients, setup_context=_save_for_backward)


def can_fuse(width: int, entries: int) -> bool:
    """Return whether the kernels support layers of this width over this number of entries."""
    return _LEAST <= width <= 64 and width & (width - 1) == 0 and entries <= _NO_WINNER.value


def two_layer_max(
    seen: Tensor, counts: Tensor, first: torch.nn.Linear, second: torch.nn.Linear, start: int, entries: int
) -> Tensor:
    """Return (R, width) the maximum over a block's entries of two layers with ReLUs; 0 without any.

    Products and the result are bfloat16 under torch.autocast; sums are float32. Only weights get gradients.

    Args:
        seen: (R, S) observations.
        counts: (R,) numbers of valid entries.
        first: The first layer.
        second: The second layer.
        start: The first column of the block.
        entries: The number of entries of the block.
    """
    seen = seen if seen.stride(1) == 1 else seen.contiguous()
    weights = first.weight, first.bias, second.weight, second.bias
    return _two_layer_max(seen, counts, *weights, start, entries, torch.is_autocast_enabled(seen.device.type))[0]


def _sizes(w1: Tensor, entries: int, half: bool) -> dict[str, Any]:
    width, features = w1.shape
    return {"ENTRIES": entries, "FEATURES": features, "WIDTH": width, "DEPTH": _padded(features), "IS_HALF": half}


def _padded(number: int) -> int:
    """Return the side of a matrix that can be multiplied and has at least this size."""
    return max(_LEAST, int(triton.next_power_of_2(number)))
