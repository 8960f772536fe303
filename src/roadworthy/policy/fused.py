"""The encoder's work on a GPU in one kernel: two layers over a block's entries, and the maximum over them.

As torch's operations, activations of every entry (64 numbers for each of 163) go out to memory and back several times;
here they never leave the processor. Backwards, a channel's gradient belongs to the one entry that was the strongest, so
a row's gradient needs as many entries as there are channels, and no activation has to be kept.

Everything is transposed, features or channels by entries, since that is how observations are stored.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# Programs, each of which goes through many rows with the weights at hand, and warps in one: the fastest of some that
# were tried on an H200.
_FORWARD, _BACKWARD = (1056, 4), (528, 2)
_CHUNK = 64  # entries that are worked on together, at most
_LEAST = 16  # the shortest side of a matrix that tensor cores multiply
_NOBODY = tl.constexpr(255)  # the winner where no entry is above 0


@triton.jit
def _products(a, b, IS_HALF: tl.constexpr):
    """The matrix product, summed in float32."""
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
    strongest_out,
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
    """CHUNK: entries that are worked on together; DEPTH: features, filled up to what can be multiplied."""
    channel, feature = tl.arange(0, WIDTH), tl.arange(0, DEPTH)
    is_feature = feature < FEATURES
    first = tl.load(w1 + channel[:, None] * FEATURES + feature[None], mask=is_feature[None], other=0.0)
    second = tl.load(w2 + channel[:, None] * WIDTH + channel[None])
    first_bias, second_bias = tl.load(b1 + channel), tl.load(b2 + channel)
    row = tl.program_id(0).to(tl.int64)
    for _ in range(tl.program_id(0), rows, tl.num_programs(0)):
        at, count = seen + row * row_stride + start, tl.load(counts + row)
        best, winner = tl.zeros((WIDTH,), tl.float32), tl.full((WIDTH,), _NOBODY, tl.int32)
        for begin in tl.static_range(0, ENTRIES, CHUNK):
            if begin < count:
                entry = begin + tl.arange(0, CHUNK)
                is_valid = (entry < count)[None]
                is_there = is_feature[:, None] & is_valid
                x = tl.load(at + feature[:, None] * ENTRIES + entry[None], mask=is_there, other=0.0).to(tl.float32)
                hidden = tl.maximum(_products(first, x, IS_HALF) + first_bias[:, None], 0.0)
                strength = _products(second, hidden, IS_HALF) + second_bias[:, None]
                top, place = tl.max(tl.where(is_valid, strength, 0.0), 1, return_indices=True)
                winner = tl.where(top > best, begin + place, winner)
                best = tl.maximum(best, top)
        tl.store(strongest_out + row * WIDTH + channel, best)
        tl.store(winners_out + row * WIDTH + channel, winner.to(tl.uint8))
        row += tl.num_programs(0)


@triton.jit
def _won(
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
    """Each channel's strongest entry of a row, (DEPTH, WIDTH), and the gradient that it gets; zeros where none is."""
    channel, feature = tl.arange(0, WIDTH), tl.arange(0, DEPTH)
    has_won = winner != _NOBODY
    place = seen + row * row_stride + start + feature[:, None] * ENTRIES + winner[None]
    x = tl.load(place, mask=(feature < FEATURES)[:, None] & has_won[None], other=0.0)
    pull = tl.load(gradient + row * WIDTH + channel)
    return x.to(tl.float32), tl.where(has_won, pull.to(tl.float32), 0.0)


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
    """The weights' gradients, summed over each program's rows."""
    channel, feature = tl.arange(0, WIDTH), tl.arange(0, DEPTH)
    is_feature, program = feature < FEATURES, tl.program_id(0)
    first = tl.load(w1 + channel[:, None] * FEATURES + feature[None], mask=is_feature[None], other=0.0)
    second = tl.load(w2 + channel[None] * WIDTH + channel[:, None])  # by hidden channel, then channel
    first_bias = tl.load(b1 + channel)
    first_sum, second_sum = tl.zeros((WIDTH, DEPTH), tl.float32), tl.zeros((WIDTH, WIDTH), tl.float32)
    first_bias_sum, second_bias_sum = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    # While a row is worked on, the next one's entries are on their way, and the winners of the one after.
    row = program.to(tl.int64)
    winner = tl.load(winners + row * WIDTH + channel).to(tl.int32)
    x_next, pull_next = _won(seen, gradient, winner, row, row_stride, start, ENTRIES, FEATURES, WIDTH, DEPTH)
    row = tl.minimum(row + tl.num_programs(0), rows - 1)
    winner = tl.load(winners + row * WIDTH + channel).to(tl.int32)
    for _ in range(program, rows, tl.num_programs(0)):
        x, pull = x_next, pull_next
        x_next, pull_next = _won(seen, gradient, winner, row, row_stride, start, ENTRIES, FEATURES, WIDTH, DEPTH)
        row = tl.minimum(row + tl.num_programs(0), rows - 1)
        winner = tl.load(winners + row * WIDTH + channel).to(tl.int32)
        hidden = tl.maximum(_products(first, x, IS_HALF) + first_bias[:, None], 0.0)
        second_sum += hidden * pull[None]
        second_bias_sum += pull
        pulled = tl.where(hidden > 0.0, second * pull[None], 0.0)
        first_sum += _products(pulled, tl.trans(x), IS_HALF)
        first_bias_sum += tl.sum(pulled, 1)
    tl.store(
        w1_out + program * WIDTH * FEATURES + channel[:, None] * FEATURES + feature[None], first_sum, is_feature[None]
    )
    tl.store(w2_out + program * WIDTH * WIDTH + channel[None] * WIDTH + channel[:, None], second_sum)
    tl.store(b1_out + program * WIDTH + channel, first_bias_sum)
    tl.store(b2_out + program * WIDTH + channel, second_bias_sum)


