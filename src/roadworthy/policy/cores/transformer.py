"""The transformer core: attends to the last steps of the episode, with a cache of keys and values for rollouts.

The cache is a ring of C slots per row: step p of an episode, counted from 0, is in slot p % C. In rollouts and in
training alike, a step attends to itself and to those of the C - 1 steps before it that belong to its episode and were
active. Positions count all steps of the episode from the first active one, so that the time a row was empty before its
episode has no effect.

If a training segment starts within an episode, its first steps attend to the cache as it was at that point, without
gradients: training computes exactly what the rollout did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from roadworthy.policy.config import PolicyConfig

_LONGEST_WAVE = 10_000.0
# At full size, positional encodings vary five times as much as encoded observations do before training (5.7 and 1.2 for
# hidden 128), and a policy would first have to learn to ignore them.
_POSITION_SIZE = 0.1


class TransformerMemory(NamedTuple):
    """The cache. R rows, L layers, N heads of size D, C slots."""

    length: Tensor  # (R,) int32, steps of the episode, 0 until its agent was active
    is_kept: Tensor  # (R, C) bool, the slot has an active step of the episode
    keys: Tensor  # (R, L, N, C, D)
    values: Tensor  # (R, L, N, C, D)


class TransformerCore(nn.Module):
    """Blocks of attention and MLP over the steps of an episode."""

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.size, self.config = config.hidden, config.transformer
        self.blocks = nn.ModuleList(_Block(self.size, self.config.heads) for _ in range(self.config.layers))
        self.norm = nn.LayerNorm(self.size)

    def start(self, rows: int, like: Tensor) -> TransformerMemory:
        c = self.config
        # Rows come first, as in every memory, but each layer is contiguous, since each step reads it as a whole.
        shape = (c.layers, rows, c.heads, c.context, self.size // c.heads)
        keys = torch.zeros(shape, dtype=like.dtype, device=like.device).transpose(0, 1)
        return TransformerMemory(
            torch.zeros(rows, dtype=torch.int32, device=like.device),
            torch.zeros(rows, c.context, dtype=torch.bool, device=like.device),
            keys,
            torch.zeros_like(keys),
        )

    def step(self, x: Tensor, active: Tensor, memory: TransformerMemory) -> Tensor:
        rows = torch.arange(len(x), device=x.device)
        slot = memory.length.long() % self.config.context
        x = x + positions(memory.length, self.size).to(x.dtype)
        # The slot that the step overwrites is beyond the context.
        mask = memory.is_kept & (torch.arange(self.config.context, device=x.device) != slot[:, None])
        kept_keys, kept_values = [], []
        for k, block in enumerate(cast(Iterable[_Block], self.blocks)):
            query, key, value = block.project(x[:, None])
            keys, values = memory.keys[:, k].to(query.dtype), memory.values[:, k].to(query.dtype)
            x = block.finish(x[:, None], block.recall(query, keys, values, mask, key, value))[:, 0]
            kept_keys.append(key[:, :, 0])
            kept_values.append(value[:, :, 0])
        # One write after all reads: compiled, it updates the cache in place instead of a copy.
        memory.keys[rows, :, :, slot] = torch.stack(kept_keys, 1).to(memory.keys.dtype)
        memory.values[rows, :, :, slot] = torch.stack(kept_values, 1).to(memory.values.dtype)
        memory.is_kept[rows, slot] = active
        memory.length.add_(active | (memory.length > 0))
        return self.norm(x)

    def sequence(self, x: Tensor, active: Tensor, ended: Tensor, memory: TransformerMemory) -> Tensor:
        position, episode = places(active, ended, memory.length)
        x = x + positions(position, self.size).to(x.dtype)
        mask = self._attention_mask(position, episode, active, memory)[:, None]
        for k, block in enumerate(cast(Iterable[_Block], self.blocks)):
            query, key, value = block.project(x)
            keys = torch.cat([memory.keys[:, k].to(key.dtype), key], 2)
            values = torch.cat([memory.values[:, k].to(value.dtype), value], 2)
            x = block.finish(x, scaled_dot_product_attention(query, keys, values, attn_mask=mask))
        return self.norm(x)

    def reset(self, memory: TransformerMemory, mask: Tensor) -> None:
        memory.length.masked_fill_(mask, 0)
        memory.is_kept.masked_fill_(mask[:, None], False)

    def _attention_mask(self, position: Tensor, episode: Tensor, active: Tensor, memory: TransformerMemory) -> Tensor:
        """Return (R, T, C + T) what each step attends to: slots of the cache, then steps of the segment."""
        context, steps = self.config.context, position.shape[1]
        slots = torch.arange(context, device=position.device)
        newest = memory.length[:, None].long() - 1
        held = newest - (newest - slots) % context  # the position in each slot
        sees_cache = memory.is_kept[:, None] & (episode == 0)[..., None]
        sees_cache = sees_cache & (position[..., None] - held[:, None] < context)
        t = torch.arange(steps, device=position.device)
        age = t[:, None] - t
        is_near = (age >= 0) & (age < context)
        sees_steps = is_near & (episode[:, :, None] == episode[:, None]) & (active[:, None] | (age == 0))
        return torch.cat([sees_cache, sees_steps], -1)


class Recall(nn.Module):
    """Attention of a step to the cache and to itself. A module, so that hooks can record it, see policy/inspect."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return (R, N, 1, D) for query, key and value of the step, (R, N, 1, D), and those of the cache, (R, N, C, D).

        mask: (R, C) whether the step attends to a slot; it always attends to itself.
        """
        weights = recall_weights(query, keys, mask, key)
        kept, own = weights[..., :-1], weights[..., -1:]
        if torch.compiler.is_compiling():  # one pass over the cache, as in `recall_weights`
            gathered = (kept.transpose(-1, -2) * values.float()).sum(2, keepdim=True)
        else:
            gathered = kept.to(values.dtype) @ values
        return (gathered + own * value).to(query.dtype)


def recall_weights(query: Tensor, keys: Tensor, mask: Tensor, key: Tensor) -> Tensor:
    """Return (R, N, 1, C + 1) attention weights of the slots and of the step itself; see Recall."""
    if torch.compiler.is_compiling():
        # For one query, a product and a sum compile to one pass over the cache, faster than a matrix product.
        scores = (query.float() * keys.float()).sum(-1)[:, :, None]
    else:
        scores = (query @ keys.transpose(-1, -2)).float()
    own = (query.float() * key.float()).sum(-1, keepdim=True)
    scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    return (torch.cat([scores, own], -1) * query.shape[-1] ** -0.5).softmax(-1)


class _Block(nn.Module):
    """Attention, then an MLP, each with pre-normalization and a residual connection."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(hidden)
        self.mix = nn.Linear(hidden, 3 * hidden)
        self.recall = Recall()
        self.out = nn.Linear(hidden, hidden)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.widen = nn.Linear(hidden, 4 * hidden)
        self.narrow = nn.Linear(4 * hidden, hidden)
        for linear in (self.mix, self.out, self.widen, self.narrow):
            nn.init.normal_(linear.weight, std=hidden**-0.5)
            nn.init.zeros_(linear.bias)
        # Each block starts close to the identity.
        for linear in (self.out, self.narrow):
            nn.init.normal_(linear.weight, std=0.1 * linear.in_features**-0.5)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, (R, heads, T, D) each, of (R, T, H)."""
        mixed = self.mix(self.norm(x)).unflatten(-1, (3, self.heads, -1)).transpose(1, 3)
        return mixed[:, :, 0], mixed[:, :, 1], mixed[:, :, 2]

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Return (R, T, H) the output of the block for its input and the result of attention, (R, heads, T, D)."""
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.narrow(gelu(self.widen(self.mlp_norm(x))))


