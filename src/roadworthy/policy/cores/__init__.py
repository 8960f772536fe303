"""Memory cores: what a policy remembers of its episode.

A core runs step by step in rollouts and over whole sequences in training, with equal outputs up to rounding error. Its
memory is a NamedTuple of tensors with one row per agent. `step` changes the memory in place; `sequence` starts from the
memory and leaves it unchanged. Steps in which a row is inactive are not remembered: no other step attends to them.

A core is a class with the methods of `Core`: an entry point of the group `roadworthy.cores`, as the built-in cores are,
or `module:Name` in a config.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from roadworthy.plugins import load
from roadworthy.policy.config import CORES, PolicyConfig

Memory = Any  # a NamedTuple of tensors, (rows, ...) each; `length`, (rows,) int32, counts the steps of the episode


class Core(Protocol):
    """A `torch.nn.Module` with these methods. R rows, T steps, H the hidden size."""

    def __init__(self, config: PolicyConfig) -> None:
        """Make the layers; `config.hidden` is H, `config.core_config` has settings of the core's own."""

    def start(self, rows: int, like: Tensor) -> Memory:
        """Return an empty memory with the device and the dtype of `like`."""

    def step(self, x: Tensor, active: Tensor, memory: Memory) -> Tensor:
        """Return (R, H) for one step of (R, H) and (R,), and add the step to the memory."""

    def sequence(self, x: Tensor, active: Tensor, ended: Tensor, memory: Memory) -> Tensor:
        """Return (R, T, H) for (R, T, H), (R, T) and (R, T); ended[t]: the episode ended with step t."""

    def reset(self, memory: Memory, mask: Tensor) -> None:
        """Clear the memory of the rows in mask, (R,)."""


def make_core(config: PolicyConfig) -> Any:
    """Return the core of a config."""
    return load(CORES, config.core, "core")(config)