@torch.library.custom_op("roadworthy::strongest_of_two", mutates_args=())
def _strongest(
    seen: Tensor, counts: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, start: int, entries: int, half: bool
) -> tuple[Tensor, Tensor]:
    rows, width = len(seen), len(b1)
    strongest = torch.empty(rows, width, dtype=torch.bfloat16 if half else torch.float32, device=seen.device)
    winners = torch.empty(rows, width, dtype=torch.uint8, device=seen.device)
    if rows:
        programs, warps = _FORWARD
        _forward[(min(programs, rows),)](
            seen, counts, w1, b1, w2, b2, strongest, winners, rows, seen.stride(0), start, **_sizes(w1, entries, half),
            CHUNK=min(_room(entries), _CHUNK), num_warps=warps,
        )  # fmt: skip
    return strongest, winners


@_strongest.register_fake
def _(
    seen: Tensor, counts: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, start: int, entries: int, half: bool
) -> tuple[Tensor, Tensor]:
    shape = len(seen), len(b1)
    best = seen.new_empty(shape, dtype=torch.bfloat16 if half else torch.float32)
    return best, seen.new_empty(shape, dtype=torch.uint8)


@torch.library.custom_op("roadworthy::strongest_of_two_backward", mutates_args=())
def _pull_back(
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


@_pull_back.register_fake
def _(seen: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch.empty_like(w1), torch.empty_like(b1), torch.empty_like(w2), torch.empty_like(b1)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    seen, _counts, w1, b1, w2, _b2, ctx.start, ctx.entries, ctx.half = inputs
    ctx.save_for_backward(seen, w1, b1, w2, output[1])
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, gradient: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    weights = _pull_back(*ctx.saved_tensors, gradient, ctx.start, ctx.entries, ctx.half)
    return None, None, *weights, None, None, None


_strongest.register_autograd(_gradients, setup_context=_remember)


def can_fuse(width: int, entries: int) -> bool:
    """Whether the kernels have room for layers of this width over so many entries."""
    return _LEAST <= width <= 64 and width & (width - 1) == 0 and entries <= _NOBODY.value


def strongest_of_two(
    seen: Tensor, counts: Tensor, first: torch.nn.Linear, second: torch.nn.Linear, start: int, entries: int
) -> Tensor:
    """(R, width) the maximum over a block's entries of two layers with ReLUs; 0 where there are none.

    Products are of bfloat16 where that is on (torch.autocast), and so is the result; sums are of float32. Gradients go
    to the weights alone.

    seen: (R, observation).
    counts: (R,) valid entries.
    start: where the block begins in a row.
    """
    seen = seen if seen.stride(1) == 1 else seen.contiguous()
    weights = first.weight, first.bias, second.weight, second.bias
    return _strongest(seen, counts, *weights, start, entries, torch.is_autocast_enabled(seen.device.type))[0]


def _sizes(w1: Tensor, entries: int, half: bool) -> dict[str, Any]:
    width, features = w1.shape
    return {"ENTRIES": entries, "FEATURES": features, "WIDTH": width, "DEPTH": _room(features), "IS_HALF": half}


def _room(number: int) -> int:
    """The side of a matrix that can be multiplied and has so many numbers in it."""
    return max(_LEAST, int(triton.next_power_of_2(number)))