def places(active: Tensor, ended: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Return (R, T) the position of each step in its episode, and the number of its episode within the segment.

    A step that ends an episode belongs to it. Each step before the first active one of an episode counts as an episode
    of its own.

    Args:
        active: (R, T) whether the row was active.
        ended: (R, T) whether the episode ended with the step.
        length: (R,) steps of the current episode before the segment.
    """
    t = torch.arange(ended.shape[1], device=ended.device)
    last_active = torch.where(active, t, -1).cummax(1).values
    has_begun = (last_active >= _since(ended, t)) | ((_since(ended, t) == 0) & (length[:, None] > 0))
    ended = ended | ~has_begun
    episode = _shifted(ended.long()).cumsum(1)
    begun_before = (episode == 0) & (length[:, None] > 0)
    return torch.where(begun_before, t + length[:, None], t - _since(ended, t)), episode


def _since(ended: Tensor, t: Tensor) -> Tensor:
    """Return (R, T) the step at which the episode of each step starts."""
    return _shifted(torch.where(ended, t + 1, 0)).cummax(1).values


def _shifted(steps: Tensor) -> Tensor:
    """Shift everything one step later."""
    return torch.cat([torch.zeros_like(steps[:, :1]), steps[:, :-1]], 1)


def positions(position: Tensor, size: int) -> Tensor:
    """Return (..., size) sinusoidal encodings of positions (...), small compared with encoded observations."""
    half = size // 2
    waves = torch.exp(torch.arange(half, device=position.device) * (-math.log(_LONGEST_WAVE) / half))
    angles = position[..., None].float() * waves
    return _POSITION_SIZE * torch.cat([angles.sin(), angles.cos()], -1)
