"""Memory cores: what a policy remembers of its episode, step by step in rollout and over sequences in training.

A core's memory is a NamedTuple of tensors with one row per agent. `step` changes it in place; `sequence` goes on from
it and leaves it as it is. Both give the same outputs to rounding error. A step in which the row was inactive leaves no
trace: it is made as if nothing were to be seen, and no other step sees it.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from roadworthy.policy.config import CoreKind, PolicyConfig
from roadworthy.policy.cores.lstm import LstmCore
from roadworthy.policy.cores.mlp import MlpCore
from roadworthy.policy.cores.transformer import TransformerCore

Memory = Any  # a NamedTuple of tensors, (rows, ...) each; see the cores


class Core(Protocol):
    """What every core can do. R rows, T steps, H the hidden size."""

    def start(self, rows: int, like: Tensor) -> Memory:
        """An empty memory, on the device and with the number type of `like`."""

    def step(self, x: Tensor, active: Tensor, memory: Memory) -> Tensor:
        """(R, H) from (R, H) and (R,): one step, which the memory keeps."""

    def sequence(self, x: Tensor, active: Tensor, ended: Tensor, memory: Memory) -> Tensor:
        """(R, T, H) from (R, T, H), (R, T) and (R, T): ended[t] says that the episode ended with step t."""

    def reset(self, memory: Memory, mask: Tensor) -> None:
        """Clear the memory of these rows, (R,)."""


def make_core(config: PolicyConfig) -> Any:
    """The core that a config asks for: a module, and a Core."""
    if config.core is CoreKind.MLP:
        return MlpCore(config.hidden)
    if config.core is CoreKind.LSTM:
        return LstmCore(config.hidden)
    return TransformerCore(config.hidden, config.transformer)


__all__ = ["Core", "Memory", "make_core"]
