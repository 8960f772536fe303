"""What a transformer attends to in one step, and what it would attend to if inactive steps were not masked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from roadworthy.policy.cores import Memory
from roadworthy.policy.cores.transformer import Recall, TransformerMemory, recall_weights
from roadworthy.policy.network import Output, Policy


@dataclass(frozen=True)
class Look:
    """One step of R rows. A step's age is 0 for the step itself, 1 for the one before, and so on up to C - 1."""

    output: Output
    sees: Tensor  # (R, C) bool, by age
    weights: Tensor  # (R, layers, heads, C) by age, of what is seen


def look(policy: Policy, seen: Tensor, active: Tensor, memory: Memory, traits: Tensor | None) -> Look:
    """What a step attends to; the memory stays as it is."""
    scratch = type(memory)(*(tensor.clone() for tensor in memory))
    with _watched(policy) as attended:
        output = policy.step(seen, active, scratch, traits)
    if not isinstance(memory, TransformerMemory):
        rows = len(seen)
        return Look(output, torch.zeros(rows, 0, dtype=torch.bool), torch.zeros(rows, 0, 0, 0))
    slots = _slots_by_age(memory)
    sees = torch.cat([torch.ones_like(active)[:, None], memory.is_kept.gather(1, slots)], 1)
    weights = torch.stack([layer[:, :, 0] for layer in attended], 1)
    before = weights.gather(-1, slots[:, None, None].expand(*weights.shape[:-1], -1))
    return Look(output, sees, torch.cat([weights[..., -1:], before], -1))


def without_mask(memory: TransformerMemory) -> TransformerMemory:
    """A copy of the memory in which inactive steps of the episode count as much as active ones."""
    slots = torch.arange(memory.is_kept.shape[1], device=memory.length.device)
    return TransformerMemory(
        memory.length.clone(), slots < memory.length[:, None], memory.keys.clone(), memory.values.clone()
    )


@contextmanager
def _watched(policy: Policy) -> Iterator[list[Tensor]]:
    """The attention weights of every layer that runs meanwhile, in order."""
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
    """(R, C - 1) the slot of the step before the one that is being made, of that before it, and so on."""
    context = memory.is_kept.shape[1]
    ages = torch.arange(1, context, device=memory.length.device)
    return (memory.length.long()[:, None] - ages) % context
