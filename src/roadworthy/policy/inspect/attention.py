"""What a transformer attends to in a step, and what it would attend to without the mask of inactive steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from roadworthy.policy.cores import Memory
from roadworthy.policy.cores.transformer import Recall, TransformerMemory, recall_weights
from roadworthy.policy.network import Output, PolicyNetwork


@dataclass(frozen=True)
class AttentionStep:
    """One step of R rows. Ages: 0 is the step itself, 1 the step before, up to C - 1."""

    output: Output
    sees: Tensor  # (R, C) bool, by age
    weights: Tensor  # (R, layers, heads, C) attention weights by age


def attend(
    policy: PolicyNetwork, seen: Tensor, active: Tensor, memory: Memory, conditioning: Tensor | None
) -> AttentionStep:
    """Run a step and return what it attends to; the memory stays unchanged."""
    scratch = type(memory)(*(tensor.clone() for tensor in memory))
    with _recorded_weights(policy) as attended:
        output = policy.step(seen, active, scratch, conditioning)
    if not isinstance(memory, TransformerMemory):
        rows = len(seen)
        return AttentionStep(output, torch.zeros(rows, 0, dtype=torch.bool), torch.zeros(rows, 0, 0, 0))
    slots = _slots_by_age(memory)
    sees = torch.cat([torch.ones_like(active)[:, None], memory.is_kept.gather(1, slots)], 1)
    weights = torch.stack([layer[:, :, 0] for layer in attended], 1)
    before = weights.gather(-1, slots[:, None, None].expand(*weights.shape[:-1], -1))
    return AttentionStep(output, sees, torch.cat([weights[..., -1:], before], -1))


def without_mask(memory: TransformerMemory) -> TransformerMemory:
    """Return a copy of the memory in which inactive steps of the episode are not masked."""
    slots = torch.arange(memory.is_kept.shape[1], device=memory.length.device)
    return TransformerMemory(
        memory.length.clone(), slots < memory.length[:, None], memory.keys.clone(), memory.values.clone()
    )


@contextmanager
def _recorded_weights(policy: PolicyNetwork) -> Iterator[list[Tensor]]:
    """Give a list that collects the attention weights of all layers that run within the block."""
    attended: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Tensor, ...], __: Tensor) -> None:
        query, keys, _values, mask, key, _value = given
        attended.append(recall_weights(query, keys, mask, key))

    hooks = [module.register_forward_hook(keep) for module in policy.modules() if isinstance(module, Recall)]
    try:
        yield attended
    finally:
        for hook in hooks:
            hook.remove()


def _slots_by_age(memory: TransformerMemory) -> Tensor:
    """Return (R, C - 1) the slots of the steps before the current one, the latest first."""
    context = memory.is_kept.shape[1]
    ages = torch.arange(1, context, device=memory.length.device)
    return (memory.length.long()[:, None] - ages) % context
